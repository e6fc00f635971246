"""handed.py STATUS TOKEN: kills the server of the mount 20 times. Each time it is handed a request
before it learns of that, on a busy processor, and TOKEN is read from the next server."""
import os
import signal
import sys
import time

KILLS = 20
LIFE_S = 0.11  # a server that dies sooner seems not to stay up
status, token = sys.argv[1:]


def server():
    with open(status) as file:
        return int([line.split()[1] for line in file if line.startswith("server ")][0])


processor = min(os.sched_getaffinity(0))
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
        os.sched_setaffinity(victim, {processor})
        os.sched_setscheduler(victim, os.SCHED_IDLE, os.sched_param(0))
        time.sleep(LIFE_S)
        os.kill(victim, signal.SIGKILL)
        with open(token, "rb", 0) as file:
            assert file.read(9) == b"1\n"
        while server() == victim:
            pass
finally:
    os.kill(busy, signal.SIGKILL)
