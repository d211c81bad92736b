#!/usr/bin/env python3
"""Measures the queue of notifications, with the real `muster worker`, and with `muster serve` for changes over HTTP.
Run it by hand, on a migrated database of its own (it adds users, and empties the queue), with DATABASE_URL and both
key variables set:

    Benchmarks/deliveries.py [drain] [fan-out] [latency] [cost] [idle]

Deliveries go to devices of the platform `log`, the cheapest channel: each is a line of the worker's stderr.

drain    deliveries per second while a full table is emptied: claimed, sent and deleted with durable commits
fan-out  recipients per second while a full queue is fanned out into inboxes, for users without devices: of notices
         about an event each, and about 16 events
latency  milliseconds from the beginning of a change's transaction to the worker's line, while events are changed over
         HTTP at a fixed rate
cost     the cost of a notice: the same hosts make the same edit of events whose ten guests are invited, and of events
         whose ten guests have declined, in turns. A worker runs, and a turn ends when the queue is empty. Requests per
         second, and processor time of service, worker and PostgreSQL for each edit
idle     deliveries per second while notices come at a fixed rate, at the beginning and at the end of a period in which
         one transaction stays open and keeps dead rows from being removed
"""
import argparse
import collections
import json
import os
import signal
import socket
import statistics
import subprocess
import threading
import time

from abuse.machine import Psql
from generator import Connection, percentile, request, run

PEOPLE = 1000
HOT_EVENTS = 16
FIXTURE = f"""
INSERT INTO users (id, username, display_name)
SELECT md5('deliveries user ' || n)::uuid, 'deliveries-' || n, 'Reader' FROM generate_series(1, {PEOPLE}) AS n
ON CONFLICT DO NOTHING;
INSERT INTO users (id, username, display_name)
SELECT md5('deliveries guest ' || n)::uuid, 'guest-' || n, 'Guest' FROM generate_series(1, {PEOPLE}) AS n
ON CONFLICT DO NOTHING;
INSERT INTO user_stamps (user_id) SELECT id FROM users ON CONFLICT DO NOTHING;
INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
SELECT md5('deliveries session ' || n)::uuid, md5('deliveries user ' || n)::uuid, now(), 'k', now()
FROM generate_series(1, {PEOPLE}) AS n
ON CONFLICT DO NOTHING;
INSERT INTO devices (id, user_id, session_id, platform, token)
SELECT md5('deliveries device ' || n)::uuid, md5('deliveries user ' || n)::uuid,
  md5('deliveries session ' || n)::uuid, 'log', 'deliveries ' || n
FROM generate_series(1, {PEOPLE}) AS n
ON CONFLICT DO NOTHING;
"""
PAYLOAD = "jsonb_build_object('type', 'event-invited', 'title', 'Picnic', 'actor', 'Ana', 'eventId', event)"
# As changes write them. Each is about another subject, as most are.
NOTICES = f"""
INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
SELECT 'event-invited', event, ARRAY[md5('deliveries user ' || 1 + n %% {PEOPLE})::uuid], {PAYLOAD}
FROM (SELECT n, gen_random_uuid() AS event FROM generate_series(%s, %s) AS n) AS each
"""
# Notices for ten recipients each, without devices. In turns about a number of events.
GUESTS = f"""
INSERT INTO notification_queue (type, subject_id, recipient_ids, payload)
SELECT 'event-updated', event,
  ARRAY(SELECT md5('deliveries guest ' || 1 + (10 * n + g) %% {PEOPLE})::uuid FROM generate_series(1, 10) AS g), {PAYLOAD}
FROM (
  SELECT n, md5('deliveries event ' || n %% %(events)s)::uuid AS event
  FROM generate_series(%(first)s, %(last)s) AS n) AS each
"""
DELIVERIES = f"""
INSERT INTO deliveries (notification_id, recipient_id, device_id, type, subject_id, payload, created_at)
SELECT gen_random_uuid(), md5('deliveries user ' || 1 + n %% {PEOPLE})::uuid,
  md5('deliveries device ' || 1 + n %% {PEOPLE})::uuid, 'event-invited', event, {PAYLOAD}, now()
FROM (SELECT n, gen_random_uuid() AS event FROM generate_series(%(first)s, %(last)s) AS n) AS each
"""
TABLES = ("notification_queue", "deliveries")
DEPTH = "SELECT (SELECT count(*) FROM notification_queue) + (SELECT count(*) FROM deliveries)"


class Program:
    """A `muster` program that runs until it is stopped."""

    def __init__(self, arguments, said, *command, output=None):
        environment = dict(
            os.environ, MUSTER_RATE_LIMITS="off", MUSTER_THROTTLING="off", MUSTER_SCRYPT="ln=4,r=8,p=1",
            MUSTER_PUBLIC_URL="http://127.0.0.1:8080", MUSTER_METRICS_LISTEN="off")
        self.process = subprocess.Popen(
            [arguments.muster, *command], env=environment, stderr=subprocess.PIPE if output is None else output)
        if output is None and said:
            for line in self.process.stderr:
                if said in line.decode():
                    return
            raise SystemExit(f"muster {command[0]} ended")

    def lines(self, take):
        """Passes all further lines, with their times, to a function on another thread."""

        def read():
            for line in self.process.stderr:
                take(line, time.time())

        threading.Thread(target=read, daemon=True).start()

    def end(self):
        self.process.terminate()
        self.process.wait()


class Service(Program):
    def __init__(self, arguments):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        super().__init__(arguments, "listening", "serve", "--port", str(port))
        self.lines(lambda line, when: None)
        self.address = ("127.0.0.1", port)
        self.connection = Connection(self.address)

    def ask(self, method, path, body, token, *expected):
        status = self.connection.send(request(method, f"/api/v1/{path}", body, token))
        if status not in expected:
            raise SystemExit(f"{method} {path}: {status} {self.connection.body.decode()}")
        return json.loads(self.connection.body) if self.connection.body else None

    def register(self, name):
        """Registers a new user. Returns the id and the access token."""
        name = f"{name}-{os.getpid()}-{time.time_ns() % 10**9}"
        account = {"username": name, "email": f"{name}@example.com", "password": "correct horse battery"}
        response = self.ask("POST", "auth/register", account, None, 201)
        return response["user"]["id"], response["accessToken"]

    def befriend(self, one, other):
        # Two crossing requests make friends immediately.
        self.ask("POST", "friend-requests", {"receiverId": other[0]}, one[1], 201)
        self.ask("POST", "friend-requests", {"receiverId": one[0]}, other[1], 200)

    def plan(self, host, guests):
        event = {
            "title": "Picnic", "startTime": "2040-05-01T18:00:00Z", "timeZone": "UTC",
            "inviteeIds": [guest[0] for guest in guests],
        }
        return self.ask("POST", "events", event, host[1], 201)["id"]

    def edits(self, event, host, titles):
        return [request("PATCH", f"/api/v1/events/{event}", {"title": title}, host[1]) for title in titles]


def durability(psql):
    names = ("fsync", "synchronous_commit", "full_page_writes", "wal_sync_method")
    return ", ".join(f"{name} {psql.value(f'SHOW {name}')}" for name in names)


def fill(psql, rows, statement, **values):
    for first in range(0, rows, 10_000):
        psql.run(statement % dict(values, first=first + 1, last=min(rows, first + 10_000)))


def empty(psql):
    for table in TABLES:
        psql.run(f"DELETE FROM {table}")
        psql.run(f"VACUUM ANALYZE {table}")


def start_workers(arguments, output):
    command = ["worker", "--concurrency", str(arguments.concurrency)]
    return [Program(arguments, "", *command, output=output) for _ in range(arguments.workers)]


def drain(arguments, psql):
    rates = emptying(arguments, psql, DELIVERIES, arguments.rows)
    spread = f"{min(rates):.0f} to {max(rates):.0f}"
    print(f"drain: {statistics.median(rates):.0f} deliveries/s ({spread}), goal 15,000; {durability(psql)}")


def fan_out(arguments, psql):
    notices = arguments.rows // 10
    for events in (notices, HOT_EVENTS):
        rates = [10 * rate for rate in emptying(arguments, psql, GUESTS, notices, events=events)]
        spread = f"{min(rates):.0f} to {max(rates):.0f}"
        print(
            f"fan-out: {statistics.median(rates):.0f} recipients/s ({spread}) of {notices} notices about {events} events;"
            f" {durability(psql)}")


def emptying(arguments, psql, statement, count, **values):
    """Returns the rows per second from 10 % to 95 % of the rows, without the start and the end of the workers."""
    rates = []
    for _ in range(arguments.rounds):
        empty(psql)
        fill(psql, count, statement, **values)
        for table in TABLES:
            psql.run(f"ANALYZE {table}")
        psql.run("CHECKPOINT")
        samples = []
        workers = start_workers(arguments, subprocess.DEVNULL)
        deadline = time.monotonic() + count / 100
        try:
            while True:
                depth, when = psql.value(f"SELECT ({DEPTH}), extract(epoch FROM clock_timestamp())").split("|")
                samples.append((int(depth), float(when)))
                if depth == "0":
                    break
                if time.monotonic() > deadline or any(worker.process.poll() is not None for worker in workers):
                    raise SystemExit(f"the workers did not empty the queue: {depth} rows are left")
                time.sleep(0.02)
        finally:
            for worker in workers:
                worker.end()
        first = next(sample for sample in samples if sample[0] <= count * 0.9)
        last = next(sample for sample in samples if sample[0] <= count * 0.05)
        rates.append((first[0] - last[0]) / max(1e-9, last[1] - first[1]))
        begun = next(sample[1] for sample in samples if sample[0] < count)
        print(f"  {rates[-1]:8.0f} rows/s, {count} in {samples[-1][1] - begun:.2f} s", flush=True)
    return rates


def latency(arguments, psql):
    """Changes events over HTTP, each another one than before, so that no delivery waits for an earlier one."""
    service = Service(arguments)
    worker = None
    try:
        host, guest = service.register("host"), service.register("guest")
        service.befriend(host, guest)
        service.ask("PUT", "devices", {"platform": "log", "token": f"deliveries-{guest[0]}"}, guest[1], 201)
        events = [service.plan(host, [guest]) for _ in range(200)]
        empty(psql)
        arrived = {}

        def take(line, when):
            if b'"notification"' in line:
                arrived.setdefault(json.loads(line)["id"], when)

        command = ["worker", "--concurrency", str(arguments.concurrency)]
        worker = Program(arguments, "working", *command)
        worker.lines(take)
        total = int(arguments.changes * arguments.seconds)
        changes = [
            edit for turn in range(1 + total // len(events))
            for event in events for edit in service.edits(event, host, [f"Picnic {turn}"])
        ][:total]
        begun = time.time()
        results, late = run(service.address, changes, arguments.changes, len(changes) / arguments.changes, 16)
        statuses, late = dict(collections.Counter(status for _, status in results)), max(0.0, late)
        filed = {}
        deadline = time.monotonic() + 30
        while True:
            for line in psql.run(
                "SELECT id, extract(epoch FROM created_at) FROM notifications"
                f" WHERE recipient_id = '{guest[0]}' AND created_at >= to_timestamp({begun})"
            ):
                identifier, when = line.split("|")
                filed[identifier] = float(when)
            if filed.keys() <= arrived.keys() or time.monotonic() > deadline:
                break
            time.sleep(0.2)
        lost = len(filed.keys() - arrived.keys())
        # The first second is warm-up.
        times = [
            (arrived[identifier] - when) * 1000
            for identifier, when in filed.items() if identifier in arrived and when > begun + 1
        ]
        print(
            f"latency at {arguments.changes:.0f} changes/s: p50 {percentile(times, 0.5):.1f} ms,"
            f" p99 {percentile(times, 0.99):.1f} ms, longest {max(times):.1f} ms, of {len(times)}; goals 10 and 50")
        print(
            f"  {len(filed)} filed, {lost} not delivered separately (several edits of one event may merge),"
            f" responses {statuses}, last sent {late * 1000:.0f} ms late; {durability(psql)}")
    finally:
        if worker:
            worker.end()
        service.end()


def cpu_seconds(*roots):
    """Returns the processor time of processes and all their children, in seconds."""
    children = {}
    spent = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as stat:
                    fields = stat.read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(name))
            spent[int(name)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    total, waiting = 0.0, list(roots)
    while waiting:
        process = waiting.pop()
        total += spent.get(process, 0)
        waiting += children.get(process, [])
    return total


def cost(arguments, psql):
    """Each host edits again as soon as the last edit has its response, in turns events with and without a notice."""
    service = Service(arguments)
    # The server's first process; psql's backend is its child.
    postmaster = int(psql.value("SELECT pg_read_file('postmaster.pid')"))
    worker = Program(arguments, "working", "worker", "--concurrency", str(arguments.concurrency))
    worker.lines(lambda line, when: None)
    processes = (service.process.pid, worker.process.pid, postmaster)
    try:
        hosts = []
        for _ in range(arguments.hosts):
            host, guests = service.register("host"), [service.register("guest") for _ in range(10)]
            for guest in guests:
                service.befriend(host, guest)
            notified, silent = service.plan(host, guests), service.plan(host, guests)
            for guest in guests:
                service.ask("PUT", f"events/{silent}/invitations/me", {"status": "declined"}, guest[1], 200)
            hosts.append((host, notified, silent))
        turns = 0

        def turn(silent):
            nonlocal turns
            turns += 1
            spent = cpu_seconds(*processes)
            begun = time.perf_counter()
            end = begun + arguments.seconds
            times = []

            def edit(host, event):
                connection = Connection(service.address)
                number = 0
                while (sent := time.perf_counter()) < end:
                    number += 1
                    change = service.edits(event, host, [f"Turn {turns}.{number}"])[0]
                    if connection.send(change) != 200:
                        raise SystemExit(f"an edit was refused: {connection.body.decode()}")
                    times.append(time.perf_counter() - sent)

            threads = [
                threading.Thread(target=edit, args=(host, without if silent else notified), daemon=True)
                for host, notified, without in hosts
            ]
            if arguments.pause:
                worker.process.send_signal(signal.SIGSTOP)
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            worker.process.send_signal(signal.SIGCONT)
            while psql.value(DEPTH) != "0":
                time.sleep(0.05)
            drained = time.perf_counter() - begun
            milliseconds = (cpu_seconds(*processes) - spent) * 1000 / len(times)
            return len(times) / arguments.seconds, milliseconds, drained

        turn(False)  # to warm up
        rates, costs = [], []
        for _ in range(arguments.rounds):
            (with_notice, dear, drained), (without, cheap, _) = turn(False), turn(True)
            rates.append(without / with_notice)
            costs.append(dear / cheap)
            print(
                f"  with a notice for ten {with_notice:.0f} edits/s, {dear:.2f} ms CPU each, drained after {drained:.1f} s;"
                f" without {without:.0f} edits/s, {cheap:.2f} ms CPU each", flush=True)
        print(
            f"cost: with a notice for ten, edits take {statistics.median(rates):.2f} times as long, goal 1.1, and use"
            f" {statistics.median(costs):.2f} times the CPU, goal 1.5; {arguments.hosts} hosts at once; {durability(psql)}")
    finally:
        # A stopped process does not react to being ended.
        worker.process.send_signal(signal.SIGCONT)
        worker.end()
        service.end()
    empty(psql)


def idle(arguments, psql):
    """Inserts rows by SQL in several sessions, one row in each transaction, and wakes the workers as a service does."""
    empty(psql)
    stats = (
        "SELECT n_tup_ins, n_tup_del, n_dead_tup, pg_table_size(relid), pg_indexes_size(relid),"
        " extract(epoch FROM clock_timestamp()) FROM pg_stat_user_tables WHERE relname = 'deliveries'"
    )

    def sample():
        return [float(part) for part in psql.value(stats).split("|")]

    holder = Psql(os.environ["DATABASE_URL"])
    workers = start_workers(arguments, subprocess.DEVNULL)
    stop = threading.Event()

    def write(place):
        session = Psql(os.environ["DATABASE_URL"])
        # Twenty statements in one message of psql, each with its own COMMIT.
        text = ";\n".join([NOTICES % (number, number) for number in range(place * 20, place * 20 + 20)])
        step = 20 * arguments.sessions / arguments.rate
        due = time.perf_counter() + step * place / arguments.sessions
        while not stop.is_set():
            if (pause := due - time.perf_counter()) > 0:
                time.sleep(pause)
            session.run(text)
            session.run("NOTIFY muster_queue")
            due += step
        session.end()

    writers = [threading.Thread(target=write, args=(place,), daemon=True) for place in range(arguments.sessions)]
    try:
        time.sleep(2)
        for writer in writers:
            writer.start()
        time.sleep(5)
        holder.run("SET idle_in_transaction_session_timeout = 0")
        # It has read, and has a transaction id: its snapshot and its id keep all later dead rows.
        holder.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.run("SELECT count(*), pg_current_xact_id() FROM deliveries")
        samples = [sample()]
        end = time.monotonic() + arguments.minutes * 60
        while time.monotonic() < end:
            time.sleep(min(5, max(0, end - time.monotonic())))
            samples.append(sample())
            if any(worker.process.poll() is not None for worker in workers):
                raise SystemExit("a worker ended")
        depth = int(psql.value(DEPTH))
        oldest = psql.value("SELECT coalesce(extract(epoch FROM now() - min(due_at)), 0) FROM deliveries")
        stop.set()
        for writer in writers:
            writer.join()

        def rates(one, other):
            seconds = other[5] - one[5]
            return (other[0] - one[0]) / seconds, (other[1] - one[1]) / seconds

        window = min(30.0, (samples[-1][5] - samples[0][5]) / 2)
        early = next(one for one in samples if one[5] - samples[0][5] >= window)
        late = next(one for one in reversed(samples) if samples[-1][5] - one[5] >= window)
        (came, first), (comes, last) = rates(samples[0], early), rates(late, samples[-1])
        print(
            f"idle: {first:.0f} deliveries/s of {came:.0f} changes/s in the first {window:.0f} s, {last:.0f} of"
            f" {comes:.0f} in the last, ratio {(last / comes) / (first / came):.2f}, goal 0.90")
        print(
            f"  after {arguments.minutes:g} minutes with one transaction open: {samples[-1][2]:.0f} dead rows, table"
            f" {samples[-1][3] / 2**20:.0f} MiB, indexes {samples[-1][4] / 2**20:.0f} MiB, {depth} rows in the queue,"
            f" the oldest due for {float(oldest):.2f} s; {durability(psql)}")
    finally:
        stop.set()
        for worker in workers:
            worker.end()
        holder.process.terminate()
    empty(psql)


PARTS = {"drain": drain, "fan-out": fan_out, "latency": latency, "cost": cost, "idle": idle}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="the parts to run; default: all")
    parser.add_argument("--muster", default="muster", help="the muster program")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=64, help="sends in flight per worker")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of drain, fan-out and cost")
    parser.add_argument("--rows", type=int, default=50_000, help="rows for drain and fan-out")
    parser.add_argument("--changes", type=float, default=200, help="changes per second, for latency")
    parser.add_argument("--seconds", type=float, default=20, help="length of latency, and of each turn of cost")
    parser.add_argument("--hosts", type=int, default=16, help="number of hosts, for cost")
    parser.add_argument("--pause", action="store_true", help="stop the worker during the edits of cost")
    parser.add_argument("--minutes", type=float, default=5, help="length of idle")
    parser.add_argument("--rate", type=float, default=500, help="changes per second, for idle")
    parser.add_argument("--sessions", type=int, default=4, help="database sessions that make the changes, for idle")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.parts if part not in PARTS]
    if unknown:
        parser.error(f"there is no part {unknown[0]}: choose from {', '.join(PARTS)}")
    psql = Psql(os.environ["DATABASE_URL"])
    if psql.value(DEPTH) != "0":
        raise SystemExit("the queue is not empty: use another database")
    psql.run(FIXTURE)
    for part in arguments.parts or PARTS:
        PARTS[part](arguments, psql)
    psql.end()


if __name__ == "__main__":
    main()
