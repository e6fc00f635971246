"""keeper.py MOUNT KILLS SECONDS: kills the server of MOUNT at random moments, KILLS times or for
SECONDS, sometimes the next one before it serves, or has it replaced, while clients take tokens,
hold slots, tune and make limiters in limiter `load` (200/s, burst 5, 3 slots), poll `polled` (20/s,
burst 1), and wait in `queue` (empty). Fails on an error, on a token or a slot too many, and if
those who wait in `queue` are not in their order; prints what a kill costs."""
import contextlib
import multiprocessing
import os
import random
import select
import signal
import sys
import time
import traceback

RATE, BURST, SLOTS, QUEUE, POLLED_RATE = 200, 5, 3, 8, 20
CALM_S = 1  # so long nobody is killed, to compare
KILLS_LEAST = 10  # on a machine so busy that SECONDS are not enough for more
mount, kills, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
load, queue = mount + "/load", mount + "/queue"
stop = multiprocessing.Event()
held = multiprocessing.Value("i", 0)
calm = multiprocessing.Value("d", 0)  # the longest wait before the first kill
killing = multiprocessing.Event()
failures = multiprocessing.Queue()
figures = multiprocessing.Queue()


def read(path):
    with open(path, "rb", 0) as file:
        return file.read(64)


def waited(began, longest):
    """The longest wait since the first kill, with that since began."""
    wait = time.monotonic() - began
    if killing.is_set():
        return max(longest, wait)
    with calm.get_lock():
        calm.value = max(calm.value, wait)
    return longest


def take(share):
    """Tokens taken, and the longest wait."""
    taken = longest = 0
    while not stop.is_set():
        began = time.monotonic()
        tokens = random.choice([1, 1, 1, 3])
        got = read(load + "/token" if tokens == 1 else load + "/take/3")
        assert got == b"%d\n" % tokens, got
        taken += tokens
        longest = waited(began, longest)
    return taken, longest


def stream(share):
    taken = longest = 0
    with open(load + "/stream", "rb", 0) as file:
        while not stop.is_set():
            began = time.monotonic()
            assert file.read(2) == b"1\n"
            taken += 1
            longest = waited(began, longest)
    return taken, longest


def poll(share):
    began = time.monotonic()
    taken = 0
    while not stop.is_set():
        file = os.open(mount + "/polled/token", os.O_RDONLY | os.O_NONBLOCK)
        poll = select.poll()
        poll.register(file, select.POLLIN)
        assert poll.poll(15000), "nobody wakes who polls"
        try:
            assert os.read(file, 9) == b"1\n"
            taken += 1
        except BlockingIOError:
            pass  # woken by a successor, to ask again
        os.close(file)
    most = POLLED_RATE * (time.monotonic() - began) + 1
    assert 0 < taken <= most, "%d tokens of %d by polling" % (taken, most)
    return 0, 0


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
        # In a fleet a server that has just begun does not know which names were given up.
        with contextlib.suppress(*([OSError] if "SOURCE" in os.environ else [])):
            os.rename(name, "%s-%d" % (name, turn))
        for path in name, "%s-%d" % (name, turn):
            if os.path.exists(path):
                os.rmdir(path)
        time.sleep(0.001)
    return 0, 0


def client(work):
    try:
        figures.put(work(1))
    except BaseException as error:
        line = traceback.extract_tb(error.__traceback__)[-1].line
        failures.put("%s: %r in %s" % (work.__name__, error, line))
        figures.put((0, 0))


def wait_in_queue(tokens):
    if read("%s/take/%d" % (queue, tokens)) != b"%d\n" % tokens:
        failures.put("who waits in a queue got something else")


def queued():
    """Waiters there, in turn."""
    with open(queue + "/waiters") as file:
        return [int(line.split()[2]) for line in file if not line.startswith("#")]


def status(name):
    with open(mount + "/status") as file:
        return int([line.split()[1] for line in file if line.startswith(name + " ")][0])


def successor(keeper, victim):
    """The next server, before it serves."""
    while True:
        with open("/proc/%d/task/%d/children" % (keeper, keeper)) as file:
            next_ones = [int(pid) for pid in file.read().split() if int(pid) != victim]
        if next_ones:
            return next_ones[0]


keeper = status("keeper")
line = []
for tokens in range(1, QUEUE + 1):
    line.append(multiprocessing.Process(target=wait_in_queue, args=(tokens,)))
    line[-1].start()
    while len(queued()) < tokens:
        time.sleep(0.001)
work = [take, take, take, take, stream, poll, hold, hold, hold, hold, hold, tune]
processes = [multiprocessing.Process(target=client, args=(each,)) for each in work]
began = time.monotonic()
for process in processes:
    process.start()
time.sleep(CALM_S)
killing.set()
restarts = []
killed = twice = replaced = 0
until = time.monotonic() + seconds
while killed < kills and (time.monotonic() < until or killed < KILLS_LEAST) and failures.empty():
    victim = status("server")
    time.sleep(0.1 + random.random() / 20)
    at = time.monotonic()
    if random.random() < 0.1:
        os.kill(keeper, signal.SIGHUP)
        replaced += 1
    else:
        os.kill(victim, signal.SIGKILL)
        killed += 1
    if random.random() < 0.2:
        victim = successor(keeper, victim)
        time.sleep(random.random() / 200)
        os.kill(victim, signal.SIGKILL)
        killed += 1
        twice += 1
    while status("server") == victim:
        pass
    restarts.append(time.monotonic() - at)
    if queued() != list(range(1, QUEUE + 1)):
        failures.put("in the queue are %s" % queued())
stop.set()
taken, longest = (list(each) for each in zip(*(figures.get(timeout=20) for _ in work)))
lasted = time.monotonic() - began
with open(queue + "/rate", "w") as file:
    file.write("1000/s")
for process in processes + line:
    process.join(10)
if not failures.empty():
    sys.exit(failures.get())
restarts.sort()
print("# %d kills, %d of them of one that had not served yet, %d replaced: "
      "restarted after %.0f ms, at most %.0f ms; longest wait %.0f ms, %.0f ms before the first; "
      "%d tokens of %d"
      % (killed, twice, replaced, 1000 * restarts[len(restarts) // 2], 1000 * restarts[-1],
         1000 * max(longest), 1000 * calm.value, sum(taken), RATE * lasted + BURST))
if sum(taken) > RATE * lasted + BURST:
    sys.exit("too many tokens")
if not sum(taken):
    sys.exit("no tokens")
if any(process.is_alive() for process in line):
    sys.exit("somebody still waits in the queue")
