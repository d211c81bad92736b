#!/usr/bin/env python3
"""Faults and abuse: measures how one request, one user or one row affects everyone else. Each case measures from
outside and compares the result with a limit. Run it by hand, against a release build:

    Benchmarks/abuse.py --muster .build/release/muster

It starts a PostgreSQL cluster of its own, without TCP, and `muster migrate`, `serve` and `worker` on 127.0.0.1, and
stops them at the end. It takes a few minutes. It needs Linux, PostgreSQL's programs and Python's standard library. It
exits with 1 if a case fails. `--only NAME` runs one case, `--list` prints all names.
"""
import argparse
import datetime
import os
import resource
import signal
import subprocess
import sys
import time
import traceback

from abuse import connections, containment, database, delivery, gate, input, levers, operations, writes
from abuse.lab import Lab, Outcome
from abuse.machine import Cluster

CASES = {
    function.__name__.replace("_", "-"): function
    for module in (delivery, input, connections, containment, writes, gate, levers, operations, database)
    for function in module.CASES
}
LONGEST = 150  # seconds for one case


def run(name, cluster, muster):
    database = f"abuse-{name}"
    cluster.create(database, "migrated")
    signal.alarm(LONGEST)
    try:
        with Lab(cluster, muster, database) as lab:
            return CASES[name](lab)
    except Exception as error:
        traceback.print_exc(limit=-3)
        return Outcome(f"{type(error).__name__}: {error}".replace("\n", " ")[:200], "", False)
    finally:
        signal.alarm(0)
        cluster.drop(database)


def fail_for_time(*_):
    raise TimeoutError(f"the case took longer than {LONGEST} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--only", metavar="NAME", action="append", choices=CASES, help="may be given several times")
    parser.add_argument("--list", action="store_true", help="print the names of all cases")
    arguments = parser.parse_args()
    if arguments.list:
        return print("\n".join(CASES))
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    signal.signal(signal.SIGALRM, fail_for_time)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster()
    rows = []
    try:
        cluster.create("migrated")
        code, output = Lab(cluster, muster, "migrated").run("migrate")
        if code != 0:
            raise SystemExit(f"muster migrate: {output}")
        for name in arguments.only or CASES:
            load, start = os.getloadavg()[0], time.monotonic()
            outcome = run(name, cluster, muster)
            verdict = "ok" if outcome.ok else "FAILED"
            rows.append((name, outcome, verdict, load))
            seconds = time.monotonic() - start
            print(f"{name}: {outcome.measured}; limit: {outcome.limit}; {verdict} ({seconds:.0f} s)", flush=True)
    finally:
        cluster.end()

    version = subprocess.run(["psql", "--version"], capture_output=True, text=True).stdout.split()[2]
    print(f"\n{datetime.date.today()}, {os.cpu_count()} processors, PostgreSQL {version}\n")
    print("| case | measured | limit | | load |\n|---|---|---|---|---|")
    for name, outcome, verdict, load in rows:
        print(f"| `{name}` | {outcome.measured} | {outcome.limit} | {verdict} | {load:.1f} |")
    sys.exit(any(not outcome.ok for _, outcome, _, _ in rows))


if __name__ == "__main__":
    main()
