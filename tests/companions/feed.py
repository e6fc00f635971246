"""feed.py SPEED LOG MOUNTPOINT: has a reader come to a mount for each line of LOG, SPEED times as
fast, and prints the lines with the times at which they came, so many times as slow again.

A line is: time limiter cost.
"""

import os
import queue
import sys
import threading
import time

READERS = 600  # that may wait at a time


def serve(lines, mountpoint, begun_s, came):
    """Reads for one line after the other, when its time has come."""
    while True:
        line = lines.get()
        if line is None:
            return
        at_s, limiter, cost = line
        time.sleep(max(0, begun_s + at_s - time.monotonic()))
        take = os.open(f"{mountpoint}/{limiter}/take/{cost}", os.O_RDONLY)
        came.append((time.monotonic() - begun_s, limiter, cost))
        try:
            os.read(take, 64)
        except OSError:
            pass  # refused, which the mount counts
        os.close(take)


def main():
    speed = float(sys.argv[1])
    with open(sys.argv[2], encoding="ascii") as file:
        fields = [line.split() for line in file]
    lines, came, begun_s = queue.SimpleQueue(), [], time.monotonic() + 1
    for at_s, limiter, cost in fields:
        lines.put((float(at_s) / speed, limiter, cost))
    threading.stack_size(256 * 1024)
    readers = [threading.Thread(target=serve, args=(lines, sys.argv[3], begun_s, came))
               for _ in range(READERS)]
    for reader in readers:
        lines.put(None)
        reader.start()
    for reader in readers:
        reader.join()
    for at_s, limiter, cost in sorted(came):
        print(f"{at_s * speed:.6f} {limiter} {cost}")


main()
