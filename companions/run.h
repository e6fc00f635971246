/*
 * run - what a command is run for and how, as the arguments say.
 */
#ifndef RATEFS_COMPANIONS_RUN_H
#define RATEFS_COMPANIONS_RUN_H

#include "companions/headers.h"

#include <limits.h>
#include <pthread.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	THROTTLED_DEFAULT = 75, /* EX_TEMPFAIL of sysexits.h */
	TELL_DEFAULT_S = 10,
	RETRIES_MAX = 1000000,
};

struct job {
	const char *limiter; /* as given */
	/* Borrowed from the arguments, as the members below. */
	const char *tokens;
	const char *within;	 /* NULL: as long as it takes */
	const char *headers;	 /* the file that tells how it went; NULL: none does */
	struct unit_names names; /* of units in it */
	char **command;
	uint64_t count;	    /* the number that @tokens comes to, of the unit without a name */
	bool has_units;	    /* @tokens has amounts of others, too */
	uint64_t within_ns; /* likewise, of @within */
	uint64_t retries;
	uint64_t tell_ns; /* a wait of so long is told when it is over */
	int throttled;	  /* exit status */
	regex_t words;	  /* if has_words: of a line that says so */
	bool has_words;
	bool by_output, must_report, with_slot, is_verbose;
	char source[PATH_MAX]; /* the file that gives the tokens */
	char home[PATH_MAX];   /* where slot and feedback are */
};

/* Parses the arguments. 0 with them in @job, or with @help; or an exit status after a message. */
int run_parse(struct job *job, int argc, char *argv[], bool *help);
void run_usage(void);

/*
 * run_headers.c: empties the file of header fields that @job names, so that those of an earlier run
 * do not count; and reads it. False, after a message: it tells nothing.
 */
void run_headers_empty(const struct job *job);
bool run_headers_read(const struct job *job, struct header_report *report);

/*
 * run_wait.c: tells how long the wait for tokens is going to be, if it is verbose, or that is long
 * and there is a terminal; and how long it was since @began_ns, if that was long, of which the
 * tokens took until @slot_ns.
 */
void run_wait_announce(const struct job *job);
void run_wait_tell(const struct job *job, uint64_t began_ns, uint64_t slot_ns);

/* The wait for a slot, while it is watched. */
struct slot_wait {
	const struct job *job; /* borrowed */
	pthread_t thread;
	bool has_thread;
};

/*
 * run_wait.c: from the first to the second, tells what an opener of the slot waits for: soon if it
 * is verbose, and on a terminal when it has waited for long. errno stays.
 */
void run_wait_slot_begin(struct slot_wait *wait, const struct job *job);
void run_wait_slot_end(struct slot_wait *wait);

#endif
