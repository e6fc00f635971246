/*
 * tracer - holds the threads that wait in a mount still, by ptrace(2), as long as it is frozen.
 *
 * A thread that waits for the answer to a request cannot be frozen, by the kernel or by a cgroup,
 * once the server is. Interrupted it leaves the kernel's queue, and keeps its place (parking.h);
 * held it does not ask again. A thread that polls waits where it can be frozen, but asks once more
 * as it is.
 *
 * Tracing does what SIGSTOP would do less well: it holds the one thread, not its process; a shell
 * does not hear of it; a thread that was stopped before stays so; its number is not used again
 * meanwhile; and all go on by themselves if the tracer dies.
 */
#ifndef RATEFS_FS_KEEPER_TRACER_H
#define RATEFS_FS_KEEPER_TRACER_H

/*
 * Freezes the mount at @mountpoint, and holds all that wait, until a signal ends this process or
 * the mount ends. Writes a byte to @ready when all are held. Returns the exit status.
 */
int tracer_run(const char *mountpoint, int ready);

#endif
