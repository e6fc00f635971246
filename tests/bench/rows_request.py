"""Rows that time a request: on a mount, from a shell, against Redis, and beside feedback."""
import os
import subprocess
import sys
import time

from bench import median_of, quotients
from daemons import PLACEMENTS, Daemon, Unmeasured, running

# Writes @3 lines a second to @1, @2 at a time, until it is ended; what it is late it makes up.
TELLER = """
import os, sys, time
fd = os.open(sys.argv[1], os.O_WRONLY)
lines, rate = int(sys.argv[2]), int(sys.argv[3])
text = b"200\\n" * lines
due = time.monotonic()
while True:
    os.pwrite(fd, text, 0)
    due += lines / rate
    time.sleep(max(0, due - time.monotonic()))
"""
LINES_PER_WRITE = 500
LINES_PER_S = 100000


def on_mounts(bench, mounts, placement, *command):
    """A measure per mount: the client's command on x/token."""
    for mount in mounts.values():
        mount.pin(placement)
    name, *rest = command
    return {key: lambda mount=mount: bench.client(name, mount.file("x/token"), *rest,
                                                  placement=placement)
            for key, mount in mounts.items()}


def row_1(bench):
    with bench.contestants() as mounts:
        for placement in PLACEMENTS:
            results = bench.rounds(
                on_mounts(bench, mounts, placement, "held", bench.settings.reads), placement)
            for key in ("p50_us", "p99_us"):
                bench.compare("1", f"held read, {key[:3]}, {placement}", key, results, "low",
                              1.10)


def row_2(bench):
    with bench.contestants() as mounts, bench.null("single", options="rw") as plain:
        for placement in PLACEMENTS:
            measures = on_mounts(bench, mounts, placement, "open", bench.settings.opens)
            measures.update(on_mounts(bench, {"plain": plain}, placement, "open",
                                           bench.settings.opens))
            results = bench.rounds(measures, placement)
            unchecked = median_of(results.pop("plain"), "p50_us")
            bench.compare("2", f"open, read, close, p50, {placement}", "p50_us", results,
                          "low", 1.10)
            bench.figures[-1]["note"] += f"; single without default_permissions {unchecked:.4g}"


def row_3(bench):
    with bench.contestants() as mounts:
        results = bench.rounds(
            on_mounts(bench, mounts, "free", "readers", 16, bench.settings.throughput_s),
            starts=1)
        bench.compare("3", "16 readers, tokens a second, free", "tokens_per_s", results,
                      "high", 0.95, "/s")


def row_4(bench):
    with bench.ratefs() as mount:
        mount.limiter("x")
        for placement in ("free", "one"):
            mount.pin(placement)
            measures = {file: lambda file=file: bench.client(
                "readers", mount.file(f"x/{file}"), 1, bench.settings.throughput_s,
                placement=placement) for file in ("token", "take/1000")}
            results = bench.rounds(measures, placement)
            single = median_of(results["token"], "tokens_per_s")
            bench.ratio("4", f"take/1000, tokens a second, {placement}",
                        quotients(results["take/1000"], results["token"], "tokens_per_s"), ">=",
                        900, f"token {single:.0f} /s")


def shell_us(bench, script, count, placement="free", **environment):
    """Microseconds a round of the loop, taken inside bash."""
    text = bench.run(["bash", "-c", f"""
        start=$EPOCHREALTIME
        for ((i = 0; i < {count}; i++)); do {script}; done
        end=$EPOCHREALTIME
        echo $((${{end/./}} - ${{start/./}}))"""], placement,
                      env=dict(os.environ, LC_ALL="C", **environment))
    return {"us": int(text) / count}


def row_12(bench):
    loops = bench.settings.shell_loops
    with bench.contestants() as mounts, bench.redis() as redis:
        for placement in ("free", "one"):
            for mount in mounts.values():
                mount.pin(placement)
            measures = {name: lambda mount=mount: shell_us(
                bench, f"read -r _ < {mount.file('x/token')}", loops, placement)
                        for name, mount in mounts.items()}
            results = bench.rounds(measures, placement)
            bench.compare("12", f"bash read -r _ < token, {placement}", "us", results, "low",
                          1.10)
        for mount in mounts.values():
            mount.pin("free")
        redis.pin("free")
        digest = bench.numbers("redis_client", redis.socket, "script")["digest"]
        lock = os.path.join(bench.folder, "lock")
        peers = (  # name, what a loop runs, how many loops, how many times cheaper
            ("flock FILE true", f"flock {lock} true", max(loops // 5, 50), 30),
            ("redis-cli with a script", f"redis-cli -s {redis.socket} EVALSHA {digest} 1 bench "
             "1000000000 1000000000 > /dev/null", max(loops // 10, 30), 60),
            ("sem", "sem --fg --id bench -j1 true", max(loops // 100, 3), 1000),
        )
        home = os.path.join(bench.folder, "home")
        os.makedirs(home, exist_ok=True)
        measures = {name: lambda script=script, count=count: shell_us(
            bench, script, count, HOME=home, PARALLEL_HOME=os.path.join(home, ".parallel"))
                    for name, script, count, _ in peers}
        measures["ratefs"] = lambda: shell_us(
            bench, f"read -r _ < {mounts['ratefs'].file('x/token')}", loops)
        results = bench.rounds(measures, starts=1)
        for name, _, _, times in peers:
            bench.ratio("12", f"cheaper than {name}, free",
                        quotients(results[name], results["ratefs"], "us"), ">=", times,
                        f"{median_of(results[name], 'us'):.4g} us")


def row_13(bench):
    with bench.ratefs() as mount, bench.redis() as redis:
        mount.limiter("x")
        for placement in PLACEMENTS:
            mount.pin(placement)
            redis.pin(placement)
            results = bench.rounds({
                "ratefs": lambda: bench.client("held", mount.file("x/token"),
                                               bench.settings.reads, placement=placement),
                "redis": lambda: bench.numbers("redis_client", redis.socket, "held",
                                               bench.settings.reads, placement=placement),
            }, placement)
            bench.ratio("13", f"faster than a Redis script, p50, {placement}",
                        quotients(results["redis"], results["ratefs"], "p50_us"), ">=", 2,
                        f"redis {median_of(results['redis'], 'p50_us'):.4g} us")
        mount.pin("free")
        redis.pin("free")
        seconds = bench.settings.throughput_s
        results = bench.rounds({
            "ratefs": lambda: bench.client("readers", mount.file("x/token"), 16, seconds),
            "clients": lambda: bench.numbers("redis_client", redis.socket, "clients", 16,
                                             seconds),
            "pipeline": lambda: bench.numbers("redis_client", redis.socket, "pipeline", 16,
                                              seconds),
        }, starts=1)
        medians = {name: median_of(many, "tokens_per_s") for name, many in results.items()}
        bench.figures[-3]["note"] = (
            f"tokens a second, 16 at a time: ratefs {medians['ratefs']:.0f}, "
            f"redis {medians['clients']:.0f}, pipelined {medians['pipeline']:.0f}")


def told(mount):
    """How often x was told that something went well."""
    with open(mount.file("x/stat")) as file:
        return next(int(line.split()[1]) for line in file if line.startswith("ok "))


def row_31(bench):
    """
    Held reads beside a process that tells of 100,000 outcomes a second, against the same beside one
    that writes as much to /dev/null: a third process moves the others, whatever it does.
    """
    with bench.ratefs() as mount:
        mount.limiter("x")
        with open(mount.file("x/adapt"), "w") as file:
            file.write("aimd")

        def held(path, placement):
            command = [sys.executable, "-c", TELLER, path, str(LINES_PER_WRITE), str(LINES_PER_S)]
            with running(Daemon(command, stderr=subprocess.DEVNULL)):
                time.sleep(0.3)  # it starts
                before, since = told(mount), time.monotonic()
                result = bench.client("held", mount.file("x/token"), bench.settings.reads,
                                      placement=placement)
                result["lines_per_s"] = (told(mount) - before) / (time.monotonic() - since)
            return result

        for placement in ("free", "one"):
            mount.pin(placement)
            results = bench.rounds({
                "told": lambda: held(mount.file("x/feedback"), placement),
                "null": lambda: held("/dev/null", placement)}, placement)
            lines = median_of(results["told"], "lines_per_s")
            if lines < 0.8 * LINES_PER_S:
                raise Unmeasured(f"only {lines:.0f} lines a second")
            bench.ratio("31", f"held read beside {LINES_PER_S} lines of feedback/s, {placement}",
                        quotients(results["told"], results["null"], "p50_us"), "<=", 1.10,
                        f"without {median_of(results['null'], 'p50_us'):.4g} us",
                        f"{lines:.0f} lines a second; p99 "
                        f"{median_of(results['told'], 'p99_us'):.4g} us, without "
                        f"{median_of(results['null'], 'p99_us'):.4g} us")
