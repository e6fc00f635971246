/* ledger - tells the invariants what happened, and asks them whether it may, see ledger.h. */
#include "tests/sim/base/memory.h"
#include "tests/sim/books/overriding.h"
#include "tests/sim/books/common.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/dues.h"
#include "tests/sim/books/forecast.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/books/order.h"
#include "tests/sim/books/slot_order.h"
#include "tests/sim/world/sim.h"

#include <string.h>

static const struct amounts none;

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
	forecast_news(sim);
	order_waits(sim, reader);
	dues_waits(reader);
	for (struct place *p = reader->place; p; p = p->parent) {
		rate_check_waits(&p->rate, reader->check.tokens);
		rate_check_wants(&p->rate, &reader->amounts);
		common_waits(p, reader->check.tokens, &reader->amounts);
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

/* Returns how much of @tokens and @amounts is of limit @i of @place. */
static uint64_t amount_for(const struct place *place, uint32_t i, uint64_t tokens,
			   const struct amounts *amounts)
{
	const char *unit = place->limiter->settings->limits[i].unit;

	return *unit ? amounts_of(amounts, unit) : tokens;
}

/* Tokens leave the buckets of @place, if its enforcement is one in which they do. */
static void take(struct place *place, uint64_t tokens, const struct amounts *amounts)
{
	if (enforcement_of(place) == ENFORCEMENT_OPEN || !place->limiter || place->is_key)
		return;
	for (uint32_t i = 0; i < place->limiter->bucket_count; i++)
		account_check_take(&place->accounts[i], &place->limiter->buckets[i],
				   amount_for(place, i, tokens, amounts));
}

/* Returns what is checked of @unit in @place. */
static struct quota_check *quota_of(struct place *place, const char unit[UNIT_TEXT])
{
	struct unit_quota_check *u = place->unit_quotas;

	if (!*unit)
		return &place->quota;
	while (u && !amount_is_of(u->unit, unit))
		u = u->next;
	if (!u) {
		u = memory_get(sizeof(*u));
		u->next = place->unit_quotas;
		memcpy(u->unit, unit, UNIT_TEXT);
		place->unit_quotas = u;
	}
	return &u->check;
}

/* Quotas of units that @place has no more count no more. */
static void drop_quotas(struct place *place)
{
	for (struct unit_quota_check *u = place->unit_quotas; u; u = u->next) {
		if (settings_have_unit(limiter_settings(place->limiter), u->unit))
			continue;
		quota_check_void(&u->check);
		common_void_told(place, u->unit);
	}
}

/* A quota that a service told counts where tokens leave the buckets. */
static void take_of_quota(struct sim *sim, struct place *place, uint64_t tokens,
			  const struct amounts *amounts)
{
	bool is_void = enforcement_of(place) != ENFORCEMENT_ENFORCE;
	uint64_t now_ns = host_now(place->host);
	char why[WHY_TEXT];

	/* In the step of a change readers are granted at once. */
	if (place->limiter)
		drop_quotas(place);
	if (place->host->fleet && is_void)
		common_void_told(place, NULL);
	else if (place->host->fleet)
		common_takes_told(place, "", tokens);
	if (is_void)
		quota_check_void(&place->quota);
	if (!quota_check_grant(&place->quota, tokens, now_ns, why))
		sim_fail(sim, INVARIANT_QUOTA, place, why);
	for (struct unit_quota_check *u = place->unit_quotas; u; u = u->next) {
		if (is_void)
			quota_check_void(&u->check);
		/* A take that does not name a unit does not wait for its debt. */
		if (amounts_name(amounts, u->unit) &&
		    !quota_check_grant(&u->check, amounts_of(amounts, u->unit), now_ns, why))
			sim_fail(sim, INVARIANT_QUOTA, place, why);
	}
	for (uint32_t i = 0; place->host->fleet && amounts && i < amounts->count; i++)
		common_takes_told(place, amounts->of[i].unit, amounts->of[i].tokens);
}

/* Quotas of @unit are void, on all hosts of a fleet. */
static void void_quotas(const struct place *place, const char unit[UNIT_TEXT])
{
	const struct sim *sim = place->host->sim;

	for (unsigned int i = 0; sim->fleet && i < sim->host_count; i++) {
		for (struct place *p = sim->hosts[i].places; p; p = p->next) {
			if (p->common && place->common && p->common->first == place->common->first)
				quota_check_void(quota_of(p, unit));
		}
	}
}

void ledger_told(struct place *place, const struct outcome *outcome)
{
	struct quota_check *check = quota_of(place, outcome->unit);

	if (!outcome->has_remaining)
		return;
	if (place->host->fleet)
		common_told(place, outcome);
	if (outcome->remaining == UINT64_MAX)
		void_quotas(place, outcome->unit);
	if (outcome->remaining == UINT64_MAX)
		quota_check_void(check);
	else
		quota_check_report(check, outcome->remaining,
				   host_now(place->host) + outcome->reset_ns);
}

void ledger_granted(struct sim *sim, struct reader *reader)
{
	uint64_t tokens = reader->granted;
	bool waited = reader->check.state == READER_WAITS;
	uint64_t waited_ns = waited ? sim->now_ns - reader->since_ns : 0;
	double waited_s = (double)waited_ns / NSEC_PER_SEC;
	char why[WHY_TEXT];

	enter(sim, GRANTED, reader->place, reader->check.number, tokens);
	order_granted(sim, reader);
	dues_granted(reader);
	if (waited)
		forecast_granted(sim, reader);
	else
		forecast_news(sim);
	leaves(reader);
	if (tokens < reader->tokens || tokens > reader->most)
		sim_fail(sim, INVARIANT_ACCOUNT, reader->place,
			 "a reader got what it did not ask for");
	if (!queue_check_granted(&reader->place->queue, &reader->check, why))
		sim_fail(sim, INVARIANT_QUEUE, reader->place, why);
	if (waited) {
		order_leaves(reader);
		dues_leaves(reader);
	}
	for (struct place *p = reader->place; p; p = p->parent) {
		p->granted += tokens;
		p->grants++;
		p->waited_s += waited_s;
		p->longest_s = waited_s > p->longest_s ? waited_s : p->longest_s;
		windows_add(&p->windows, sim->now_ns, tokens);
		if (sim->fleet) {
			common_grants(p, tokens, reader->tokens, &reader->amounts, waited);
		} else if (!rate_check_units(&p->rate, &reader->amounts, sim->now_ns, why) ||
			   !rate_check_grant(&p->rate, tokens, reader->tokens, sim->now_ns, why)) {
			sim_fail(sim, INVARIANT_RATE, p, why);
		}
		take_of_quota(sim, p, tokens, &reader->amounts);
		if (enforcement_of(p) == ENFORCEMENT_SHADOW)
			p->shadowing += tokens;
		else
			take(p, tokens, &reader->amounts);
	}
}

void ledger_left(struct sim *sim, struct reader *reader)
{
	bool waited = reader->check.state == READER_WAITS;
	char why[WHY_TEXT];

	enter(sim, LEFT, reader->place, reader->check.number, reader->check.tokens);
	leaves(reader);
	if (!queue_check_left(&reader->place->queue, &reader->check, why))
		sim_fail(sim, INVARIANT_QUEUE, reader->place, why);
	if (waited) {
		order_leaves(reader);
		dues_leaves(reader);
	}
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
	forecast_news(sim);
	for (struct place *p = place->host->places; p; p = p->next) {
		if (p->is_key && p->parent == place) {
			key_follow(p, sim->now_ns);
			order_tuned(p);
		}
		if (p->is_key || !follows(p, place) || p->limiter->removed)
			continue;
		p->followed = p != place;
		p->settings = overriding_copy(limiter_settings(p->limiter));
		drop_quotas(p);
		order_tuned(p);
		slot_order_tuned(p);
		rate_check_tune(&p->rate, &p->settings, sim->now_ns);
		for (uint32_t i = 0; i < p->limiter->bucket_count; i++) {
			const struct bucket *bucket = &p->limiter->buckets[i];

			/* A limit that was not there before has no account yet. */
			if (bucket->account && !account_check_tuned(&p->accounts[i], bucket, why))
				sim_fail(sim, INVARIANT_ACCOUNT, p, why);
		}
	}
}

/* The amounts of @charge are charged to, or given back in, @place itself. */
static void charge_units(struct sim *sim, struct place *place, const struct charge *charge)
{
	take(place, 0, &charge->taken);
	for (uint64_t k = 0; k < charge->returned.count; k++) {
		const struct amount *back = &charge->returned.of[k];

		if (sim->fleet)
			common_returns(place, back->unit, back->tokens);
		else
			rate_check_return_unit(&place->rate, back->unit, back->tokens, sim->now_ns);
	}
	for (uint32_t i = place->limiter->plain_count; i < place->limiter->bucket_count; i++) {
		if (enforcement_of(place) != ENFORCEMENT_OPEN)
			account_check_put(&place->accounts[i], &place->limiter->buckets[i],
					  amount_for(place, i, 0, &charge->returned));
	}
}

void ledger_charged(struct sim *sim, struct place *place, const struct charge *charge)
{
	int64_t tokens = charge->tokens;
	uint64_t size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;

	enter(sim, tokens < 0 ? RETURNED : CHARGED, place, 0, size);
	order_charged(place, charge);
	forecast_news(sim);
	for (struct place *p = place; p; p = p->parent)
		charge_units(sim, p, charge);
	for (struct place *p = place; p; p = p->parent) {
		quota_check_charge(&p->quota, tokens);
		if (tokens < 0)
			common_returns_told(p, "", size);
		for (uint32_t i = 0; i < charge->returned.count; i++)
			common_returns_told(p, charge->returned.of[i].unit,
					    charge->returned.of[i].tokens);
		for (struct unit_quota_check *u = p->unit_quotas; u; u = u->next)
			quota_check_charge(&u->check,
					   (int64_t)amounts_of(&charge->taken, u->unit) -
						   (int64_t)amounts_of(&charge->returned, u->unit));
		if (tokens > 0) {
			take(p, size, &none);
			if (p->common)
				p->common->first->charged += size;
			if (!sim->fleet)
				rate_check_charge(&p->rate, size, sim->now_ns);
			continue;
		}
		if (sim->fleet)
			common_returns(p, "", size);
		else
			rate_check_return(&p->rate, size, sim->now_ns);
		for (uint32_t i = 0; i < p->limiter->plain_count; i++) {
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
		take(place, taken, &none);
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
	char why[WHY_TEXT];

	if (holding) {
		reshared = reshared || holding->usable != place->usable;
		place->usable = holding->usable;
	}
	place->keeps = common_keeps(place);
	common_note_time(place);
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
		/* Of units, too: all of them are taken in shadow, or none, as it is there. */
		if (i >= place->limiter->plain_count &&
		    place->limiter->settings->enforcement == ENFORCEMENT_SHADOW) {
			account_check_restart(&place->accounts[i], bucket);
			continue;
		}
		if (!check_account(place, &place->accounts[i], bucket, reshared, why))
			sim_fail(sim, INVARIANT_ACCOUNT, place, why);
	}
	place->followed = false;
	if (!queue_check_length(&place->queue, place->limiter, why))
		sim_fail(sim, INVARIANT_QUEUE, place, why);
}

void ledger_check(struct host *host)
{
	struct sim *sim = host->sim;

	for (struct place *p = host->places; p && !sim->failed; p = p->next) {
		if (p->limiter)
			check_place(sim, p);
	}
	host->reshared = false;
	slots_check(host);
	if (!sim->failed)
		order_rest(host);
	if (!sim->failed && !sim->fleet)
		slot_order_rest(host);
}
