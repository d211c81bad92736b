"""The picture decoder: programs of an attacker in its place, what they get, and what they cost."""
import contextlib
import os
import shutil
import socket
import tempfile
import threading
import time

from .connections import small_picture
from .lab import Outcome, at_once
from .machine import children_of, stat_of

MIB = 1 << 20
PATIENCE = 2  # seconds for another user's request
# The limit of the address space, and what a process needs besides.
MEMORY = 800 * MIB

HEADER = "echo 'stdin: 64x64 uchar, 3 bands, srgb, jpegload_source'"

# It runs nothing but itself, because it may start no process.
HOSTILE = r"""
trap 'exit 0' EXIT
exec 2>&-
printf '\xff\xd8\xff'
for file in /proc/$PPID/environ /proc/$PPID/maps '%(secret)s' /etc/passwd; do
  text=
  IFS= read -r -N 100000 text <"$file"
  [ -z "$text" ] || printf 'read %%s; ' "$file"
done
exec 3</proc/$PPID/mem && printf 'memory; '
exec 4<>/dev/tcp/127.0.0.1/%(port)d && printf 'tcp; '
exec 5<>/dev/udp/127.0.0.1/%(port)d && printf 'udp; '
kill -0 $PPID && printf 'signal; '
: >>'%(secret)s' && printf 'changed; '
printf 'ended'
: & printf '; forked'
"""


@contextlib.contextmanager
def programs(script, header=HEADER):
    """A folder with stand-ins for the decoder's programs."""
    folder = tempfile.mkdtemp(prefix="muster-decoder-", dir="/tmp")
    try:
        os.chmod(folder, 0o755)
        for name, text in (("vipsheader", header), ("vipsthumbnail", script)):
            with open(f"{folder}/{name}", "w") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(f"{folder}/{name}", 0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def path_with(folder):
    return f"{folder}:{os.environ.get('PATH', '/usr/bin:/bin')}"


def hostile_decoder(lab):
    """A decoder that has been taken over looks for secrets, the network and other processes."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        secret = stack.enter_context(tempfile.NamedTemporaryFile(prefix="muster-secret-", dir="/tmp"))
        secret.write(b"secret")
        secret.flush()
        script = HOSTILE % {"secret": secret.name, "port": listener.getsockname()[1]}
        folder = stack.enter_context(programs(script))
        service = lab.service(PATH=path_with(folder))
        ana = service.register("ana")
        response = service.call("PUT", "users/me/picture", small_picture(), ana.token)
        got = "nothing was stored"
        if response.status == 200:
            key = response.body["pictureUrl"].rpartition("/")[2]
            got = lab.psql().value(
                f"SELECT convert_from(substring(jpeg_2048 FROM 4), 'UTF8') FROM pictures WHERE key = '{key}'")
        with open(f"/proc/{service.pid}/environ", "rb") as file:
            shown = file.read()
        names = [name for name in ("DATABASE_URL", "MUSTER_ACCESS_TOKEN_KEYS", "MUSTER_REFRESH_TOKEN_KEYS")
                 if lab.environment()[name].encode() in shown]
    return Outcome(
        f"the decoder got: {got.removesuffix('ended').rstrip('; ') or 'nothing'}; /proc/PID/environ shows root"
        f" {', '.join(names) or 'no secret'}",
        "nothing; no secret", got == "ended" and not names)


def tree_of(pid):
    found = children_of(pid)
    return found + [child for one in found for child in tree_of(one)]


def watch(service, stopped, peaks):
    """Keeps the largest number of the service's children, and the most memory that one of them had."""
    page = os.sysconf("SC_PAGE_SIZE")
    while not stopped.is_set():
        pids = tree_of(service.pid)
        peaks["processes"] = max(peaks["processes"], len(pids))
        for pid in pids:
            try:
                peaks["memory"] = max(peaks["memory"], int(stat_of(pid)[21]) * page)
            except OSError:
                pass  # It has ended.
        time.sleep(0.01)


def costly(lab, script):
    """Uploads a picture to a decoder with this script, while another user sends requests."""
    with programs(script) as folder:
        service = lab.service(PATH=path_with(folder))
        ana, ben = service.register("ana"), service.register("ben")
        stopped, peaks, slowest = threading.Event(), {"processes": 0, "memory": 0}, 0.0
        start = time.monotonic()

        def upload():
            try:
                return service.call("PUT", "users/me/picture", small_picture(), ana.token, timeout=60)
            finally:
                stopped.set()

        def validate():
            slowest = 0.0
            while not stopped.is_set():
                slowest = max(slowest, service.validate(ben).seconds)
                time.sleep(0.05)
            return slowest

        response, slowest, _ = at_once(upload, validate, lambda: watch(service, stopped, peaks))
        seconds = time.monotonic() - start
        again = service.validate(ben).status
    measured = (
        f"{response.status} after {seconds:.0f} s; at most {peaks['processes']} processes and"
        f" {peaks['memory'] / MIB:.0f} MiB; the slowest request of another user takes {slowest:.2f} s")
    ok = response.status == 415 and again == 200 and slowest < PATIENCE and peaks["memory"] < MEMORY
    return Outcome(measured, f"415; 2 processes; {MEMORY // MIB} MiB; {PATIENCE} s", ok and peaks["processes"] <= 2)


def forking_decoder(lab):
    """A decoder starts processes without end."""
    return costly(lab, "exec 2>&-; bomb() { while :; do bomb & done; }; bomb")


def greedy_decoder(lab):
    """A decoder takes memory without end."""
    return costly(lab, "exec 2>&-; text=12345678; while :; do text=$text$text || exit 1; done")


def endless_decoder(lab):
    """A decoder takes processor time without end."""
    return costly(lab, "while :; do :; done")


CASES = [hostile_decoder, forking_decoder, greedy_decoder, endless_decoder]
