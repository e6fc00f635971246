/* ledger - tells the invariants what happened, and asks them whether it may, see ledger.h. */
#include "tests/sim/books/common.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/world/sim.h"

static void enter(struct sim *sim, enum happening happening, const struct place *place,
		  uint64_t number, uint64_t tokens)
{
	sim->log[sim->logged++ % LOG_LENGTH] = (struct log_entry){sim->now_ns, happening, place,
								  number, tokens};
}

void ledger_waits(struct sim *sim, struct reader *reader)
{
	char why[WHY_TEXT];

	enter(sim, WAITS, reader->place, reader->check.number, reader->check.tokens);
	reader->since_ns = sim->now_ns;
	if (!queue_check_waits(&reader->place->queue, &reader->check, why))
		sim_fail(sim, INVARIANT_QUEUE, reader->place, why);
	for (struct place *p = reader->place; p; p = p->parent) {
		rate_check_waits(&p->rate, reader->check.tokens);
		common_waits(p, reader->check.tokens);
	}
}

static void leaves(struct reader *reader)
{
	if (reader->check.state != READER_WAITS)
		return;
	for (struct place *p = reader->place; p; p = p->parent) {
		rate_check_leaves(&p->rate);
		common_leaves(p);
	}
}

/* Returns its enforcement now: a host that is degraded may do something else than is set. */
static enum enforcement enforcement_of(const struct place *place)
{
	return place->host->fleet && place->limiter ? place->limiter->settings->enforcement
						    : place->settings.enforcement;
}

/* Tokens leave the buckets of @place, if its enforcement is one in which they do. */
static void take(struct place *place, uint64_t tokens)
{
	if (enforcement_of(place) == ENFORCEMENT_OPEN || !place->limiter || place->is_key)
		return;
	for (uint32_t i = 0; i < place->limiter->bucket_count; i++)
		account_check_take(&place->accounts[i], &place->limiter->buckets[i], tokens);
}

void ledger_granted(struct sim *sim, struct reader *reader)
{
	uint64_t tokens = reader->granted;
	bool waited = reader->check.state == READER_WAITS;
	char why[WHY_TEXT];

	enter(sim, GRANTED, reader->place, reader->check.number, tokens);
	leaves(reader);
	if (tokens < reader->tokens || tokens > reader->most)
		sim_fail(sim, INVARIANT_ACCOUNT, reader->place,
			 "a reader got what it did not ask for");
	if (!queue_check_granted(&reader->place->queue, &reader->check, why))
		sim_fail(sim, INVARIANT_QUEUE, reader->place, why);
	for (struct place *p = reader->place; p; p = p->parent) {
		p->granted += tokens;
		p->grants++;
		p->waited_s += waited ? (double)(sim->now_ns - reader->since_ns) / NSEC_PER_SEC : 0;
		windows_add(&p->windows, sim->now_ns, tokens);
		if (sim->fleet) {
			common_grants(p, tokens, reader->tokens, waited);
		} else if (!rate_check_grant(&p->rate, tokens, reader->tokens, sim->now_ns, why)) {
			sim_fail(sim, INVARIANT_RATE, p, why);
		}
		if (enforcement_of(p) == ENFORCEMENT_SHADOW)
			p->shadowing += tokens;
		else
			take(p, tokens);
	}
}

void ledger_left(struct sim *sim, struct reader *reader)
{
	char why[WHY_TEXT];

	enter(sim, LEFT, reader->place, reader->check.number, reader->check.tokens);
	leaves(reader);
	if (!queue_check_left(&reader->place->queue, &reader->check, why))
		sim_fail(sim, INVARIANT_QUEUE, reader->place, why);
}

static bool follows(const struct place *place, const struct place *tuned)
{
	return place->limiter && (place == tuned || (place->partition && place->parent == tuned));
}

void ledger_tuning(struct sim *sim, struct place *place)
{
	if (sim->fleet)
		return;
	for (struct place *p = place->host->places; p; p = p->next) {
		for (uint32_t i = 0;
		     !p->is_key && follows(p, place) && i < p->limiter->bucket_count; i++)
			account_check_tuning(&p->accounts[i], &p->limiter->buckets[i], sim->now_ns);
	}
}

void ledger_tuned(struct sim *sim, struct place *place)
{
	char why[WHY_TEXT];

	enter(sim, TUNED, place, 0, 0);
	for (struct place *p = place->host->places; p; p = p->next) {
		if (p->is_key && p->parent == place)
			key_follow(p, sim->now_ns);
		if (p->is_key || !follows(p, place) || p->limiter->removed)
			continue;
		p->followed = p != place;
		p->settings = *limiter_settings(p->limiter);
		rate_check_tune(&p->rate, &p->settings, sim->now_ns);
		for (uint32_t i = 0; i < p->limiter->bucket_count; i++) {
			const struct bucket *bucket = &p->limiter->buckets[i];

			/* A limit that was not there before has no account yet. */
			if (bucket->account && !account_check_tuned(&p->accounts[i], bucket, why))
				sim_fail(sim, INVARIANT_ACCOUNT, p, why);
		}
	}
}

void ledger_charged(struct sim *sim, struct place *place, int64_t tokens)
{
	uint64_t size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;

	enter(sim, tokens < 0 ? RETURNED : CHARGED, place, 0, size);
	for (struct place *p = place; p; p = p->parent) {
		if (tokens > 0) {
			take(p, size);
			if (p->common)
				p->common->first->charged += size;
			continue;
		}
		if (sim->fleet)
			common_returns(p, size);
		else
			rate_check_return(&p->rate, size, sim->now_ns);
		for (uint32_t i = 0; i < p->limiter->bucket_count; i++) {
			if (enforcement_of(p) != ENFORCEMENT_OPEN)
				account_check_put(&p->accounts[i], &p->limiter->buckets[i], size);
		}
	}
}

/* In shadow, tokens are taken as far as they are there; the counter says how many were not. */
static void settle_shadow(struct place *place)
{
	uint64_t counter = place->limiter->counters[COUNTER_SHADOWED];
	uint64_t taken = place->shadowing - (counter - place->shadowed);

	if (place->shadowing)
		take(place, taken);
	place->shadowing = 0;
	place->shadowed = counter;
}

/*
 * In a fleet a bucket's rate comes and goes with leases within a step, and tokens with them. In
 * such a step it must only be true to itself; between two of them to the clock and the log too.
 */
static bool check_account(struct place *place, struct account_check *check, struct bucket *bucket,
			  bool reshared, char why[WHY_TEXT])
{
	if (place->host->fleet && (reshared || account_check_reopened(check, bucket))) {
		bool balances = account_check_is_consistent(check, bucket, why);

		account_check_restart(check, bucket);
		return balances;
	}
	return account_check_balance(check, bucket, why);
}

static void check_place(struct sim *sim, struct place *place)
{
	const struct holding *holding = place->limiter->holding;
	bool reshared = place->host->reshared;
	struct place *top = place->top;
	char why[WHY_TEXT];

	if (holding) {
		reshared = reshared || holding->usable != place->usable;
		place->usable = holding->usable;
	}
	place->exempt = common_exempts(place);
	settle_shadow(place);
	/* Tokens that a host takes in shadow while it holds nothing are told nowhere. */
	reshared = reshared || (place->host->fleet &&
				place->limiter->settings->enforcement == ENFORCEMENT_SHADOW);
	/* The bucket of a key comes and goes: it is held to its rate alone. */
	for (uint32_t i = 0; i < place->limiter->bucket_count && !place->is_key; i++) {
		struct bucket *bucket = &place->limiter->buckets[i];

		account_check_open(&place->accounts[i], bucket);
		/*
		 * Tokens that its limiter granted before the partition was tuned are in the old
		 * account.
		 */
		if (place->followed)
			place->accounts[i].taken = place->accounts[i].account.taken;
		if (!check_account(place, &place->accounts[i], bucket, reshared, why))
			sim_fail(sim, INVARIANT_ACCOUNT, place, why);
	}
	place->followed = false;
	if (!queue_check_length(&place->queue, place->limiter, why))
		sim_fail(sim, INVARIANT_QUEUE, place, why);
	if (place->queue.oldest &&
	    (!top->oldest || place->queue.oldest->number < top->oldest->number)) {
		top->oldest = place->queue.oldest;
		top->oldest_at = place;
	}
}

void ledger_check(struct host *host)
{
	uint64_t next_ns = engine_next_ns(&host->engine), now_ns = host_now(host);
	struct sim *sim = host->sim;
	char why[WHY_TEXT];

	for (struct place *p = host->places; p; p = p->next)
		p->oldest = NULL;
	for (struct place *p = host->places; p && !sim->failed; p = p->next) {
		if (p->limiter)
			check_place(sim, p);
	}
	host->reshared = false;
	slots_check(host);
	for (struct place *p = host->places; p && !sim->failed; p = p->next) {
		if (p->oldest &&
		    !queue_check_oldest(p->oldest, p->oldest_at->limiter, next_ns, now_ns, why))
			sim_fail(sim, INVARIANT_QUEUE, p->oldest_at, why);
	}
}
