"""The written model of docs/scaling.md: users, a day of an active user, what is kept, and machines. None of it is
measured. Replace it with your own figures."""
import math

MONTHS = 60
USERS_AT_START, USERS_AT_END = 10_000, 50_000_000
# The month in which the number of users grows fastest, and the months in which it grows e-fold at first.
MIDDLE, STEEPNESS = 34, 5.5

# Of registered users, those who open the app in a month, and on a day.
MONTHLY, DAILY = 0.35, 0.10

# The requests of an active user on a day, by the names of capacity.py.
DAY = {
    "validate": 12.0,  # 8 launches, and 4 pushes that wake the app: the stamps of all lists
    "changes": 4.0,  # a third of them find lists out of date, and send their digests
    "refresh": 6.0,  # an access token is valid for 15 minutes
    "event": 3.0,  # an event with its guests
    "inbox": 2.0,
    "feed": 1.0,  # a first launch, or a client without copies
    "read": 1.0,  # marks the inbox as read
    "answer": 0.8,
    "search": 0.3,
    "recommended": 0.2,
    "past": 0.2,
    "edit": 0.15,
    "create": 0.1,  # an event with ten guests
    "accept": 0.05,  # a friend request
}
# Searches for the beginning of a name that many have, such as "jo", and the users who have it. It is the only read whose
# cost grows with the number of users: the index's list of them is read as a whole.
FREQUENT, NAMESAKES = 0.2, 0.03
# Writes that carry an Idempotency-Key, whose response is kept for a day.
KEYED = ("read", "answer", "edit", "create", "accept")
# Items in inboxes for each of these. An event also reminds eight people.
NOTIFICATIONS = {"create": 10 + 8, "edit": 10, "answer": 1, "accept": 1}
# Phones to which a notification is pushed, and the minutes of a day for which a user has the app in front, with a stream.
DEVICES, STREAM_MINUTES = 1.2, 15

# Rows of a user, and the guests of an event.
FRIENDS, SESSIONS, GUESTS = 50, 1.4, 10
# Between the creation of an event and the day after its end.
DAYS_LIVE = 15
# The three sizes of a photo together, and the share of users who have one.
PICTURE, PICTURED = 250e3, 0.3

# The days that an inbox keeps an item. Partitions have a month each, and the oldest goes when all of it is that old.
INBOX_DAYS = 90

# The busiest minutes of a week, as a multiple of the mean.
PEAK = 4.0

# Processors, memory and disk in bytes, and the share of the processors' work that PostgreSQL is expected to get: the
# more there are, the more they wait for each other.
MACHINES = {
    "8 cores": {"cores": 8, "share": 0.9, "memory": 64e9, "disk": 2e12},
    "32 cores": {"cores": 32, "share": 0.8, "memory": 256e9, "disk": 8e12},
    "96 cores": {"cores": 96, "share": 0.65, "memory": 768e9, "disk": 30e12},
}
# The most of each that a plan may use.
PROCESSOR, MEMORY, DISK = 0.6, 0.7, 0.7
# Bytes of WAL a second that a disk, an archive and the network of a standby take.
WAL = 250e6
# The bytes a second that a restore writes, and the seconds that it may take.
RESTORE_RATE, RESTORE_TIME = 500e6, 8 * 3600
# The bytes a second that VACUUM reads without harm, and the transactions before which it must have read all tables.
VACUUM_RATE, VACUUM_AGE = 100e6, 1e9
# Of a `serve` with two processors: the most open streams, and its connections to PostgreSQL; those of a `worker`.
STREAMS, SERVE_CONNECTIONS, WORKER_CONNECTIONS = 20_000, 25, 23

# A distributed engine: copies of each row, and its processor time for a statement, compared with one PostgreSQL.
NODES, COPIES, PRICE = 16, 3, 3.0


def users(month):
    """Registered users at the end of a month: slow, then steep, then slow again."""

    def curve(month):
        return 1 / (1 + math.exp(-(month - MIDDLE) / STEEPNESS))

    grown = (curve(month) - curve(0)) / (curve(MONTHS) - curve(0))
    return USERS_AT_START + (USERS_AT_END - USERS_AT_START) * grown
