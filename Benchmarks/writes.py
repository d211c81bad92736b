#!/usr/bin/env python3
"""Measures answers to invitations, new events with ten invitees, and accepted friend requests, in requests a second.
Run it by hand, against a server with MUSTER_RATE_LIMITS=off MUSTER_THROTTLING=off:

    muster seed load --users 100000 --tokens tokens
    Benchmarks/writes.py http://127.0.0.1:8300 "$DATABASE_URL" --tokens tokens

Each request changes something and is sent once, by wrk. The script reads from the database what the users can do. It adds
the friend requests to the database, for users who are not friends.
"""
import argparse
import json
import os
import subprocess
import tempfile

from generator import read_tokens

ANSWERS = """
SELECT i.user_id, i.event_id, CASE WHEN i.status = 'maybe' THEN 'going' ELSE 'maybe' END
FROM invitations AS i JOIN events AS e ON e.id = i.event_id
WHERE i.user_id = ANY(:users) AND e.status = 'scheduled' AND e.archived_at IS NULL AND i.status <> 'pending'
ORDER BY random() LIMIT :count
"""
FRIENDS = """
SELECT user_id, array_to_string((array_agg(friend_id ORDER BY random()))[1:10], ',')
FROM friends WHERE user_id = ANY(:users) GROUP BY user_id HAVING count(*) >= 10 ORDER BY random()
"""
REQUESTS = """
WITH receivers AS (SELECT id, row_number() OVER () AS n FROM unnest(:users) AS id),
senders AS (SELECT id, row_number() OVER (ORDER BY random()) AS n FROM users TABLESAMPLE SYSTEM (50) LIMIT :count)
INSERT INTO friend_requests (id, sender_id, receiver_id)
SELECT gen_random_uuid(), s.id, r.id
FROM senders AS s JOIN receivers AS r ON r.n = 1 + s.n % (SELECT count(*) FROM receivers)
WHERE s.id <> r.id AND NOT EXISTS (SELECT FROM friends AS f WHERE f.user_id = s.id AND f.friend_id = r.id)
ON CONFLICT DO NOTHING
RETURNING receiver_id, id
"""


def read(database, query, users, count):
    """Returns the rows of a query, as lists of texts."""
    array = "'{" + ",".join(users) + "}'::uuid[]"
    query = query.replace(":users", array).replace(":count", str(count))
    out = subprocess.run(["psql", database, "-X", "-q", "-At", "-F", "\t", "-v", "ON_ERROR_STOP=1"], input=query + ";",
                         text=True, check=True, stdout=subprocess.PIPE).stdout
    return [line.split("\t") for line in out.splitlines()]


def answers(database, tokens, count):
    for user, event, status in read(database, ANSWERS, list(tokens), count):
        yield "PUT", f"/api/v1/events/{event}/invitations/me", tokens[user], {"status": status}


def creations(database, tokens, count):
    friends = read(database, FRIENDS, list(tokens), count)
    if not friends:
        raise SystemExit("no user has ten friends: load more users")
    for n in range(count):
        user, invitees = friends[n % len(friends)]
        yield "POST", "/api/v1/events", tokens[user], {
            "title": f"Plan {n}", "startTime": "2099-05-01T18:00:00Z", "timeZone": "Europe/Berlin",
            "inviteeIds": invitees.split(",")}


def accepts(database, tokens, count):
    for user, request in read(database, REQUESTS, list(tokens), count):
        yield "POST", f"/api/v1/friend-requests/{request}/accept", tokens[user], None


KINDS = {"answer": answers, "create": creations, "accept": accepts}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("database")
    parser.add_argument("--tokens", required=True, help='a file with lines "userId eventId accessToken"')
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--seconds", type=int, default=6)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--most", type=int, default=5000, help="requests a second that no server here exceeds")
    arguments = parser.parse_args()
    tokens = {user: token for user, _, token in read_tokens(arguments.tokens)}
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.lua")
    for kind in arguments.kinds:
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            for method, path, token, body in KINDS[kind](arguments.database, tokens, arguments.most * arguments.seconds):
                file.write(f"{method}\t{path}\t{token}\t{json.dumps(body) if body else ''}\n")
            file.flush()
            subprocess.run(["psql", arguments.database, "-X", "-q", "-c", "ANALYZE invitations, friend_requests"], check=True)
            out = subprocess.run(
                ["wrk", "-t1", f"-c{arguments.connections}", f"-d{arguments.seconds}s", "-s", script, arguments.url],
                env={**os.environ, "REQUESTS": file.name}, text=True, check=True, stdout=subprocess.PIPE).stdout
        print(kind, out.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
