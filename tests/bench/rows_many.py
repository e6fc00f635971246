"""Rows about many: blocked readers, limiters, keys."""
import contextlib
import os
import random
import signal
import statistics
import subprocess
import time

from bench import FORMS, median_of, quotients
from daemons import Unmeasured, memory_bytes, pids_allowed, process_tree


@contextlib.contextmanager
def crowd(bench, mount, readers):
    """@readers readers blocked on x/token, and a function that gives them an order."""
    process = subprocess.Popen([bench.program("client"), "crowd", mount.file("x/token"),
                                str(readers)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=bench.log, text=True)

    def order(text, lines):
        process.stdin.write(text + "\n")
        process.stdin.flush()
        answers = (process.stdout.readline().split() for _ in range(lines))
        return {words[0]: float(words[1]) for words in answers if words}

    try:
        if not process.stdout.readline().startswith("started"):
            raise Unmeasured(f"{readers} readers could not be started")
        for _ in range(2400):
            if mount.stat("x", "waiting") >= readers:
                break
            time.sleep(0.05)
        else:
            raise Unmeasured(f"{readers} readers did not block")
        yield order
        process.stdin.close()
        process.wait(60)
    finally:
        if process.poll() is None:
            for pid in process_tree(process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            process.wait(120)
        process.stdout.close()


def crowd_sizes(bench):
    allowed = pids_allowed()
    wanted = bench.settings.crowds
    sizes = [size for size in wanted if size <= allowed]
    return sizes or [allowed // 1000 * 1000], [size for size in wanted if size > allowed]


def row_8(bench):
    sizes, left_out = crowd_sizes(bench)
    for readers in sizes:
        with bench.ratefs() as mount:
            mount.limiter("x", rate=0)
            before = memory_bytes(mount.pids())
            with crowd(bench, mount, readers) as order:
                each = (memory_bytes(mount.pids()) - before) / readers
                order("kill", 1)
        bench.figure("8", f"{readers} blocked readers, memory each", "<= 300 B", f"{each:.0f} B",
                     each <= 300, None, "38 B")
    for readers in left_out:
        bench.figure("8", f"{readers} blocked readers, memory each", "<= 300 B", "not measured",
                     None, note=f"{pids_allowed()} more threads are allowed")


def row_9(bench):
    sizes, _ = crowd_sizes(bench)
    readers = sizes[-1]
    with bench.ratefs() as mount:
        mount.limiter("x", rate=0)
        mount.limiter("y")
        mount.pin("one")

        def others():
            return bench.client("held", mount.file("y/token"), bench.settings.reads,
                                placement="one")["p50_us"]

        alone = [others() for _ in range(bench.settings.rounds)]
        with crowd(bench, mount, readers) as order:
            crowded = [others() for _ in range(bench.settings.rounds)]
            mount.pin("free")
            cancels = [order("cancel", 1).get("cancel_us", float("inf"))
                       for _ in range(bench.settings.rounds * 2)]
            killed = order("kill", 1)["kill_s"]
        mount.pin("one")
        alone += [others() for _ in range(bench.settings.rounds)]
        mount.pin("free")
        with crowd(bench, mount, readers) as order:
            granted = order(f"grant {mount.file('x/rate')} max", 2)
    cancel = statistics.median(cancels)
    bench.figure("9", f"cancel the newest of {readers}", "<= 100 us", f"{cancel:.0f} us",
                 cancel <= 100, (min(cancels), max(cancels)), "stock libfuse 5.5 ms",
                 "from the signal until the reader runs")
    bench.figure("9", f"grant all {readers}", ">= 100000 /s",
                 f"{granted['grant_per_s']:.0f} /s", granted["grant_per_s"] >= 100000, None, "",
                 "until the last reader has run; on the readers' own cores")
    limit = 2 * readers / 100000
    bench.figure("9", f"kill all {readers}", f"<= {limit:.2g} s", f"{killed:.3f} s",
                 killed <= limit, None, "stock libfuse 24 s for 100,000",
                 "until the last process is reaped; 2 s for 100,000")
    usual = statistics.median(alone)
    bench.ratio("9", f"held read beside {readers} blocked, p50, one",
                [one / usual for one in crowded], "<=", 1.3, f"without them {usual:.4g} us")


def row_9b(bench):
    with bench.ratefs() as mount:
        mount.limiter("x")
        with open(mount.file("x/concurrency"), "w") as file:
            file.write("1")
        results = [bench.client("slot", mount.file("x/slot"), bench.settings.kills)
                   for _ in range(bench.settings.rounds)]
    worst = [one["p99_us"] for one in results]
    p99 = statistics.median(worst)
    bench.figure("9b", "slot of a killed holder, p99", "<= 1 ms", f"{p99 / 1000:.3f} ms",
                 p99 <= 1000, (min(worst), max(worst)), "77 us p50 in the barest prototype",
                 f"p50 {median_of(results, 'p50_us'):.0f} us, from kill -9 until the next open "
                 "returns")


def row_10(bench):
    total, rounds = bench.settings.limiters, bench.settings.rounds
    part = total // rounds
    total = part * rounds
    with bench.ratefs() as mount, contextlib.ExitStack() as stack:
        nulls = {form: stack.enter_context(bench.null(form)) for form in FORMS}
        mount.limiter("x")
        everyone = dict(nulls, ratefs=mount)
        for one in everyone.values():
            one.pin("one")
        before = memory_bytes(mount.pids())
        results = {name: [] for name in everyone}
        for index in range(rounds):
            for name in random.sample(list(everyone), len(everyone)):
                results[name].append(bench.client("mkdir", everyone[name].path, index * part,
                                                  part, placement="one"))
        each = (memory_bytes(mount.pids()) - before) / total
        bench.figure("10", f"{total} limiters, memory each", "<= 600 B", f"{each:.0f} B",
                     each <= 600)
        bench.compare("10", "make one, p50, one", "p50_us", results, "low", 2)
        time.sleep(2)  # the kernel's entries expire
        step = bench.settings.finds
        found, held = [], []
        for index in range(rounds):
            found.append(bench.client("find", mount.path, total, step // rounds * (index + 1),
                                      placement="one"))
            held.append(bench.client("held", mount.file("x/token"), bench.settings.reads,
                                     placement="one"))
            time.sleep(1.5)
        bench.ratio("10", f"find one among {total}, p50, one", quotients(found, held, "p50_us"),
                    "<=", 1.2, f"held read {median_of(held, 'p50_us'):.4g} us",
                    f"an O_PATH open after its entry has expired: "
                    f"{median_of(found, 'p50_us'):.4g} us")


def row_11(bench):
    total, rounds = bench.settings.keys, bench.settings.rounds
    name_bytes = 8
    with bench.ratefs() as mount:
        # A token a day: a key that one was taken from stays, and has more of them.
        mount.limiter("x", keys_max=2 * total, key_burst=10 ** 9, key_rate="1/d")
        mount.pin("one")
        keys = mount.file("x/keys")
        part = total // rounds
        total = part * rounds
        bench.client("keys", keys, total, 100, placement="one")
        before = memory_bytes(mount.pids())
        made = [bench.client("keys", keys, index * part, part, placement="one")
                for index in range(rounds)]
        each = (memory_bytes(mount.pids()) - before) / total - name_bytes
        live = mount.stat("x", "keys")
        bench.figure("11", f"{total} live keys, memory each beyond the name", "<= 128 B",
                     f"{each:.0f} B", each <= 128 and live >= total, None, "",
                     f"{live:.0f} are live; a token of a new one {median_of(made, 'p50_us'):.4g} us")
        results = bench.rounds({
            "key": lambda: bench.client("open", mount.file("x/keys/00000000/token"),
                                        bench.settings.opens, placement="one"),
            "limiter": lambda: bench.client("open", mount.file("x/token"), bench.settings.opens,
                                            placement="one")}, "one")
        bench.ratio("11", f"open, read, close of a key's token among {total}, p50, one",
                    quotients(results["key"], results["limiter"], "p50_us"), "<=", 1.3,
                    f"the limiter's {median_of(results['limiter'], 'p50_us'):.4g} us")
