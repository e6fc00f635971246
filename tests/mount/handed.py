"""handed.py STATUS TOKEN: kills the server of the mount 20 times. Each time it is handed a request
before it learns of that, on a busy processor, and TOKEN is read from the next server."""
import contextlib
import os
import signal
import sys
import threading
import time

KILLS = 20
LIFE_S = 0.11  # a server that dies sooner seems not to stay up
DELAY_S = 0.02  # in which the request comes
status, token = sys.argv[1:]


def server():
    with open(status) as file:
        return int([line.split()[1] for line in file if line.startswith("server ")][0])


def hold_up(pid):
    """Has PID run when no other process would on its processor."""
    os.sched_setaffinity(pid, {processor})
    os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0))


def let_go(pid):
    with contextlib.suppress(ProcessLookupError):
        os.sched_setscheduler(pid, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(pid, processors)


processors = os.sched_getaffinity(0)
processor = min(processors)
busy = os.fork()
if not busy:
    os.sched_setaffinity(0, {processor})
    parent = os.getppid()
    while os.getppid() == parent:
        pass
    os._exit(0)
try:
    for _ in range(KILLS):
        victim = server()
        time.sleep(LIFE_S)
        hold_up(victim)
        os.kill(victim, signal.SIGKILL)
        threading.Timer(DELAY_S, let_go, [victim]).start()
        with open(token, "rb", 0) as file:
            assert file.read(9) == b"1\n"
        while server() == victim:
            pass
finally:
    os.kill(busy, signal.SIGKILL)
