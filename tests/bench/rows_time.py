"""Rows about time itself: lateness, exactness, and idleness."""
import contextlib
import math
import os
import re
import subprocess
import time
from fractions import Fraction

from bench import TIMER_FORMS, median_of
from daemons import Daemon, Unmeasured, running
from fleet import T_S, fleet, know

SAVED = 100  # tokens of burst, and periods of idleness after which the null form begins anew
SAMPLES_MIN = 2000  # of each figure of row 5
ATTACHED_S = 10  # for hangs
DAY_S = 86400
TAKE_MAX = 10 ** 12  # tokens in one take of row 7
NS_PER_S = 10 ** 9
PING = r"\377\377\377\376\0\0\0\v"  # of ZooKeeper's protocol, as strace prints it


def lateness(bench, stack, rate):
    """Measures of the tokens of @rate: by ratefs, by each timer form, and by the client's sleep."""
    count = bench.settings.paced[rate]
    ratefs = stack.enter_context(bench.ratefs())
    ratefs.limiter("x", rate=f"{rate}/s", burst=SAVED)

    def of(mount, file, first):
        time.sleep((SAVED + 5) / rate)  # the bucket is full, or the null form begins anew
        return bench.client("paced", mount.file(file), mount.file(first), rate, count)

    measures = {"ratefs": lambda: of(ratefs, "x/token", f"x/take/{SAVED}"),
                "sleep": lambda: bench.client("sleep", rate, count)}
    for form in TIMER_FORMS:
        null = stack.enter_context(bench.null(form, rate))
        measures[form] = lambda null=null: of(null, "x/timer", "x/timer")
    return measures


def row_5(bench):
    for rate, count in bench.settings.paced.items():
        with contextlib.ExitStack() as stack:
            results = bench.rounds(lateness(bench, stack, rate), starts=1,
                                   rounds=bench.settings.paced_rounds)
        samples = count * bench.settings.paced_rounds
        first = {name: median_of(results[name], "first_us") for name in ("ratefs", *TIMER_FORMS)}
        note = (f"{samples} samples; counted from when the first read was sent, which adds up to " +
                ", ".join(f"{name} {us:.0f}" for name, us in first.items()) + " us")
        if samples < SAMPLES_MIN:
            note += f"; fewer than {SAMPLES_MIN} samples"
        for key in ("p50_us", "p99_us"):
            what = f"lateness at {rate}/s, {key[:3]}, free"
            bench.compare(5, what, key, results, "ratefs", TIMER_FORMS, "low", 1.10, note=note)
            bench.ratio(5, f"{what}, against nanosleep", results["ratefs"], results["sleep"], key,
                        "<=", 0.5, f"nanosleep {median_of(results['sleep'], key):.4g} us")


def row_6(bench):
    rate, burst, readers, seconds = 500, 1, 16, bench.settings.ideal_s
    with bench.ratefs() as mount:
        mount.limiter("x", rate=f"{rate}/s", burst=burst)
        watch = Daemon([bench.program("client"), "watch", mount.file("x/stat"), str(seconds + 0.2),
                        str(rate)], stdout=subprocess.PIPE, stderr=bench.log, text=True)
        with running(watch):
            result = bench.client("ideal", mount.file("x/token"), readers, seconds, rate)
            text = watch.process.communicate(timeout=seconds + 30)[0]
    seen = {name: float(value) for name, value in (line.split() for line in text.splitlines())}
    percent = result["fraction"] * 100
    bench.figure(6, f"granted, {rate}/s, {readers} readers, {seconds} s", ">= 99.9 %",
                 f"{percent:.3f} %", percent >= 99.9, None, f"{rate * seconds} tokens",
                 value=percent)
    bench.figure(6, "fullest window at the daemon", f"<= rate x w + {burst}",
                 f"rate x w + {seen['excess']:.2f}", seen["excess"] <= burst, None, "",
                 f"of any length, by {seen['looks']:.0f} looks at `granted`, the slowest of which "
                 f"took {seen['longest_look_us']:.0f} us; what is certain after each look",
                 seen["excess"])


def exact_days(bench, simulate, text, rate):
    """Takes queued at the start: the exact time of each says whether a token was lost or made."""
    days = 1 if bench.settings.quick else 30
    what = f"{days} simulated days at {text}"
    total = int(days * DAY_S * rate)
    takes = max(days, total // TAKE_MAX)
    tokens = total // takes
    trace = ["0 mkdir x", f"0 write x/rate {text}"]
    trace += [f"0 read x/take/{tokens} as t{index}" for index in range(takes)]
    trace += [f"{(days + 1) * DAY_S}s end"]
    done = subprocess.run([simulate], input="\n".join(trace) + "\n", text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    granted = [line.split() for line in done.stdout.splitlines()
               if line.split()[1:2] == ["granted"]]
    if len(granted) != takes or done.returncode:
        raise Unmeasured(f"{what}: status {done.returncode}, {len(granted)} of {takes} takes: "
                         f"{done.stdout.strip()[-200:]}")
    error = Fraction(0)
    for index, words in enumerate(granted):
        # A new bucket holds 1 token; a grant falls on the first whole nanosecond.
        due_ns = math.ceil(((index + 1) * tokens - 1) / rate * NS_PER_S)
        granted_ns = int(Fraction(words[0]) * NS_PER_S)
        error = max(error, abs(granted_ns - due_ns) * rate / NS_PER_S)
    bench.figure(7, what, "error 0", f"error {float(error):g}", error == 0, None,
                 f"{takes * tokens} tokens", value=float(error))


def row_7(bench):
    simulate = os.path.join(bench.build, "tests", "sim", "simulate")
    if not os.path.exists(simulate):
        raise Unmeasured("no simulator in the build")
    for text, rate in (("1/7s", Fraction(1, 7)), ("1000000000/s", Fraction(10 ** 9)),
                       ("1000/90s", Fraction(1000, 90))):
        exact_days(bench, simulate, text, rate)


def lines_of(path):
    with open(path) as file:
        return file.readlines()


def traced(bench, mount, seconds, awake, seen_s=10):
    """
    The system calls of @mount's processes in @seconds of idleness. That strace sees the calls of
    awake() within @seen_s afterwards shows that it works.
    """
    trace = os.path.join(bench.folder, f"strace{next(bench.numbers_used)}")
    command = ["strace", "-f", "-qq", "-o", trace]
    for pid in mount.pids():
        command += ["-p", str(pid)]
    with running(Daemon(command, stderr=bench.log)) as tracer:
        until = time.monotonic() + ATTACHED_S
        while not os.path.exists(trace) and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(1)  # attaching shows what each thread is blocked in
        if tracer.process.poll() is not None or not os.path.exists(trace):
            raise Unmeasured("strace did not attach")
        attached = len(lines_of(trace))
        time.sleep(seconds)
        calls = lines_of(trace)[attached:]
        awake()
        until = time.monotonic() + seen_s
        while True:
            seen = lines_of(trace)[attached + len(calls):]
            if any(re.search(r"\b(read|writev?|splice)\b.* = ", line) for line in seen):
                time.sleep(0.3)  # the calls that end the request
                return calls, len(lines_of(trace)) - attached - len(calls)
            if time.monotonic() > until:
                raise Unmeasured("strace saw no token: it does not work here")
            time.sleep(0.05)


def take_one(mount, name):
    with open(mount.file(name)) as file:
        file.read()


def busy_limiters(mount, count):
    """Limiters with rates, of which some have used keys, adapt and slots, too."""
    for n in range(count):
        mount.limiter(f"n{n}", rate="100/s", burst=10)
        if n % 10 == 0:
            mount.tune(f"n{n}", adapt="aimd", backoff="linear", concurrency=4, key_rate="1/s")
            take_one(mount, f"n{n}/keys/someone/token")
            take_one(mount, f"n{n}/slot")
            mount.tune(f"n{n}", feedback="429")
            mount.tune(f"n{n}", feedback="200")


def row_14(bench):
    limiters, seconds = 100 if bench.settings.quick else 1000, bench.settings.idle_s
    settled_s = 3 if bench.settings.quick else 20  # pauses are over, keys have refilled
    with bench.ratefs() as mount:
        busy_limiters(mount, limiters)
        time.sleep(settled_s)
        calls, seen = traced(bench, mount, seconds, lambda: take_one(mount, "n1/token"))
    bench.figure(14, f"idle, {limiters} limiters: calls in {seconds} s", "0", str(len(calls)),
                 not calls, None, "0", f"then a token is seen as {seen} calls; " +
                 (calls[0].strip()[:80] if calls else ""), len(calls))
    with fleet(bench, 2) as (host, other):
        other.make("x", rate="100/s", burst=10)
        know([host, other], "x", "100/s")
        time.sleep(settled_s)
        calls, seen = traced(bench, host, seconds, lambda: take_one(host, "x/token"))
    # A message is sent in two: 4 bytes of length, and what follows. A ping is number -2, kind 11.
    sent = [line for line in calls
            if re.search(r"\b(sendto|sendmsg|writev?)\(", line) and not re.search(r" = 4$", line)]
    pings = [line for line in sent if PING in line]
    timers = [line for line in calls if "SIGALRM {" in line]
    polls = [line for line in calls if re.search(r"\bpp?oll\(.* = \d|pp?oll resumed", line)]
    allowed = math.ceil(seconds / (T_S / 3)) + 1
    other = len(sent) - len(pings) + len(timers)
    bench.figure(14, f"idle host of a fleet: wake-ups in {seconds} s that are no pings", "0",
                 str(other), not other and 0 < len(pings) <= allowed and
                 len(polls) <= 2 * len(pings) + 2, None, f"a ping each {T_S / 3:g} s: {allowed}",
                 f"{len(pings)} pings, {len(sent) - len(pings)} other messages, "
                 f"{len(timers)} timers, {len(polls)} returns of poll, of which a ping takes two; "
                 f"then a token is seen as {seen} calls", other)
