/*
 * child - a command in a process of its own.
 */
#ifndef RATEFS_COMPANIONS_CHILD_H
#define RATEFS_COMPANIONS_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Starts @command, with @in, @out and @err for its standard input, output and error unless they are
 * -1. Signals that are handled here have their default action there; those that are ignored stay
 * so. 0 with @pid, which is set before a signal can be handled; or -errno when it cannot be
 * executed, and nothing has run.
 */
int child_start(char *const command[], int in, int out, int err, volatile pid_t *pid);

/* Tells whether there is a file that @name stands for as a command, which may not be executable. */
bool child_exists(const char *name);

/*
 * Waits for the end of @pid; its status as of waitpid(2). @pid is 0 before its number is free
 * again.
 */
int child_wait(volatile pid_t *pid);

#endif
