"""How the database, a deploy or a stop affects the service."""
import json
import re
import threading
import time

from .connections import begun_upload
from .lab import Outcome, Service, at_once
from .machine import wait_until

ENDED = 1_200_000  # sessions


def load(lab, service, user, seconds):
    """Validates 20 times a second. Returns the processors that service and database use, failures, and the count."""
    start, cpu = time.monotonic(), service.cpu_seconds() + lab.cluster.cpu_seconds()
    failed = count = 0
    while time.monotonic() < start + seconds:
        failed += service.validate(user).status != 200
        count += 1
        time.sleep(max(0, start + count * 0.05 - time.monotonic()))
    used = service.cpu_seconds() + lab.cluster.cpu_seconds() - cpu
    return used / (time.monotonic() - start), failed, count


def ended_sessions(lab):
    """1.2 million sessions that ended within the last ten minutes cost nothing after they are read once."""
    service = lab.service()
    ana = service.register("ana")
    alone, _, _ = load(lab, service, ana, 5)
    service.end()
    psql = lab.psql()
    psql.run(
        f"""
        INSERT INTO sessions (id, user_id, rotated_at, kid, created_at, ended_at)
        SELECT gen_random_uuid(), NULL, at, 'abuse', at, at
        FROM (SELECT clock_timestamp() - n * interval '0.5 ms' AS at FROM generate_series(1, {ENDED}) AS n) AS each
        """)
    psql.run("VACUUM ANALYZE sessions")
    psql.run("CHECKPOINT")
    service = lab.keep(Service(lab))
    start = time.monotonic()
    ready = wait_until(lambda: service.call("GET", "/health/ready", timeout=2).status == 200, 30, 0.1)
    after = time.monotonic() - start
    time.sleep(1)
    beside, failed, count = load(lab, service, ana, 8)
    return Outcome(
        f"{'ready' if ready else 'not ready'} after {after:.1f} s; {failed} of {count} validations failed;"
        f" {beside:.2f} processors, {alone:.2f} without ended sessions", "ready within 30 s; 0; 0.2 more",
        bool(ready) and failed == 0 and beside < alone + 0.2)


def sessions_end(lab):
    """`muster sessions end` stops the access tokens of one user, or of all, with 200,000 open sessions."""
    service = lab.service()
    ana, ben, cleo = (service.register(name) for name in ("ana", "ben", "cleo"))
    psql = lab.psql()
    psql.run(
        f"""
        INSERT INTO sessions (id, user_id, rotated_at, kid, created_at)
        SELECT gen_random_uuid(), '{cleo.id}', now(), 'abuse', now() FROM generate_series(1, 200000)
        """)
    psql.run("ANALYZE sessions")
    start = time.monotonic()
    lab.run("queue", "stats")
    program_start = time.monotonic() - start

    def end(user, *arguments):
        """Seconds until the first 401, not counting the time that the program takes to start."""
        start = time.monotonic()
        command = lab.start("sessions", "end", *arguments)
        ended = wait_until(
            lambda: service.validate(user).status == 401 or not command.is_running and command.process.returncode, 10)
        seconds = time.monotonic() - start - program_start
        return seconds if ended and command.wait(30) == 0 else None

    one = end(ana, "--user", "ana")
    other = service.validate(ben).status
    everyone = end(ben, "--all")
    times = ["never" if seconds is None else f"after {max(0, seconds):.2f} s" for seconds in (one, everyone)]
    return Outcome(
        f"--user stops tokens {times[0]}, another user then gets {other}; --all {times[1]}", "1 s, 200; 1 s",
        one is not None and one < 1 and other == 200 and everyone is not None and everyone < 1)


def migration_beside_reader(lab):
    """A migration waits for a table that a long transaction reads: the API keeps working, and the message says why."""
    service = lab.service()
    ana = service.register("ana")
    versions = [one["name"] for one in json.loads(lab.run("migrate", "status", "--json")[1])]
    place = next(number for number, name in enumerate(versions) if "notifications" in name)
    reader, psql = lab.psql(), lab.psql()
    before = versions[place - 1].split("_")[0]
    pid = reader.value("BEGIN; SELECT pg_backend_pid(); SELECT count(*) FROM devices")
    migrate = lab.start("migrate", "down", "--to", before, "--yes", "--while-connected")
    responses = []
    end = time.monotonic() + 9
    try:
        while time.monotonic() < end:
            response = service.call("GET", "devices", token=ana.token)
            responses.append((response.status, response.seconds))
            time.sleep(0.1)
        ended = not migrate.is_running
    finally:
        migrate.kill()
        psql.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND application_name LIKE '%migrate%'")
    output = migrate.output()
    named = [what for what in (versions[place], "DROP TABLE", pid) if what in output]
    failed = sum(status != 200 for status, _ in responses)
    slowest = max(seconds for _, seconds in responses)
    return Outcome(
        f"{failed} of {len(responses)} requests failed, the slowest took {slowest:.1f} s; muster migrate"
        f" {'ended' if ended else 'still runs'} and names {len(named)} of migration, statement and blocking process",
        "0 failed, 2 s; 3 names", failed == 0 and slowest < 2 and len(named) == 3)


def frozen_database(lab):
    """Readiness while every process of PostgreSQL is stopped, and afterwards."""
    service = lab.service(MUSTER_CONNECTIONS_PER_ADDRESS="0")
    ask = lambda: service.call("GET", "/health/ready", timeout=20)
    lab.cluster.freeze()
    try:
        responses = [ask() for _ in range(3)] + at_once(*[ask] * 20)
    finally:
        lab.cluster.thaw()
    start = time.monotonic()
    again = wait_until(lambda: ask().status == 200, 15)
    slowest = max(response.seconds for response in responses)
    statuses = sorted({response.status for response in responses})
    return Outcome(
        f"{len(responses)} requests got {statuses}, the slowest after {slowest:.2f} s; ready again"
        + (f" after {time.monotonic() - start:.1f} s" if again else ": no"), "503 within 1 s; 10 s",
        statuses == [503] and slowest <= 1 and bool(again) and time.monotonic() - start < 10)


def shutdown(lab):
    """SIGTERM: readiness turns 503 first, then the port closes. Interrupted requests are not logged as 500."""
    service = lab.service(MUSTER_DRAIN_SECONDS="2")
    ana = service.register("ana")
    holder = lab.psql()
    holder.run(f"BEGIN; SELECT count(*) FROM (SELECT FROM users WHERE id = '{ana.id}' FOR UPDATE) AS held")
    stuck = threading.Thread(
        target=lambda: service.call("PATCH", "users/me", {"displayName": "Ana B."}, ana.token, timeout=20), daemon=True)
    stuck.start()
    upload = begun_upload(service, ana)
    time.sleep(0.3)
    start = time.monotonic()
    service.process.terminate()
    seen = []
    while time.monotonic() < start + 14 and not (seen and seen[-1][1] == 0):
        response = service.call("GET", "/health/ready", timeout=2)
        seen.append((time.monotonic() - start, response.status))
        time.sleep(0.02)
    code = service.wait(20)
    took = time.monotonic() - start
    upload.close()
    unready = next((when for when, status in seen if status == 503), None)
    closed = next((when for when, status in seen if status == 0), None)
    errors = len(re.findall(r'"status":"?500', service.output()))
    orderly = unready is not None and closed is not None and unready < 0.5 and closed >= 1.8
    return Outcome(
        f"503 {'never' if unready is None else f'after {unready:.2f} s'}, port closed"
        f" {'never' if closed is None else f'after {closed:.1f} s'}, exit code {code} after {took:.1f} s;"
        f" {errors} requests logged as 500", "503 first, 2 s open, 0 within 12 s; none",
        orderly and code == 0 and took < 12.5 and errors == 0)


CASES = [ended_sessions, sessions_end, migration_beside_reader, frozen_database, shutdown]
