"""The row that tries limits on a log."""
import os
import random
import subprocess
import time

from bench import median_of
from daemons import Unmeasured

LINES = 1_000_000
MOST_S = 10
LIMIT_S = 120
KEYS = 100_000
# A shop: two limiters below another one, of which the second one is short, and keys.
LIMITS = """[shop]
rate=900/s
[shop/orders]
rate=600/s
[shop/mail]
rate=400/s
[web]
rate=max
key_rate=2/s
"""


def write_lines(path, lines):
    """The same each time: 1,000 lines a second."""
    chance = random.Random(19)
    with open(path, "w") as file:
        for number in range(lines):
            name = chance.choice(("shop/orders", "shop/mail"))
            file.write(f"{number / 1000:.3f} {name} {chance.choice((1, 1, 1, 2))}\n")


def write_access_log(path, lines):
    """As nginx writes it, of many clients."""
    chance = random.Random(19)
    with open(path, "w") as file:
        for number in range(lines):
            key = chance.randrange(KEYS)
            at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(1795312937 + number // 1000))
            file.write(f'10.{key >> 16}.{key >> 8 & 255}.{key & 255} - - [{at}] '
                       f'"GET /page/{key} HTTP/1.1" 200 {chance.randrange(1, 3)} "-" "agent"\n')


def timed(command):
    start = time.monotonic()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=LIMIT_S)
    except subprocess.TimeoutExpired as error:
        raise Unmeasured(f"{command[0]} takes more than {LIMIT_S} s") from error
    if done.returncode:
        raise Unmeasured(f"{command[0]}: {done.stdout[-200:]}")
    return done.stdout, time.monotonic() - start


def row_19(bench):
    """`ratefs simulate` of a log, beside awk, which only adds up its last field by its second."""
    config, log = (os.path.join(bench.folder, name) for name in ("limits", "lines"))
    lines = bench.settings.log_lines
    with open(config, "w") as file:
        file.write(LIMITS)
    for what, write, options in (
            ("its own format, a tree of limiters", write_lines, ()),
            (f"access log, {KEYS} clients", write_access_log, ("-f", "combined", "-l", "web"))):
        write(log, lines)
        command = (bench.ratefs_path, "simulate", "-c", config, "--from-log", log, *options)

        def simulate(command=command):
            text, seconds = timed(command)
            if not text.startswith(f"{lines} lines ") or " 0 left out" not in text:
                raise Unmeasured(f"simulate: {text[:100]}")
            return {"s": seconds}

        results = bench.rounds({
            "simulate": simulate,
            "awk": lambda: {"s": timed(("awk", "{ n[$2] += $NF }", log))[1]}},
            starts=1)
        every = [one["s"] for one in results["simulate"]]
        took = median_of(results["simulate"], "s")
        bench.figure(19, f"simulate --from-log, {lines} lines: {what}",
                     f"<= {MOST_S * lines / LINES:g} s", f"{took:.3g} s",
                     took <= MOST_S * lines / LINES, (min(every), max(every)),
                     f"awk {median_of(results['awk'], 's'):.3g} s", value=took)
