"""state.py KEEPER version|cut|flip [VERSION]: damages what the server of KEEPER has written for the
next one, with the server stopped: another number of the version, nothing from a random byte on, or
one random bit of the limiters. Prints `log` if it was among header and limiters, where it has to be
found, else `levels`.

state.py KEEPER save|load FILE: copies all of it to FILE, or back: a state that servers
died of can be tried again on another mount.
"""
import contextlib
import os
import random
import sys

VERSION_AT = 8  # behind the magic
HEADER_BYTES, LOG_BYTES = 1 << 16, 1 << 30


def memory(keeper):
    fds = "/proc/%s/fd/" % keeper
    for name in os.listdir(fds):
        # The keeper may close another file meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if "ratefs-state" in os.readlink(fds + name):
                return open(fds + name, "r+b", 0)
    sys.exit("no memory of a keeper")


def extents(file):
    """Where something is written."""
    at, size = 0, os.fstat(file.fileno()).st_size
    while at < size:
        try:
            at = os.lseek(file.fileno(), at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(file.fileno(), at, os.SEEK_HOLE)
        yield at, os.pread(file.fileno(), end - at, at).rstrip(b"\0")
        at = end


def copy(source, target):
    """Makes @target the same as @source."""
    target.truncate(0)
    target.truncate(os.fstat(source.fileno()).st_size)
    for at, data in extents(source):
        os.pwrite(target.fileno(), data, at)


def flip(file):
    # Header and the log in use are one extent or two.
    log = int.from_bytes(os.pread(file.fileno(), 4, 24), "little")
    begin = HEADER_BYTES + log * LOG_BYTES
    end = begin + int.from_bytes(os.pread(file.fileno(), 8, 32 + 8 * log), "little")
    at = random.randrange(begin, end)
    byte = os.pread(file.fileno(), 1, at)[0]
    os.pwrite(file.fileno(), bytes([byte ^ 1 << random.randrange(8)]), at)
    return at


def cut(file):
    # With another length it would begin elsewhere.
    begin, data = random.choice([(at, data) for at, data in extents(file) if data])
    at = begin + random.randrange(VERSION_AT + 1 if begin == 0 else 0, len(data))
    # The rest of a page of memory goes last: nothing is mapped behind the end.
    size = os.fstat(file.fileno()).st_size
    file.truncate(at)
    file.truncate(size)
    return at


def main():
    file, what = memory(sys.argv[1]), sys.argv[2]
    if what == "version":
        os.pwrite(file.fileno(), int(sys.argv[3]).to_bytes(4, "little"), VERSION_AT)
    elif what == "save":
        with open(sys.argv[3], "wb", 0) as target:
            copy(file, target)
    elif what == "load":
        with open(sys.argv[3], "rb", 0) as source:
            copy(source, file)
    else:
        at = flip(file) if what == "flip" else cut(file)
        print("log" if at < HEADER_BYTES + 2 * LOG_BYTES else "levels", at)


if __name__ == "__main__":
    main()
