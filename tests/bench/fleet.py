"""A fleet on one machine: its hosts, the readers on them, and waiting for what is to come."""
import contextlib
import itertools
import math
import os
import signal
import subprocess
import time

from daemons import Daemon, Mount, process_tree
from servers import Ensemble

MOUNT_S = 20  # a daemon gives up after half of that
STEP_S = 0.002
# As the daemon has them by default, seconds: renewal, right, session; and the servers' tick.
R_S, D_S, T_S, TICK_S = 1.5, 8, 6, 1
Q_S = D_S * 1.01 + 0.25
numbers = itertools.count(1)


class Host(Mount):
    def __init__(self, bench, source, name):
        super().__init__(bench.folder, bench.log, [bench.ratefs_path, "-f", "-o", f"host={name}",
                                                   source, "MOUNT"], wait_s=MOUNT_S)
        self.name = name

    def read(self, name):
        with open(self.file(name)) as file:
            return file.read()

    def status(self):
        return dict(line.split(" ", 1) for line in self.read("status").splitlines())

    def counters(self, *names):
        status = self.status()
        return sum(int(status[name]) for name in names)

    def make(self, name, **settings):
        """With the partitions' settings by count, lease and reserve, in one write."""
        os.mkdir(self.file(name))
        lines = [f"{'partitions.' * (key in ('count', 'lease'))}{key}={value}\n"
                 for key, value in settings.items()]
        with open(self.file(f"{name}/config"), "w") as file:
            file.write("".join(lines))

    def kill(self):
        """As a loss of power: no word to anybody."""
        for pid in process_tree(self.process.pid):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()


class Readers(Daemon):
    """Greedy readers of a host, in a process of their own, until they are stopped."""

    def __init__(self, bench, host, file, count):
        self.host = host
        super().__init__([bench.program("client"), "readers", host.file(file), str(count),
                          "1000000"], stdout=subprocess.DEVNULL, stderr=bench.log)

    def stop(self):
        self.process.kill()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.host.abort()  # who waits for a daemon that does not answer cannot be killed
            self.process.wait()


@contextlib.contextmanager
def fleet(bench, count):
    """So many hosts, the first one called h1, in a fleet of their own."""
    if bench.ensemble is None:
        bench.ensemble = Ensemble(bench.log)
    path = f"/bench{next(numbers)}"
    hosts = []
    try:
        for n in range(count):
            hosts.append(Host(bench, f"zk://{bench.ensemble.names}{path}", f"h{n + 1}"))
            bench.mounts.append(hosts[-1])
        yield hosts
    finally:
        for host in hosts:
            if host.process.poll() is None:
                host.process.terminate()
        for host in hosts:
            bench.mounts.remove(host)
            host.stop()


@contextlib.contextmanager
def greedy(bench, hosts, file, count=4):
    """Readers on all of @hosts."""
    with contextlib.ExitStack() as stack:
        readers = []
        for host in hosts:
            readers.append(Readers(bench, host, file, count))
            stack.callback(readers[-1].stop)
        yield readers


def until(holds, limit_s, begun=None, step_s=STEP_S):
    """Seconds since @begun, or now, until holds(); infinity after @limit_s of them."""
    begun = begun or time.monotonic()
    while time.monotonic() - begun < limit_s:
        if holds():
            return time.monotonic() - begun
        time.sleep(step_s)
    return math.inf


def know(hosts, limiter, rate):
    """All hosts have @limiter at @rate; seconds until then."""
    def known(host):
        with contextlib.suppress(OSError):
            return host.read(f"{limiter}/rate").strip() == rate
        return False

    return until(lambda: all(known(host) for host in hosts), 20)


def granted(hosts, limiter):
    return sum(host.stat(limiter, "granted") for host in hosts)


class Watch:
    """What all hosts granted together, looked at again and again: (before, after, tokens)."""

    def __init__(self, hosts, limiter):
        self.hosts, self.limiter, self.looks = hosts, limiter, []

    def look(self):
        before = time.monotonic()
        tokens = granted(self.hosts, self.limiter)
        self.looks.append((before, time.monotonic(), tokens))

    def run(self, seconds, step_s=0.02):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(step_s)

    def excess(self, rate):
        """By how many tokens the fullest window holds more than @rate x its length, for certain."""
        most, least = -math.inf, math.inf
        for before, after, tokens in self.looks:
            if least < math.inf:
                most = max(most, tokens - rate * after - least)
            least = min(least, tokens - rate * before)
        return most

    def windows(self, length_s):
        """(begin, tokens a second) of the windows of about that length."""
        ends = iter(self.looks)
        end = next(ends)
        for begin in self.looks:
            while end[1] < begin[1] + length_s:
                end = next(ends, None)
                if end is None:
                    return
            yield begin[1], (end[2] - begin[2]) / (end[1] - begin[1])
