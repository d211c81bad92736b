#!/usr/bin/env python3
"""Prints the plans of the feed and the friend list of one user, as EXPLAIN (ANALYZE, BUFFERS) shows them. They are the
plans of the statements that the service really sends: auto_explain writes them to PostgreSQL's log. Run it by hand, on
a database filled by

    muster seed load --users 100000 --tokens tokens
    Benchmarks/explain.py tokens [--log /var/log/postgresql/postgresql-15-main.log]

DATABASE_URL must name a superuser. The three variables that `muster keys` prints must be the same as for the
seed. The script must be able to read PostgreSQL's log. It requests each list several times, so that the plan is the one
that a prepared statement keeps and its data is in memory, and prints the last plan of each.
"""
import argparse
import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

LISTS = {"the feed": ("events", "events AS e"), "the friend list": ("friends", "friends AS f")}
SETTINGS = {
    "session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0", "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on", "auto_explain.log_format": "text",
}


def explaining(url):
    """Returns the URL of the same database with auto_explain in every session."""
    options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    if not url.startswith(("postgres://", "postgresql://")):
        return f"{url} options='{options}'"
    return url + ("&" if "?" in url else "?") + "options=" + urllib.parse.quote(options)


def log_file(url):
    """Returns the path of the server's log. Needs the logging collector."""
    query = "SELECT current_setting('data_directory') || '/' || pg_current_logfile('stderr')"
    path = subprocess.run(["psql", url, "-Atc", query], check=True, capture_output=True, text=True).stdout.strip()
    if not path:
        raise SystemExit("the server has no log file of its own: give the file of its stderr with --log")
    return path


def plans(text):
    """Returns the entries of auto_explain: each is a line, followed by lines that begin with a tab."""
    return re.findall(r"duration: [0-9.]+ ms  plan:\n(?:\t.*\n)+", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokens", help='a file with lines "userId eventId accessToken"; the first user is used')
    parser.add_argument("--log", help="the server's log; by default, the script asks the server")
    parser.add_argument("--muster", default="muster", help="the muster program")
    parser.add_argument("--limit", type=int, default=20, help="items per page")
    parser.add_argument("--times", type=int, default=20, help="how often to request each list")
    arguments = parser.parse_args()
    database = os.environ["DATABASE_URL"]
    log = arguments.log or log_file(database)
    with open(arguments.tokens) as file:
        user, _, token = file.readline().split()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def get(path, **headers):
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", headers=headers)
        with urllib.request.urlopen(asked, timeout=30) as response:
            return json.load(response)

    environment = dict(
        os.environ, DATABASE_URL=explaining(database), MUSTER_PUBLIC_URL="http://127.0.0.1", MUSTER_RATE_LIMITS="off", MUSTER_THROTTLING="off")
    service = subprocess.Popen([arguments.muster, "serve", "--port", str(port)], env=environment)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                get("health/ready")
                break
            except (urllib.error.URLError, ConnectionError):
                if service.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("the service does not respond")
                time.sleep(0.1)
        for name, (path, mark) in LISTS.items():
            place = os.path.getsize(log)
            for _ in range(arguments.times):
                items = get(f"api/v1/{path}?limit={arguments.limit}", Authorization=f"Bearer {token}")["items"]
            deadline = time.monotonic() + 5
            found = []
            while len(found) < arguments.times and time.monotonic() < deadline:
                time.sleep(0.1)
                with open(log, errors="replace") as file:
                    file.seek(place)
                    found = [plan for plan in plans(file.read()) if mark in plan]
            if not found:
                raise SystemExit(f"no plan in {log}: does DATABASE_URL name a superuser, and is this the server's log?")
            print(f"{name} of {user}: {len(items)} items, plan {len(found)} of {arguments.times}")
            print(found[-1].replace("\n\t", "\n  "))
    finally:
        service.terminate()
        service.wait()


if __name__ == "__main__":
    main()
