"""The processes of a run: a private PostgreSQL cluster, and `muster` programs. Each is stopped by its pid."""
import glob
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import time

TICK = os.sysconf("SC_CLK_TCK")


def stat_of(pid):
    """The fields of /proc/PID/stat, starting with the state. The second field is the parent's pid."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()


def cpu_seconds(pid, with_ended_children=False):
    times = stat_of(pid)[11:15 if with_ended_children else 13]
    return sum(int(ticks) for ticks in times) / TICK


def children_of(parent):
    children = []
    for entry in os.listdir("/proc"):
        try:
            if entry.isdigit() and int(stat_of(entry)[1]) == parent:
                children.append(int(entry))
        except OSError:
            pass  # It has ended.
    return children


def wait_until(condition, seconds, step=0.02):
    """Returns the condition's value as soon as it is true, or its last value when the time is over."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(step)


class Psql:
    """An open psql session that runs one statement after the other."""

    def __init__(self, url):
        self.process = subprocess.Popen(
            ["psql", url, "-XAtq", "-v", "ON_ERROR_STOP=1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            encoding="utf-8", bufsize=1)

    def run(self, text):
        """The lines of the result."""
        self.process.stdin.write(text.rstrip().rstrip(";") + ";\n\\echo :done:\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line == ":done:\n":
                return lines
            lines.append(line.rstrip("\n"))
        raise RuntimeError(f"psql ended at: {text.strip()[:100]}")

    def value(self, text):
        return self.run(text)[0]

    def end(self):
        """Open transactions are rolled back."""
        self.process.terminate()
        self.process.wait()


# The role of the service and the worker, which can only read and write rows.
SERVICE_ROLE = "muster_app"


class Cluster:
    """PostgreSQL on a socket in a private folder, without TCP. If this is root, it runs as `postgres`."""

    def __init__(self, folder="/tmp", **settings):
        found = shutil.which("initdb") or max(glob.glob("/usr/lib/postgresql/*/bin/initdb"), default=None)
        if found is None:
            raise SystemExit("initdb is neither on the PATH nor under /usr/lib/postgresql")
        self.folder = tempfile.mkdtemp(prefix="muster-abuse-", dir=folder)
        self.account = {}
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.account = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        try:
            data = f"{self.folder}/data"
            subprocess.run(
                [found, "-D", data, "-U", "postgres", "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8"],
                stdout=subprocess.DEVNULL, check=True, cwd=self.folder, **self.account)
            settings = {
                "listen_addresses": "", "unix_socket_directories": self.folder, "fsync": "on", "max_connections": 200,
                # Its processor time is measured, so it must not do other work on its own.
                "autovacuum": "off", "shared_buffers": "256MB", "max_wal_size": "4GB",
            } | settings
            options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
            self.log = open(f"{self.folder}/log", "wb")
            self.program = os.path.join(os.path.dirname(found), "postgres")
            self.process = subprocess.Popen(
                [self.program, "-D", data, *options], stdout=self.log,
                stderr=self.log, start_new_session=True, cwd=self.folder, **self.account)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        ready = ["psql", self.url("postgres"), "-XAtc", "SELECT 1"]
        if not wait_until(lambda: subprocess.run(ready, capture_output=True).returncode == 0, 30, 0.2):
            self.end()
            raise SystemExit("PostgreSQL did not start")
        self.ask(f"CREATE ROLE {SERVICE_ROLE} LOGIN")

    def url(self, database, role="postgres"):
        return f"postgresql://{role}@/{database}?host={self.folder}"

    def create(self, database, template="template0"):
        self.ask(f'CREATE DATABASE "{database}" TEMPLATE "{template}"')

    def drop(self, database):
        self.ask(f'DROP DATABASE "{database}" WITH (FORCE)')

    def ask(self, statement):
        subprocess.run(["psql", self.url("postgres"), "-Xqc", statement], check=True)

    def cpu_seconds(self):
        """Of all its processes, including those that have ended."""
        total = cpu_seconds(self.process.pid, with_ended_children=True)
        for child in children_of(self.process.pid):
            try:
                total += cpu_seconds(child)
            except OSError:
                pass  # It has ended. The next call counts it with the postmaster.
        return total

    def freeze(self):
        # The postmaster first, so that it starts no new process for a connection.
        self.frozen = [self.process.pid]
        os.kill(self.process.pid, signal.SIGSTOP)
        for child in children_of(self.process.pid):
            self.frozen.append(child)
            os.kill(child, signal.SIGSTOP)

    def thaw(self):
        for pid in self.frozen:
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.frozen = []

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()

    def end(self):
        self.stop()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Program:
    """A `muster` program that runs until it is stopped. It keeps the lines of stdout and stderr with their times."""

    def __init__(self, muster, arguments, environment, folder, before=None):
        self.lines = []
        self.process = subprocess.Popen(
            [muster, *arguments], env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, preexec_fn=before)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.monotonic(), line.decode(errors="replace").rstrip()))

    @property
    def pid(self):
        return self.process.pid

    @property
    def is_running(self):
        return self.process.poll() is None

    def cpu_seconds(self):
        return cpu_seconds(self.pid)

    def output(self):
        return "\n".join(line for _, line in self.lines)

    def wait(self, seconds):
        """Returns its exit code, or None if it still runs."""
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self.reader.join(5)
        return code

    def kill(self):
        self.process.kill()
        self.wait(5)

    def end(self):
        if self.is_running:
            self.process.terminate()
            if self.wait(15) is None:
                self.kill()
