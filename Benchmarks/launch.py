#!/usr/bin/env python3
"""Measures a launch of a phone whose user has 200 friends, 100 events and 50 items in the inbox, in four ways: all
pages of all lists; validation with the stale items (`include=items`); validation with what has changed in them
(`include=changes`), which sends all digests; and the same in two requests, the second with the digests of what the
first has found stale. Run it by hand, against a release build:

    Benchmarks/launch.py --muster .build/release/muster

It starts a PostgreSQL cluster of its own, without TCP, and `muster migrate`, `worker --once` and `serve`, and stops
them at the end. It needs Linux, PostgreSQL's programs and Python's standard library. After each round, it checks that
all phones have what the service sends; otherwise it fails.
"""
import argparse
import datetime
import os
import signal
import statistics
import subprocess
import sys

from abuse.lab import Lab
from abuse.machine import Cluster
from launch.phone import Launch, Phone
from launch.world import World

WAYS = {
    "lists": "full lists", "items": "`include=items`", "changes": "`include=changes`",
    "stamps_and_changes": "stamps, then `include=changes`",
}
# With the past events, and an event with its guests that was opened before.
SCREENS = {"lists_and_screens": "full lists and screens", "changes_and_screens": "`include=changes`"}
SITUATIONS = {"empty": "first launch", "changed": "1 of 100 events changed", "unchanged": "nothing changed"}
SITUATIONS_OF_SCREENS = SITUATIONS | {"ended": "1 of 100 events ended"}


def measure(service, world, rounds):
    """Returns the launches of each (situation, way, compressed)."""
    launches = {}
    kinds = [(way, compressed) for way in WAYS for compressed in (False, True)]
    phones = {kind: Phone(service.port, world.me, *kind) for kind in kinds}

    def launch_all(situation, number):
        # The phones take turns in going first.
        order = list(phones.items())
        for kind, phone in order[number % len(order):] + order[:number % len(order)]:
            launches.setdefault((situation, *kind), []).append(phone.launch())
        for phone in phones.values():
            phone.check()

    for number in range(rounds + 1):
        for phone in phones.values():
            phone.copies = {name: type(copy)() for name, copy in phone.copies.items()}
        launch_all("empty", number)
        world.change_an_event()
        launch_all("changed", number)
        launch_all("unchanged", number)
        if number == 0:
            launches.clear()  # It was to warm up.
    return launches


def measure_screens(service, world, rounds):
    """The same with the past events and an opened event."""
    launches = {}
    kinds = [(way, compressed) for way in SCREENS for compressed in (False, True)]
    phones = {kind: Phone(service.port, world.me, *kind, world.opened) for kind in kinds}
    for _ in range(rounds):
        for phone in phones.values():
            phone.copies = {name: type(copy)() for name, copy in phone.copies.items()}
            phone.forget_screens()
        for situation in SITUATIONS_OF_SCREENS:
            if situation == "changed":
                world.change_an_event()
            if situation == "ended":
                world.end_an_event()
            for kind, phone in phones.items():
                launches.setdefault((situation, *kind), []).append(phone.launch())
                phone.check()
        world.end_an_event(False)
    return launches


def median(launches):
    return Launch(*(statistics.median(values) for values in zip(*launches)))


def print_table(launches, compressed):
    print(f"\n{'With' if compressed else 'Without'} gzip:\n")
    print("| launch | way | requests | bytes sent | received | received / full | both / full | time / full | ms |")
    print("|---|---|---|---|---|---|---|---|---|")
    for situation, words in SITUATIONS.items():
        full = launches[situation, "lists", compressed]
        base = median(full)
        for way, name in WAYS.items():
            these = launches[situation, way, compressed]
            one = median(these)
            # Each round's launch is compared with the same round's full lists.
            ratio = statistics.median(this.seconds / other.seconds for this, other in zip(these, full))
            both = (one.sent + one.received) / (base.sent + base.received)
            print(
                f"| {words} | {name} | {one.requests:.0f} | {one.sent:,.0f} | {one.received:,.0f} "
                f"| {one.received / base.received:.3f} | {both:.3f} | {ratio:.2f} | {one.seconds * 1000:.1f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--rounds", type=int, default=30)
    arguments = parser.parse_args()
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster()
    try:
        cluster.create("launch")
        with Lab(cluster, muster, "launch") as lab:
            code, output = lab.run("migrate")
            if code != 0:
                raise SystemExit(f"muster migrate: {output}")
            service = lab.service()
            world = World(lab, service)
            before = os.getloadavg()[0]
            launches = measure(service, world, arguments.rounds)
            screens = measure_screens(service, world, 3)
            after = os.getloadavg()[0]
    finally:
        cluster.end()

    version = subprocess.run(["psql", "--version"], capture_output=True, text=True).stdout.split()[2]
    print(
        f"{datetime.date.today()}, medians of {arguments.rounds} interleaved rounds, {os.cpu_count()} processors, "
        f"PostgreSQL {version}, load {before:.1f} to {after:.1f}")
    print_table(launches, False)
    print_table(launches, True)
    print("\nWith 52 past events, and an opened event with its ten guests:\n")
    print("| launch | way | requests | sent | received | sent, with gzip | received |")
    print("|---|---|---|---|---|---|---|")
    for situation, words in SITUATIONS_OF_SCREENS.items():
        for way, name in SCREENS.items():
            plain, small = (median(screens[situation, way, compressed]) for compressed in (False, True))
            print(
                f"| {words} | {name} | {plain.requests:.0f} | {plain.sent:,.0f} | {plain.received:,.0f} "
                f"| {small.sent:,.0f} | {small.received:,.0f} |")


if __name__ == "__main__":
    main()
