"""Machines: network namespaces with addresses of their own, or, without namespaces, addresses of the loopback."""
import contextlib
import glob
import os
import signal
import subprocess
import threading
import time

PREFIX = "10.0.0."
# Where the kernel refuses namespaces. The machines then share the loopback interface.
LOOPBACK_PREFIX = "127.61.0."
# As systemd's Restart=always and RestartSec=1.
RESTART_SECONDS = 1
# Until programs that are asked to end are killed.
STOP_SECONDS = 6
# All that programs get of the caller's environment: no proxy, credentials or locale.
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/nonexistent",
               "LANG": "C.UTF-8"}


def run(*command, **options):
    """Runs a command, and raises with its output if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=options.pop("timeout", 60), **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr or done.stdout}")
    return done.stdout


class Network:
    """A bridge in a namespace of its own, to which all machines are connected."""

    def __init__(self, folder, has_namespaces):
        self.folder = folder
        self.has_namespaces = has_namespaces
        self.prefix = PREFIX if has_namespaces else LOOPBACK_PREFIX
        self.machines = {}
        if has_namespaces:
            # The caller has made private namespaces for networks, mounts and processes. So names do not collide, and
            # the kernel removes all that is left when the first process ends.
            os.makedirs("/run/netns", exist_ok=True)
            run("mount", "-t", "tmpfs", "none", "/run/netns")
            run("ip", "link", "set", "lo", "up")
            run("ip", "link", "add", "hub", "type", "bridge")
            run("ip", "link", "set", "hub", "up")
            # The script's own address, which the clients have.
            run("ip", "address", "add", f"{PREFIX}1/24", "dev", "hub")

    def machine(self, name, number):
        machine = Machine(self, name, number)
        self.machines[name] = machine
        return machine

    def stop(self):
        """Ends all programs."""
        programs = [program for machine in self.machines.values() for program in machine.programs.values()]
        for program in programs:
            program.is_wanted = False
            program.send(signal.SIGINT)
        end = time.monotonic() + STOP_SECONDS
        for program in programs:
            program.stop(signal.SIGINT, max(0.1, end - time.monotonic()))
        # PostgreSQL outlives a killed Patroni.
        for path in glob.glob(os.path.join(self.folder, "*/disk/data/postmaster.pid")):
            with contextlib.suppress(OSError, ValueError):
                with open(path, encoding="utf-8") as file:
                    pid = int(file.readline())
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    if self.folder in file.read():
                        os.kill(pid, signal.SIGKILL)


class Machine:
    def __init__(self, network, name, number):
        self.network = network
        self.name = name
        self.address = f"{network.prefix}{number}"
        self.folder = os.path.join(network.folder, name)
        self.programs = {}
        os.makedirs(self.folder)
        os.chmod(self.folder, 0o755)
        if network.has_namespaces:
            run("ip", "netns", "add", name)
            run("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", name, "master", "hub", "up")
            self.inside("ip", "address", "add", f"{self.address}/24", "dev", "eth0")
            self.inside("ip", "link", "set", "lo", "up")
            self.inside("ip", "link", "set", "eth0", "up")

    def command(self, *command):
        return ["ip", "netns", "exec", self.name, *command] if self.network.has_namespaces else list(command)

    def inside(self, *command, **options):
        return run(*self.command(*command), **options)

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text, mode=0o600, owner=None):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        if owner and os.geteuid() == 0:
            import pwd
            entry = pwd.getpwnam(owner)
            os.chown(path, entry.pw_uid, entry.pw_gid)
        return path

    def start(self, name, command, user=None, environment=None, restarts=True):
        program = Program(self, name, command, user, environment or {}, restarts)
        self.programs[name] = program
        program.start()
        return program

    def plug(self, is_in):
        """Pulls the cable, or plugs it in again."""
        run("ip", "link", "set", self.name, "up" if is_in else "down")

    def shun(self, others, is_on):
        """Drops all packets to other machines, or no longer does."""
        for other in others:
            self.inside("ip", "route", "add" if is_on else "del", "blackhole", f"{other.address}/32")


class Program:
    """A process that is started again when it ends, as by systemd."""

    def __init__(self, machine, name, command, user, environment, restarts):
        self.machine = machine
        self.name = name
        self.command = command
        self.user = user
        self.environment = environment
        self.restarts = restarts
        self.log = machine.path(f"{name}.log")
        self.is_wanted = False
        self.process = None
        self.lock = threading.Lock()

    @property
    def pid(self):
        return self.process.pid

    def _spawn(self):
        command = self.command
        if self.user and os.geteuid() == 0:
            command = ["setpriv", f"--reuid={self.user}", f"--regid={self.user}", "--init-groups", *command]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                self.machine.command(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, cwd=self.machine.folder, env={**ENVIRONMENT, **self.environment})

    def start(self):
        with self.lock:
            self.is_wanted = True
            self._spawn()
        if self.restarts:
            threading.Thread(target=self._watch, args=(self.process,), daemon=True).start()

    def _watch(self, process):
        while True:
            process.wait()
            time.sleep(RESTART_SECONDS)
            with self.lock:
                if not self.is_wanted or process is not self.process:
                    return
                self._spawn()
                process = self.process

    def send(self, number):
        """Sends a signal to the process, which is started again if it ends."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)

    def kill_all(self):
        """Kills the process and its children, as systemd does with a unit that ends."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def stop(self, number=signal.SIGTERM, seconds=15):
        """Ends the process for good."""
        with self.lock:
            self.is_wanted = False
            process = self.process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
