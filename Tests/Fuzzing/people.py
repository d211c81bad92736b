"""The users of a run: they log in, and know the ids that their requests may name."""
import datetime
import json
import os
import re
import time

import requests

DEMO = ["ana", "ben", "cleo", "dev", "emre", "fatima", "goran", "hana", "ines", "jonas"]
DEMO_PASSWORD = "plans-with-friends"
# The share of valid requests that name what exists. The others name what the generator made up.
LIKELY = 0.95
# The seconds until a mail must be in the log. Mails are at the end of the log.
MAIL_SECONDS = 2
MAIL_BYTES = 65_536


def unique():
    return os.urandom(8).hex()


class Person:
    """A user with a session. Logs in again if the session ends, and registers again if the account is gone."""

    def __init__(self, people, email, password):
        self.people = people
        self.email = email
        self.password = password
        self.id = self.token = None

    def log_in(self):
        """Starts another session, and returns its tokens."""
        response = self.people.post("auth/login", {"login": self.email, "password": self.password})
        if response.status_code == 401:
            self.token = None
            response = self.register()
        response.raise_for_status()
        tokens = response.json()
        self.id = tokens["user"]["id"]
        self.people.holders[f"Bearer {tokens['accessToken']}"] = self
        return tokens

    def register(self):
        name = f"fuzz-{unique()}"
        self.email, self.password = f"{name}@fuzzing.example", DEMO_PASSWORD
        body = {"username": name, "email": self.email, "password": self.password}
        return self.people.post("auth/register", body)

    def authorization(self):
        """The header with an access token."""
        if not self.token:
            self.token = self.log_in()["accessToken"]
        return f"Bearer {self.token}"

    def send(self, method, path, body=None):
        response = self.people.send(method, path, body, self.authorization())
        if response.status_code == 401:
            self.token = None
            response = self.people.send(method, path, body, self.authorization())
        return response

    def items(self, path):
        return self.send("GET", path).json().get("items", [])

    # What a path or body may name. Each method returns an id, or None. If there is no such thing, the person first
    # makes one.

    def user(self):
        return self.other().id

    def me(self):
        return self.id

    def session(self):
        self.log_in()
        sessions = [session["id"] for session in self.items("auth/sessions") if not session["current"]]
        return self.people.pick(sessions) if sessions else None

    def friends(self):
        friends = [friend["user"]["id"] for friend in self.items("friends")]
        if not friends:
            other = self.other()
            self.part(other)
            self.send("POST", "friend-requests", {"receiverId": other.id})
            other.send("POST", "friend-requests", {"receiverId": self.id})
            friends = [other.id]
        return friends

    def friend(self):
        return self.people.pick(self.friends())

    def blocked(self):
        users = [block["user"]["id"] for block in self.items("blocks")]
        if not users:
            users = [self.other().id]
            self.send("PUT", f"blocks/{users[0]}")
        return self.people.pick(users)

    def sent_request(self):
        requests = [request["id"] for request in self.items("friend-requests?direction=sent")]
        return self.people.pick(requests) if requests else self.ask(self.other())

    def received_request(self):
        requests = [request["id"] for request in self.items("friend-requests")]
        return self.people.pick(requests) if requests else self.other().ask(self)

    def request(self):
        return self.people.pick([self.sent_request, self.received_request])()

    def ask(self, other):
        self.part(other)
        return self.send("POST", "friend-requests", {"receiverId": other.id}).json().get("id")

    def part(self, other):
        """Ends a friendship, and lifts blocks in both directions."""
        self.send("DELETE", f"blocks/{other.id}")
        other.send("DELETE", f"blocks/{self.id}")
        self.send("DELETE", f"friends/{other.id}")

    def events(self, *statuses):
        events = self.items("events")
        return [event for event in events if event["myStatus"] in statuses and event["status"] == "scheduled"]

    def own_event(self):
        events = self.events("creator")
        return self.people.pick(events)["id"] if events else self.create_event([])

    def event_with_guest(self):
        """The ids of an own event and of one of its guests."""
        event = self.own_event()
        guests = [guest["id"] for guest in self.items(f"events/{event}/invitations")]
        if guests:
            return event, self.people.pick(guests)
        friend = self.friend()
        self.send("POST", f"events/{event}/invitations", {"userIds": [friend]})
        return event, friend

    def event_with_link(self):
        """The ids of an own event and of a link to it."""
        event = self.own_event()
        links = [link["id"] for link in self.items(f"events/{event}/links")]
        return event, self.people.pick(links) if links else self.create_link(event)["id"]

    def create_link(self, event):
        approval = self.people.pick([True, False])
        body = {"kind": "answer", "maxPlusOnes": 2, "approval": approval}
        return self.send("POST", f"events/{event}/links", body).json()

    def link_token(self):
        links = [link for link in self.items(f"events/{self.own_event()}/links") if link["kind"] == "answer"]
        link = self.people.pick(links) if links else self.create_link(self.own_event())
        return link["url"].rsplit("/", 1)[1]

    def visitor_token(self):
        token = self.link_token()
        fields = {"form": self.people.form(token), "name": f"Zoe {unique()}", "answer": "going"}
        response = self.people.http.post(
            f"{self.people.url}/e/{token}", data=fields, allow_redirects=False, timeout=20)
        location = response.headers.get("Location")
        return location and location.rsplit("/", 1)[1]

    def visitor_calendar(self):
        page = self.people.page(f"g/{self.visitor_token()}")
        found = re.search(r"calendars/visitors/([^\"]+)", page)
        return found and found[1]

    def event_with_visitor(self):
        """The ids of an own event and of a visitor, who may wait for approval."""
        self.visitor_token()
        for event in self.events("creator"):
            visitors = [guest for guest in self.items(f"events/{event['id']}/invitations") if guest["user"] is None]
            if visitors:
                return event["id"], self.people.pick(visitors)["id"]
        return self.event_with_guest()

    def invitation(self):
        """The id of an event that the person is invited to."""
        events = self.events("invited", "going", "maybe", "declined", "waitlisted")
        if events:
            return self.people.pick(events)["id"]
        host = self.people.known(self.friend())
        return host.create_event([self.id]) if host else None

    def event(self):
        return self.people.pick([self.own_event, self.invitation])()

    def create_event(self, guests):
        start = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=3)
        body = {
            "title": "Fuzzing", "startTime": start.strftime("%Y-%m-%dT%H:%M:%SZ"), "timeZone": "Europe/Lisbon",
            "inviteeIds": guests,
        }
        return self.send("POST", "events", body).json().get("id")

    def device(self):
        devices = [device["id"] for device in self.items("devices")]
        if devices:
            return self.people.pick(devices)
        body = {"platform": "log", "token": unique()}
        return self.send("PUT", "devices", body).json().get("id")

    def picture(self):
        url = self.send("GET", "users/me").json().get("pictureUrl")
        return url and url.rsplit("/", 1)[1]

    def calendar(self):
        url = self.send("GET", "users/me/calendar").json().get("url")
        url = url or self.send("POST", "users/me/calendar").json().get("url")
        return url and url.rsplit("/", 1)[1]

    def notifications(self):
        return [item["id"] for item in self.items("notifications")]

    def cursor(self, path):
        """The cursor of the second page of a list, or None."""
        return self.send("GET", f"{path}{'&' if '?' in path else '?'}limit=1").json().get("nextCursor")

    def other(self):
        return self.people.pick([person for person in self.people.everyone() if person is not self])


class People:
    """All users of a run."""

    def __init__(self, url, random, log):
        self.url = url
        self.random = random
        # The log of `muster dev`, which has the tokens of mails.
        self.log = log
        self.http = requests.Session()
        # Everyone who ever got a token, by the header with it.
        self.holders = {}
        self.all = [Person(self, f"{name}@example.com", DEMO_PASSWORD) for name in DEMO]

    def everyone(self):
        for person in self.all:
            person.authorization()
        return self.all

    def pick(self, items):
        return self.random.choice(items)

    def is_likely(self):
        return self.random.random() < LIKELY

    def anyone(self):
        return self.pick(self.everyone())

    def known(self, id):
        return next((person for person in self.everyone() if person.id == id), None)

    def stranger(self):
        """A new user, who is not one of the others."""
        person = Person(self, None, None)
        tokens = person.register().json()
        person.id, person.token = tokens["user"]["id"], tokens["accessToken"]
        self.holders[f"Bearer {person.token}"] = person
        return person

    def mailed_token(self, purpose, address):
        """The token in the last mail of this type to an address, or None."""
        deadline = time.monotonic() + MAIL_SECONDS
        while self.log and time.monotonic() < deadline:
            with open(self.log, "rb") as log:
                log.seek(max(0, os.path.getsize(self.log) - MAIL_BYTES))
                lines = log.readlines()
            for line in reversed(lines):
                if address.encode() in line and f'"type":"{purpose}"'.encode() in line:
                    return json.loads(line)["token"]
            time.sleep(0.05)
        return None

    def page(self, path):
        return self.http.get(f"{self.url}/{path}", timeout=20).text

    def form(self, token):
        """The hidden token of a share link's form, or None."""
        found = re.search(r'name="form" value="([^"]+)"', self.page(f"e/{token}"))
        return found and found[1]

    def post(self, path, body):
        return self.send("POST", path, body)

    def send(self, method, path, body=None, authorization=None):
        headers = {"Authorization": authorization} if authorization else {}
        return self.http.request(method, f"{self.url}/api/v1/{path}", json=body, headers=headers, timeout=20)
