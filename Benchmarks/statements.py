#!/usr/bin/env python3
"""Counts the instructions that each statement of a request costs PostgreSQL, in user mode, with valgrind: on any
machine, whatever else it does. Run it by hand, against a release build:

    Benchmarks/statements.py --muster .build/release/muster feed update

`--pgbench FILE` counts nothing. It writes the statements of an edit, in their two round trips, as a script for pgbench.

It starts a PostgreSQL cluster and `muster serve` of its own, and sends each request a few times. Then it stops both,
and runs the statements that PostgreSQL has logged again, in a single process without clients: 20 times, and 120 times.
So a count has neither the planning of the statement nor the sending of its rows. It needs Linux, valgrind, PostgreSQL's
programs and Python's standard library.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import time

from abuse.lab import Lab
from abuse.machine import Cluster
from generator import read_tokens

# Method, path, body, and the pattern of the path, with which the service marks the statements of a request.
WORKS = {
    "feed": ("GET", "/api/v1/events?limit=20", None, "/api/v1/events"),
    "event": ("GET", "/api/v1/events/{event}", None, "/api/v1/events/{id}"),
    "update": ("PATCH", "/api/v1/events/{event}", {"title": "Title {number}"}, "/api/v1/events/{id}"),
    "validate": ("POST", "/api/v1/cache/validate/{user}", {}, "/api/v1/cache/validate/{userId}"),
}
# An entry of the log is a line, and further lines that begin with a tab.
TEXT = r"(.*\n(?:\t.*\n)*)"
ENTRY = re.compile(rf"LOG:  duration: [0-9.]+ ms  bind [^:]*: {TEXT}(?:.* DETAIL:  [Pp]arameters: {TEXT})?")
VALUE = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")
SETTINGS = ["shared_buffers=256MB", "plan_cache_mode=force_generic_plan", "jit=off"]


def literal(text):
    """Integers have no quotes, so that PostgreSQL does not take them for text."""
    return text[1:-1] if re.fullmatch(r"'-?\d{1,18}'", text) else text


def statements(log, mark):
    """The statements of a request, with values for their parameters."""
    found = []
    for text, values in ENTRY.findall(log):
        if mark not in text:
            continue
        values = {int(number): literal(value) for number, value in VALUE.findall(values.replace("\n\t", "\n"))}
        text = text.replace("\n\t", "\n").replace(mark, "").strip()
        if not values and "$1" in text:
            raise SystemExit(f"the log has no parameters for: {text}")
        found.append(re.sub(r"\$(\d+)", lambda match: values[int(match[1])], text))
    return found


def pgbench_script(edit, event, host):
    """The statements of an edit, of the events in the table benchmark_events, each by its creator."""
    edit = [text.replace(f"'{event}'", ":event::uuid").replace(f"'{host}'", ":host::uuid") for text in edit]
    edit = [re.sub("SET title = '[^']*'", "SET title = 'Title ' || random()", text) for text in edit]
    locking, *others = [f"{text};" for text in edit]
    return "\n".join([
        r"\set n random(1, 1000)", r"SELECT id AS event, creator_id AS host FROM benchmark_events WHERE n = :n \gset",
        r"\startpipeline", "BEGIN;", locking, r"\endpipeline",
        r"\startpipeline", *others, "COMMIT;", r"\endpipeline", "",
    ])


def instructions(cluster, statement):
    """Of one run of a statement in a transaction of its own."""

    def run(times, statement):
        is_read = statement.upper().startswith(("SELECT", "WITH"))
        body = f"FOR line IN {statement} LOOP END LOOP;" if is_read else f"{statement};" if statement else ""
        loop = f"DO $loop$ DECLARE line record; BEGIN FOR n IN 1..{times} LOOP {body} COMMIT; END LOOP; END $loop$;\n\n"
        command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", cluster.program, "--single", "-j"]
        command += ["-D", f"{cluster.folder}/data", *(word for setting in SETTINGS for word in ("-c", setting))]
        said = subprocess.run(
            [*command, "statements"], input=loop, capture_output=True, text=True, cwd=cluster.folder,
            env=dict(os.environ, TMPDIR=cluster.folder), **cluster.account).stderr
        collected = re.search(r"Collected : (\d+)", said)
        if not collected or "ERROR:" in said:
            sys.exit(f"{statement}\n{said[-2000:]}")
        return int(collected[1])

    return (run(120, statement) - run(20, statement) - run(120, "") + run(20, "")) // 100


def requested(works, cluster, muster):
    """Sends the requests. Returns the statements of each, and the event and its creator."""
    with Lab(cluster, muster, "statements") as lab:
        tokens = f"{cluster.folder}/tokens"
        for command in (["migrate"], ["seed", "load", "--users", "20000", "--tokens", tokens]):
            code, output = lab.run(*command)
            if code != 0:
                raise SystemExit(f"muster {' '.join(command)}: {output}")
        user, event, token = read_tokens(tokens)[0]
        cluster.ask("ALTER DATABASE statements SET log_min_duration_statement = 0")
        service = lab.service()
        found = {}
        for work in works:
            method, path, body, pattern = WORKS[work]
            for number in range(3):
                time.sleep(0.5)  # PostgreSQL logs after it has responded.
                start = os.path.getsize(f"{cluster.folder}/log")
                sent = body and {name: value.format(number=number) for name, value in body.items()}
                response = service.call(method, path.format(user=user, event=event), sent, token)
                if response.status != 200:
                    raise SystemExit(f"{method} {path}: {response.status} {response.body}")
            time.sleep(0.5)
            with open(f"{cluster.folder}/log") as file:
                file.seek(start)
                found[work] = statements(file.read(), f"/* {method} {pattern} */ ")
    return found, event, user


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("works", nargs="*", help=", ".join(WORKS))
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--pgbench", metavar="FILE", help="the script to write")
    arguments = parser.parse_args()
    if arguments.pgbench and arguments.works:
        parser.error("--pgbench writes the statements of update only")
    works = arguments.works or list(WORKS)
    if unknown := set(works) - set(WORKS):
        parser.error(f"no such request: {', '.join(unknown)}")
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster()
    try:
        cluster.create("statements")
        found, event, user = requested(["update"] if arguments.pgbench else works, cluster, muster)
        if arguments.pgbench:
            with open(arguments.pgbench, "w") as file:
                file.write(pgbench_script(found["update"], event, user))
            return
        cluster.stop()
        for work in works:
            counts = [(instructions(cluster, text), " ".join(text.split())[:90]) for text in found[work]]
            print(f"{work}: {sum(number for number, _ in counts):,} instructions")
            for number, text in counts:
                print(f"{number:12,}  {text}", flush=True)
    finally:
        cluster.end()


if __name__ == "__main__":
    main()
