#!/usr/bin/env python3
"""Shows what months of use do to the tables, within an hour: their bytes, dead rows and HOT updates, and the response
times of a mixed load at a fixed rate, by windows of ten minutes. Run it by hand, against a release build:

    Benchmarks/long-run.py --muster .build/release/muster

It starts a PostgreSQL cluster of its own, without TCP but with autovacuum, loads 300,000 users, and runs `serve` and
`worker`. 30 days pass in 300 seconds: inboxes keep their items for three to four times as long, and events that the load
has created enter the archive after that time, and are deleted after that time again. So the tables reach their full
size within the first two windows, and what grows afterwards would grow for ever. A short form takes minutes:

    Benchmarks/long-run.py --muster .build/release/muster --users 20000 --minutes 8 --window 2 --span 60 --rate 100

It needs Linux, PostgreSQL's programs, Python's standard library and, with 300,000 users, 8 GB in `--folder`.
"""
import argparse
import collections
import datetime
import json
import os
import random
import signal
import sys
import threading
import time

from abuse.lab import Lab
from abuse.machine import Cluster, Psql
from generator import Connection, percentile, read_tokens
from writes import ANSWERS, FRIENDS, read

# Of the requests, in percent: a phone asks far more often than it writes.
MIX = {"validate": 45, "feed": 15, "inbox": 15, "read": 5, "answer": 8, "edit": 8, "create": 4}

# With the clock of the calendar, and of the column's default, which use this function.
ACCELERATE = """
CREATE OR REPLACE FUNCTION notification_span() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN interval '{span} seconds';
DO $$
DECLARE
  name text;
BEGIN
  FOR name IN SELECT p.name FROM notification_partitions AS p LOOP EXECUTE format('DROP TABLE %I', name); END LOOP;
  PERFORM make_notification_partition(now() + period * notification_span()) FROM generate_series(-3, 1) AS period;
END $$;
UPDATE user_stamps SET inbox_floor = now() - 3 * notification_span();
VACUUM (FULL, ANALYZE) user_stamps
"""
# A partition counts for its table. Without tables that are empty.
TABLES = """
SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass, sum(pg_table_size(c.oid)), sum(pg_indexes_size(c.oid)),
  sum(s.n_dead_tup), sum(s.n_tup_upd), sum(s.n_tup_hot_upd), sum(s.n_live_tup), count(*) FILTER (WHERE c.relispartition)
FROM pg_class AS c JOIN pg_stat_user_tables AS s ON s.relid = c.oid
GROUP BY 1 HAVING sum(s.n_live_tup) > 0 ORDER BY 2 DESC
"""
INDEXES = """
SELECT coalesce(pg_partition_root(c.oid), c.oid)::regclass, sum(pg_relation_size(c.oid))
FROM pg_class AS c JOIN pg_index AS i ON i.indexrelid = c.oid AND i.indrelid >= 16384
WHERE c.relkind = 'i' AND c.relnamespace = 'public'::regnamespace
GROUP BY 1 HAVING sum(pg_relation_size(c.oid)) > 1 << 20 ORDER BY 2 DESC
"""
# The table that grows by design: an id stays taken after its event is deleted.
GROWING = {"spent_ids"}
# Smaller tables grow by whole pages.
SMALL = 4 << 20


def head(method, path, token, body=None):
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: benchmark", f"Authorization: Bearer {token}"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


class Load:
    """Makes the requests. Its random numbers are always the same, and its users are those with tokens."""

    def __init__(self, database, tokens, seed):
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.tokens = {user: token for user, _, token in tokens}
        self.users = list(self.tokens)
        self.own = [(event, token) for _, event, token in tokens]
        self.invitations = [(user, event) for user, event, _ in read(database, ANSWERS, self.users, 20_000)]
        self.friends = [(user, friends.split(",")) for user, friends in read(database, FRIENDS, self.users, 2000)]
        if not self.friends or not self.invitations:
            raise SystemExit("no user has ten friends and an invitation: load more users")
        # Times, ids and tokens of the events that the load has created, oldest first.
        self.created = collections.deque()

    def next(self, number):
        """Returns the kind of request, the request, and the token of an event that it creates."""
        with self.lock:
            kind = self.random.choices(list(MIX), MIX.values())[0]
            user = self.random.choice(self.users)
            token = self.tokens[user]
            if kind == "validate":
                return kind, head("POST", f"/api/v1/cache/validate/{user}", token, {}), None
            if kind == "feed":
                return kind, head("GET", "/api/v1/events?limit=20", token), None
            if kind == "inbox":
                return kind, head("GET", "/api/v1/notifications?limit=20", token), None
            if kind == "read":
                return kind, head("POST", "/api/v1/notifications/read", token, {"all": True}), None
            if kind == "answer":
                user, event = self.random.choice(self.invitations)
                body = {"status": self.random.choice(("going", "maybe", "declined"))}
                return kind, head("PUT", f"/api/v1/events/{event}/invitations/me", self.tokens[user], body), None
            if kind == "edit":
                live = [(event, token) for _, event, token in list(self.created)[-50:]]
                event, token = self.random.choice(live or self.own)
                if self.random.random() < 0.5:
                    event, token = self.random.choice(self.own)
                return kind, head("PATCH", f"/api/v1/events/{event}", token, {"title": f"Plan {number}"}), None
            user, friends = self.random.choice(self.friends)
            body = {
                "title": f"Plan {number}", "startTime": "2099-05-01T18:00:00Z", "timeZone": "Europe/Berlin",
                "inviteeIds": friends}
            return kind, head("POST", "/api/v1/events", self.tokens[user], body), self.tokens[user]

    def note(self, event, token):
        with self.lock:
            self.created.append((time.monotonic(), event, token))

    def take_older(self, seconds):
        with self.lock:
            old = []
            while self.created and self.created[0][0] < time.monotonic() - seconds:
                old.append(self.created.popleft()[1])
            return old


class Calendar:
    """Moves the times of the load's events, as if `span` seconds were 30 days: first past their end, then to an age in
    the archive at which the worker deletes them. Each costs one UPDATE that life would not have."""

    def __init__(self, database, load, span):
        self.psql, self.load, self.span = Psql(database), load, span
        self.archived = collections.deque()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.stopping.wait(2):
            self.turn()

    def turn(self):
        if over := self.load.take_older(self.span):
            self.update("start_time = now() - interval '31 hours', live_until = now() - interval '1 hour'", over)
            self.archived.append((time.monotonic(), over))
        while self.archived and self.archived[0][0] < time.monotonic() - self.span:
            _, events = self.archived.popleft()
            self.update("archived_at = archived_at - interval '200 days'", events)

    def update(self, assignments, events):
        ids = ",".join(f"'{event}'" for event in events)
        self.psql.run(f"UPDATE events SET {assignments} WHERE id IN ({ids})")

    def end(self):
        self.stopping.set()
        self.thread.join()
        self.psql.end()


def send(load, address, rate, seconds, callers, results):
    """Sends requests at a fixed rate. The time of one begins when it is due, also if all callers are busy then."""
    taken = iter(range(round(rate * seconds)))
    lock = threading.Lock()
    start = time.monotonic() + 0.5

    def call():
        connection = Connection(address)
        while True:
            with lock:
                number = next(taken, None)
                if number is None:
                    return
                kind, request, creates = load.next(number)
            due = start + number / rate
            if (pause := due - time.monotonic()) > 0:
                time.sleep(pause)
            status = connection.send(request)
            results.append((due - start, kind, (time.monotonic() - due) * 1000, status))
            if creates and status == 201:
                load.note(json.loads(connection.body)["id"], creates)

    threads = [threading.Thread(target=call, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    return threads, start


def sample(psql):
    tables = {}
    for line in psql.run(TABLES):
        name, *numbers = line.split("|")
        tables[name] = dict(
            zip(("heap", "indexes", "dead", "updates", "hot", "live", "partitions"), map(int, numbers)))
    indexes = {name: int(size) for name, size in (line.split("|") for line in psql.run(INDEXES))}
    return tables, indexes


def print_times(results, window, count):
    """Returns the p50 and p99 of all requests, by windows."""
    print("\n| from minute | requests | failed | p50 ms | p99 ms | " + " | ".join(f"{kind} p50, p99" for kind in MIX) + " |")
    print("|" + "---|" * (5 + len(MIX)))
    all_times = []
    for number in range(count):
        these = [one for one in results if number * window <= one[0] < (number + 1) * window]
        failures = collections.Counter(one[3] for one in these if not 200 <= one[3] < 300)
        failed = ", ".join(f"{count:,} with {status}" for status, count in failures.items()) or "0"
        times = [one[2] for one in these]
        p50, p99 = percentile(times, 0.5), percentile(times, 0.99)
        all_times.append((p50, p99))
        cells = []
        for kind in MIX:
            times = [one[2] for one in these if one[1] == kind] or [0]
            cells.append(f"{percentile(times, 0.5):.1f}, {percentile(times, 0.99):.1f}")
        print(f"| {number * window // 60:.0f} | {len(these):,} | {failed} | {p50:.2f} | {p99:.2f} | "
              + " | ".join(cells) + " |")
    return all_times


def print_tables(samples):
    last = len(samples) - 1
    windows = [f"{number}" for number in range(1, last + 1)]
    print("\nMB of a table, then of its indexes, at the end of each window; dead rows in the last; HOT updates since the "
          "start of the second\n")
    print("| table | " + " | ".join(windows) + " | dead rows | HOT |")
    print("|" + "---|" * (last + 3))
    for name, now in samples[last][0].items():
        cells = []
        for tables, _ in samples[1:]:
            one = tables.get(name)
            cells.append(f"{one['heap'] / 1e6:.1f} + {one['indexes'] / 1e6:.1f}" if one else "")
        since = samples[1][0].get(name, {"updates": 0, "hot": 0})
        updates = now["updates"] - since["updates"]
        hot = f"{(now['hot'] - since['hot']) / updates:.0%} of {updates:,}" if updates > 0 else ""
        print(f"| {name} | " + " | ".join(cells) + f" | {now['dead']:,} of {now['live']:,} | {hot} |")
    print("\nMB of the larger indexes\n")
    print("| index | " + " | ".join(windows) + " |")
    print("|" + "---|" * (last + 1))
    for name, size in samples[last][1].items():
        if size >= SMALL:
            print(f"| {name} | " + " | ".join(f"{one.get(name, 0) / 1e6:.1f}" for _, one in samples[1:]) + " |")


def measure(lab, psql, arguments, count):
    """Returns (second it was due, kind, milliseconds, status) of all requests, and samples before and after each
    window."""
    service = lab.service(MUSTER_CONNECTIONS_PER_ADDRESS="0", MUSTER_ACCESS_TOKEN_SECONDS="86400")
    lab.worker(MUSTER_EVENT_RETENTION_DAYS="180")
    load = Load(lab.url, read_tokens(os.path.join(lab.folder, "tokens")), seed=1)
    lab.keep(Calendar(lab.url, load, arguments.span))
    window = arguments.window * 60
    results, samples = [], [sample(psql)]
    threads, start = send(
        load, ("127.0.0.1", service.port), arguments.rate, count * window, arguments.callers, results)
    for number in range(count):
        time.sleep(max(0, start + (number + 1) * window - time.monotonic()))
        samples.append(sample(psql))
        print(f"{len(results):,} requests after {(number + 1) * arguments.window:.0f} minutes", file=sys.stderr)
    for thread in threads:
        thread.join()
    return results, samples


def growth(values):
    """Of the last value over the first one after the second window."""
    return values[-1] / values[0] if values[0] else 1


def print_verdict(all_times, samples):
    """Whether everything is flat within 10 % after the second window."""
    steep = []
    for place, name in enumerate(("p50", "p99")):
        values = [times[place] for times in all_times[1:]]
        steep.append((name, max(values) / min(values)))
    for name, now in samples[-1][0].items():
        if name not in GROWING and now["heap"] + now["indexes"] >= SMALL:
            sizes = [one[0][name]["heap"] + one[0][name]["indexes"] for one in samples[2:] if name in one[0]]
            steep.append((f"bytes of {name}", growth(sizes)))
    print("\n| after the second window | last / first, of times greatest / least | flat within 10 % |")
    print("|---|---|---|")
    for name, ratio in steep:
        print(f"| {name} | {ratio:.3f} | {'yes' if ratio <= 1.1 else 'no'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--users", type=int, default=300_000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--window", type=float, default=10, help="minutes")
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--span", type=int, default=300, help="the seconds that stand for 30 days, whole minutes")
    parser.add_argument("--callers", type=int, default=48)
    parser.add_argument("--folder", default="/tmp", help="where the cluster is, for example in memory")
    arguments = parser.parse_args()
    if arguments.span < 60 or arguments.span % 60:
        parser.error("--span must be whole minutes, because partitions are named by the minute")
    count = int(arguments.minutes // arguments.window)
    if count < 3:
        parser.error("--minutes must be three windows at least")
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))

    cluster = Cluster(arguments.folder, autovacuum="on", shared_buffers="1GB")
    try:
        cluster.create("long_run")
        with Lab(cluster, muster, "long_run") as lab:
            for command in (("migrate",), ("seed", "load", "--users", f"{arguments.users}", "--tokens", "tokens")):
                code, output = lab.run(*command, timeout=3600)
                if code != 0:
                    raise SystemExit(f"muster {' '.join(command)}: {output}")
            psql = lab.psql()
            psql.run(ACCELERATE.format(span=arguments.span))
            before = os.getloadavg()[0]
            results, samples = measure(lab, psql, arguments, count)
            after = os.getloadavg()[0]
    finally:
        cluster.end()

    version = os.popen("psql --version").read().split()[2]
    print(
        f"{datetime.date.today()}, {arguments.users:,} users, {arguments.rate:.0f} requests a second, 30 days in "
        f"{arguments.span} s, {os.cpu_count()} processors, PostgreSQL {version}, load {before:.1f} to {after:.1f}")
    window = arguments.window * 60
    all_times = print_times(results, window, count)
    print_tables(samples)
    print_verdict(all_times, samples)


if __name__ == "__main__":
    main()
