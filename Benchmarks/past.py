#!/usr/bin/env python3
"""Measures lists and validations of users with more and more past invitations, in milliseconds. Run it by hand, against
a release build:

    Benchmarks/past.py --muster .build/release/muster

It starts a PostgreSQL cluster of its own, without TCP, with 20,000 users, and `muster serve`, and stops both at the
end. All users have the same number of live events; SQL adds events in the archive. The users take turns, one call after
the other on one connection. It needs Linux, PostgreSQL's programs and Python's standard library.
"""
import argparse
import datetime
import json
import os
import signal
import statistics
import sys
import time

from abuse.lab import Lab
from abuse.machine import Cluster
from generator import Connection, read_tokens, request

CALLS = {
    "`GET /events?limit=20`": ("GET", "/api/v1/events?limit=20"),
    "`?when=past&limit=20`": ("GET", "/api/v1/events?when=past&limit=20"),
    "`/invitations?limit=20`": ("GET", "/api/v1/invitations?limit=20"),
    "validate": ("POST", "/api/v1/cache/validate/{user}"),
}
# Events of the user's friends, eight hours apart, as the worker leaves them in the archive.
PAST = """
    WITH host AS (
      SELECT friend_id, row_number() OVER () AS place, count(*) OVER () AS friends
      FROM friends WHERE user_id = '%(user)s'
    ), planned AS (
      INSERT INTO events (
        id, creator_id, title, note, start_time, time_zone, live_until, start_offset, zone_rules, going_count, archived_at
      )
      SELECT gen_random_uuid(), host.friend_id, 'Evening in the park ' || number, 'We meet at the gate at half past.',
        date_trunc('second', now()) - number * interval '8 hours' - interval '2 days', 'Europe/Lisbon',
        now() - number * interval '8 hours', 3600, '2025b', 1, now()
      FROM generate_series(1, %(count)d) AS number
      JOIN host ON host.place = 1 + number %% host.friends
      RETURNING id
    )
    INSERT INTO invitations (event_id, user_id, status, answered_at) SELECT id, '%(user)s', 'going', now() FROM planned;
    """
LASTING = {"MUSTER_ACCESS_TOKEN_SECONDS": "86400"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--past", type=int, nargs="+", default=[0, 500, 2000, 10_000], help="past invitations of a user")
    parser.add_argument("--calls", type=int, default=60, help="calls of each kind by each user")
    arguments = parser.parse_args()
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster()
    try:
        cluster.create("past")
        with Lab(cluster, muster, "past") as lab:
            counts = arguments.past
            people = read_tokens(lab.seed(arguments.users, **LASTING))[:len(counts)]
            psql = lab.psql()
            for (user, _, _), count in zip(people, counts):
                psql.run(PAST % {"user": user, "count": count})
            psql.run("VACUUM ANALYZE")
            live = psql.value(f"""
                SELECT count(*) FROM invitations WHERE archived_start IS NULL AND user_id IN (
                  {", ".join(f"'{user}'" for user, _, _ in people)})""")
            service = lab.service(**LASTING)
            connection = Connection(("127.0.0.1", service.port))
            times = {}
            before = os.getloadavg()[0]
            for turn in range(arguments.calls + 5):
                for name, (method, path) in CALLS.items():
                    for place, (user, _, token) in enumerate(people):
                        asked = request(method, path.format(user=user), {}, token)
                        start = time.perf_counter()
                        status = connection.send(asked)
                        took = (time.perf_counter() - start) * 1000
                        if status != 200:
                            raise SystemExit(f"{name} got {status}: {connection.body[:300]}")
                        if "past" in path and len(json.loads(connection.body)["items"]) < min(20, counts[place]):
                            raise SystemExit(f"a user with {counts[place]} past events sees {connection.body[:300]}")
                        if turn >= 5:  # The first calls are to warm up.
                            times.setdefault((name, place), []).append(took)
            after = os.getloadavg()[0]
    finally:
        cluster.end()
    print("| past invitations | " + " | ".join(CALLS) + " |")
    print("|---" * (1 + len(CALLS)) + "|")
    for place, count in enumerate(counts):
        medians = " | ".join(f"{statistics.median(times[name, place]):.1f}" for name in CALLS)
        print(f"| {count:,} | {medians} |")
    print(
        f"\n{datetime.date.today()}, {arguments.users:,} users, {int(live) / len(people):.0f} live invitations each, "
        f"medians of {arguments.calls} calls in ms, {os.cpu_count()} processors, load {before:.1f} to {after:.1f}")


if __name__ == "__main__":
    main()
