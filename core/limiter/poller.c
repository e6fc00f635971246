/* poller - programs that wait for tokens by poll(2), see poller.h. */
#include "core/limiter/poller.h"
#include "core/limiter/shape.h"
#include "core/limiter/units.h"

#include <assert.h>
#include <errno.h>

void poller_init(struct poller *poller, struct limiter *limiter, uint64_t tokens, uint64_t most,
		 const struct amounts *amounts)
{
	*poller = (struct poller){.waiter = {.limiter = limiter,
					     .tokens = tokens,
					     .most = most,
					     .amounts = amounts,
					     .is_poller = true}};
}

/* Counts a poller that joins the queue of @limiter, or leaves it, there and in those above. */
static void count_pollers(struct limiter *limiter, uint32_t more, uint32_t less)
{
	for (; limiter; limiter = limiter->parent)
		limiter->pollers += more - less;
}

/*
 * Counts tokens that are kept for a poller of @limiter, or are no longer, there and in those above.
 */
static void keep_tokens(struct limiter *limiter, uint64_t more, uint64_t less)
{
	for (; limiter; limiter = limiter->parent)
		limiter->polled += more - less;
}

/* Does so with the tokens and amounts that were granted to @poller. */
static void keep_grant(const struct poller *poller, bool more)
{
	const struct waiter *waiter = &poller->waiter;

	keep_tokens(waiter->limiter, more ? waiter->granted : 0, more ? 0 : waiter->granted);
	if (!waiter->amounts)
		return;
	for (struct limiter *l = waiter->limiter; l; l = l->parent)
		units_count(l, UNIT_POLLED, waiter->amounts, !more);
}

void poller_forget(struct limiter *limiter)
{
	keep_tokens(limiter, 0, limiter->polled);
}

static void call_poller(struct schedule *schedule, struct poller *poller)
{
	keep_grant(poller, true);
	poller->state = POLLER_CALLED;
	poller->until_ns = schedule->now_ns + POLLER_NS;
	list_append(&schedule->called, &poller->called);
}

/* Ends the call of @poller: its tokens are no longer kept. */
static void end_call(struct schedule *schedule, struct poller *poller)
{
	list_remove(&schedule->called, &poller->called);
	if (!poller->waiter.limiter->removed)
		keep_grant(poller, false);
	poller->state = POLLER_AWAY;
}

void poller_tell(struct schedule *schedule, struct poller *poller, int outcome)
{
	poller->waiter.outcome = outcome;
	poller->answered = true;
	queue_append(&schedule->done, &poller->waiter);
}

void poller_answer(struct schedule *schedule, struct poller *poller, int outcome)
{
	assert(poller->state == POLLER_WAITS && !poller->answered);
	count_pollers(poller->waiter.limiter, 0, 1);
	poller->late = outcome == -EAGAIN;
	if (outcome)
		poller->state = POLLER_AWAY;
	else
		call_poller(schedule, poller);
	poller_tell(schedule, poller, outcome);
}

void poller_limit(struct poller *poller, struct expiry *expiry, uint64_t within_ns)
{
	poller->waiter.expiry = expiry;
	poller->within_ns = within_ns;
}

void poller_join(struct poller *poller)
{
	assert(poller->state == POLLER_AWAY && !poller->answered);
	poller->state = POLLER_WAITS;
	count_pollers(poller->waiter.limiter, 1, 0);
}

bool poller_fetch(struct schedule *schedule, struct poller *poller)
{
	if (poller->state != POLLER_CALLED)
		return false;
	end_call(schedule, poller);
	return true;
}

void poller_part(struct schedule *schedule, struct poller *poller)
{
	if (poller->answered)
		queue_remove(&schedule->done, &poller->waiter);
	poller->answered = false;
	if (poller->state != POLLER_WAITS)
		return;
	count_pollers(poller->waiter.limiter, 0, 1);
	poller->state = POLLER_AWAY;
}
