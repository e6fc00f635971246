"""Parts of rows: contestants, interleaved rounds, ratios, figures."""
import contextlib
import itertools
import os
import random
import statistics
import subprocess
import tempfile
import time

from daemons import MOUNT_S, Daemon, Mount, Unmeasured, cpu_ns, place, running

FORMS = ("single", "multi", "clone", "look")  # of null_fs, to answer at once
TIMER_FORMS = ("timer", "early")  # of null_fs, to answer by a timer
MOUNT_OPTIONS = "default_permissions"  # as ratefs always has
# A rate that is never reached, and a burst: each token goes through the arithmetic of the bucket.
# redis_client has the same.
RATE, BURST = "10M/s", 10000
LIMITS = " ".join(f"{10 + 10 * n}M/s:{BURST * (n + 1)}" for n in range(8))
LEVELS = 4
DEEP = "/".join(f"l{level}" for level in range(LEVELS))
GRANTED_LIMITERS = ("x", "eight", DEEP)


class Settings:
    """How much is measured. --quick shows that each row runs; its figures say little."""

    def __init__(self, quick):
        self.quick = quick
        self.rounds = 2 if quick else 6
        self.reads = 300 if quick else 8000
        self.opens = 200 if quick else 4000
        self.starts = 1 if quick else 3  # clients per round where their place is left to chance
        self.throughput_s = 0.1 if quick else 1
        self.paced_rounds = 1 if quick else 4
        self.paced = {100: 40, 1000: 200} if quick else {100: 500, 1000: 2000}
        self.ideal_s = 2 if quick else 60
        self.crowd = 1000 if quick else 20000
        self.crowd_goes = 1 if quick else 3
        self.hostile_threads = 20 if quick else 100
        self.hostile_keys = 100 if quick else 4000
        self.cancels = 3 if quick else 20
        self.kills = 20 if quick else 300
        self.limiters = 2000 if quick else 100000
        self.kept_limiters = 2000 if quick else 100000
        self.starts_kept = 1 if quick else 3
        self.keys = 2000 if quick else 1000000
        self.finds = 400 if quick else 6000
        self.ordered = 20000 if quick else 1000000
        self.shell_loops = 30 if quick else 1000
        self.idle_s = 2 if quick else 10
        self.server_kills = 2 if quick else 30
        self.successor_crowd = 500 if quick else 10000
        self.reloads = 5 if quick else 1000
        self.log_lines = 10_000 if quick else 1_000_000
        # Of fleets.
        self.lease_goes = 1 if quick else 3  # times as many rounds where 5 % count
        self.first_tokens = 1 if quick else 5
        self.lease_s = 2 if quick else 15
        self.shared_s = 5 if quick else 60
        self.departures = 1 if quick else 3
        self.deaths = 1 if quick else 20
        self.waited_s = 1 if quick else 4
        self.retunes = 5 if quick else 200
        self.hosts = 4 if quick else 20
        self.fleet_limiters = 20 if quick else 1000
        self.sizes = ((2, 10),) if quick else ((2, 100), (5, 100), (5, 1000), (20, 100))
        self.joined_limiters = 200 if quick else 10000
        self.settle_s = 5 if quick else 40
        self.steady_s = 3 if quick else 60
        # Of row 28: pairs of (hosts, limiters, limiters that each host uses), small and large.
        self.simulated_fleets = ((((5, 1, 1), (10, 1, 1)),) if quick else
                                 (((100, 1, 1), (1000, 1, 1)), ((20, 20, 10), (50, 50, 10))))
        self.simulated_s = 120 if quick else 3600
        self.seeds = 2 if quick else 6
        self.keyed_s = 3 if quick else 15
        self.restarts = 1 if quick else 2
        self.restarted_s = 6 if quick else 30


def median_of(results, key):
    return statistics.median(one[key] for one in results)


def quotients(results, others, key):
    """Round by round."""
    return [one[key] / other[key] for one, other in zip(results, others)]


def ways(better):
    """(how the better of two is found, the sign of a limit)."""
    return (min, "<=") if better == "low" else (max, ">=")


class Bench:
    """One row's run: its settings, its mounts, its figures."""

    def __init__(self, quick, ratefs, build, folder, ensemble=None):
        self.build = build
        self.settings = Settings(quick)
        self.ratefs_path = ratefs
        self.folder = folder
        self.log = open(os.path.join(folder, "log"), "a")
        self.figures = []
        self.deaths = []  # of servers that no row has killed
        self.mounts = []
        self.ensemble = ensemble  # of ZooKeeper servers, where a row needs it
        self.numbers_used = itertools.count(1)

    def is_known(self, error):
        return isinstance(error, Unmeasured)

    def program(self, name):
        return os.path.join(self.build, "tests", "bench", name)

    @contextlib.contextmanager
    def served(self, mount):
        """@mount until the end of the block; a death of its server is the row's."""
        self.mounts.append(mount)
        try:
            yield mount
        finally:
            self.mounts.remove(mount)
            mount.stop()
            self.deaths += mount.deaths()

    def mount(self, *command):
        return self.served(Mount(self.folder, command))

    def ratefs(self, source="local", wait_s=MOUNT_S):
        return self.served(Mount(self.folder, (self.ratefs_path, "-f", source, "MOUNT"), wait_s))

    def null(self, form, rate=0, options=MOUNT_OPTIONS):
        return self.mount(self.program("null_fs"), form, "MOUNT", str(rate), options)

    @contextlib.contextmanager
    def contestants(self, forms=FORMS):
        """ratefs with limiters x, eight and of four levels, and the null file system's @forms."""
        with contextlib.ExitStack() as stack:
            mounts = {"ratefs": stack.enter_context(self.ratefs())}
            make_limiters(mounts["ratefs"])
            for form in forms:
                mounts[form] = stack.enter_context(self.null(form))
            yield mounts

    @contextlib.contextmanager
    def redis(self):
        folder = tempfile.mkdtemp(prefix="redis", dir=self.folder)
        socket = os.path.join(folder, "s")
        command = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder,
                   "--save", "", "--appendonly", "no", "--daemonize", "no"]
        if not os.path.exists(self.program("redis_client")):
            raise Unmeasured("redis_client was not built: no hiredis")
        with running(Daemon(command, stdout=self.log, stderr=self.log)) as daemon:
            for _ in range(500):
                if os.path.exists(socket):
                    break
                time.sleep(0.01)
            daemon.socket = socket
            yield daemon

    def run(self, command, placement="free", limit_s=300, **options):
        """Runs a program of a client's place; gives its standard output."""
        where = place(placement)[1]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: os.sched_setaffinity(0, where),
                              **options) as process:
            try:
                text, complaint = process.communicate(timeout=limit_s)
            except BaseException:
                # One that waits for a file system that does not answer cannot be killed.
                process.kill()
                for mount in self.mounts:
                    mount.abort()
                raise
        if process.returncode:
            raise Unmeasured(f"{os.path.basename(command[0])}: {complaint.strip()[-200:]}")
        return text

    def numbers(self, *command, **options):
        """Runs a program that prints `name value` lines; gives them as a dictionary."""
        text = self.run([self.program(command[0])] + [str(word) for word in command[1:]],
                        **options)
        return {name: float(value) if name != "digest" else value
                for name, value in (line.split() for line in text.splitlines())}

    def client(self, *command, **options):
        return self.numbers("client", *command, **options)

    def figure(self, row, what, target, measured, met, spread=None, floor="", note="",
               value=None):
        self.figures.append({"row": str(row), "what": what, "target": target,
                             "measured": measured, "value": value,
                             "min": spread[0] if spread else None,
                             "max": spread[1] if spread else None,
                             "floor": floor, "met": met, "note": note})

    def ratio(self, row, what, mine, others, key, sign, limit, floor, note=""):
        """A figure: the ratio of the medians of @key; its spread is that of the rounds' ratios."""
        value = median_of(mine, key) / median_of(others, key)
        ratios = quotients(mine, others, key)
        met = value <= limit if sign == "<=" else value >= limit
        digits = 2 if limit < 10 else 0
        self.figure(row, what, f"{sign} {limit:.{digits}f} x", f"{value:.{digits}f} x", met,
                    (min(ratios), max(ratios)), floor, note, value)

    def rounds(self, measures, placement="free", starts=None, rounds=None):
        """
        Calls each of @measures (name: function giving a dictionary) once a round, in an order that
        changes; gives {name: [dictionary of each round]}. Where clients are placed freely, each
        round is the median of several, since a client stays where it happened to start.
        """
        results = {name: [] for name in measures}
        starts = starts or (self.settings.starts if placement == "free" else 1)
        for _ in range(rounds or self.settings.rounds):
            gathered = {name: [] for name in measures}
            for _ in range(starts):
                for name in random.sample(list(measures), len(measures)):
                    gathered[name].append(measures[name]())
            for name, many in gathered.items():
                results[name].append({key: statistics.median(one[key] for one in many)
                                      for key in many[0]})
        return results

    def compare(self, row, what, key, results, mine, floors, better, limit, unit="us", note=""):
        """A figure: @mine against that of @floors which is best in @key itself."""
        choose, sign = ways(better)
        medians = {name: median_of(results[name], key) for name in results}
        best = choose(floors, key=medians.get)
        everyone = ", ".join(f"{name} {medians[name]:.4g}" for name in (mine, *floors))
        self.ratio(row, what, results[mine], results[best], key, sign, limit,
                   f"null {best} {medians[best]:.4g} {unit}", f"{everyone} {unit}" +
                   (f"; {note}" if note else ""))
        return best


def make_limiters(mount):
    """One rate, eight of them, and four levels with a rate each."""
    mount.limiter("x", rate=RATE, burst=BURST)
    mount.limiter("eight", rate=LIMITS)
    for level in range(LEVELS):
        mount.limiter("/".join(f"l{n}" for n in range(level + 1)), rate=RATE, burst=BURST)


def with_cpu(pids, tokens, measure):
    """A measure with the CPU of @pids a token, if it took so many @tokens (a function of it)."""
    before = cpu_ns(pids)
    result = measure()
    result["cpu_us"] = (cpu_ns(pids) - before) / 1e3 / tokens(result)
    return result
