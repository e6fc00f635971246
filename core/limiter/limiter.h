/*
 * limiter - one rate limiter: settings, buckets, queue, counters, and its place in the tree.
 *
 * A token of a limiter is also a token of each of its ancestors, so a reader is served at the
 * instant at which all of them have enough. Readers have their turns in the order of arrival, see
 * turns.h; so a take larger than a burst is never starved by small ones that came later.
 *
 * Everything here is as of the time of the step that the engine is in; see engine.h, the entry.
 */
#ifndef RATEFS_CORE_LIMITER_H
#define RATEFS_CORE_LIMITER_H

#include "core/limiter/adapt.h"
#include "core/limiter/bucket.h"
#include "core/limiter/feedback.h"
#include "core/limiter/holding.h"
#include "core/limiter/learning.h"
#include "core/limiter/poller.h"
#include "core/limiter/shape.h"
#include "core/limiter/turns.h"
#include "core/limiter/units.h"
#include "core/limiter/users.h"

extern const struct turn_rules LIMITER_TURNS; /* of waiters for tokens */

/* Returns when @setting was last changed, in seconds since the engine began. */
uint32_t limiter_changed_s(const struct limiter *limiter, enum setting_id setting);

/*
 * Sets when @limiter was made and when each setting was last changed (@changed_s; NULL: when it was
 * made). 0 or -ENOMEM.
 */
int limiter_set_times(struct limiter *limiter, uint32_t made_s, const uint32_t *changed_s);

/*
 * Makes @settings, a reference of the pool's that is taken over, those of @limiter from now on.
 * @buckets is memory for settings->limit_count of them, taken over (NULL for none). The levels of
 * limits that were there before stay; new limits start full, or empty unless @full.
 */
void limiter_configure(struct schedule *schedule, struct limiter *limiter,
		       const struct settings *settings, struct bucket *buckets, bool full);

/*
 * Has the buckets, and all else, follow limiter->settings, which were @old before. @buckets and
 * @full are as those of limiter_configure().
 */
void limiter_follow(struct schedule *schedule, struct limiter *limiter, const struct settings *old,
		    struct bucket *buckets, bool full);

/*
 * Notes how work in @limiter went, and so in all above it; of a quota that the service told of, in
 * @limiter alone, whose learning is not NULL then. limiter_settle() has to follow.
 */
void limiter_hear(struct schedule *schedule, struct limiter *limiter,
		  const struct outcome *outcome);

/* Takes over what another host has learnt of the service behind @limiter. */
void limiter_adopt(struct schedule *schedule, struct limiter *limiter,
		   const struct adapt_state *other);

/* Configures the buckets from the holding: this host's share of @limiter has changed. */
void limiter_reshare(struct schedule *schedule, struct limiter *limiter);

/* Empties the buckets; a debt stays. */
void limiter_empty(struct schedule *schedule, struct limiter *limiter);

/*
 * Asks for the tokens of @waiter. True: granted, at once. False: it waits, and comes
 * back through schedule->done, at @expiry_ns at the latest if it has an expiry. A waiter that has
 * taken its place again waits there, not at the end.
 */
bool limiter_ask(struct schedule *schedule, struct waiter *waiter, uint64_t expiry_ns);

/* Grants the tokens of @waiter if they can be had now without overtaking another waiter. */
bool limiter_try(struct schedule *schedule, struct waiter *waiter);

/*
 * Puts back @tokens and @amounts (or NULL) that were kept for a poller of @limiter and are no
 * longer counted in `polled`, as far as each burst has room for them beside the tokens that are
 * kept.
 */
void limiter_return(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		    const struct amounts *amounts);

/*
 * Puts @poller, which is away, into the queue. It may be called at once. With an expiry it is
 * answered with -EAGAIN at @expiry_ns.
 */
void limiter_poll(struct schedule *schedule, struct poller *poller, uint64_t expiry_ns);

/* Ends the place of @poller, if it has one. It is in no list afterwards. */
void limiter_unpoll(struct schedule *schedule, struct poller *poller);

/*
 * Gives back the tokens of the poller that was called first: it is on schedule->done, -ETIMEDOUT.
 */
void limiter_uncall(struct schedule *schedule);

/* Ends the waiting of @waiter, whose time is up, and counts it as refused. */
void limiter_expire(struct schedule *schedule, struct waiter *waiter);

/*
 * Cuts deadlines that were extended for a search back to what readers, or openers, asked for: of
 * those in @queue, or of @waiter.
 */
void limiter_hasten(struct schedule *schedule, const struct queue *queue);
void limiter_hasten_waiter(struct schedule *schedule, const struct waiter *waiter);

/* Undoes a grant of @tokens, and @amounts (or NULL), that never reached its reader. */
void limiter_refund(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		    const struct amounts *amounts);

/*
 * Tells whether @tokens can come back: so many were taken, here and all the way up, and have not
 * come back yet.
 */
bool limiter_owes(const struct limiter *limiter, uint64_t tokens);

/* Takes what @charge says, whether it is there or not, and puts back what it returns. */
void limiter_charge(struct schedule *schedule, struct limiter *limiter,
		    const struct charge *charge);

/*
 * Returns when @tokens, and @amounts (or NULL), asked for now would be granted, as things stand;
 * NEVER_NS if never.
 */
uint64_t limiter_when(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		      const struct amounts *amounts);

/* One limiter's own state, regardless of those above it. */

/* Lets flow in the tokens due at the time of the step. */
void limiter_refill(const struct schedule *schedule, struct limiter *limiter);

/*
 * Returns bucket @i of those that count for takes of the unit without a name: one a limit, and that
 * of the learnt rate. NULL: no more.
 */
static inline struct bucket *limiter_bucket(const struct limiter *limiter, unsigned int i)
{
	if (i < limiter->plain_count)
		return &limiter->buckets[i];
	if (i == limiter->plain_count && limiter->learning && limiter->learning->limited)
		return &limiter->learning->bucket;
	return NULL;
}

/*
 * Returns the time from the last step, at which it was refilled, until the next window of the
 * calendar begins; NEVER_NS: it has no windows.
 */
uint64_t limiter_reset_ns(const struct limiter *limiter);

/* Returns how many of @most tokens its buckets have now. */
uint64_t limiter_own_tokens(const struct limiter *limiter, uint64_t most);

/* Returns when it has @tokens; NEVER_NS if never. */
uint64_t limiter_own_when(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns);

/* Returns when it has what the waiter wants whose turn it is, which there is; NEVER_NS: never. */
uint64_t limiter_turn_when(const struct limiter *limiter, uint64_t now_ns);

/* Serves all waiters that can be served at schedule->now_ns, and sets deadlines of the others. */
void limiter_settle(struct schedule *schedule, struct limiter *limiter);

/*
 * Tells whether @limiter and those above it can have @tokens, and @amounts (or NULL), at once while
 * no reader waits: as much as idle ones save up, in a fleet with all partitions. A larger take is
 * saved up only for a reader that waits.
 */
bool limiter_can_hold(const struct limiter *limiter, uint64_t tokens,
		      const struct amounts *amounts);

/* Returns the burst of limit @i of @limiter, in a fleet that of all hosts together. */
uint64_t limiter_whole_burst(const struct limiter *limiter, uint32_t i);

/*
 * Tells whether @limiter and those above it can have @tokens at any time: no window, strict or of
 * the calendar, and in a fleet that of all hosts, is of fewer.
 */
bool limiter_can_ever(const struct limiter *limiter, uint64_t tokens,
		      const struct amounts *amounts);

/* Ends everything in @limiter, which is about to go: waiters are answered with -ENODEV. */
void limiter_evict(struct schedule *schedule, struct limiter *limiter);

/* Returns the tokens in the emptiest of the buckets now, or left by the service, for gauges. */
double limiter_tokens(const struct limiter *limiter);

/* Returns the limiter in whose `due` a heap node is. */
struct limiter *limiter_of_due(struct heap_node *node);

#endif
