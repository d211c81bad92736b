"""A light load on a stack: people who sign up, make friends, invite each other and read."""
import http.client
import itertools
import threading
import time

from load import new_id

PAUSE = 1.0
# In each third round, Ana also invites Ben, and in each fifth, someone signs up. A round takes a second.
INVITING_ROUNDS, REGISTERING_ROUNDS = 3, 5
TOKEN = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb7"


class People:
    def __init__(self, service):
        self.service = service
        self.is_ending = False
        self.numbers = itertools.count(1)
        # The ids of events whose creation was acknowledged.
        self.events = []
        self.thread = threading.Thread(target=self._run, daemon=True)

    def sign_up(self, name=None):
        """Returns the id, the access token, the name and the refresh token of a new user."""
        name = name or f"person-{next(self.numbers)}"
        answer = self.service.call("POST", "/api/v1/auth/register", None, {
            "username": name, "email": f"{name}@example.com", "password": f"the-password-of-{name}"})
        return answer["user"]["id"], answer["accessToken"], name, answer["refreshToken"]

    def start(self, prove, webhook=None):
        """`prove` verifies all addresses, as if people had followed the links in their mails."""
        self.ana, self.ben = self.sign_up(), self.sign_up()
        prove()
        request = self.service.call("POST", "/api/v1/friend-requests", self.ana[1], {"receiverId": self.ben[0]})
        self.service.call("POST", f"/api/v1/friend-requests/{request['id']}/accept", self.ben[1])
        self.service.call("PUT", "/api/v1/devices", self.ben[1], {"platform": "ios", "token": TOKEN + "123"})
        if webhook:
            self.service.call("PUT", "/api/v1/devices", self.ben[1], {"platform": "webhook", "token": webhook})
        self.thread.start()

    def invite(self):
        event = new_id()
        status, _, _ = self.service.send("POST", "/api/v1/events", self.ana[1], {
            "id": event, "title": "Swim", "startTime": "2031-06-01T18:00:00Z", "timeZone": "Europe/Berlin",
            "inviteeIds": [self.ben[0]]}, Idempotency_Key=event)
        if status == 201:
            self.events.append(event)

    def stop(self):
        self.is_ending = True
        self.thread.join(30)

    def _run(self):
        rounds = 0
        while not self.is_ending:
            rounds += 1
            for work, every in ((self._read, 1), (self.invite, INVITING_ROUNDS), (self._register, REGISTERING_ROUNDS)):
                if rounds % every:
                    continue
                try:
                    work()
                except (OSError, http.client.HTTPException, RuntimeError):
                    # It is an outage that is recorded.
                    pass
            time.sleep(PAUSE)

    def _read(self):
        self.service.send("GET", "/api/v1/events", self.ben[1])

    def _register(self):
        self.sign_up()
