"""One machine with a database, a service, a worker, and fakes of Apple's push service and of the mail webhook."""
import base64
import glob
import os
import secrets
import shutil
import signal
import sys
import time

from cluster import BINARIES, DEPLOY, wait
from load import Service
from machines import run

FAKES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fakes.py")
# The account of `serve`, `worker` and the fakes.
ACCOUNT = "www-data"
# PostgreSQL's configuration.
FILES = ("postgresql.conf", "pg_hba.conf", "pg_ident.conf")
SERVE_METRICS, WORKER_METRICS = 9464, 9465
CERTIFICATE_DAYS = 60


class Stack:
    def __init__(self, network, name, number, muster, keys, authority):
        self.machine = network.machine(name, number)
        self.muster = muster
        self.keys = keys
        self.authority = authority
        # The environment and further arguments of PostgreSQL.
        self.postgres_environment, self.postgres_arguments = {}, []
        self.passwords = {name: secrets.token_hex(16) for name in ("OWNER", "SERVICE")}
        self.certificate, self.key = self.machine.path("service.crt"), self.machine.path("service.key")
        self.service = Service(self.machine.address, authority.certificate, port=8443)

    # The database

    @property
    def disk(self):
        return self.machine.path("disk")

    @property
    def data(self):
        return self.machine.path("disk/data")

    @property
    def configuration(self):
        """A folder outside of the data, as Debian has it: no copy of the data contains it."""
        return self.machine.path("etc")

    def as_postgres(self, *command, **options):
        environment = {"PATH": f"{BINARIES}:/usr/bin:/bin", "HOME": self.machine.folder, "LANG": "C.UTF-8"}
        environment |= {**self.postgres_environment, **options.pop("env", {})}
        return run(*self.machine.command("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", *command),
                   env=environment, cwd=self.machine.folder, **options)

    def make_database(self, size=None, settings=()):
        """Makes a cluster and starts it; on a disk of a size, if there is one, such as `300m`."""
        os.makedirs(self.disk)
        if size:
            run("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", self.disk)
        run("chown", "postgres:postgres", self.disk)
        self.as_postgres("initdb", "-D", self.data, "-E", "UTF8", "--locale=C.UTF-8", "-A", "scram-sha-256",
                         "--auth-local=peer", "--no-sync", timeout=120)
        os.makedirs(self.configuration)
        for name in FILES:
            shutil.move(os.path.join(self.data, name), self.configuration)
        with open(os.path.join(self.configuration, "postgresql.conf"), "a", encoding="utf-8") as file:
            # More connections than by default: a copy of the data with fewer is refused.
            file.write("\n".join([f"listen_addresses = '{self.machine.address}'",
                                  f"unix_socket_directories = '{self.disk}'", "max_connections = 120",
                                  "shared_buffers = '32MB'", *settings, ""]))
        with open(os.path.join(self.configuration, "pg_hba.conf"), "a", encoding="utf-8") as file:
            file.write("host all all 10.0.0.0/24 scram-sha-256\n")
        self.start_database()

    def start_database(self):
        paths = dict(zip(("config_file", "hba_file", "ident_file"), FILES))
        files = [word for name, file in paths.items() for word in ("-c", f"{name}={self.configuration}/{file}")]
        self.machine.start("postgres", [f"{BINARIES}/postgres", "-D", self.data, *files, *self.postgres_arguments],
                           "postgres", self.postgres_environment, restarts=False)
        wait(self.is_up, 60, f"PostgreSQL on {self.machine.name}")

    def is_up(self):
        try:
            return self.psql("SELECT NOT pg_is_in_recovery()").strip() == "t"
        except RuntimeError:
            return False

    def psql(self, statement, database="postgres", **options):
        """As the superuser."""
        return self.as_postgres("psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-h", self.disk, "-d", database,
                                input=statement, **options)

    def sql(self, statement):
        return self.psql(statement, "muster")

    def prepare(self):
        """The roles and the schema."""
        self.as_postgres("psql", "-qX", "-h", self.disk, "-f", os.path.join(DEPLOY, "roles.sql"), "postgres",
                         env={f"POSTGRES_{name}_PASSWORD": value for name, value in self.passwords.items()})
        self.migrate()

    def migrate(self):
        return self.run_muster("migrate", role="muster_owner", MUSTER_DATABASE_ROLE="muster")

    def run_muster(self, *command, role="muster", **environment):
        return run(self.muster, *command, timeout=120,
                   env={"PATH": "/usr/bin:/bin", "DATABASE_URL": self.url(role), **environment})

    def url(self, role="muster"):
        password = self.passwords["OWNER" if role == "muster_owner" else "SERVICE"]
        return f"postgresql://{role}:{password}@{self.machine.address}/muster?connect_timeout=2"

    def postmaster(self):
        with open(os.path.join(self.data, "postmaster.pid"), encoding="utf-8") as file:
            return int(file.readline())

    def stop_database(self, number=signal.SIGQUIT):
        """Ends it immediately by default, as a loss of power does."""
        os.kill(self.postmaster(), number)

    def pause_database(self):
        """It accepts connections, as the kernel does that for it, but does not respond."""
        pids = {self.postmaster()}
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path, encoding="utf-8") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) in pids:
                pids.add(int(path.split("/")[2]))
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)

    # Programs

    def environment(self):
        fake = "https://localhost:"
        return {
            **self.keys, "DATABASE_URL": self.url(), "MUSTER_PUBLIC_URL": "https://api.example.com",
            "MUSTER_POOL_SIZE": "4", "MUSTER_RATE_LIMITS": "off", "MUSTER_THROTTLING": "off",
            "MUSTER_SCRYPT": "ln=4,r=8,p=1", "MUSTER_ACCESS_TOKEN_SECONDS": "86400",
            "MUSTER_TRUSTED_CERTIFICATES": self.authority.certificate, "MUSTER_WEBHOOK_ALLOW_PRIVATE": "on",
            "MUSTER_APNS_TEAM_ID": "TEAM", "MUSTER_APNS_KEY_ID": "KEY", "MUSTER_APNS_TOPIC": "com.example.app",
            "MUSTER_APNS_PRIVATE_KEY": self.authority.push_key, "MUSTER_APNS_URL": f"{fake}2197",
            "MUSTER_MAIL_WEBHOOK": f"{fake}2198/mails",
            "MUSTER_MAIL_WEBHOOK_SECRET": "whsec_" + base64.b64encode(b"a secret of thirty-two bytes, ok").decode(),
        }

    def start_fakes(self, *names):
        """`apns` and `mail`."""
        self.authority.issue(self.machine.address, self.certificate, self.key, CERTIFICATE_DAYS * 86_400)
        for name in names:
            port = {"apns": "2197", "mail": "2198"}[name]
            self.machine.start(name, [sys.executable, FAKES, port, self.certificate, self.key,
                                      self.machine.path(f"{name}.ids")], restarts=False)

    def start_serve(self):
        # The key is readable by this account alone.
        run("chown", ACCOUNT, self.key)
        self.machine.start("serve", [self.muster, "serve", "--host", self.machine.address, "--port", "8443"], ACCOUNT, {
            **self.environment(), "MUSTER_METRICS_LISTEN": f"{self.machine.address}:{SERVE_METRICS}",
            "MUSTER_TLS_CERTIFICATE": self.certificate, "MUSTER_TLS_KEY": self.key})

    def start_worker(self):
        self.machine.start("worker", [self.muster, "worker"], ACCOUNT, {
            **self.environment(), "MUSTER_METRICS_LISTEN": f"{self.machine.address}:{WORKER_METRICS}"})

    def is_ready(self):
        try:
            return self.service.send("GET", "/health/ready")[0] == 200
        except OSError:
            return False

    def wait_until_ready(self):
        return wait(self.is_ready, 60, f"a ready service on {self.machine.name}")

    def sent(self, name):
        """The ids that a fake has received, in their order."""
        try:
            with open(self.machine.path(f"{name}.ids"), encoding="utf-8") as file:
                return file.read().split()
        except FileNotFoundError:
            return []


class Authority:
    """Certificates of our own, and the key for Apple's push service."""

    def __init__(self, folder):
        self.folder = os.path.join(folder, "authority")
        os.makedirs(self.folder)
        os.chmod(self.folder, 0o755)
        self.certificate, self.key = self._path("ca.crt"), self._path("ca.key")
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
            "3650", "-subj", "/CN=Authority", "-keyout", self.key, "-out", self.certificate)
        os.chmod(self.certificate, 0o644)
        self.push_key = run("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")

    def _path(self, name):
        return os.path.join(self.folder, name)

    def issue(self, address, certificate, key, seconds):
        """Writes a certificate that expires to the second. The key stays the same, if there is one."""
        work = self._path(secrets.token_hex(8))
        os.makedirs(work)
        settings = os.path.join(work, "ca.conf")
        with open(settings, "w", encoding="utf-8") as file:
            file.write(f"""[ca]
default_ca = own
[own]
database = {work}/index
new_certs_dir = {work}
serial = {work}/serial
private_key = {self.key}
certificate = {self.certificate}
default_md = sha256
policy = any
x509_extensions = names
[any]
commonName = supplied
[names]
subjectAltName = IP:{address}, DNS:localhost
""")
        with open(os.path.join(work, "index"), "w", encoding="utf-8"):
            pass
        with open(os.path.join(work, "serial"), "w", encoding="utf-8") as file:
            file.write(secrets.token_hex(8).upper())
        request = os.path.join(work, "request")
        fresh = [] if os.path.exists(key) else ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                                                "-keyout", key]
        run("openssl", "req", "-new", *(fresh or ["-key", key]), "-subj", "/CN=muster", "-out", request)
        end = time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + seconds))
        run("openssl", "ca", "-batch", "-notext", "-config", settings, "-startdate", "20200101000000Z", "-enddate", end,
            "-in", request, "-out", f"{certificate}.new")
        os.chmod(f"{certificate}.new", 0o644)
        os.rename(f"{certificate}.new", certificate)
