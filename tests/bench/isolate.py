"""Runs a row in a process of its own, with a time limit, and clears up whatever it leaves."""
import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback

STOPPING_S = 30  # a row that is out of time unwinds; after that it is killed
PR_SET_PDEATHSIG = 1


class OutOfTime(BaseException):
    """Raised in a row whose time is over. No row catches it by accident."""


def stop(*_):
    raise OutOfTime


def unmeasured(row, why):
    return {"row": str(row), "what": "", "target": "", "measured": "could not be measured",
            "value": None, "min": None, "max": None, "floor": "", "met": None, "note": why}


def carry_out(row, function, bench):
    """Gives the figures of a row, whatever happens in it. Runs in the child."""
    why = None
    try:
        function(bench)
    except OutOfTime:
        why = "its time limit is over"
    except Exception as error:
        text = str(error).strip() or type(error).__name__
        why = text if bench.is_known(error) else f"{type(error).__name__}: {text}"
        traceback.print_exc(file=bench.log)
    figures = bench.figures
    if why or not figures:
        figures.append(unmeasured(row, why or "the row has no figure"))
    for figure in figures if bench.deaths else ():
        figure["met"] = False if figure["met"] is not None else None
        figure["note"] = f"A SERVER DIED: {'; '.join(bench.deaths)}; {figure['note']}"
    if bench.deaths:
        figures.append(dict(unmeasured(row, "; ".join(bench.deaths)), what="deaths of a server",
                            target="0", measured=str(len(bench.deaths)), met=False))
    return figures


def be_the_row(row, function, bench, pipe):
    """Runs in the child, which is the first process of a session; does not return."""
    status = 1
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        text = json.dumps(carry_out(row, function, bench)).encode()
        while text:
            text = text[os.write(pipe, text):]
        status = 0
    finally:
        sys.stdout.flush()
        os._exit(status)


def session_of(pid):
    """The session of a process that lives; None if it has ended."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
        words = file.read().rpartition(")")[2].split()
        return int(words[3]) if words[0] not in "ZX" else None
    return None


def left_over(session):
    return [int(entry) for entry in os.listdir("/proc")
            if entry.isdigit() and session_of(entry) == session]


def mounts_below(folder):
    """(mount point, number of the connection) of each file system mounted below @folder."""
    with open("/proc/self/mountinfo") as file:
        lines = [line.split() for line in file]
    return [(words[4], words[2].partition(":")[2]) for words in lines
            if words[4].startswith(f"{folder}/")]


def clear(session, folder):
    """Ends what is left of a row: connections are aborted first, so that each process can die."""
    for _, connection in mounts_below(folder):
        with contextlib.suppress(OSError):
            with open(f"/sys/fs/fuse/connections/{connection}/abort", "w") as file:
                file.write("1")
    until = time.monotonic() + STOPPING_S
    while left_over(session) and time.monotonic() < until:
        for pid in left_over(session):
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    for path, _ in mounts_below(folder):
        subprocess.run(["umount", "-l", path], stderr=subprocess.DEVNULL, check=False)


def read_for(pipe, seconds):
    """Returns the bytes of @pipe until its end, and whether that was in time."""
    until, data = time.monotonic() + seconds, b""
    while time.monotonic() < until:
        if select.select([pipe], [], [], max(0, until - time.monotonic()))[0]:
            more = os.read(pipe, 65536)
            if not more:
                return data, True
            data += more
    return data, False


def run_row(row, function, bench, limit_s):
    """Gives the figures of @row; there is one at least."""
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if not child:
        os.close(read_end)
        os.setsid()
        be_the_row(row, function, bench, write_end)
    os.close(write_end)
    try:
        data, in_time = read_for(read_end, limit_s)
        if not in_time:
            os.kill(child, signal.SIGTERM)
            data += read_for(read_end, STOPPING_S)[0]
    finally:
        os.close(read_end)
        clear(child, bench.folder)
        status = os.waitpid(child, 0)[1]
    try:
        figures = json.loads(data)
    except ValueError:
        return [unmeasured(row, f"no answer within {limit_s} s" if not in_time else
                           f"the row ended with status {status}")]
    return figures
