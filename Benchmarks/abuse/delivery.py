"""How a row, or one user's webhooks, affects the worker."""
import json
import threading
import time

from .lab import Outcome
from .machine import wait_until

BAD_PORT = "http://127.0.0.1:99999/"


def befriended(service, sender, receiver):
    """Makes a change that notifies the receiver. Returns a time after its commit."""
    service.ask(sender, "POST", "friend-requests", {"receiverId": receiver.id})
    return time.monotonic()


def dead_letters(lab):
    return len(json.loads(lab.run("queue", "list", "--dead", "--json")[1]))


def webhook_port(lab):
    """A webhook with an invalid port is refused, and one that is already stored stops nothing."""
    service, receiver = lab.service(), lab.receiver()
    ana, ben, cleo = (service.register(name) for name in ("ana", "ben", "cleo"))
    refused = service.call("PUT", "devices", {"platform": "webhook", "token": BAD_PORT}, ben.token).status
    planted = service.add_webhook(ben, f"{receiver.url}/ben")
    lab.psql().run(f"UPDATE devices SET token = '{BAD_PORT}stored' WHERE id = '{planted}'")
    service.add_webhook(cleo, f"{receiver.url}/cleo")
    worker = lab.worker()
    befriended(service, ana, ben)
    time.sleep(1)
    start = befriended(service, ana, cleo)
    came = receiver.wait_for("/cleo", 5)
    delivered = f"the next delivery after {came - start:.2f} s" if came else "no delivery within 5 s"
    return Outcome(
        f"PUT {refused}; worker {'runs' if worker.is_running else 'ended'}, {delivered}", "422; runs; 5 s",
        refused == 422 and worker.is_running and came is not None)


def worker_deaths(lab):
    """A row that is in flight whenever a worker dies becomes a dead letter. Others are delivered."""
    service, receiver = lab.service(), lab.receiver()
    ana, ben, cleo = (service.register(name) for name in ("ana", "ben", "cleo"))
    service.add_webhook(ben, f"{receiver.url}/tarpit")
    service.add_webhook(cleo, f"{receiver.url}/cleo")
    befriended(service, ana, ben)
    deaths = 0
    while deaths < 5:
        worker = lab.worker()
        if not wait_until(lambda: len(receiver.trapped) > deaths, 12):
            break
        deaths += 1
        worker.kill()
    dead = dead_letters(lab)
    start = befriended(service, ana, cleo)
    came = receiver.wait_for("/cleo", 5) if worker.is_running else None
    return Outcome(
        f"{deaths} deaths, then {dead} dead letter; the next delivery "
        + (f"after {came - start:.2f} s" if came else "did not come"), "3 deaths, 1 dead letter; 5 s",
        deaths == 3 and dead == 1 and came is not None)


def tarpits(lab):
    """One user's 20 webhooks that never respond, each on a host of its own, delay no other user's deliveries."""
    service, receiver = lab.service(), lab.receiver()
    ana, ben = service.register("ana"), service.register("ben")
    senders = [service.register(f"sender{number}") for number in range(20)]
    holes = [lab.receiver(f"127.0.0.{10 + number}") for number in range(20)]
    service.add_webhook(ben, f"{receiver.url}/ben")
    lab.worker()

    def delay(sender, count):
        start = befriended(service, sender, ben)
        came = receiver.wait_for("/ben", 10, count)
        return came - start if came else None

    alone = delay(senders[10], 1)
    for number, hole in enumerate(holes):
        service.add_webhook(ana, f"{hole.url}/tarpit/{number}")
    for sender in senders[:10]:
        befriended(service, sender, ana)
    wait_until(lambda: any(hole.trapped for hole in holes), 10)
    time.sleep(1)
    beside = []
    for sender in senders[11:19]:
        beside.append(delay(sender, 2 + len(beside)))
        if beside[-1] is None:
            break
        time.sleep(0.5)
    missed = beside[-1] is None
    worst = "more than 10 s" if missed else f"at most {max(beside):.3f} s"
    return Outcome(
        f"{len(beside)} deliveries of another user took {worst}; alone " + (f"{alone:.3f} s" if alone else "none"),
        "1 s", alone is not None and not missed and max(beside) < 1)


# Stops a transaction of `muster queue` that has moved dead letters back, until a lock is released.
GATE = """
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('application_name') LIKE 'muster queue%' THEN
    PERFORM pg_advisory_xact_lock_shared(1);
  END IF;
  RETURN NULL;
END
$$;
DO $$
BEGIN
  IF to_regclass('dead_letters') IS NULL THEN
    CREATE TRIGGER gate AFTER UPDATE ON deliveries EXECUTE FUNCTION gate();
  ELSE
    CREATE TRIGGER gate AFTER DELETE ON dead_letters EXECUTE FUNCTION gate();
  END IF;
END
$$;
"""


def retry_against_cancel(lab):
    """`queue retry` pushes no friend request that is being cancelled, whichever of the two begins first."""
    service, receiver = lab.service(), lab.receiver()
    ben = service.register("ben")
    psql, holder = lab.psql(), lab.psql()
    device = service.add_webhook(ben, f"{receiver.url}/ben")
    secret = psql.value(f"SELECT sealed_secret FROM devices WHERE id = '{device}'")
    psql.run(GATE)
    stamps = psql.value("SELECT coalesce(to_regclass('user_stamps'), to_regclass('collection_stamps'))")
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"

    def waits(count, process=None):
        wait_until(lambda: int(psql.value(waiting)) >= count or process and not process.is_running, 2)

    def dead_request(name):
        sender = service.register(name)
        request = service.ask(sender, "POST", "friend-requests", {"receiverId": ben.id})["id"]
        return request, lambda: service.ask(sender, "DELETE", f"friend-requests/{request}")

    def race(cancel, retry_first):
        """The first one has done its work but not committed when the second one begins."""
        thread = threading.Thread(target=cancel)
        if retry_first:
            holder.run("BEGIN; SELECT pg_advisory_xact_lock(1)")
            retry = lab.start("queue", "retry", "--all")
            waits(1, retry)
            thread.start()
            waits(2)
        else:
            # Stamps are the last locks of a change.
            holder.run(f"BEGIN; SELECT stamp.* FROM {stamps} AS stamp WHERE user_id = '{ben.id}' FOR UPDATE")
            thread.start()
            waits(1)
            retry = lab.start("queue", "retry", "--all")
            waits(2, retry)
        holder.run("COMMIT")
        thread.join()
        if retry.wait(20) != 0:
            raise RuntimeError(f"muster queue retry: {retry.output()}")

    cancelled, others = [], []
    for retry_first in (False, True):
        # With an unreadable secret, deliveries become dead letters immediately.
        psql.run("UPDATE devices SET sealed_secret = '\\x00'")
        worker = lab.worker()
        request, cancel = dead_request(f"cancelling{retry_first}")
        cancelled.append(request)
        others.append(dead_request(f"waiting{retry_first}")[0])
        if not wait_until(lambda: dead_letters(lab) == 2, 10, 0.2):
            raise RuntimeError(f"{dead_letters(lab)} dead letters instead of 2")
        worker.end()
        psql.run(f"UPDATE devices SET sealed_secret = '{secret}'")
        race(cancel, retry_first)
        worker = lab.worker()
        receiver.wait_for("/ben", 5, len(others))
        time.sleep(1)
        worker.end()
    pushed = [body["data"].get("requestId") for _, _, body in receiver.received]
    wrong = [("cancelled first", "retried first")[place] for place, one in enumerate(cancelled) if one in pushed]
    return Outcome(
        f"{len(wrong)} of 2 cancelled requests pushed{' (' + wrong[0] + ')' if wrong else ''},"
        f" {sum(one in pushed for one in others)} of 2 others", "0; 2",
        not wrong and all(one in pushed for one in others))


CASES = [webhook_port, worker_deaths, tarpits, retry_against_cancel]
