"""Shared code of the load generators: complete requests on open connections, sent on schedule."""
import encodings.idna  # Otherwise the threads of a forked process import it at once, which may fail.
import json
import multiprocessing
import os
import re
import socket
import statistics
import subprocess
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))


def address_of(url):
    parts = urllib.parse.urlsplit(url)
    return parts.hostname, parts.port


def read_tokens(path):
    """Returns triples of user, event and access token, as `muster seed load --tokens` writes them."""
    with open(path) as file:
        return [tuple(line.split()) for line in file if line.strip()]


class Connection:
    """Keeps one connection open and sends complete requests on it. The body of the last response is in `body`."""

    def __init__(self, address):
        self.address = address
        self.socket = None
        self.left = b""
        self.body = b""

    def send(self, request):
        """Returns the status of the response, or 0 if there was none."""
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
        self.body = data[end + 4:whole]
        self.left = data[whole:]
        return int(head.split(" ", 2)[1])

    def more(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("closed")
        return data


def wrk(work, port, tokens, seconds=3, connections=64):
    """Starts wrk with one of the loads of load.lua. Returns a function that waits for its requests a second."""
    process = subprocess.Popen(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", f"{HERE}/load.lua", f"http://127.0.0.1:{port}"],
        env=dict(os.environ, WORK=work, TOKENS=tokens), stdout=subprocess.PIPE, text=True)

    def wait():
        said = process.communicate()[0].splitlines()[-1:]
        found = said and re.fullmatch(r"(\d+) req/s .* bad-status (\d+)  socket-errors (\d+)", said[0])
        if not found or int(found[2]) or int(found[3]):
            raise SystemExit(f"the load {work} failed: {said}")
        return int(found[1])

    return wait


def median_ms(address, requests, count=60):
    """Of requests on one connection, each sent when the response to the last one has come."""
    connection = Connection(address)
    times = []
    for number in range(count):
        start = time.perf_counter()
        status = connection.send(requests[number % len(requests)])
        times.append((time.perf_counter() - start) * 1000)
        if status != 200:
            raise SystemExit(f"a request got {status}: {connection.body[:300]}")
    return statistics.median(times)


def request(method, path, body, token=None, key=None):
    body = json.dumps(body).encode()
    head = [
        f"{method} {path} HTTP/1.1", "Host: benchmark", "Content-Type: application/json", f"Content-Length: {len(body)}"
    ]
    if token:
        head.append(f"Authorization: Bearer {token}")
    if key:
        head.append(f"Idempotency-Key: {key}")
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def run(address, requests, rate, seconds, callers):
    """Sends requests at a fixed rate. Each caller takes the next request that is due. While all callers are busy,
    requests are late, and the wait counts.

    Returns (milliseconds since it was due, status) for each request, and how late the last one was sent."""
    total = round(rate * seconds)
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


def in_process(pipe, work, arguments):
    pipe.send(work(*arguments))


def start(work, *arguments):
    """Runs `work` in a process of its own, so that no generator waits for another one's interpreter.

    Returns a function that waits for the result."""
    ours, theirs = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=in_process, args=(theirs, work, arguments))
    process.start()
    return lambda: (ours.recv(), process.join())[0]


def percentile(sample, share):
    return sorted(sample)[min(len(sample) - 1, int(len(sample) * share))]


def compare(turn, rounds, label):
    """Runs turns alone and with a disturbance, interleaved, and prints the percentiles of both and their ratios.

    `turn(disturbed)` returns the milliseconds of its requests."""
    turn(False)  # to warm up
    alone, disturbed, ratios = [], [], []
    for _ in range(rounds):
        one, other = turn(False), turn(True)
        alone += one
        disturbed += other
        ratios.append(percentile(other, 0.99) / percentile(one, 0.99))
    for share in (0.5, 0.99):
        one, other = percentile(alone, share), percentile(disturbed, share)
        print(f"p{share * 100:.0f}: alone {one:.2f} ms, {label} {other:.2f} ms, ratio {other / one:.2f}")
    print("ratios of p99 by round: " + ", ".join(f"{ratio:.2f}" for ratio in ratios))
