"""Rows about many: blocked readers, limiters, keys."""
import contextlib
import os
import random
import signal
import statistics
import subprocess
import time

from bench import BURST, FORMS, RATE, median_of
from daemons import Unmeasured, memory_bytes, pids_allowed, process_tree

PLENTY = "1G/s"  # a rate at which a crowd is granted at once


class Crowd:
    """Blocked readers, each with an open file of its own, that obey orders."""

    def __init__(self, process):
        self.process = process

    def order(self, text):
        """Numbers that answer, by name."""
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        if not words:
            raise Unmeasured(f"the crowd did not obey: {text}")
        return {name: float(value) for name, value in zip(words[::2], words[1::2])}


@contextlib.contextmanager
def crowd(bench, mount, readers, limiter="x"):
    """@readers readers blocked on the token of @limiter."""
    process = subprocess.Popen([bench.program("client"), "crowd", mount.file(f"{limiter}/token"),
                                mount.file(f"{limiter}/stat"), str(readers)],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=bench.log,
                               text=True)
    try:
        if not process.stdout.readline().startswith("started"):
            raise Unmeasured(f"{readers} readers could not be started")
        for _ in range(2400):
            if mount.stat(limiter, "waiting") >= readers:
                break
            time.sleep(0.05)
        else:
            raise Unmeasured(f"{readers} readers did not block")
        yield Crowd(process)
        process.stdin.close()
        process.wait(60)
    finally:
        if process.poll() is None:
            for pid in process_tree(process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(120)
        process.stdout.close()


def crowd_size(wanted):
    """So many threads, or as many as the machine allows."""
    return min(wanted, pids_allowed() // 1000 * 1000)


def of_size(figure_of, wanted, readers):
    """The name of a figure, which says when it is of fewer readers than its target."""
    return figure_of if readers == wanted else f"{figure_of} (instead of {wanted})"


def row_8(bench):
    readers = crowd_size(bench.settings.crowd)
    each = []
    for _ in range(bench.settings.crowd_goes):
        with bench.ratefs() as mount:
            mount.limiter("x", rate=0)
            before = memory_bytes(mount.pids())
            with crowd(bench, mount, readers) as blocked:
                each.append((memory_bytes(mount.pids()) - before) / readers)
                blocked.order("kill")
    median = statistics.median(each)
    bench.figure(8, of_size(f"{readers} blocked readers, an open file each: memory each",
                            bench.settings.crowd, readers), "<= 400 B", f"{median:.0f} B",
                 median <= 400, (min(each), max(each)), "38 B in the barest prototype",
                 "keeper, server, and the state for a successor", median)


def times(bench, what, target, unit, values, met, floor="", note=""):
    median = statistics.median(values)
    bench.figure(9, what, target, f"{median:.4g} {unit}", met(median), (min(values), max(values)),
                 floor, f"{note}{'; ' * bool(note)}{len(values)} samples", median)


def beside_crowd(bench, mount, readers):
    """A token of another limiter, with the crowd and without; then the crowd is killed."""
    def others():
        return bench.client("held", mount.file("y/token"), bench.settings.reads, placement="one")

    mount.pin("one")
    alone = [others() for _ in range(bench.settings.rounds)]
    with crowd(bench, mount, readers) as blocked:
        crowded = [others() for _ in range(bench.settings.rounds)]
        mount.pin("free")
        cancels = [blocked.order("cancel")["cancel_us"] for _ in range(bench.settings.cancels)]
        killed = blocked.order("kill")["kill_s"]
    mount.pin("one")
    alone += [others() for _ in range(bench.settings.rounds)]
    mount.pin("free")
    return alone[::2], crowded, cancels, killed


def row_9(bench):
    readers = crowd_size(bench.settings.crowd)
    killed, granted, cancels, alone, crowded = [], [], [], [], []
    for _ in range(bench.settings.crowd_goes):
        with bench.ratefs() as mount:
            mount.limiter("x", rate=0)
            mount.limiter("y", rate=RATE, burst=BURST)
            before, beside, cancelled, seconds = beside_crowd(bench, mount, readers)
            alone, crowded = alone + before, crowded + beside
            cancels += cancelled
            killed.append(seconds)
            with crowd(bench, mount, readers) as blocked:
                answer = blocked.order(f"grant {mount.file('x/rate')} {PLENTY}")
                if answer["answered"] < readers:
                    raise Unmeasured(f"only {answer['answered']:.0f} of {readers} were answered")
                granted.append(answer["grant_per_s"])
                blocked.order("kill")
    kill_limit_s = 0.4 * readers / 20000
    of = of_size(f"{readers}", bench.settings.crowd, readers)
    times(bench, f"cancel the newest of {of}", "<= 100 us", "us", cancels, lambda us: us <= 100,
          "stock libfuse 5.5 ms", "from the signal until the reader runs")
    times(bench, f"grant all {of}", ">= 100000 /s", "/s", granted, lambda rate: rate >= 100000, "",
          "until the last reader has run; on the readers' own cores")
    times(bench, f"kill all {of}", f"<= {kill_limit_s:.2g} s", "s", killed,
          lambda seconds: seconds <= kill_limit_s, "stock libfuse 24 s for 100,000",
          "until the last process is reaped")
    for key in ("p50_us", "p99_us"):
        bench.ratio(9, f"held read while {of} wait, {key[:3]}, one", crowded, alone, key, "<=",
                    1.3, f"without them {median_of(alone, key):.4g} us")


def row_9b(bench):
    with bench.ratefs() as mount:
        mount.limiter("x", concurrency=1)
        results = [bench.client("slot", mount.file("x/slot"), bench.settings.kills)
                   for _ in range(bench.settings.rounds)]
    worst = [one["p99_us"] / 1e3 for one in results]
    p99 = statistics.median(worst)
    bench.figure("9b", "slot of a killed holder, p99", "<= 1 ms", f"{p99:.3f} ms", p99 <= 1,
                 (min(worst), max(worst)), "77 us p50 in the barest prototype",
                 f"p50 {median_of(results, 'p50_us'):.0f} us, from kill -9 until the next open "
                 f"returns; {len(results)} times {bench.settings.kills} kills", p99)


def row_10(bench):
    rounds = bench.settings.rounds
    part = bench.settings.limiters // rounds
    total = part * rounds
    with bench.ratefs() as mount, contextlib.ExitStack() as stack:
        everyone = {form: stack.enter_context(bench.null(form)) for form in FORMS}
        everyone["ratefs"] = mount
        for one in everyone.values():
            one.pin("one")
        before = memory_bytes(mount.pids())
        results = {name: [] for name in everyone}
        for index in range(rounds):
            for name in random.sample(list(everyone), len(everyone)):
                rate = "500/s" if name == "ratefs" else "none"
                results[name].append(bench.client("make", everyone[name].path, index * part, part,
                                                  rate, placement="one"))
        each = (memory_bytes(mount.pids()) - before) / total
        bench.figure(10, f"{total} limiters with a rate: memory each", "<= 800 B", f"{each:.0f} B",
                     each <= 800, None, "", "keeper, server, and the state for a successor", each)
        bench.compare(10, "make one, p50, one", "p50_us", results, "ratefs", FORMS, "low", 2)
        found = {name: [] for name in everyone}
        for index in range(rounds):
            time.sleep(1.2)  # the kernel's knowledge of names has expired
            for name in random.sample(list(everyone), len(everyone)):
                found[name].append(bench.client(
                    "find", everyone[name].path, total, bench.settings.finds // (rounds - index),
                    placement="one"))
        bench.compare(10, f"find one among {total}, p50, one", "p50_us", found, "ratefs", FORMS,
                      "low", 1.2, note="an open with O_PATH, of a name that has expired")


def row_11(bench):
    rounds, opens = bench.settings.rounds, bench.settings.opens
    total = bench.settings.keys
    name_bytes = 8
    with bench.ratefs() as mount:
        # A token a day: a key that one was taken from stays, and has more of them.
        mount.limiter("x", rate=RATE, burst=BURST, keys_max=2 * total, key_burst=10 ** 9,
                      key_rate="1/d")
        mount.pin("one")
        keys = mount.file("x/keys")
        # The buffers that grow with the first requests are not the keys'.
        bench.client("keys", keys, 2 * total, 100, placement="one")
        before = memory_bytes(mount.pids())
        bench.client("keys", keys, 0, total, placement="one")
        each = (memory_bytes(mount.pids()) - before) / total - name_bytes
        live = mount.stat("x", "keys")
        if live < total:
            raise Unmeasured(f"{live:.0f} of {total} keys are live")
        bench.figure(11, f"{total} live keys: memory each beyond the name", "<= 128 B",
                     f"{each:.0f} B", each <= 128, None, "",
                     f"keeper, server, and the state for a successor; {live:.0f} are live", each)
        fresh, seeds = iter(range(3 * total, 9 * total, opens)), iter(range(10 ** 6))
        results = bench.rounds({
            "random": lambda: bench.client("randomkeys", keys, total, opens, next(seeds),
                                           placement="one"),
            "new": lambda: bench.client("keys", keys, next(fresh), opens, placement="one"),
            "limiter": lambda: bench.client("open", mount.file("x/token"), opens,
                                            placement="one")}, "one")
    usual = f"the limiter's {median_of(results['limiter'], 'p50_us'):.4g} us"
    for name, what, limit in (("random", f"a random key of {total}", 1.5), ("new", "a new key", 2)):
        bench.ratio(11, f"open, read, close of the token of {what}, p50, one", results[name],
                    results["limiter"], "p50_us", "<=", limit, usual)
