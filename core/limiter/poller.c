/* poller - programs that wait for tokens by poll(2), see poller.h. */
#include "core/limiter/keys.h"
#include "core/limiter/limiter.h"

#include <assert.h>
#include <errno.h>

void poller_init(struct poller *poller, struct limiter *limiter, uint64_t tokens)
{
	*poller = (struct poller){
		.waiter = {.limiter = limiter, .tokens = tokens, .is_poller = true}};
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

void poller_forget(struct limiter *limiter)
{
	keep_tokens(limiter, 0, limiter->polled);
}

static void call_poller(struct schedule *schedule, struct poller *poller)
{
	keep_tokens(poller->waiter.limiter, poller->waiter.tokens, 0);
	poller->state = POLLER_CALLED;
	poller->until_ns = schedule->now_ns + POLLER_NS;
	list_append(&schedule->called, &poller->called);
}

/* Ends the call of @poller: its tokens are no longer kept. */
static void end_call(struct schedule *schedule, struct poller *poller)
{
	list_remove(&schedule->called, &poller->called);
	if (!poller->waiter.limiter->removed)
		keep_tokens(poller->waiter.limiter, 0, poller->waiter.tokens);
	poller->state = POLLER_AWAY;
}

static void tell_poller(struct schedule *schedule, struct poller *poller, int outcome)
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
	tell_poller(schedule, poller, outcome);
}

void poller_limit(struct poller *poller, struct expiry *expiry, uint64_t within_ns)
{
	poller->waiter.expiry = expiry;
	poller->within_ns = within_ns;
}

void poller_wait(struct schedule *schedule, struct poller *poller, uint64_t expiry_ns)
{
	assert(poller->state == POLLER_AWAY && !poller->answered);
	poller->state = POLLER_WAITS;
	count_pollers(poller->waiter.limiter, 1, 0);
	if (limiter_ask(schedule, &poller->waiter, expiry_ns))
		poller_answer(schedule, poller, 0);
}

bool poller_fetch(struct schedule *schedule, struct poller *poller)
{
	if (poller->state != POLLER_CALLED)
		return false;
	end_call(schedule, poller);
	return true;
}

static void give_back_tokens(struct schedule *schedule, struct poller *poller)
{
	struct limiter *limiter = poller->waiter.limiter;

	end_call(schedule, poller);
	if (!limiter->removed)
		limiter_return(schedule, limiter, poller->waiter.tokens);
}

void poller_expire(struct schedule *schedule)
{
	struct poller *poller = list_first(&schedule->called, struct poller, called);

	/* It is told before the waiters that have its tokens now. */
	if (!poller->answered)
		tell_poller(schedule, poller, -ETIMEDOUT);
	give_back_tokens(schedule, poller);
}

void poller_leave(struct schedule *schedule, struct poller *poller)
{
	struct limiter *limiter = poller->waiter.limiter;

	if (poller->answered)
		queue_remove(&schedule->done, &poller->waiter);
	poller->answered = false;
	if (poller->state == POLLER_WAITS) {
		turns_leave(schedule, &poller->waiter);
		count_pollers(limiter, 0, 1);
		poller->state = POLLER_AWAY;
		limiter_settle(schedule, limiter);
	} else if (poller->state == POLLER_CALLED) {
		give_back_tokens(schedule, poller);
	}
}

/* Does as poller_end_hopeless(), for pollers of @limiter itself. */
static void end_own(struct schedule *schedule, struct limiter *limiter)
{
	struct waiter *next;
	bool any = false;

	for (struct waiter *w = list_first(&limiter->turns.queue.once, struct waiter, once); w;
	     w = next) {
		next = list_next(w, once);
		if (!w->is_poller || limiter_can_hold(limiter, w->tokens))
			continue;
		turns_leave(schedule, w);
		poller_answer(schedule, poller_of(w), -EINVAL);
		any = true;
	}
	if (any)
		limiter_settle(schedule, limiter);
}

void poller_end_hopeless(struct schedule *schedule, struct limiter *limiter)
{
	if (!limiter->pollers)
		return;
	end_own(schedule, limiter);
	for (uint32_t i = 0; i < limiter->partition_room; i++) {
		if (limiter->partitions[i])
			end_own(schedule, limiter->partitions[i]);
	}
	for (struct limiter *key = NULL; (key = keys_next_open(limiter, key));)
		end_own(schedule, key);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		poller_end_hopeless(schedule, l);
}
