"""Rows about fleets that are larger, or last longer, than a machine can hold: simulated ones."""
import os
import random
import subprocess

from daemons import Unmeasured

FAULT_EVERY_S = 10
FAULT_MAX_S = 8  # how long one lasts
FAULT_KINDS = ("kill", "pause", "cut", "cut answers", "elect")
PER_HOST = 2  # partitions, of row 28
READERS = 3  # of each host
CALM_S, CHANGE_S, READ_S, END_S = 10, 40, 70, 100  # of row 28: two leases from change to read


def simulate(bench, trace):
    """Its exit status is that of the invariants; gives the lines of text and summary."""
    program = os.path.join(bench.build, "tests", "sim", "simulate")
    if not os.path.exists(program):
        raise Unmeasured("no simulator in the build")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        process.stdin.write("\n".join(trace) + "\n")
        process.stdin.close()
        lines = []
        for line in process.stdout:
            last = line
            if line.startswith("summary") or " text " in line:
                lines.append(line.split())
    if process.returncode not in (0, 1) or not lines:
        raise Unmeasured(f"the simulator: {last.strip()[-200:]}")
    return process.returncode, lines


def start_of(hosts, partitions, rate):
    return [f"fleet {hosts}", "1s h1: mkdir x", f"4s h1: write x/partitions/count {partitions}",
            f"6s h1: write x/rate {rate}/s"]


def transactions(lines):
    words = next(words for words in lines if words[:2] == ["summary", "coordinator"])
    return int(words[words.index("transactions") + 1])


def greedy(host, begin_s, end_s):
    return f"{begin_s}s h{host}: workers x {READERS} work 1ms until {end_s}s"


def changing(bench, hosts):
    """Half of the hosts read, then all; (broken, transactions a host, partitions each holds)."""
    trace = start_of(hosts, PER_HOST * hosts, PER_HOST * hosts)
    trace += [greedy(host, CALM_S, CHANGE_S) for host in range(1, hosts + 1, 2)]
    trace += [greedy(host, CHANGE_S, END_S) for host in range(1, hosts + 1)]
    trace += [f"{READ_S}s h{host}: read x/partitions/held as n{host}"
              for host in range(1, hosts + 1)]
    broken, lines = simulate(bench, trace + [f"{END_S}s end"])
    held = [sum(word.isdigit() for word in words[4:]) for words in lines if words[2] == "text"]
    return broken, transactions(lines) / hosts, held


def row_28(bench):
    few, many = bench.settings.simulated_hosts
    broken, base, _ = changing(bench, few)
    broken_too, each, held = changing(bench, many)
    what = f"{many} simulated hosts, {PER_HOST * many} partitions"
    bench.figure("28", f"{what}: writes a host", "<= 1.1 x", f"{each / base:.2f} x",
                 each <= 1.1 * base, None, f"{few} hosts: {base:.1f}",
                 f"{each:.1f} transactions a host in {END_S} s; half of the hosts are greedy for "
                 f"{CHANGE_S - CALM_S} s, then all of them")
    off = sum(abs(share - PER_HOST) > 1 for share in held)
    bench.figure("28", "shares 2 leases after demand changed", "within 1",
                 f"{off} of {len(held)} off", not off and len(held) == many, (min(held), max(held)),
                 f"max-min {PER_HOST}")
    bench.figure("28", "invariants that broke, overlap among them", "0",
                 str(broken + broken_too), not broken and not broken_too)


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
    hosts, end_s = 20, bench.settings.simulated_s
    lost, broken = [], 0
    for seed in range(bench.settings.rounds):
        chance = random.Random(seed)
        trace = start_of(hosts, hosts, 10 * hosts)
        trace += [greedy(host, CALM_S, end_s) for host in range(1, hosts + 1)]
        faults = []
        for at_s in range(CHANGE_S, end_s - 2 * FAULT_EVERY_S, FAULT_EVERY_S):
            faults += fault(chance, at_s, hosts, end_s)
        trace += [command for _, command in sorted(faults, key=lambda one: one[0])]
        status, lines = simulate(bench, trace + [f"{end_s}s end"])
        broken += status
        words = next(words for words in lines if words[2:3] == ["used"])
        lost.append(100 - float(words[3]))
    median = sorted(lost)[len(lost) // 2]
    bench.figure("29", f"capacity lost, {hosts} hosts, {end_s} s simulated", "<= 5 %",
                 f"{median:.1f} %", median <= 5, (min(lost), max(lost)), "",
                 f"a fault every {FAULT_EVERY_S} s, of 1 to {FAULT_MAX_S} s: "
                 f"{', '.join(FAULT_KINDS)}; {len(lost)} seeds, {broken} broke an invariant")
