"""The tools of a case: its own database, services and workers on it, users, and a receiver of webhooks."""
import base64
import collections
import contextlib
import http.client
import http.server
import json
import os
import re
import socket
import subprocess
import threading
import time

from .machine import SERVICE_ROLE, Program, Psql, wait_until

Outcome = collections.namedtuple("Outcome", "measured limit ok")
Response = collections.namedtuple("Response", "status body headers seconds")
User = collections.namedtuple("User", "id name token refresh")

REFRESH_KEY = bytes(range(64, 96))
PASSWORD = "correct horse battery"


def free_port(address="127.0.0.1"):
    with socket.socket() as free:
        free.bind((address, 0))
        return free.getsockname()[1]


def at_once(*functions):
    """Calls all functions at once, each on its own thread. Returns their results."""
    results = [None] * len(functions)

    def call(place):
        results[place] = functions[place]()

    threads = [threading.Thread(target=call, args=(place,), daemon=True) for place in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


class Client:
    """Keeps one connection to a service."""

    def __init__(self, service, source="127.0.0.1", timeout=30):
        self.connection = http.client.HTTPConnection(
            "127.0.0.1", service.port, timeout=timeout, source_address=(source, 0))

    def call(self, method, path, body=None, token=None, headers=None):
        """Returns status 0 if there is no response."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        if token:
            headers["Authorization"] = f"Bearer {token}"
        start = time.monotonic()
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            return Response(0, None, {}, time.monotonic() - start)
        isJSON = "json" in (response.getheader("Content-Type") or "")
        return Response(
            response.status, json.loads(data) if isJSON and data else None, response.headers, time.monotonic() - start)

    def close(self):
        self.connection.close()


class Service(Program):
    """`muster serve`."""

    def __init__(self, lab, before=None, **environment):
        self.lab = lab
        self.port, self.metrics_port = free_port(), free_port()
        environment.setdefault("MUSTER_METRICS_LISTEN", f"127.0.0.1:{self.metrics_port}")
        super().__init__(
            lab.muster, ["serve", "--port", str(self.port)], lab.environment(**environment), lab.folder, before)

    def wait_until_ready(self, seconds):
        def is_ready():
            if not self.is_running:
                raise RuntimeError(f"muster serve ended: {self.output()[-300:]}")
            return self.call("GET", "/health/ready", timeout=2).status == 200

        if not wait_until(is_ready, seconds, 0.05):
            raise RuntimeError(f"muster serve is not ready after {seconds} s")

    def call(self, method, path, body=None, token=None, headers=None, timeout=30, source="127.0.0.1"):
        """Uses a new connection. A path that does not begin with a slash is relative to the API."""
        client = Client(self, source, timeout)
        try:
            return client.call(method, path if path[0] == "/" else f"/api/v1/{path}", body, token, headers)
        finally:
            client.close()

    def ask(self, user, method, path, body=None, expecting=(200, 201, 204)):
        """Returns the body of a response that must have one of these statuses."""
        response = self.call(method, path, body, user and user.token)
        if response.status not in expecting:
            raise RuntimeError(f"{method} {path}: {response.status} {response.body}")
        return response.body

    def register(self, name, verified=True, source="127.0.0.1"):
        """Registers a user, who by default has followed the link in the mail."""
        account = {"username": name, "email": f"{name}@example.com", "password": PASSWORD}
        response = self.call("POST", "auth/register", account, source=source)
        if response.status != 201:
            raise RuntimeError(f"register: {response.status} {response.body}")
        user = response.body["user"]["id"]
        if verified:
            psql = Psql(self.lab.url)
            psql.run(f"UPDATE users SET email_verified_at = now() WHERE id = '{user}'")
            psql.end()
        return User(user, name, response.body["accessToken"], response.body["refreshToken"])

    def validate(self, user):
        return self.call("POST", f"cache/validate/{user.id}", {}, user.token, timeout=5)

    def befriend(self, one, other):
        # Two crossing requests make friends immediately.
        self.ask(one, "POST", "friend-requests", {"receiverId": other.id})
        self.ask(other, "POST", "friend-requests", {"receiverId": one.id})

    def add_webhook(self, user, url):
        return self.ask(user, "PUT", "devices", {"platform": "webhook", "token": url})["id"]

    def metric(self, name):
        """The sum over all labels."""
        connection = http.client.HTTPConnection("127.0.0.1", self.metrics_port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))


class Receiver:
    """Receives webhooks and records their times. A request to a path that begins with /tarpit gets no response."""

    def __init__(self, address="127.0.0.1"):
        receiver = self
        self.received = []
        self.trapped = []
        self.stopping = threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path.startswith("/tarpit"):
                    receiver.trapped.append((time.monotonic(), self.path))
                    receiver.stopping.wait(60)
                    self.close_connection = True
                    return
                receiver.received.append((time.monotonic(), self.path, json.loads(body)))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://{address}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait_for(self, path, seconds, count=1):
        """Returns when the request number `count` to this path came, or None if it did not."""
        def times():
            return [when for when, at, _ in self.received if at == path][count - 1:count]

        found = wait_until(times, seconds, 0.005)
        return found[0] if found else None

    def end(self):
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()


class Lab:
    """A case's own database, and everything that the case starts. All of it stops with the case."""

    def __init__(self, cluster, muster, database):
        self.cluster, self.muster, self.folder = cluster, muster, cluster.folder
        # As the owner of the tables.
        self.url = cluster.url(database)
        self.database = database
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.stack.close()

    def environment(self, **variables):
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("MUSTER_", "DATABASE_URL", "PG"))
        }
        key = base64.b64encode(bytes(range(32))).decode()
        own = {
            "DATABASE_URL": self.cluster.url(self.database, SERVICE_ROLE),
            "MUSTER_ACCESS_TOKEN_KEYS": f"abuse:{key}",
            "MUSTER_REFRESH_TOKEN_KEYS": f"abuse:{base64.b64encode(REFRESH_KEY).decode()}",
            "MUSTER_ADDRESS_KEYS": f"abuse:{base64.b64encode(bytes(range(128, 160))).decode()}",
            "MUSTER_PUBLIC_URL": "http://127.0.0.1",
            "MUSTER_SCRYPT": "ln=4,r=8,p=1",
            # Only some cases measure the limits; those turn them on.
            "MUSTER_RATE_LIMITS": "off", "MUSTER_THROTTLING": "off",
            "MUSTER_WEBHOOK_ALLOW_PRIVATE": "on",
            "MUSTER_METRICS_LISTEN": "off",
            "SWIFT_BACKTRACE": "enable=no",
        }
        return inherited | own | {name: value for name, value in variables.items()}

    def environment_of(self, arguments):
        """Only migrations, and seeds that drop indexes, need the owner of the tables."""
        if arguments[0] != "migrate" and arguments[:2] != ("seed", "load"):
            return self.environment()
        return self.environment(DATABASE_URL=self.url, MUSTER_DATABASE_ROLE=SERVICE_ROLE)

    def keep(self, thing):
        self.stack.callback(thing.end)
        return thing

    def service(self, before=None, ready_within=30, **environment):
        service = self.keep(Service(self, before, **environment))
        service.wait_until_ready(ready_within)
        return service

    def worker(self, **environment):
        return self.keep(Program(self.muster, ["worker"], self.environment(**environment), self.folder))

    def run(self, *arguments, timeout=60):
        """Runs a `muster` command that ends by itself. Returns its exit code and output."""
        done = subprocess.run(
            [self.muster, *arguments], env=self.environment_of(arguments), cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
        return done.returncode, done.stdout.decode(errors="replace")

    def seed(self, users, **environment):
        """Migrates, and adds synthetic users. Returns the path of a file with the tokens of some of them."""
        tokens = f"{self.folder}/tokens-{self.database}"
        for command in (("migrate",), ("seed", "load", "--users", str(users), "--tokens", tokens)):
            subprocess.run(
                [self.muster, *command], env=self.environment_of(command) | environment, cwd=self.folder, check=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        subprocess.run(["psql", self.url, "-Xqc", "VACUUM ANALYZE"], check=True)
        return tokens

    def start(self, *arguments):
        return self.keep(Program(self.muster, arguments, self.environment_of(arguments), self.folder))

    def psql(self):
        return self.keep(Psql(self.url))

    def receiver(self, address="127.0.0.1"):
        return self.keep(Receiver(address))
