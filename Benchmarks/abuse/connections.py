"""How clients can harm others with connections alone."""
import os
import resource
import select
import socket
import struct
import time
import zlib

from .lab import Client, Outcome
from .machine import wait_until

PATIENCE = 2  # seconds until an innocent client must have its response


def open_connections(service, source, count):
    """Opens connections. Each sends a request line and then waits."""
    opened = []
    for _ in range(count):
        connection = socket.socket()
        connection.bind((source, 0))
        connection.settimeout(5)
        try:
            connection.connect(("127.0.0.1", service.port))
            connection.sendall(b"GET /health/live HTTP/1.1\r\n")
        except OSError:
            pass  # It counts as closed.
        opened.append(connection)
    return opened


def still_open(opened):
    count = 0
    for connection in opened:
        try:
            readable, _, _ = select.select([connection], [], [], 0)
            count += not readable or bool(connection.recv(1, socket.MSG_PEEK))
        except (OSError, ValueError):
            pass
    return count


def close_all(opened):
    for connection in opened:
        connection.close()


def settled(opened):
    """Returns how many stay open when no more are being closed."""
    counts = [still_open(opened)]
    end = time.monotonic() + 5
    while time.monotonic() < end:
        time.sleep(0.3)
        counts.append(still_open(opened))
        if counts[-1] == counts[-2]:
            break
    return counts[-1]


def connections_per_address(lab):
    """60 connections from one address, with a limit of 50. Other addresses get responses."""
    service = lab.service(MUSTER_MAX_CONNECTIONS="200", MUSTER_CONNECTIONS_PER_ADDRESS="50")
    opened = open_connections(service, "127.0.0.2", 60)
    left = settled(opened)
    refused = service.metric("muster_connections_refused_total")
    other = service.call("GET", "/health/ready", source="127.0.0.3", timeout=PATIENCE)
    close_all(opened)
    again = wait_until(
        lambda: service.call("GET", "/health/ready", source="127.0.0.2", timeout=PATIENCE).status == 200, 5)
    return Outcome(
        f"{left} of 60 open, {refused:.0f} counted as refused; another address: {other.status} after"
        f" {other.seconds:.2f} s; afterwards {'responds' if again else 'does not respond'}",
        f"50 open, 10 counted; {PATIENCE} s", left == 50 and refused == 10 and other.status == 200 and again)


def connections_in_all(lab):
    """250 connections from 10 addresses, with a limit of 200. Earlier connections get responses."""
    service = lab.service(MUSTER_MAX_CONNECTIONS="200", MUSTER_CONNECTIONS_PER_ADDRESS="50")
    wait_until(lambda: service.metric("muster_connections") == 0, 2)
    earlier = Client(service, "127.0.0.50")
    earlier.call("GET", "/health/live")
    opened = [
        connection for number in range(10) for connection in open_connections(service, f"127.0.0.{20 + number}", 25)
    ]
    left = settled(opened)
    beside = earlier.call("GET", "/health/ready")
    earlier.close()
    close_all(opened)
    again = wait_until(lambda: service.call("GET", "/health/ready", timeout=PATIENCE).status == 200, 5)
    return Outcome(
        f"{left} of 250 open besides 1 earlier one, which got {beside.status} after {beside.seconds:.2f} s; afterwards"
        f" {'responds' if again else 'does not respond'}",
        f"199 open; {PATIENCE} s", left == 199 and beside.status == 200 and beside.seconds < PATIENCE and bool(again))


def file_descriptors(lab):
    """A process raises its soft limit of files. If it still runs out of files, it survives and recovers."""
    soft, hard = 256, 2048
    service = lab.service(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard)))
    ana = service.register("ana")
    opened = open_connections(service, "127.0.0.2", 200) + open_connections(service, "127.0.0.3", 200)
    time.sleep(1)
    beside = service.call("GET", "/health/ready", timeout=PATIENCE)
    close_all(opened)
    wait_until(lambda: files_of(service) < 100, 5)

    allowed = files_of(service) + 30
    resource.prlimit(service.pid, resource.RLIMIT_NOFILE, (allowed, hard))
    opened = open_connections(service, "127.0.0.2", 150)
    time.sleep(3)
    taken = files_of(service)
    close_all(opened)
    again = service.is_running and wait_until(lambda: service.validate(ana).status == 200, 10)
    return Outcome(
        f"started with {soft} files, with 400 connections: {beside.status or 'no response'} after"
        f" {beside.seconds:.2f} s; then with {taken} of {allowed} files taken the process"
        f" {'runs' if service.is_running else 'ends'}, and {'responds' if again else 'does not respond'} afterwards",
        f"200 within {PATIENCE} s; runs and responds", beside.status == 200 and service.is_running and bool(again))


def files_of(service):
    return len(os.listdir(f"/proc/{service.pid}/fd")) if service.is_running else 0


def small_picture():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*part) for part in ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0\0\0\0")), (b"IEND", b"")))


def begun_upload(service, user):
    """Returns a connection on which the upload of a picture of 2 MB has begun."""
    head = (
        f"PUT /api/v1/users/me/picture HTTP/1.1\r\nHost: abuse\r\nAuthorization: Bearer {user.token}\r\n"
        "Content-Type: image/png\r\nContent-Length: 2000000\r\n\r\n")
    connection = socket.create_connection(("127.0.0.1", service.port))
    connection.sendall(head.encode() + small_picture())
    return connection


def trickled_pictures(lab):
    """One user's twelve uploads at 2 KiB/s hold one slot, and another user's uploads succeed."""
    service = lab.service()
    ana, ben = service.register("ana"), service.register("ben")
    uploads = [begun_upload(service, ana) for _ in range(12)]
    statuses = []
    for _ in range(5):
        time.sleep(1)
        for upload in uploads:
            try:
                upload.sendall(bytes(2048))
            except OSError:
                pass  # It was refused.
        response = service.call("PUT", "users/me/picture", small_picture(), ben.token, timeout=5)
        statuses.append(response.status)
    held = 0
    for upload in uploads:
        readable, _, _ = select.select([upload], [], [], 0)
        held += not readable
    large = f"DELETE /api/v1/users/me/picture HTTP/1.1\r\nHost: abuse\r\nAuthorization: Bearer {ben.token}\r\n"
    removal = socket.create_connection(("127.0.0.1", service.port), timeout=5)
    removal.sendall(large.encode() + b"Content-Length: 1000000\r\n\r\n")
    try:
        refused = removal.recv(12).decode().partition(" ")[2]
    except TimeoutError:
        refused = "no response"
    close_all([*uploads, removal])
    return Outcome(
        f"{held} of 12 uploads under way; another user's pictures: {statuses}; DELETE with a body of 1 MB: {refused}",
        "1; all 200; 413", held == 1 and statuses == [200] * 5 and refused == "413")


CASES = [connections_per_address, connections_in_all, file_descriptors, trickled_pictures]
