"""Rows about leases: the costs of holding, taking, sharing and giving them back."""
import contextlib
import statistics
import threading
import time

from bench import DEEP, make_limiters, median_of
from fleet import D_S, STEP_S, fleet, granting_s, greedy, know, shared, until
from daemons import PLACEMENTS
from servers import Taker

COUNT = 20  # partitions, where they are numbered
CUTS = (({}, "default settings"), ({"count": COUNT}, f"{COUNT} partitions"))
READERS = 8
MANY_READERS = 256  # that they want all is plain from their number
FLEET_RATE = 1000
KNOWN_S = 0.3  # after which a fleet is quiet again
HOSTS_KNOWN_S = 2  # after which hosts know of one another
LEAVING_SPAN_S = 0.2


def row_20(bench):
    """The same three limiters, by a host that holds all of each, and by a local source."""
    with bench.ratefs() as local, fleet(bench, 1) as (host,):
        for mount in (local, host):
            make_limiters(mount)
        for name in ("x", "eight", DEEP):
            with open(host.file(f"{name}/token")) as file:
                file.read()
            if until(lambda: host.stat(name, "partitions_held") > 0, 10) > 10:
                raise ValueError(f"the host holds nothing of {name}")
        for placement in PLACEMENTS:
            for mount in (local, host):
                mount.pin(placement)
            measures = {(which, name): lambda mount=mount, name=name: bench.client(
                "held", mount.file(f"{name}/token"), bench.settings.reads // 2,
                placement=placement)
                        for which, mount in (("local", local), ("fleet", host))
                        for name in ("x", "eight", DEEP)}
            results = bench.rounds(measures, placement, starts=bench.settings.lease_goes)
            for what, name in (("a rate", "x"), ("8 limits", "eight"), ("4 levels", DEEP)):
                for key in ("p50_us", "p99_us"):
                    mine, floor = results["fleet", name], results["local", name]
                    bench.ratio(20, f"held read with leases, {what}, {key[:3]}, {placement}",
                                mine, floor, key, "<=", 1.05,
                                f"local {median_of(floor, key):.4g} us")
        held = {name: host.stat(name, "partitions_held") for name in ("x", "eight", DEEP)}
    bench.figures[0]["note"] = f"partitions held: {', '.join(f'{n:.0f}' for n in held.values())}"


def first_token_s(host, name):
    begun = time.monotonic()
    with open(host.file(f"{name}/token")) as file:
        file.read()
    return time.monotonic() - begun


def first_tokens(bench, stack, cut, count, host):
    """Rounds of {first token, transaction of a client of its own}, each a median, in ms."""
    takers = [stack.enter_context(Taker(address, f"/taker{count}-{n}-{id(cut)}"))
              for n, address in enumerate(bench.ensemble.addresses)]
    rounds = []
    for n in range(bench.settings.rounds):
        goes = []
        for go in range(bench.settings.first_tokens):
            name = f"x{n}-{go}"
            host.make(name, rate="1M/s", burst=1, **cut)
            multi = statistics.median(taker.take() for taker in takers)
            time.sleep(KNOWN_S)
            goes.append({"first": first_token_s(host, name) * 1e3, "multi": multi * 1e3})
        rounds.append({key: median_of(goes, key) for key in goes[0]})
    return rounds


def row_21(bench):
    """All of a limiter that was just made is free; a host alone takes all of it."""
    for cut, cut_text in CUTS:
        for count, what in ((2, "beside an idle host"), (1, "alone")):
            with fleet(bench, count) as (host, *_), contextlib.ExitStack() as stack:
                time.sleep(HOSTS_KNOWN_S)
                rounds = first_tokens(bench, stack, cut, count, host)
            mine, floor = ([{"ms": one[key]} for one in rounds] for key in ("first", "multi"))
            bench.ratio(21, f"first token, burst 1, {cut_text}, {what}", mine, floor, "ms", "<=",
                        2.5, f"transaction {median_of(rounds, 'multi'):.3g} ms",
                        f"first token {median_of(rounds, 'first'):.3g} ms; a transaction is "
                        "check, set, delete, create by a client of its own, one on each server")


def take(host, file):
    with contextlib.suppress(OSError), open(host.file(file)) as opened:
        opened.read()


def row_22(bench):
    for cut, cut_text in CUTS:
        with fleet(bench, 2) as (host, _):
            time.sleep(HOSTS_KNOWN_S)
            taken = []
            for n in range(bench.settings.rounds):
                host.make(f"x{n}", rate=f"{FLEET_RATE}/s", **cut)
                time.sleep(KNOWN_S)
                thread = threading.Thread(target=take, args=(host, f"x{n}/take/{FLEET_RATE}"),
                                          daemon=True)
                begun = time.monotonic()
                thread.start()
                taken.append(until(lambda: host.stat(f"x{n}", "effective_rate") == FLEET_RATE, 20,
                                   begun))
                thread.join(20)
        median = statistics.median(taken)
        bench.figure(22, f"all of a limiter taken, {cut_text}", "<= 50 ms",
                     f"{median * 1e3:.0f} ms", median <= 0.05,
                     (min(taken) * 1e3, max(taken) * 1e3), "",
                     f"from a take of {FLEET_RATE} at {FLEET_RATE}/s until the host holds all; "
                     "beside an idle host", median)


def leave(bench, cut, readers):
    """Seconds from SIGTERM of a host until another, which shares, grants at the whole rate."""
    with fleet(bench, 2) as hosts, contextlib.ExitStack() as stack:
        first, second = hosts
        first.make("x", rate=f"{FLEET_RATE}/s", **cut)
        know(hosts, "x", f"{FLEET_RATE}/s")
        stack.enter_context(greedy(bench, hosts, "x/token", readers))
        shared(hosts, "x", FLEET_RATE)
        had = second.stat("x", "effective_rate")
        begun = time.monotonic()
        first.process.terminate()
        return granting_s([second], "x", FLEET_RATE, begun, LEAVING_SPAN_S, 2 * D_S), had


def row_24(bench):
    cases = [(cut, text, readers) for cut, text in CUTS for readers in (MANY_READERS, READERS)]
    for cut, cut_text, readers in cases[:1] if bench.settings.quick else cases:
        left, had = zip(*(leave(bench, cut, readers) for _ in range(bench.settings.departures)))
        median = statistics.median(left)
        bench.figure(24, f"clean leave, {cut_text}, {readers} readers", "<= 100 ms",
                     f"{median * 1e3:.0f} ms", median <= 0.1,
                     (min(left) * 1e3, max(left) * 1e3), "",
                     f"from SIGTERM until the other grants {FLEET_RATE}/s, in {LEAVING_SPAN_S} s "
                     f"and the next {LEAVING_SPAN_S} s; before, it had "
                     f"{statistics.median(had):.0f}/s; looked at every "
                     f"{STEP_S * 1e3:.0f} ms; {len(left)} times", median)
