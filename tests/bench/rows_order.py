"""The row about order: the cost of a token where many siblings have waiters."""
import itertools
import os

from bench import median_of
from daemons import Unmeasured

SIBLINGS = {"children": "1000 children, 100 readers each",
            "mixed": "1000 children, weights, classes, minima"}


def row_16(bench):
    """
    The core alone, without a mount: a request costs the kernel and the daemon so much more than
    the order of siblings that no difference would be seen, and there cannot be so many threads.
    """
    if not os.path.exists(bench.program("order")):
        raise Unmeasured("order was not built")
    seeds = itertools.count(1)

    def measure(shape):
        return bench.numbers("order", shape, bench.settings.ordered, next(seeds), placement="one")

    results = bench.rounds({shape: lambda shape=shape: measure(shape)
                            for shape in ("queue", "child", *SIBLINGS)}, "one",
                           rounds=3 * bench.settings.rounds)
    usual, level = (median_of(results[shape], "cpu_ns") for shape in ("queue", "child"))
    for shape, what in SIBLINGS.items():
        bench.ratio(16, f"core's CPU a token, {what}", results[shape], results["queue"],
                    "cpu_ns", "<=", 1.05, f"one queue {usual:.4g} ns",
                    f"{median_of(results[shape], 'cpu_ns'):.4g} ns a token, and asking again; "
                    f"{level:.4g} ns where all wait in one child")
