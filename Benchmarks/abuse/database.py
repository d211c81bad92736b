"""What one user can store, and what an attacker could do to the database from inside of a process."""
import subprocess
import time
import uuid

from .lab import Outcome
from .machine import SERVICE_ROLE

GUESTS = 20
EDITS = 60
KEYS_A_DAY = 2000  # the limit `repeatable`

# One of each kind: to destroy, to change, to add code, to read the server's files, to get more rights.
HOSTILE = [
    "DROP TABLE notifications", "TRUNCATE users CASCADE", "ALTER TABLE users ADD COLUMN stolen text",
    "ALTER TABLE sessions DISABLE TRIGGER session_ends", "CREATE TABLE stolen (n int)",
    "CREATE TEMPORARY TABLE stolen (n int)", "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "CREATE TRIGGER t BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION note_session_end()",
    "COPY users TO PROGRAM 'cat'", "SELECT pg_read_file('/etc/passwd')", "SET ROLE postgres",
    f"ALTER ROLE {SERVICE_ROLE} SUPERUSER", "DELETE FROM schema_migrations",
]


def idle_edits(lab):
    """Edits of an event that change nothing, each with an `Idempotency-Key`, with limits on."""
    service = lab.service(MUSTER_RATE_LIMITS="on")
    ana = service.register("ana")
    guests = [service.register(f"guest{number}") for number in range(GUESTS)]
    for guest in guests:
        service.befriend(ana, guest)
    event = service.ask(ana, "POST", "events", {
        "title": "Picnic", "startTime": "2030-05-01T18:00:00Z", "timeZone": "UTC",
        "inviteeIds": [guest.id for guest in guests]})
    statuses, length = [], 0
    while statuses.count(200) < EDITS and len(statuses) < 10 * EDITS:
        response = service.call(
            "PATCH", f"events/{event['id']}", {"title": "Picnic"}, ana.token, {"Idempotency-Key": str(uuid.uuid4())})
        statuses.append(response.status)
        if response.status == 200:
            length = int(response.headers["Content-Length"])
        else:
            time.sleep(0.2)  # the limit of writes: five a second
    psql = lab.psql()
    size = int(psql.value("SELECT coalesce(sum(pg_column_size(k.*)), 0) FROM idempotency_keys AS k"))
    daily = size / EDITS * KEYS_A_DAY / 1e6
    return Outcome(
        f"{daily:.1f} MB a day and user, at {KEYS_A_DAY} keys; a response has {length / 1000:.1f} kB",
        "1 MB", statuses.count(200) == EDITS and daily < 1)


def taken_over(lab):
    """SQL of an attacker who has taken over a process, as the role of the service."""
    # A copy of a database has the rights on tables, but not those on the database.
    code, output = lab.run("migrate")
    if code != 0:
        raise RuntimeError(output)
    lab.service().register("ana")
    done = []
    for statement in HOSTILE:
        ran = subprocess.run(
            ["psql", lab.cluster.url(lab.database, SERVICE_ROLE), "-Xqc", statement], capture_output=True)
        if ran.returncode == 0:
            done.append(statement)
    names = f": {'; '.join(done)}" if done else ""
    return Outcome(f"{len(done)} of {len(HOSTILE)} hostile statements ran{names}", "0", not done)


CASES = [idle_edits, taken_over]
