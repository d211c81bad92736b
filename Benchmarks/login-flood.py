#!/usr/bin/env python3
"""Measures how a flood of logins affects other users: cache validations at a fixed rate, in turns alone and with logins
at a fixed rate. Run it by hand, against a server with MUSTER_RATE_LIMITS=off MUSTER_THROTTLING=off:

    muster seed load --users 100000 --tokens tokens
    Benchmarks/login-flood.py http://127.0.0.1:8300 --tokens tokens --known known.txt

known.txt has one login per line. Requests are sent on schedule, whether or not earlier ones have finished. Their time
counts from when they were due, so the time of a stall counts for every request that waits meanwhile.
"""
import argparse
import collections
import datetime
import random
import time

from generator import address_of, compare, percentile, read_tokens, request, run, start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--tokens", required=True, help='a file with lines "userId eventId accessToken"')
    parser.add_argument("--known", required=True, help="a file with one login per line")
    parser.add_argument("--password", default="load-test-password")
    parser.add_argument("--validations", type=float, default=500, help="per second")
    parser.add_argument("--logins", type=float, default=200, help="per second")
    parser.add_argument("--seconds", type=float, default=15, help="length of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    address = address_of(arguments.url)

    validations = []
    for user, _, token in read_tokens(arguments.tokens):
        day = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=len(validations) % 200)
        stamp = day.strftime("%Y-%m-%dT%H:00:00Z")
        claims = {name: stamp for name in ("friends", "events", "friendRequests", "invitations")}
        validations.append(request("POST", f"/api/v1/cache/validate/{user}", claims, token))
    with open(arguments.known) as file:
        logins = [
            request("POST", "/api/v1/auth/login", {"login": line.strip(), "password": arguments.password})
            for line in file if line.strip()
        ]
    random.seed(1)
    random.shuffle(logins)

    def turn(with_logins):
        flood = None
        if with_logins:
            # Begins before the measured load and ends after it.
            flood = start(run, address, logins, arguments.logins, arguments.seconds + 3, 256)
            time.sleep(1.5)
        results, late = start(run, address, validations, arguments.validations, arguments.seconds, 64)()
        times = [milliseconds for milliseconds, _ in results]
        statuses = collections.Counter(status for _, status in results)
        line = f"validations p50 {percentile(times, 0.5):7.2f}  p99 {percentile(times, 0.99):7.2f} ms"
        line += f"  {dict(statuses)}, last sent {max(0, late * 1000):.0f} ms late"
        print(("with logins:    " if with_logins else "alone:          ") + line, flush=True)
        if flood:
            responses, late = flood()
            statuses = collections.Counter(status for _, status in responses)
            good = [milliseconds for milliseconds, status in responses if status == 200] or [0]
            print(
                f"  logins: {dict(statuses)}, {statuses[200] / (arguments.seconds + 3):.1f} successes per second,"
                f" p50 {percentile(good, 0.5):.0f}  p99 {percentile(good, 0.99):.0f} ms,"
                f" last sent {max(0, late * 1000):.0f} ms late", flush=True)
        return times

    compare(turn, arguments.rounds, "with logins")


if __name__ == "__main__":
    main()
