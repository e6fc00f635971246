"""Rows about one user who asks without end, beside all others."""
import contextlib
import os
import subprocess

from bench import BURST, RATE, median_of
from daemons import Unmeasured

NOBODY = 65534
DEPTH = 16  # levels of limiters that hear an outcome
DEEPEST = "/".join(f"d{level}" for level in range(DEPTH))
# A request: a kind of the client's, a file, two lines in turn, and how many of one make a text.
REQUESTS = (
    ("stat of a file", "stat", "own/rate", "-", 1),
    ("a name that is not there", "name", "own/none", "-", 1),
    ("another take/N each time", "name", "own/take/", "-", 1),
    ("another key each time", "name", "own/keys/", "-", 1),
    ("an attempt of a token", "read", "own/take/1,within=0s", "-", 1),
    ("stat", "read", "own/stat", "-", 1),
    ("waiters", "read", "own/waiters", "-", 1),
    ("users", "read", "own/users", "-", 1),
    ("why", "read", "own/why", "-", 1),
    ("config", "read", "own/config", "-", 1),
    ("events", "read", "events", "-", 1),
    ("hosts", "read", "hosts", "-", 1),
    ("status", "read", "status", "-", 1),
    ("metrics", "read", "metrics", "-", 1),
    ("a list of keys", "list", "own/keys", "-", 1),
    ("a poll of a token", "poll", "own/token", "-", 1),
    ("a write of rate", "write", "tuned/rate", "1/h 2/h", 1),
    ("a write of key_rate", "write", "own/key_rate", "1/h 2/h", 1),
    ("a charge", "write", "own/charge", "1", 1),
    ("an outcome", "write", f"{DEEPEST}/feedback", "ok", 1),
    ("128 KiB of outcomes", "write", f"{DEEPEST}/feedback", "429", 32768),
    ("mkdir and rmdir", "mkdir", "own/made", "-", 1),
)


@contextlib.contextmanager
def hostile(bench, mount, kind, path, line, times):
    """
    Threads of a user that ask for it until the end of the block; then how many they got. They get
    processors that nobody else wants: how these are divided is not what is measured.
    """
    counts = {}

    def begin():
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
        os.chdir(mount.path)

    process = subprocess.Popen([bench.program("client"), "hostile", str(NOBODY),
                                str(bench.settings.hostile_threads), kind, path,
                                line.split()[0], line.split()[-1], str(times)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=bench.log,
                               text=True, preexec_fn=begin)
    try:
        if process.stdout.readline() != "started\n":
            raise Unmeasured(f"{kind} {path}: the threads could not be started")
        yield counts
        text, _ = process.communicate(timeout=60)
        counts.update((name, int(value)) for name, value in
                      (row.split() for row in text.splitlines()))
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(60)


def prepare(bench, mount, stack):
    """A limiter of that user with keys that are open, and one at the end of a line of them."""
    mount.limiter("x", rate=RATE, burst=BURST)
    mount.limiter("own", rate=RATE, key_rate="1/h")
    mount.limiter("tuned")
    for level in range(DEPTH):
        mount.limiter("/".join(DEEPEST.split("/")[:level + 1]), rate=RATE, adapt="aimd")
    for key in range(bench.settings.hostile_keys):
        stack.enter_context(open(mount.file(f"own/keys/k{key}/token")))
    for limiter in ("own", "tuned", DEEPEST):
        os.chown(mount.file(limiter), NOBODY, NOBODY)


def row_9c(bench):
    threads, keys = bench.settings.hostile_threads, bench.settings.hostile_keys
    ways = [("nothing of the tree", "nothing", "-", "-", 1)] + list(REQUESTS)
    alone, results, got = {}, {}, {}
    with bench.mount(bench.ratefs_path, "-f", "-o", "allow_other", "local", "MOUNT") as mount, \
            contextlib.ExitStack() as stack:
        prepare(bench, mount, stack)

        def tokens():
            return bench.client("held", mount.file("x/token"), bench.settings.reads)

        for _ in range(max(bench.settings.rounds // 2, 1)):
            for what, kind, path, line, times in ways:
                alone.setdefault(what, []).append(tokens())
                with hostile(bench, mount, kind, path, line, times) as counts:
                    results.setdefault(what, []).append(tokens())
                got[what] = counts
                if not counts.get("done"):
                    raise Unmeasured(f"{what}: nothing was done")
    spun = median_of(results[ways[0][0]], "mean_us")
    for what, *_ in ways:
        mean = median_of(results[what], "mean_us")
        bench.ratio("9c", f"a token beside {threads} threads: {what}", results[what],
                    alone[what], "mean_us", "<=", 3,
                    f"beside computing {spun:.0f} us",
                    f"{mean:.0f} us, alone {median_of(alone[what], 'mean_us'):.0f} us; "
                    f"{got[what]['done']} done, {got[what]['refused']} refused"
                    f"; {keys} keys open")
