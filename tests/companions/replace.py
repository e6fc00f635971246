"""
replace.py FILE NEW: makes NEW the FILE, once a program has opened, read and closed it; prints a
line when it looks.
"""
import ctypes
import os
import sys

IN_CLOSE_NOWRITE = 0x10

file, new = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
inotify = libc.inotify_init()
if libc.inotify_add_watch(inotify, os.fsencode(file), IN_CLOSE_NOWRITE) < 0:
    sys.exit(f"{file}: {os.strerror(ctypes.get_errno())}")
print("looks", flush=True)
os.read(inotify, 4096)
os.rename(new, file)
