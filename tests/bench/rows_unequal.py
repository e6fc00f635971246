"""Rows 33 to 35: hosts that want unequal parts of a limiter, with readers at random, simulated."""
from typing import NamedTuple

from rows_simulated import Run, start_of

NEWCOMER_RATES = {"5k": 5e3, "50k": 5e4, "400k": 4e5, "1M": 1e6, "35M": 35e6, "1G": 1e9}
TAKES_PER_S = 100  # of a greedy host: each of so many tokens
CAME_S, RENEWALS_S, SETTLED_S, END_S = 20, 4.5, 5, 40  # three renewals; as at default settings
GREEDY_READERS = 16
CHANGE_MS = 5  # from one change of a limiter to the next
LEAST_PART = 0.97  # of the max-min part
BROKEN = "an invariant broke"


class Mix(NamedTuple):
    """Hosts that read the same limiters, each at @want a second, beside a greedy one or none."""

    hosts: int
    rate: float
    want: float
    has_greedy: bool
    limiters: int = 1
    measured_s: int = 120


class Cost(NamedTuple):
    """Percent used of a mix, mean wait of its light readers, and requests of a host and second."""

    used: float
    wait_s: float
    writes: float
    lists: float


def texts(run):
    """{name: {counter: number}} of each `stat` that was read as that name."""
    read = {}
    for words in run.words:
        if "text" in words[1:3] and words[-1] != "max":
            read.setdefault(words[-3], {})[words[-2]] = float(words[-1])
    return read


def newcomers(bench, hosts, rate):
    """
    (how many of the newcomers beside a greedy host have a token in time, the least part of one).
    Both are 0 if an invariant broke.
    """
    size = round(rate / TAKES_PER_S)
    others = range(2, hosts + 1)
    trace = [*start_of(hosts, f"{rate:.0f}"), f"6s h1: workers x 1 take {size} until {END_S}s"]
    trace += [f"{CAME_S}s h{n}: workers x 1 take {max(1, size // hosts)} until {END_S}s"
              for n in others]
    times = {"first": CAME_S + RENEWALS_S, "settled": CAME_S + SETTLED_S, "end": END_S - 1}
    trace += [f"{round(at * 1000)}ms h{n}: read x/stat as {name}{n}"
              for name, at in times.items() for n in others]
    run = Run(bench, [*trace, f"{END_S}s end"])
    if run.broken:
        return 0, 0.0
    read = texts(run)
    served = sum(read[f"first{n}"]["granted"] > 0 for n in others)
    fair = rate / hosts * (times["end"] - times["settled"])
    parts = [(read[f"end{n}"]["granted"] - read[f"settled{n}"]["granted"]) / fair for n in others]
    return served, min(parts)


def row_33(bench):
    rates = ["5k", "35M"] if bench.settings.quick else list(NEWCOMER_RATES)
    for hosts in (2, 6) if bench.settings.quick else (2, 6, 30):
        results = {rate: newcomers(bench, hosts, NEWCOMER_RATES[rate]) for rate in rates}
        served = sum(one[0] for one in results.values())
        parts = {rate: one[1] for rate, one in results.items()}
        worst = min(parts, key=parts.get)
        due = (hosts - 1) * len(rates)
        what = f"{hosts - 1} beside a greedy one, {rates[0]} to {rates[-1]}/s"
        bench.figure(33, f"{what}: a token after 3 renewals", "all", f"{served} of {due}",
                     served == due, None, "", "", served)
        bench.figure(33, f"{what}: max-min part after {SETTLED_S} s", f">= {LEAST_PART:.0%}",
                     f"{parts[worst]:.1%}", parts[worst] >= LEAST_PART,
                     (100 * parts[worst], 100 * max(parts.values())), "",
                     f"the least of all hosts, at {worst}/s", parts[worst])


def cost_of(bench, mix, kind):
    """The cost of @mix with readers that are of @kind; None: an invariant broke."""
    begin_s = 10 + mix.limiters // 50
    from_s, end_s = begin_s + 30, begin_s + 30 + mix.measured_s
    light = range(2 if mix.has_greedy else 1, mix.hosts + 1)
    names = [f"x{n}" for n in range(mix.limiters)]
    changes = [change for name in names for change in (f"mkdir {name}",
                                                       f"write {name}/rate {mix.rate:g}/s")]
    trace = [f"fleet {mix.hosts}"]
    trace += [f"{1000 + CHANGE_MS * n}ms h1: {change}" for n, change in enumerate(changes)]
    if mix.has_greedy:
        trace += [f"6s h1: workers {name} {GREEDY_READERS} until {end_s + 1}s" for name in names]
    trace += [f"{begin_s}s h{n}: load {name} {mix.want:g}/s {kind} until {end_s + 1}s"
              for n in light for name in names]
    reads = {at: [f"{at}s h{n}: read {name}/stat as {name}.{n}.{at}"
                  for n in light for name in names] for at in (from_s, end_s)}
    before = Run(bench, [*trace, f"{from_s}s end"])
    after = Run(bench, [*trace, *reads[from_s], *reads[end_s], f"{end_s}s end"])
    if before.broken or after.broken:
        return None
    read = texts(after)
    served, delayed = (sum(read[f"{name}.{n}.{end_s}"][key] - read[f"{name}.{n}.{from_s}"][key]
                           for n in light for name in names)
                       for key in ("served", "delayed_seconds"))
    granted = sum(after.granted(name) - before.granted(name) for name in names)
    writes, _, lists = ((end - begin) / mix.measured_s / mix.hosts
                        for begin, end in zip(before.asked(), after.asked()))
    used = 100 * granted / (mix.measured_s * mix.rate * mix.limiters)
    return Cost(used, delayed / served, writes, lists)


def kinds(bench):
    return ("poisson",) if bench.settings.quick else ("", "poisson")


def row_34(bench):
    measured_s = 30 if bench.settings.quick else 120
    for mix, limit_s in ((Mix(6, 500, 2.5, True, measured_s=measured_s), 0.12),
                         (Mix(30, 500, 1, True, measured_s=measured_s), 0.5)):
        for kind in kinds(bench):
            cost = cost_of(bench, mix, kind)
            what = (f"{mix.hosts - 1} of {mix.want:g}/s beside a greedy one of {mix.rate:g}/s, "
                    f"{'at random' if kind else 'steady'}")
            bench.figure(34, f"{what}: mean wait", f"<= {limit_s} s",
                         f"{cost.wait_s:.3f} s" if cost else BROKEN,
                         bool(cost and cost.wait_s <= limit_s), value=cost and cost.wait_s)
            bench.figure(34, f"{what}: used", ">= 97 %", f"{cost.used:.1f} %" if cost else BROKEN,
                         bool(cost and cost.used >= 97), value=cost and cost.used)


def row_35(bench):
    quick = bench.settings.quick
    span = {"measured_s": 30 if quick else 60}
    mixes = {
        "2 hosts, 100 limiters at 1 %": (Mix(2, 100, 0.5, False, 100, **span), (1, 1, 0.005)),
        "5 beside a greedy one": (Mix(6, 500, 2.5, True, **span), (1, 1, None)),
        "29 beside a greedy one": (Mix(30, 500, 1, True, **span), (1, 1, None)),
        "49 beside a greedy one": (Mix(50, 500, 1, True, **span), (1, 1, None)),
        "20 hosts at 95 %": (Mix(20, 500, 23.75, False, **span), (2, 1, 0.1)),
    }
    if not quick:
        mixes["2 hosts, 1,000 limiters at 1 %"] = (Mix(2, 100, 0.5, False, 1000, **span),
                                                   (1, 1, 0.005))
    for name, (mix, (writes, lists, wait_s)) in mixes.items():
        for kind in kinds(bench):
            cost = cost_of(bench, mix, kind)
            met = cost and cost.writes <= writes and cost.lists <= lists and (
                wait_s is None or cost.wait_s <= wait_s)
            bench.figure(35, f"{name}, {'at random' if kind else 'steady'}: writes, lists, wait",
                         f"<= {writes}, {lists}, {f'{wait_s * 1000:g} ms' if wait_s else '-'}",
                         f"{cost.writes:.2f}, {cost.lists:.2f}, {cost.wait_s * 1000:.3g} ms"
                         if cost else BROKEN, bool(met), note=
                         "writes and lists of a host and second; row 34 has a target of the wait "
                         "beside a greedy host")
