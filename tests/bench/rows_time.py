"""Rows about time itself: lateness, exactness, what waiting costs."""
import contextlib
import math
import os
import statistics
import subprocess
import time
from fractions import Fraction

from bench import median_of, quotients
from daemons import Daemon, Unmeasured, cpu_ns, running

TIMER_FORMS = ("timer", "early")  # of null_fs, to answer by a timer
RATES = (100, 1000)  # of row 5
DAY_S = 86400
TAKE_MAX = 10 ** 12  # tokens in one take of row 7
NS_PER_S = 10 ** 9


def row_5(bench):
    with contextlib.ExitStack() as stack:
        ratefs = stack.enter_context(bench.ratefs())
        for rate in RATES:
            ratefs.limiter(f"r{rate}", rate=f"{rate}/s", burst=100)
        for rate in RATES:
            measures = {}
            count = int(rate * bench.settings.paced_s)
            for form in TIMER_FORMS:
                mount = stack.enter_context(bench.null(form, rate))
                measures[form] = lambda mount=mount: bench.client(
                    "paced", mount.file("x/timer"), rate, count)
            measures["ratefs"] = lambda: bench.client(
                "paced", ratefs.file(f"r{rate}/token"), rate, count)
            measures["sleep"] = lambda: bench.client("sleep", rate, count)
            results = bench.rounds(measures, starts=1)
            sleeps = results.pop("sleep")
            for key in ("p50_us", "p99_us"):
                best = bench.compare("5", f"lateness at {rate}/s, {key[:3]}, free", key,
                                     results, "low", 1.10)
                # What "the most punctual one counts as 0" hides, known for the null form.
                hidden = statistics.median(one["due_p50_us"] - one["p50_us"]
                                           for one in results[best])
                ratios = [(mine[key] + hidden) / other[key]
                          for mine, other in zip(results["ratefs"], sleeps)]
                bench.ratio("5", f"lateness at {rate}/s, {key[:3]}, against nanosleep", ratios,
                            "<=", 0.5, f"nanosleep {median_of(sleeps, key):.4g} us",
                            f"{hidden:.3g} us added: the least lateness of form {best}")
            bench.best_timer = best


def row_6(bench):
    rate, readers, seconds = 500, 16, bench.settings.ideal_s
    with bench.ratefs() as mount:
        mount.limiter("x", rate=f"{rate}/s")
        result = bench.client("ideal", mount.file("x/token"), readers, seconds, rate)
    met = result["fraction"] >= 0.999 and result["granted"] <= rate * seconds + 1
    bench.figure("6", f"granted, {rate}/s, {readers} readers, {seconds} s", ">= 99.9 %",
                 f"{result['fraction'] * 100:.3f} %", met, None, f"{rate * seconds} tokens",
                 f"fullest window of 10 ms or more, at the readers: rate x window + "
                 f"{result['excess']:.2f} tokens")


def row_7(bench):
    """Takes queued at the start: the exact time of each says whether a token was lost or made."""
    simulate = os.path.join(bench.build, "tests", "sim", "simulate")
    if not os.path.exists(simulate):
        raise Unmeasured("no simulator in the build")
    days = 30
    for text, rate in (("1/7s", Fraction(1, 7)), ("1000000000/s", Fraction(10 ** 9)),
                       ("1000/90s", Fraction(1000, 90))):
        what = f"{days} simulated days at {text}"
        total = int(days * DAY_S * rate)
        takes = max(days, total // TAKE_MAX)
        tokens = total // takes
        trace = ["0 mkdir x", f"0 write x/rate {text}"]
        trace += [f"0 read x/take/{tokens} as t{index}" for index in range(takes)]
        trace += [f"{(days + 1) * DAY_S}s end"]
        done = subprocess.run([simulate], input="\n".join(trace) + "\n", text=True, timeout=600,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        granted = [line.split() for line in done.stdout.splitlines()
                   if line.split()[1:2] == ["granted"]]
        if len(granted) != takes or done.returncode:
            bench.figure("7", what, "error 0", "not measured", None,
                         note=done.stdout.strip()[-200:])
            continue
        error = Fraction(0)
        for index, words in enumerate(granted):
            # A new bucket holds 1 token; a grant falls on the first whole nanosecond.
            due_ns = math.ceil(((index + 1) * tokens - 1) / rate * NS_PER_S)
            granted_ns = int(Fraction(words[0]) * NS_PER_S)
            error = max(error, abs(granted_ns - due_ns) * rate / NS_PER_S)
        bench.figure("7", what, "error 0", f"error {float(error):g}", error == 0, None,
                     f"{takes * tokens} tokens")


def row_14(bench):
    limiters, seconds = 1000, bench.settings.idle_s
    with bench.ratefs() as mount:
        bench.client("mkdir", mount.path, 0, limiters)
        time.sleep(2)
        trace = os.path.join(bench.folder, "strace")
        command = ["strace", "-f", "-qq", "-o", trace]
        for pid in mount.pids():
            command += ["-p", str(pid)]
        tracer = Daemon(command, stderr=bench.log)
        with running(tracer):
            time.sleep(1)  # attaching shows what each thread is blocked in
            with open(trace) as file:
                attached = len(file.readlines())
            time.sleep(seconds)
            with open(trace) as file:
                calls = file.readlines()[attached:]
    bench.figure("14", f"idle, {limiters} limiters: calls in {seconds} s", "0", str(len(calls)),
                 not calls, None, "0", calls[0].strip()[:80] if calls else "")


def row_15(bench):
    rate, readers, seconds = 1000, 16, bench.settings.cpu_s
    with contextlib.ExitStack() as stack:
        ratefs = stack.enter_context(bench.ratefs())
        ratefs.limiter("x", rate=f"{rate}/s")
        mounts = {"ratefs": (ratefs, "x/token")}
        for form in TIMER_FORMS:
            mounts[form] = (stack.enter_context(bench.null(form, rate)), "x/timer")

        def spent(name):
            mount, file = mounts[name]
            before = cpu_ns(mount.pids())
            bench.client("readers", mount.file(file), readers, seconds)
            # The client runs a tenth of a second longer than it counts.
            return {"us": (cpu_ns(mount.pids()) - before) / 1e3 / (rate * (seconds + 0.1))}

        results = bench.rounds({name: lambda name=name: spent(name) for name in mounts},
                               starts=1)
    medians = {name: median_of(many, "us") for name, many in results.items()}
    best = bench.best_timer
    bench.ratio("15", f"CPU a token, {rate}/s, {readers} waiting readers",
                quotients(results["ratefs"], results[best], "us"), "<=", 1.2,
                f"{best} {medians[best]:.3g} us",
                ", ".join(f"{name} {value:.3g}" for name, value in medians.items()))
