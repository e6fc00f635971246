"""Rows about leases: what holding, taking, sharing and giving them back costs."""
import contextlib
import statistics
import threading
import time

from bench import median_of, quotients
from fleet import D_S, STEP_S, Watch, fleet, greedy, know, until
from servers import Taker

COUNT = 20  # partitions
READERS = 8
MANY_READERS = 256  # that they want all is plain from their number
RATE = 1000
KNOWN_S = 0.3  # after which a fleet is quiet again
HOSTS_KNOWN_S = 2  # after which hosts know of one another


def row_20(bench):
    """Both are asked for what they have long saved up, so that nobody waits for time."""
    settings = {"rate": "1G/s", "burst": 1000000}
    with bench.ratefs() as local, fleet(bench, 1) as (host,):
        local.limiter("x", **settings)
        host.make("x", count=COUNT, **settings)
        with open(host.file("x/token")) as file:
            file.read()
        until(lambda: host.stat("x", "partitions_held") == COUNT, 10)
        for placement in ("free", "one"):
            for mount in (local, host):
                mount.pin(placement)
            results = {"local": [], "fleet": []}
            for _ in range(bench.settings.lease_goes):
                for name, many in bench.rounds(
                        {name: lambda mount=mount: bench.client(
                            "held", mount.file("x/token"), bench.settings.reads,
                            placement=placement)
                         for name, mount in (("local", local), ("fleet", host))},
                        placement).items():
                    results[name] += many
            bench.ratio("20", f"held read with leases, p50, {placement}",
                        quotients(results["fleet"], results["local"], "p50_us"), "<=", 1.02,
                        f"local {median_of(results['local'], 'p50_us'):.4g} us",
                        f"{len(results['local'])} pairs; the host holds "
                        f"{host.stat('x', 'partitions_held'):.0f} of {COUNT}")


def first_token_s(host, name):
    begun = time.monotonic()
    with open(host.file(f"{name}/token")) as file:
        file.read()
    return time.monotonic() - begun


def write_s(host, name, text):
    begun = time.monotonic()
    with open(host.file(name), "w") as file:
        file.write(text)
    return time.monotonic() - begun


def row_21(bench):
    """A limiter that was just made has all of its partitions free; a host alone takes them all."""
    for count, what in ((2, "beside an idle host"), (1, "alone")):
        with fleet(bench, count) as (host, *_), contextlib.ExitStack() as stack:
            takers = [stack.enter_context(Taker(address, f"/taker{count}-{n}"))
                      for n, address in enumerate(bench.ensemble.addresses)]
            time.sleep(HOSTS_KNOWN_S)
            goes = []
            for n in range(bench.settings.rounds * bench.settings.first_tokens):
                host.make(f"x{n}", rate="1M/s", count=COUNT)
                write = write_s(host, f"x{n}/burst", "1\n")
                multi, large = (statistics.median(taker.take(size) for taker in takers)
                                for size in (1, COUNT))
                time.sleep(KNOWN_S)
                goes.append({"first": first_token_s(host, f"x{n}") * 1e3, "multi": multi * 1e3,
                             "large": large * 1e3, "write": write * 1e3})
        size = bench.settings.first_tokens
        rounds = [{key: median_of(goes[n:n + size], key) for key in goes[0]}
                  for n in range(0, len(goes), size)]
        bench.ratio("21", f"first token, {COUNT} free, {what}",
                    quotients([{"ms": one["first"]} for one in rounds],
                              [{"ms": one["multi"]} for one in rounds], "ms"), "<=", 3,
                    f"multi {median_of(rounds, 'multi'):.3g} ms",
                    f"first token {median_of(rounds, 'first'):.3g} ms; against a transaction "
                    "(check, set, delete, create) of a client of its own, one on each server; one "
                    f"that takes {COUNT} is {median_of(rounds, 'large'):.3g} ms, a write of burst "
                    f"on the mount {median_of(rounds, 'write'):.3g} ms")


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
        bench.figure("22", f"{COUNT} free partitions taken", "<= 200 ms", f"{median * 1e3:.0f} ms",
                     median <= 0.2, (min(taken) * 1e3, max(taken) * 1e3), "",
                     "from a take of 1000 at 1000/s until the host holds all; beside an idle host")


def row_23(bench):
    lease = bench.settings.lease_s
    with fleet(bench, 3) as hosts, contextlib.ExitStack() as stack:
        hosts[0].make("x", rate=f"{RATE}/s", count=COUNT, lease=f"{lease}s")
        know(hosts, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, hosts[:1], "x/token", READERS))
        until(lambda: hosts[0].stat("x", "partitions_held") == COUNT, 20)
        watch = Watch(hosts, "x")
        stack.enter_context(greedy(bench, hosts[1:], "x/token", READERS))
        watch.run(2 * lease)
        early = [host.stat("x", "partitions_held") for host in hosts]
        watch.run(max(bench.settings.ideal_s - 2 * lease, lease))
        late = [host.stat("x", "partitions_held") for host in hosts]
        seconds = watch.looks[-1][1] - watch.looks[0][1]
        percent = 100 * (watch.looks[-1][2] - watch.looks[0][2]) / (seconds * RATE)
        slow = [share for _, share in watch.windows(1)]
        lapses = sum(host.counters("lapses") for host in hosts)
    bench.figure("23", f"three greedy hosts: granted in {seconds:.0f} s", ">= 97 %",
                 f"{percent:.2f} %", percent >= 97, None, f"{RATE}/s, lease {lease} s",
                 f"from when the second and third host begin, while one holds all; slowest second "
                 f"{min(slow):.0f}/s, fastest {max(slow):.0f}/s; excess over rate x window "
                 f"{watch.excess(RATE):.0f} tokens ({COUNT} allowed); {lapses} lapses of a right")
    fair = (7, 7, 6)
    met = all(abs(share - even) <= 1 for share, even in zip(sorted(early, reverse=True), fair))
    bench.figure("23", "their shares after 2 leases", "within 1",
                 "/".join(f"{share:.0f}" for share in early), met, None, "max-min 7/7/6",
                 f"at the end {'/'.join(f'{share:.0f}' for share in late)}")


def leave(bench, readers, wait_s):
    """Seconds from SIGTERM of a host until another, which waits, holds all; what it grants then."""
    with fleet(bench, 2) as hosts, contextlib.ExitStack() as stack:
        first, second = hosts
        # So long that the one that leaves has shared hardly anything before.
        first.make("x", rate=f"{RATE}/s", count=COUNT, lease="1h")
        know(hosts, "x", f"{RATE}/s")
        stack.enter_context(greedy(bench, [first], "x/token", READERS))
        until(lambda: first.stat("x", "partitions_held") == COUNT, 20)
        stack.enter_context(greedy(bench, [second], "x/token", readers))
        time.sleep(wait_s)
        begun = time.monotonic()
        first.process.terminate()
        seconds = until(lambda: second.stat("x", "partitions_held") == COUNT, 4 * D_S, begun)
        before, tokens = time.monotonic(), second.stat("x", "granted")
        time.sleep(1)
        return seconds, (second.stat("x", "granted") - tokens) / (time.monotonic() - before)


def row_24(bench):
    for readers, wait_s in ((MANY_READERS, 7), (MANY_READERS, 1), (READERS, 7)):
        left, granting = zip(*(leave(bench, readers, wait_s)
                               for _ in range(bench.settings.departures)))
        median = statistics.median(left)
        bench.figure("24", f"clean leave, {readers} readers wait for {wait_s} s", "<= 100 ms",
                     f"{median * 1e3:.0f} ms", median <= 0.1,
                     (min(left) * 1e3, max(left) * 1e3), "",
                     f"from SIGTERM until the other holds all {COUNT}, looked at every "
                     f"{STEP_S * 1e3:.0f} ms; in the second after that it grants "
                     f"{statistics.median(granting):.0f} of {RATE}/s; {len(left)} times")
