"""Rows about fleets that are larger, or last longer, than a machine can hold: simulated ones."""
import os
import random
import statistics
import subprocess

from daemons import Unmeasured

LIMIT_S = 240
FAULT_EVERY_S = 10
FAULT_MAX_S = 8  # how long one lasts
FAULT_KINDS = ("kill", "pause", "cut", "cut answers", "elect")
READERS = 3  # of each greedy host of rows 28 and 29
FAIR = 2  # tokens a second, of each host that uses a limiter of row 28
LEAVES, WITHIN = 4096, 0.01  # of a limiter; of a fair share, and a leaf
TILES_MOST, TILES_MEAN = 64, 5
LEASE_S = 15  # the default


class Run:
    """The outcome of a run of the simulator: exit status, and the lines of text and summary."""

    def __init__(self, bench, trace):
        program = os.path.join(bench.build, "tests", "sim", "simulate")
        if not os.path.exists(program):
            raise Unmeasured("no simulator in the build")
        try:
            done = subprocess.run([program, "--terse"], input="\n".join(trace) + "\n", text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=LIMIT_S)
        except subprocess.TimeoutExpired as error:
            raise Unmeasured(f"the simulator takes more than {LIMIT_S} s") from error
        lines = done.stdout.splitlines()
        if done.returncode not in (0, 1):
            raise Unmeasured(f"the simulator: {' '.join(lines[-2:])[-200:]}")
        self.broken = done.returncode
        self.words = [line.split() for line in lines
                      if line.startswith("summary") or " text " in line]

    def summary(self, *begin):
        """The words after `summary` and @begin in the line that begins so."""
        for words in self.words:
            if words[1:1 + len(begin)] == list(begin) and words[0] == "summary":
                return words[1 + len(begin):]
        raise Unmeasured(f"the simulator prints no summary of {' '.join(begin)}")

    def granted(self, *what):
        return int(self.summary(*what, "granted")[0])

    def asked(self):
        """(writes, reads, lists) of the coordinator."""
        words = self.summary("coordinator")
        return tuple(int(words[words.index(name) + 1])
                     for name in ("transactions", "gets", "lists"))


def start_of(hosts, rate):
    return [f"fleet {hosts}", "1s h1: mkdir x", f"4s h1: write x/rate {rate}/s"]


def greedy(host, begin_s, end_s, limiter="x"):
    return f"{begin_s}s h{host}: workers {limiter} {READERS} work 1ms until {end_s}s"


def simulated_mix(bench, hosts, wanted, rate, readers):
    """One greedy host of @hosts at default settings, as share() of row 23 has it, and 60 s."""
    begin_s, lasts_s = 10, 60
    late_s, end_s = begin_s + 2 * LEASE_S, begin_s + lasts_s
    trace = [f"fleet {hosts}", "1s h1: mkdir x", f"4s h1: write x/rate {rate}/s",
             f"6s h1: workers x {readers} until {end_s}s"]
    trace += [f"{begin_s}s h{n + 1}: load x {want:.3f}/s until {end_s}s"
              for n, want in enumerate(wanted) if n]
    runs = [Run(bench, [*trace, f"{at}s end"]) for at in (begin_s, late_s, end_s)]
    total = [run.granted("x") for run in runs]
    each = [[run.granted("x", f"h{n + 1}") if any(
        words[:3] == ["summary", "x", f"h{n + 1}"] for words in run.words) else 0
             for n in range(hosts)] for run in runs]
    late = [(end - middle) / (end_s - late_s) for middle, end in zip(each[1], each[2])]
    percent = 100 * (total[2] - total[0]) / (rate * lasts_s)
    slowest = min((total[1] - total[0]) / (late_s - begin_s), (total[2] - total[1]) /
                  (end_s - late_s))
    return (percent, late, None, slowest), max(run.broken for run in runs)


class ManyHosts:
    """Row 28: each host uses @used of @limiters; half of the hosts come later."""

    calm_s, change_s, end_s = 20, 60, 60 + 2 * LEASE_S

    def __init__(self, bench, hosts, limiters, used):
        self.hosts, self.limiters, self.used = hosts, limiters, used
        users = [[(host * used + n) % limiters for n in range(used)] for host in range(hosts)]
        users_each = hosts * used // limiters
        self.fair = LEAVES / users_each
        setup = []
        for n in range(limiters):
            at_ms, maker = 1000 + 8000 * n // limiters, f"h{n % hosts + 1}"
            setup += [(at_ms, f"{at_ms}ms {maker}: mkdir x{n}"),
                      (at_ms + 9000, f"{at_ms + 9000}ms {maker}: write x{n}/rate "
                       f"{FAIR * users_each}/s")]
        setup.sort(key=lambda one: one[0])
        trace = [f"fleet {hosts}", *(command for _, command in setup)]
        begun = Run(bench, [*trace, f"{self.calm_s}s end"])
        for begin_s, some in ((self.calm_s, 0), (self.change_s, 1)):
            trace += [greedy(host + 1, begin_s, self.end_s + 1, f"x{n}")
                      for host in range(hosts) for n in users[host] if host % 2 == some]
        reads = [f"{self.end_s}s h{host + 1}: read x{n}/partitions/held as n{host}-{n}"
                 for host in range(hosts) for n in users[host]]
        ended = Run(bench, [*trace, *reads, f"{self.end_s + 1}s end"])
        self.broken = max(begun.broken, ended.broken)
        self.each = [(after - before) / hosts
                     for before, after in zip(begun.asked(), ended.asked())]
        pieces = [[word.split("-") for word in words[4:] if "-" in word] for words in ended.words
                  if "text" in words[:4]]
        self.held = [sum(int(last) - int(first) + 1 for first, last in some) for some in pieces]
        self.tiles = [len(some) for some in pieces]


def compare_sizes(bench, small, large, instead):
    what = f"{large.hosts} hosts, {large.used} of {large.limiters} limiters used on each"
    for name, mine, floor in zip(("writes", "reads", "lists"), large.each, small.each):
        ratio = mine / floor if floor else float("inf") if mine else 1.0
        bench.figure(28, f"{what}: {name} a host", "<= 1.10 x", f"{ratio:.2f} x", ratio <= 1.1,
                     None, f"{small.hosts} hosts: {floor:.0f}",
                     f"{mine:.0f} a host in {large.end_s - large.calm_s} s, in which first half of "
                     f"the hosts are greedy, and then all; {instead}", ratio)
    off = sum(abs(held - large.fair) > 1 + WITHIN * large.fair for held in large.held)
    users = large.hosts * large.used
    bench.figure(28, f"{what}: shares off max-min after 2 leases", "0",
                 f"{off} of {len(large.held)}", not off and len(large.held) == users,
                 (min(large.held, default=0), max(large.held, default=0)),
                 f"max-min {large.fair:.1f}",
                 f"by more than {WITHIN:.0%} and a leaf of {LEAVES}, after demand changed", off)
    most, mean = max(large.tiles, default=0), statistics.mean(large.tiles or [0])
    bench.figure(28, f"{what}: tiles a host and limiter", f"<= {TILES_MOST}, mean {TILES_MEAN}",
                 f"{most}, mean {mean:.1f}",
                 0 < mean <= TILES_MEAN and most <= TILES_MOST, (min(large.tiles, default=0), most),
                 "", "", mean)
    broken = large.broken + small.broken
    bench.figure(28, f"{what}: runs in which an invariant broke", "0", str(broken), not broken,
                 None, "", "overlap among them", broken)


def row_28(bench):
    for sizes in bench.settings.simulated_fleets:
        compare_sizes(bench, *(ManyHosts(bench, *size) for size in sizes),
                      "instead of 10,000 limiters, 100 used on each, "
                      "which take the simulator too long")


def fault(chance, at_s, hosts, end_s):
    """The commands of one, by the time at which they happen."""
    host, lasts_s = f"h{chance.randint(1, hosts)}", chance.randint(1, FAULT_MAX_S)
    kind, until_s = chance.choice(FAULT_KINDS), at_s + lasts_s
    if kind == "kill":
        return [(at_s, f"{at_s}s kill {host}"), (until_s, f"{until_s}s start {host}"),
                (until_s + 1, greedy(host[1:], until_s + 1, end_s))]
    if kind == "pause":
        return [(at_s, f"{at_s}s pause {host}"), (until_s, f"{until_s}s resume {host}")]
    if kind == "elect":
        return [(at_s, f"{at_s}s elect {lasts_s}s")]
    return [(at_s, f"{at_s}s cut {host}{kind[len('cut'):]}"), (until_s, f"{until_s}s heal {host}")]


def row_29(bench):
    hosts, end_s, begin_s, first_s = 20, bench.settings.simulated_s, 10, 40
    rate = 10 * hosts
    lost, broken = [], 0
    for seed in range(bench.settings.seeds):
        chance = random.Random(seed)
        trace = start_of(hosts, rate)
        trace += [greedy(host, begin_s, end_s) for host in range(1, hosts + 1)]
        faults = []
        for at_s in range(first_s, end_s - 2 * FAULT_EVERY_S, FAULT_EVERY_S):
            faults += fault(chance, at_s, hosts, end_s)
        trace += [command for _, command in sorted(faults, key=lambda one: one[0])]
        run = Run(bench, trace + [f"{end_s}s end"])
        broken += run.broken
        lost.append(100 - 100 * run.granted("x") / (rate * (end_s - begin_s)))
    median = statistics.median(lost)
    bench.figure(29, f"capacity lost, {hosts} hosts, {end_s} s simulated", "<= 3 %",
                 f"{median:.1f} %", median <= 3 and not broken, (min(lost), max(lost)), "",
                 f"a fault every {FAULT_EVERY_S} s, of 1 to {FAULT_MAX_S} s: "
                 f"{', '.join(FAULT_KINDS)}; {len(lost)} seeds; {broken} broke an invariant, "
                 "which counts", median)
