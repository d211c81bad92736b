"""The plugs that are pulled, one after the other, and the table of what it cost."""
import glob
import http.client
import os
import signal
import time

from cluster import wait
from load import Service

# Before and after each fault.
STEADY_SECONDS = 4
# Until all is whole again, and until the last notification has arrived.
RECOVERY_SECONDS = 120
DELIVERY_SECONDS = 30
PARTITION_SECONDS = 40
HANG_SECONDS = 20
CLOCK_SECONDS = 300
CLOCK_START_SECONDS = 15
DISK_SECONDS = 75


class Plugs:
    def __init__(self, cluster, load):
        self.cluster, self.load = cluster, load
        self.rows = []
        self.notes = []

    def all(self):
        """(name, function) of each plug, in the order in which they are pulled."""
        spaces = self.cluster.network.has_namespaces
        return [
            ("none", lambda: time.sleep(10)),
            ("switchover", self.switchover),
            ("kill -9 of the primary's postmaster", self.kill_postmaster),
            ("kill -9 of all on the primary's machine", self.kill_machine),
            ("kill -9 of etcd's leader", self.kill_etcd),
            ("SIGTERM to a serve (drain of 5 s)", self.restart_serve),
            ("kill -9 of a serve", lambda: self.kill_app(0, "serve")),
            ("kill -9 of both serve", self.kill_both),
            ("kill -9 of the worker", lambda: self.kill_app(0, "worker")),
            ("kill -9 of HAProxy", self.kill_haproxy),
            *([("primary's cable out", self.cut_cable),
               ("primary cut off from the other databases only", self.cut_databases),
               ("primary's disk full", self.fill_disk)] if spaces else []),
            ("synchronous standby hangs", self.hang_standby),
            ("other standby lags, then primary's machine dies", self.lag),
            ("a serve's clock 5 minutes ahead", self.serve_clock),
        ]

    def pull(self, name, plug):
        load, cluster = self.load, self.cluster
        time.sleep(STEADY_SECONDS)
        begin = time.monotonic()
        failures, flaws = load.failures.copy(), load.flaws.copy()
        remark = plug() or ""
        try:
            wait(cluster.is_whole, RECOVERY_SECONDS, "a whole cluster")
        except TimeoutError:
            remark += " (the cluster is not whole again)"
        try:
            wait(lambda: load.times and time.monotonic() - load.times[-1] < 1, RECOVERY_SECONDS, "writes")
        except TimeoutError:
            remark += " (no writes again)"
        time.sleep(STEADY_SECONDS)
        end = time.monotonic()
        events, gap = load.window(begin, end)
        try:
            wait(lambda: load.undelivered(events) == 0, DELIVERY_SECONDS, "notifications")
        except TimeoutError:
            pass
        expected = len(events) * len(load.streams)
        row = {
            "plug": name, "seconds": round(end - begin), "gap": gap, "acknowledged": len(events),
            "lost": len(load.lost(events)),
            "delivered": expected - load.undelivered(events), "expected": expected,
            "survived": sum(not any(begin <= at <= end for at in stream.breaks) for stream in load.streams),
            "streams": len(load.streams), "failures": load.failures - failures, "flaws": load.flaws - flaws,
            "remark": remark,
        }
        self.rows.append(row)
        return row

    # Databases

    def switchover(self):
        self.cluster.switch_over(self.cluster.find("sync_standby"))

    def kill_postmaster(self):
        os.kill(self.cluster.postmaster(self.cluster.primary()), signal.SIGKILL)
        time.sleep(5)

    def kill_machine(self):
        primary = self.cluster.primary()
        self.cluster.kill_database(primary)
        wait(lambda: self.cluster.primary() not in (None, primary), 90, "another primary")
        self.cluster.boot_database(primary)

    def kill_etcd(self):
        self.cluster.etcd_leader().programs["etcd"].send(signal.SIGKILL)
        time.sleep(10)

    def cut_cable(self):
        primary = self.cluster.primary()
        primary.plug(False)
        time.sleep(PARTITION_SECONDS)
        primary.plug(True)

    def cut_databases(self):
        """Clients still reach the old primary, which must not acknowledge writes that only it has."""
        primary = self.cluster.primary()
        others = [database for database in self.cluster.databases if database is not primary]
        primary.shun(others, True)
        time.sleep(PARTITION_SECONDS)
        primary.shun(others, False)

    def fill_disk(self):
        primary = self.cluster.primary()
        path = primary.path("disk/filler")
        with open(path, "wb", buffering=0) as filler:
            try:
                while filler.write(b"\0" * 65536):
                    pass
            except OSError:
                pass
        try:
            taken = wait(lambda: self.cluster.primary() not in (None, primary), DISK_SECONDS, "another primary")
            return f"another primary after {taken:.0f} s"
        except TimeoutError:
            return f"no failover within {DISK_SECONDS} s: then freed by hand"
        finally:
            os.unlink(path)

    def _receiver(self, database):
        """The pid of a standby's process that receives the primary's changes."""
        postmaster = str(self.cluster.postmaster(database))
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path, encoding="utf-8") as file:
                    parent = file.read().rpartition(")")[2].split()[1]
                with open(os.path.join(os.path.dirname(path), "cmdline"), encoding="utf-8") as file:
                    if parent == postmaster and "walreceiver" in file.read():
                        return int(path.split("/")[2])
            except OSError:
                continue
        raise RuntimeError(f"{database.name} receives nothing")

    def hang_standby(self):
        receiver = self._receiver(self.cluster.find("sync_standby"))
        os.kill(receiver, signal.SIGSTOP)
        time.sleep(HANG_SECONDS)
        os.kill(receiver, signal.SIGCONT)

    def lag(self):
        primary = self.cluster.primary()
        lagging = self.cluster.find("replica")
        receiver = self._receiver(lagging)
        os.kill(receiver, signal.SIGSTOP)
        time.sleep(3)
        self.cluster.kill_database(primary)
        wait(lambda: self.cluster.primary() not in (None, primary), 90, "another primary")
        promoted = self.cluster.primary()
        try:
            os.kill(receiver, signal.SIGCONT)
        except ProcessLookupError:
            pass
        self.cluster.boot_database(primary)
        return "the lagging one was promoted" if promoted is lagging else "the synchronous one took over"

    # Programs

    def kill_app(self, index, name):
        self.cluster.apps[index].programs[name].send(signal.SIGKILL)
        time.sleep(8)

    def kill_both(self):
        for app in self.cluster.apps:
            app.programs["serve"].send(signal.SIGKILL)
        time.sleep(8)

    def restart_serve(self):
        self.cluster.apps[0].programs["serve"].send(signal.SIGTERM)
        time.sleep(15)

    def kill_haproxy(self):
        # The master, and with it the worker, which sees that its master is gone.
        self.cluster.balancers["haproxy"].programs["haproxy"].send(signal.SIGKILL)
        time.sleep(8)

    # Clocks

    @staticmethod
    def clock(seconds):
        """The variables of a process whose clock is off. The kernel's namespaces of
        time do not help: they shift only the clocks that count from the start of the machine."""
        found = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
        if not found:
            raise RuntimeError("libfaketime is not installed")
        return {"LD_PRELOAD": found[0], "FAKETIME": f"{seconds:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                "FAKETIME_DONT_RESET": "1"}

    def serve_clock(self):
        app = self.cluster.apps[0]
        app.programs["serve"].stop()
        self.cluster.start_serve(0, **self.clock(CLOCK_SECONDS))
        try:
            wait(lambda: self._is_live(app), CLOCK_START_SECONDS, "a live serve")
            time.sleep(20)
            return ""
        except TimeoutError:
            return "not measured, because serve does not start under libfaketime"
        finally:
            app.programs["serve"].stop()
            self.cluster.start_serve(0)

    @staticmethod
    def _is_live(app):
        try:
            return Service(app.address, port=8080).send("GET", "/health/live")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def table(self):
        """The rows in Markdown."""
        lines = ["| plug | s without writes | acknowledged | lost | notifications delivered | streams that survived |",
                 "|---|---|---|---|---|---|"]
        for row in self.rows:
            name = row["plug"] + (f": {row['remark'].strip()}" if row["remark"] else "")
            lines.append(
                f"| {name} | {row['gap']:.1f} | {row['acknowledged']} | {row['lost']} | "
                f"{row['delivered']} of {row['expected']} | {row['survived']} of {row['streams']} |")
        return "\n".join(lines)
