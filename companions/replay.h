/*
 * replay - readers that come at given times, on the limiters of a file, in virtual time.
 *
 * The engine is that of the daemon, on one host, and its timers are never late.
 */
#ifndef RATEFS_COMPANIONS_REPLAY_H
#define RATEFS_COMPANIONS_REPLAY_H

#include "companions/waits.h"

#include "core/limiter/engine.h"

/* How readers of a limiter fared. Each came once; those that wait still are in none of the rest. */
struct tally {
	uint64_t asked;
	uint64_t tokens;	  /* granted */
	uint64_t at_once;	  /* readers that did not wait */
	struct waits waits;	  /* of readers that did, and were granted their tokens */
	uint64_t refused_within;  /* they would have waited longer than they allowed */
	uint64_t refused_wait;	  /* ... than wait_max allows */
	uint64_t refused_queue;	  /* as many waited as queue_max allows */
	uint64_t refused_no_room; /* no room for a key or for a reader that waits */
};

struct replay {
	struct engine engine;
	struct source source;  /* keeps nothing, and is never refused */
	struct list waiting;   /* of struct replayed */
	struct tally *tallies; /* owned: by id of the limiter */
	uint32_t tally_count;
	uint64_t within_ns; /* that readers wait at most; NEVER_NS */
	int err;	    /* -ENOMEM in the middle */
};

/* A reader to come. */
struct arrival {
	struct limiter *limiter;
	const char *key; /* 1 to NAME_BYTES_MAX bytes, or NULL */
	uint64_t tokens; /* 0 to TOKENS_MAX */
};

/* Begins at time 0. 0 or -ENOMEM. */
int replay_open(struct replay *replay, uint64_t within_ns);

/*
 * Makes the limiters of @text, a file that was found right (inspect.h). 0, or -errno with a reason.
 */
int replay_load(struct replay *replay, const char *text, char error[ERROR_TEXT]);

/* Finds a limiter by its path. NULL: there is none. */
struct limiter *replay_find(const struct replay *replay, const char *path);

/* Has a reader come at @at_ns, not before the one that came last. 0 or -ENOMEM. */
int replay_arrive(struct replay *replay, const struct arrival *arrival, uint64_t at_ns);

/* Goes on until no reader waits that will ever be served. 0 or -ENOMEM. */
int replay_finish(struct replay *replay);

/* Returns how readers of @limiter, which was loaded, fared. */
const struct tally *replay_tally(const struct replay *replay, const struct limiter *limiter);

void replay_close(struct replay *replay);

#endif
