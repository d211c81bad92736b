"""A phone with copies of all collections, and the ways to update them at launch. It counts every byte that it sends
and receives, headers included."""
import collections
import gzip
import json
import socket
import time

LISTS = {
    "profile": "users/me",
    "friends": "friends?limit=100",
    "friendRequests": "friend-requests?direction=incoming&limit=100",
    "sentFriendRequests": "friend-requests?direction=sent&limit=100",
    "events": "events?limit=100",
    "invitations": "invitations?limit=100",
    "blocks": "blocks?limit=100",
    "notifications": "notifications?limit=100",
    "notificationPreferences": "notification-preferences",
}
KEYS = {
    "friends": lambda item: item["user"]["id"],
    "blocks": lambda item: item["user"]["id"],
    "invitations": lambda item: item["event"]["id"],
    "profile": lambda item: "me",
    "notificationPreferences": lambda item: "me",
}

# The items of a claim.
MAXIMUM = 2000
# The past events that the phone keeps.
PAST = 100

Launch = collections.namedtuple("Launch", "requests sent received seconds")


class Copy:
    """The items of one collection in order, as pairs of key and item, with their stamp and digests."""

    def __init__(self, stamp=None, items=(), digests=None):
        self.stamp, self.items, self.digests = stamp, list(items), digests or {}


class Phone:
    """One open connection of one user. `way` is the end of the name of one of the functions `launch_by_`. The ways of
    screens also bring up to date what the store keeps besides the collections: the past events, and `opened`, an event
    with the first page of its guests."""

    def __init__(self, port, user, way, compressed, opened=None):
        self.port, self.user, self.way, self.compressed, self.opened = port, user, way, compressed, opened
        self.forget_screens()
        self.copies = {name: Copy() for name in LISTS}
        self.left = b""
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def launch(self):
        self.requests = self.sent = self.received = 0
        start = time.perf_counter()
        getattr(self, f"launch_by_{self.way}")()
        return Launch(self.requests, self.sent, self.received, time.perf_counter() - start)

    def launch_by_lists(self):
        for name in LISTS:
            self.fetch(name)

    def launch_by_items(self):
        claims = {name: copy.stamp for name, copy in self.copies.items()}
        for name, verdict in self.validate("items", claims).items():
            if not verdict["invalidate"]:
                continue
            if "updatedItems" in verdict:
                self.copies[name] = Copy(verdict["timestamp"], with_keys(name, verdict["updatedItems"]))
            else:
                self.fetch(name)

    def launch_by_changes(self):
        self.update_by_changes(self.copies)

    def launch_by_stamps_and_changes(self):
        stamps = {name: copy.stamp for name, copy in self.copies.items()}
        verdicts = self.ask("POST", f"cache/validate/{self.user.id}", stamps)
        self.update_by_changes([name for name, verdict in verdicts.items() if verdict["invalidate"]])

    def launch_by_lists_and_screens(self):
        self.launch_by_lists()
        self.past = Copy(None, with_keys("events", self.ask("GET", "events?when=past&limit=100")["items"]))
        self.event = self.ask("GET", f"events/{self.opened}?include=guests")

    def launch_by_changes_and_screens(self):
        """The past events are in the same request as the collections."""
        self.update_by_changes(self.copies, with_past=True)
        event = self.ask("GET", f"events/{self.opened}?include=guests", tag=self.tag)
        self.event = event or self.event

    def forget_screens(self):
        self.past, self.event, self.tag = Copy(), None, None

    def take_past(self, verdict):
        """Returns whether all of them were compared. If not, there was no room for all new ones."""
        copy = Copy()
        for part in verdict["parts"]:
            if "item" in part:
                (pair,) = with_keys("events", [part["item"]])
                copy.items.append(pair)
                copy.digests[pair[0]] = part["digest"]
                continue
            for pair in self.past.items[part["first"]:part["first"] + part["count"]]:
                copy.items.append(pair)
                copy.digests[pair[0]] = self.past.digests[pair[0]]
        self.past = copy
        return not verdict["nextCursor"] or len(copy.items) == PAST

    def update_by_changes(self, names, with_past=False):
        """Asks for parts, until there are no more of any list."""
        claims = {name: claim(self.copies[name].stamp, self.copies[name]) for name in names}
        if with_past:
            claims["pastEvents"] = self.claim_past()
        held, new = {name: self.copies[name] for name in names}, {name: Copy() for name in names}
        while claims:
            rest = {}
            for name, verdict in self.validate("changes", claims).items():
                if not verdict["invalidate"]:
                    continue
                if name == "pastEvents":
                    with_past = not self.take_past(verdict)
                    continue
                old, copy, used, last = held[name], new[name], set(), 0
                before = len(copy.items)
                if verdict["timestamp"] is None or copy.items and copy.stamp != verdict["timestamp"]:
                    raise RuntimeError(f"{name} has changed meanwhile")
                copy.stamp = verdict["timestamp"]
                for part in verdict["parts"]:
                    if "item" in part:
                        (pair,) = with_keys(name, [part["item"]])
                        copy.items.append(pair)
                        copy.digests[pair[0]] = part["digest"]
                        continue
                    last = part["first"] + part["count"]
                    for place in range(part["first"], last):
                        used.add(place)
                        copy.items.append(old.items[place])
                        copy.digests[old.items[place][0]] = old.digests[old.items[place][0]]
                if verdict["nextCursor"]:
                    # What the list has passed over is mostly gone, and comes last.
                    places = [*range(last, len(old.items)), *range(last)]
                    items = [old.items[place] for place in places if place not in used]
                    held[name] = Copy(items=items, digests=old.digests)
                    # As many as this verdict had, and some more.
                    most = min(max(len(copy.items) - before + 100, 500), MAXIMUM)
                    rest[name] = {**claim(None, held[name], most), "cursor": verdict["nextCursor"]}
                else:
                    self.copies[name] = copy
            claims = rest
            if with_past and not rest:
                # Alone, so that no other list takes the room.
                claims = {"pastEvents": self.claim_past()}

    def claim_past(self):
        return {"held": "".join(self.past.digests[key] for key, _ in self.past.items), "limit": PAST}

    def fetch(self, name):
        """Reads all pages of a collection."""
        items, cursor = [], None
        while True:
            page = self.ask("GET", LISTS[name] + (f"&cursor={cursor}" if cursor else ""))
            items += page.get("items", [page])
            cursor = page.get("nextCursor")
            if not cursor:
                break
        self.copies[name] = Copy(page["timestamp"], with_keys(name, items))

    def validate(self, include, claims):
        return self.ask("POST", f"cache/validate/{self.user.id}?include={include}", claims)

    def ask(self, method, path, body=None, tag=None):
        """Sends a request and returns the body of its response, which must be 200. With `tag`, it may be 304: then
        there is none."""
        body = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        head = [
            f"{method} /api/v1/{path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", "Accept: application/json",
            f"Authorization: Bearer {self.user.token}",
        ]
        if self.compressed:
            head.append("Accept-Encoding: gzip")
        if tag:
            head.append(f"If-None-Match: {tag}")
        if body:
            head += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        request = "\r\n".join(head).encode() + b"\r\n\r\n" + body
        self.socket.sendall(request)
        self.requests += 1
        self.sent += len(request)
        headers, body = self.receive()
        if tag and " 304 " in headers.split("\r\n", 1)[0]:
            return None
        if " 200 " not in headers.split("\r\n", 1)[0]:
            raise RuntimeError(f"{method} {path}: {headers} {body[:300]}")
        if "content-encoding: gzip" in headers.lower():
            body = gzip.decompress(body)
        if path.endswith("?include=guests"):
            self.tag = next(line[6:] for line in headers.split("\r\n") if line.lower().startswith("etag: "))
        return json.loads(body)

    def receive(self):
        head = self.read_until(b"\r\n\r\n")
        headers = head.decode("latin-1")
        lines = dict(line.lower().split(": ", 1) for line in headers.split("\r\n")[1:] if line)
        if " 304 " in headers.split("\r\n", 1)[0]:
            return headers, b""
        if lines.get("transfer-encoding") != "chunked":
            return headers, self.read(int(lines["content-length"]))
        body = b""
        while size := int(self.read_until(b"\r\n"), 16):
            body += self.read(size)
            self.read(2)
        self.read(2)
        return headers, body

    def read_until(self, end):
        while (place := self.left.find(end)) < 0:
            self.fill()
        return self.read(place + len(end))

    def read(self, count):
        while len(self.left) < count:
            self.fill()
        data, self.left = self.left[:count], self.left[count:]
        return data

    def fill(self):
        data = self.socket.recv(262144)
        if not data:
            raise ConnectionError("the service closed the connection")
        self.received += len(data)
        self.left += data

    def check(self):
        """Compares the copies with what the service sends now."""
        other = Phone(self.port, self.user, "lists_and_screens" if self.opened else "lists", False, self.opened)
        other.launch()
        other.socket.close()
        if self.past.items != other.past.items or self.event != other.event:
            raise RuntimeError(f"by {self.way}, the past events or the opened event are not what the service sends")
        for name, copy in self.copies.items():
            current = other.copies[name]
            if copy.items != current.items or copy.stamp != current.stamp:
                raise RuntimeError(f"by {self.way}, the copy of {name} is not what the service sends")


def with_keys(name, items):
    key = KEYS.get(name, lambda item: item["id"])
    return [(key(item), item) for item in items]


def claim(stamp, copy, most=MAXIMUM):
    items = copy.items[:most]
    held = "".join(copy.digests[key] for key, _ in items)
    # Items that are held and not claimed would be sent. Up to 500 items count as one read.
    if len(copy.items) > most:
        limit = len(items)
    else:
        limit = 500 if len(items) <= 400 else len(items) + 500
    return {"timestamp": stamp, "held": held, "limit": min(MAXIMUM, limit)}
