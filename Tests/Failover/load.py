"""Clients: writers that count acknowledged writes, and readers with open streams."""
import bisect
import collections
import http.client
import http.server
import json
import os
import ssl
import threading
import time
import uuid

WRITERS = 4
READERS = 3
STREAMS_PER_READER = 2
# Between two writes of a writer, and before it repeats a failed one. Clients of a real app wait for `Retry-After`.
PAUSE = 0.15
REPEAT_PAUSE = 0.2
WRITE_TIMEOUT = 8
# A stream has a heartbeat every 15 seconds.
STREAM_TIMEOUT = 35
# As the libraries of Standard Webhooks, and docs/notifications.md.
WEBHOOK_TOLERANCE = 300


def new_id():
    """A UUID of version 7."""
    value = int(time.time() * 1000) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 7 << 76
    return str(uuid.UUID(int=value & ~(3 << 62) | 2 << 62))


class Service:
    """The API behind a balancer."""

    def __init__(self, address, certificate=None, port=443):
        self.address, self.port = address, port
        self.context = certificate and ssl.create_default_context(cafile=certificate)

    def connect(self, timeout):
        if self.context:
            return http.client.HTTPSConnection(self.address, self.port, timeout=timeout, context=self.context)
        return http.client.HTTPConnection(self.address, self.port, timeout=timeout)

    def send(self, method, path, token=None, body=None, connection=None, timeout=WRITE_TIMEOUT, **headers):
        """Returns the status, the headers and the body. Raises OSError or HTTPException."""
        own = connection is None
        connection = connection or self.connect(timeout)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = body
        if isinstance(body, (dict, list)):
            data = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            if own:
                connection.close()

    def call(self, method, path, token=None, body=None):
        status, _, data = self.send(method, path, token, body, timeout=30)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {data.decode()}")
        return json.loads(data) if data else None


def flaw(status, headers, data):
    """What is wrong with an error response; None if clients know what to do with it."""
    kind = headers.get("Content-Type", "")
    if not kind.startswith("application/problem+json"):
        return f"{status} with {kind or 'no type'}"
    try:
        problem = json.loads(data)
    except ValueError:
        return f"{status} with bad JSON"
    if not {"type", "title", "status", "detail", "requestId"} <= problem.keys() or problem["status"] != status:
        return f"{status} without the members of a problem"
    if status == 503 and not headers.get("Retry-After"):
        return "503 without Retry-After"
    if status not in (503,):
        return f"{status} {problem['type']}"
    return None


class Load:
    def __init__(self, cluster, service):
        self.cluster, self.service = cluster, service
        self.begin = time.monotonic()
        self.lock = threading.Lock()
        # When each write was acknowledged, and its event.
        self.times, self.events = [], []
        self.failures = collections.Counter()
        self.flaws = collections.Counter()
        self.is_ending = False
        self.streams = []
        self.webhook = Webhook(cluster.network.prefix + "1")

    def start(self):
        suffix = new_id()[-8:]
        people = [self._sign_up(f"w{number}-{suffix}") for number in range(WRITERS)]
        readers = [self._sign_up(f"r{number}-{suffix}") for number in range(READERS)]
        # As if all had followed the links in their mails.
        self.cluster.sql("UPDATE users SET email_verified_at = now()")
        for writer in people:
            for reader in readers:
                request = self.service.call("POST", "/api/v1/friend-requests", writer[1], {"receiverId": reader[0]})
                self.service.call("POST", f"/api/v1/friend-requests/{request['id']}/accept", reader[1])
        self.invitees = [reader[0] for reader in readers]
        self.service.call("PUT", "/api/v1/devices", readers[0][1], {"platform": "webhook", "token": self.webhook.url})
        for reader in readers:
            for _ in range(STREAMS_PER_READER):
                stream = Stream(self, reader[1])
                self.streams.append(stream)
                threading.Thread(target=stream.run, daemon=True).start()
        for writer in people:
            threading.Thread(target=self._write, args=(writer[1],), daemon=True).start()

    def _sign_up(self, name):
        body = {"username": name, "email": f"{name}@example.com", "password": f"the-password-of-{name}"}
        answer = self.service.call("POST", "/api/v1/auth/register", None, body)
        return answer["user"]["id"], answer["accessToken"]

    def draft(self, event):
        return {"id": event, "title": "Swim", "startTime": "2031-06-01T18:00:00Z", "timeZone": "Europe/Berlin",
                "inviteeIds": self.invitees}

    def _write(self, token):
        connection = None
        while not self.is_ending:
            event = new_id()
            # The same id until there is a response: it creates one event, however often it is sent.
            while not self.is_ending:
                try:
                    connection = connection or self.service.connect(WRITE_TIMEOUT)
                    status, headers, data = self.service.send(
                        "POST", "/api/v1/events", token, self.draft(event), connection, Idempotency_Key=event)
                except (OSError, http.client.HTTPException) as error:
                    self._failed(type(error).__name__)
                    if connection:
                        connection.close()
                    connection = None
                    time.sleep(REPEAT_PAUSE)
                    continue
                if status in (200, 201):
                    with self.lock:
                        self.times.append(time.monotonic())
                        self.events.append(event)
                    break
                self._failed(self._name(status, data), flaw(status, headers, data))
                time.sleep(REPEAT_PAUSE)
            time.sleep(PAUSE)

    @staticmethod
    def _name(status, data):
        try:
            return f"{status} {json.loads(data)['type']}"
        except (ValueError, KeyError, TypeError):
            return str(status)

    def _failed(self, name, wrong=None):
        with self.lock:
            self.failures[name] += 1
            if wrong:
                self.flaws[wrong] += 1

    def window(self, begin, end):
        """The acknowledged writes between two times, and the longest time without any."""
        with self.lock:
            # Writers append concurrently, each in its own order, so neighbors may be swapped.
            pairs = sorted(zip(self.times, self.events))
        times = [pair[0] for pair in pairs]
        first, last = bisect.bisect_left(times, begin), bisect.bisect_right(times, end)
        inside = [begin, *times[first:last], end]
        gap = max(later - earlier for earlier, later in zip(inside, inside[1:]))
        return [pair[1] for pair in pairs[first:last]], gap

    def lost(self, events):
        """The acknowledged writes that the primary does not have."""
        lost = []
        for first in range(0, len(events), 1000):
            ids = ",".join(events[first:first + 1000])
            lost += self.cluster.sql(
                f"SELECT a.id FROM unnest('{{{ids}}}'::uuid[]) AS a (id) "
                "WHERE NOT EXISTS (SELECT FROM events e WHERE e.id = a.id);").split()
        return lost

    @property
    def _ends(self):
        return [*self.streams, self.webhook]

    def expected(self, events):
        """How many notifications all events make."""
        return len(events) * len(self._ends)

    def undelivered(self, events):
        return sum(event not in end.arrived for end in self._ends for event in events)

    def latest(self, events):
        """The longest time from a write's acknowledgment to the arrival of one of its notifications: of all, and of
        those that no webhook has refused."""
        with self.lock:
            times = dict(zip(self.events, self.times))
        delays = [(end.arrived[event] - times[event], event) for end in self._ends for event in events
                  if event in end.arrived]
        return (max((delay for delay, _ in delays), default=0),
                max((delay for delay, event in delays if event not in self.webhook.refused), default=0))


class Stream:
    """A reader's phone: it reconnects with the id of the last notification that it has seen."""

    def __init__(self, load, token):
        self.load, self.token = load, token
        # When each event's notification arrived first.
        self.arrived = {}
        self.repeated = 0
        self.last = None
        # When the stream broke.
        self.breaks = []

    def run(self):
        while not self.load.is_ending:
            try:
                self._read()
            except (OSError, http.client.HTTPException, ValueError):
                pass
            self.breaks.append(time.monotonic())
            time.sleep(0.5)

    def _read(self):
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "text/event-stream"}
        if self.last:
            headers["Last-Event-ID"] = self.last
        connection = self.load.service.connect(STREAM_TIMEOUT)
        try:
            connection.request("GET", "/api/v1/notifications/stream", None, headers)
            response = connection.getresponse()
            if response.status != 200:
                response.read()
                return
            number = None
            while line := response.readline():
                name, _, value = line.decode().rstrip("\r\n").partition(":")
                value = value.strip()
                if name == "id":
                    number = value
                elif name == "data" and number:
                    event = json.loads(value).get("eventId")
                    if event:
                        self.repeated += event in self.arrived
                        self.arrived.setdefault(event, time.monotonic())
                    self.last, number = number, None
        finally:
            connection.close()


class Webhook:
    """A reader's webhook, which accepts what a standard library accepts."""

    def __init__(self, address):
        self.arrived = {}
        # Whether it refuses all, and the events that it has refused at least once.
        self.is_refusing = False
        self.refused = set()
        # How far the sender's clock is ahead.
        self.lead = 0
        webhook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["data"].get("eventId")
                webhook.lead = int(self.headers["webhook-timestamp"]) - time.time()
                is_welcome = abs(webhook.lead) <= WEBHOOK_TOLERANCE and not webhook.is_refusing
                if event and is_welcome:
                    webhook.arrived.setdefault(event, time.monotonic())
                elif event:
                    webhook.refused.add(event)
                self.send_response(204 if is_welcome else 400)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer((address, 0), Handler)
        server.daemon_threads = True
        self.url = f"http://{address}:{server.server_port}/"
        threading.Thread(target=server.serve_forever, daemon=True).start()
