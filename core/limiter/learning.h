/*
 * learning - what a limiter has learnt from feedback: a rate of its own (adapt.h), kept in a bucket
 * beside those of the limits that are set, a pause (backoff.h), and what the service still allows
 * (allowance.h).
 *
 * A limiter has it when `adapt` or `backoff` was set once, or a service told of its quota.
 */
#ifndef RATEFS_CORE_LEARNING_H
#define RATEFS_CORE_LEARNING_H

#include "core/limiter/adapt.h"
#include "core/limiter/allowance.h"
#include "core/limiter/backoff.h"
#include "core/limiter/bucket.h"
#include "core/limiter/feedback.h"
#include "core/limiter/unit_quota.h"

struct limiter;
struct schedule;

struct learning {
	enum adapt_kind kind; /* of `adapt` that @adapted is of */
	struct adapt_state adapted;
	struct backoff_state pause;
	struct bucket bucket; /* counts while @limited */
	bool limited;	      /* there is a learnt rate, and it is below that of the limits */
	struct allowances allowances;
	bool told;	   /* the service has said something of its quota */
	double told_limit; /* tokens a second that the service said it gives; 0: it did not */
	struct unit_quotas *units; /* owned: likewise of units by name; NULL: nothing was said */
	uint64_t now_ns;	   /* allowances are as of this time */

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

/* Makes one. @seed makes hosts' jitter differ. NULL: no memory. Frees one, which may be NULL. */
struct learning *learning_new(uint64_t seed);
void learning_free(struct learning *learning);

/* Gets the memory for what is said of units by name, unless it is there. False: there is none. */
bool learning_get_units(struct learning *learning);

/* Tells whether @settings need one. */
bool learning_is_needed(const struct settings *settings);

/* Has limiter->learning, which may be NULL, follow the settings and buckets of @limiter. */
void learning_configure(const struct schedule *schedule, struct limiter *limiter);

/* Lets flow in the tokens that are due, and drops allowances that are over. */
void learning_refill(const struct schedule *schedule, struct limiter *limiter);

/* Measures, and grows if it is time. Cheap if there is nothing to do. */
void learning_run(const struct schedule *schedule, struct limiter *limiter);

/* Notes how work in @limiter went. */
void learning_hear(const struct schedule *schedule, struct limiter *limiter,
		   const struct outcome *outcome);

/*
 * Notes what the service said of its quota; limiter->learning is not NULL, and has the memory for
 * units if @outcome is of one, which the settings of @limiter have.
 */
void learning_hear_quota(const struct schedule *schedule, struct limiter *limiter,
			 const struct outcome *outcome);

/*
 * Returns the allowances of @unit; NULL: nothing was said of it. Notes that another host was told
 * of its quota, of which @part leaves count here: allowances_add(). False: there is no memory.
 */
struct allowances *learning_allowances(struct learning *learning, const char unit[UNIT_TEXT]);
bool learning_allow(const struct schedule *schedule, struct limiter *limiter,
		    const char unit[UNIT_TEXT], uint64_t tokens, uint64_t until_ns, uint32_t part,
		    uint64_t id);

/*
 * Follow the leaves of @limiter that this host has, as of allowances_gain() and its kin.
 * learning_spare(): how many may go; UINT32_MAX: all.
 */
void learning_gain(struct limiter *limiter, uint32_t leaves);
void learning_lose(struct limiter *limiter, uint32_t leaves);
void learning_bound(struct limiter *limiter, uint32_t leaves);
uint32_t learning_spare(const struct schedule *schedule, struct limiter *limiter);

/* Takes over a rate that another host has learnt, or that all have agreed on. */
void learning_adopt(const struct schedule *schedule, struct limiter *limiter,
		    const struct adapt_state *other);

/*
 * Restores the state that a predecessor had learnt, as far as the settings allow. The counters of
 * @limiter are its predecessor's, and its learning is not NULL.
 */
void learning_restore(const struct schedule *schedule, struct limiter *limiter,
		      const struct adapt_state *adapted, const struct backoff_state *pause);

/* Has allowances that a predecessor left, in limiter->learning, be of the leaves that are there. */
void learning_share(struct limiter *limiter);

/*
 * Returns when @limiter, which learns, looks again whether to grow, if a reader waits; or NEVER_NS.
 */
uint64_t learning_next_ns(const struct limiter *limiter);

/* Tells whether neither pause nor allowance is against @tokens now. Refill first. */
bool learning_allows(const struct learning *learning, uint64_t tokens, uint64_t now_ns);

/* Returns until when one of these is against @tokens; 0: none is. Refill first. */
uint64_t learning_when(const struct learning *learning, uint64_t tokens);

/* Returns the learnt tokens a second, of this host's share; infinity: no limit. */
double learning_rate(const struct limiter *limiter);

#endif
