#!/usr/bin/env python3
"""Measures how the size of a user's collections affects the cost of a validation: users with 5,000 friends and users
with 5 validate all collections, in turns. Run it by hand, against a server with MUSTER_RATE_LIMITS=off MUSTER_THROTTLING=off:

    muster seed load --users 20000 --tokens tokens
    Benchmarks/validate-sizes.py http://127.0.0.1:8300 "$DATABASE_URL" --tokens tokens

The script adds the friends with psql at the start. Several callers keep the server busy. The figure that counts is the
ratio of the rates.
"""
import argparse
import statistics
import subprocess
import threading
import time

from generator import Connection, address_of, read_tokens, request

FRIENDS = """
    DELETE FROM friendships
    WHERE user_a = ANY(:'few'::uuid[] || :'many'::uuid[]) OR user_b = ANY(:'few'::uuid[] || :'many'::uuid[]);
    INSERT INTO friendships (user_a, user_b)
    SELECT least(me.id, other.id), greatest(me.id, other.id)
    FROM (
      SELECT id, 5 AS friends FROM unnest(:'few'::uuid[]) AS few (id)
      UNION ALL
      SELECT id, 5000 FROM unnest(:'many'::uuid[]) AS many (id)
    ) AS me
    JOIN (
      SELECT id, row_number() OVER (ORDER BY id) AS number FROM users WHERE id <> ALL(:'few'::uuid[] || :'many'::uuid[])
    ) AS other ON other.number <= me.friends;
    ANALYZE friendships;
    """


def rate(address, requests, seconds, callers):
    """Returns the responses per second. Each caller sends its next request when it has the response to the last one."""
    counts = [0] * callers
    failures = []
    deadline = time.perf_counter() + seconds

    def call(index):
        connection = Connection(address)
        number = index
        while time.perf_counter() < deadline:
            status = connection.send(requests[number % len(requests)])
            if status != 200:
                failures.append(status)
            counts[index] += 1
            number += callers

    began = time.perf_counter()
    threads = [threading.Thread(target=call, args=(index,)) for index in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise SystemExit(f"{len(failures)} requests failed, the first with {failures[0]}")
    return sum(counts) / (time.perf_counter() - began)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("database")
    parser.add_argument("--tokens", required=True, help='a file with lines "userId eventId accessToken"')
    parser.add_argument("--people", type=int, default=10, help="users of each kind")
    parser.add_argument("--seconds", type=float, default=4, help="length of each turn")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--callers", type=int, default=8)
    arguments = parser.parse_args()
    address = address_of(arguments.url)
    people = read_tokens(arguments.tokens)[: 2 * arguments.people]
    few, many = people[: arguments.people], people[arguments.people :]

    def ids(some):
        return "{" + ",".join(user for user, _, _ in some) + "}"

    subprocess.run(
        ["psql", arguments.database, "-X", "-q", "-v", "ON_ERROR_STOP=1", "-v", f"few={ids(few)}", "-v", f"many={ids(many)}"],
        input=FRIENDS, text=True, check=True)

    def validations(some):
        # An empty body means all collections.
        return [request("POST", f"/api/v1/cache/validate/{user}", {}, token) for user, _, token in some]

    few, many = validations(few), validations(many)
    rate(address, few + many, 2, arguments.callers)  # to warm up
    ratios = []
    for number in range(arguments.rounds):
        # The two kinds take turns in going first.
        turns = [("few", few), ("many", many)]
        rates = dict((name, rate(address, some, arguments.seconds, arguments.callers))
                     for name, some in (turns if number % 2 == 0 else reversed(turns)))
        ratios.append(rates["many"] / rates["few"])
        print(f"5 friends {rates['few']:8.0f}/s   5,000 friends {rates['many']:8.0f}/s   ratio {ratios[-1]:.3f}", flush=True)
    print(f"ratio: median {statistics.median(ratios):.3f}, from {min(ratios):.3f} to {max(ratios):.3f}")


if __name__ == "__main__":
    main()
