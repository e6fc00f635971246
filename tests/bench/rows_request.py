"""Rows that time a request: on a mount, from a shell, against Redis."""
import os

from bench import BURST, DEEP, FORMS, LIMITS, RATE, median_of
from daemons import PLACEMENTS

SHAPES = (("a rate", "x", 1.10), ("8 limits", "eight", 1.15), ("4 levels", DEEP, 1.25))
READERS = 16


def on_mounts(bench, mounts, placement, limiters, *command):
    """A measure for each limiter of ratefs, and one for each form of the null file system."""
    for mount in mounts.values():
        mount.pin(placement)
    name, *rest = command
    files = {limiter: mounts["ratefs"].file(f"{limiter}/token") for limiter in limiters}
    files.update((form, mounts[form].file("x/token")) for form in mounts if form != "ratefs")
    return {key: lambda file=file: bench.client(name, file, *rest, placement=placement)
            for key, file in files.items()}


def row_1(bench):
    with bench.contestants() as mounts:
        for placement in PLACEMENTS:
            results = bench.rounds(
                on_mounts(bench, mounts, placement, [limiter for _, limiter, _ in SHAPES], "held",
                          bench.settings.reads), placement)
            for what, limiter, limit in SHAPES:
                for key in ("p50_us", "p99_us"):
                    bench.compare(1, f"held read, {what}, {key[:3]}, {placement}", key, results,
                                  limiter, FORMS, "low", limit)
    bench.figures[0]["note"] += (f"; a rate: {RATE}, burst {BURST}; 8 limits: {LIMITS}; "
                                 "4 levels: the rate on each")


def row_2(bench):
    with bench.contestants() as mounts:
        for placement in PLACEMENTS:
            results = bench.rounds(on_mounts(bench, mounts, placement, ["x"], "open",
                                             bench.settings.opens), placement)
            bench.compare(2, f"open, read, close, p50, {placement}", "p50_us", results, "x",
                          FORMS, "low", 1.10)


def row_3(bench):
    with bench.contestants() as mounts:
        for placement in PLACEMENTS:
            results = bench.rounds(
                on_mounts(bench, mounts, placement, ["x"], "readers", READERS,
                          bench.settings.throughput_s), placement, starts=1)
            bench.compare(3, f"{READERS} readers, tokens a second, {placement}", "tokens_per_s",
                          results, "x", FORMS, "high", 0.95, "/s")


def shell_us(bench, script, count, placement="free", **environment):
    """Microseconds a round of the loop, taken inside bash; each round has to succeed."""
    text = bench.run(["bash", "-c", f"""
        start=$EPOCHREALTIME
        for ((i = 0; i < {count}; i++)); do {script} || exit 1; done
        end=$EPOCHREALTIME
        echo $((${{end/./}} - ${{start/./}}))"""], placement,
                     env=dict(os.environ, LC_ALL="C", **environment))
    return {"us": int(text) / count}


def peers_of_a_shell(bench, redis):
    """(name, what a loop runs, how many loops, how many times cheaper ratefs is to be)."""
    loops = bench.settings.shell_loops
    digest = bench.numbers("redis_client", redis.socket, "script")["digest"]
    lock = os.path.join(bench.folder, "lock")
    return (
        ("flock FILE true", f"flock {lock} true", max(loops // 5, 30), 30),
        ("redis-cli with a GCRA script", f"redis-cli -s {redis.socket} EVALSHA {digest} 1 shell "
         "10000000 10000 > /dev/null", max(loops // 10, 10), 60),
        ("sem", "sem --fg --id bench -j1 true", max(loops // 200, 1), 1000),
    )


def row_12(bench):
    loops = bench.settings.shell_loops
    with bench.contestants() as mounts, bench.redis() as redis:
        for placement in PLACEMENTS:
            for mount in mounts.values():
                mount.pin(placement)
            measures = {name: lambda mount=mount: shell_us(
                bench, f"read -r _ < {mount.file('x/token')}", loops, placement)
                        for name, mount in mounts.items()}
            bench.compare(12, f"bash read -r _ < token, {placement}", "us",
                          bench.rounds(measures, placement), "ratefs", FORMS, "low", 1.10)
        for daemon in (*mounts.values(), redis):
            daemon.pin("free")
        home = os.path.join(bench.folder, "home")
        os.makedirs(os.path.join(home, ".parallel"), exist_ok=True)
        peers = peers_of_a_shell(bench, redis)
        measures = {name: lambda script=script, count=count: shell_us(
            bench, script, count, HOME=home, PARALLEL_HOME=os.path.join(home, ".parallel"))
                    for name, script, count, _ in peers}
        measures["ratefs"] = lambda: shell_us(
            bench, f"read -r _ < {mounts['ratefs'].file('x/token')}", loops)
        results = bench.rounds(measures, starts=1)
        for name, _, _, times in peers:
            bench.ratio(12, f"cheaper than {name}, free", results[name], results["ratefs"], "us",
                        ">=", times, f"{median_of(results[name], 'us'):.4g} us")


def row_13(bench):
    with bench.ratefs() as mount, bench.redis() as redis:
        mount.limiter("x", rate=RATE, burst=BURST)
        for placement in PLACEMENTS:
            mount.pin(placement)
            redis.pin(placement)
            results = bench.rounds({
                "ratefs": lambda: bench.client("held", mount.file("x/token"),
                                               bench.settings.reads, placement=placement),
                "redis": lambda: bench.numbers("redis_client", redis.socket, "held",
                                               bench.settings.reads, placement=placement),
            }, placement)
            for key in ("p50_us", "p99_us"):
                bench.ratio(13, f"faster than a Redis script, {key[:3]}, {placement}",
                            results["redis"], results["ratefs"], key, ">=", 2,
                            f"redis {median_of(results['redis'], key):.4g} us")
            seconds = bench.settings.throughput_s
            results = bench.rounds({
                "ratefs": lambda: bench.client("readers", mount.file("x/token"), READERS, seconds,
                                               placement=placement),
                "clients": lambda: bench.numbers("redis_client", redis.socket, "clients", READERS,
                                                 seconds, placement=placement),
                "pipeline": lambda: bench.numbers("redis_client", redis.socket, "pipeline",
                                                  READERS, seconds, placement=placement),
            }, placement, starts=1)
            bench.ratio(13, f"{READERS} clients, tokens a second, {placement}", results["ratefs"],
                        results["clients"], "tokens_per_s", ">=", 2,
                        f"redis {median_of(results['clients'], 'tokens_per_s'):.0f} /s",
                        f"one Redis client that keeps {READERS} requests under way: "
                        f"{median_of(results['pipeline'], 'tokens_per_s'):.0f} /s")
