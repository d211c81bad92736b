"""What a user can do against a flood, with limits on."""
import http.client
import re
import time
import urllib.parse

from .lab import Outcome, at_once
from .machine import wait_until

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def address(number):
    """One of many client addresses."""
    return f"127.0.{number // 250 + 1}.{number % 250 + 1}"


def page(service, path, fields=None, source="127.0.0.1"):
    """Gets a page, or sends its form. Returns the status and the page."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=30, source_address=(source, 0))
    try:
        body = urllib.parse.urlencode(fields) if fields else None
        connection.request("POST" if fields else "GET", path, body, FORM if fields else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def in_parts(calls, size=20):
    """Calls all functions, some at once. Returns their results."""
    return [result for start in range(0, len(calls), size) for result in at_once(*calls[start:start + size])]


def inbox(service, user):
    return service.ask(user, "GET", "notifications?limit=100")["items"]


def requests_and_blocks(lab):
    """51 friend requests of throwaway accounts within a second or so, and then 51 blocks."""
    service = lab.service(MUSTER_RATE_LIMITS="on", MUSTER_THROTTLING="on", MUSTER_CONNECTIONS_PER_ADDRESS="0")
    lab.worker()
    ana = service.register("ana")
    senders = in_parts([
        lambda number=number: service.register(f"sender{number}", verified=False, source=address(number))
        for number in range(51)
    ])
    start = time.monotonic()
    sent = in_parts([
        lambda sender=sender: service.call("POST", "friend-requests", {"receiverId": ana.id}, sender.token).status
        for sender in senders
    ], 51)
    flood = time.monotonic() - start
    start = time.monotonic()
    blocks = [service.call("PUT", f"blocks/{sender.id}", token=ana.token).status for sender in senders]
    seconds = time.monotonic() - start
    time.sleep(1)
    rows = sum(item["type"] == "friend-request" for item in inbox(service, ana))
    shown = len(service.ask(ana, "GET", "friend-requests")["items"])
    return Outcome(
        f"{sent.count(201)} requests in {flood:.1f} s; {blocks.count(204)} of {len(blocks)} blocks in {seconds:.1f} s;"
        f" {rows} notifications, {shown} in the usual list", "all blocks, none refused; no notification; none in the list",
        blocks.count(204) == len(blocks) == sent.count(201) and rows == 0 and shown == 0)


def visitor_flood(lab):
    """600 visitors of one link in seconds, and then they are removed together."""
    service = lab.service(MUSTER_RATE_LIMITS="on", MUSTER_THROTTLING="on", MUSTER_CONNECTIONS_PER_ADDRESS="0")
    lab.worker()
    ana, ben = service.register("ana"), service.register("ben")
    service.befriend(ana, ben)
    event = {"title": "Party", "startTime": "2040-05-01T18:00:00Z", "timeZone": "UTC"}
    event = service.ask(ana, "POST", "events", event)["id"]
    service.ask(ana, "PUT", f"events/{event}/hosts/{ben.id}")
    offer = service.ask(ben, "GET", "proposals")["items"][0]["id"]
    service.ask(ben, "POST", f"proposals/{offer}/accept")
    link = service.ask(ana, "POST", f"events/{event}/links", {"kind": "answer"})
    path = urllib.parse.urlparse(link["url"]).path
    forms = in_parts([
        lambda number=number: re.search('name="form" value="([^"]+)"', page(service, path, source=address(number))[1])[1]
        for number in range(600)
    ])
    start = time.monotonic()
    statuses = in_parts([
        lambda number=number, form=form: page(
            service, path, {"form": form, "name": f"Guest {number}", "answer": "going"}, address(number))[0]
        for number, form in enumerate(forms)
    ])
    flood = time.monotonic() - start

    def rows(host):
        return [item for item in inbox(service, host) if item["type"] == "approval-requested"]

    # The rest of the minute.
    wait_until(lambda: any(item.get("count") for item in rows(ana) + rows(ben)), 75, 1)
    time.sleep(1)
    counted = [sum(item.get("count", 1) for item in rows(host)) for host in (ana, ben)]
    found = max(len(rows(host)) for host in (ana, ben))
    start = time.monotonic()
    response = service.call("DELETE", f"events/{event}/links/{link['id']}?visitors=remove", token=ana.token)
    removal = time.monotonic() - start
    left = len(service.ask(ana, "GET", f"events/{event}/invitations?limit=100")["items"])
    named = sum("Guest" in item["message"] for host in (ana, ben) for item in inbox(service, host))
    return Outcome(
        f"{statuses.count(303)} answers in {flood:.1f} s; {found} unread notification for each host, which counts"
        f" {min(counted)}; removed in {removal:.2f} s ({response.status}), {left} left, {named} notifications name one",
        "1 notification; 600 counted; 2 s; none left, none named",
        statuses.count(303) == 600 and found == 1 and min(counted) >= 600 and response.status == 204 and removal < 2
        and left == 0 and named == 0)


CASES = [requests_and_blocks, visitor_flood]
