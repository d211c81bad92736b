#!/usr/bin/env python3
"""Compares one, two and four `muster serve` processes on the same processors and the same database, in one run:
requests a second of all of them together, the processor time of a request, and their memory. Run it by hand, against a
release build:

    Benchmarks/processes.py --muster .build/release/muster

It starts a PostgreSQL cluster of its own, without TCP, and the processes, and stops them at the end. 64 connections are
divided between the processes, with a wrk for each. The numbers of processes take turns. The figures that count are the
ratios. If other work uses the processors, more processes get a larger share of them: then only the processor time
counts. It needs Linux, PostgreSQL's programs, wrk and Python's standard library.
"""
import argparse
import datetime
import os
import signal
import statistics
import sys

from abuse.lab import Lab
from abuse.machine import Cluster
from generator import wrk

LOADS = ("validate", "feed", "update")
CONNECTIONS = 64
LASTING = {"MUSTER_ACCESS_TOKEN_SECONDS": "86400"}


def resident(pid):
    """In MB."""
    with open(f"/proc/{pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=3, help="length of each load")
    parser.add_argument("--preload", default="", help="a library for `muster serve`, such as libjemalloc.so.2")
    arguments = parser.parse_args()
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster()
    try:
        cluster.create("processes")
        with Lab(cluster, muster, "processes") as lab:
            tokens = lab.seed(arguments.users, **LASTING)
            services = [
                lab.service(LD_PRELOAD=arguments.preload, **LASTING) for _ in range(max(arguments.processes))]

            def rate(load, count, seconds):
                waits = [wrk(load, service.port, tokens, seconds, CONNECTIONS // count) for service in services[:count]]
                return sum(wait() for wait in waits)

            def used():
                return sum(service.cpu_seconds() for service in services), cluster.cpu_seconds()

            for load in LOADS:
                rate(load, len(services), 1)  # to warm up
            load_before = os.getloadavg()[0]
            rates, costs = {}, {}
            for number in range(arguments.rounds):
                order = arguments.processes if number % 2 == 0 else arguments.processes[::-1]
                for load in LOADS:
                    for count in order:
                        start = used()
                        rates.setdefault((load, count), []).append(rate(load, count, arguments.seconds))
                        requests = rates[load, count][-1] * arguments.seconds / 1e6
                        costs.setdefault((load, count), []).append(
                            [(after - before) / requests for before, after in zip(start, used())])
            load_after = os.getloadavg()[0]
            memory = statistics.mean(resident(service.pid) for service in services)
    finally:
        cluster.end()
    first = arguments.processes[0]
    print("| load | processes | requests/s | ratio | by round | service, µs | PostgreSQL, µs |")
    print("|---|---|---|---|---|---|---|")
    for load in LOADS:
        for count in arguments.processes:
            ratios = [many / one for many, one in zip(rates[load, count], rates[load, first])]
            service, database = (statistics.median(times) for times in zip(*costs[load, count]))
            print(
                f"| `{load}` | {count} | {statistics.median(rates[load, count]):,.0f} "
                f"| {statistics.median(ratios):.2f} | {min(ratios):.2f} to {max(ratios):.2f} | {service:.0f} | {database:.0f} |")
    print(
        f"\n{datetime.date.today()}, {arguments.users:,} users, medians of {arguments.rounds} interleaved rounds of "
        f"{arguments.seconds} s, {CONNECTIONS} connections in all, {memory:.0f} MB for each process, {os.cpu_count()} "
        f"processors, load {load_before:.1f} to {load_after:.1f}")


if __name__ == "__main__":
    main()
