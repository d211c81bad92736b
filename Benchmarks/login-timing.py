#!/usr/bin/env python3
"""Tests whether the time of a refused login reveals that the account exists: sends wrong passwords for known and for
unknown logins, in random order on one connection, and compares the times by a Kolmogorov-Smirnov test. Run it by hand,
against an idle server with MUSTER_RATE_LIMITS=off MUSTER_THROTTLING=off:

    Benchmarks/login-timing.py http://127.0.0.1:8300 --known known.txt

known.txt has one login per line. The lower MUSTER_SCRYPT is, the smaller the difference that the hash hides.
"""
import argparse
import http.client
import json
import math
import random
import time
import urllib.parse


def kolmogorov_smirnov(one, other):
    """The greatest distance between the two distributions, and how likely such a distance is if they are the same."""
    one, other = sorted(one), sorted(other)
    n, m = len(one), len(other)
    i = j = 0
    distance = 0.0
    while i < n and j < m:
        value = min(one[i], other[j])
        while i < n and one[i] <= value:
            i += 1
        while j < m and other[j] <= value:
            j += 1
        distance = max(distance, abs(i / n - j / m))
    root = math.sqrt(n * m / (n + m))
    # The limiting distribution with Stephens' correction for finite samples.
    x = (root + 0.12 + 0.11 / root) * distance
    if x < 0.2:
        return distance, 1.0  # the series does not converge here; the value is 1 to ten digits
    series = sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))
    return distance, min(1.0, max(0.0, 2 * series))


def percentile(sample, share):
    return sorted(sample)[min(len(sample) - 1, int(len(sample) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--known", required=True, help="a file with one login per line")
    parser.add_argument("-n", type=int, default=2000, help="logins of each kind")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    with open(arguments.known) as file:
        known = [line.strip() for line in file if line.strip()]

    address = urllib.parse.urlsplit(arguments.url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)

    def attempt(login):
        body = json.dumps({"login": login, "password": "not the password"})
        start = time.perf_counter()
        connection.request("POST", "/api/v1/auth/login", body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        response.read()
        seconds = time.perf_counter() - start
        if response.status != 401:
            raise SystemExit(f"{login}: expected 401, got {response.status} (is MUSTER_THROTTLING off?)")
        return seconds * 1000

    def unknown():
        # As long as a known login, with the same kind of characters.
        login = list(random.choice(known))
        random.shuffle(login)
        return "x" + "".join(login)[1:] + "x"

    for _ in range(50):
        attempt(random.choice(known))
        attempt(unknown())
    # In pairs in random order: anything that slows the machine down for a while affects both kinds.
    times = {"known": [], "unknown": []}
    for done in range(arguments.n):
        pair = [("known", random.choice(known)), ("unknown", unknown())]
        random.shuffle(pair)
        for kind, login in pair:
            times[kind].append(attempt(login))
        if done % 100 == 99:
            print(f"\r{done + 1} of {arguments.n}", end="", flush=True)
    print()

    for kind, sample in times.items():
        figures = "  ".join(f"p{share} {percentile(sample, share / 100):8.3f}" for share in (10, 50, 90, 99))
        print(f"{kind:8} n {len(sample)}  {figures}  ms")
    print("known vs. unknown: D %.4f, p %.3f" % kolmogorov_smirnov(times["known"], times["unknown"]))
    # The result when there is no difference: the machine's own noise.
    for kind, sample in times.items():
        print(f"{kind} vs. itself: " + "D %.4f, p %.3f" % kolmogorov_smirnov(sample[::2], sample[1::2]))


if __name__ == "__main__":
    main()
