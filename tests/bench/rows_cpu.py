"""The row about CPU: the cost of a token to the daemon, and to the programs beside it."""
import contextlib

from bench import FORMS, TIMER_FORMS, median_of, with_cpu
from daemons import PLACEMENTS, cores

PACED_RATE, PACED_READERS = 1000, 16
WARM_UP = 300  # reads of the client before it counts
WORK_US = 40  # between two tokens of a client: such that a daemon looks for the next request


def held(bench, mount, placement):
    reads = bench.settings.reads
    return with_cpu(mount.pids(), lambda _: reads + WARM_UP, lambda: bench.client(
        "held", mount.file("x/token"), reads, placement=placement))


def of_held_reads(bench):
    with bench.contestants() as mounts:
        for placement in PLACEMENTS:
            for mount in mounts.values():
                mount.pin(placement)
            results = bench.rounds({name: lambda mount=mount: held(bench, mount, placement)
                                    for name, mount in mounts.items()}, placement)
            bench.compare(4, f"CPU a token, held reads, {placement}", "cpu_us", results, "ratefs",
                          FORMS, "low", 1.2)


def of_waiting_readers(bench):
    seconds = 4 * bench.settings.throughput_s

    def measure(mount, file):
        # The client runs a tenth of a second longer than it counts.
        return with_cpu(mount.pids(), lambda _: PACED_RATE * (seconds + 0.1),
                        lambda: bench.client("readers", mount.file(file), PACED_READERS, seconds))

    with contextlib.ExitStack() as stack:
        ratefs = stack.enter_context(bench.ratefs())
        ratefs.limiter("x", rate=f"{PACED_RATE}/s")
        measures = {"ratefs": lambda: measure(ratefs, "x/token")}
        for form in TIMER_FORMS:
            null = stack.enter_context(bench.null(form, PACED_RATE))
            measures[form] = lambda null=null: measure(null, "x/timer")
        results = bench.rounds(measures, starts=1)
    granted = min(median_of(results[name], "tokens_per_s") for name in results)
    bench.compare(4, f"CPU a token, {PACED_RATE}/s to {PACED_READERS} waiting readers, free",
                  "cpu_us", results, "ratefs", TIMER_FORMS, "low", 1.2,
                  note=f"the slowest grants {granted:.0f}/s")


def beside_clients(bench):
    """As many clients as cores, which compute between two tokens."""
    clients, seconds = len(cores()), bench.settings.throughput_s

    def measure(mount):
        return with_cpu(mount.pids(), lambda result: result["tokens_per_s"] * (seconds + 0.1),
                        lambda: bench.client("work", mount.file("x/token"), clients, WORK_US,
                                             seconds))

    with bench.contestants() as mounts:
        for mount in mounts.values():
            mount.pin("free")
        results = bench.rounds({name: lambda mount=mount: measure(mount)
                                for name, mount in mounts.items()}, starts=1)
    what = f"{clients} clients that compute {WORK_US} us a token, free"
    best = bench.compare(4, f"CPU a token beside {what}", "cpu_us", results, "ratefs", FORMS,
                         "low", 1.2)
    price = median_of(results["ratefs"], "cpu_us") - median_of(results[best], "cpu_us")
    served = {name: median_of(many, "tokens_per_s") for name, many in results.items()}
    most = max(FORMS, key=served.get)
    bench.figures[-1]["note"] += (
        f"; the price of looking: {price:.2f} us of CPU a token, and the clients get "
        f"{served['ratefs'] / served[most]:.2f} x the tokens that null {most} gives them")


def row_4(bench):
    of_held_reads(bench)
    of_waiting_readers(bench)
    beside_clients(bench)
