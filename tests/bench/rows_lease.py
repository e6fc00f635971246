"""Rows about leases: the costs of holding, taking, sharing and giving them back."""
import contextlib
import statistics
import threading
import time

from bench import DEEP, make_limiters, median_of
from fleet import D_S, STEP_S, fleet, granting_s, greedy, know, until
from daemons import PLACEMENTS
from servers import Taker

COUNT = 20  # partitions
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


def first_tokens(bench, stack, count, host):
    """Rounds of {first token, transaction of a client of its own}, each a median, in ms."""
    takers = [stack.enter_context(Taker(address, f"/taker{count}-{n}-{id(bench)}"))
              for n, address in enumerate(bench.ensemble.addresses)]
    rounds = []
    for n in range(bench.settings.rounds):
        goes = []
        for go in range(bench.settings.first_tokens):
            name = f"x{n}-{go}"
            host.make(name, rate="1M/s", burst=1, count=COUNT)
            multi, large = (statistics.median(taker.take(size) for taker in takers)
                            for size in (1, COUNT))
            time.sleep(KNOWN_S)
            goes.append({"first": first_token_s(host, name) * 1e3, "multi": multi * 1e3,
                         "large": large * 1e3})
        rounds.append({key: median_of(goes, key) for key in goes[0]})
    return rounds


def row_21(bench):
    """A limiter that was just made has all of its partitions free; a host alone takes them all."""
    for count, what in ((2, "beside an idle host"), (1, "alone")):
        with fleet(bench, count) as (host, *_), contextlib.ExitStack() as stack:
            time.sleep(HOSTS_KNOWN_S)
            rounds = first_tokens(bench, stack, count, host)
        mine, floor = ([{"ms": one[key]} for one in rounds] for key in ("first", "multi"))
        bench.ratio(21, f"first token, burst 1, {COUNT} free, {what}", mine, floor, "ms", "<=", 2.5,
                    f"transaction {median_of(rounds, 'multi'):.3g} ms",
                    f"first token {median_of(rounds, 'first'):.3g} ms; a transaction is check, "
                    "set, delete, create by a client of its own, one on each server; one that "
                    f"takes {COUNT} is {median_of(rounds, 'large'):.3g} ms")


def take(host, file):
    with contextlib.suppress(OSError), open(host.file(file)) as opened:
        opened.read()


def row_22(bench):
    with fleet(bench, 2) as (host, _):
        time.sleep(HOSTS_KNOWN_S)
        taken = []
        for n in range(bench.settings.rounds):
            host.make(f"x{n}", rate="1000/s", count=COUNT)
            time.sleep(KNOWN_S)
            thread = threading.Thread(target=take, args=(host, f"x{n}/take/1000"), daemon=True)
            begun = time.monotonic()
            thread.start()
            taken.append(until(lambda: host.stat(f"x{n}", "partitions_held") == COUNT, 20, begun))
            thread.join(20)
    median = statistics.median(taken)
    bench.figure(22, f"{COUNT} free partitions taken", "<= 50 ms", f"{median * 1e3:.0f} ms",
                 median <= 0.05, (min(taken) * 1e3, max(taken) * 1e3), "",
                 "from a take of 1000 at 1000/s until the host holds all; beside an idle host",
                 median)


def leave(bench, readers, wait_s):
    """Seconds from SIGTERM of a host until another, which waits, grants at the whole rate."""
    with fleet(bench, 2) as hosts, contextlib.ExitStack() as stack:
        first, second = hosts
        # So long that the one that leaves has shared hardly anything before.
        first.make("x", rate=f"{FLEET_RATE}/s", count=COUNT, lease="1h")
        know(hosts, "x", f"{FLEET_RATE}/s")
        stack.enter_context(greedy(bench, [first], "x/token", READERS))
        until(lambda: first.stat("x", "partitions_held") == COUNT, 20)
        stack.enter_context(greedy(bench, [second], "x/token", readers))
        time.sleep(wait_s)
        held = second.stat("x", "partitions_held")
        begun = time.monotonic()
        first.process.terminate()
        seconds = granting_s([second], "x", FLEET_RATE, begun, LEAVING_SPAN_S, 2 * D_S)
        return seconds, held


def row_24(bench):
    cases = (((MANY_READERS, 1),) if bench.settings.quick
             else ((MANY_READERS, 5), (MANY_READERS, 1), (READERS, 5)))
    for readers, wait_s in cases:
        left, held = zip(*(leave(bench, readers, wait_s)
                           for _ in range(bench.settings.departures)))
        median = statistics.median(left)
        bench.figure(24, f"clean leave, {readers} readers wait for {wait_s} s", "<= 100 ms",
                     f"{median * 1e3:.0f} ms", median <= 0.1,
                     (min(left) * 1e3, max(left) * 1e3), "",
                     f"from SIGTERM until the other grants {FLEET_RATE}/s, in {LEAVING_SPAN_S} s "
                     f"and the next {LEAVING_SPAN_S} s; before, it held "
                     f"{statistics.median(held):.0f} of {COUNT}; looked at every "
                     f"{STEP_S * 1e3:.0f} ms; {len(left)} times", median)
