#!/usr/bin/env python3
"""What a flood of logins does to everybody else: cache validations at a fixed rate, alone and beside logins at a fixed
rate, in turns. By hand, against a server with MUSTER_RATE_LIMITS=off:

    muster seed load --users 100000 --tokens tokens
    Benchmarks/login-flood.py http://127.0.0.1:8300 --tokens tokens --known known.txt

known.txt has a login a line. Requests leave by the clock, whether or not those before have been answered, and their time
counts from when they were due: a server that stalls is charged for all that waits meanwhile.
"""
import argparse
import collections
import datetime
import json
import multiprocessing
import random
import socket
import threading
import time
import urllib.parse


class Connection:
    """Keeps one connection and sends whole requests on it."""

    def __init__(self, address):
        self.address = address
        self.socket = None
        self.left = b""

    def send(self, request):
        """The status of the answer; 0 if there was none."""
        try:
            if self.socket is None:
                self.left = b""
                self.socket = socket.create_connection(self.address, timeout=30)
                self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.sendall(request)
            return self.receive()
        except OSError:
            if self.socket is not None:
                self.socket.close()
            self.socket = None
            return 0

    def receive(self):
        data = self.left
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self.more()
        head = data[:end].decode("latin-1").lower()
        length = int(head.split("content-length:", 1)[1].split("\r\n", 1)[0])
        whole = end + 4 + length
        while len(data) < whole:
            data += self.more()
        self.left = data[whole:]
        return int(head.split(" ", 2)[1])

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        return data


def post(path, body, token=None):
    body = json.dumps(body).encode()
    head = [f"POST {path} HTTP/1.1", "Host: benchmark", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    if token:
        head.append(f"Authorization: Bearer {token}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def run(address, requests, rate, seconds, callers):
    """Sends at a fixed rate. Each caller takes the next request that is due; while all are busy, requests are late, and
    their time runs.

    Returns (milliseconds since it was due, status) for each, and how late the last one left."""
    total = int(rate * seconds)
    taken = iter(range(total))
    lock = threading.Lock()
    results = []
    start = time.perf_counter() + 0.2
    sent_last = start

    def call():
        nonlocal sent_last
        connection = Connection(address)
        while True:
            with lock:
                number = next(taken, None)
            if number is None:
                return
            due = start + number / rate
            if (pause := due - time.perf_counter()) > 0:
                time.sleep(pause)
            sent_last = max(sent_last, time.perf_counter())
            status = connection.send(requests[number % len(requests)])
            results.append(((time.perf_counter() - due) * 1000, status))

    threads = [threading.Thread(target=call, daemon=True) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results, sent_last - (start + total / rate)


def in_process(pipe, *arguments):
    pipe.send(run(*arguments))


def start(*arguments):
    """A process of its own: no generator waits for the other's interpreter."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=in_process, args=(theirs, *arguments))
    process.start()
    return lambda: (ours.recv(), process.join())[0]


def percentile(sample, share):
    return sorted(sample)[min(len(sample) - 1, int(len(sample) * share))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--tokens", required=True, help='a file with lines "userId eventId accessToken"')
    parser.add_argument("--known", required=True, help="a file with a login a line")
    parser.add_argument("--password", default="load-test-password")
    parser.add_argument("--validations", type=float, default=500, help="a second")
    parser.add_argument("--logins", type=float, default=200, help="a second")
    parser.add_argument("--seconds", type=float, default=15, help="of each turn")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    address = urllib.parse.urlsplit(arguments.url)
    address = (address.hostname, address.port)

    validations = []
    with open(arguments.tokens) as file:
        for line in file:
            user, _, token = line.split()
            day = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=len(validations) % 200)
            stamp = day.strftime("%Y-%m-%dT%H:00:00Z")
            claims = {name: stamp for name in ("friends", "events", "friendRequests", "invitations")}
            validations.append(post(f"/api/v1/cache/validate/{user}", claims, token))
    with open(arguments.known) as file:
        logins = [
            post("/api/v1/auth/login", {"login": line.strip(), "password": arguments.password})
            for line in file if line.strip()
        ]
    random.seed(1)
    random.shuffle(logins)

    def turn(with_logins):
        flood = None
        if with_logins:
            # Begins before and ends after what it is to disturb.
            flood = start(address, logins, arguments.logins, arguments.seconds + 3, 256)
            time.sleep(1.5)
        results, late = start(address, validations, arguments.validations, arguments.seconds, 64)()
        times = [milliseconds for milliseconds, _ in results]
        statuses = collections.Counter(status for _, status in results)
        line = f"validations p50 {percentile(times, 0.5):7.2f}  p99 {percentile(times, 0.99):7.2f} ms"
        line += f"  {dict(statuses)}, last sent {max(0, late * 1000):.0f} ms late"
        print(("beside logins:  " if with_logins else "alone:          ") + line, flush=True)
        if flood:
            answers, late = flood()
            statuses = collections.Counter(status for _, status in answers)
            good = [milliseconds for milliseconds, status in answers if status == 200] or [0]
            print(
                f"  logins: {dict(statuses)}, {statuses[200] / (arguments.seconds + 3):.1f} a second let in,"
                f" p50 {percentile(good, 0.5):.0f}  p99 {percentile(good, 0.99):.0f} ms,"
                f" last sent {max(0, late * 1000):.0f} ms late", flush=True)
        return times

    turn(False)  # to warm up
    alone, beside, ratios = [], [], []
    for _ in range(arguments.rounds):
        one, other = turn(False), turn(True)
        alone += one
        beside += other
        ratios.append(percentile(other, 0.99) / percentile(one, 0.99))
    for share in (0.5, 0.99):
        one, other = percentile(alone, share), percentile(beside, share)
        print(f"p{share * 100:.0f}: alone {one:.2f} ms, beside logins {other:.2f} ms, ratio {other / one:.2f}")
    print("ratios of p99 by round: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))


if __name__ == "__main__":
    main()
