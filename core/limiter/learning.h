/*
 * learning - what a limiter has learnt from feedback: a rate of its own (adapt.h) and a pause
 * (backoff.h), kept in a bucket beside those of the limits that are set.
 *
 * A limiter has it when `adapt` or `backoff` was set once.
 */
#ifndef RATEFS_CORE_LEARNING_H
#define RATEFS_CORE_LEARNING_H

#include "core/limiter/adapt.h"
#include "core/limiter/backoff.h"
#include "core/limiter/bucket.h"
#include "core/limiter/feedback.h"

struct limiter;
struct schedule;

struct learning {
	enum adapt_kind kind; /* of `adapt` that @adapted is of */
	struct adapt_state adapted;
	struct backoff_state pause;
	struct bucket bucket; /* counts while @limited */
	bool limited;	      /* there is a learnt rate, and it is below that of the limits */

	/* In a fleet: see agreed_rate.c. */
	bool shared;   /* other hosts live by it too */
	bool proposes; /* this host would change it into: */
	struct adapt_state proposal;
	bool lowered;	   /* this host is to tell the rate it has lowered it to */
	bool asking;	   /* a request is under way */
	bool known;	   /* this host knows the rate that all agreed on ... */
	int32_t version;   /* ... as of this version of the node, ... */
	uint64_t session;  /* ... watched in this session, ... */
	uint64_t told_ns;  /* ... since this time */
	uint64_t retry_ns; /* the node could not be read: not again before this time; 0 */
	double told_rate;  /* the rate in it */
	double sent_rate;  /* the rate that is under way */
};

/* Makes one. @seed makes hosts' jitter differ. NULL: no memory. */
struct learning *learning_new(uint64_t seed);

/* Tells whether @settings need one. */
bool learning_is_needed(const struct settings *settings);

/* Has limiter->learning, which may be NULL, follow the settings and buckets of @limiter. */
void learning_configure(const struct schedule *schedule, struct limiter *limiter);

/* Lets flow in the tokens that are due. */
void learning_refill(const struct schedule *schedule, struct limiter *limiter);

/* Measures, and grows if it is time. Cheap if there is nothing to do. */
void learning_run(const struct schedule *schedule, struct limiter *limiter);

/* Notes how work in @limiter went. */
void learning_hear(const struct schedule *schedule, struct limiter *limiter,
		   const struct outcome *outcome);

/* Takes over a rate that another host has learnt, or that all have agreed on. */
void learning_adopt(const struct schedule *schedule, struct limiter *limiter,
		    const struct adapt_state *other);

/*
 * Restores the state that a predecessor had learnt, as far as the settings allow. The counters of
 * @limiter are its predecessor's, and its learning is not NULL.
 */
void learning_restore(const struct schedule *schedule, struct limiter *limiter,
		      const struct adapt_state *adapted, const struct backoff_state *pause);

/*
 * Returns when @limiter, which learns, looks again whether to grow, if a reader waits; or NEVER_NS.
 */
uint64_t learning_next_ns(const struct limiter *limiter);

/* Returns the learnt tokens a second, of this host's share; infinity: no limit. */
double learning_rate(const struct limiter *limiter);

#endif
