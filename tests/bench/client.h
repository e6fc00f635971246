/*
 * client - what the commands of the bench client share.
 */
#ifndef RATEFS_BENCH_CLIENT_H
#define RATEFS_BENCH_CLIENT_H

/* Says @what failed, and why (errno), and ends the program. */
_Noreturn void fail(const char *what);

/* Opens for reading, or fails. */
int open_file(const char *path);

/*
 * crowd FILE READERS: that many readers of one descriptor, threads of as few processes as are
 * needed. Prints `started N` and obeys the lines of standard input, answering each:
 * `cancel`, `grant FILE TEXT`, `kill`.
 */
void command_crowd(char **argv);

/* slot FILE COUNT: kills who holds the only slot, until the open of the next one returns. */
void command_slot(char **argv);

#endif
