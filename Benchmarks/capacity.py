#!/usr/bin/env python3
"""Measures the inputs of growth.py: the bytes of a row of each table, and for each kind of request the processor time
of the service and of PostgreSQL, rows, transactions and WAL. Run it by hand, against a release build:

    Benchmarks/capacity.py --muster .build/release/muster --write Benchmarks/growth/measured.json

It starts a PostgreSQL cluster of its own, without TCP, `muster serve` and `muster worker --once`, and stops them at the
end. Counts of rows, transactions and WAL repeat. Processor times are those of this machine, and rise if other work uses
its caches. It needs Linux, PostgreSQL 15 or later with its contrib modules, wrk and Python's standard library.
"""
import argparse
import contextlib
import datetime
import itertools
import json
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid

import writes
from abuse.lab import Lab
from abuse.machine import Cluster
from generator import HERE, Connection, read_tokens, request

LASTING = {"MUSTER_ACCESS_TOKEN_SECONDS": "86400", "MUSTER_CONNECTIONS_PER_ADDRESS": "0"}
TABLES = (
    "users", "user_stamps", "friendships", "events", "invitations", "notifications", "sessions", "devices",
    "idempotency_keys",
)
COLLECTIONS = (
    "profile", "friends", "friendRequests", "sentFriendRequests", "events", "invitations", "blocks", "notifications",
    "notificationPreferences",
)
STREAMS = 400
SHARE_COUNTED = 300
DEVICES = """
    INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
    SELECT md5('session ' || id)::uuid, id, now(), 'k', now() FROM users;
    INSERT INTO devices (id, user_id, session_id, platform, token)
    SELECT md5('device ' || id)::uuid, id, md5('session ' || id)::uuid, 'log', 'device ' || id FROM users;
    """
# A table, or all partitions of it.
SIZE = """
    SELECT coalesce(sum(pg_total_relation_size(oid)), 0) FROM pg_class
    WHERE oid = '{0}'::regclass OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = '{0}'::regclass)
    """
TOUCHED = """
    SELECT count(*) FILTER (WHERE b.bufferid IS NOT NULL)::text || ' ' || (
      SELECT sum(pg_relation_size(oid)) / 8192 FROM pg_class
      WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i'))
    FROM pg_buffercache AS b
    JOIN pg_class AS c ON pg_relation_filenode(c.oid) = b.relfilenode
    WHERE b.reldatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
      AND c.relnamespace = 'public'::regnamespace AND b.relforknumber = 0
    """


# A name that 1 of 33 users has, in rows as large as theirs. `work_mem` is large enough for all matches.
MATCHES = 12_000
NAMESAKES = f"""
    CREATE TABLE namesakes AS
    SELECT n, ARRAY[CASE WHEN n % 33 = 0 THEN 'jo' ELSE 'x' || n % 1000 END] AS keys, repeat('x', 500) AS others
    FROM generate_series(1, {33 * MATCHES}) AS n;
    CREATE INDEX namesakes_by_key ON namesakes USING gin (keys) WITH (fastupdate = off);
    VACUUM ANALYZE namesakes;
    SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0;
    """


class Meter:
    """Counts of the database between two calls. Nothing else may write meanwhile."""

    def __init__(self, psql):
        self.psql = psql
        self.position = self.number = None

    def start(self):
        self.psql.run("CHECKPOINT")
        self.position = self.psql.value("SELECT pg_current_wal_insert_lsn()")
        self.number = int(self.psql.value("SELECT pg_snapshot_xmax(pg_current_snapshot())"))

    def stop(self):
        """Returns bytes of WAL, without and of pages in it; rows by kind of write; and transactions. A HOT update leaves
        nothing to VACUUM, unlike `updates` and `deletes`."""
        number = int(self.psql.value("SELECT pg_snapshot_xmax(pg_current_snapshot())"))
        end = self.psql.value("SELECT pg_current_wal_insert_lsn()")
        # WAL is only readable once it is flushed, and a transaction flushes it.
        self.psql.run("CREATE TABLE flush_of_meter (); DROP TABLE flush_of_meter")

        def count(pattern):
            return f"coalesce(sum(count) FILTER (WHERE name ~ '^{pattern}'), 0)"

        rows = self.psql.run(f"""
            SELECT coalesce(sum(record_size), 0), coalesce(sum(fpi_size), 0), {count("Heap2?/(MULTI_)?INSERT")},
              {count("Heap/HOT_UPDATE")}, {count("Heap/UPDATE")}, {count("Heap/DELETE")}
            FROM (
              SELECT "resource_manager/record_type" AS name, count, record_size, fpi_size
              FROM pg_get_wal_stats('{self.position}', '{end}', true)
            ) AS each
            """)
        names = ("wal", "wal_pages", "inserts", "hot_updates", "updates", "deletes")
        return {**dict(zip(names, map(float, rows[0].split("|")))), "transactions": number - self.number}


def send_all(port, requests, callers=1):
    """Sends each request once, on open connections."""
    left = iter(requests)
    lock = threading.Lock()
    failed = []

    def call():
        connection = Connection(("127.0.0.1", port))
        while True:
            with lock:
                asked = next(left, None)
            if asked is None:
                return
            status = connection.send(asked)
            if status not in (200, 201, 204):
                failed.append((status, connection.body[:300]))

    threads = [threading.Thread(target=call) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise SystemExit(f"{len(failed)} requests failed, the first with {failed[0]}")


def replay(port, requests, seconds, connections=4):
    """Reads, repeated as fast as the service responds, on few connections: with more, reads share statements and cost
    less. Returns their number."""
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for method, path, token, body in requests:
            file.write(f"{method}\t{path}\t{token}\t{json.dumps(body) if body is not None else ''}\n")
        file.flush()
        said = subprocess.run(
            ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", f"{HERE}/replay.lua", f"http://127.0.0.1:{port}"],
            env=dict(os.environ, REQUESTS=file.name, REPEAT="1"), text=True, check=True, stdout=subprocess.PIPE).stdout
    if "bad-status 0  socket-errors 0" not in said:
        raise SystemExit(f"the load failed: {said}")
    return int(re.search(r"(\d+) requests in", said)[1])


def claims_of_launch(port, people):
    """Validations of two lists with the stamps and digests of a phone's copies, in which one event is out of date."""
    connection = Connection(("127.0.0.1", port))
    for user, _, token in people:
        path = f"/api/v1/cache/validate/{user}?include=changes"
        old = "2020-01-01T00:00:00Z"
        connection.send(request("POST", path, {
            name: {"timestamp": None, "held": "", "limit": 500} for name in ("events", "invitations")}, token))
        verdicts = json.loads(connection.body)
        body = {}
        for name, verdict in verdicts.items():
            digests = [part["digest"] for part in verdict["parts"]]
            # The second one is out of date.
            held = "".join(digests[:1] + ["AAAAAAAAAAA"] + digests[2:])
            body[name] = {"timestamp": old, "held": held, "limit": 500}
        yield "POST", path, token, body


def reads(port, people):
    """Kinds of reads, each as a list of method, path, token and body."""
    stamps = dict.fromkeys(COLLECTIONS, "2020-01-01T00:00:00.000000Z")
    names = ("maria", "jo", "kim", "ana li", "peter", "lena m")

    def get(path):
        return [("GET", path.format(event=event), token, None) for _, event, token in people]

    return {
        "validate": [("POST", f"/api/v1/cache/validate/{user}", token, stamps) for user, _, token in people],
        "changes": list(claims_of_launch(port, people[:500])),
        "feed": get("/api/v1/events?limit=20"),
        "past": get("/api/v1/events?when=past&limit=20"),
        "event": get("/api/v1/events/{event}"),
        "inbox": get("/api/v1/notifications?limit=20"),
        "search": [
            ("GET", f"/api/v1/users?query={name.replace(' ', '%20')}", token, None)
            for (_, _, token), name in zip(people, itertools.cycle(names))],
        "recommended": get("/api/v1/users/recommended"),
    }


def edits(people):
    for number in itertools.count():
        for user, event, token in people:
            yield "PATCH", f"/api/v1/events/{event}", token, {"title": f"Another evening {number}"}


def refreshes(port, count):
    connection = Connection(("127.0.0.1", port))
    for number in range(count):
        connection.send(request("POST", "/api/v1/auth/register", {
            "username": f"capacity{number}", "email": f"capacity{number}@example.com", "password": "correct horse"}))
        yield "POST", "/api/v1/auth/refresh", None, {"refreshToken": json.loads(connection.body)["refreshToken"]}


class Run:
    """One database with its service, and the figures of each kind of work, for each request."""

    def __init__(self, cluster, lab, service, seconds):
        self.cluster, self.lab, self.service, self.seconds = cluster, lab, service, seconds
        self.psql = lab.psql()
        self.meter = Meter(self.psql)
        self.figures = {}

    def times(self, work):
        """Returns the result of the work, and the seconds of the service and of PostgreSQL that it took."""
        before = self.service.cpu_seconds(), self.cluster.cpu_seconds()
        result = work()
        return result, self.service.cpu_seconds() - before[0], self.cluster.cpu_seconds() - before[1]

    def note(self, name, **figures):
        self.figures[name] = {key: round(value, 2) for key, value in figures.items()}
        print(f"{name}: " + ", ".join(f"{key} {value:,.1f}" for key, value in figures.items()), flush=True)

    def read(self, name, requests):
        replay(self.service.port, requests, 1)  # to warm up
        rounds = []
        for _ in range(3):
            count, service, database = self.times(lambda: replay(self.service.port, requests, self.seconds))
            rounds.append((service / count * 1e6, database / count * 1e6))
        # The least of three: other work can only add.
        self.note(name, service_us=min(one for one, _ in rounds), database_us=min(one for _, one in rounds))

    def write(self, name, requests, count, callers=16):
        """Counts the first of the requests one by one, and takes the time of the others together."""
        asked = [
            request(method, path, body, token, key=token and str(uuid.uuid4()))
            for method, path, token, body in itertools.islice(requests, SHARE_COUNTED + count)]
        if len(asked) < SHARE_COUNTED + 200:
            raise SystemExit(f"{name}: only {len(asked)} requests")
        self.meter.start()
        send_all(self.service.port, asked[:SHARE_COUNTED])
        counts = self.meter.stop()
        rest = asked[SHARE_COUNTED:]
        rounds = []
        for part in (rest[0::3], rest[1::3], rest[2::3]):
            _, service, database = self.times(lambda: send_all(self.service.port, part, callers))
            rounds.append((service / len(part) * 1e6, database / len(part) * 1e6))
        self.note(
            name, service_us=min(one for one, _ in rounds), database_us=min(one for _, one in rounds),
            **{key: value / SHARE_COUNTED for key, value in counts.items()})

    def worker(self):
        """Runs the worker until nothing is left. Returns its seconds, those of PostgreSQL, and the counts."""
        self.meter.start()
        before = resource.getrusage(resource.RUSAGE_CHILDREN), self.cluster.cpu_seconds()
        with open(f"{self.lab.folder}/worker.log", "wb") as log:
            subprocess.run(
                [self.lab.muster, "worker", "--once"], env=self.lab.environment(), cwd=self.lab.folder, check=True,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        time.sleep(0.5)  # Its sessions end after it. One that is just ending is counted nowhere.
        after = resource.getrusage(resource.RUSAGE_CHILDREN), self.cluster.cpu_seconds()
        work = sum(getattr(after[0], name) - getattr(before[0], name) for name in ("ru_utime", "ru_stime"))
        return {"service_us": work * 1e6, "database_us": (after[1] - before[1]) * 1e6, **self.meter.stop()}

    def work(self, name, count, idle):
        """What the worker does for each of `count` things, beyond a run with nothing to do."""
        done = self.worker()
        self.note(name, **{key: max(0, done[key] - idle[key]) / count for key in done})

    def count(self, query):
        return int(self.psql.value(query))


def bytes_of_tables(run):
    """Bytes of a row with its indexes, for tables that have rows."""
    sizes = {}
    for table in TABLES:
        rows = run.count(f"SELECT count(*) FROM {table}")
        if rows >= 500:
            sizes[table] = round(run.count(SIZE.format(table)) / rows, 1)
    return sizes


def matching(lab):
    """Microseconds for each match of a search that is looked up in the index. The least of several runs."""
    psql = lab.psql()
    psql.run(NAMESAKES)
    plans = [
        psql.run("EXPLAIN (ANALYZE, COSTS OFF) SELECT n FROM namesakes WHERE keys @> '{jo}' LIMIT 200")
        for _ in range(7)]
    psql.run("DROP TABLE namesakes")
    times = [re.search(rf"Bitmap Index Scan.*?\.\.([0-9.]+) rows={MATCHES}", "\n".join(plan))[1] for plan in plans]
    return min(map(float, times)) / MATCHES * 1000


def streams(service, people):
    """Bytes of memory for each open stream."""
    def resident():
        with open(f"/proc/{service.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) * 1024

    before = resident()
    with contextlib.ExitStack() as stack:
        for _, _, token in people[:STREAMS]:
            stream = stack.enter_context(socket.create_connection(("127.0.0.1", service.port)))
            stream.sendall(request("GET", "/api/v1/notifications/stream", {}, token))
            if b" 200 " not in stream.recv(4096).split(b"\r\n", 1)[0]:
                raise SystemExit("a stream did not open")
        time.sleep(3)
        return (resident() - before) / STREAMS


def touched(cluster, muster, people):
    """The share of all pages that a day of `people` touches, in a copy of the database that no one has read: a launch
    that finds two lists out of date, a page of an event, the inbox, and an edit."""
    cluster.create("day", template="capacity")
    with Lab(cluster, muster, "day") as lab:
        psql = lab.psql()
        psql.run("CREATE EXTENSION pg_buffercache")
        service = lab.service(**LASTING)
        asked = [request(*launch[:2], launch[3], launch[2]) for launch in claims_of_launch(service.port, people)]
        asked += [
            request("GET", path.format(event=event), {}, token) for _, event, token in people
            for path in ("/api/v1/events/{event}", "/api/v1/notifications?limit=20")]
        asked += [
            request("PATCH", f"/api/v1/events/{event}", {"title": "Another day"}, token) for _, event, token in people]
        send_all(service.port, asked, callers=8)
        some, total = psql.value(TOUCHED).split()
    cluster.drop("day")
    return int(some) / float(total)


def measure(cluster, muster, users, preload, seconds):
    cluster.create("capacity")
    with Lab(cluster, muster, "capacity") as lab:
        people = read_tokens(lab.seed(users, **LASTING))
        tokens = {user: token for user, _, token in people}
        sizes_psql = lab.psql()
        size = int(sizes_psql.value("SELECT pg_database_size(current_database())"))
        sizes_psql.run("CREATE EXTENSION pg_walinspect")
        sizes_psql.end()
        share = touched(cluster, muster, people)
        service = lab.service(LD_PRELOAD=preload, **LASTING)
        run = Run(cluster, lab, service, seconds)
        for name, requests in reads(service.port, people).items():
            run.read(name, requests)
        run.write("refresh", refreshes(service.port, SHARE_COUNTED + 2000), 2000)
        run.worker()
        idle = run.worker()
        run.write("edit", edits(people), 4000)
        run.write("answer", writes.answers(lab.url, tokens, 4000), 3000)
        run.write("accept", writes.accepts(lab.url, tokens, 3000), 2000)
        run.worker()
        run.write("create", writes.creations(lab.url, tokens, 2000), 1500)
        recipients = run.count("SELECT coalesce(sum(cardinality(recipient_ids)), 0) FROM notification_queue")
        run.work("notification", recipients, idle)
        unread = [
            ("POST", "/api/v1/notifications/read", token, {"all": True}) for user, token in tokens.items()]
        run.write("read", unread, 1500)
        run.worker()
        # The same with a device for each user: the difference is the delivery.
        run.psql.run(DEVICES)
        run.psql.run("VACUUM ANALYZE")
        run.write("create with devices", writes.creations(lab.url, tokens, 2000), 1500)
        recipients = run.count("SELECT coalesce(sum(cardinality(recipient_ids)), 0) FROM notification_queue")
        run.work("notification with delivery", recipients, idle)
        del run.figures["create with devices"]
        sizes = bytes_of_tables(run)
        run.psql.run("""
            UPDATE events SET live_until = now() - interval '1 minute'
            WHERE id IN (SELECT id FROM events WHERE archived_at IS NULL ORDER BY id LIMIT 5000)""")
        run.work("archived event", 5000, idle)
        version = run.psql.value("SHOW server_version")
        return {
            "each": run.figures, "match_us": round(matching(lab), 4), "bytes": sizes, "bytes_of_user": round(size / users),
            "bytes_of_stream": round(streams(service, people)),
            "touched": {"users": len(people) / users, "pages": share},
        }, version


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--muster", default="muster", help="the muster program, a release build")
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--seconds", type=int, default=3, help="length of each load of reads")
    parser.add_argument("--preload", default="", help="a library for `muster serve`, such as libjemalloc.so.2")
    parser.add_argument("--compress", default="off", help="PostgreSQL's wal_compression, such as lz4")
    parser.add_argument("--write", help="a file for the figures, as JSON")
    arguments = parser.parse_args()
    muster = os.path.abspath(arguments.muster) if "/" in arguments.muster else arguments.muster
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    before = os.getloadavg()[0]
    cluster = Cluster(shared_buffers="1GB", wal_compression=arguments.compress)
    try:
        figures, version = measure(cluster, muster, arguments.users, arguments.preload, arguments.seconds)
    finally:
        cluster.end()
    figures["when"] = (
        f"{datetime.date.today()}, {arguments.users:,} users, {os.cpu_count()} processors, "
        f"PostgreSQL {version.split()[0]}, wal_compression {arguments.compress}, load {before:.1f} to {os.getloadavg()[0]:.1f}")
    text = json.dumps(figures, indent=2)
    print(text)
    if arguments.write:
        with open(arguments.write, "w") as file:
            file.write(text + "\n")


if __name__ == "__main__":
    main()
