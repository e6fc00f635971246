/*
 * run - what a command is run for and how, as the arguments say.
 */
#ifndef RATEFS_COMPANIONS_RUN_H
#define RATEFS_COMPANIONS_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	THROTTLED_DEFAULT = 75, /* EX_TEMPFAIL of sysexits.h */
	RETRIES_MAX = 1000000,
};

struct job {
	const char *limiter; /* as given */
	/* Borrowed from the arguments, as the members below. */
	const char *tokens;
	const char *within; /* NULL: as long as it takes */
	char **command;
	uint64_t count;	    /* the number that @tokens comes to */
	uint64_t within_ns; /* likewise, of @within */
	uint64_t retries;
	int throttled; /* exit status */
	bool by_output, must_report, with_slot;
	char source[PATH_MAX]; /* the file that gives the tokens */
	char home[PATH_MAX];   /* where slot and feedback are */
};

/* Parses the arguments. 0 with them in @job, or with @help; or an exit status after a message. */
int run_parse(struct job *job, int argc, char *argv[], bool *help);
void run_usage(void);

#endif
