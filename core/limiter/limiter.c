/* limiter - one rate limiter, see limiter.h. */
#include "core/limiter/limiter.h"
#include "core/limiter/learning.h"
#include "core/limiter/slots.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

struct limiter *limiter_of_due(struct heap_node *node)
{
	return container_of(node, struct limiter, due);
}

/*
 * One limiter's own state, regardless of its ancestors: its buckets, that of the learnt rate, its
 * enforcement and its pause.
 */

/* Lets flow in the tokens due at the time of the step. */
static void refill_own(const struct schedule *schedule, struct limiter *limiter)
{
	for (unsigned int i = 0; i < limiter->bucket_count; i++)
		bucket_refill(&limiter->buckets[i], schedule->now_ns);
	if (limiter->learning)
		learning_refill(schedule, limiter);
}

/*
 * Refills, and lets the learnt rate grow if it is time: where deadlines are set anew after that, or
 * there is none.
 */
static void grow_own(const struct schedule *schedule, struct limiter *limiter)
{
	refill_own(schedule, limiter);
	if (limiter->learning)
		learning_run(schedule, limiter);
}

/*
 * Returns bucket @i of those that count: one a limit, and that of the learnt rate. NULL: no more.
 */
static struct bucket *own_bucket(const struct limiter *limiter, unsigned int i)
{
	if (i < limiter->bucket_count)
		return &limiter->buckets[i];
	if (i == limiter->bucket_count && limiter->learning && limiter->learning->limited)
		return &limiter->learning->bucket;
	return NULL;
}

/* Tells whether it would grant @tokens now if it enforces. */
static bool own_allows(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	const struct bucket *bucket;

	if (limiter->learning && limiter->learning->pause.until_ns > now_ns)
		return false;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		if (!bucket_has(bucket, tokens))
			return false;
	}
	return true;
}

/* Returns how many of @most tokens its buckets have now. */
static uint64_t own_tokens(const struct limiter *limiter, uint64_t most)
{
	const struct bucket *bucket;

	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		uint64_t tokens = bucket_tokens(bucket);

		most = tokens < most ? tokens : most;
	}
	return most;
}

/* Tells whether it grants @tokens now. */
static bool own_has(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	switch (limiter->settings->enforcement) {
	case ENFORCEMENT_ENFORCE:
		return own_allows(limiter, tokens, now_ns);
	case ENFORCEMENT_SHADOW:
	case ENFORCEMENT_OPEN:
		return true;
	case ENFORCEMENT_CLOSED:
	case ENFORCEMENT_COUNT:
		break;
	}
	return false;
}

/* Returns when it has @tokens; NEVER_NS if never. */
static uint64_t own_when_ns(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;
	const struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_CLOSED)
		return NEVER_NS;
	if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
		return now_ns;
	if (limiter->learning && limiter->learning->pause.until_ns > now_ns)
		at_ns = limiter->learning->pause.until_ns;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		uint64_t bucket_ns = bucket_when(bucket, tokens, now_ns);

		at_ns = bucket_ns > at_ns ? bucket_ns : at_ns;
	}
	return at_ns;
}

/* Takes @tokens; nothing if it is open. */
static void take_own(struct limiter *limiter, uint64_t tokens)
{
	struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_OPEN)
		return;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
		bucket_take(bucket, tokens);
}

/* Puts @tokens back as far as there is room beside @others; nothing if it is open. */
static void put_own(struct limiter *limiter, uint64_t tokens, uint64_t others)
{
	struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_OPEN)
		return;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
		bucket_put(bucket, tokens, others);
}

/* Turns for tokens. */

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
		for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
			bucket_take_back(bucket, current->tokens);
		limiter->aside = 0;
	} else if (schedule->parks && before && before->ticket == schedule->parks) {
		for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
			bucket_set_aside(bucket);
		limiter->aside = before->ticket;
	}
}

/*
 * Makes room for the tokens of @current, whose turn it is (NULL: no waiter's). Where an earlier
 * reader comes in between, the tokens saved up for the reader before stay: spilled each time, they
 * might never be enough.
 */
static void give_turn(const struct schedule *schedule, struct limiter *limiter,
		      const struct waiter *current)
{
	const struct waiter *before = limiter->turns.current;
	bool keep = before && current && current->ticket <= before->ticket;
	uint64_t tokens = current ? current->tokens : 0;
	struct bucket *bucket;

	if (limiter->aside || schedule->parks)
		move_aside(schedule, limiter, current);
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		if (!keep || tokens > bucket->awaited)
			bucket_await(bucket, tokens);
	}
}

/* Returns the tokens of @waiter, which can have its least: as many as all limiters above have. */
static uint64_t amount_of(const struct schedule *schedule, const struct waiter *waiter)
{
	uint64_t amount = waiter->most;

	for (struct limiter *l = waiter->limiter; l && amount > waiter->tokens; l = l->parent) {
		refill_own(schedule, l);
		if (l->settings->enforcement == ENFORCEMENT_ENFORCE)
			amount = own_tokens(l, amount);
	}
	return amount > waiter->tokens ? amount : waiter->tokens;
}

/* Takes of the tokens of @waiter those that a limiter in shadow has, and counts the others. */
static void take_in_shadow(const struct schedule *schedule, struct limiter *limiter,
			   const struct waiter *waiter)
{
	uint64_t there = 0;

	if (own_allows(limiter, waiter->tokens, schedule->now_ns))
		there = own_tokens(limiter, waiter->granted);
	limiter->counters[COUNTER_SHADOWED] += waiter->granted - there;
	take_own(limiter, there);
}

/*
 * Takes the tokens of @waiter all along the path to the root. A waiter that was put forward may
 * have waited above for long: tokens that found no room since are spilled before the take makes
 * room.
 */
static void take_path(const struct schedule *schedule, struct waiter *waiter)
{
	waiter->granted = amount_of(schedule, waiter);
	for (struct limiter *l = waiter->limiter; l; l = l->parent) {
		refill_own(schedule, l);
		l->counters[COUNTER_GRANTED] += waiter->granted;
		if (l->settings->enforcement == ENFORCEMENT_SHADOW)
			take_in_shadow(schedule, l, waiter);
		else
			take_own(l, waiter->granted);
	}
}

static struct turns *turns_of(struct limiter *limiter)
{
	return &limiter->turns;
}

static bool offer_turn(const struct schedule *schedule, struct limiter *limiter,
		       const struct waiter *current)
{
	grow_own(schedule, limiter);
	give_turn(schedule, limiter, current);
	return current && own_has(limiter, current->tokens, schedule->now_ns);
}

static void take_granted(const struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *limiter = waiter->limiter;

	take_path(schedule, waiter);
	limiter->counters[COUNTER_SERVED]++;
	limiter->counters[COUNTER_DELAYED] += schedule->now_ns - waiter->asked_ns;
	for (; limiter; limiter = limiter->parent) {
		if (limiter->holding)
			limiter->holding->delayed_ns += schedule->now_ns - waiter->asked_ns;
	}
}

/* Sets or clears the time at which @limiter must be settled again. */
static void set_deadline(struct schedule *schedule, struct limiter *limiter, bool ready)
{
	const struct waiter *current = limiter->turns.current;
	uint64_t at_ns = NEVER_NS, learning_ns;

	if (current && !ready && !schedule->stopped)
		at_ns = own_when_ns(limiter, current->tokens, schedule->now_ns);
	/* A learnt rate that grows may make it sooner; a look that was due has been had by now. */
	learning_ns = limiter->learning ? learning_next_ns(limiter) : NEVER_NS;
	if (at_ns != NEVER_NS && learning_ns < at_ns)
		at_ns = learning_ns > schedule->now_ns ? learning_ns : schedule->now_ns + 1;
	assert(at_ns > schedule->now_ns);
	if (at_ns == NEVER_NS)
		heap_remove(&schedule->deadlines, &limiter->due);
	else
		heap_place(&schedule->deadlines, &limiter->due, at_ns);
}

static void answer_waiter(struct schedule *schedule, struct waiter *waiter, int outcome)
{
	if (waiter->is_poller)
		poller_answer(schedule, poller_of(waiter), outcome);
	else
		turns_answer(schedule, waiter, outcome);
}

const struct turn_rules LIMITER_TURNS = {
	turns_of, offer_turn, take_granted, answer_waiter, set_deadline,
};

void limiter_settle(struct schedule *schedule, struct limiter *limiter)
{
	turns_settle(schedule, limiter, &LIMITER_TURNS);
}

bool limiter_try(struct schedule *schedule, struct waiter *waiter)
{
	for (struct limiter *l = waiter->limiter; l; l = l->parent) {
		if (l->turns.current)
			return false;
		grow_own(schedule, l);
		if (!own_has(l, waiter->tokens, schedule->now_ns))
			return false;
	}
	take_path(schedule, waiter);
	waiter->limiter->counters[COUNTER_SERVED]++;
	return true;
}

bool limiter_ask(struct schedule *schedule, struct waiter *waiter, uint64_t expiry_ns)
{
	if (limiter_try(schedule, waiter))
		return true;
	if (waiter->expiry) {
		*waiter->expiry = (struct expiry){.waiter = waiter, .at_ns = waiter->expiry->at_ns};
		heap_insert(&schedule->expiries, &waiter->expiry->node, expiry_ns);
	}
	turns_join(schedule, waiter, &LIMITER_TURNS);
	return false;
}

static void hasten_expiry(struct schedule *schedule, const struct waiter *waiter)
{
	struct expiry *expiry = waiter->expiry;

	if (expiry && expiry->node.key > expiry->at_ns)
		heap_place(&schedule->expiries, &expiry->node, expiry->at_ns);
}

void limiter_hasten(struct schedule *schedule, struct limiter *limiter)
{
	struct heap_node *turn = limiter->turns.queue.returned.root;

	for (const struct waiter *w = list_first(&limiter->turns.queue.once, struct waiter, once);
	     w; w = list_next(w, once))
		hasten_expiry(schedule, w);
	for (; turn; turn = heap_next(turn))
		hasten_expiry(schedule, waiter_of_turn(turn));
}

void limiter_expire(struct schedule *schedule, struct waiter *waiter)
{
	turns_leave(schedule, waiter, &LIMITER_TURNS);
	waiter->limiter->counters[COUNTER_REFUSED]++;
	answer_waiter(schedule, waiter, -EAGAIN);
	limiter_settle(schedule, waiter->limiter);
}

void limiter_refund(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	limiter->counters[COUNTER_SERVED]--;
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_GRANTED] -= tokens;
		refill_own(schedule, l);
		put_own(l, tokens, 0);
	}
	limiter_settle(schedule, limiter);
}

bool limiter_owes(const struct limiter *limiter, uint64_t tokens)
{
	/* Counters of the root are not kept for a successor. */
	for (; limiter && !limiter_is_root(limiter); limiter = limiter->parent) {
		uint64_t taken = limiter->counters[COUNTER_GRANTED] +
				 limiter->counters[COUNTER_CHARGED];

		if (taken < tokens || taken - tokens < limiter->counters[COUNTER_RETURNED])
			return false;
	}
	return true;
}

void limiter_charge(struct schedule *schedule, struct limiter *limiter, int64_t tokens)
{
	enum counter counter = tokens < 0 ? COUNTER_RETURNED : COUNTER_CHARGED;
	uint64_t size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;

	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[counter] += size;
		refill_own(schedule, l);
		if (tokens < 0)
			put_own(l, size, 0);
		else
			take_own(l, size);
	}
	limiter_settle(schedule, limiter);
}

void limiter_return(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_RETURNED] += tokens;
		refill_own(schedule, l);
		put_own(l, tokens, l->polled);
	}
	limiter_settle(schedule, limiter);
}

void limiter_poll(struct schedule *schedule, struct poller *poller, uint64_t expiry_ns)
{
	poller_join(poller);
	if (limiter_ask(schedule, &poller->waiter, expiry_ns))
		poller_answer(schedule, poller, 0);
}

static void give_back_tokens(struct schedule *schedule, struct poller *poller)
{
	struct limiter *limiter = poller->waiter.limiter;

	(void)poller_fetch(schedule, poller);
	if (!limiter->removed)
		limiter_return(schedule, limiter, poller->waiter.granted);
}

void limiter_unpoll(struct schedule *schedule, struct poller *poller)
{
	bool waits = poller->state == POLLER_WAITS;

	if (waits)
		turns_leave(schedule, &poller->waiter, &LIMITER_TURNS);
	poller_part(schedule, poller);
	if (waits)
		limiter_settle(schedule, poller->waiter.limiter);
	else if (poller->state == POLLER_CALLED)
		give_back_tokens(schedule, poller);
}

void limiter_uncall(struct schedule *schedule)
{
	struct poller *poller = list_first(&schedule->called, struct poller, called);

	/* It is told before the waiters that have its tokens now. */
	if (!poller->answered)
		poller_tell(schedule, poller, -ETIMEDOUT);
	give_back_tokens(schedule, poller);
}

void limiter_hear(struct schedule *schedule, struct limiter *limiter, const struct outcome *outcome)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		learning_hear(schedule, l, outcome);
		/* A learnt rate answers throttling itself. */
		if (outcome->kind == OUTCOME_THROTTLED &&
		    (!l->learning || l->settings->adapt.kind == ADAPT_NONE))
			slots_throttled(schedule, l);
	}
	limiter_settle(schedule, limiter);
}

void limiter_adopt(struct schedule *schedule, struct limiter *limiter,
		   const struct adapt_state *other)
{
	refill_own(schedule, limiter);
	learning_adopt(schedule, limiter, other);
	limiter_settle(schedule, limiter);
}

void limiter_evict(struct schedule *schedule, struct limiter *limiter)
{
	turns_evict(schedule, limiter, &LIMITER_TURNS);
	poller_forget(limiter);
	heap_remove(&schedule->deadlines, &limiter->due);
	turns_evict(schedule, limiter, &SLOTS_TURNS);
}

void limiter_empty(struct schedule *schedule, struct limiter *limiter)
{
	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];

		bucket_refill(bucket, schedule->now_ns);
		bucket_leave(bucket, 0);
	}
}

double limiter_tokens(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	const struct bucket *bucket;

	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		double level = (double)bucket->level - (double)bucket->aside +
			       (double)bucket->part / (double)bucket->flow.den;

		least = level < least ? level : least;
	}
	return least;
}

/* Forecasts. */

uint64_t limiter_when(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	static const uint64_t most = UINT64_C(1) << 61; /* more, on top of a debt, does not fit */
	uint64_t at_ns = schedule->now_ns;

	for (; limiter; limiter = limiter->parent) {
		uint64_t ahead = 0, own_ns;

		/* While it is no waiter's turn, the waiters below lack tokens of their own. */
		if (limiter->turns.current)
			ahead = limiter->turns.wanted < most ? limiter->turns.wanted : most;

		refill_own(schedule, limiter);
		own_ns = own_when_ns(limiter, ahead + tokens, schedule->now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

uint64_t limiter_when_ahead(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (; limiter; limiter = limiter->parent) {
		uint64_t own_ns = own_when_ns(limiter, tokens, now_ns);

		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* Returns when the whole limiter would have @tokens, if none were taken. */
static uint64_t when_whole(const struct settings *settings, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		struct bucket bucket;
		uint64_t own_ns;

		bucket_init(&bucket, &limit->rate, limit->burst ? limit->burst : settings->burst,
			    settings->release_interval_ns, now_ns);
		bucket_fill(&bucket);
		own_ns = bucket_when(&bucket, tokens, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* Tells whether this host of a fleet holds nothing of @limiter. */
static bool is_without(const struct limiter *limiter)
{
	const struct holding *holding = limiter->holding;

	return holding && !holding->usable && !holding->reserve_usable;
}

uint64_t limiter_when_leased(struct schedule *schedule, const struct limiter *limiter,
			     uint64_t tokens)
{
	uint64_t at_ns = schedule->now_ns, now_ns = at_ns, ahead = 0;

	for (; limiter; limiter = limiter->parent) {
		uint64_t own_ns;

		ahead = limiter->turns.wanted < TOKENS_MAX ? limiter->turns.wanted : TOKENS_MAX;
		if (is_without(limiter) && limiter->settings->enforcement == ENFORCEMENT_ENFORCE)
			own_ns = when_whole(limiter->holding->settings, ahead + tokens, now_ns);
		else
			own_ns = own_when_ns(limiter, ahead + tokens, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* Returns the burst of limit @i of @limiter, in a fleet that of all hosts together. */
static uint64_t whole_burst(const struct limiter *limiter, uint32_t i)
{
	const struct holding *holding = limiter->holding;

	if (holding && i < holding->settings->limit_count)
		return settings_burst(holding->settings, i);
	return limiter->buckets[i].burst;
}

bool limiter_can_hold(const struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
		if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = 0; i < limiter->bucket_count; i++) {
			if (tokens > whole_burst(limiter, i) && tokens > limiter->buckets[i].batch)
				return false;
		}
	}
	return true;
}
