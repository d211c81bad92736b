"""What clients and logs get from each balancer."""
import glob
import http.client
import json
import os
import secrets
import signal
import threading
import time

from cluster import wait
from load import Service, flaw, new_id

# As in Tests/AppTests/HTTP/LogMaskTests.swift, which finds them in the table of routes.
SECRET_PATHS = ["/e/{}", "//e//{}", "/g/{}", "/g/{}/unsubscribe", "/m/{}", "/verify/{}", "/undo/{}",
                "/calendars/{}.ics", "/pictures/{}", "/api/v1/links/{}/join", "/e/{}?from=mail"]
PICTURE_BYTES = 1_500_000
STREAM_SECONDS = 3


class Balancers:
    def __init__(self, cluster, say):
        self.cluster, self.say = cluster, say
        self.problems = []
        tls = cluster.certificate["crt"]
        machines = cluster.balancers
        self.services = {"haproxy": Service(machines["haproxy"].address, tls),
                         "nginx": Service(machines["nginx"].address, tls),
                         "caddy": Service(machines["caddy"].address, port=80)}

    def expect(self, holds, what):
        if not holds:
            self.problems.append(what)

    def check(self):
        wait(self._all_ready, 60, "a ready service behind each balancer")
        token = secrets.token_hex(12)
        user = self._sign_up()
        for name, service in self.services.items():
            self._check_address(name, service)
            self._check_stream(name, service, user)
            status, headers, data = service.send("PUT", "/api/v1/users/me/picture", user, os.urandom(PICTURE_BYTES),
                                                 timeout=30, Content_Type="image/jpeg")
            self.expect(status == 415 and not self._is_foreign(headers),
                        f"{name}: a large body got {status} {data[:80]}")
            self._get_all(service, token)
        self._check_loss(token)
        self._check_absence(token)
        self._check_logs(token)
        self.say(f"Balancers: {len(self.problems)} problems")
        return self.problems

    def _all_ready(self):
        try:
            return all(service.send("GET", "/health/ready")[0] == 200 for service in self.services.values()) and all(
                Service(app.address, port=8080).send("GET", "/health/ready")[0] == 200 for app in self.cluster.apps)
        except (OSError, http.client.HTTPException):
            return False

    def _sign_up(self):
        name = f"b{new_id()[-10:]}"
        return self.services["haproxy"].call("POST", "/api/v1/auth/register", None, {
            "username": name, "email": f"{name}@example.com", "password": f"the-password-of-{name}"})["accessToken"]

    @staticmethod
    def _is_foreign(headers):
        return not headers.get("Content-Type", "").startswith("application/problem+json")

    def _get_all(self, service, token):
        """Opens each secret path. Returns the responses."""
        answers = []
        for path in SECRET_PATHS:
            try:
                answers.append(service.send("GET", path.format(token), Referer=f"https://api.example.com/g/{token}"))
            except (OSError, http.client.HTTPException) as error:
                self.problems.append(f"{service.address}: {path}: {error!r}")
        return answers

    def _check_address(self, name, service):
        """A client cannot choose the address that the service sees."""
        if not self.cluster.network.has_namespaces:
            return
        request = f"address-{name}-{new_id()}"
        service.send("GET", "/api/v1/users/me", X_Forwarded_For="192.0.2.7", X_Request_Id=request)
        lines = []
        for app in self.cluster.apps:
            with open(app.programs["serve"].log, encoding="utf-8") as file:
                lines += [line for line in file if request in line]
        self.expect(lines and all('"10.0.0.1"' in line and "192.0.2.7" not in line for line in lines),
                    f"{name}: the service saw another address than the client's: {lines}")

    def _check_stream(self, name, service, token):
        """A stream's first bytes come immediately, and later ones while it is open."""
        connection = service.connect(STREAM_SECONDS)
        try:
            connection.request("GET", "/api/v1/notifications/stream", None, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            line = response.readline()
            self.expect(response.status == 200 and line, f"{name}: a stream got {response.status} {line}")
            threading.Timer(0.3, service.send, ("PATCH", "/api/v1/users/me", token, {"bio": new_id()})).start()
            begin = time.monotonic()
            while b"changed" not in (line := response.readline()):
                self.expect(line, f"{name}: a stream ended")
                if not line:
                    break
            self.expect(time.monotonic() - begin < STREAM_SECONDS, f"{name}: a stream was late")
        except OSError as error:
            self.problems.append(f"{name}: a stream is buffered: {error!r}")
        finally:
            connection.close()

    def _check_loss(self, token):
        """Both processes die while they hold requests."""
        programs = [app.programs["serve"] for app in self.cluster.apps]
        answers = []

        def get(name, path):
            try:
                answers.append((name, self.services[name].send("GET", path, timeout=20)))
            except (OSError, http.client.HTTPException) as error:
                self.problems.append(f"{name}: {error!r}")
        wait(self._all_ready, 60, "ready services")
        for program in programs:
            program.send(signal.SIGSTOP)
        threads = [threading.Thread(target=get, args=(name, path)) for name in self.services
                   for path in (f"/g/{token}", f"/e/{token}", "/api/v1/users/me")]
        for thread in threads:
            thread.start()
        time.sleep(0.7)
        for program in programs:
            program.send(signal.SIGKILL)
        for thread in threads:
            thread.join(30)
        for name, (status, headers, data) in answers:
            # A balancer may repeat a GET, and a process that is back responds.
            if status in (401, 404):
                continue
            wrong = flaw(status, headers, data)
            self.expect(not wrong and json.loads(data)["type"] in ("unknown-outcome", "database-unavailable"),
                        f"{name}: a lost request got {wrong} {data[:80]}")
        lost = {name: sum(b"unknown-outcome" in data for other, (_, _, data) in answers if other == name)
                for name in self.services}
        # Whatever had reached a process may have had its effect.
        self.expect(all(lost.values()), f"lost requests with unknown-outcome: {lost}")
        wait(self._all_ready, 60, "ready services after kill -9")

    def _check_absence(self, token):
        """No process is left."""
        for app in self.cluster.apps:
            app.programs["serve"].stop(signal.SIGKILL)
        time.sleep(4)
        for name, service in self.services.items():
            answers = self._get_all(service, token) + [service.send("GET", "/api/v1/users/me", X_Request_Id="mine-1")]
            for status, headers, data in answers:
                wrong = flaw(status, headers, data)
                self.expect(status == 503 and not wrong, f"{name}, no process: {wrong} {data[:80]}")
                self.expect(b"database-unavailable" in data, f"{name}, no process: {data[:80]}")
        for index in range(2):
            self.cluster.start_serve(index)
        wait(self._all_ready, 60, "ready services after their absence")

    def _check_logs(self, token):
        for name, machine in self.cluster.balancers.items():
            text = ""
            for path in glob.glob(machine.path("*.log")):
                with open(path, encoding="utf-8", errors="replace") as file:
                    text += file.read()
            self.expect(token not in text, f"{name}: a secret is in the log: "
                        f"{next((line for line in text.splitlines() if token in line), '')[:300]}")
            self.expect("/g/***" in text and "/api/v1/links/***" in text.replace("\\/", "/"),
                        f"{name}: the log has no masked path")
        # So that the search above can fail: paths without a secret are in the error log.
        with open(self.cluster.balancers["nginx"].path("error.log"), encoding="utf-8") as file:
            self.expect("GET /api/v1/users/me" in file.read(), "nginx: the error log has no failed request")
