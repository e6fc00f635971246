"""Rows about many hosts, and about faults."""
import contextlib
import math
import os
import statistics
import threading
import time

from daemons import Unmeasured
from fleet import (D_S, Q_S, R_S, T_S, TICK_S, Watch, fleet, granted, greedy, know, until)

COUNT = 20  # partitions, and hosts where there are many
BURST = COUNT  # of a fleet: one token for each partition
FULL = 0.95  # of a rate: it counts as granted
READERS = 8
MANY_READERS = 256  # that they want all is plain from their number
RATE = 1000


def percentile(sample, percent):
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100) - 1)]


def fall_s(bench, count, readers, lease, wait_s):
    """Seconds from the loss of the first of @count hosts until the others have everything."""
    with fleet(bench, count) as hosts, contextlib.ExitStack() as stack:
        first, others = hosts[0], hosts[1:]
        first.make("x", rate=f"{RATE}/s", count=COUNT, lease=lease)
        know(hosts, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, [first], "x/token", READERS))
        until(lambda: first.stat("x", "partitions_held") == COUNT, 20)
        stack.enter_context(greedy(bench, others, "x/token", readers))
        time.sleep(wait_s)
        begun = time.monotonic()
        first.kill()
        return until(lambda: sum(host.stat("x", "effective_rate") for host in others)
                     >= FULL * RATE, 60, begun)


def row_25(bench):
    """With many readers a host asks for all at once; with few it finds out what it can use."""
    limit = T_S + TICK_S + R_S + Q_S
    waited = bench.settings.waited_s
    for what, case in (
            ("who holds all", (2, MANY_READERS, "1h", waited)),
            ("who holds all, few readers wait", (2, READERS, "1h", waited)),
            ("one of three that share", (3, READERS, "2s", 3 * waited))):
        lost = [fall_s(bench, *case) for _ in range(bench.settings.departures)]
        bench.figure("25", f"kill -9, {what}", f"<= {limit:.1f} s",
                     f"{statistics.median(lost):.1f} s", max(lost) <= limit,
                     (min(lost), max(lost)), "prototype 9.9 s (T 4, D 5)",
                     f"until its capacity is granted elsewhere; T {T_S} + tick {TICK_S} + R {R_S} "
                     f"+ Q {Q_S:.2f} s; {len(lost)} times, {case[0]} hosts, {case[1]} readers on "
                     "each that stays")


def row_26(bench):
    """Every host has a reader all the time, so that each holds its share."""
    every, returned = [], []
    with fleet(bench, COUNT) as hosts, contextlib.ExitStack() as stack:
        hosts[0].make("x", rate="400/s", count=COUNT)
        know(hosts, "x", "400/s")
        stack.enter_context(greedy(bench, hosts, "x/token", 1))
        spread = until(lambda: all(host.stat("x", "partitions_held") for host in hosts), 60)
        for n in range(bench.settings.retunes):
            rate = 400 + 20 * (n % 2 + 1)
            begun = time.monotonic()
            hosts[n % COUNT].tune("x", rate=f"{rate}/s")
            returned.append(time.monotonic() - begun)
            late = list(hosts)

            def follows(host):
                share = host.stat("x", "effective_rate")
                held = host.stat("x", "partitions_held")
                return host.stat("x", "rate") == rate and math.isclose(share, held * rate / COUNT)

            def all_follow():
                late[:] = [host for host in late if not follows(host)]
                return not late

            every.append(until(all_follow, 5, begun))
            time.sleep(0.1)
        held = [host.stat("x", "partitions_held") for host in hosts]
    p99 = percentile(every, 99)
    bench.figure("26", f"a new rate until {COUNT} hosts grant at it, p99", "<= 100 ms",
                 f"{p99 * 1e3:.0f} ms", p99 <= 0.1, (min(every) * 1e3, max(every) * 1e3), "",
                 f"{len(every)} writes, p50 {statistics.median(every) * 1e3:.0f} ms; from before "
                 "the write until stat of each mount has the rate and a share of it, looked at in "
                 f"turn; the write itself p50 {statistics.median(returned) * 1e3:.0f} ms; all hold "
                 f"a partition after {spread:.1f} s, in the end {sum(held):.0f} are held")


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


def row_27(bench):
    """Each limiter is used on one host; its partitions are few, so that a host can hold all."""
    total, seconds = bench.settings.fleet_limiters, bench.settings.steady_s
    names = [f"x{n}" for n in range(total)]
    counted = ("taken_clean", "taken_unclean", "given_back")
    with fleet(bench, COUNT) as hosts:
        for n, name in enumerate(names):
            hosts[n % COUNT].make(name, rate="1/s", count=2)
        know(hosts, names[-1], "1/s")
        stop = threading.Event()
        threads = consume(hosts, names, stop)
        time.sleep(bench.settings.settle_s)
        ensemble = bench.ensemble
        begun, writes = time.monotonic(), ensemble.writes()
        before = [host.counters(*counted) for host in hosts]
        renewed = sum(host.counters("renewals") for host in hosts)
        tokens = sum(granted(hosts[n % COUNT:n % COUNT + 1], name) for n, name in enumerate(names))
        time.sleep(seconds)
        moved = sum(host.counters(*counted) for host in hosts) - sum(before)
        renewed = sum(host.counters("renewals") for host in hosts) - renewed
        writes, passed = ensemble.writes() - writes, time.monotonic() - begun
        tokens = sum(granted(hosts[n % COUNT:n % COUNT + 1], name)
                     for n, name in enumerate(names)) - tokens
        leases = sum(int(host.status()["leases"]) for host in hosts)
        sessions = sum(int(host.status()["sessions"]) for host in hosts)
        stop.set()
    for thread in threads:
        thread.join(1)
    allowed = COUNT * passed / R_S + moved
    bench.figure("27", f"ZooKeeper writes a second, {COUNT} hosts, {total} limiters",
                 f"<= {allowed / passed:.2f}", f"{writes / passed:.2f}", writes <= allowed, None,
                 f"1/R a host: {COUNT / R_S:.1f}",
                 f"by the servers' zxid over {passed:.0f} s: {writes} writes, {renewed} of them "
                 f"renewals, {moved} leases taken or given back; {tokens:.0f} tokens were granted, "
                 f"{leases} leases are held, {sessions} sessions")


def full_again_s(watch, quorum, rate):
    """Seconds after @quorum until the first second in which the full rate was granted."""
    for begin, share in watch.windows(1):
        if begin >= quorum and share >= FULL * rate:
            return begin - quorum
    return math.inf


def restart(bench, hosts, watch, down_s):
    """Ends all servers and starts them again @down_s later; when there was a quorum."""
    ensemble, quorum = bench.ensemble, []
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


def row_30(bench):
    for down_s, what in ((0, "at once"), (1.5 * D_S, f"after {1.5 * D_S:.0f} s")):
        back, excess, least, after = [], [], [], []
        for _ in range(bench.settings.restarts):
            with fleet(bench, 3) as hosts, contextlib.ExitStack() as stack:
                hosts[0].make("x", rate=f"{RATE}/s", count=COUNT, lease="2s")
                know(hosts, "x", f"{RATE}/s")
                stack.enter_context(greedy(bench, hosts, "x/token", READERS))
                until(lambda: all(host.stat("x", "partitions_held") > 3 for host in hosts), 30)
                watch = Watch(hosts, "x")
                watch.run(2)
                quorum = restart(bench, hosts, watch, down_s)
                watch.run(bench.settings.restarted_s)
                back.append(full_again_s(watch, quorum, RATE))
                excess.append(watch.excess(RATE))
                least.append(min(share for _, share in watch.windows(1)))
                after.append(min((share for begin, share in watch.windows(1)
                                  if begin >= quorum + back[-1]), default=0))
                sessions = [int(host.status()["sessions"]) for host in hosts]
        bench.figure("30", f"ensemble restarted {what}: full rate after", "<= 10 s",
                     f"{statistics.median(back):.1f} s", max(back) <= 10, (min(back), max(back)),
                     "", f"after quorum, {RATE}/s on 3 hosts; slowest second {min(least):.0f}/s, "
                     f"once it is full again {min(after):.0f}/s; "
                     f"sessions of the last time {sessions}")
        bench.figure("30", f"ensemble restarted {what}: overlaps", "0",
                     str(sum(one > BURST for one in excess)),
                     max(excess) <= BURST, None, "",
                     f"times that all hosts together grant more than rate x length + {BURST} in a "
                     f"window; the fullest has {max(excess):.1f} tokens more than rate x length")
