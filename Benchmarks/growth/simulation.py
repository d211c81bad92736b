"""The cost of a day of an active user, the users that machines carry, and the growth of tables: the model, times the
measured figures."""
import collections
import json
import math
import os

from . import model

DAY_SECONDS = 86_400
MEASURED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "measured.json")

Month = collections.namedtuple(
    "Month", "month users daily rows live past inbox latest keys pictures writes row_writes transactions dead updated wal "
    "processors")
# The parts of the bytes of a month. `live` has users, friendships, sessions and events to come.
PARTS = ("live", "past", "inbox", "keys", "pictures")


def measured():
    with open(MEASURED) as file:
        return json.load(file)


class Costs:
    """Of one active user on one day, and of one row."""

    def __init__(self, figures):
        self.figures, self.size = figures, figures["bytes"]
        self.notifications = sum(model.DAY[kind] * count for kind, count in model.NOTIFICATIONS.items())
        self.sums = collections.Counter()
        for name, times in self.parts().items():
            for unit, value in figures["each"].get(name, {}).items():
                self.sums[unit] += times * value
        # A delivery costs what a notification with one costs more than one without.
        alone, pushed = figures["each"]["notification"], figures["each"]["notification with delivery"]
        for unit, value in pushed.items():
            self.sums[unit] += self.notifications * model.DEVICES * max(0, value - alone[unit])
        self.wal = self.sums["wal"] + self.sums["wal_pages"]
        self.row_writes = sum(self.sums[unit] for unit in ("inserts", "hot_updates", "updates", "deletes"))
        # Left to VACUUM.
        self.dead = self.sums["updates"] + self.sums["deletes"]
        self.requests = sum(model.DAY.values())
        self.writes = sum(times for kind, times in model.DAY.items() if "wal" in figures["each"][kind])
        self.keys = sum(model.DAY[kind] for kind in model.KEYED)
        self.event = self.size["events"] + model.GUESTS * self.size["invitations"]
        # Each friendship is shared by two users.
        self.registered = (
            self.size["users"] + self.size["user_stamps"] + model.FRIENDS / 2 * self.size["friendships"]
            + model.SESSIONS * (self.size["sessions"] + self.size["devices"]))
        self.registered_rows = 2 + model.FRIENDS / 2 + 2 * model.SESSIONS

    def parts(self):
        """How often an active user causes each measured thing on a day."""
        return {**model.DAY, "notification": self.notifications, "archived event": model.DAY["create"]}

    def searching(self, users):
        """The microseconds of a day's searches that grow with the number of users."""
        return model.DAY["search"] * model.FREQUENT * model.NAMESAKES * users * self.figures["match_us"]

    def peak(self, daily, users):
        """PostgreSQL's processors, those of `serve` and `worker`, and WAL a second, in the busiest minutes."""
        second = daily / DAY_SECONDS * model.PEAK
        database = self.sums["database_us"] + self.searching(users)
        return second * database / 1e6, second * self.sums["service_us"] / 1e6, second * self.wal

    def streams(self, daily):
        """The streams that are open in the busiest minutes."""
        return daily * model.STREAM_MINUTES * 60 / DAY_SECONDS * model.PEAK

    def processes(self, daily):
        """The number of `serve` with two processors each, and of workers: one for every four, and at least two of each."""
        processors = self.peak(daily, 0)[1] / model.PROCESSOR
        serves = max(2, math.ceil(processors / 2), math.ceil(self.streams(daily) / model.STREAMS))
        return serves, max(2, serves // 4)

    def connections(self, daily):
        serves, workers = self.processes(daily)
        return serves * model.SERVE_CONNECTIONS + workers * model.WORKER_CONNECTIONS

    def month(self):
        """The bytes that a user who is active in a month adds for good: events and guests."""
        return 30 * model.DAILY / model.MONTHLY * model.DAY["create"] * self.event

    def inbox(self):
        """The bytes of notifications that a user who is active in a month causes."""
        return 30 * model.DAILY / model.MONTHLY * self.notifications * self.size["notifications"]


def months(costs, partitions=False, retention=None, users=model.users):
    """Simulates month after month, with the mean of the users at its two ends.

    With `partitions`, inboxes drop whole months instead of rows, so they keep up to one month more. `retention` is the
    number of months for which the archive keeps events; None for all.
    """
    created, filed = [], []
    for month in range(1, model.MONTHS + 1):
        daily = (users(month - 1) + users(month)) / 2 * model.DAILY
        created.append(daily * model.DAY["create"] * 30)
        filed.append(daily * costs.notifications * 30)
        kept = model.INBOX_DAYS // 30
        inbox = sum(filed[-kept - 1:] if partitions else filed[-kept:])
        live = daily * model.DAY["create"] * model.DAYS_LIVE
        past = max(0.0, sum(created if retention is None else created[-retention:]) - live)
        keys = daily * costs.keys
        # Rows that go: the keys of each day, items of inboxes one by one, and events with their guests. Before a
        # partition goes, the floor of each user's inbox rises. It is in an index, so the update leaves a dead row.
        deleted = keys * 30
        floors = users(month) if partitions and len(filed) > kept else 0
        if not partitions and len(filed) > kept:
            deleted += filed[-kept - 1]
        if retention is not None and len(created) > retention:
            deleted += created[-retention - 1] * (1 + model.GUESTS)
        # Users whose stamps move on a day, if those who are notified are spread evenly, and events.
        moved = daily * costs.sums["hot_updates"]
        processors, _, wal = costs.peak(daily, users(month))
        yield Month(
            month=month, users=users(month), daily=daily,
            rows=users(month) * costs.registered_rows + (live + past) * (1 + model.GUESTS) + inbox + keys,
            live=users(month) * costs.registered + live * costs.event, past=past * costs.event,
            inbox=inbox * costs.size["notifications"], latest=filed[-1] * costs.size["notifications"],
            keys=keys * costs.size["idempotency_keys"],
            pictures=users(month) * model.PICTURED * model.PICTURE, writes=daily * costs.writes * 30,
            row_writes=daily * costs.row_writes * 30 + deleted + floors, transactions=daily * costs.sums["transactions"] * 30,
            dead=daily * costs.dead * 30 + deleted + floors,
            updated=users(month) * (1 - math.exp(-moved / users(month))) + min(live, daily),
            wal=wal, processors=processors)


def size(month):
    return sum(getattr(month, part) for part in PARTS)


def working_set(month):
    """The bytes that a day touches: everything live, the latest month of the inboxes, and the keys of the day."""
    return month.live + month.latest + month.keys


def taken(month, nodes=1):
    """How much of each limit a month takes, on one machine or on each node."""
    work, copies = (model.PRICE / nodes, model.COPIES / nodes) if nodes > 1 else (1, 1)
    bytes_of_node = size(month) * copies
    rate = month.transactions / 30 / DAY_SECONDS
    return {
        "processor": month.processors * work, "memory": working_set(month) * copies, "disk": bytes_of_node,
        "WAL": month.wal * copies, "restore": bytes_of_node / model.RESTORE_RATE,
        "vacuum": bytes_of_node / model.VACUUM_RATE / (model.VACUUM_AGE / rate),
    }


def limits(machine):
    return {
        "processor": machine["cores"] * machine["share"] * model.PROCESSOR,
        "memory": machine["memory"] * model.MEMORY, "disk": machine["disk"] * model.DISK, "WAL": model.WAL,
        "restore": model.RESTORE_TIME, "vacuum": 1,
    }


def breaks(history, machine, nodes=1):
    """The first month in which each limit is exceeded, in order of time."""
    most, found = limits(machine), {}
    for month in history:
        for name, amount in taken(month, nodes).items():
            if amount > most[name] and name not in found:
                found[name] = month
    return found


def carried(costs, machine, years=1):
    """The users who are active on a day that each resource of a machine allows, if they have been for some years."""

    def steady(daily):
        users = daily / model.DAILY
        return taken(list(months(costs, partitions=True, retention=12 * years, users=lambda _: users))[-1])

    most, found = limits(machine), {}
    for name in ("processor", "memory", "disk", "WAL", "restore"):
        least, greatest = 1.0, 1e10
        for _ in range(50):
            middle = math.sqrt(least * greatest)
            least, greatest = (least, middle) if steady(middle)[name] > most[name] else (middle, greatest)
        found[name] = least
    return found


def nodes_of(rows, nodes=model.NODES):
    """The mean number of nodes with copies of a transaction's rows, if the rows are spread at random."""
    return nodes * (1 - (1 - model.COPIES / nodes) ** rows)
