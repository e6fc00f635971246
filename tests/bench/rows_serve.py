"""The row that asks for tokens over HTTP."""
import contextlib
import os
import tempfile
import time

from bench import BURST, RATE, median_of, with_cpu
from daemons import Daemon, Unmeasured, cores, running

CONNECTIONS = 64  # of one request each, as proxies ask, where checks a second are counted
CPU_LIMIT = 3.0  # of a check that goes through the daemon of the mount, beside nginx' own answer
NGINX = """
daemon off;
pid {folder}/pid;
error_log stderr crit;
worker_processes {cores};
events {{ worker_connections 256; }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen unix:{folder}/socket;
        return 204;
    }}
}}
"""


@contextlib.contextmanager
def at_a_socket(bench, folder, command):
    """A server whose socket is in @folder."""
    path = os.path.join(folder, "socket")
    with running(Daemon(command, stderr=bench.log, stdout=bench.log)) as daemon:
        for _ in range(1000):
            if os.path.exists(path) or daemon.process.poll() is not None:
                break
            time.sleep(0.01)
        if not os.path.exists(path):
            raise Unmeasured(f"{command[0]} does not listen")
        daemon.socket = path
        yield daemon


def asked(bench, daemon, url, connections, depth):
    def measure():
        result = bench.numbers("http_client", daemon.socket, url, connections, depth,
                               bench.settings.throughput_s)
        if result["refused"]:
            raise Unmeasured(f"{result['refused']:.0f} answers are not 2xx")
        return result
    return measure


def row_17(bench):
    """`ratefs serve` of a limiter that is never reached, beside nginx, which only answers 204."""
    folders = [tempfile.mkdtemp(prefix="http", dir=bench.folder) for _ in range(2)]
    for folder in folders:
        os.chmod(folder, 0o755)
    with contextlib.ExitStack() as stack:
        mount = stack.enter_context(bench.ratefs())
        mount.limiter("x", rate=RATE, burst=BURST)
        serve = stack.enter_context(at_a_socket(bench, folders[0], (
            bench.ratefs_path, "serve", "-l", f"{folders[0]}/socket", mount.path)))
        with open(f"{folders[1]}/conf", "w") as conf:
            conf.write(NGINX.format(folder=folders[1], cores=len(cores())))
        nginx = stack.enter_context(at_a_socket(bench, folders[1], (
            "nginx", "-p", folders[1], "-c", f"{folders[1]}/conf", "-e", "stderr")))
        url = "/v1/take/x"
        results = bench.rounds({
            name: lambda url=url, daemons=daemons: with_cpu(
                [pid for daemon in daemons for pid in daemon.pids()],
                lambda result: result["answers"],
                asked(bench, daemons[0], url, CONNECTIONS, 1))
            for name, url, daemons in (("serve", url, (serve, mount)),
                                       ("nginx", "/", (nginx,)))}, starts=1)
        alone = bench.rounds({"serve": asked(bench, serve, url, 1, 1)}, starts=1)["serve"]
        every = [one["answers_per_s"] for one in results["serve"]]
        rate = median_of(results["serve"], "answers_per_s")
        cpu = {name: median_of(results[name], "cpu_us") for name in results}
        bench.figure(17, f"checks a second, {CONNECTIONS} connections of one request, "
                     f"{len(cores())} cores with the client", ">= 100000", f"{rate:.0f} /s",
                     rate >= 100000, (min(every), max(every)),
                     f"nginx 204 {median_of(results['nginx'], 'answers_per_s'):.0f} /s",
                     "the client, of one thread, is tests/bench/http_client.c", rate)
        bench.ratio(17, "CPU of a check, of serve and the mount together", results["serve"],
                    results["nginx"], "cpu_us", "<=", CPU_LIMIT,
                    f"nginx 204 {cpu['nginx']:.2f} us", f"a check {cpu['serve']:.2f} us")
        took = median_of(alone, "p99_us")
        bench.figure(17, "a check that is granted at once, p99", "<= 1000 us", f"{took:.4g} us",
                     took <= 1000, (min(one["p99_us"] for one in alone),
                                    max(one["p99_us"] for one in alone)),
                     f"p50 {median_of(alone, 'p50_us'):.4g} us", value=took)
