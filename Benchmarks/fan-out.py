#!/usr/bin/env python3
"""Measures how a change that thousands of users see affects the writes of other users: edits of small events at a fixed
rate, in turns alone and during large changes. Run it by hand, against a server with MUSTER_RATE_LIMITS=off
MUSTER_THROTTLING=off:

    muster seed load --users 20000 --tokens tokens
    Benchmarks/fan-out.py http://127.0.0.1:8300 "$DATABASE_URL" --tokens tokens

The large changes, which the script sets up with psql at the start:

    edit     an event with 10,000 guests gets another title: 30,000 stamps and 10,000 notifications
    answers  64 of its guests answer at once, repeatedly
    rename   a user with 5,000 friends gets another name: 5,000 stamps

For comparison, `busy` makes no change: two processes compute all the time.

Small events share guests with the large one, whose edit locks the guests' stamps until it commits. With `--apart`, they
share none.

At the end, 30 of these edits follow each other while a worker runs (`muster worker`), and the script reads from the
inboxes how long the notifications of the small events took: from the change to the inbox.

Requests are sent on schedule, whether or not earlier ones have finished, and their time counts from when they were due.
"""
import argparse
import collections
import itertools
import subprocess
import sys
import threading
import time

from generator import Connection, address_of, percentile, read_tokens, request, run, start

EVENT = "01900000-0000-7000-8fff-000000000001"
LARGE = """
    DELETE FROM events WHERE id = :'event';
    INSERT INTO events (id, creator_id, title, start_time, time_zone, live_until, start_offset, zone_rules)
    VALUES (:'event', :'host', 'Large', now() + interval '30 days', 'UTC', now() + interval '40 days', 0,
      '2025b');
    INSERT INTO invitations (event_id, user_id)
    SELECT :'event', id
    FROM (
      SELECT id FROM unnest(:'guests'::uuid[]) AS id
      UNION
      (
        SELECT id FROM users
        WHERE id <> :'host' AND id <> ALL(:'writers'::uuid[]) AND (NOT :'apart'::boolean OR id NOT IN (
          SELECT user_id FROM invitations JOIN events ON events.id = event_id
          WHERE events.creator_id = ANY(:'writers'::uuid[])
        ))
        ORDER BY id LIMIT 11000
      )
    ) AS guests
    WHERE id <> :'host'
    ORDER BY id = ANY(:'guests'::uuid[]) DESC
    LIMIT 10000;
    UPDATE events SET invited_count = (SELECT count(*) FROM invitations WHERE event_id = :'event') WHERE id = :'event';
    INSERT INTO friendships (user_a, user_b)
    SELECT least(id, :'popular'), greatest(id, :'popular')
    FROM (
      SELECT id FROM users WHERE id <> :'popular' AND id <> ALL(:'writers'::uuid[]) ORDER BY id LIMIT 5000
    ) AS others
    ON CONFLICT DO NOTHING;
    ANALYZE;
    """


# Of the small events' notifications since a moment.
DELAYS = """
    SELECT count(*), round(percentile_disc(0.5) WITHIN GROUP (ORDER BY delay)),
      round(percentile_disc(0.99) WITHIN GROUP (ORDER BY delay)), round(max(delay))
    FROM (
      SELECT extract(epoch FROM filed_at - created_at) * 1000 AS delay FROM notifications
      WHERE created_at >= :'since' AND type = 'event-updated' AND subject_id <> :'event'
    ) AS delays
    """


class Repeated:
    """Some callers send one request after the other while other requests are measured."""

    def __init__(self, address, requests, callers):
        self.is_over = False
        self.times = []
        self.statuses = collections.Counter()
        self.requests = iter(requests)
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.call, args=(address,)) for _ in range(callers)]
        for thread in self.threads:
            thread.start()

    def call(self, address):
        connection = Connection(address)
        while not self.is_over:
            with self.lock:
                data = next(self.requests)
            began = time.perf_counter()
            status = connection.send(data)
            self.times.append((time.perf_counter() - began) * 1000)
            self.statuses[status] += 1

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join()


class Busy:
    """Processes that only compute. They read from a pipe now and then, so that none outlives the script."""

    PROGRAM = "import select, sys\nwhile not select.select([sys.stdin], [], [], 0)[0]: sum(range(20000))"

    def __init__(self, count):
        self.processes = [
            subprocess.Popen([sys.executable, "-c", self.PROGRAM], stdin=subprocess.PIPE) for _ in range(count)
        ]

    def end(self):
        for process in self.processes:
            process.communicate()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("database")
    parser.add_argument("--tokens", required=True, help='a file with lines "userId eventId accessToken"')
    parser.add_argument("--writes", type=float, default=100, help="of other users, per second")
    parser.add_argument("--seconds", type=float, default=10, help="length of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["edit", "answers", "rename", "busy"], help="default: all four")
    parser.add_argument("--apart", action="store_true", help="the small events share no guests with the large one")
    arguments = parser.parse_args()
    address = address_of(arguments.url)
    people = read_tokens(arguments.tokens)
    host, popular, guests, writers = people[0], people[1], people[2:66], people[66:466]

    def ids(some):
        return "{" + ",".join(user for user, _, _ in some) + "}"

    names = {
        "apart": arguments.apart, "event": EVENT, "host": host[0], "popular": popular[0], "guests": ids(guests),
        "writers": ids(writers),
    }
    settings = [word for name, value in names.items() for word in ("-v", f"{name}={value}")]
    subprocess.run(
        ["psql", arguments.database, "-X", "-q", "-v", "ON_ERROR_STOP=1", *settings], input=LARGE, text=True, check=True)

    # Other numbers than in an earlier run: an edit that changes nothing writes nothing.
    numbers = itertools.count(int(time.time()) * 1000)
    path = f"/api/v1/events/{EVENT}"

    def edits():
        while True:
            yield request("PATCH", path, {"title": f"Large {next(numbers)}"}, host[2])

    def answers():
        for number in numbers:
            status = ("going", "maybe", "declined")[number // len(guests) % 3]
            yield request("PUT", f"{path}/invitations/me", {"status": status}, guests[number % len(guests)][2])

    def renames():
        while True:
            yield request("PATCH", "/api/v1/users/me", {"displayName": f"Name {next(numbers)}"}, popular[2])

    large = {"edit": (edits, 1), "answers": (answers, len(guests)), "rename": (renames, 1)}

    def turn(name=None):
        writes = [
            request("PATCH", f"/api/v1/events/{event}", {"title": f"Small {next(numbers)}"}, token)
            for _, event, token in writers
        ]
        beside = Busy(2) if name == "busy" else Repeated(address, large[name][0](), large[name][1]) if name else None
        results, late = start(run, address, writes, arguments.writes, arguments.seconds, 64)()
        if beside:
            beside.end()
        times = [milliseconds for milliseconds, _ in results]
        statuses = dict(collections.Counter(status for _, status in results))
        line = f"{name or 'alone':8} small writes p50 {percentile(times, 0.5):7.1f}  p99 {percentile(times, 0.99):7.1f} ms"
        line += f"  {statuses}, last sent {max(0, late * 1000):.0f} ms late"
        if name in large:
            line += f"; {len(beside.times)} large, p50 {percentile(beside.times, 0.5):.0f} ms {dict(beside.statuses)}"
        print(line, flush=True)
        return times

    def query(text, **values):
        words = [word for name, value in values.items() for word in ("-v", f"{name}={value}")]
        return subprocess.run(
            ["psql", arguments.database, "-X", "-q", "-At", "-F", " ", "-v", "ON_ERROR_STOP=1", *words], input=text,
            text=True, check=True, capture_output=True).stdout.strip()

    def drain():
        end = time.monotonic() + 300
        while query("SELECT count(*) FROM notification_queue") != "0":
            if time.monotonic() > end:
                raise SystemExit("the queue is not empty after five minutes: run `muster worker` alongside this script")
            time.sleep(0.1)

    def burst(count):
        drain()
        since = query("SELECT now()")
        connection = Connection(address)
        sending = threading.Thread(target=lambda: [connection.send(next(changes)) for _ in range(count)])
        changes = edits()
        if count:
            sending.start()
        turn()
        if count:
            sending.join()
        drain()
        notices, p50, p99, most = query(DELAYS, since=since, event=EVENT).split()
        print(f"{count:2} large edits: {notices} small notifications, change to inbox p50 {p50}, p99 {p99}, max {most} ms")

    turn()  # to warm up
    alone, beside_load = [], {name: [] for name in arguments.kinds}
    for _ in range(arguments.rounds):
        for name in beside_load:
            alone += turn()
            beside_load[name] += turn(name)
    for name, times in beside_load.items():
        for share in (0.5, 0.99):
            one, other = percentile(alone, share), percentile(times, share)
            print(f"{name}: p{share * 100:.0f} alone {one:.1f} ms, with {name} {other:.1f} ms, ratio {other / one:.2f}")
    for count in (0, 30):
        burst(count)


if __name__ == "__main__":
    main()
