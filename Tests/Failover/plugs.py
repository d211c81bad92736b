"""The plugs that are pulled, one after the other, and the table of what it cost."""
import collections.abc
import dataclasses
import glob
import http.client
import json
import os
import signal
import time

import clocks
from cluster import wait
from load import Load, Service, new_id

# Before and after each fault.
STEADY_SECONDS = 4
# Until all is whole again, and until the last notification has arrived.
RECOVERY_SECONDS = 120
DELIVERY_SECONDS = 30
PARTITION_SECONDS = 40
HANG_SECONDS = 20
DISK_SECONDS = 75
CLOCK_SECONDS = 300
# How long something runs with a clock that is off.
CLOCK_HOLD_SECONDS = 15
# Between two looks at it.
CLOCK_TOLERANCE_SECONDS = 5
# How far ahead a process accepts an access token, and no leeway at its end: docs/accounts.md.
TOKEN_SKEW_SECONDS = 600


@dataclasses.dataclass
class Plug:
    name: str
    pull: collections.abc.Callable
    # Before the time that is measured.
    prepare: collections.abc.Callable = lambda: None
    delivery: int = DELIVERY_SECONDS
    balancer: str = "haproxy"


class Plugs:
    def __init__(self, cluster, services):
        self.cluster, self.services = cluster, services
        self.loads = {}
        self.rows = []
        # What went wrong, besides what the rows show.
        self.problems = []

    def load(self, balancer):
        """The load through a balancer, which begins now if there is none."""
        if balancer not in self.loads:
            self.loads[balancer] = Load(self.cluster, self.services[balancer])
            self.loads[balancer].start()
        return self.loads[balancer]

    def end(self):
        for load in self.loads.values():
            load.is_ending = True
        time.sleep(1)

    def all(self):
        """In the order in which they are pulled."""
        spaces = self.cluster.network.has_namespaces
        return [
            Plug("none", lambda: time.sleep(10)),
            Plug("switchover", self.switchover),
            Plug("kill -9 of the primary's postmaster", self.kill_postmaster),
            Plug("kill -9 of all on the primary's machine", self.kill_machine),
            Plug("kill -9 of etcd's leader", self.kill_etcd),
            Plug("SIGTERM to a serve (drain of 5 s)", self.restart_serve),
            Plug("kill -9 of a serve", lambda: self.kill_app(0, "serve")),
            Plug("kill -9 of both serve", self.kill_both),
            Plug("kill -9 of the worker", lambda: self.kill_app(0, "worker")),
            Plug("kill -9 of HAProxy", lambda: self.kill_balancer("haproxy")),
            *([Plug("primary's cable out", self.cut_cable),
               Plug("primary cut off from the other databases only", self.cut_databases),
               Plug("primary's disk full", self.fill_disk)] if spaces else []),
            Plug("synchronous standby hangs", self.hang_standby),
            Plug("other standby lags, then primary's machine dies", self.lag),
            *[plug for name, title in (("nginx", "nginx"), ("caddy", "Caddy")) for plug in (
                Plug(f"behind {title}: SIGTERM to a serve", self.restart_serve, balancer=name),
                Plug(f"behind {title}: kill -9 of a serve", lambda: self.kill_app(0, "serve"), balancer=name),
                Plug(f"kill -9 of {title}", lambda name=name: self.kill_balancer(name), balancer=name))],
            *(self.clock_plugs() if clocks.CAN_SHIFT else []),
        ]

    def clock_plugs(self):
        """The plugs for each direction in which a clock may be off."""
        for seconds, word in ((CLOCK_SECONDS, "ahead"), (-CLOCK_SECONDS, "behind")):
            yield Plug(f"a serve's clock 5 minutes {word}", lambda seconds=seconds: self.serve_clock(seconds),
                       self.age_tokens)
            yield Plug(f"the worker's clock 5 minutes {word}", lambda seconds=seconds: self.worker_clock(seconds),
                       delivery=90)
            yield Plug(f"etcd's leader's clock 5 minutes {word}",
                       lambda seconds=seconds: self.etcd_clock(seconds, lambda: time.sleep(PARTITION_SECONDS)))
            yield Plug(f"switchover to a PostgreSQL 5 minutes {word}, and back",
                       lambda seconds=seconds: self.database_clock(seconds), delivery=CLOCK_SECONDS + DELIVERY_SECONDS)
        # The primary's lock then has no lifetime.
        yield Plug("primary's machine dies while the clock of etcd's leader is 5 minutes ahead",
                   lambda: self.etcd_clock(CLOCK_SECONDS, self.lose_machine), self.part_leaders)
        if self.cluster.network.has_namespaces:
            yield Plug("primary cut off from the other databases while the clock of etcd's leader is 5 minutes ahead",
                       lambda: self.etcd_clock(CLOCK_SECONDS, self.cut_databases), self.part_leaders)

    def pull(self, plug):
        for balancer, other in self.loads.items():
            if balancer not in ("haproxy", plug.balancer):
                other.is_ending = True
        load, cluster = self.load(plug.balancer), self.cluster
        plug.prepare()
        wait(cluster.is_whole, RECOVERY_SECONDS, "a whole cluster before the plug")
        wait(lambda: load.times and time.monotonic() - load.times[-1] < 1, RECOVERY_SECONDS, "writes")
        time.sleep(STEADY_SECONDS)
        begin = time.monotonic()
        failures, flaws = load.failures.copy(), load.flaws.copy()
        remark = plug.pull() or ""
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
            wait(lambda: load.undelivered(events) == 0, plug.delivery, "notifications")
        except TimeoutError:
            pass
        expected = load.expected(events)
        latest, latest_unrefused = load.latest(events)
        row = {
            "plug": plug.name, "seconds": round(end - begin), "gap": gap, "acknowledged": len(events),
            "lost": len(load.lost(events)),
            "delivered": expected - load.undelivered(events), "expected": expected, "latest": latest,
            "survived": sum(not any(begin <= at <= end for at in stream.breaks) for stream in load.streams),
            "streams": len(load.streams), "failures": load.failures - failures, "flaws": load.flaws - flaws,
            "remark": remark + (f" ({latest_unrefused:.1f} s where no webhook refused)"
                                if latest_unrefused < latest - 1 else ""),
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

    def lose_machine(self):
        primary = self.cluster.primary()
        self.cluster.kill_database(primary)
        try:
            taken = wait(lambda: self.cluster.primary() not in (None, primary), DISK_SECONDS, "another primary")
            return f"another primary after {taken:.0f} s"
        except TimeoutError:
            return f"no failover within {DISK_SECONDS} s: then switched on again"
        finally:
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

    def kill_balancer(self, name):
        self.cluster.balancers[name].programs[name].kill_all()
        time.sleep(8)

    # Clocks

    def expect_lead(self, lead, seconds):
        """So that no clock is right by mistake."""
        if abs(lead - seconds) > CLOCK_TOLERANCE_SECONDS:
            self.problems.append(f"a clock was {lead:.0f} s ahead, and not {seconds} s")

    def age_tokens(self):
        """A process that is behind refuses the load's own tokens for this long: `serve_clock` shows that."""
        begin = self.load("haproxy").begin
        wait(lambda: time.monotonic() - begin > CLOCK_SECONDS, CLOCK_SECONDS + 1, "old tokens")

    def serve_clock(self, seconds):
        pid = self.cluster.apps[0].programs["serve"].pid
        clocks.shift(pid, seconds)
        off, right = (Service(app.address, port=8080) for app in self.cluster.apps)
        verdicts = []
        for kind, issuer, reader, lead in (("its tokens elsewhere", off, right, seconds),
                                           ("others' tokens there", right, off, -seconds)):
            name = f"c{new_id()[-10:]}"
            token = issuer.call("POST", "/api/v1/auth/register", None, {
                "username": name, "email": f"{name}@example.com", "password": f"the-password-of-{name}"})["accessToken"]
            status, _, data = reader.send("GET", "/api/v1/users/me", token)
            verdict = "accepted" if status == 200 else f"{status} {json.loads(data)['type']}"
            expected = "401 invalid-token" if lead > TOKEN_SKEW_SECONDS else "accepted"
            if verdict != expected:
                self.problems.append(f"{kind}: {verdict}, and not {expected}")
            verdicts.append(f"{kind}: {verdict}")
        time.sleep(CLOCK_HOLD_SECONDS)
        clocks.shift(pid, 0)
        return ", ".join(verdicts)

    def worker_clock(self, seconds):
        webhook = self.load("haproxy").webhook
        pid, refused = self.cluster.apps[0].programs["worker"].pid, len(webhook.refused)
        clocks.shift(pid, seconds)
        time.sleep(CLOCK_HOLD_SECONDS)
        self.expect_lead(webhook.lead, seconds)
        # Receivers refuse a time that is too far off. The rest arrives once the clock is right.
        clocks.shift(pid, 0)
        return f"webhooks refused: {len(webhook.refused) - refused}"

    def database_clock(self, seconds):
        webhook = self.load("haproxy").webhook
        machine = self.cluster.find("sync_standby")
        self.cluster.set_clock(machine, seconds)
        self.cluster.switch_over(machine)
        wait(lambda: self.cluster.primary() is machine and self.cluster.is_whole(), RECOVERY_SECONDS, "the switchover")
        self.expect_lead(float(self.cluster.sql("SELECT extract(epoch FROM clock_timestamp())")) - time.time(), seconds)
        time.sleep(CLOCK_HOLD_SECONDS)
        # Some deliveries fail, and wait for a time by this clock.
        webhook.is_refusing = True
        time.sleep(3)
        self.cluster.switch_over(self.cluster.find("sync_standby"))
        wait(lambda: self.cluster.primary() not in (None, machine), RECOVERY_SECONDS, "the switchover back")
        webhook.is_refusing = False
        # The old primary's PostgreSQL starts again, with the right clock.
        wait(self.cluster.is_whole, RECOVERY_SECONDS, "a whole cluster")
        self.cluster.set_clock(machine, 0)

    def part_leaders(self):
        """Makes another machine than the one of etcd's leader the primary."""
        if self.cluster.etcd_leader() is self.cluster.primary():
            self.switchover()

    def etcd_clock(self, seconds, meanwhile):
        leader = self.cluster.etcd_leader()
        etcd = leader.programs["etcd"]
        clocks.shift(etcd.pid, seconds)
        time.sleep(STEADY_SECONDS)
        self.expect_lead(self.cluster.etcd_time(leader) - time.time(), seconds)
        remark = meanwhile()
        clocks.shift(etcd.pid, 0)
        return remark

    def table(self):
        """The rows in Markdown."""
        lines = ["| plug | s without writes | acknowledged | lost | notifications delivered | latest after s | "
                 "streams that survived |", "|---|---|---|---|---|---|---|"]
        for row in self.rows:
            name = row["plug"] + (f": {row['remark'].strip()}" if row["remark"] else "")
            lines.append(
                f"| {name} | {row['gap']:.1f} | {row['acknowledged']} | {row['lost']} | "
                f"{row['delivered']} of {row['expected']} | {row['latest']:.1f} | "
                f"{row['survived']} of {row['streams']} |")
        return "\n".join(lines)
