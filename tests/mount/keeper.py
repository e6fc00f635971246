"""keeper.py MOUNT KILLS SECONDS: kills the server of MOUNT at random moments, KILLS times or for SECONDS, while
clients take tokens, hold slots, tune and make limiters in LIMITER `load` (200/s, burst 5, 3 slots). Fails on an error,
on a token or a slot too many; prints what a kill costs."""
import multiprocessing
import os
import random
import signal
import sys
import time

RATE, BURST, SLOTS = 200, 5, 3
mount, kills, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
load = mount + "/load"
stop = multiprocessing.Event()
held = multiprocessing.Value("i", 0)
failures = multiprocessing.Queue()
figures = multiprocessing.Queue()


def read(path):
    with open(path, "rb", 0) as file:
        return file.read(64)


def take(share):
    """Tokens taken, and the longest wait."""
    taken = longest = 0
    while not stop.is_set():
        began = time.monotonic()
        tokens = random.choice([1, 1, 1, 3])
        got = read(load + "/token" if tokens == 1 else load + "/take/3")
        assert got == b"%d\n" % tokens, got
        taken += tokens
        longest = max(longest, time.monotonic() - began)
    return taken, longest


def stream(share):
    taken = longest = 0
    with open(load + "/stream", "rb", 0) as file:
        while not stop.is_set():
            began = time.monotonic()
            assert file.read(2) == b"1\n"
            taken += 1
            longest = max(longest, time.monotonic() - began)
    return taken, longest


def hold(share):
    while not stop.is_set():
        file = os.open(load + "/slot", os.O_RDONLY)
        with held.get_lock():
            held.value += 1
            assert held.value <= SLOTS, "a slot too many"
        time.sleep(random.random() / 50)
        with held.get_lock():
            held.value -= 1
        os.close(file)
    return 0, 0


def tune(share):
    name = "%s/%d" % (mount, os.getpid())
    turn = 0
    while not stop.is_set():
        turn += 1
        os.mkdir(name)
        with open(name + "/rate", "w") as file:
            file.write("%d/s" % turn)
        assert read(name + "/rate") == b"%d/s\n" % turn
        os.rename(name, name + "x")
        os.rmdir(name + "x")
        time.sleep(0.001)
    return 0, 0


def client(work):
    try:
        figures.put(work(1))
    except BaseException as error:
        failures.put("%s: %r" % (work.__name__, error))
        figures.put((0, 0))


def server():
    with open(mount + "/status") as file:
        return int([line.split()[1] for line in file if line.startswith("server ")][0])


work = [take, take, take, take, stream, hold, hold, hold, hold, hold, tune]
processes = [multiprocessing.Process(target=client, args=(each,)) for each in work]
began = time.monotonic()
for process in processes:
    process.start()
restarts = []
while len(restarts) < kills and time.monotonic() - began < seconds and failures.empty():
    victim = server()
    time.sleep(0.1 + random.random() / 20)
    os.kill(victim, signal.SIGKILL)
    killed = time.monotonic()
    while server() == victim:
        pass
    restarts.append(time.monotonic() - killed)
stop.set()
taken, longest = (list(each) for each in zip(*(figures.get(timeout=20) for _ in work)))
lasted = time.monotonic() - began
for process in processes:
    process.join(10)
restarts.sort()
print("# %d kills: restarted after %.0f ms, at most %.0f ms; longest wait %.0f ms; %d tokens of %d"
      % (len(restarts), 1000 * restarts[len(restarts) // 2], 1000 * restarts[-1], 1000 * max(longest), sum(taken),
         RATE * lasted + BURST))
while not failures.empty():
    sys.exit(failures.get())
if sum(taken) > RATE * lasted + BURST:
    sys.exit("too many tokens")
if not sum(taken):
    sys.exit("no tokens")
