/* limiter - one rate limiter, see limiter.h. */
#include "limiter.h"
#include "holding.h"
#include "keys.h"
#include "learning.h"
#include "slots.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct limiter *limiter_of_turn(struct heap_node *node)
{
	return (struct limiter *)((char *)node - offsetof(struct limiter, turn));
}

struct limiter *limiter_of_due(struct heap_node *node)
{
	return (struct limiter *)((char *)node - offsetof(struct limiter, due));
}

void limiter_settings(const struct limiter *limiter, struct settings *settings)
{
	if (limiter->holding) {
		*settings = limiter->holding->settings;
		return;
	}
	*settings = (struct settings){
		.limit_count = limiter->bucket_count,
		.partitions = limiter->partition_setting,
		.burst = limiter->burst,
		.interval_ns = limiter->interval_ns,
		.lease_ns = limiter->lease_ns,
		.reserve_rate = limiter->extra->reserve_rate,
		.reserve_hosts = limiter->extra->reserve_hosts,
		.mode = (enum limiter_mode)limiter->mode,
		.degraded = limiter->degraded,
		.key_rate = limiter->extra->key_rate,
		.key_burst = limiter->extra->key_burst,
		.keys_max = limiter->extra->keys_max,
	};
	if (limiter->learning) {
		settings->adapt = limiter->learning->adapt;
		settings->backoff = limiter->learning->backoff;
	}
	if (limiter->slots)
		settings->slots = limiter->slots->setting;
	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		const struct bucket *bucket = &limiter->buckets[i];

		settings->limits[i].rate = bucket->rate;
		settings->limits[i].burst = limiter->own_bursts >> i & 1 ? bucket->burst : 0;
	}
}

static void refill(const struct schedule *schedule, struct limiter *limiter)
{
	for (unsigned int i = 0; i < limiter->bucket_count; i++)
		bucket_refill(&limiter->buckets[i], schedule->now_ns);
	if (limiter->learning)
		learning_refill(schedule, limiter);
}

/* Likewise, and what is learnt may grow: where deadlines are set anew after that, or there is none. */
static void refill_and_grow(const struct schedule *schedule, struct limiter *limiter)
{
	refill(schedule, limiter);
	if (limiter->learning)
		learning_run(schedule, limiter);
}

/* The buckets that count: one for each limit, and that of what was learnt. NULL: no more. */
static struct bucket *bucket_at(const struct limiter *limiter, unsigned int i)
{
	if (i < limiter->bucket_count)
		return &limiter->buckets[i];
	if (i == limiter->bucket_count && limiter->learning && limiter->learning->limited)
		return &limiter->learning->bucket;
	return NULL;
}

/*
 * Makes it the turn of @current (NULL: nobody's). Where an earlier reader comes in between, what was
 * saved up for the one whose turn it was stays: spilled each time, it might never be enough.
 */
static void give_turn(struct limiter *limiter, struct waiter *current)
{
	const struct waiter *before = limiter->current;
	bool keep = before && current && current->ticket <= before->ticket;
	uint64_t tokens = current ? current->tokens : 0;

	struct bucket *bucket;

	limiter->current = current;
	for (unsigned int i = 0; (bucket = bucket_at(limiter, i)); i++) {
		if (!keep || tokens > bucket->awaited)
			bucket_await(bucket, tokens);
	}
}

/* Whether it would grant @tokens now if it enforces. */
static bool allows(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	const struct bucket *bucket;

	if (limiter->learning && limiter->learning->pause.until_ns > now_ns)
		return false;
	for (unsigned int i = 0; (bucket = bucket_at(limiter, i)); i++) {
		if (!bucket_has(bucket, tokens))
			return false;
	}
	return true;
}

static bool has(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	switch ((enum limiter_mode)limiter->mode) {
	case MODE_ENFORCE:
		return allows(limiter, tokens, now_ns);
	case MODE_SHADOW:
	case MODE_OPEN:
		return true;
	case MODE_CLOSED:
	case MODE_COUNT:
		break;
	}
	return false;
}

/* When the limiter itself, regardless of its ancestors, has @tokens. */
static uint64_t when(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;
	const struct bucket *bucket;

	if (limiter->mode == MODE_CLOSED)
		return NEVER_NS;
	if (limiter->mode != MODE_ENFORCE)
		return now_ns;
	if (limiter->learning && limiter->learning->pause.until_ns > now_ns)
		at_ns = limiter->learning->pause.until_ns;
	for (unsigned int i = 0; (bucket = bucket_at(limiter, i)); i++) {
		uint64_t bucket_ns = bucket_when(bucket, tokens, now_ns);

		at_ns = bucket_ns > at_ns ? bucket_ns : at_ns;
	}
	return at_ns;
}

static void take(struct limiter *limiter, uint64_t tokens)
{
	struct bucket *bucket;

	if (limiter->mode == MODE_OPEN)
		return;
	for (unsigned int i = 0; (bucket = bucket_at(limiter, i)); i++)
		bucket_take(bucket, tokens);
}

static void put(struct limiter *limiter, uint64_t tokens)
{
	struct bucket *bucket;

	if (limiter->mode == MODE_OPEN)
		return;
	for (unsigned int i = 0; (bucket = bucket_at(limiter, i)); i++)
		bucket_put(bucket, tokens);
}

/* Whether this host of a fleet holds nothing of @limiter. */
static bool is_without(const struct limiter *limiter)
{
	const struct holding *holding = limiter->holding;

	return holding && !holding->usable && !holding->reserve_usable;
}

/*
 * Takes @tokens for a reader all along the path to the root. One that was put forward may have waited
 * above for long: what came in and found no room since is spilled before the room is made.
 */
static void take_path(const struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
		refill(schedule, limiter);
		limiter->counters[COUNTER_GRANTED] += tokens;
		if (limiter->mode == MODE_SHADOW && !allows(limiter, tokens, schedule->now_ns))
			limiter->counters[COUNTER_SHADOWED] += tokens;
		else
			take(limiter, tokens);
	}
}

static void want(struct limiter *limiter, uint64_t more, uint64_t less)
{
	for (; limiter; limiter = limiter->parent)
		limiter->wanted += more - less;
}

/* Takes @waiter out of its queue, whatever the reason. */
static void leave(struct schedule *schedule, struct waiter *waiter)
{
	queue_remove(&waiter->limiter->queue, waiter);
	want(waiter->limiter, 0, waiter->tokens);
	if (waiter->expiry)
		heap_remove(&schedule->expiries, &waiter->expiry->node);
}

static void grant(struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *limiter = waiter->limiter;

	leave(schedule, waiter);
	take_path(schedule, limiter, waiter->tokens);
	limiter->counters[COUNTER_SERVED]++;
	limiter->counters[COUNTER_DELAYED] += schedule->now_ns - waiter->asked_ns;
	for (struct limiter *l = limiter; l; l = l->parent) {
		if (l->holding)
			l->holding->delayed_ns += schedule->now_ns - waiter->asked_ns;
	}
	waiter->outcome = 0;
	queue_append(&schedule->done, waiter);
}

/* The earliest of those who wait here and those whom the children put forward. */
static struct waiter *earliest(const struct limiter *limiter)
{
	struct waiter *own = limiter->queue.first;
	struct heap_node *turn = limiter->ready.root;

	if (turn && (!own || turn->key < own->ticket))
		return limiter_of_turn(turn)->current;
	return own;
}

/*
 * Sets or clears the time at which @limiter must be settled again. A watcher's holds while nothing
 * changes above. See wake_watchers().
 */
static void set_deadline(struct schedule *schedule, struct limiter *limiter, bool ready)
{
	uint64_t at_ns = NEVER_NS, learning_ns;

	if (limiter->current) {
		if (!ready && !schedule->stopped)
			at_ns = when(limiter, limiter->current->tokens, schedule->now_ns);
	} else if (limiter->watchers) {
		at_ns = limiter_when(schedule, limiter, 1);
		if (at_ns <= schedule->now_ns) {
			limiter_fire(schedule, limiter);
			at_ns = NEVER_NS;
		}
	}
	/* What is learnt may make it sooner; a look that was due has been had by now. */
	learning_ns = learning_next_ns(limiter);
	if (at_ns != NEVER_NS && learning_ns < at_ns)
		at_ns = learning_ns > schedule->now_ns ? learning_ns : schedule->now_ns + 1;
	assert(at_ns > schedule->now_ns);
	if (at_ns == NEVER_NS)
		heap_remove(&schedule->deadlines, &limiter->due);
	else
		heap_place(&schedule->deadlines, &limiter->due, at_ns);
}

/* What those who watch @limiter or below it watch for may come sooner now. */
static void wake_watchers(struct schedule *schedule, struct limiter *limiter)
{
	if (!limiter || !limiter->watched)
		return;
	if (limiter->watchers && !limiter->current)
		set_deadline(schedule, limiter, false);
	for (struct limiter *l = limiter->first_watched; l; l = l->next_watched)
		wake_watchers(schedule, l);
}

/*
 * Walks from @limiter to the root. What changes in a limiter changes nothing in its siblings and
 * children but for those who watch, so the path is all that needs a look. The root limits nothing:
 * whoever comes first there is granted, and the walk begins again where that reader waited.
 */
void limiter_settle(struct schedule *schedule, struct limiter *limiter)
{
	while (limiter) {
		struct waiter *current = earliest(limiter);
		bool emptied = limiter->current && !current, ready;

		refill_and_grow(schedule, limiter);
		give_turn(limiter, current);
		ready = current && !schedule->stopped &&
			has(limiter, current->tokens, schedule->now_ns);
		if (ready && limiter_is_root(limiter)) {
			limiter = current->limiter;
			grant(schedule, current);
			continue;
		}
		if (ready)
			heap_place(&limiter->parent->ready, &limiter->turn, current->ticket);
		else if (limiter->parent)
			heap_remove(&limiter->parent->ready, &limiter->turn);
		set_deadline(schedule, limiter, ready);
		if (emptied && !limiter_is_root(limiter))
			wake_watchers(schedule, limiter);
		limiter = limiter->parent;
	}
}

bool limiter_try(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		if (l->current)
			return false;
		refill_and_grow(schedule, l);
		if (!has(l, tokens, schedule->now_ns))
			return false;
	}
	take_path(schedule, limiter, tokens);
	limiter->counters[COUNTER_SERVED]++;
	return true;
}

bool limiter_ask(struct schedule *schedule, struct waiter *waiter, uint64_t expiry_ns)
{
	struct limiter *limiter = waiter->limiter;

	if (limiter_try(schedule, limiter, waiter->tokens))
		return true;
	waiter->ticket = ++schedule->tickets;
	waiter->asked_ns = schedule->now_ns;
	waiter->outcome = -EINPROGRESS;
	queue_append(&limiter->queue, waiter);
	want(limiter, waiter->tokens, 0);
	if (waiter->expiry) {
		*waiter->expiry = (struct expiry){.waiter = waiter, .at_ns = waiter->expiry->at_ns};
		heap_insert(&schedule->expiries, &waiter->expiry->node, expiry_ns);
	}
	/* One who comes behind others changes nothing for them. */
	if (limiter->queue.first == waiter)
		limiter_settle(schedule, limiter);
	return false;
}

void limiter_cancel(struct schedule *schedule, struct waiter *waiter)
{
	leave(schedule, waiter);
	waiter->limiter->counters[COUNTER_CANCELLED]++;
	if (waiter->limiter->current == waiter || waiter->limiter->watchers)
		limiter_settle(schedule, waiter->limiter);
}

void limiter_hasten(struct schedule *schedule, struct limiter *limiter)
{
	for (struct waiter *w = limiter->queue.first; w; w = w->next) {
		if (w->expiry && w->expiry->node.key > w->expiry->at_ns)
			heap_place(&schedule->expiries, &w->expiry->node, w->expiry->at_ns);
	}
}

void limiter_expire(struct schedule *schedule, struct waiter *waiter)
{
	leave(schedule, waiter);
	waiter->limiter->counters[COUNTER_REFUSED]++;
	waiter->outcome = -EAGAIN;
	queue_append(&schedule->done, waiter);
	limiter_settle(schedule, waiter->limiter);
}

/* Tokens were put back into @limiter and all above it. */
static void wake_path(struct schedule *schedule, struct limiter *limiter)
{
	while (limiter->parent && !limiter_is_root(limiter->parent))
		limiter = limiter->parent;
	if (!limiter_is_root(limiter))
		wake_watchers(schedule, limiter);
}

void limiter_refund(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	limiter->counters[COUNTER_SERVED]--;
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_GRANTED] -= tokens;
		refill(schedule, l);
		put(l, tokens);
	}
	limiter_settle(schedule, limiter);
	wake_path(schedule, limiter);
}

bool limiter_owes(const struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
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
		refill(schedule, l);
		if (tokens < 0)
			put(l, size);
		else
			take(l, size);
	}
	limiter_settle(schedule, limiter);
	if (tokens < 0)
		wake_path(schedule, limiter);
}

uint64_t limiter_when(struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	static const uint64_t most = UINT64_C(1) << 61; /* more, on top of a debt, does not fit */
	uint64_t at_ns = schedule->now_ns;

	for (; limiter; limiter = limiter->parent) {
		uint64_t ahead = 0, own_ns;

		/* If it is nobody's turn, those who wait below are out of tokens of their own. */
		if (limiter->current)
			ahead = limiter->wanted < most ? limiter->wanted : most;

		refill(schedule, limiter);
		own_ns = when(limiter, ahead + tokens, schedule->now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

uint64_t limiter_when_ahead(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (; limiter; limiter = limiter->parent) {
		uint64_t own_ns = when(limiter, tokens, now_ns);

		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

/* When the whole limiter would have @tokens, if nothing of it was taken. */
static uint64_t when_whole(const struct settings *settings, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		struct bucket bucket;
		uint64_t own_ns;

		bucket_init(&bucket, &limit->rate, limit->burst ? limit->burst : settings->burst,
			    settings->interval_ns, now_ns);
		bucket_fill(&bucket);
		own_ns = bucket_when(&bucket, tokens, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

uint64_t limiter_when_leased(struct schedule *schedule, const struct limiter *limiter,
			     uint64_t tokens)
{
	uint64_t at_ns = schedule->now_ns, now_ns = at_ns, ahead = 0;

	for (; limiter; limiter = limiter->parent) {
		uint64_t own_ns;

		ahead = limiter->wanted < TOKENS_MAX ? limiter->wanted : TOKENS_MAX;
		if (is_without(limiter) && limiter->mode == MODE_ENFORCE)
			own_ns = when_whole(&limiter->holding->settings, ahead + tokens, now_ns);
		else
			own_ns = when(limiter, ahead + tokens, now_ns);
		at_ns = own_ns > at_ns ? own_ns : at_ns;
	}
	return at_ns;
}

struct limiter_extra LIMITER_PLAIN = {
	.keys_max = KEYS_MAX_DEFAULT,
	.key_rate = {UINT64_MAX, NSEC_PER_SEC, 0, 0},
	.key_burst = 1,
};

static struct limiter_extra extra_of(const struct settings *settings)
{
	return (struct limiter_extra){
		.reserve_rate = settings->reserve_rate,
		.reserve_hosts = settings->reserve_hosts,
		.keys_max = settings->keys_max,
		.key_rate = settings->key_rate,
		.key_burst = settings->key_burst,
	};
}

static bool is_plain(const struct settings *settings)
{
	return !settings->reserve_hosts && settings->keys_max == LIMITER_PLAIN.keys_max &&
	       settings->key_burst == LIMITER_PLAIN.key_burst &&
	       rate_is_unlimited(&settings->key_rate);
}

int limiter_prepare(struct limiter *limiter, const struct settings *settings)
{
	struct limiter_extra *extra;

	if (limiter->extra != &LIMITER_PLAIN || is_plain(settings))
		return 0;
	extra = malloc(sizeof(*extra));
	if (!extra)
		return -ENOMEM;
	*extra = LIMITER_PLAIN;
	limiter->extra = extra;
	return 0;
}

void limiter_configure(struct schedule *schedule, struct limiter *limiter,
		       const struct settings *settings, struct bucket *buckets, bool full)
{
	struct bucket *old = limiter->buckets;
	struct settings share;

	/* In a fleet the buckets know of this host's share alone, and what is in them came with it. */
	if (limiter->holding) {
		limiter->holding->settings = *settings;
		holding_share(limiter->holding, &share);
		settings = &share;
		/* A new limit is full, as far as it is this host's. */
		full = full && limiter->holding->usable;
	}
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		uint64_t burst = limit->burst ? limit->burst : settings->burst;

		if (i < limiter->bucket_count) {
			buckets[i] = old[i];
			bucket_retune(&buckets[i], &limit->rate, burst, settings->interval_ns,
				      schedule->now_ns);
			continue;
		}
		bucket_init(&buckets[i], &limit->rate, burst, settings->interval_ns,
			    schedule->now_ns);
		if (full)
			bucket_fill(&buckets[i]);
	}
	limiter->own_bursts = 0;
	for (uint32_t i = 0; i < settings->limit_count; i++)
		limiter->own_bursts |= (uint8_t)((settings->limits[i].burst != 0) << i);
	limiter->buckets = buckets;
	limiter->bucket_count = (uint8_t)settings->limit_count;
	limiter->mode = (uint8_t)settings->mode;
	limiter->degraded = settings->degraded;
	limiter->partition_setting = (uint16_t)settings->partitions;
	limiter->burst = settings->burst;
	limiter->interval_ns = settings->interval_ns;
	limiter->lease_ns = settings->lease_ns;
	if (limiter->extra != &LIMITER_PLAIN)
		*limiter->extra = extra_of(settings);
	if (old != buckets)
		free(old);
	learning_configure(schedule, limiter, settings);
	keys_follow(schedule, limiter, full);
	limiter_settle(schedule, limiter);
	wake_watchers(schedule, limiter);
	slots_configure(schedule, limiter, &settings->slots);
}

void limiter_reshare(struct schedule *schedule, struct limiter *limiter)
{
	struct settings settings = limiter->holding->settings;

	limiter_configure(schedule, limiter, &settings, limiter->buckets, false);
}

void limiter_hear(struct schedule *schedule, struct limiter *limiter, const struct outcome *outcome)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		learning_hear(schedule, l, outcome);
		/* Where a rate is felt for, throttling is answered by that. */
		if (outcome->kind == OUTCOME_THROTTLED &&
		    (!l->learning || l->learning->adapt.kind == ADAPT_NONE))
			slots_throttled(schedule, l);
	}
	limiter_settle(schedule, limiter);
}

void limiter_adopt(struct schedule *schedule, struct limiter *limiter,
		   const struct adapt_state *other)
{
	refill(schedule, limiter);
	learning_adopt(schedule, limiter, other);
	limiter_settle(schedule, limiter);
	wake_watchers(schedule, limiter);
}

void limiter_empty(struct schedule *schedule, struct limiter *limiter)
{
	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];

		bucket_refill(bucket, schedule->now_ns);
		bucket_leave(bucket, 0);
	}
}

void limiter_evict(struct schedule *schedule, struct limiter *limiter)
{
	while (limiter->queue.first) {
		struct waiter *waiter = limiter->queue.first;

		leave(schedule, waiter);
		waiter->outcome = -ENODEV;
		queue_append(&schedule->done, waiter);
	}
	limiter_settle(schedule, limiter);
	limiter_fire(schedule, limiter);
	heap_remove(&schedule->deadlines, &limiter->due);
	slots_evict(schedule, limiter);
}

double limiter_tokens(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	const struct bucket *bucket;

	for (unsigned int i = 0; (bucket = bucket_at(limiter, i)); i++) {
		double level = (double)bucket->level +
			       (double)bucket->part / (double)bucket->flow.den;

		least = level < least ? level : least;
	}
	return least;
}
