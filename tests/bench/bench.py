"""What the rows are made of: contestants, interleaved rounds, ratios, figures."""
import contextlib
import os
import random
import statistics
import subprocess
import tempfile
import time

from daemons import Daemon, Mount, Unmeasured, place, running

FORMS = ("single", "multi", "clone", "look")  # of null_fs, to answer at once
MOUNT_OPTIONS = "default_permissions"  # what ratefs always has


class Settings:
    """How much is measured: set by --quick."""

    def __init__(self, quick):
        self.rounds = 3 if quick else 8
        self.reads = 2000 if quick else 10000
        self.opens = 1000 if quick else 4000
        self.starts = 2 if quick else 3  # clients per round where their place is left to chance
        self.throughput_s = 0.3 if quick else 1
        self.paced_s = 0.5 if quick else 2
        self.ideal_s = 5 if quick else 60
        self.crowds = (2000,) if quick else (20000, 100000)
        self.kills = 100 if quick else 400
        self.limiters = 10000 if quick else 100000
        self.keys = 50000 if quick else 1000000
        self.finds = 1000 if quick else 5000
        self.shell_loops = 200 if quick else 1000
        self.idle_s = 2 if quick else 10
        self.cpu_s = 2 if quick else 5
        # Of fleets.
        self.lease_goes = 1 if quick else 3  # times as many rounds where 2 % count
        self.transactions = 10 if quick else 30
        self.first_tokens = 2 if quick else 5
        self.lease_s = 6 if quick else 15
        self.departures = 1 if quick else 4
        self.waited_s = 2 if quick else 4
        self.retunes = 10 if quick else 200
        self.fleet_limiters = 100 if quick else 1000
        self.settle_s = 3 if quick else 20
        self.steady_s = 15 if quick else 60
        self.simulated_hosts = (30, 100) if quick else (100, 1000)
        self.simulated_s = 300 if quick else 3600
        self.restarts = 1 if quick else 3
        self.restarted_s = 15 if quick else 30


def print_figure(figure):
    spread = ("" if figure["min"] is None else
              f"{figure['min']:.4g}..{figure['max']:.4g}")
    met = {True: "met", False: "NOT MET", None: "-"}[figure["met"]]
    print(f"{figure['row']:>3}  {figure['what']:<48} {figure['target']:<13} "
          f"{figure['measured']:<13} {spread:<15} {met:<8} {figure['floor']}", flush=True)


def median_of(results, key):
    return statistics.median(one[key] for one in results)


def quotients(results, others, key):
    """Round by round."""
    return [one[key] / other[key] for one, other in zip(results, others)]


class Bench:
    """One run: its settings, its mounts, its figures."""

    def __init__(self, arguments, build, folder):
        self.build = build
        self.settings = Settings(arguments.quick)
        self.ratefs_path = arguments.ratefs
        self.folder = folder
        self.log = open(os.path.join(folder, "log"), "w")
        self.figures = []
        self.mounts = []
        self.best_timer = "early"  # of null_fs; row 5 finds out
        self.ensemble = None  # of ZooKeeper servers, from the first row that needs it

    def close(self):
        if self.ensemble:
            self.ensemble.remove()
        self.log.close()

    def program(self, name):
        return os.path.join(self.build, "tests", "bench", name)

    @contextlib.contextmanager
    def mount(self, *command):
        mount = Mount(self.folder, self.log, command)
        self.mounts.append(mount)
        try:
            yield mount
        finally:
            self.mounts.remove(mount)
            mount.stop()

    def ratefs(self):
        return self.mount(self.ratefs_path, "-f", "local", "MOUNT")

    def null(self, form, rate=0, options=MOUNT_OPTIONS):
        return self.mount(self.program("null_fs"), form, "MOUNT", str(rate), options)

    @contextlib.contextmanager
    def contestants(self):
        """ratefs with a limiter x of rate max, and every form of the null file system."""
        with contextlib.ExitStack() as stack:
            mounts = {"ratefs": stack.enter_context(self.ratefs())}
            mounts["ratefs"].limiter("x")
            for form in FORMS:
                mounts[form] = stack.enter_context(self.null(form))
            yield mounts

    @contextlib.contextmanager
    def redis(self):
        folder = tempfile.mkdtemp(prefix="redis", dir=self.folder)
        socket = os.path.join(folder, "s")
        command = ["redis-server", "--port", "0", "--unixsocket", socket, "--dir", folder,
                   "--save", "", "--appendonly", "no", "--daemonize", "no"]
        with running(Daemon(command, stdout=self.log, stderr=self.log)) as daemon:
            for _ in range(500):
                if os.path.exists(socket):
                    break
                time.sleep(0.01)
            daemon.socket = socket
            yield daemon

    def run(self, command, placement="free", limit_s=180, **options):
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

    def figure(self, row, what, target, measured, met, spread=None, floor="", note=""):
        self.figures.append({"row": row, "what": what, "target": target, "measured": measured,
                             "min": spread[0] if spread else None,
                             "max": spread[1] if spread else None,
                             "floor": floor, "met": met, "note": note})
        print_figure(self.figures[-1])

    def ratio(self, row, what, ratios, sign, limit, floor, note=""):
        """A figure that is the median of @ratios; @sign is <= or >=."""
        ratio = statistics.median(ratios)
        met = ratio <= limit if sign == "<=" else ratio >= limit
        self.figure(row, what, f"{sign} {limit} x", f"{ratio:.{2 if limit < 10 else 0}f} x", met,
                    (min(ratios), max(ratios)), floor, note)

    def rounds(self, measures, placement="free", starts=None):
        """
        Calls each of @measures (name: function giving a dictionary) once a round, in an order that
        changes; gives {name: [dictionary of each round]}. Where clients are placed freely, each
        round is the median of several, since a client stays where it happened to start.
        """
        results = {name: [] for name in measures}
        starts = starts or (self.settings.starts if placement == "free" else 1)
        for _ in range(self.settings.rounds):
            order = list(measures)
            random.shuffle(order)
            gathered = {name: [] for name in measures}
            for _ in range(starts):
                for name in order:
                    gathered[name].append(measures[name]())
            for name, many in gathered.items():
                results[name].append({key: statistics.median(one[key] for one in many)
                                      for key in many[0]})
        return results

    def compare(self, row, what, key, results, better, limit, unit="us"):
        """A figure: ratefs against the best form of the null file system, round by round."""
        def median(name):
            return statistics.median(one[key] for one in results[name])

        forms = [name for name in results if name != "ratefs"]
        low = better == "low"
        rank = "p50_us" if key.endswith("_us") and "p50_us" in results["ratefs"][0] else key
        best = (min if low else max)(
            forms, key=lambda name: statistics.median(one[rank] for one in results[name]))
        everyone = ", ".join(f"{name} {median(name):.4g}" for name in forms)
        self.ratio(row, what, quotients(results["ratefs"], results[best], key),
                   "<=" if low else ">=", limit, f"{best} {median(best):.4g} {unit}",
                   f"ratefs {median('ratefs'):.4g}; {everyone}")
        return best
