"""Rows about many hosts, and about faults."""
import contextlib
import math
import os
import statistics
import threading
import time

from daemons import Unmeasured
from fleet import (D_S, FULL, STEP_S, Watch, fleet, granted, granting_s, greedy, know,
                   quarantine_s, renewal_s, until)
from servers import Ensemble
from wire import Wire

COUNT = 20  # partitions
BURST = COUNT  # of a fleet: one token for each partition
READERS = 8
MANY_READERS = 256  # that they want all is plain from their number
RATE = 1000
SPAN_S = 0.5  # over which a rate is looked at


def percentile(sample, percent):
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100) - 1)]


def fall_s(bench, count, readers, lease, options):
    """Seconds from the loss of the first of @count hosts until the others grant everything."""
    with fleet(bench, count, options) as hosts, contextlib.ExitStack() as stack:
        first, others = hosts[0], hosts[1:]
        first.make("x", rate=f"{RATE}/s", count=COUNT, lease=lease)
        know(hosts, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, [first], "x/token", READERS))
        until(lambda: first.stat("x", "partitions_held") == COUNT, 20)
        stack.enter_context(greedy(bench, others, "x/token", readers))
        time.sleep(bench.settings.waited_s if count == 2 else 3 * bench.settings.waited_s)
        begun = time.monotonic()
        first.kill()
        return granting_s(others, "x", RATE, begun, SPAN_S, 60)


def row_25(bench):
    """With many readers a host asks for all at once; with few it finds out what it can use."""
    short = ("right=3s", 3, 5.0, ("right=3s", "session=2s"))
    usual = ("defaults", D_S, math.ceil(10 * (quarantine_s() + 2 * renewal_s() + 1)) / 10, ())
    cases = [(*short, "holds all", (2, MANY_READERS, "1h"))]
    if not bench.settings.quick:
        cases += [(*usual, "holds all", (2, MANY_READERS, "1h")),
                  (*usual, "holds all, few readers wait", (2, READERS, "1h")),
                  (*usual, "is one of three that share", (3, READERS, "2s"))]
    for name, right_s, limit_s, options, what, case in cases:
        lost = [fall_s(bench, *case, options) for _ in range(bench.settings.departures)]
        median = statistics.median(lost)
        bench.figure(25, f"a host dies that {what}, {name}", f"<= {limit_s:.1f} s",
                     f"{median:.1f} s", max(lost) <= limit_s, (min(lost), max(lost)),
                     "prototype 9.9 s (T 4, D 5)",
                     f"until its capacity is granted elsewhere, each time; "
                     f"Q {quarantine_s(right_s):.2f} s, R {renewal_s(right_s):g} s, "
                     f"session {options[1][8:] if options else '6s'}; "
                     f"{len(lost)} times, {case[0]} hosts, {case[1]} readers on each that stays",
                     max(lost))


def follow(hosts, rate):
    """A function that says whether all grant at their part of @rate; it asks each till it does."""
    late = list(hosts)

    def follows(host):
        held, total = host.stat("x", "partitions_held"), len(hosts)
        return host.stat("x", "rate") == rate and math.isclose(
            host.stat("x", "effective_rate"), held * rate / total)

    def all_follow():
        late[:] = [host for host in late if not follows(host)]
        return not late

    return all_follow


def row_26(bench):
    """Every host has a reader all the time, so that each holds its share."""
    count = bench.settings.hosts
    every, returned = [], []
    with fleet(bench, count) as hosts, contextlib.ExitStack() as stack:
        hosts[0].make("x", rate="400/s", count=count)
        know(hosts, "x", "400/s")
        stack.enter_context(greedy(bench, hosts, "x/token", 1))
        spread = until(lambda: all(host.stat("x", "partitions_held") for host in hosts), 60)
        for n in range(bench.settings.retunes):
            rate = 400 + 20 * (n % 2 + 1)
            begun = time.monotonic()
            hosts[n % count].tune("x", rate=f"{rate}/s")
            returned.append(time.monotonic() - begun)
            every.append(until(follow(hosts, rate), 5, begun))
            time.sleep(0.1)
        held = sum(host.stat("x", "partitions_held") for host in hosts)
        tokens, since = granted(hosts, "x"), time.monotonic()
        time.sleep(2)
        share = (granted(hosts, "x") - tokens) / (time.monotonic() - since) / rate
    p99 = percentile(every, 99)
    bench.figure(26, f"a new rate until {count} hosts grant at it, p99", "<= 100 ms",
                 f"{p99 * 1e3:.0f} ms", p99 <= 0.1, (min(every) * 1e3, max(every) * 1e3), "",
                 f"{len(every)} writes, p50 {statistics.median(every) * 1e3:.0f} ms; from before "
                 "the write until stat of each mount has the rate, and its part of it as "
                 "effective_rate, looked at in turn; the write itself p50 "
                 f"{statistics.median(returned) * 1e3:.0f} ms; all hold a partition after "
                 f"{spread:.1f} s, in the end {held:.0f} of {count} are held", p99)
    bench.figure(26, "granted at the last rate", "97 to 102 %", f"{100 * share:.1f} %",
                 0.97 <= share <= 1.02, None, "", "counted by all hosts over 2 s", share)


def consume(hosts, names, stop):
    """A reader for each of @names, on the hosts in turn, until the hosts end."""
    def reader(path):
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
            while not stop.is_set():
                os.pread(file.fileno(), 16, 0)

    threads = [threading.Thread(target=reader, daemon=True,
                                args=(hosts[n % len(hosts)].file(f"{name}/token"),))
               for n, name in enumerate(names)]
    for thread in threads:
        thread.start()
    return threads


def steady(bench, hosts, names, wire):
    """(writes, reads, lists, tokens, seconds, leases taken or given back) of a time of calm."""
    moves = ("taken_clean", "taken_unclean", "given_back")

    def look():
        moved = sum(host.counters(*moves) for host in hosts)
        tokens = sum(granted([hosts[n % len(hosts)]], name) for n, name in enumerate(names))
        return (*wire.asked(), tokens, time.monotonic(), moved)

    before = look()
    time.sleep(bench.settings.steady_s)
    return [after - begin for begin, after in zip(before, look())]


def row_27(bench):
    """Each limiter is used on one host; its partitions are few, so that a host can hold all."""
    count, total = bench.settings.hosts, bench.settings.fleet_limiters
    names = [f"x{n}" for n in range(total)]
    if bench.ensemble is None:
        raise Unmeasured("there are no ZooKeeper servers")
    with contextlib.closing(Wire(bench.ensemble.addresses)) as wire, \
            fleet(bench, count, names=wire.names) as hosts:
        for n, name in enumerate(names):
            hosts[n % count].make(name, rate="1/s", count=2)
        know(hosts, names[-1], "1/s")
        stop = threading.Event()
        threads = consume(hosts, names, stop)
        time.sleep(bench.settings.settle_s)
        writes, reads, lists, tokens, seconds, moved = steady(bench, hosts, names, wire)
        leases = sum(int(host.status()["leases"]) for host in hosts)
        stop.set()
    for thread in threads:
        thread.join(1)
    each_s = count * seconds
    limit = 1 / renewal_s()
    what = f"{count} hosts, {total} limiters, nobody short: ZooKeeper"
    note = (f"counted on the wire for {seconds:.0f} s, {moved} leases taken or given back; "
            f"{tokens / seconds:.0f} of {total} tokens a second are granted, {leases} leases held")
    for kind, number, allowed in (("writes", writes, limit), ("reads", reads, limit),
                                  ("lists", lists, 0)):
        bench.figure(27, f"{what} {kind} a second and host", f"<= {allowed:.2f}",
                     f"{number / each_s:.2f}", number / each_s <= allowed, None,
                     f"1/R = {limit:.2f}", note, number / each_s)


def full_again_s(watch, quorum, rate):
    """Seconds after @quorum until the first second in which the full rate was granted."""
    for begin, share in watch.windows(1):
        if begin >= quorum and share >= FULL * rate:
            return begin - quorum
    return math.inf


def restart(ensemble, watch, down_s):
    """Ends all servers and starts them again @down_s later; when there was a quorum."""
    quorum = []
    ensemble.kill()
    watch.run(down_s)
    ensemble.start()
    thread = threading.Thread(target=lambda: quorum.append(ensemble.await_quorum()), daemon=True)
    thread.start()
    while thread.is_alive():
        watch.run(0.1)
    if not quorum:
        raise Unmeasured("the ZooKeeper servers found no quorum")
    return quorum[0]


def restarted(bench, ensemble, down_s):
    """(seconds until the full rate, excess, tokens of the slowest second) of one restart."""
    with fleet(bench, 3, ensemble=ensemble) as hosts, contextlib.ExitStack() as stack:
        hosts[0].make("x", rate=f"{RATE}/s", count=COUNT, lease="2s")
        know(hosts, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, hosts, "x/token", READERS))
        until(lambda: all(host.stat("x", "partitions_held") > 3 for host in hosts), 30)
        watch = Watch(hosts, "x")
        watch.run(2)
        quorum = restart(ensemble, watch, down_s)
        watch.run(bench.settings.restarted_s)
        return (full_again_s(watch, quorum, RATE), watch.excess(RATE),
                min(share for _, share in watch.windows(1)))


def row_30(bench):
    """The servers are this row's own."""
    cases = [(0, "at once")]
    if not bench.settings.quick:
        cases += [(1.5 * D_S, f"after {1.5 * D_S:.0f} s")]
    ensemble = Ensemble(bench.log)
    try:
        for down_s, what in cases:
            back, excess, slowest = zip(*(restarted(bench, ensemble, down_s)
                                          for _ in range(bench.settings.restarts)))
            overlaps = sum(one > BURST for one in excess)
            bench.figure(30, f"ensemble restarted {what}: full rate after", "<= 10 s",
                         f"{statistics.median(back):.1f} s", max(back) <= 10,
                         (min(back), max(back)), "",
                         f"after quorum, {RATE}/s on 3 hosts; slowest second {min(slowest):.0f}/s; "
                         f"{len(back)} times", max(back))
            bench.figure(30, f"ensemble restarted {what}: overlaps", "0", str(overlaps),
                         not overlaps, None, "",
                         "times that all hosts together certainly grant more than rate x length + "
                         f"{BURST} in a window; the fullest has {max(excess):.1f} more than rate x "
                         "length", overlaps)
    finally:
        ensemble.remove()
