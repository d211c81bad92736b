"""The cluster under test, from the files in deploy/: three database machines, two services, a worker, the balancers."""
import calendar
import json
import os
import secrets
import signal
import subprocess
import time
import urllib.request

import clocks
from machines import run

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEPLOY = os.path.join(CHECKOUT, "deploy")
BINARIES = "/usr/lib/postgresql/15/bin"
# The size of each database machine's disk, which is in memory.
DISK = "400m"
DRAIN_SECONDS = 5
# Of `serve` and `worker`.
ACCOUNT = "www-data"


class Cluster:
    def __init__(self, network, muster):
        self.network = network
        self.muster = muster
        self.databases = [network.machine(f"db{number}", 10 + number) for number in (1, 2, 3)]
        self.apps = [network.machine(f"app{number}", 20 + number) for number in (1, 2)]
        self.balancers = {name: network.machine(name, 31 + number)
                          for number, name in enumerate(("haproxy", "nginx", "caddy"))}
        self.passwords = {name: secrets.token_hex(16)
                          for name in ("RESTAPI", "SUPERUSER", "REPLICATION", "REWIND", "OWNER", "SERVICE")}
        self.keys = dict(line.split("=", 1) for line in run(muster, "keys").split("\n") if "=" in line)
        self.certificate = self._certificate()

    # The files

    def shipped(self, name, machine, **replacements):
        """A file of deploy/, with the paths, passwords and, on the loopback, addresses of this run."""
        with open(os.path.join(DEPLOY, name), encoding="utf-8") as file:
            text = file.read()
        for word, password in self.passwords.items():
            text = text.replace(f"CHANGE_ME_{word}", password)
        for old, new in replacements.items():
            if old not in text:
                raise RuntimeError(f"deploy/{name} no longer contains {old}")
            text = text.replace(old, new)
        if not self.network.has_namespaces:
            # Ports below 1024 and all addresses belong to others there.
            text = text.replace("10.0.0.", self.network.prefix).replace("0.0.0.0", machine.address)
            text = text.replace("bind :", f"bind {machine.address}:")
            text = text.replace("listen 80", f"listen {machine.address}:80")
            text = text.replace("listen 443", f"listen {machine.address}:443")
            text = text.replace("127.0.0.1", machine.address)
            text = text.replace("{$MUSTER_SITE:api.example.com} {", f"{{$MUSTER_SITE}} {{\n  bind {machine.address}")
        return text

    def own(self, name, database):
        """A file that differs between the database machines."""
        number = database.name[-1]
        lines = []
        for line in self.shipped(name, database).split("\n"):
            if line and not line.startswith(("#", "ETCD_INITIAL_CLUSTER=")):
                line = line.replace("db1", database.name).replace(f"{self.network.prefix}11", database.address)
            if "=" in line and not line.startswith("#"):
                lines.append(line)
        assert len(lines) > 5 and number in "123"
        return dict(line.split("=", 1) for line in lines)

    def _certificate(self):
        folder = os.path.join(self.network.folder, "tls")
        os.makedirs(folder)
        names = ",".join(f"IP:{machine.address}" for machine in self.balancers.values())
        paths = {kind: os.path.join(folder, f"muster.{kind}") for kind in ("crt", "key", "pem")}
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=muster",
            "-addext", f"subjectAltName={names}", "-keyout", paths["key"], "-out", paths["crt"])
        with open(paths["pem"], "w", encoding="utf-8") as both:
            for kind in ("crt", "key"):
                with open(paths[kind], encoding="utf-8") as part:
                    both.write(part.read())
        for path in [folder, *paths.values()]:
            os.chmod(path, 0o755)
        return paths

    # Databases

    def start_databases(self):
        for database in self.databases:
            disk = database.path("disk")
            os.makedirs(disk)
            if self.network.has_namespaces:
                run("mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "none", disk)
            if os.geteuid() == 0:
                run("chown", "-R", "postgres:postgres", database.folder)
            self.start_etcd(database)
        for database in self.databases:
            database.write("roles.sql", self.shipped("roles.sql", database), 0o644)
            database.write("init.sql", self.shipped("patroni/init.sql", database), 0o644)
            database.write("patroni.yml", self.shipped("patroni/patroni.yml", database, **{
                "/etc/patroni/init.sql": database.path("init.sql"),
                "/var/lib/postgresql/15/muster": database.path("disk/data"),
                "/var/lib/postgresql/.pgpass-patroni": database.path("pgpass"),
                "/var/run/postgresql": database.path("disk"),
            }), 0o600, "postgres")
            self.validate_patroni(database)
            self.start_patroni(database)
            if database is self.databases[0]:
                wait(lambda: self.primary() is database, 90, "the first primary")
        wait(self.is_whole, 120, "three members, and a synchronous standby")

    def start_etcd(self, database):
        environment = {**self.own("patroni/etcd.env", database), "ETCD_DATA_DIR": database.path("etcd"),
                       "ETCD_LOG_LEVEL": "warn"}
        database.start("etcd", ["/usr/bin/etcd"], "postgres", environment)

    def patroni_environment(self, database):
        return {**self.own("patroni/patroni.env", database), "HOME": database.folder}

    def validate_patroni(self, database):
        done = subprocess.run(
            database.command("setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups", "/usr/bin/patroni",
                             "--validate-config", database.path("patroni.yml")),
            env={"PATH": f"{BINARIES}:/usr/sbin:/usr/bin:/sbin:/bin", **self.patroni_environment(database)},
            capture_output=True, text=True, timeout=60)
        said = (done.stdout + done.stderr).strip()
        if done.returncode != 0 or said:
            raise RuntimeError(f"patroni --validate-config: {said}")

    def start_patroni(self, database):
        database.start("patroni", ["/usr/bin/patroni", database.path("patroni.yml")], "postgres",
                       {**self.patroni_environment(database),
                        "PATH": f"{BINARIES}:/usr/sbin:/usr/bin:/sbin:/bin"})

    def postmaster(self, database):
        """The pid of a machine's postmaster."""
        with open(database.path("disk/data/postmaster.pid"), encoding="utf-8") as file:
            return int(file.readline())

    def kill_database(self, database):
        """Ends everything on a machine, as a loss of power does, and keeps it off."""
        pids = [self.postmaster(database)]
        for name in ("patroni", "etcd"):
            program = database.programs[name]
            program.is_wanted = False
            pids.insert(0, program.pid)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def boot_database(self, database):
        self.start_etcd(database)
        self.start_patroni(database)

    def set_clock(self, database, seconds):
        """Sets the clocks of a machine's PostgreSQL and Patroni off. That of its etcd stays."""
        for pid in (self.postmaster(database), database.programs["patroni"].pid):
            clocks.shift(pid, seconds)

    def ask(self, machine, path, body=None):
        """A request to a machine's Patroni; None if there is no response."""
        request = urllib.request.Request(f"http://{machine.address}:8008{path}", body and json.dumps(body).encode())
        if body:
            import base64
            token = base64.b64encode(f"patroni:{self.passwords['RESTAPI']}".encode()).decode()
            request.add_header("Authorization", f"Basic {token}")
            request.add_header("Content-Type", "application/json")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=60 if body else 2) as response:
                return response.read().decode()
        except (OSError, ValueError):
            return None

    def members(self):
        """The members by name, as the first machine that responds sees them."""
        for database in self.databases:
            text = self.ask(database, "/cluster")
            if text:
                return {member["name"]: member for member in json.loads(text)["members"]}
        return {}

    def find(self, role):
        for name, member in self.members().items():
            if member["role"] == role and member["state"] in ("running", "streaming"):
                return self.network.machines[name]
        return None

    def primary(self):
        for database in self.databases:
            if self.ask(database, "/primary"):
                return database
        return None

    def is_whole(self):
        members = self.members().values()
        roles = sorted(member["role"] for member in members if member["state"] in ("running", "streaming"))
        return roles == ["leader", "replica", "sync_standby"] and len({m.get("timeline") for m in members}) == 1

    def switch_over(self, to):
        leader = self.primary()
        answer = self.ask(leader, "/switchover", {"leader": leader.name, "candidate": to.name})
        if not answer:
            raise RuntimeError("the switchover was refused")

    def etcd_leader(self):
        for database in self.databases:
            try:
                text = self.databases[0].inside(
                    "etcdctl", "--endpoints", f"http://{database.address}:2379", "endpoint", "status", "--write-out",
                    "json", env={"PATH": "/usr/bin", "ETCDCTL_API": "3"})
            except RuntimeError:
                continue
            status = json.loads(text)[0]["Status"]
            if status["header"]["member_id"] == status["leader"]:
                return database
        return None

    @staticmethod
    def etcd_time(database):
        """What time it is for a machine's etcd."""
        request = urllib.request.Request(f"http://{database.address}:2379/v2/keys/time", b"ttl=60", method="PUT")
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5) as response:
            expiration = json.load(response)["node"]["expiration"]
        return calendar.timegm(time.strptime(expiration[:19], "%Y-%m-%dT%H:%M:%S")) - 60

    # Services

    def url(self, role="muster"):
        hosts = ",".join(database.address for database in self.databases)
        password = self.passwords["OWNER" if role == "muster_owner" else "SERVICE"]
        return f"postgresql://{role}:{password}@{hosts}/muster?connect_timeout=2&tcp_user_timeout=5000"

    def sql(self, statement, role="muster"):
        return run(
            f"{BINARIES}/psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-d",
            f"{self.url(role)}&target_session_attrs=read-write", input=statement, timeout=60)

    def environment(self, index):
        url = self.url()
        if index == 1:
            url = f"postgresql://muster:{self.passwords['SERVICE']}@{self.pgbouncer_address}:6432/muster"
        return {
            **self.keys, "DATABASE_URL": url, "MUSTER_PUBLIC_URL": "https://api.example.com", "MUSTER_POOL_SIZE": "8",
            "MUSTER_PGBOUNCER": "on" if index == 1 else "off", "MUSTER_DRAIN_SECONDS": str(DRAIN_SECONDS),
            "MUSTER_TRUSTED_PROXIES": ",".join(machine.address for machine in self.balancers.values())
            if self.network.has_namespaces else "127.0.0.1",
            "MUSTER_RATE_LIMITS": "off", "MUSTER_THROTTLING": "off", "MUSTER_SCRYPT": "ln=4,r=8,p=1",
            "MUSTER_ACCESS_TOKEN_SECONDS": "86400", "MUSTER_METRICS_LISTEN": "off", "MUSTER_LOG_REQUESTS": "all",
            "MUSTER_LOG_ADDRESSES": "on", "MUSTER_WEBHOOK_ALLOW_PRIVATE": "on",
        }

    @property
    def pgbouncer_address(self):
        return "127.0.0.1" if self.network.has_namespaces else self.apps[1].address

    def migrate(self):
        env = {"PATH": "/usr/bin:/bin", "DATABASE_URL": self.url("muster_owner"), "MUSTER_DATABASE_ROLE": "muster"}
        run(self.muster, "migrate", env=env, timeout=120)

    def start_pgbouncer(self):
        app = self.apps[1]
        users = app.write("userlist.txt", f'"muster" "{self.passwords["SERVICE"]}"\n', 0o600, "postgres")
        settings = app.write("pgbouncer.ini", self.shipped(
            "pgbouncer.ini", app, **{"/etc/pgbouncer/userlist.txt": users}), 0o600, "postgres")
        app.start("pgbouncer", ["pgbouncer", settings], "postgres")

    def start_serve(self, index):
        app = self.apps[index]
        app.start("serve", [self.muster, "serve", "--host", app.address, "--port", "8080"], ACCOUNT,
                  self.environment(index))

    def start_worker(self):
        self.apps[0].start("worker", [self.muster, "worker"], ACCOUNT, self.environment(0))

    def start_balancers(self):
        machine = self.balancers["haproxy"]
        path = machine.write("haproxy.cfg", self.shipped("haproxy.cfg", machine, **{
            "/etc/haproxy/muster.pem": self.certificate["pem"]}))
        machine.inside("haproxy", "-c", "-f", path)
        machine.start("haproxy", ["haproxy", "-W", "-db", "-f", path])

        machine = self.balancers["nginx"]
        path = machine.write("nginx.conf", self.shipped("nginx.conf", machine, **{
            "/etc/nginx/muster.crt": self.certificate["crt"], "/etc/nginx/muster.key": self.certificate["key"],
            "/var/log/nginx": machine.folder, "/run/nginx.pid": machine.path("nginx.pid")}))
        machine.inside("nginx", "-t", "-c", path)
        machine.start("nginx", ["nginx", "-g", "daemon off;", "-c", path])

        machine = self.balancers["caddy"]
        path = machine.write("Caddyfile", self.shipped("Caddyfile", machine), 0o644)
        # Without a domain, Caddy gets no certificate.
        environment = {"MUSTER_SITE": f"http://{machine.address}:80", "HOME": machine.folder,
                       "PATH": "/usr/bin:/bin"}
        machine.inside("caddy", "validate", "--adapter", "caddyfile", "--config", path, env=environment)
        machine.start("caddy", ["caddy", "run", "--adapter", "caddyfile", "--config", path], None, environment)


def wait(condition, seconds, what):
    """Waits until a condition holds, and returns how long that took."""
    begin = time.monotonic()
    while not condition():
        if time.monotonic() - begin > seconds:
            raise TimeoutError(f"after {seconds} s, there is no sign of {what}")
        time.sleep(0.25)
    return time.monotonic() - begin
