#!/usr/bin/env python3
"""Compares two ways to keep an app's copies on disk: a file for each collection, and SQLite with a row for each item.

The copies are those of a user with 200 friends, 100 events and 50 items in the inbox, by size. Both ways promise the
same: a copy outlives the process, but the last changes may be lost in a power failure. A file is written next to the old
one and renamed. SQLite uses its write-ahead log, with synchronous=NORMAL.
"""

import argparse
import json
import os
import sqlite3
import statistics
import tempfile
import time

# Items and the bytes of each, as in the lists of Benchmarks/launch.py.
COLLECTIONS = {
    "profile": (1, 300), "friends": (200, 250), "friendRequests": (5, 400), "sentFriendRequests": (5, 400),
    "events": (100, 900), "invitations": (40, 1000), "blocks": (3, 250), "notifications": (50, 500),
    "notificationPreferences": (1, 300),
}


def items(name, edition=0):
    count, size = COLLECTIONS[name]
    made = []
    for number in range(count):
        item = {"id": f"{name}-{number:06}", "title": f"{edition if number == 0 else 0}"}
        item["filler"] = "x" * (size - len(json.dumps(item)) - 14)
        made.append(item)
    return made


class Files:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return os.path.join(self.folder, name + ".json")

    def write(self, name, new, changed):
        with open(self.path(name) + ".new", "w") as file:
            json.dump({"stamp": "2026-05-01T09:30:00.123456Z", "items": new}, file)
        os.replace(self.path(name) + ".new", self.path(name))

    def read(self, name):
        with open(self.path(name)) as file:
            return json.load(file)["items"]


class SQLite:
    def __init__(self, folder):
        self.database = sqlite3.connect(os.path.join(folder, "copies.sqlite"))
        self.database.execute("PRAGMA journal_mode = WAL")
        self.database.execute("PRAGMA synchronous = NORMAL")
        self.database.executescript("""
            CREATE TABLE collections (name TEXT PRIMARY KEY, stamp TEXT);
            CREATE TABLE items (
              collection TEXT, key TEXT, place INTEGER, json TEXT, PRIMARY KEY (collection, key)
            ) WITHOUT ROWID;""")

    def write(self, name, new, changed):
        with self.database:
            self.database.execute("INSERT OR REPLACE INTO collections VALUES (?, 'stamp')", (name,))
            self.database.executemany(
                "INSERT OR REPLACE INTO items VALUES (?, ?, ?, ?)",
                ((name, new[place]["id"], place, json.dumps(new[place])) for place in changed))

    def read(self, name):
        rows = self.database.execute("SELECT json FROM items WHERE collection = ? ORDER BY place", (name,))
        return [json.loads(text) for (text,) in rows]


def milliseconds(action):
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1000


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    times = {}
    for number in range(1, rounds + 1):
        for way in (Files, SQLite):
            with tempfile.TemporaryDirectory() as folder:
                store = way(folder)
                for what, action in (
                    ("write all", lambda: [store.write(n, items(n), range(COLLECTIONS[n][0])) for n in COLLECTIONS]),
                    ("read all at launch", lambda: [store.read(n) for n in COLLECTIONS]),
                    ("write after 1 of 100 events changed", lambda: store.write("events", items("events", 1), [0])),
                ):
                    times.setdefault(what, {}).setdefault(way.__name__, []).append(milliseconds(action))
                read = [store.read(name) for name in COLLECTIONS]
                assert read == [items(name, int(name == "events")) for name in COLLECTIONS], way
    print(f"load {os.getloadavg()[0]:.1f}, medians of {rounds} interleaved rounds, SQLite {sqlite3.sqlite_version}")
    print("| what | files, ms | SQLite, ms | files / SQLite |\n|---|---|---|---|")
    for what, ways in times.items():
        files, database = (statistics.median(ways[way.__name__]) for way in (Files, SQLite))
        print(f"| {what} | {files:.2f} | {database:.2f} | {files / database:.2f} |")


if __name__ == "__main__":
    main()
