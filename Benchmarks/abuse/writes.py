"""How one user's writes affect the writes of others."""
import multiprocessing
import threading
import time

from .lab import Client, Outcome, at_once
from .machine import wait_until


class Flood:
    """Calls that repeat until the end, each on a thread of its own. They run in a separate process: otherwise the
    interpreter's lock would delay the measured calls."""

    def __init__(self, *calls):
        self.stopping = multiprocessing.Event()
        self.counted, counting = multiprocessing.Pipe(duplex=False)
        self.process = multiprocessing.Process(target=self.run, args=(calls, counting), daemon=True)
        self.process.start()

    def run(self, calls, counting):
        def repeat(call):
            count = 0
            while not self.stopping.is_set():
                call()
                count += 1
            return count

        counting.send(sum(at_once(*[lambda call=call: repeat(call) for call in calls])))

    def end(self):
        """Returns the number of calls."""
        self.stopping.set()
        count = self.counted.recv() if self.counted.poll(30) else 0
        self.process.kill()
        self.process.join()
        return count


def locked_user(lab):
    """40 edits of one user whose row is locked do not stop another user's edits."""
    service = lab.service(MUSTER_CONNECTIONS_PER_ADDRESS="0")
    ana, ben = service.register("ana"), service.register("ben")
    holder = lab.psql()
    holder.run(f"BEGIN; SELECT count(*) FROM (SELECT FROM users WHERE id = '{ana.id}' FOR UPDATE) AS held")
    refusals = []

    def edit(number):
        response = service.call("PATCH", "users/me", {"displayName": f"Ana {number}"}, ana.token, timeout=60)
        refusals.append((response.status, (response.body or {}).get("type") if response.status != 200 else None))

    threads = [threading.Thread(target=edit, args=(number,), daemon=True) for number in range(40)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    beside = []
    end = time.monotonic() + 8
    while time.monotonic() < end:
        response = service.call("PATCH", "users/me", {"displayName": f"Ben {len(beside)}"}, ben.token)
        beside.append((response.status, response.seconds))
        time.sleep(0.1)
    holder.run("ROLLBACK")
    for thread in threads:
        thread.join(30)
    failed = sum(status != 200 for status, _ in beside)
    slowest = max(seconds for _, seconds in beside)
    wrong = [refusal for refusal in refusals if refusal not in ((200, None), (503, "busy"))]
    return Outcome(
        f"{failed} of {len(beside)} edits of another user failed, the slowest took {slowest:.2f} s;"
        f" of the 40, {sum(status == 200 for status, _ in refusals)} got 200, {refusals.count((503, 'busy'))} 503 busy,"
        f" {len(wrong)} another response", "0 failed, 1 s; no other response",
        failed == 0 and slowest < 1 and not wrong)


def request_flood(lab):
    """A flood of friend requests to one user, most of them already pending, does not delay the blocks that end it."""
    service = lab.service(MUSTER_CONNECTIONS_PER_ADDRESS="0")
    ana = service.register("ana")
    senders = [service.register(f"sender{number}") for number in range(24)]

    def repeating(sender):
        client = Client(service)
        return lambda: client.call(
            "POST", "/api/v1/friend-requests", {"receiverId": ana.id}, sender.token)

    def cancelling(sender):
        client = Client(service)

        def call():
            response = client.call("POST", "/api/v1/friend-requests", {"receiverId": ana.id}, sender.token)
            if response.status == 201:
                client.call("DELETE", f"/api/v1/friend-requests/{response.body['id']}", None, sender.token)

        return call

    flood = Flood(
        *[repeating(sender) for sender in senders[:16]], *[cancelling(sender) for sender in senders[16:]])
    blocks = []
    try:
        time.sleep(1)
        for sender in [*senders[:3], *senders[16:19]]:
            response = service.call("PUT", f"blocks/{sender.id}", token=ana.token)
            blocks.append((response.status, response.seconds))
            time.sleep(0.3)
    finally:
        count = flood.end()
    slowest = max(seconds for _, seconds in blocks)
    good = sum(status in (200, 204) for status, _ in blocks)
    return Outcome(
        f"{good} of {len(blocks)} blocks succeeded, the slowest took {slowest:.2f} s, during {count} calls", "all, 1 s",
        good == len(blocks) and slowest < 1)


def inbox(service, user, kind):
    return sum(item["type"] == kind for item in service.ask(user, "GET", "notifications?limit=100")["items"])


def ask_again(lab):
    """40 friend requests to one user, each cancelled afterwards."""
    service = lab.service(MUSTER_THROTTLING="on")
    ana, ben = service.register("ana"), service.register("ben")
    lab.worker()
    statuses, waits = [], []
    for _ in range(40):
        response = service.call("POST", "friend-requests", {"receiverId": ben.id}, ana.token)
        statuses.append(response.status)
        if response.status == 429:
            waits.append(int(response.headers.get("Retry-After", 0)))
        if response.status in (200, 201):
            service.call("DELETE", f"friend-requests/{response.body['id']}", token=ana.token)
    time.sleep(2)
    rows = inbox(service, ben, "friend-request")
    wait = f", Retry-After {max(waits)} s" if waits else ""
    return Outcome(
        f"{statuses.count(201)} sent, {statuses.count(429)} refused with 429{wait}; {rows} rows in the inbox",
        "2 sent, then 429 for a day; 2 rows",
        statuses.count(201) == 2 and statuses.count(429) == 38 and max(waits) > 3600 and rows <= 2)


def toggled_answer(lab):
    """One guest answers 40 times."""
    service = lab.service()
    ana, ben = service.register("ana"), service.register("ben")
    service.befriend(ana, ben)
    lab.worker()
    event = {"title": "Picnic", "startTime": "2040-05-01T18:00:00Z", "timeZone": "UTC", "inviteeIds": [ben.id]}
    path = f"events/{service.ask(ana, 'POST', 'events', event)['id']}/invitations/me"
    for number in range(40):
        service.ask(ben, "PUT", path, {"status": ("going", "declined")[number % 2]})
    wait_until(lambda: inbox(service, ana, "invitation-answered"), 5)
    time.sleep(2)
    rows = inbox(service, ana, "invitation-answered")
    return Outcome(f"{rows} rows in the creator's inbox", "1", rows == 1)


CASES = [locked_user, request_flood, ask_again, toggled_answer]
