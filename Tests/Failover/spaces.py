"""What the scripts share that run a cluster in namespaces: packages, the program, and a clean end."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# The first process of the namespaces. When it ends, the kernel ends all others in them.
SPACES = ["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
# As the first process of its namespace, bash collects the processes that others leave, such as a postmaster.
INIT = ["bash", "-c", """trap 'kill -TERM "$child"' INT TERM
"$@" & child=$!
while :; do wait "$child"; status=$?; kill -0 "$child" 2>/dev/null || exit $status; done""", "init"]
POLICY = "/usr/sbin/policy-rc.d"


class Interrupted(BaseException):
    pass


def say(text):
    print(text, file=sys.stderr, flush=True)


def name():
    return os.path.basename(sys.argv[0])


def install(packages):
    """Installs the Debian packages of which a file is missing."""
    missing = sorted({package for path, package in packages.items() if not os.path.exists(path)})
    if not missing:
        return
    say(f"Installing: {' '.join(missing)} (once)")
    # Otherwise the packages would start their programs. A machine's own policy stays.
    is_ours = not os.path.exists(POLICY)
    if is_ours:
        with open(POLICY, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexit 101\n")
        os.chmod(POLICY, 0o755)
    apt = ["apt-get", "-qq", "-o", "Dpkg::Use-Pty=0", "-o", "DPkg::Lock::Timeout=300"]
    try:
        subprocess.run([*apt, "update"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([*apt, "install", "-y", "--no-install-recommends", *missing], check=True,
                       stdout=subprocess.DEVNULL, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})
    finally:
        if is_ours:
            os.unlink(POLICY)


def find_muster(path):
    for candidate in [path] if path else [f"{CHECKOUT}/.build/release/muster", f"{CHECKOUT}/.build/debug/muster"]:
        if os.access(candidate, os.X_OK):
            return os.path.realpath(candidate)
    sys.exit(f"{name()}: muster was not found: build it, or name it with --muster")


def add_options(parser, minutes):
    """The options that all of these scripts have."""
    parser.add_argument("--muster", metavar="PATH", help="by default .build/release/muster or .build/debug/muster")
    parser.add_argument("--minutes", type=float, default=minutes, help="the time limit")
    parser.add_argument("--keep", action="store_true", help="keep the folder with all logs")
    parser.add_argument("--inside", help="(for the script itself)")


def run_in_spaces(options, packages, has_fallback=False):
    """Runs the script again, in namespaces and with a folder, and cleans up. Does not return.

    With a fallback, the script runs with `--loopback` where the kernel refuses namespaces.
    """
    if os.geteuid() != 0:
        sys.exit(f"{name()}: needs root, for packages, namespaces and accounts: run it with sudo")
    muster = find_muster(options.muster)
    install(packages)
    memory = "/dev/shm" if shutil.disk_usage("/dev/shm").free > 2_000_000_000 else "/tmp"
    folder = tempfile.mkdtemp(prefix=f"muster-{name()}.", dir=memory)
    os.chmod(folder, 0o755)
    spaces = [] if getattr(options, "loopback", False) else [*SPACES, *INIT]
    if spaces and subprocess.run([*SPACES, "true"], capture_output=True, check=False).returncode != 0:
        if not has_fallback:
            sys.exit(f"{name()}: the kernel refuses namespaces")
        say("The kernel refuses namespaces: the machines share the loopback interface.")
        spaces = []
    command = [*spaces, sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:], "--inside", folder,
               "--muster", muster]
    if not spaces:
        command.append("--loopback")
    child = subprocess.Popen(command, start_new_session=True)

    def end(number, _frame):
        # `unshare` does not pass signals on. Its child is the test, which ends everything.
        with open(f"/proc/{child.pid}/task/{child.pid}/children", encoding="utf-8") as file:
            inside = [int(pid) for pid in file.read().split()] if spaces else [child.pid]
        for pid in inside:
            os.kill(pid, number)
    signal.signal(signal.SIGINT, end)
    signal.signal(signal.SIGTERM, end)
    try:
        status = child.wait(options.minutes * 60 + 120)
    except subprocess.TimeoutExpired:
        child.kill()
        status = child.wait()
    finally:
        if options.keep:
            say(f"The logs are in {folder}.")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(status if status >= 0 else 128 - status)


def run_inside(options, network, work):
    """Calls a function that returns problems, until it ends or a signal or the time limit ends it. Stops the network.

    Returns all problems.
    """

    def interrupt(number, _frame):
        # Once is enough: a second one must not cut the end short.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Interrupted(number)
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, interrupt)
    timer = threading.Timer(options.minutes * 60, os.kill, (os.getpid(), signal.SIGTERM))
    timer.daemon = True
    timer.start()
    problems = []
    try:
        work(problems)
    except Interrupted as interrupted:
        problems.append(f"interrupted by signal {interrupted.args[0]}, or out of time")
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()
        problems.append(f"{type(error).__name__}: {error}")
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        network.stop()
    return problems


def finish(problems):
    """Prints the problems and ends the process, even if threads still wait for a response."""
    for problem in problems:
        say(f"FAILED  {problem}")
    sys.stdout.flush()
    os._exit(1 if problems else 0)
