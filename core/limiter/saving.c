/* saving - what a limiter saves up for waiters, see saving.h. */
#include "core/limiter/saving.h"
#include "core/limiter/limiter.h"
#include "core/limiter/units.h"

static struct saving *saving_of(const struct limiter *limiter)
{
	return limiter->turns.order ? &limiter->turns.order->saving : NULL;
}

static unsigned int depth_of(const struct limiter *limiter)
{
	unsigned int depth = 0;

	for (; limiter->parent; limiter = limiter->parent)
		depth++;
	return depth;
}

/*
 * Tells whether @saver comes before the waiter with @ticket in @asked, or a reader that comes there
 * now (LATEST_TICKET). The latter has the turn, or would have it: so where the sibling of the saver
 * is put forward, too, it comes first.
 */
static bool comes_first(const struct waiter *saver, const struct limiter *asked, uint64_t ticket,
			uint64_t now_ns)
{
	const struct limiter *meeting = saver->limiter;
	unsigned int depth = depth_of(meeting), other_depth = depth_of(asked);
	const struct turns *below = NULL, *other_below = NULL;
	struct contender first, other;

	while (meeting != asked) {
		unsigned int deepest = depth > other_depth ? depth : other_depth;

		if (depth == deepest) {
			below = &meeting->turns;
			meeting = meeting->parent;
			depth--;
		}
		if (other_depth == deepest) {
			other_below = &asked->turns;
			asked = asked->parent;
			other_depth--;
		}
	}
	/* A limiter's own queue is always put forward. */
	if (!below || heap_holds(&below->sibling->turn))
		return false;
	first = (struct contender){below->sibling, saver->ticket};
	other = (struct contender){other_below ? other_below->sibling : &meeting->turns.order->own,
				   ticket};
	return order_precedes(meeting->turns.order, &first, &other, now_ns);
}

/* Keeps tokens for the saver if @current has the turn without being before it. */
static void keep_tokens(const struct schedule *schedule, struct limiter *limiter,
			struct saving *saving, const struct waiter *current)
{
	const struct waiter *saver = saving->saver;
	uint64_t tokens = 0;
	bool keeps = saver && saver != current &&
		     (!current ||
		      comes_first(saver, current->limiter, current->ticket, schedule->now_ns));

	if (keeps)
		tokens = limiter_own_tokens(limiter, saver->tokens);
	if (!keeps || !saving->keeps || tokens < saving->kept)
		saving->kept = tokens;
	if (units_counts(limiter))
		units_keep(limiter, !keeps || !saving->keeps, keeps ? saver : NULL);
	saving->keeps = keeps;
}

/*
 * Notes that it is the turn of @current (NULL: of no waiter). Tells whether the room for a waiter
 * that has had its turn and still waits is to stay.
 */
static bool keep_room(struct saving *saving, const struct waiter *current)
{
	if (!saving->largest)
		saving->largest = saving->saver;
	if (saving->largest && saving->largest != current &&
	    (!current || saving->largest->tokens > current->tokens))
		return true;
	saving->largest = current;
	return false;
}

/*
 * Sets aside the tokens saved up for the waiter that is being interrupted, where it was its turn.
 * Takes them back when it is its turn again.
 */
static void move_aside(const struct schedule *schedule, struct limiter *limiter,
		       const struct waiter *current)
{
	const struct waiter *before = limiter->turns.current;
	struct bucket *bucket;

	if (limiter->aside && current && current->ticket == limiter->aside) {
		for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++)
			bucket_take_back(bucket, current->tokens);
		units_move_aside(limiter, current, true);
		limiter->aside = 0;
	} else if (schedule->parks && before && before->ticket == schedule->parks) {
		for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++)
			bucket_set_aside(bucket, current ? current->tokens : 0);
		units_move_aside(limiter, current, false);
		limiter->aside = before->ticket;
	}
}

void saving_turn(const struct schedule *schedule, struct limiter *limiter,
		 const struct waiter *current)
{
	const struct waiter *before = limiter->turns.current;
	struct saving *saving = saving_of(limiter);
	uint64_t tokens = current ? current->tokens : 0;
	struct bucket *bucket;
	bool keep;

	keep = saving ? keep_room(saving, current)
		      : before && current && current->ticket <= before->ticket;
	if (limiter->aside || schedule->parks)
		move_aside(schedule, limiter, current);
	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++) {
		if (!keep || tokens > bucket->awaited)
			bucket_await(bucket, tokens);
	}
	if (units_counts(limiter))
		units_turn(limiter, current, keep);
	if (saving)
		keep_tokens(schedule, limiter, saving, current);
}

void saving_begin(struct limiter *limiter, const struct waiter *current)
{
	struct saving *saving = saving_of(limiter);

	if (saving && !saving->keeps)
		saving->saver = current;
}

void saving_end(struct saving *saving, const struct waiter *waiter)
{
	if (saving->largest == waiter)
		saving->largest = NULL;
	if (saving->saver == waiter)
		saving->saver = NULL;
}

bool saving_holds(const struct limiter *limiter)
{
	const struct saving *saving = saving_of(limiter);

	return saving && saving->keeps && saving->saver;
}

bool saving_holds_from(const struct limiter *limiter, const struct limiter *asked, uint64_t now_ns)
{
	return saving_holds(limiter) &&
	       comes_first(saving_of(limiter)->saver, asked, LATEST_TICKET, now_ns);
}

uint64_t saving_beside(uint64_t tokens, uint64_t kept, uint64_t all)
{
	if (tokens >= all)
		return tokens;
	return all - tokens < kept ? all : tokens + kept;
}

uint64_t saving_needed(const struct limiter *limiter, uint64_t tokens)
{
	const struct saving *saving = saving_of(limiter);

	if (!saving || !saving->keeps || !saving->saver)
		return tokens;
	return saving_beside(tokens, saving->kept, saving->saver->tokens);
}

uint64_t saving_needed_by(const struct limiter *limiter, const struct limiter *asked,
			  uint64_t tokens, uint64_t now_ns)
{
	if (!saving_holds_from(limiter, asked, now_ns))
		return tokens;
	return saving_needed(limiter, tokens);
}

uint64_t saving_kept(const struct limiter *limiter)
{
	const struct saving *saving = saving_of(limiter);

	return saving && saving->saver ? saving->kept : 0;
}
