"""The daemons that are measured: started, placed on cores, weighed and stopped."""
import contextlib
import os
import re
import resource
import signal
import subprocess
import tempfile
import time

MOUNT_S = 20  # after which a mount that is not there is given up
ENDING_S = 30  # after which a process is killed
PLACEMENTS = ("free", "one", "two")
PIDS_SPARE = 1500  # left to the rest of the machine
CPUCLOCK_SCHED = 2  # of the clock of a process, see clock_getcpuclockid(3)
BLOCK_BYTES = 512  # of st_blocks
DEATH = re.compile(r"the server (was|ended)|the new server|AddressSanitizer|runtime error|"
                   r"Assertion|the keeper is gone")


class Unmeasured(Exception):
    """A row cannot be measured here; the text says why."""


def cores():
    return sorted(os.sched_getaffinity(0))


def place(placement):
    """The cores of (daemon, client)."""
    all_cores = cores()
    if placement == "one":
        return {all_cores[0]}, {all_cores[0]}
    if placement == "two":
        return {all_cores[-1]}, {all_cores[0]}
    return set(all_cores), set(all_cores)


def process_tree(pid):
    """@pid and all processes that descend from it."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/stat") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(entry))
    tree, todo = [], [pid]
    while todo:
        tree.append(todo.pop())
        todo += children.get(tree[-1], [])
    return tree


def tasks(pids):
    for pid in pids:
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                yield pid, int(task)


def pin(pids, where):
    for _, task in tasks(pids):
        with contextlib.suppress(OSError):
            os.sched_setaffinity(task, where)


def cpu_ns(pids):
    """The CPU time of the processes, with all their threads, those that have ended among them."""
    return sum(time.clock_gettime_ns((~pid << 3) | CPUCLOCK_SCHED) for pid in pids)


def memory_bytes(pids):
    """
    All that the processes have allocated: anonymous memory, and the files in memory in which a
    keeper keeps the state for a successor, each once.
    """
    total, files = 0, {}
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            total += sum(int(line.split()[1]) * 1024 for line in file
                         if line.startswith(("Pss_Anon:", "Swap:")))
        for name in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{name}"
            with contextlib.suppress(OSError):
                if os.readlink(path).startswith("/memfd:"):
                    found = os.stat(path)
                    files[found.st_dev, found.st_ino] = found.st_blocks * BLOCK_BYTES
    if not files:
        raise Unmeasured("there is no state for a successor to be counted")
    return total + sum(files.values())


def pids_allowed():
    """How many more threads there may be."""
    limits = [resource.getrlimit(resource.RLIMIT_NPROC)[0]]
    for name in ("kernel/pid_max", "kernel/threads-max"):
        with open(f"/proc/sys/{name}") as file:
            limits.append(int(file.read()))
    with contextlib.suppress(OSError, ValueError):
        with open("/proc/self/cgroup") as file:
            group = file.read().strip().rpartition(":")[2]
        with open(f"/sys/fs/cgroup{group}/pids.max") as file:
            limits.append(int(file.read()))
    used = sum(1 for _ in tasks(int(p) for p in os.listdir("/proc") if p.isdigit()))
    return min(limit for limit in limits if limit > 0) - used - PIDS_SPARE


class Daemon:
    """A process started here, with the cores it may use."""

    def __init__(self, command, pipes=False, **options):
        """With @pipes it is talked to by standard input and output."""
        if pipes:
            options.update(stdout=subprocess.PIPE)
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE if pipes else subprocess.DEVNULL, **options)

    def pids(self):
        return process_tree(self.process.pid)

    def pin(self, placement):
        pin(self.pids(), place(placement)[0])

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_S)
        if self.process.poll() is None:
            for pid in self.pids():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()


@contextlib.contextmanager
def running(daemon):
    """Stops it in the end."""
    try:
        yield daemon
    finally:
        daemon.stop()


class Mount(Daemon):
    """A FUSE daemon that stays in front."""

    def __init__(self, folder, command, wait_s=MOUNT_S):
        self.path = tempfile.mkdtemp(prefix="m", dir=folder)
        self.log_path = f"{self.path}.log"
        self.may_die = False  # set by a row that kills it
        with open(self.log_path, "w") as log:
            super().__init__([self.path if word == "MOUNT" else word for word in command],
                             stderr=log)
        self.connection = None
        end = time.monotonic() + wait_s
        while time.monotonic() < end and not self.mounted() and self.process.poll() is None:
            time.sleep(0.01)
        if not self.mounted():
            self.stop()
            raise Unmeasured(f"{os.path.basename(command[0])} did not mount: {self.said()}")

    def said(self):
        with open(self.log_path, errors="replace") as file:
            return file.read().strip()[-300:]

    def deaths(self):
        """The messages about servers that died: the keeper hides them from all others."""
        if self.may_die:
            return []
        with open(self.log_path, errors="replace") as file:
            said = [line.strip()[:200] for line in file if DEATH.search(line)]
        status = self.process.poll()
        return said + ([f"{self.process.args[0]} ended with status {status}"] if status else [])

    def server(self):
        """The process that serves, by the tree's own word."""
        with open(self.file("status")) as file:
            return next(int(line.split()[1]) for line in file if line.startswith("server "))

    def mounted(self):
        with open("/proc/self/mountinfo") as file:
            for line in file:
                fields = line.split()
                if fields[4] == self.path:
                    self.connection = fields[2].partition(":")[2]
                    return True
        return False

    def file(self, name):
        return os.path.join(self.path, name)

    def limiter(self, name, **settings):
        os.mkdir(self.file(name))
        self.tune(name, **settings)

    def tune(self, limiter, **settings):
        for name, value in settings.items():
            with open(self.file(f"{limiter}/{name}"), "w") as file:
                file.write(f"{value}\n")

    def stat(self, limiter, name):
        with open(self.file(f"{limiter}/stat")) as file:
            for line in file:
                if line.split()[0] == name:
                    return float(line.split()[1])
        raise Unmeasured(f"no {name} in stat")

    def abort(self):
        if not self.mounted():
            return  # the number may be another mount's by now
        with contextlib.suppress(OSError):
            with open(f"/sys/fs/fuse/connections/{self.connection}/abort", "w") as file:
                file.write("1")

    def stop(self):
        if self.connection and self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(ENDING_S)
            if self.process.poll() is None:
                self.abort()
        if self.connection and self.mounted():
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL)
        super().stop()
        if self.mounted():
            subprocess.run(["umount", "-l", self.path], stderr=subprocess.DEVNULL)
        with contextlib.suppress(OSError):
            os.rmdir(self.path)
