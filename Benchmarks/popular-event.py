#!/usr/bin/env python3
"""Measures how a popular event affects other users: their writes at a fixed rate, in turns alone and while 400 guests
answer the invitation to one event. Run it by hand, against a server with MUSTER_RATE_LIMITS=off MUSTER_THROTTLING=off, with few enough users
that all have tokens:

    muster seed load --users 1000 --tokens tokens
    Benchmarks/popular-event.py http://127.0.0.1:8300 --tokens tokens

The other users rename events of their own. Their requests are sent on schedule, and their time counts from when they
were due. The script first makes the guests friends of the host. Each guest answers again as soon as the response
arrives, so all of them are always in the event's queue.
"""
import argparse
import collections
import json
import random
import threading
import time
import urllib.parse

from generator import Connection, compare, percentile, request, run, start


def ask(connection, method, path, body, token, *expected):
    """Sends a request that must get one of these statuses. Returns the body of the response."""
    status = connection.send(request(method, path, body, token))
    if status not in expected:
        raise SystemExit(f"{method} {path}: {status} {connection.body.decode()}")
    return json.loads(connection.body)


def answer_again(address, path, tokens, seconds):
    """Every guest answers `going` and `declined` in turns.

    Returns (milliseconds, status) for each response."""
    end = time.perf_counter() + seconds
    results = []

    def call(token):
        connection = Connection(address)
        answers = [request("PUT", path, {"status": status}, token) for status in ("going", "declined")]
        while (sent := time.perf_counter()) < end:
            status = connection.send(answers[0])
            results.append(((time.perf_counter() - sent) * 1000, status))
            answers.reverse()

    threads = [threading.Thread(target=call, args=(token,), daemon=True) for token in tokens]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--tokens", required=True, help='a file with lines "userId eventId accessToken"')
    parser.add_argument("--guests", type=int, default=400)
    parser.add_argument("--places", type=int, default=50)
    parser.add_argument("--writes", type=float, default=100, help="of other users, per second")
    parser.add_argument("--seconds", type=float, default=15, help="length of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    address = urllib.parse.urlsplit(arguments.url)
    address = (address.hostname, address.port)
    with open(arguments.tokens) as file:
        people = [line.split() for line in file]
    host, guests, others = people[0], people[1:arguments.guests + 1], people[arguments.guests + 1:]
    if len(others) < 100:
        raise SystemExit(f"{len(people)} tokens are too few for {arguments.guests} guests and 100 other users")

    connection = Connection(address)
    for guest in guests:
        # Two crossing requests make friends immediately. Some users are already friends.
        ask(connection, "POST", "/api/v1/friend-requests", {"receiverId": host[0]}, guest[2], 200, 201, 409)
        ask(connection, "POST", "/api/v1/friend-requests", {"receiverId": guest[0]}, host[2], 200, 409)
    plan = {
        "title": "Popular", "startTime": "2040-05-01T18:00:00Z", "timeZone": "UTC", "capacity": arguments.places,
        "inviteeIds": [guest[0] for guest in guests],
    }
    event = ask(connection, "POST", "/api/v1/events", plan, host[2], 201)["id"]
    path = f"/api/v1/events/{event}"
    random.seed(1)
    random.shuffle(others)
    turns = 0

    def turn(with_guests):
        nonlocal turns
        turns += 1
        # New titles: an edit that changes nothing writes nothing.
        writes = [
            request("PATCH", f"/api/v1/events/{own}", {"title": f"Turn {turns}.{number}"}, token)
            for number, (_, own, token) in enumerate(others * (1 + int(arguments.writes * arguments.seconds / len(others))))
        ]
        popular = None
        if with_guests:
            # Begins before the measured load and ends after it.
            tokens = [token for _, _, token in guests]
            popular = start(answer_again, address, f"{path}/invitations/me", tokens, arguments.seconds + 3)
            time.sleep(1.5)
        results, late = start(run, address, writes, arguments.writes, arguments.seconds, 64)()
        times = [milliseconds for milliseconds, _ in results]
        statuses = collections.Counter(status for _, status in results)
        line = f"writes p50 {percentile(times, 0.5):7.2f}  p99 {percentile(times, 0.99):7.2f} ms"
        line += f"  {dict(statuses)}, last sent {max(0, late * 1000):.0f} ms late"
        print(("with guests:    " if with_guests else "alone:          ") + line, flush=True)
        if popular:
            answers = popular()
            statuses = collections.Counter(status for _, status in answers)
            waits = [milliseconds for milliseconds, _ in answers]
            counts = ask(connection, "GET", path, {}, host[2], 200)["counts"]
            print(
                f"  answers: {dict(statuses)}, {len(answers) / (arguments.seconds + 3):.0f} per second,"
                f" p50 {percentile(waits, 0.5):.0f}  p99 {percentile(waits, 0.99):.0f} ms, {counts['going']} going,"
                f" {counts['waitlisted']} waiting", flush=True)
        return times

    compare(turn, arguments.rounds, "with guests")


if __name__ == "__main__":
    main()
