"""storm.py MOUNT LOG KEEP SECONDS SEED: all operations on MOUNT at once, from several processes,
while its server is killed and reloaded at random moments. Fails if a line of LOG tells that a
server could not restore all of the state of the one before, if a server dies by anything but these
kills, or if the mount ends; then KEEP has the state that the last server was given, to be tried
again with state.py. The choices of the processes follow from SEED, the moments do not."""
import contextlib
import errno
import faulthandler
import multiprocessing
import os
import random
import re
import select
import signal
import subprocess
import sys
import time

import state

WORKERS, FILES_MOST = 6, 60
PATIENCE_S = 0.03  # so long a read may block until a signal comes; a third of them ask again
PAUSE_S = 0.12  # a server that has not served for so long would count as one that cannot stay up
REPLACE_S, AGAIN_S = 60, 2  # for hangs; a reload is asked for again
SPARE_S = 10  # beside two hangs: a run that takes longer hangs itself, and tells where
BEYOND_REPAIR = {errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.EBADF, errno.ENOSYS}
LEFT_BEHIND = re.compile("is damaged|kept aside|could not be (taken over|restored)|"
                         "cannot go on with|cannot start:")

NAMES = ["a", "b", "c", "d"]
KEYS = ["anna", "bob", "k" * 255, "é"]
SETTINGS = {
    "rate": ["max", "1/h", "7/s", "1000/s", "1000000/s", "50/s 1000/h:30", "0.5/s",
             "9/s 9/min 9/h 9/d"],
    "burst": ["1", "10", "5000"],
    "release_interval": ["0s", "10ms", "1s"],
    "enforcement": ["enforce", "enforce", "shadow", "open", "closed"],
    "adapt": ["none", "aimd", "cubic"],
    "backoff": ["none", "exponential", "linear initial=10ms"],
    "concurrency": ["max", "1", "3", "auto", "5000"],
    "key_rate": ["max", "1/h", "100/s", "5000000/s"],
    "key_burst": ["1", "20"],
    "keys_max": ["1", "3", "1000"],
    "offline": ["block", "open", "share:3"],
    "partitions/count": ["auto", "1", "5", "20", "4096"],
    "partitions/reserve": ["none", "1/s hosts=3", "1/d hosts=8", "1/h hosts=4096"],
    "partitions/lease": ["1s", "10s", "1min"],
    "config": ["rate=9/s\nburst=3\n", "rate=max\nenforcement=open\n", "no=such\n"],
    "charge": ["5", "-3", "1000"],
    "feedback": ["ok", "throttled", "error 3", "ok\nok\n503\n"],
}
PARTITIONS = ["0", "1", "4", "15", "19", "4095", "r0", "r2", "r7", "r4095"]
FILES = ["token", "try", "stream", "slot", "take/1", "take/3", "take/5000", "take/2,within=5ms",
         "take/9,within=1h", "eta/3", "rate", "config", "stat", "waiters", "partitions/count",
         "partitions/held"]
FILES += ["partitions/%s/%s" % (partition, name) for partition in PARTITIONS
          for name in ["token", "token", "rate", "state", "holder", "expires"]]
FILES += ["keys/%s/%s" % (key, name) for key in KEYS
          for name in ["token", "try", "stream", "stat", "take/2", "eta/1"]]
TOP_FILES = ["status", "metrics", "events", "hosts", "last_error", "README"]

mount = sys.argv[1]


may_interrupt = False


class Interrupted(Exception):
    pass


def on_alarm(number, frame):
    # A handler that returns has the read asked again, as by a program that was told to.
    if may_interrupt and random.random() < 2 / 3:
        raise Interrupted


def limiter():
    """A path of up to three limiters; most are there."""
    return "/".join([mount] + random.choices(NAMES, k=random.choice([1, 1, 1, 2, 3])))


def write(path, text):
    file = os.open(path, os.O_WRONLY)
    try:
        os.write(file, text.encode())
    finally:
        os.close(file)


def make(files):
    os.mkdir(limiter())


def remove(files):
    os.rmdir(limiter())


def rename(files):
    path = limiter()
    os.rename(path, os.path.dirname(path) + "/" + random.choice(NAMES))


def retune(files):
    name = random.choice(list(SETTINGS))
    write("%s/%s" % (limiter(), name), random.choice(SETTINGS[name]))


def own(files):
    os.chmod(limiter(), random.choice([0o755, 0o700, 0o777]))
    os.chown(limiter(), random.choice([0, 1]), -1)


def open_file(files):
    top = random.random() < 0.1
    path = mount + "/" + random.choice(TOP_FILES) if top else limiter() + "/" + random.choice(FILES)
    files.append(os.open(path, os.O_RDONLY | random.choice([0, os.O_NONBLOCK, os.O_NONBLOCK])))
    if len(files) > FILES_MOST:
        close(files)


def close(files):
    if files:
        os.close(files.pop(random.randrange(len(files))))


def read(files):
    if files:
        file = random.choice(files)
        if random.random() < 0.5:
            os.pread(file, random.choice([1, 64, 4096]), 0)
        else:
            os.read(file, random.choice([1, 2, 64]))


def poll(files):
    poll = select.poll()
    for file in random.sample(files, min(len(files), 3)):
        poll.register(file, select.POLLIN)
    poll.poll(5)


def look(files):
    key = random.choice(KEYS)
    path = limiter() + random.choice(["", "/keys", "/partitions", "/take", "/keys/" + key])
    os.listdir(path)
    os.stat(path)


def hurry(files):
    """A child takes a token, and is killed at any moment."""
    names = ["token", "slot", "take/7", "keys/anna/token", "partitions/0/token", "stream"]
    path = "%s/%s" % (limiter(), random.choice(names))
    child = os.fork()
    if not child:
        signal.setitimer(signal.ITIMER_REAL, 0)
        with contextlib.suppress(OSError):
            os.read(os.open(path, os.O_RDONLY), 64)
        os._exit(0)
    try:
        time.sleep(random.random() / 50)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


OPERATIONS = {make: 6, remove: 3, rename: 3, retune: 12, own: 1, open_file: 25, close: 12, read: 25,
              poll: 5, look: 3, hurry: 2}


def attempt(operation, files):
    global may_interrupt
    try:
        may_interrupt = True
        signal.setitimer(signal.ITIMER_REAL, PATIENCE_S, PATIENCE_S)
        operation(files)
    finally:
        may_interrupt = False


def work(seed, stop, failures, figures):
    global may_interrupt
    random.seed(seed)
    signal.signal(signal.SIGALRM, on_alarm)
    files, done, refused, interrupted = [], 0, 0, 0
    while not stop.is_set():
        operation = random.choices(list(OPERATIONS), OPERATIONS.values())[0]
        try:
            attempt(operation, files)
            done += 1
        except Interrupted:
            may_interrupt = False  # it came as late as it could
            interrupted += 1
        except OSError as error:
            refused += 1
            if error.errno in BEYOND_REPAIR:
                failures.put("%s: %r" % (operation.__name__, error))
                break
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    figures.put((done, refused, interrupted))


def status(name):
    with open(mount + "/status") as file:
        return int([line.split()[1] for line in file if line.startswith(name + " ")][0])


def left_behind(log):
    with open(log) as file:
        return [line.rstrip() for line in file if LEFT_BEHIND.search(line)]


def where(pid):
    """The state of that process, and the functions of the kernel that it is in, if known."""
    found = []
    for name, pattern in [("stat", r".*\) (.)"), ("stack", r"\] (.*)[+]")]:
        with contextlib.suppress(OSError), open("/proc/%d/%s" % (pid, name)) as file:
            found += re.findall(pattern, file.read())
    return " ".join(found) or "gone"


def children(keeper):
    with open("/proc/%d/task/%d/children" % (keeper, keeper)) as file:
        return [int(pid) for pid in file.read().split()]


def replace(keeper, snapshot):
    """Kills the server, or has it replaced, and waits for the next one.

    @snapshot has the state that the next one is given.
    """
    before = status("server")
    time.sleep(PAUSE_S + random.random() / 10)
    reload = random.random() < 0.25
    if reload:
        os.kill(keeper, signal.SIGHUP)
    else:
        os.kill(before, signal.SIGSTOP)
        try:
            with state.memory(keeper) as memory, open(snapshot, "w+b", 0) as target:
                state.copy(memory, target)
        finally:
            os.kill(before, signal.SIGKILL)
        # Sometimes the next one, too, before it serves.
        if random.random() < 0.2:
            time.sleep(random.random() / 100)
            for child in children(keeper):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
    until, again = time.monotonic() + REPLACE_S, time.monotonic() + AGAIN_S
    while status("server") == before:
        if time.monotonic() > until:
            return "no other server within %d s" % REPLACE_S
        # A keeper that has not heard yet that this server is ready does not replace it.
        if reload and time.monotonic() > again:
            os.kill(keeper, signal.SIGHUP)
            again += AGAIN_S
        time.sleep(0.002)
    return None


def main():
    log, keep, seconds, seed = sys.argv[2], sys.argv[3], float(sys.argv[4]), int(sys.argv[5])
    faulthandler.dump_traceback_later(seconds + 2 * REPLACE_S + SPARE_S, exit=True)
    stop = multiprocessing.Event()
    failures, figures = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(number, stop, failures, figures))
               for number in range(seed * WORKERS, (seed + 1) * WORKERS)]
    keeper, replaced, why = status("keeper"), 0, None
    os.mkdir(mount + "/a")
    with open(mount + "/a/partitions/count", "w") as file:
        file.write("20")  # with "auto" a fleet has no numbers
    for name in [*SETTINGS, *FILES]:
        if not re.search("r[0-9]+/|/(15|19|4095)/", name):
            os.stat("%s/a/%s" % (mount, name))
    snapshot = keep + "/state-%d" % seed
    for worker in workers:
        worker.start()
    random.seed(seed)
    until = time.monotonic() + seconds
    while not why and time.monotonic() < until:
        try:
            why = replace(keeper, snapshot)
        except (OSError, IndexError, SystemExit) as error:
            why = repr(error)
        replaced += 1
        lines = left_behind(log)
        why = why or (lines[0] if lines else None) or (None if failures.empty() else failures.get())
    stop.set()
    until = time.monotonic() + REPLACE_S
    for worker in workers:
        worker.join(max(0, until - time.monotonic()))
    hanging = [worker for worker in workers if worker.is_alive()]
    why = why or ("%d processes hang" % len(hanging) if hanging else None)
    for worker in hanging:
        print("# process %d: %s" % (worker.pid, where(worker.pid)))
        worker.kill()
    with contextlib.suppress(OSError):
        for pid in [keeper, *children(keeper)] if hanging else []:
            print("# keeper or server %d: %s" % (pid, where(pid)))
    why = why or ("a process ended early" if any(worker.exitcode for worker in workers) else None)
    if why:
        sys.exit("seed %d, after %d servers: %s" % (seed, replaced, why))
    os.unlink(snapshot)
    print("# seed %d: %d servers replaced during %d operations, "
          "%d that were refused and %d interrupted"
          % ((seed, replaced) + tuple(map(sum, zip(*(figures.get() for _ in workers))))))


if __name__ == "__main__":
    main()
