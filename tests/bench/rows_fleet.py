"""Rows about many hosts, and about faults."""
import contextlib
import math
import os
import random
import statistics
import threading
import time

from daemons import Unmeasured, memory_bytes
from fleet import (D_S, FULL, STEP_S, Watch, burst_of, fleet, granted, granting_s, greedy, know,
                   quarantine_s, renewal_s, shared, until)
from servers import Ensemble, zk
from wire import Wire

READERS = 8
RATE = 1000
FALL_RATE = 200  # which a busy machine can grant, too
SPAN_S = 0.5  # over which a rate is looked at
PAUSE_S, USERS, STEADY_RATE = 2, 2, 10  # of the readers of row 27, hosts, the rate of a limiter
RESTARTED_HOSTS = 3
LOST_S = 60  # how long the capacity of a host that dies is waited for


def percentile(sample, percent):
    ordered = sorted(sample)
    return ordered[min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100) - 1)]


class Fall:
    """
    Hosts that share a limiter, all of them greedy, of which the first ones are lost and come back
    again and again.
    """

    def __init__(self, bench, stack, members, lost, options, cut):
        self.bench, self.stack, self.lost = bench, stack, lost
        self.shares = not cut
        self.hosts = stack.enter_context(fleet(bench, members, options))
        self.hosts[0].make("x", rate=f"{FALL_RATE}/s", **cut)
        know(self.hosts, "x", f"{FALL_RATE}/s")
        # The hosts that are to be lost hold something before the others come.
        for some in (self.hosts[:lost], self.hosts[lost:]):
            stack.enter_context(greedy(bench, some, "x/token", READERS))
            until(lambda: all(host.stat("x", "effective_rate") > 0 for host in self.hosts[:lost]),
                  20)

    def lose(self):
        """Seconds until the others grant everything."""
        time.sleep(self.bench.settings.waited_s)
        begun = time.monotonic()
        for host in self.hosts[:self.lost]:
            host.kill()
        return granting_s(self.hosts[self.lost:], "x", FALL_RATE, begun, SPAN_S, LOST_S)

    def lose_again_and_again(self, times):
        seconds = []
        for left in reversed(range(times)):
            if self.shares:
                shared(self.hosts, "x", FALL_RATE)
            seconds.append(self.lose())
            for n in range(self.lost if left else 0):
                self.hosts[n] = self.stack.enter_context(self.hosts[n].again(self.bench))
                know(self.hosts[n:n + 1], "x", f"{FALL_RATE}/s")
            if left:
                self.stack.enter_context(greedy(self.bench, self.hosts[:self.lost], "x/token",
                                                READERS))
        return seconds


def falls(bench, members, lost, options, cut, times):
    with contextlib.ExitStack() as stack:
        return Fall(bench, stack, members, lost, options, cut).lose_again_and_again(times)


def row_25(bench):
    quick, often = bench.settings.quick, bench.settings.deaths
    seldom = bench.settings.departures
    constants = (("right=3s", 3, 5.0, ("right=3s",)),
                 ("defaults", D_S, math.ceil(10 * (quarantine_s() + 2 * renewal_s() + 1)) / 10,
                  ()))
    # Hosts, those that are lost, how often, the limiter's settings.
    cases = (("one of two dies", 2, 1, often, {}),
             ("one of three dies", 3, 1, seldom, {}),
             ("two of four die at once", 4, 2, seldom, {}),
             ("one dies that holds all there is", 2, 1, seldom, {"count": 1, "lease": "1h"}))
    for name, right_s, limit_s, options in constants[:1] if quick else constants:
        for what, count, lost, times, cut in cases[:1] if quick else cases:
            # Where another host holds all there is, one that comes back has nothing to lose.
            goes = [1] * times if cut else [times]
            seconds = [one for go in goes for one in falls(bench, count, lost, options, cut, go)]
            late = sum(one > limit_s for one in seconds)
            bench.figure(25, f"{what}, {name}", f"<= {limit_s:.1f} s",
                         f"{statistics.median(seconds):.1f} s", not late,
                         (min(seconds), max(seconds)), "prototype 9.9 s (T 4, D 5)",
                         f"until all capacity is granted elsewhere; {times - late} of {times} "
                         f"times within the limit; Q {quarantine_s(right_s):.2f} s, R "
                         f"{renewal_s(right_s):g} s, {READERS} readers on each host",
                         max(seconds))


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


def consume(paths, stop):
    """A reader of each of @paths, which takes a token every PAUSE_S, until the hosts end."""
    def reader(path):
        stop.wait(random.uniform(0, PAUSE_S))
        with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
            while not stop.wait(PAUSE_S):
                os.pread(file.fileno(), 16, 0)

    threads = [threading.Thread(target=reader, daemon=True, args=(path,)) for path in paths]
    for thread in threads:
        thread.start()
    return threads


MOVES = ("taken_clean", "taken_unclean", "given_back")


def asked(hosts, wire, names):
    """(writes, reads, lists, bytes, leases taken or given back, tokens, instant), so far."""
    return (*wire.asked(), wire.bytes, sum(host.counters(*MOVES) for host in hosts),
            sum(granted(hosts, name) for name in names), time.monotonic())


class Steady:
    """So many hosts and limiters, each used a little on USERS hosts, while nothing changes."""

    def __init__(self, bench, count, total):
        if bench.ensemble is None:
            raise Unmeasured("there are no ZooKeeper servers")
        self.what = f"{count} hosts, {total} limiters, each used on {USERS}"
        names = [f"x{n}" for n in range(total)]
        looked_at = names[::max(1, total // 100)]
        stop = threading.Event()
        nodes, watches = self.kept(bench)
        with contextlib.closing(Wire(bench.ensemble.addresses)) as wire, \
                fleet(bench, count, names=wire.names) as hosts:
            for n, name in enumerate(names):
                hosts[n % count].make(name, rate=f"{STEADY_RATE}/s")
            know(hosts, names[-1], f"{STEADY_RATE}/s")
            threads = consume([hosts[(n + user * 7) % count].file(f"{name}/token")
                               for n, name in enumerate(names) for user in range(USERS)], stop)
            time.sleep(bench.settings.settle_s)
            before = asked(hosts, wire, looked_at)
            time.sleep(bench.settings.steady_s)
            (writes, reads, lists, size, self.moved, tokens,
             seconds) = (after - begin for begin, after in
                         zip(before, asked(hosts, wire, looked_at)))
            self.nodes, self.watches = (after - begin for begin, after in
                                        zip((nodes, watches), self.kept(bench)))
            self.leases = sum(int(host.status()["leases"]) for host in hosts)
            self.memory = statistics.mean(memory_bytes(host.pids()) for host in hosts)
            stop.set()
        for thread in threads:
            thread.join(2 * PAUSE_S)
        self.seconds = seconds
        self.each = [number / seconds / count for number in (writes, reads, lists, size)]
        self.share = tokens / (USERS * len(looked_at) * seconds / PAUSE_S)

    @staticmethod
    def kept(bench):
        """(nodes, watches) on the servers; each server has all nodes."""
        figures = [zk.figures(address) for address in bench.ensemble.addresses]
        return (int(figures[0]["zk_znode_count"]),
                sum(int(one["zk_watch_count"]) for one in figures))

    def report(self, bench, row):
        limit = 1 / renewal_s()
        note = (f"counted on the wire for {self.seconds:.0f} s, {self.moved} leases taken or given "
                f"back, {self.leases} leases held")
        for kind, number, allowed in zip(("writes", "reads", "lists"), self.each,
                                         (limit, limit, 0)):
            bench.figure(row, f"{self.what}: {kind} a second and host", f"<= {allowed:.2f}",
                         f"{number:.2f}", number <= allowed, None, f"1/R = {limit:.2f}", note,
                         number)
        bench.figure(row, f"{self.what}: granted of what is asked for", ">= 90 %",
                     f"{100 * self.share:.0f} %", self.share >= 0.9, None, "", note, self.share)
        for what, value, unit in (("bytes a second and host", self.each[3], ""),
                                  ("nodes", self.nodes, ""), ("watches", self.watches, ""),
                                  ("memory of a host", self.memory / 1e6, " MB")):
            bench.figure(row, f"{self.what}: {what}", "-", f"{value:.4g}{unit}", None, None, "",
                         note, value)


def row_27(bench):
    """At default settings."""
    Steady(bench, bench.settings.hosts, bench.settings.fleet_limiters).report(bench, 27)


def row_27b(bench):
    """The table of sizes in FLEETS.md."""
    for count, total in bench.settings.sizes:
        Steady(bench, count, total).report(bench, "27b")


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
    with fleet(bench, RESTARTED_HOSTS, ensemble=ensemble) as hosts, contextlib.ExitStack() as stack:
        hosts[0].make("x", rate=f"{RATE}/s")
        know(hosts, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, hosts, "x/token", READERS))
        shared(hosts, "x", RATE)
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
            burst = burst_of(RESTARTED_HOSTS)
            overlaps = sum(one > burst for one in excess)
            bench.figure(30, f"ensemble restarted {what}: full rate after", "<= 10 s",
                         f"{statistics.median(back):.1f} s", max(back) <= 10,
                         (min(back), max(back)), "",
                         f"after quorum, {RATE}/s on {RESTARTED_HOSTS} hosts; slowest second "
                         f"{min(slowest):.0f}/s; {len(back)} times", max(back))
            bench.figure(30, f"ensemble restarted {what}: overlaps", "0", str(overlaps),
                         not overlaps, None, "",
                         "times that all hosts together certainly grant more than rate x length + "
                         f"{burst} in a window; the fullest has {max(excess):.1f} more than rate x "
                         "length", overlaps)
    finally:
        ensemble.remove()


def row_32(bench):
    """The next host, where the limiters of a large fleet are there already."""
    total = bench.settings.joined_limiters
    joined = []
    with fleet(bench, 1) as (host,):
        bench.client("make", host.path, 0, total, "10/s")
        for _ in range(bench.settings.departures):
            begun = time.monotonic()
            with host.again(bench) as other:
                last = until(lambda: other.stat(f"n{total - 1}", "rate") == 10, 60, begun)
                found = len(os.listdir(other.path))
                first = until(lambda: take(other, f"n{total // 2}/token"), 60, begun)
            joined.append(first if found >= total and last < math.inf else math.inf)
    bench.figure(32, f"joining a fleet of {total} limiters", "<= 5 s",
                 f"{statistics.median(joined):.1f} s", max(joined) <= 5,
                 (min(joined), max(joined)), "",
                 f"from the start of the daemon until it has all and one of them grants; "
                 f"{len(joined)} times", max(joined))


def take(host, file):
    with open(host.file(file)) as opened:
        return opened.read()
