/* limiter - one rate limiter, see limiter.h. */
#include "core/limiter/limiter.h"
#include "core/limiter/forecast.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/saving.h"
#include "core/limiter/slots.h"
#include "core/limiter/usage.h"

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

void limiter_refill(const struct schedule *schedule, struct limiter *limiter)
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
	limiter_refill(schedule, limiter);
	if (limiter->learning)
		learning_run(schedule, limiter);
}

/* Tells whether it would grant @tokens now if it enforces. */
static bool own_allows(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	const struct bucket *bucket;

	if (limiter->learning && !learning_allows(limiter->learning, tokens, now_ns))
		return false;
	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++) {
		if (!bucket_has(bucket, tokens))
			return false;
	}
	return true;
}

uint64_t limiter_reset_ns(const struct limiter *limiter)
{
	uint64_t least_ns = NEVER_NS;

	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		uint64_t ns = window_reset_ns(&limiter->buckets[i]);

		least_ns = ns < least_ns ? ns : least_ns;
	}
	return least_ns;
}

/* Returns the tokens that the service behind @limiter still allows, @most at most. */
static uint64_t allowed_tokens(const struct limiter *limiter, uint64_t most)
{
	const struct allowance *least = limiter->learning
						? allowances_least(&limiter->learning->allowances)
						: NULL;

	if (!least)
		return most;
	return least->left < 0 ? 0 : (uint64_t)least->left < most ? (uint64_t)least->left : most;
}

uint64_t limiter_own_tokens(const struct limiter *limiter, uint64_t most)
{
	const struct bucket *bucket;

	most = allowed_tokens(limiter, most);

	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++) {
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

/* Tells whether it grants @amounts now; by @is_behind as units_have(). */
static bool own_has_units(const struct limiter *limiter, const struct amounts *amounts,
			  bool is_behind)
{
	return limiter->settings->enforcement != ENFORCEMENT_ENFORCE ||
	       units_have(limiter, amounts, is_behind);
}

uint64_t limiter_own_when(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;
	const struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_CLOSED)
		return NEVER_NS;
	if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
		return now_ns;
	if (limiter->learning && learning_when(limiter->learning, tokens) > now_ns)
		at_ns = learning_when(limiter->learning, tokens);
	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++) {
		uint64_t bucket_ns = bucket_when(bucket, tokens, now_ns);

		at_ns = bucket_ns > at_ns ? bucket_ns : at_ns;
	}
	return at_ns;
}

/* Takes @tokens; nothing if it is open. */
static void take_own(const struct schedule *schedule, struct limiter *limiter, uint64_t tokens)
{
	struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_OPEN)
		return;
	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++)
		bucket_take(bucket, tokens, schedule->step_ns);
	if (limiter->learning)
		allowances_take(&limiter->learning->allowances, tokens);
}

/* Puts @tokens back as far as there is room beside @others; nothing if it is open. */
static void put_own(struct limiter *limiter, uint64_t tokens, uint64_t others)
{
	struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_OPEN)
		return;
	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++)
		bucket_put(bucket, tokens, others);
	if (limiter->learning)
		allowances_put(&limiter->learning->allowances, tokens);
}

/* Does as put_own(), with @amounts. */
static void put_own_units(struct limiter *limiter, const struct amounts *amounts,
			  bool beside_polled)
{
	if (limiter->settings->enforcement != ENFORCEMENT_OPEN)
		units_put(limiter, amounts, beside_polled);
}

/* Turns for tokens. */

/*
 * Returns the tokens of @waiter, which can have its least: as many as all limiters above have.
 * *@fewest is that which has the fewest; NULL: each has its most.
 */
static uint64_t amount_of(const struct schedule *schedule, const struct waiter *waiter,
			  struct limiter **fewest)
{
	uint64_t amount = waiter->most;

	*fewest = NULL;
	for (struct limiter *l = waiter->limiter; l && amount > waiter->tokens; l = l->parent) {
		uint64_t kept = saving_kept(l), before = amount;

		limiter_refill(schedule, l);
		if (l->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		amount = limiter_own_tokens(l, amount + kept);
		amount -= amount < kept ? amount : kept;
		*fewest = amount < before ? l : *fewest;
	}
	return amount > waiter->tokens ? amount : waiter->tokens;
}

/* Takes of the tokens of @waiter those that a limiter in shadow has, and counts the others. */
static void take_in_shadow(const struct schedule *schedule, struct limiter *limiter,
			   const struct waiter *waiter)
{
	uint64_t there = 0;

	if (own_allows(limiter, waiter->tokens, schedule->now_ns) &&
	    (!waiter->amounts || units_have(limiter, waiter->amounts, false))) {
		there = limiter_own_tokens(limiter, waiter->granted);
		if (waiter->amounts)
			units_take(schedule, limiter, waiter->amounts);
	}
	limiter->counters[COUNTER_SHADOWED] += waiter->granted - there;
	take_own(schedule, limiter, there);
}

/*
 * Takes the tokens of @waiter all along the path to the root. A waiter that was put forward may
 * have waited above for long: tokens that found no room since are spilled before the take makes
 * room. Returns the limiter for want of whose tokens they are not waiter->most, or NULL.
 */
static struct limiter *take_path(const struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *fewest;

	waiter->granted = amount_of(schedule, waiter, &fewest);
	for (struct limiter *l = waiter->limiter; l; l = l->parent) {
		limiter_refill(schedule, l);
		l->counters[COUNTER_GRANTED] += waiter->granted;
		if (l->settings->enforcement == ENFORCEMENT_SHADOW)
			take_in_shadow(schedule, l, waiter);
		else
			take_own(schedule, l, waiter->granted);
	}
	return fewest;
}

/* Takes the amounts of @waiter, which has some, all along its path. */
static void take_units(const struct schedule *schedule, const struct waiter *waiter)
{
	for (struct limiter *l = waiter->limiter; l; l = l->parent) {
		units_count(l, UNIT_GRANTED, waiter->amounts, false);
		/* In shadow they are taken with the rest, if all is there. */
		if (l->settings->enforcement == ENFORCEMENT_ENFORCE)
			units_take(schedule, l, waiter->amounts);
	}
}

static bool offer_turn(const struct schedule *schedule, struct limiter *limiter,
		       const struct waiter *current)
{
	uint64_t needed;

	grow_own(schedule, limiter);
	if (limiter_bucket(limiter, 0) || units_counts(limiter))
		saving_turn(schedule, limiter, current);
	if (!current)
		return false;
	needed = saving_needed(limiter, current->tokens);
	if (own_has(limiter, needed, schedule->now_ns) &&
	    (!current->amounts || own_has_units(limiter, current->amounts, saving_holds(limiter))))
		return true;
	saving_begin(limiter, current);
	return false;
}

static void take_granted(const struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *limiter = waiter->limiter;

	(void)take_path(schedule, waiter);
	if (waiter->amounts)
		take_units(schedule, waiter);
	limiter->counters[COUNTER_SERVED]++;
	limiter->counters[COUNTER_DELAYED] += schedule->now_ns - waiter->asked_ns;
	usage_granted(schedule, waiter);
	for (; limiter; limiter = limiter->parent) {
		if (limiter->holding)
			limiter->holding->delayed_ns += schedule->now_ns - waiter->asked_ns;
	}
}

/* Has @limiter wait, or wait no more, until all that is due at this instant has been settled. */
static void gather(struct schedule *schedule, struct limiter *limiter, bool gathered)
{
	if (limiter->is_gathered)
		heap_remove(&schedule->gathered, &limiter->due);
	limiter->is_gathered = gathered;
	if (!gathered)
		return;
	heap_remove(&schedule->deadlines, &limiter->due);
	heap_insert(&schedule->gathered, &limiter->due, limiter->turns.current->ticket);
}

uint64_t limiter_turn_when(const struct limiter *limiter, uint64_t now_ns)
{
	const struct waiter *current = limiter->turns.current;
	uint64_t units_ns = now_ns, at_ns;

	assert(current);
	at_ns = limiter_own_when(limiter, saving_needed(limiter, current->tokens), now_ns);
	if (current->amounts && limiter->settings->enforcement == ENFORCEMENT_ENFORCE)
		units_ns = units_when(limiter, current->amounts, saving_holds(limiter), now_ns);
	return units_ns > at_ns ? units_ns : at_ns;
}

/* Notes whether a reader of a range waits for tokens of the limiter of @holding. */
static void note_range_waits(const struct schedule *schedule, struct holding *holding, bool waits)
{
	if (!waits && holding->range_since_ns)
		holding->range_waited_ns += schedule->now_ns - holding->range_since_ns;
	if (!waits || !holding->range_since_ns)
		holding->range_since_ns = waits ? schedule->now_ns : 0;
}

/* Sets or clears the time at which @limiter must be settled again. */
static void set_deadline(struct schedule *schedule, struct limiter *limiter, bool ready)
{
	const struct waiter *current = limiter->turns.current;
	bool gathered = ready && limiter_is_root(limiter->parent);
	uint64_t at_ns = NEVER_NS, learning_ns;

	if (limiter->holding)
		note_range_waits(schedule, limiter->holding,
				 current && !ready && current->most > current->tokens);
	if (gathered || limiter->is_gathered)
		gather(schedule, limiter, gathered);
	if (gathered)
		return;
	if (current && !ready && !schedule->stopped)
		at_ns = limiter_turn_when(limiter, schedule->now_ns);
	/* A learnt rate that grows may make it sooner; a look that was due has been had by now. */
	learning_ns = limiter->learning ? learning_next_ns(limiter) : NEVER_NS;
	if (at_ns != NEVER_NS && learning_ns < at_ns)
		at_ns = learning_ns > schedule->now_ns ? learning_ns : schedule->now_ns + 1;
	/* Then it is the turn of another waiter, also where this one has been put forward. */
	if (current && limiter->turns.order && !schedule->stopped) {
		uint64_t order_ns = order_next_ns(limiter->turns.order, schedule->now_ns);

		at_ns = order_ns < at_ns ? order_ns : at_ns;
	}
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
	false, offer_turn, take_granted, answer_waiter, set_deadline,
};

void limiter_settle(struct schedule *schedule, struct limiter *limiter)
{
	turns_settle(schedule, limiter, &LIMITER_TURNS);
}

/*
 * Tells whether a reader of @limiter has @tokens at once, without overtaking a waiter; it @passes
 * those that come after it in the order of siblings. A learnt rate is brought up to date if it
 * @grows.
 */
static bool are_there(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		      bool *passes, bool grows)
{
	const struct limiter *asked = limiter;
	const struct turns *below = NULL;
	uint64_t needed;

	*passes = false;
	for (; limiter; below = &limiter->turns, limiter = limiter->parent) {
		if (limiter->turns.current &&
		    !turns_may_pass(&limiter->turns, below, schedule->now_ns))
			return false;
		*passes |= limiter->turns.current != NULL;
		if (grows)
			grow_own(schedule, limiter);
		needed = saving_needed_by(limiter, asked, tokens, schedule->now_ns);
		if (!own_has(limiter, needed, schedule->now_ns))
			return false;
	}
	return true;
}

/* Does the part of are_there() that is about @amounts, after it. */
static bool are_units_there(const struct schedule *schedule, const struct limiter *limiter,
			    const struct amounts *amounts)
{
	for (const struct limiter *l = limiter; l; l = l->parent) {
		if (!own_has_units(l, amounts, saving_holds_from(l, limiter, schedule->now_ns)))
			return false;
	}
	return true;
}

bool limiter_try(struct schedule *schedule, struct waiter *waiter)
{
	struct limiter *fewest;
	bool passes;

	if (schedule->frozen ||
	    !are_there(schedule, waiter->limiter, waiter->tokens, &passes, true))
		return false;
	if (waiter->amounts) {
		if (!are_units_there(schedule, waiter->limiter, waiter->amounts))
			return false;
		take_units(schedule, waiter);
	}
	fewest = take_path(schedule, waiter);
	if (fewest && fewest->holding)
		fewest->holding->lacked = true;
	waiter->limiter->counters[COUNTER_SERVED]++;
	if (waiter->limiter->is_key || waiter->limiter->partition)
		usage_member_at_once(schedule, waiter->limiter);
	if (passes)
		turns_passed(schedule, waiter->limiter, units_size(waiter, waiter->granted),
			     &LIMITER_TURNS);
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

void limiter_hasten_waiter(struct schedule *schedule, const struct waiter *waiter)
{
	struct expiry *expiry = waiter->expiry;

	if (expiry && expiry->node.key > expiry->at_ns)
		heap_place(&schedule->expiries, &expiry->node, expiry->at_ns);
}

void limiter_hasten(struct schedule *schedule, const struct queue *queue)
{
	struct heap_node *turn = queue->returned.root;

	for (const struct waiter *w = list_first(&queue->once, struct waiter, once); w;
	     w = list_next(w, once))
		limiter_hasten_waiter(schedule, w);
	for (; turn; turn = heap_next(turn))
		limiter_hasten_waiter(schedule, waiter_of_turn(turn));
}

void limiter_expire(struct schedule *schedule, struct waiter *waiter)
{
	if (waiter->is_opener) {
		slots_refuse(schedule, waiter);
		turns_answer(schedule, waiter, -EAGAIN);
		return;
	}
	turns_leave(schedule, waiter, &LIMITER_TURNS);
	waiter->limiter->counters[COUNTER_REFUSED]++;
	answer_waiter(schedule, waiter, -EAGAIN);
	limiter_settle(schedule, waiter->limiter);
}

void limiter_refund(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		    const struct amounts *amounts)
{
	limiter->counters[COUNTER_SERVED]--;
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_GRANTED] -= tokens;
		limiter_refill(schedule, l);
		put_own(l, tokens, 0);
		if (amounts) {
			units_count(l, UNIT_GRANTED, amounts, true);
			put_own_units(l, amounts, false);
		}
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

/* Charges the amounts of @charge to @limiter itself. */
static void charge_units(const struct schedule *schedule, struct limiter *limiter,
			 const struct charge *charge)
{
	units_count(limiter, UNIT_CHARGED, &charge->taken, false);
	units_count(limiter, UNIT_RETURNED, &charge->returned, false);
	if (limiter->settings->enforcement != ENFORCEMENT_OPEN)
		units_take(schedule, limiter, &charge->taken);
	put_own_units(limiter, &charge->returned, false);
}

void limiter_charge(struct schedule *schedule, struct limiter *limiter, const struct charge *charge)
{
	int64_t tokens = charge->tokens;
	enum counter counter = tokens < 0 ? COUNTER_RETURNED : COUNTER_CHARGED;
	uint64_t size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;

	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[counter] += size;
		limiter_refill(schedule, l);
		if (tokens < 0)
			put_own(l, size, 0);
		else
			take_own(schedule, l, size);
		if (units_counts(l))
			charge_units(schedule, l, charge);
	}
	limiter_settle(schedule, limiter);
}

void limiter_return(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		    const struct amounts *amounts)
{
	for (struct limiter *l = limiter; l; l = l->parent) {
		l->counters[COUNTER_RETURNED] += tokens;
		limiter_refill(schedule, l);
		put_own(l, tokens, l->polled);
		if (amounts) {
			units_count(l, UNIT_RETURNED, amounts, false);
			put_own_units(l, amounts, true);
		}
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
		limiter_return(schedule, limiter, poller->waiter.granted, poller->waiter.amounts);
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
	if (outcome_tells_quota(outcome))
		learning_hear_quota(schedule, limiter, outcome);
	for (struct limiter *l = limiter; l; l = l->parent) {
		learning_hear(schedule, l, outcome);
		/* A learnt rate answers throttling itself. */
		if (outcome->kind == OUTCOME_THROTTLED &&
		    (!l->learning || l->settings->adapt.kind == ADAPT_NONE))
			slots_throttled(schedule, l);
	}
}

void limiter_adopt(struct schedule *schedule, struct limiter *limiter,
		   const struct adapt_state *other)
{
	limiter_refill(schedule, limiter);
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

		/* The use of windows is known, and goes by leaves. */
		if (bucket_is_window(bucket))
			continue;
		bucket_refill(bucket, schedule->now_ns);
		bucket_leave(bucket, 0);
	}
}

double limiter_tokens(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	const struct allowance *allowance;
	const struct bucket *bucket;

	for (unsigned int i = 0; (bucket = limiter_bucket(limiter, i)); i++) {
		double level = (double)bucket_level(bucket) +
			       (double)bucket->part / (double)bucket->flow.den;

		least = level < least ? level : least;
	}
	if (limiter->learning && (allowance = allowances_least(&limiter->learning->allowances)))
		least = fmin(least, (double)allowance->left);
	return least;
}

uint64_t limiter_when(struct schedule *schedule, struct limiter *limiter, uint64_t tokens,
		      const struct amounts *amounts)
{
	bool passes;

	if (!limiter_can_ever(limiter, tokens, amounts))
		return NEVER_NS;
	for (struct limiter *l = limiter; l; l = l->parent)
		limiter_refill(schedule, l);
	if (are_there(schedule, limiter, tokens, &passes, false) &&
	    (!amounts || are_units_there(schedule, limiter, amounts)))
		return schedule->now_ns;
	return forecast_newcomer(limiter, tokens, amounts, schedule->now_ns);
}

bool limiter_can_ever(const struct limiter *limiter, uint64_t tokens, const struct amounts *amounts)
{
	for (; limiter; limiter = limiter->parent) {
		const struct settings *settings = limiter_settings(limiter);

		if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = 0; i < settings->limit_count; i++) {
			const struct limit *limit = &settings->limits[i];

			if ((rate_is_strict(&limit->rate) || rate_is_window(&limit->rate)) &&
			    (*limit->unit ? amounts_of(amounts, limit->unit) : tokens) >
				    settings_burst(settings, i))
				return false;
		}
	}
	return true;
}

uint64_t limiter_whole_burst(const struct limiter *limiter, uint32_t i)
{
	const struct holding *holding = limiter->holding;

	if (holding && i < holding->settings->limit_count)
		return settings_burst(holding->settings, i);
	if (limiter->is_key && limiter->parent->holding && !bucket_is_strict(&limiter->buckets[i]))
		return keys_whole_burst(limiter, i);
	return limiter->buckets[i].burst;
}

bool limiter_can_hold(const struct limiter *limiter, uint64_t tokens, const struct amounts *amounts)
{
	if (amounts && !units_can_hold(limiter, amounts))
		return false;
	for (; limiter; limiter = limiter->parent) {
		if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = 0; i < limiter->plain_count; i++) {
			if (tokens > limiter_whole_burst(limiter, i) &&
			    tokens > bucket_batch(&limiter->buckets[i]))
				return false;
		}
	}
	return true;
}
