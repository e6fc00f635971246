"""
replace.py FILE NEW: makes NEW the FILE when a program opens it, which reads the one that was there;
prints a line when it looks.
"""
import fcntl
import os
import signal
import sys

file, new = sys.argv[1:]
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO})
# A program that opens the file waits for the end of the lease.
lease = os.open(file, os.O_RDONLY)
fcntl.fcntl(lease, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("looks", flush=True)
signal.sigwait({signal.SIGIO})
os.rename(new, file)
os.close(lease)
