#!/usr/bin/env python3
"""Measures what one change of a long list costs a phone and the service: requests, bytes in both directions, and the
processor time of the service and of PostgreSQL for one launch. The phone sends its stamps, and then the digests of the
stale lists. Run it by hand, against a release build:

    Benchmarks/long-lists.py --muster .build/release/muster

It starts a PostgreSQL cluster of its own, without TCP, and `muster migrate` and `serve`, and stops them at the end. It
needs Linux, PostgreSQL's programs and Python's standard library. After each round, it checks that the phone has what
the service sends; otherwise it fails.
"""
import argparse
import datetime
import os
import signal
import statistics
import sys

from abuse.lab import Lab
from abuse.machine import Cluster
from launch.phone import Phone

FRIENDS = """
    WITH added AS (
      INSERT INTO users (id, username, display_name, email_verified_at)
      SELECT gen_random_uuid(), 'friend%(name)s' || place, 'Friend Number ' || place, now()
      FROM generate_series(1, %(count)d) AS place
      RETURNING id
    ), stamped AS (
      INSERT INTO user_stamps (user_id) SELECT id FROM added
    )
    INSERT INTO friendships (user_a, user_b)
    SELECT least(id, '%(me)s'::uuid), greatest(id, '%(me)s'::uuid) FROM added;
    """
EVENTS = """
    WITH planned AS (
      INSERT INTO events (
        id, creator_id, title, note, start_time, time_zone, location_name, live_until, start_offset, zone_rules,
        invited_count
      )
      SELECT gen_random_uuid(), '%(host)s', 'Evening in the park ' || place,
        'Bring something to eat, something to sit on and, if you have one, a game. We meet at the gate at half past.',
        date_trunc('second', now()) + place * interval '1 hour', 'Europe/Lisbon', 'Jardim da Estrela',
        now() + interval '2 years', 3600, '2025b', 1
      FROM generate_series(1, %(count)d) AS place
      RETURNING id
    )
    INSERT INTO invitations (event_id, user_id) SELECT id, '%(me)s' FROM planned;
    """
CASES = {"a friend's name, of 2,000 friends": (2000, 0), "a title, of 1,000 events": (0, 1000),
         "a title, of 5,000 events": (0, 5000)}


def measure(lab, cluster, service, number, friends, events, rounds):
    """Returns the launches, the seconds of the service and of PostgreSQL for one launch, and those of both for its most
    expensive request."""
    me, host = service.register(f"me{number}"), service.register(f"host{number}")
    service.befriend(me, host)
    psql = lab.psql()
    names = {"me": me.id, "host": host.id, "name": number}
    if friends:
        psql.run(FRIENDS % {**names, "count": friends - 1})
    if events:
        psql.run(EVENTS % {**names, "count": events})
    psql.run("VACUUM ANALYZE")
    phone = Phone(service.port, me, "stamps_and_changes", True)
    phone.launch()
    launches, seconds, requests = [], [], []
    phone.ask = timed(phone.ask, lambda: service.cpu_seconds() + cluster.cpu_seconds(), requests)
    for turn in range(rounds + 1):
        if friends:
            service.ask(host, "PATCH", "users/me", {"displayName": f"Another name {turn}"})
        else:
            items = phone.copies["events"].items
            service.ask(host, "PATCH", f"events/{items[turn * 37 % events][0]}", {"title": f"Another evening {turn}"})
        requests.append([])
        before = service.cpu_seconds(), cluster.cpu_seconds()
        launches.append(phone.launch())
        after = service.cpu_seconds(), cluster.cpu_seconds()
        seconds.append((after[0] - before[0], after[1] - before[1]))
        phone.check()
    # The first one was to warm up. A clock tick is 10 ms, so times are means.
    most = max(statistics.mean(times) for times in zip(*requests[1:]))
    return launches[1:], [statistics.mean(times) for times in zip(*seconds[1:])], most


def timed(ask, cpu_seconds, requests):
    """Adds the processor time of each call of `ask` to the last of `requests`."""
    def ask_and_note(*arguments, **options):
        before = cpu_seconds()
        response = ask(*arguments, **options)
        requests[-1].append(cpu_seconds() - before)
        return response
    return ask_and_note


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster()
    try:
        cluster.create("lists")
        with Lab(cluster, muster, "lists") as lab:
            code, output = lab.run("migrate")
            if code != 0:
                raise SystemExit(f"muster migrate: {output}")
            service = lab.service(MUSTER_RATE_LIMITS="off")
            before = os.getloadavg()[0]
            print("| change | requests | sent | received | service, ms | PostgreSQL, ms | longest request, ms |")
            print("|---|---|---|---|---|---|---|")
            for number, (name, (friends, events)) in enumerate(CASES.items()):
                launches, (serving, querying), most = measure(
                    lab, cluster, service, number, friends, events, arguments.rounds)
                requests, sent, received, _ = (statistics.median(values) for values in zip(*launches))
                print(
                    f"| {name} | {requests:.0f} | {sent:,.0f} | {received:,.0f} | {serving * 1000:.1f} "
                    f"| {querying * 1000:.1f} | {most * 1000:.1f} |")
            after = os.getloadavg()[0]
    finally:
        cluster.end()
    print(
        f"\n{datetime.date.today()}, {arguments.rounds} rounds, {os.cpu_count()} processors, "
        f"load {before:.1f} to {after:.1f}")


if __name__ == "__main__":
    main()
