#!/usr/bin/env python3
"""Whether the time of a refused login tells if the account exists: wrong passwords for known and for unknown logins,
interleaved in random order on one connection, compared by a Kolmogorov-Smirnov test. By hand, against a quiet server
with MUSTER_THROTTLING=off:

    Benchmarks/login-timing.py http://127.0.0.1:8300 --known known.txt

known.txt has a login a line. The lower MUSTER_SCRYPT, the less of a difference is hidden by the hash.
"""
import argparse
import http.client
import json
import math
import random
import time
import urllib.parse


def kolmogorov_smirnov(one, other):
    """The greatest distance of the two distributions, and how likely one that great is if they are the same."""
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
        return distance, 1.0  # where the series does not converge, it is 1 to ten digits
    series = sum((-1) ** (k - 1) * math.exp(-2 * k * k * x * x) for k in range(1, 101))
    return distance, min(1.0, max(0.0, 2 * series))


def percentile(sample, share):
    return sorted(sample)[min(len(sample) - 1, int(len(sample) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--known", required=True, help="a file with a login a line")
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
        answer = connection.getresponse()
        answer.read()
        seconds = time.perf_counter() - start
        if answer.status != 401:
            raise SystemExit(f"{login}: {answer.status}, not 401 (is MUSTER_THROTTLING off?)")
        return seconds * 1000

    def unknown():
        # As long as a known one, and of the same kind of characters.
        login = list(random.choice(known))
        random.shuffle(login)
        return "x" + "".join(login)[1:] + "x"

    for _ in range(50):
        attempt(random.choice(known))
        attempt(unknown())
    # In pairs whose order is random: what slows the machine down for a while slows both kinds.
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
    print("known against unknown: D %.4f, p %.3f" % kolmogorov_smirnov(times["known"], times["unknown"]))
    # What the test says where there is nothing to find: the machine's own unrest.
    for kind, sample in times.items():
        print(f"{kind} against itself: " + "D %.4f, p %.3f" % kolmogorov_smirnov(sample[::2], sample[1::2]))


if __name__ == "__main__":
    main()
