/*
 * companion - the commands beside the daemon: `ratefs NAME …`.
 *
 * A companion uses the files of a mounted tree and nothing else, or needs none; one is a file of
 * its own, with a row in the table in companion.c and a man page. Messages go to standard error
 * through warn(3).
 */
#ifndef RATEFS_COMPANIONS_COMPANION_H
#define RATEFS_COMPANIONS_COMPANION_H

#include <stdbool.h>
#include <stdint.h>

/* Wrong arguments; the daemon's own command line has the same. */
enum { STATUS_USAGE = 2 };

/* Of apply and save, as of diff(1): something to change, and something that could not be done. */
enum { STATUS_CHANGED = 1, STATUS_TROUBLE = 2 };

/*
 * Runs the companion that the arguments name: then true, and its exit status. A word that is nearly
 * the name of one is refused with a question, likewise.
 */
bool companion_run(int argc, char *argv[], int *status);

/* Run a companion with the arguments from its name on. Return the exit status. */
int apply_main(int argc, char *argv[]);
int check_main(int argc, char *argv[]);
int pipe_main(int argc, char *argv[]);
int plot_main(int argc, char *argv[]);
int rm_main(int argc, char *argv[]);
int run_main(int argc, char *argv[]);
int save_main(int argc, char *argv[]);
int serve_main(int argc, char *argv[]);
int simulate_main(int argc, char *argv[]);
int status_main(int argc, char *argv[]);
int top_main(int argc, char *argv[]);

/* Points to the help after wrong arguments. Returns STATUS_USAGE after a line on standard error. */
int companion_usage(void);

/* Parses a duration between the bounds. 0, or -EINVAL, -ERANGE. */
int companion_duration(const char *text, uint64_t min_ns, uint64_t max_ns, uint64_t *ns);

/* Reads a clock that steps of the time of day do not move. */
uint64_t companion_now_ns(void);

#endif
