"""What the bytes of one request can cost or break."""
import base64
import hashlib
import hmac
import json
import random
import socket
import struct
import urllib.parse

from .lab import REFRESH_KEY, Outcome

LIMIT = 0.05  # seconds of processor time for a request of at most 64 KiB
BODY, HEADER = 64 << 10, 15 << 10  # bytes
ENOUGH = 15  # seconds of processor time, after which no more requests are sent
FUZZED = 150  # requests with random places and texts


def repeated(unit, size):
    return unit * (size // len(unit.encode()))


# Texts that are slow to normalize, compare, hash or search, of about `size` bytes.
TEXTS = {
    "one mark": lambda size: "a" + repeated("\u0301", size - 2),
    "marks out of order": lambda size: "a" + repeated("\u0315\u0316\u0321", size - 8),
    "decomposing": lambda size: repeated("\ufdfa", size),
    "jamo": lambda size: repeated("\u1100\u1161\u11a8", size),
    "joined": lambda size: repeated("\U0001f468\u200d", size),
    "flags": lambda size: repeated("\U0001f1e6", size),
    "white space": lambda size: " " * (size - 1) + "a",
    "digits": lambda size: "9" * size,
    "nulls": lambda size: "\0" * (size // 6),
}


def body(fields):
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def signed_in(user, method, path, fields):
    return method, path, body(fields), {"Authorization": f"Bearer {user.token}", "Content-Type": "application/json"}


def named(path, fields):
    return "POST", f"auth/{path}", body(fields), {"Content-Type": "application/json"}


# The places where a client can put a text. Each makes a request from a user and a text.
def places(ana):
    known = {"username": "cleo", "email": "cleo@example.com", "password": "correct horse battery"}
    return {
        "login": lambda text: named("login", {"login": text, "password": "x"}),
        "password": lambda text: named("login", {"login": "ana", "password": text}),
        "device": lambda text: named("login", {"login": "ana", "password": "x", "device": text}),
        "username": lambda text: named("register", known | {"username": text}),
        "e-mail": lambda text: named("register", known | {"email": text}),
        "new password": lambda text: named("register", known | {"password": text}),
        "display name": lambda text: named("register", known | {"displayName": text}),
        "refresh token": lambda text: named("refresh", {"refreshToken": text}),
        "reset": lambda text: named("password-reset", {"email": text}),
        "code": lambda text: named("code/confirm", {"email": "cleo@example.com", "code": text}),
        "code request": lambda text: named("code", {"email": text}),
        "key": lambda text: named("login", {text: 1} | {f"k{number}": number for number in range(900)}),
        "keys": lambda text: named("login", {f"{number}{text[:60]}": number for number in range(len(text) // 80)}),
        "bio": lambda text: signed_in(ana, "PATCH", "users/me", {"bio": text}),
        "title": lambda text: signed_in(ana, "POST", "events", {"title": text, "startTime": text, "timeZone": text}),
        "stamp": lambda text: signed_in(ana, "POST", f"cache/validate/{ana.id}", {"friends": text}),
        "collection": lambda text: signed_in(ana, "POST", f"cache/validate/{ana.id}", {text: None}),
        "device token": lambda text: signed_in(ana, "PUT", "devices", {"platform": "webhook", "token": text}),
        "receiver": lambda text: signed_in(ana, "POST", "friend-requests", {"receiverId": text}),
        "ids": lambda text: signed_in(ana, "POST", "notifications/read", {"ids": [text[:9]] * (len(text) // 40)}),
    }


HEADERS = {
    "Authorization": lambda ana, text: ("GET", "friends", None, {"Authorization": b"Bearer " + text}),
    "search": lambda ana, text: (
        "GET", "users?query=" + urllib.parse.quote(text)[:HEADER], None, {"Authorization": f"Bearer {ana.token}"}),
    "cursor": lambda ana, text: (
        "GET", "friends?cursor=" + urllib.parse.quote(text)[:HEADER], None, {"Authorization": f"Bearer {ana.token}"}),
    "If-None-Match": lambda ana, text: (
        "GET", "friends", None, {"Authorization": f"Bearer {ana.token}", "If-None-Match": text}),
    "Idempotency-Key": lambda ana, text: (
        "POST", "friend-requests", b"{}",
        {"Authorization": f"Bearer {ana.token}", "Content-Type": "application/json", "Idempotency-Key": text}),
    "X-Request-Id": lambda ana, text: ("GET", "friends", None, {"X-Request-Id": text}),
}


def requests(ana):
    for place, make in places(ana).items():
        for name, text in TEXTS.items():
            content = text(BODY - 9_000 if place == "key" else BODY - 1000)
            # Some texts become longer in JSON.
            while len((made := make(content))[2]) > BODY:
                content = content[:len(content) * 9 // 10]
            yield f"{name} as {place}", made
    for place, make in HEADERS.items():
        for name, text in TEXTS.items():
            if name != "nulls":
                yield f"{name} as {place}", make(ana, text(HEADER).encode())


def random_body(chance):
    """JSON of at most 64 KiB, made from fragments of the texts."""
    left = 0.9 * BODY
    names = ["login", "password", "username", "email", "displayName", "refreshToken", "title", "friends"]

    def text():
        nonlocal left
        made = chance.choice(list(TEXTS.values()))(int(min(2 ** chance.uniform(4, 16), max(left, 10))))
        left -= len(json.dumps(made, ensure_ascii=False).encode()) + 4
        return made

    def value(depth):
        kind = chance.random()
        parts = range(chance.randrange(40)) if depth < 30 and left > 0 else []
        if kind < 0.2:
            return {text(): value(depth + 1) for _ in parts if left > 0}
        if kind < 0.4:
            return [value(depth + 1) for _ in parts if left > 0]
        return text() if kind < 0.9 else chance.choice([0, None, True, 10 ** 300, -1.5e-300])

    fields = {chance.choice([*names, text()]): value(0) for _ in range(chance.randrange(1, 40)) if left > 0}
    while len(body(fields)) > BODY:
        fields.popitem()
    return fields


def hostile_text(lab):
    """The processor time of the service for requests whose text is slow to process."""
    service = lab.service(MUSTER_CONNECTIONS_PER_ADDRESS="0")
    ana = service.register("ana")
    chance = random.Random(1)
    made = list(requests(ana))
    targets = ["auth/login", "auth/register", "auth/refresh", "events", f"cache/validate/{ana.id}"]
    for number in range(FUZZED):
        made.append((f"random {number}", signed_in(ana, "POST", chance.choice(targets), random_body(chance))))

    def cost(request):
        method, path, content, headers = request
        start = service.cpu_seconds()
        response = service.call(method, path, content, headers=headers, timeout=30)
        return service.cpu_seconds() - start, response.status

    costs, odd = {}, []
    for name, request in made:
        seconds, status = cost(request)
        # A tick of the clock is 10 ms, and other work of the process may fall into it, so take the mean of several.
        if 0.02 < seconds < 0.5:
            seconds = sum(cost(request)[0] for _ in range(5)) / 5
        costs[name] = seconds
        if status == 500 or not service.is_running:
            odd.append(f"{name}: {status}")
        if not service.is_running or sum(costs.values()) > ENOUGH:
            break
    worst = sorted(costs, key=costs.get, reverse=True)[:3]
    return Outcome(
        f"{len(costs)} of {len(made)} requests, the most expensive "
        + ", ".join(f"{costs[name] * 1000:.0f} ms ({name})" for name in worst)
        + (f"; responses 500: {len(odd)} ({odd[0]})" if odd else ""), f"{LIMIT * 1000:.0f} ms each, no 500",
        max(costs.values()) <= LIMIT and not odd and len(costs) == len(made))


def host(lab):
    """A missing or repeated `Host` is refused."""
    service = lab.service()

    def status(*hosts):
        with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
            lines = ["GET /health/live HTTP/1.1", *(f"Host: {host}" for host in hosts), "Connection: close", "", ""]
            connection.sendall("\r\n".join(lines).encode())
            try:
                return connection.recv(12).decode().partition(" ")[2] or "closed"
            except TimeoutError:
                return "no response"

    found = [status("abuse"), status(), status("abuse", "other"), status("abuse", "abuse")]
    return Outcome(
        f"one Host {found[0]}, none {found[1]}, two {found[2]}, the same twice {found[3]}; process"
        f" {'runs' if service.is_running else 'ended'}", "200, 400, 400, 400; runs",
        found == ["200", "400", "400", "400"] and service.is_running)


def refresh_counter(lab):
    """A genuine refresh token with an extreme counter is refused, and the process survives."""
    service = lab.service()
    ana = service.register("ana")
    label, kid, content, _ = ana.refresh.split(".")
    known = base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))
    statuses = []
    for counter, branch in ((2 ** 63 - 1, 0), (2 ** 63 - 1, 2 ** 31 - 1), (0, 2 ** 31 - 1), (-2 ** 63, -2 ** 31)):
        forged = encoded(known[:16] + struct.pack(">qi", counter, branch))
        mac = hmac.digest(REFRESH_KEY, f"{label}.{kid}.{forged}".encode(), hashlib.sha256)
        token = f"{label}.{kid}.{forged}.{encoded(mac)}"
        statuses.append(service.call("POST", "auth/refresh", {"refreshToken": token}).status)
        if not service.is_running:
            break
    return Outcome(
        f"{', '.join(map(str, statuses))}; process {'runs' if service.is_running else 'ended'}", "all 401; runs",
        statuses == [401] * 4 and service.is_running)


def encoded(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


CASES = [hostile_text, host, refresh_counter]
