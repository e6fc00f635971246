"""Row 23: the part of its capacity that a fleet grants, and to which hosts."""
import contextlib
import statistics
import time

from fleet import FULL, Watch, burst_of, fleet, greedy, know, reading, until
from rows_simulated import simulated_mix

RATE = 500
READERS = 16  # of a greedy host
LEAST, MOST = 0.002, 0.02  # of the rate: the part of a host that is not greedy
WITHIN = 0.01  # of the rate
SIMULATED_HOSTS = 30
TURN_S = 20  # how long a turn is waited for


def demands(hosts, greedy_hosts):
    """The demand of each of @hosts: infinity, or from LEAST to MOST of the rate."""
    others = hosts - greedy_hosts
    return ([float("inf")] * greedy_hosts +
            [RATE * (LEAST + (MOST - LEAST) * n / max(1, others - 1)) for n in range(others)])


def max_min(wanted):
    """The max-min fair shares of RATE."""
    shares, left = [0.0] * len(wanted), RATE
    for rank, index in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        shares[index] = min(wanted[index], left / (len(wanted) - rank))
        left -= shares[index]
    return shares


def share(bench, hosts, greedy_hosts):
    """
    (percent of the capacity from the start on, tokens a second of each host after two lease times,
    tokens beyond rate x window in the fullest window, tokens of the slowest second).
    """
    seconds, settled_s = bench.settings.shared_s, 2 * bench.settings.lease_s
    wanted = demands(hosts, greedy_hosts)
    with fleet(bench, hosts) as members, contextlib.ExitStack() as stack:
        members[0].make("x", rate=f"{RATE}/s")
        know(members, "x", f"{RATE}/s")
        # One holds all when the others begin.
        stack.enter_context(greedy(bench, members[:1], "x/token", READERS))
        until(lambda: members[0].stat("x", "effective_rate") == RATE, 20)
        watch = Watch(members, "x")
        watch.look()
        stack.enter_context(greedy(bench, members[1:greedy_hosts], "x/token", READERS))
        for member, rate in list(zip(members, wanted))[greedy_hosts:]:
            stack.enter_context(reading(bench, [member], "trickle", "x/token", f"{rate:.3f}"))
        watch.run(min(settled_s, seconds / 2))
        before = [member.stat("x", "granted") for member in members]
        since = watch.looks[-1][1]
        watch.run(seconds - min(settled_s, seconds / 2))
        passed = watch.looks[-1][1] - since
        late = [(member.stat("x", "granted") - tokens) / passed
                for member, tokens in zip(members, before)]
    lasted = watch.looks[-1][1] - watch.looks[0][1]
    percent = 100 * (watch.looks[-1][2] - watch.looks[0][2]) / (lasted * RATE)
    return percent, late, watch.excess(RATE), min(rate for _, rate in watch.windows(1))


def report(bench, what, hosts, greedy_hosts, result, note):
    """The figures of one mix. @result is as share() gives it."""
    percent, late, excess, slowest = result
    fair = max_min(demands(hosts, greedy_hosts))
    off = [abs(one - due) / RATE for one, due in zip(late, fair)]
    bench.figure(23, f"{what}: granted", ">= 97 %", f"{percent:.1f} %", percent >= 97, None,
                 f"{RATE}/s", f"{note}; slowest second {slowest:.0f}/s", percent)
    bench.figure(23, f"{what}: off max-min after 2 leases", f"<= {100 * WITHIN:.0f} % each",
                 f"{100 * max(off):.1f} % at most", max(off) <= WITHIN,
                 (100 * min(off), 100 * max(off)), "max-min",
                 f"{sum(one > WITHIN for one in off)} of {hosts} are off; a greedy one gets "
                 f"{statistics.mean(late[:greedy_hosts]):.0f} and not {fair[0]:.0f}/s", max(off))
    if excess is not None:
        bench.figure(23, f"{what}: fullest window", f"<= rate x w + {burst_of(hosts)}",
                     f"rate x w + {excess:.1f}", excess <= burst_of(hosts), None, "",
                     "of any length; what is certain", excess)


def turn_s(bench, hosts):
    """
    Seconds from when the last of @hosts, all but the first of which were light, turns greedy until
    it has an equal part with the first.
    """
    with fleet(bench, hosts) as members, contextlib.ExitStack() as stack:
        members[0].make("x", rate=f"{RATE}/s")
        know(members, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, members[:1], "x/token", READERS))
        for member in members[1:]:
            stack.enter_context(reading(bench, [member], "trickle", "x/token",
                                        f"{LEAST * RATE:.3f}"))
        left = RATE * (1 - LEAST * (hosts - 2))
        until(lambda: members[0].stat("x", "effective_rate") > FULL * (left - LEAST * RATE),
              TURN_S)
        time.sleep(bench.settings.lease_s)
        begun = time.monotonic()
        stack.enter_context(greedy(bench, members[-1:], "x/token", READERS))
        return until(lambda: members[-1].stat("x", "effective_rate") > FULL * left / 2, TURN_S,
                     begun)


def row_23(bench):
    seconds = bench.settings.shared_s
    report(bench, "three greedy hosts", 3, 3, share(bench, 3, 3),
           f"default settings, {seconds} s from when the second and the third begin")
    for hosts in (6,) if bench.settings.quick else (6, 11):
        report(bench, f"one greedy of {hosts} hosts", hosts, 1, share(bench, hosts, 1),
               f"default settings, {seconds} s, the others take {100 * LEAST:.1f} to "
               f"{100 * MOST:.0f} % of the rate each")
    turns = [turn_s(bench, 6) for _ in range(bench.settings.departures)]
    bench.figure(23, "a light host of 6 turns greedy: until it has its part", "<= 5 s",
                 f"{statistics.median(turns):.1f} s", max(turns) <= 5, (min(turns), max(turns)), "",
                 f"{FULL:.0%} of half of what the light ones leave; {len(turns)} times", max(turns))
    result, broken = simulated_mix(bench, SIMULATED_HOSTS, demands(SIMULATED_HOSTS, 1), RATE,
                                   READERS)
    what = f"one greedy of {SIMULATED_HOSTS} hosts, simulated"
    report(bench, what, SIMULATED_HOSTS, 1, result, "60 s of the simulator")
    bench.figure(23, f"{what}: invariants that broke", "0", str(broken), not broken, None, "",
                 "never above the rate among them", broken)
