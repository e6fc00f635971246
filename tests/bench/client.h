/*
 * client - what the commands of the bench client share.
 */
#ifndef RATEFS_BENCH_CLIENT_H
#define RATEFS_BENCH_CLIENT_H

/* Says @what failed, and why (errno), and ends the program. */
_Noreturn void client_fail(const char *what);

/* Opens for reading, or fails. */
int client_open(const char *path);

enum { READERS_MAX = 1024 };

/* Reads a token file from its start and gives the number it says, or fails. */
long client_number(int fd, const char *path);

/* Gives the number of readers that @text says, from 1 to READERS_MAX, or fails. */
int client_readers(const char *text);

/* Gives the number after @name in the stat file @fd, or fails. */
double load_stat(int fd, const char *path, const char *name);

/*
 * crowd FILE STAT READERS: that many readers, each with an open file of its own, threads of as few
 * processes as are needed; STAT is the limiter's. Prints `started N` and obeys the lines of
 * standard input, answering each: `cancel`, `grant FILE TEXT`, `count`, `kill`.
 */
void crowd_run(char **argv);

/* slot FILE COUNT: kills the holder of the only slot, until the open of the next one returns. */
void slot_run(char **argv);

/*
 * hostile UID THREADS KIND PATH LINE LINE TIMES: so many threads of that user do the same without
 * end: `stat` PATH, `read` or `list` it, `write` one LINE or the other to it so many times at once,
 * `poll` it, `mkdir` and rmdir of PATH with the thread's number, stat of a `name` that is PATH and
 * a new number; or `nothing`, but compute. Prints `started`; at the end of standard input how many
 * were `done` and how many `refused`.
 */
void hostile_run(char **argv);

/* work FILE CLIENTS WORK_US SECONDS: each client takes a token, computes for so long, and again. */
void load_work(char **argv);

/* trickle FILE RATE: takes tokens evenly, not more than RATE a second, until it is ended. */
void load_trickle(char **argv);

/*
 * gaps FILE READERS: takes tokens until standard input ends. Each line there is answered: the
 * tokens, the longest time between two of them and the longest read since the line before.
 */
void load_gaps(char **argv);

/*
 * watch STAT SECONDS RATE: looks at `granted` in STAT about once a millisecond. Prints by how many
 * tokens the fullest window of any length certainly holds more than RATE x its length.
 */
void load_watch(char **argv);

#endif
