#!/usr/bin/env python3
"""Compares a database with many users with one with few, in one run: requests a second of validations, feeds and
edits, the pages that PostgreSQL reads for each, and the time of searches and recommendations. Run it by hand, against a
release build:

    Benchmarks/sizes.py --muster .build/release/muster [--users 20000 300000]

It starts a PostgreSQL cluster of its own, without TCP, with a database and a `muster serve` for each size, and stops
them at the end. The sizes take turns. The figures that count are the ratios; the pages repeat, whatever else the
machine does. No user of the data is called Maria, and many have a name that begins with Jo. 300,000 users take some
4 GB of disk. It needs Linux, PostgreSQL's programs, wrk and Python's standard library.
"""
import argparse
import contextlib
import datetime
import os
import signal
import statistics
import subprocess
import sys
import time

from abuse.lab import Lab
from abuse.machine import Cluster
from generator import Connection, median_ms, read_tokens, request, wrk

LOADS = ("validate", "feed", "update")
CALLS = ("users?query=maria", "users?query=jo", "users/recommended")
# How many requests count pages, and the seconds after which a backend has reported its counts.
COUNTED, REPORTED = 600, 11
LASTING = {"MUSTER_ACCESS_TOKEN_SECONDS": "86400"}


def asked(load, number, user, event, token):
    """The same requests as those of load.lua."""
    if load == "validate":
        stamps = dict.fromkeys(("friends", "events", "friendRequests", "invitations"), "2020-01-01T00:00:00Z")
        return request("POST", f"/api/v1/cache/validate/{user}", stamps, token)
    if load == "feed":
        return request("GET", "/api/v1/events?limit=20", {}, token)
    return request("PATCH", f"/api/v1/events/{event}", {"title": f"Counted {number}"}, token)


def pages(load, sides):
    """The pages that PostgreSQL reads, from memory or disk, for each request, on each side."""
    def read():
        time.sleep(REPORTED)
        return [
            int(psql.value("SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"))
            for _, _, psql in sides]

    before = read()
    for port, tokens, _ in sides:
        people, connection = read_tokens(tokens), Connection(("127.0.0.1", port))
        for number in range(COUNTED):
            if connection.send(asked(load, number, *people[number % len(people)])) != 200:
                raise SystemExit(f"{load}: {connection.body[:300]}")
    return [(after - before) / COUNTED for before, after in zip(before, read())]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--users", type=int, nargs=2, default=[20_000, 300_000], help="a smaller and a larger number")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=3, help="length of each load")
    parser.add_argument("--sql", default="", help="statements to run in each database before the loads, to try them")
    parser.add_argument("--preload", default="", help="a library for `muster serve`, such as libjemalloc.so.2")
    arguments = parser.parse_args()
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster(shared_buffers="1GB")
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.end)
        sides, services = [], []
        for users in arguments.users:
            cluster.create(f"users{users}")
            lab = stack.enter_context(Lab(cluster, muster, f"users{users}"))
            tokens = lab.seed(users, **LASTING)
            if arguments.sql:
                subprocess.run(["psql", lab.url, "-Xqc", arguments.sql], check=True)
            psql = lab.psql()
            size = int(psql.value("SELECT pg_database_size(current_database())"))
            services.append(lab.service(LD_PRELOAD=arguments.preload, **LASTING))
            sides.append((services[-1].port, tokens, psql))
            print(f"{users:,} users: {size / 1e6:,.0f} MB", flush=True)
        for side in sides:
            for load in LOADS:
                wrk(load, *side[:2], seconds=2)()  # to warm up
        load_before = os.getloadavg()[0]
        rates, costs, times = {}, {}, {}

        def run(load, side):
            """Returns requests a second, and microseconds of the service and of PostgreSQL for each."""
            before = services[side].cpu_seconds() + cluster.cpu_seconds()
            rate = wrk(load, *sides[side][:2], arguments.seconds)()
            took = services[side].cpu_seconds() + cluster.cpu_seconds() - before
            return rate, took / (rate * arguments.seconds) * 1e6

        for number in range(arguments.rounds):
            order = (0, 1) if number % 2 == 0 else (1, 0)
            for load in LOADS:
                these = {side: run(load, side) for side in order}
                for index, kind in enumerate((rates, costs)):
                    kind.setdefault(load, []).append((these[0][index], these[1][index]))
        callers = [read_tokens(tokens)[:60] for _, tokens, _ in sides]
        for number in range(arguments.rounds):
            for path in CALLS:
                these = [
                    median_ms(("127.0.0.1", port), [request("GET", f"/api/v1/{path}", {}, caller[2]) for caller in some])
                    for (port, _, _), some in zip(sides, callers)]
                times.setdefault(path, []).append(these)
        counts = {load: pages(load, sides) for load in LOADS}
        print(f"\n| load or call | {arguments.users[0]:,} users | {arguments.users[1]:,} users | ratio | by round |")
        print("|---|---|---|---|---|")
        for kind, unit, what in ((rates, "/s", ""), (costs, " µs", ", processor time"), (times, " ms", "")):
            for name, rounds in kind.items():
                few, many = (statistics.median(values) for values in zip(*rounds))
                ratios = [many / few for few, many in rounds]
                digits = 1 if kind is times else 0
                print(
                    f"| `{name}`{what} | {few:,.{digits}f}{unit} | {many:,.{digits}f}{unit} "
                    f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} |")
        for name, (few, many) in counts.items():
            print(f"| `{name}`, pages read | {few:.1f} | {many:.1f} | {many / few:.2f} | |")
        print(
            f"\n{datetime.date.today()}, medians of {arguments.rounds} interleaved rounds of {arguments.seconds} s, "
            f"{os.cpu_count()} processors, load {load_before:.1f} to {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
