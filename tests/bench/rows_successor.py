"""Rows about what follows a server: its successor, and the next start."""
import contextlib
import os
import shutil
import signal
import statistics
import time

from bench import BURST, RATE
from daemons import Unmeasured, running, Daemon
from rows_many import crowd, crowd_size, of_size

LOADED_RATE, LOADED_READERS = 1000, 16
SUCCESSOR_S = 10  # in which a successor has to be there
KILL_S = 1.5  # between two kills: a server that served for a second has no pause after it
PAGE_S, DELAY_MS = 1, 10
KEPT_MOUNT_S = 120  # in which 100,000 limiters are loaded from a slow disk


class Gaps:
    """Readers that take all they get, and tell of the longest gap since they were asked last."""

    def __init__(self, bench, file, readers):
        self.daemon = Daemon([bench.program("client"), "gaps", file, str(readers)],
                             pipes=True, stderr=bench.log, text=True)

    def ask(self):
        process = self.daemon.process
        process.stdin.write("\n")
        process.stdin.flush()
        words = process.stdout.readline().split()
        if not words:
            raise Unmeasured("a reader got an error")
        return {name: float(value) for name, value in zip(words[::2], words[1::2])}


@contextlib.contextmanager
def gaps(bench, file, readers=LOADED_READERS):
    readers = Gaps(bench, file, readers)
    with running(readers.daemon):
        yield readers


def another_server(mount, former):
    until = time.monotonic() + SUCCESSOR_S
    while time.monotonic() < until:
        server = mount.server()
        if server != former:
            return server
        time.sleep(0.002)
    raise Unmeasured(f"no other server within {SUCCESSOR_S} s")


def killed(bench):
    """10,000 readers wait for what is not granted; others are granted, and tell of the gap."""
    readers = crowd_size(bench.settings.successor_crowd)
    extra_ms, slower = [], []
    with bench.ratefs() as mount:
        mount.may_die = True
        mount.limiter("x", rate=0)
        mount.limiter("y", rate=f"{LOADED_RATE}/s", burst=1)
        with crowd(bench, mount, readers) as blocked, gaps(bench, mount.file("y/token")) as load:
            time.sleep(KILL_S)
            for _ in range(bench.settings.server_kills):
                server = mount.server()
                load.ask()
                os.kill(server, signal.SIGKILL)
                another_server(mount, server)
                time.sleep(KILL_S)
                extra_ms.append(load.ask()["gap_us"] / 1e3 - 1e3 / LOADED_RATE)
                slower.append(mount.stat("x", "waiting"))
            failed = blocked.order("count")["failed"]
            answer = blocked.order(f"grant {mount.file('x/rate')} 1G/s")
            lost = readers - answer["answered"] + failed
            blocked.order("kill")
    p50, worst = statistics.median(extra_ms), max(extra_ms)
    what = of_size(f"server killed while {readers} wait", bench.settings.successor_crowd, readers)
    note = (f"{len(extra_ms)} kills; the longest gap between tokens of {LOADED_RATE}/s to "
            f"{LOADED_READERS} readers of another limiter, less its period")
    spread = (min(extra_ms), worst)
    bench.figure(15, f"{what}: extra wait, p50", "<= 20 ms", f"{p50:.1f} ms", p50 <= 20, spread,
                 "", note, p50)
    bench.figure(15, f"{what}: extra wait, max", "<= 500 ms", f"{worst:.1f} ms", worst <= 500,
                 spread, "", note, worst)
    bench.figure(15, f"{what}: readers that lost their place", "0", f"{lost:.0f}",
                 not lost and min(slower) == readers, None, "",
                 "each waits after each kill, and is answered at last", lost)


def reloaded(bench):
    with bench.ratefs() as mount:
        mount.limiter("y", rate=f"{LOADED_RATE}/s", burst=1)
        keeper = mount.process.pid
        with gaps(bench, mount.file("y/token")) as load:
            time.sleep(0.2)
            load.ask()
            begun = time.monotonic()
            for _ in range(bench.settings.reloads):
                server = mount.server()
                os.kill(keeper, signal.SIGHUP)
                another_server(mount, server)
            seconds = time.monotonic() - begun
            seen = load.ask()
            errors = load.daemon.process.poll() is not None
    bench.figure(15, f"{bench.settings.reloads} reloads under load: errors", "0",
                 str(int(errors)), not errors, None, "",
                 f"{LOADED_READERS} readers; longest gap {seen['gap_us'] / 1e3:.1f} ms, a reload "
                 f"each {seconds / bench.settings.reloads * 1e3:.0f} ms, "
                 f"{seen['tokens'] / seconds:.0f} tokens a second", int(errors))


def row_15(bench):
    killed(bench)
    reloaded(bench)


def keep_limiters(bench, folder, count):
    """A directory with @count limiters: copies of one that a daemon kept."""
    with bench.ratefs(f"local:{folder}") as mount:
        mount.limiter("l0", rate="500/s", burst=20)
    with open(os.path.join(folder, "l0", ".config"), "rb") as file:
        kept = file.read()
    for n in range(1, count):
        os.mkdir(os.path.join(folder, f"l{n}"), 0o700)
        with open(os.path.join(folder, f"l{n}", ".config"), "wb") as file:
            file.write(kept)


def page_of_metrics(bench, mount):
    """Seconds and bytes of a page that is read by another process, as a scraper's is."""
    begun = time.monotonic()
    text = bench.run(["wc", "-c", mount.file("metrics")])
    return time.monotonic() - begun, int(text.split()[0])


def row_18(bench):
    total = bench.settings.kept_limiters
    folder = os.path.join(bench.folder, "kept")
    starts, pages, waits, usual = [], [], [], []
    try:
        keep_limiters(bench, folder, total)
        for _ in range(bench.settings.starts_kept):
            begun = time.monotonic()
            with bench.ratefs(f"local:{folder}", KEPT_MOUNT_S) as mount:
                count = len(os.listdir(mount.path))
                starts.append(time.monotonic() - begun)
                with open(mount.file("status")) as file:
                    limiters = next(int(line.split()[1]) for line in file
                                    if line.startswith("limiters "))
                if limiters != total or count < total:
                    raise Unmeasured(f"{limiters} of {total} limiters were kept")
                mount.tune("l0", rate=RATE, burst=BURST)
                with gaps(bench, mount.file("l0/token"), 1) as load:
                    time.sleep(1)
                    load.ask()
                    time.sleep(1)
                    usual.append(load.ask()["read_us"] / 1e3)
                    seconds, size = page_of_metrics(bench, mount)
                    waits.append(load.ask()["read_us"] / 1e3)
                    pages.append(seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    start, page, wait = (statistics.median(values) for values in (starts, pages, waits))
    bench.figure(18, f"start with {total} kept limiters", "<= 3 s", f"{start:.2f} s", start <= 3,
                 (min(starts), max(starts)), "", "until the tree is listed; after a clean end",
                 start)
    bench.figure(18, f"a page of metrics of {total}", f"<= {PAGE_S} s", f"{page:.2f} s",
                 page <= PAGE_S, (min(pages), max(pages)), "", f"{size} bytes", page)
    bench.figure(18, "longest read of a token while it is made", f"<= {DELAY_MS} ms",
                 f"{wait:.1f} ms", wait <= DELAY_MS, (min(waits), max(waits)),
                 f"without {statistics.median(usual):.2g} ms",
                 f"{DELAY_MS} ms: as far back as a late token is accounted", wait)
