/* common - a limiter as the whole fleet has it, see common.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/books/common.h"
#include "tests/sim/actors/polling.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/world/sim.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t common_now(const struct sim *sim)
{
	return clock_read(&sim->fastest, sim->now_ns);
}

/*
 * Finds a limiter by its id and path: where an election took back its making, its id is given
 * again.
 */
static struct common *find(const struct sim *sim, uint64_t id, const char *path)
{
	struct common *common = sim->commons;

	while (common && (common->is_key || common->is_lost || common->id != id ||
			  strcmp(common->path, path) != 0))
		common = common->next;
	return common;
}

static struct common *add(struct sim *sim, uint64_t id, const char *path)
{
	struct common *common = memory_get(sizeof(*common));

	common->id = id;
	common->first = common;
	common->path = memory_text(path, strlen(path));
	common->rate = truth_rate(sim, path);
	common->own.hosts = sim->host_count;
	if (sim->last_common)
		sim->last_common->next = common;
	else
		sim->commons = common;
	sim->last_common = common;
	return common;
}

void common_join(struct place *place)
{
	const struct holding *holding = place->limiter->holding;
	struct sim *sim = place->host->sim;

	if (place->common || place->partition || !holding || !holding->id)
		return;
	place->common = find(sim, holding->id, place->path);
	if (!place->common)
		place->common = add(sim, holding->id, place->path);
}

static bool waits_in(const struct reader *reader, const struct place *in)
{
	const struct place *place = reader->place;

	while (place && place != in)
		place = place->parent;
	return place && !reader->waiter.is_opener && reader->check.state == READER_WAITS;
}

/* @reader, if it waits in @place, leaves the common of that, or waits in it. */
static void move_reader(struct place *place, const struct reader *reader, bool leaves)
{
	if (!waits_in(reader, place))
		return;
	if (leaves)
		common_leaves(place);
	else
		common_waits(place, reader->check.tokens, &reader->amounts);
}

static void move_readers(struct place *place, bool leaves)
{
	const struct host *host = place->host;

	for (const struct reader *r = host->readers; r; r = r->next)
		move_reader(place, r, leaves);
	for (const struct reader *r = polling_after(host, NULL); r; r = polling_after(host, r))
		move_reader(place, r, leaves);
}

void common_rejoin(struct place *place)
{
	move_readers(place, true);
	place->common = NULL;
	place->asks = (struct fleet_asks){0}; /* of what is counted by the new path */
	if (place->is_key)
		common_join_key(place);
	else
		common_join(place);
	move_readers(place, false);
}

void common_renamed(struct sim *sim, uint64_t id, const char *from, const char *to)
{
	struct common *before = find(sim, id, from), *after = find(sim, id, to);

	if (!before)
		before = add(sim, id, from);
	/* It may have its former name again. */
	if (after && after->first == before->first)
		return;
	if (after)
		after->is_lost = true;
	add(sim, id, to)->first = before->first;
}

/* Tokens a second; 0 if there is no limit to be measured by. */
static double rate_of(const struct common *common)
{
	const struct settings *settings = common->rate ? fleet_check_settings(common->rate) : NULL;
	double least = (double)INFINITY;

	if (!settings || settings->enforcement != ENFORCEMENT_ENFORCE || !settings->limit_count ||
	    settings_have_windows(settings))
		return 0;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		double rate = rate_per_second(&settings->limits[i].rate);

		least = rate < least ? rate : least;
	}
	return least;
}

void common_measure(struct common *common, const struct sim *sim)
{
	if (common->waiting)
		common->could += rate_of(common) *
				 ((double)(sim->now_ns - common->since_ns) / (double)NSEC_PER_SEC);
	common->since_ns = sim->now_ns;
}

/*
 * The bounds of a key: the rate of each, and a burst for each partition, and one token more where
 * nothing is held any more.
 */
static struct settings settings_of_key(const struct sim *sim, const struct settings *whole,
				       const char *path)
{
	struct settings settings = SETTINGS_DEFAULT;

	settings.enforcement = whole->enforcement;
	settings.partitions = whole->partitions + sim->host_count;
	settings.burst = whole->key_burst;
	settings.limits[0].rate = whole->key_rate;
	overriding_apply(whole, path, &settings);
	settings.burst += sim->host_count;
	for (uint32_t i = 0; i < settings.limit_count; i++) {
		if (settings.limits[i].burst)
			settings.limits[i].burst += sim->host_count;
	}
	return settings;
}

/* A key's has all that may be in force of its limiter. */
static struct common *add_key(struct sim *sim, const struct common *whole, const char *path)
{
	struct common *common = add(sim, whole->id, path);

	common->is_key = true;
	common->above = whole->rate;
	for (uint32_t i = 0; whole->rate && i < whole->rate->count; i++) {
		const struct version *version = &whole->rate->versions[i];
		struct settings settings = settings_of_key(sim, &version->settings, path);

		fleet_check_follow(&common->own, version->id, &settings, 0, common_now(sim));
		common->own.versions[common->own.count - 1].until_ns = version->until_ns;
	}
	common->rate = &common->own;
	return common;
}

void common_join_key(struct place *place)
{
	struct common *whole = place->parent->common, *common;
	struct sim *sim = place->host->sim;

	if (place->common || !whole)
		return;
	for (common = sim->commons; common; common = common->next) {
		if (common->is_key && common->id == whole->id && !strcmp(common->path, place->path))
			break;
	}
	place->common = common ? common : add_key(sim, whole, place->path);
}

void common_tuning(struct sim *sim, uint64_t id)
{
	for (struct common *c = sim->commons; c; c = c->next) {
		if (c->id == id)
			common_measure(c, sim);
	}
}

/* Tells whether @common is a key of limiter @id by its name of now. */
static bool is_key_of(const struct sim *sim, const struct common *common, uint64_t id)
{
	const struct truth *truth = truth_of(sim, id);

	return common->is_key && common->id == id && truth && truth->name &&
	       common->above == &truth->name->rate;
}

void common_tuned(struct sim *sim, uint64_t id, const struct settings *settings,
		  uint64_t quarantine_ns)
{
	for (struct common *c = sim->commons; c; c = c->next) {
		struct settings of_key;

		if (!is_key_of(sim, c, id))
			continue;
		of_key = settings_of_key(sim, settings, c->path);
		fleet_check_follow(&c->own, id, &of_key, quarantine_ns, common_now(sim));
	}
}

void common_goes(struct sim *sim, uint64_t id, uint64_t quarantine_ns)
{
	for (struct common *c = sim->commons; c; c = c->next) {
		if (is_key_of(sim, c, id))
			fleet_check_goes(&c->own, id, quarantine_ns, common_now(sim));
	}
}

uint32_t common_keeps(const struct place *place)
{
	const struct limiter *limiter = place->is_key ? place->parent->limiter : place->limiter;
	const struct holding *holding = limiter ? limiter->holding : NULL;
	const struct settings *settings;
	struct settings of_key;

	if (!holding || (holding->degraded && holding->settings->offline != OFFLINE_BLOCK))
		return 0;
	settings = holding->settings;
	if (place->is_key) {
		of_key = settings_of_key(place->host->sim, settings, place->path);
		settings = &of_key;
	}
	if (!place->common || !place->common->rate)
		return !fleet_check_is_free(settings);
	return fleet_check_keeps(place->common->rate, settings);
}

void common_waits(struct place *place, uint64_t tokens, const struct amounts *amounts)
{
	struct common *common = place->common;

	if (!common)
		return;
	common_measure(common, place->host->sim);
	common->waiting++;
	if (!common->rate)
		return;
	fleet_check_waits(common->rate, tokens, amounts, &place->asks);
}

void common_late(struct place *place)
{
	if (place->common && place->common->rate)
		fleet_check_late(place->common->rate, ENGINE_CATCH_UP_NS);
}

void common_leaves(struct place *place)
{
	struct common *common = place->common;

	if (!common || !common->waiting)
		return;
	common_measure(common, place->host->sim);
	common->waiting--;
	if (common->rate)
		fleet_check_leaves(common->rate);
}

/* Prints each host's part of it, for readers of a failure. */
static void print_places(const struct sim *sim, const struct common *common)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (const struct place *p = sim->hosts[i].places; p; p = p->next) {
			if (p->common != common || p->is_key || !p->limiter ||
			    !p->limiter->bucket_count)
				continue;
			fprintf(stderr,
				"  %s holds %u: rate %.9g level %lld burst %llu "
				"largest take %llu%s\n",
				sim->hosts[i].name, p->limiter->holding->usable,
				fraction_per_second(&p->limiter->buckets[0].flow),
				(long long)p->limiter->buckets[0].level,
				(unsigned long long)p->limiter->buckets[0].burst,
				(unsigned long long)p->asks.of[0].largest,
				sim->hosts[i].paused ? ", paused" : "");
		}
	}
}

void common_note_time(struct place *place)
{
	const struct holding *holding = place->limiter->holding;

	if (!holding || (place->time && place->saved == holding->saved &&
			 place->changed_zxid == holding->changed_zxid))
		return;
	place->saved = holding->saved;
	place->changed_zxid = holding->changed_zxid;
	place->time = truth_time(place->host->sim, holding->id, holding->saved);
}

/* Returns the windows that all hosts together know; NULL: the host has none. */
static struct quotas_check *quotas_of(struct place *place)
{
	struct quotas_check *quotas = &place->common->first->quotas;
	const struct settings *settings = limiter_settings(place->limiter);

	if (place->is_key || place->partition || !settings_have_windows(settings))
		return NULL;
	calendar_check_tune(&place->rate.calendar, settings, true);
	common_note_time(place);
	return quotas;
}

/* Checks that all hosts together keep to windows of the calendar of @unit. */
static void check_quotas(struct place *place, const char *unit, uint64_t tokens)
{
	struct sim *sim = place->host->sim;
	const struct quotas_window *window;
	char why[WHY_TEXT];

	if (!tokens || !quotas_of(place))
		return;
	window = quotas_check_grant(quotas_of(place), &place->rate.calendar, unit, tokens,
				    place->time, host_now(place->host));
	if (!window)
		return;
	snprintf(why, WHY_TEXT,
		 "%" PRIu64 " tokens in window %" PRId64 " of the calendar of %" PRIu64,
		 window->granted, window->window, window->most);
	sim_fail(sim, INVARIANT_RATE, place, why);
	print_places(sim, place->common);
}

/* Checks that a host may grant @tokens and @amounts to a reader that asked for @asked. */
static void check_grant(struct place *place, uint64_t tokens, uint64_t asked,
			const struct amounts *amounts)
{
	struct common *common = place->common;
	struct sim *sim = place->host->sim;
	/* It may have kept others when the grant was decided, in this step. */
	uint32_t keeps = place->keeps & common_keeps(place);
	char why[WHY_TEXT];

	/* No tokens are of no rate, and a host needs no lease to grant them. */
	keeps = fleet_check_concerns(common->rate, keeps, tokens, amounts);
	if (!keeps)
		return;
	if (!common->is_key &&
	    !lease_check_grants(&common->first->leases, &place->host->holder, sim->now_ns, why))
		sim_fail(sim, INVARIANT_PIECE, place, why);
	check_quotas(place, "", tokens);
	for (uint32_t i = 0; i < amounts->count; i++)
		check_quotas(place, amounts->of[i].unit, amounts->of[i].tokens);
	if (!fleet_check_grant(common->rate, keeps, tokens, asked, amounts, &place->asks,
			       common_now(sim), why)) {
		sim_fail(sim, INVARIANT_RATE, place, why);
		print_places(sim, common);
	}
}

void common_grants(struct place *place, uint64_t tokens, uint64_t asked,
		   const struct amounts *amounts, bool waited)
{
	struct common *common = place->common;
	struct sim *sim = place->host->sim;

	if (!common)
		return;
	common->granted += tokens;
	common->first->granted_ns = sim->now_ns;
	if (waited || common->waiting)
		common->did += tokens;
	windows_add(&common->windows, sim->now_ns, tokens);
	if (common->rate)
		check_grant(place, tokens, asked, amounts);
}

void common_returns(struct place *place, const char *unit, uint64_t tokens)
{
	if (place->common && place->limiter && quotas_of(place))
		quotas_check_return(quotas_of(place), &place->rate.calendar, unit, tokens,
				    place->time, host_now(place->host));
	if (place->common && place->common->rate)
		fleet_check_return(place->common->rate, unit, tokens, common_now(place->host->sim));
}

/* Tells whether hosts tell each other of quotas of @place. */
static bool is_told(const struct place *place)
{
	return place->common && place->limiter && !place->is_key && !place->partition &&
	       place->keeps && common_keeps(place);
}

static unsigned int number_of(const struct host *host)
{
	return (unsigned int)(host - host->sim->hosts);
}

void common_void_told(struct place *place, const char *unit)
{
	if (place->common)
		told_check_void(&place->common->first->told, unit);
}

void common_told(struct place *place, const struct outcome *outcome)
{
	const struct host *host = place->host;

	if (outcome->remaining == UINT64_MAX) {
		common_void_told(place, outcome->unit);
		return;
	}
	if (place->common)
		truth_quoted(host->sim, place->common->id, outcome->reset_ns);
	if (is_told(place) && number_of(host) < TOLD_HOSTS_MAX)
		told_check_report(&place->common->first->told, number_of(host), outcome->unit,
				  outcome->remaining, outcome->reset_ns, host->sim->now_ns);
}

void common_takes_told(struct place *place, const char *unit, uint64_t tokens)
{
	const struct host *host = place->host;
	struct sim *sim = host->sim;
	uint64_t in_touch_ns[TOLD_HOSTS_MAX];
	char why[WHY_TEXT];

	if (!place->common || !place->common->first->told.reports)
		return;
	if (!is_told(place)) {
		common_void_told(place, NULL);
		return;
	}
	if (*unit && !settings_have_unit(limiter_settings(place->limiter), unit)) {
		common_void_told(place, unit);
		return;
	}
	if (number_of(host) >= TOLD_HOSTS_MAX)
		return;
	for (unsigned int i = 0; i < sim->host_count && i < TOLD_HOSTS_MAX; i++)
		in_touch_ns[i] = sim->hosts[i].in_touch_ns;
	if (!told_check_grant(&place->common->first->told, number_of(host), unit, tokens,
			      in_touch_ns, sim->now_ns, why))
		sim_fail(sim, INVARIANT_QUOTA, place, why);
}

void common_returns_told(struct place *place, const char *unit, uint64_t tokens)
{
	if (place->common && number_of(place->host) < TOLD_HOSTS_MAX)
		told_check_return(&place->common->first->told, number_of(place->host), unit,
				  tokens);
}

struct lease_check *common_leases(struct sim *sim, const struct holding *holding)
{
	struct common *common;
	char path[PATH_TEXT];

	tree_path(holding->limiter, path);
	common = find(sim, holding->id, path);
	if (!common)
		common = add(sim, holding->id, path);
	return &common->first->leases;
}

void common_check_leases(struct host *host)
{
	struct sim *sim = host->sim;
	uint64_t right_ns = fleet_right_ns(host->fleet), end_ns = 0;
	char why[WHY_TEXT];

	if (right_ns)
		end_ns = clock_when(&host->clock, host_now(host) + right_ns);
	/* A right that ends does so first, and what it may not use when it begins has ended. */
	if (end_ns < host->holder.end_ns)
		host->holder.end_ns = end_ns;
	for (size_t i = 0; i < host->change_count; i++) {
		const struct lease_change *change = &host->changes[i];

		if (change->to != LEASE_HELD)
			lease_check_ends(change->check, &host->holder, &change->run);
		else if (!lease_check_begins(change->check, &host->holder, &change->run,
					     sim->now_ns, why))
			sim_fail(sim, INVARIANT_PIECE, NULL, why);
	}
	host->change_count = 0;
	if (!lease_check_right(&host->holder, end_ns, sim->now_ns, why))
		sim_fail(sim, INVARIANT_PIECE, NULL, why);
}

/* Tells whether @host may not use @leaf, of the kind of @run, by what it says when it is asked. */
static bool may_not(const struct host *host, const struct place *place, const struct run *run,
		    uint32_t leaf)
{
	const struct lease_check *check = &place->common->first->leases;
	uint32_t index = run->reserve ? PARTITIONS_MAX + leaf : leaf;

	return leaf >= PARTITIONS_MAX || lease_check_has(check, &host->holder, run, leaf) ||
	       !fleet_is_entitled(host->fleet, place->limiter->holding, index);
}

/* The leaves beside each run, and the first. */
static bool audit(const struct host *host, const struct place *place)
{
	const struct lease_check *check = &place->common->first->leases;
	struct run any = {0};

	for (const struct held *h = host->holder.first; h; h = h->next) {
		if (h->check != check)
			continue;
		any = h->run;
		if ((any.first && !may_not(host, place, &any, any.first - 1)) ||
		    !may_not(host, place, &any, any.last + 1))
			return false;
	}
	return may_not(host, place, &any, 0);
}

void common_audit(struct host *host)
{
	if (host->state == HOST_DOWN || host->paused || host->holder.end_ns <= host->sim->now_ns)
		return;
	for (struct place *p = host->places; p; p = p->next) {
		if (p->limiter && p->common && !p->is_key && !p->partition && p->limiter->holding &&
		    !audit(host, p))
			sim_fail(host->sim, INVARIANT_PIECE, p,
				 "a host may use a leaf that it has not told of");
	}
}

void common_free(struct common *common)
{
	lease_check_free(&common->leases);
	quotas_check_free(&common->quotas);
	told_check_free(&common->told);
	free(common->service);
	free(common->path);
	windows_free(&common->windows);
	fleet_check_free(&common->own);
	free(common);
}
