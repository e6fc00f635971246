"""Row 31: the rate of one key on the hosts of a fleet."""
import contextlib
import subprocess
import time

from fleet import fleet, greedy, know, until

KEY_RATE, RATE = 100, 2000
READERS = 8
HOSTS = 10
BEFORE_S = 1  # after which the key has its rate
LEAST = 0.9  # of its rate
SHARED_MOST_S = 60


def key_tokens(bench, members, name, seconds):
    """
    The key's tokens that readers on all of @members get in so many seconds, and how long those
    readers are there.
    """
    begun = time.monotonic()
    processes = [subprocess.Popen(
        [bench.program("client"), "readers", host.file(f"x/keys/{name}/token"), str(READERS),
         str(seconds)], stdout=subprocess.PIPE, stderr=bench.log, text=True) for host in members]
    texts = [process.communicate(timeout=10 * seconds + 60)[0] for process in processes]
    passed = time.monotonic() - begun
    return sum(float(text.split()[1]) * seconds for text in texts), passed


def report(bench, what, before, after, seconds, hosts):
    """@before and @after are of the first BEFORE_S, and of so many seconds after them."""
    rate = after[0] / seconds
    bench.figure(31, f"{what}: its rate after {BEFORE_S} s", f">= {LEAST:.0%}",
                 f"{100 * rate / KEY_RATE:.0f} %", rate >= LEAST * KEY_RATE, None,
                 f"{KEY_RATE}/s", f"over {seconds} s, {READERS} readers on each host that asks "
                 f"for it; other keys use half of the limiter on {hosts} hosts", rate)
    excess = [tokens - KEY_RATE * passed for tokens, passed in
              (before, after, (before[0] + after[0], before[1] + after[1]))]
    bench.figure(31, f"{what}: its tokens", f"<= key_rate x t + {1 + hosts}",
                 f"key_rate x t + {max(excess):.1f}", max(excess) <= 1 + hosts, None, "",
                 f"from before until after the first {BEFORE_S} s, the rest, and both", max(excess))


def row_31(bench):
    """All hosts use an equal part of half of the limiter, by readers of other keys."""
    count, seconds = HOSTS if not bench.settings.quick else 3, bench.settings.keyed_s
    others = RATE // KEY_RATE // 2 // count
    with fleet(bench, count) as hosts, contextlib.ExitStack() as stack:
        hosts[0].make("x", rate=f"{RATE}/s", key_rate=f"{KEY_RATE}/s", key_share="leased")
        know(hosts, "x", f"{RATE}/s")
        for host in hosts:
            for n in range(others):
                stack.enter_context(greedy(bench, [host], f"x/keys/{host.name}-{n}/token", 1))
        until(lambda: all(host.stat("x", "effective_rate") >= others * KEY_RATE
                          for host in hosts), SHARED_MOST_S)
        for name, some in (("one", hosts[-1:]), ("all", hosts)):
            before = key_tokens(bench, some, name, BEFORE_S)
            after = key_tokens(bench, some, name, seconds)
            report(bench, f"a key on {name} of {count} hosts", before, after, seconds, count)
