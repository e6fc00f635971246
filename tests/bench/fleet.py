"""A fleet on one machine: its hosts, the readers on them, and waiting for what is to come."""
import contextlib
import itertools
import math
import os
import signal
import subprocess
import time

from daemons import Daemon, Mount, Unmeasured, process_tree

MOUNT_S = 30  # a daemon gives up after 10
STEP_S = 0.002
FOREVER_S = 1000000
# As the daemon has them by default, seconds: renewal, right, session; and the servers' tick.
R_S, D_S, T_S, TICK_S = 1.5, 8, 15, 1
FULL = 0.95  # of a rate: it counts as granted
ALIKE = 0.8  # of an equal part: it counts as one
numbers = itertools.count(1)


def quarantine_s(right_s=D_S):
    return right_s * 1.01 + 0.25


def renewal_s(right_s=D_S):
    return min(R_S, right_s / 4)


def insist(change):
    """
    A change is refused while the coordinator does not answer, as with many hosts on few cores.
    """
    end = time.monotonic() + MOUNT_S
    while True:
        try:
            return change()
        except (BlockingIOError, TimeoutError):
            if time.monotonic() > end:
                raise
            time.sleep(STEP_S)


def make_directory(path):
    with contextlib.suppress(FileExistsError):  # it was made, and the answer was lost
        os.mkdir(path)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


class Host(Mount):
    def __init__(self, bench, source, name, options=()):
        super().__init__(bench.folder, [bench.ratefs_path, "-f", "-o",
                                        ",".join((f"host={name}", *options)), source, "MOUNT"],
                         wait_s=MOUNT_S)
        self.name, self.source, self.options = name, source, options

    def again(self, bench):
        """The next host of the same name."""
        return bench.served(Host(bench, self.source, self.name, self.options))

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
        lines = [f"{'partitions.' * (key in ('count', 'lease'))}{key}={value}\n"
                 for key, value in settings.items()]
        insist(lambda: make_directory(self.file(name)))
        insist(lambda: write(self.file(f"{name}/config"), "".join(lines)))

    def kill(self):
        """As a loss of power: no word to anybody, and a server whose keeper dies would leave."""
        self.may_die = True
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in process_tree(self.process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
        self.process.wait()


class Readers(Daemon):
    """Readers of a host, in a process of their own, until they are stopped."""

    def __init__(self, bench, host, command, file, *arguments):
        self.host = host
        super().__init__([bench.program("client"), command, host.file(file),
                          *(str(argument) for argument in arguments)], stdout=subprocess.DEVNULL,
                         stderr=bench.log)

    def stop(self):
        self.process.kill()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            # A process that waits for a daemon that does not answer cannot be killed.
            self.host.abort()
            self.process.wait()


@contextlib.contextmanager
def fleet(bench, count, options=(), names=None, ensemble=None):
    """
    So many hosts, the first one called h1, in a fleet of their own; @names are those of the
    servers, if hosts are not to ask them directly.
    """
    ensemble = ensemble or bench.ensemble
    if ensemble is None:
        raise Unmeasured("there are no ZooKeeper servers")
    source = f"zk://{names or ensemble.names}/bench{os.getpid()}-{next(numbers)}"
    with contextlib.ExitStack() as stack:
        hosts = []
        # Told to end together, so that the end takes as long as that of one.
        stack.callback(lambda: [host.process.terminate() for host in hosts
                                if host.process.poll() is None])
        with contextlib.ExitStack() as mounts:
            for n in range(count):
                hosts.append(mounts.enter_context(
                    bench.served(Host(bench, source, f"h{n + 1}", options))))
            ends = mounts.pop_all()
        with ends, stack:
            yield hosts


@contextlib.contextmanager
def reading(bench, hosts, command, file, *arguments):
    """Readers on all of @hosts; it is a fault if one of them ends by itself."""
    with contextlib.ExitStack() as stack:
        readers = []
        for host in hosts:
            readers.append(Readers(bench, host, command, file, *arguments))
            stack.callback(readers[-1].stop)
        yield readers
        for one in readers:
            if one.process.poll() is not None and one.host.process.poll() is None:
                raise Unmeasured(f"a reader on {one.host.name} has ended")


def greedy(bench, hosts, file, count=4):
    """Readers that take all they get."""
    return reading(bench, hosts, "readers", file, count, FOREVER_S)


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


def burst_of(hosts):
    """
    Of so many hosts together, at default settings: a burst of one, and a token more for each host
    whose part of it is less than that.
    """
    return 1 + hosts


def shared(hosts, limiter, rate, limit_s=60):
    """All of @hosts, which are greedy, have about equal parts; seconds until then."""
    return until(lambda: all(host.stat(limiter, "effective_rate") >= ALIKE * rate / len(hosts)
                             for host in hosts), limit_s, step_s=0.05)


def granted(hosts, limiter):
    return sum(host.stat(limiter, "granted") for host in hosts)


def granting_s(hosts, limiter, rate, begun, span_s, limit_s):
    """
    Seconds from @begun until @hosts together grant at @rate: begins the first span, and then a
    second one, in which they do. Infinity if that is not within @limit_s.
    """
    looks, at = [], 0
    while time.monotonic() - begun < limit_s + 2 * span_s:
        looks.append((time.monotonic(), granted(hosts, limiter)))
        for at in range(at, len(looks)):
            begun_s = looks[at][0]
            ends = [next((look for look in looks[at:] if look[0] >= begun_s + n * span_s), None)
                    for n in (1, 2)]
            if ends[1] is None:
                break
            points = [looks[at], *ends]
            if all(after[1] - before[1] >= FULL * rate * (after[0] - before[0])
                   for before, after in zip(points, points[1:])):
                return max(0, looks[at][0] - begun)
        time.sleep(STEP_S)
    return math.inf


class Watch:
    """
    The tokens granted by all hosts together, looked at again and again: (before, after, tokens).
    """

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
