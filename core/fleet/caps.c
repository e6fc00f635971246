/* caps - what a host at most uses of windows of the calendar, see caps.h. */
#include "core/fleet/caps.h"
#include "core/fleet/holdings.h"
#include "core/fleet/term.h"
#include "core/limiter/window.h"

#include <stdlib.h>

enum {
	SPARE_PARTS = 64,  /* of what is left, above what is used */
	LOW_PARTS = 4,	   /* of what was above it: with one of these left the cap is told anew */
	RENEWAL_PARTS = 4, /* a shorter time than one of these counts as one */
};

/* A cap, and what was used when it was told. */
struct told {
	struct host_cap cap;
	uint64_t used, at_ns;
};

struct caps {
	struct told told[HOST_CAPS_MAX], sent[HOST_CAPS_MAX];
	uint32_t told_count, sent_count;
	bool under_way; /* those that were sent are not acknowledged */
	bool resumed;	/* limits that are not told may be capped */
};

bool caps_new(struct fleet *fleet)
{
	fleet->caps = calloc(1, sizeof(*fleet->caps));
	return fleet->caps;
}

void caps_free(struct fleet *fleet)
{
	free(fleet->caps);
}

/* Returns the bucket of limit @i of @holding, if that is of windows; NULL: it is not. */
static struct bucket *bucket_of(const struct fleet *fleet, const struct holding *holding,
				uint32_t i)
{
	struct limiter *limiter = holding->limiter;
	struct bucket *bucket = &limiter->buckets[i];

	if (limiter->removed || i >= limiter->bucket_count || !bucket_is_window(bucket))
		return NULL;
	bucket_refill(bucket, fleet->engine->schedule.now_ns);
	return bucket;
}

/* Lets @bucket, limit @i of @holding, be capped as window_cap() says. */
static void set_cap(struct fleet *fleet, struct holding *holding, struct bucket *bucket,
		    int64_t begin_s, uint64_t tokens)
{
	uint64_t before = bucket->aside;

	window_cap(bucket, begin_s, tokens);
	if (bucket->aside < before)
		limiter_settle(&fleet->engine->schedule, holding->limiter);
}

static void uncap(struct fleet *fleet, const struct host_cap *cap)
{
	struct holding *holding = holdings_find(fleet, cap->id);
	struct bucket *bucket = holding ? bucket_of(fleet, holding, cap->limit) : NULL;

	if (bucket)
		set_cap(fleet, holding, bucket, 0, WINDOW_UNCAPPED);
}

static const struct told *find(const struct told *list, uint32_t count, const struct host_cap *cap)
{
	for (uint32_t i = 0; i < count; i++) {
		if (list[i].cap.id == cap->id && list[i].cap.limit == cap->limit)
			return &list[i];
	}
	return NULL;
}

/* No cap is told any more. */
static void lift(struct fleet *fleet)
{
	struct caps *caps = fleet->caps;

	for (uint32_t i = 0; i < caps->told_count; i++)
		uncap(fleet, &caps->told[i].cap);
	for (uint32_t i = 0; i < caps->sent_count; i++)
		uncap(fleet, &caps->sent[i].cap);
	*caps = (struct caps){.resumed = caps->resumed};
}

void caps_forget(struct fleet *fleet)
{
	lift(fleet);
}

void caps_resume(struct fleet *fleet, struct holding *holding)
{
	for (uint32_t i = 0; i < holding->limiter->bucket_count; i++) {
		struct bucket *bucket = bucket_of(fleet, holding, i);

		if (!bucket)
			continue;
		window_cap(bucket, 0, 0);
		fleet->caps->resumed = true;
	}
}

/* Tells whether all leaves of @holding are usable, and stay so for all that is known. */
static bool is_settled(const struct holding *holding)
{
	return !holding->degraded && holding->held && holding->held == holding->leased &&
	       holding->usable == holding->held && holding_needs_leases(holding);
}

/* Returns what the waiter whose turn it is wants of limit @i; 0: none waits. */
static uint64_t wanted_of(const struct limiter *limiter, uint32_t i)
{
	const struct waiter *waiter = limiter->turns.current;

	if (!waiter)
		return 0;
	if (i < limiter->plain_count)
		return waiter->tokens;
	return amounts_of(waiter->amounts, limiter_settings(limiter)->limits[i].unit);
}

/* Returns how much more than is used a cap allows, as of @before, the last one; NULL: none was. */
static uint64_t spare_of(const struct fleet *fleet, const struct told *before, uint64_t used,
			 uint64_t left, uint64_t wanted)
{
	uint64_t spare = left / SPARE_PARTS + 1, renewal_ns = fleet->constants.renewal_ns;
	uint64_t past_ns, going;

	if (before && used > before->used) {
		past_ns = fleet->now_ns - before->at_ns;
		if (past_ns < renewal_ns / RENEWAL_PARTS)
			past_ns = renewal_ns / RENEWAL_PARTS;
		going = (uint64_t)((u128)(used - before->used) * 3 * renewal_ns / past_ns / 2);
		spare = going > spare ? going : spare;
	}
	return wanted > spare ? wanted : spare;
}

/* Adds the cap of limit @i of @holding, if there is one, to those that are sent. */
static void add(struct fleet *fleet, const struct holding *holding, uint32_t i)
{
	struct caps *caps = fleet->caps;
	struct bucket *bucket = bucket_of(fleet, holding, i);
	const struct told *before;
	struct told *told;
	int64_t used;
	uint64_t all, spare;

	if (!bucket || bucket->next_used || bucket->unknown || caps->sent_count == HOST_CAPS_MAX)
		return;
	all = bucket->burst + 1;
	used = window_used(bucket);
	if (used < 0)
		used = 0;
	told = &caps->sent[caps->sent_count];
	*told = (struct told){
		.cap = {.id = holding->id,
			.cut = holding->cut,
			.saved = holding->saved,
			.limit = i,
			.leaves = holding->held,
			.begin_s = window_begin_s(bucket),
			.tokens = (uint64_t)used,
			.epoch = fleet->epochs.newest},
		.used = (uint64_t)used,
		.at_ns = fleet->now_ns,
	};
	before = find(caps->told, caps->told_count, &told->cap);
	if (before && before->cap.begin_s != told->cap.begin_s)
		before = NULL;
	if (told->used < all) {
		spare = spare_of(fleet, before, told->used, all - told->used,
				 wanted_of(holding->limiter, i));
		told->cap.tokens += spare < all - told->used ? spare : all - told->used;
	}
	if (told->cap.tokens <= TOKENS_MAX)
		caps->sent_count++;
}

/* Adds those of all limiters; or of those that have caps. */
static void add_all(struct fleet *fleet, bool renews)
{
	const struct caps *caps = fleet->caps;

	for (uint32_t i = 0; i < caps->told_count && !renews; i++) {
		const struct holding *holding = holdings_find(fleet, caps->told[i].cap.id);

		if (holding && is_settled(holding))
			add(fleet, holding, caps->told[i].cap.limit);
	}
	if (!renews || !fleet->engine->schedule.pool.windowed_count)
		return;
	for (const struct holding *h = holdings_first(fleet); h; h = h->next) {
		for (uint32_t i = 0; i < h->limiter->bucket_count && is_settled(h); i++)
			add(fleet, h, i);
	}
}

void caps_enter(struct fleet *fleet, bool renews, char text[HOST_CAPS_TEXT])
{
	struct caps *caps = fleet->caps;
	struct host_caps record = {0};

	caps->sent_count = 0;
	caps->under_way = true;
	if (term_runs(fleet))
		add_all(fleet, renews);
	for (uint32_t i = 0; i < caps->sent_count; i++) {
		const struct host_cap *cap = &caps->sent[i].cap;
		struct holding *holding = holdings_find(fleet, cap->id);
		struct bucket *bucket = bucket_of(fleet, holding, cap->limit);

		/* It may be executed, and the answer never come: then both hold. */
		if (cap->tokens < window_capped(bucket))
			window_cap(bucket, cap->begin_s, cap->tokens);
		record.list[record.count++] = *cap;
	}
	record_print_caps(&record, text);
}

void caps_leave_out(struct fleet *fleet)
{
	fleet->caps->sent_count = 0;
	fleet->caps->under_way = true;
}

void caps_refuse(struct fleet *fleet)
{
	fleet->caps->under_way = false;
}

/* Lets @told be in force, if the leaves are still those that it is about. */
static void enforce(struct fleet *fleet, const struct told *told)
{
	const struct host_cap *cap = &told->cap;
	struct holding *holding = holdings_find(fleet, cap->id);
	struct bucket *bucket = holding ? bucket_of(fleet, holding, cap->limit) : NULL;
	bool is_same;

	if (!bucket)
		return;
	is_same = holding->held == cap->leaves && holding->leased == cap->leaves &&
		  holding->cut == cap->cut && holding->saved == cap->saved;
	set_cap(fleet, holding, bucket, cap->begin_s, is_same ? cap->tokens : 0);
}

/* Lifts what a predecessor may have told, but for what is told now. */
static void end_resumed(struct fleet *fleet)
{
	struct caps *caps = fleet->caps;

	caps->resumed = false;
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		for (uint32_t i = 0; i < h->limiter->bucket_count; i++) {
			const struct host_cap cap = {.id = h->id, .limit = i};

			if (!find(caps->told, caps->told_count, &cap))
				uncap(fleet, &cap);
		}
	}
}

void caps_acknowledge(struct fleet *fleet)
{
	struct caps *caps = fleet->caps;
	struct told before[HOST_CAPS_MAX];
	uint32_t count = caps->told_count;

	for (uint32_t i = 0; i < count; i++)
		before[i] = caps->told[i];
	caps->told_count = caps->sent_count;
	for (uint32_t i = 0; i < caps->told_count; i++)
		caps->told[i] = caps->sent[i];
	caps->sent_count = 0;
	caps->under_way = false;
	for (uint32_t i = 0; i < count; i++) {
		if (!find(caps->told, caps->told_count, &before[i].cap))
			uncap(fleet, &before[i].cap);
	}
	for (uint32_t i = 0; i < caps->told_count; i++)
		enforce(fleet, &caps->told[i]);
	if (caps->resumed)
		end_resumed(fleet);
}

/* Tells whether more of @bucket, whose cap is @told, is to be had soon. */
static bool is_short(const struct bucket *bucket, const struct told *told, uint64_t wanted)
{
	uint64_t capped = window_capped(bucket), used, left;

	if (!bucket->is_capped || !bucket->aside || bucket->level <= 0)
		return false;
	if (told->cap.begin_s != window_begin_s(bucket) ||
	    (wanted && window_is_held_back(bucket, wanted)))
		return true;
	used = window_used(bucket) > 0 ? (uint64_t)window_used(bucket) : 0;
	left = capped > used ? capped - used : 0;
	return left * LOW_PARTS < told->cap.tokens - told->used;
}

bool caps_are_due(struct fleet *fleet)
{
	const struct caps *caps = fleet->caps;
	bool due = false;

	if (term_is_degraded(fleet)) {
		lift(fleet);
		return false;
	}
	for (uint32_t i = 0; i < caps->told_count && !caps->under_way; i++) {
		const struct host_cap *cap = &caps->told[i].cap;
		const struct holding *holding = holdings_find(fleet, cap->id);
		const struct bucket *bucket = holding ? bucket_of(fleet, holding, cap->limit)
						      : NULL;

		if (!bucket)
			continue;
		due |= is_short(bucket, &caps->told[i], wanted_of(holding->limiter, cap->limit));
		fleet_wake_at(fleet, bucket->filled_ns + 1);
	}
	return due;
}

/* Tells whether its cap alone is in the way of readers of limit @i of @limiter. */
static bool is_in_the_way(const struct limiter *limiter, uint32_t i)
{
	const struct bucket *bucket = &limiter->buckets[i];
	uint64_t wanted = wanted_of(limiter, i);

	return window_is_held_back(bucket, wanted ? wanted : 1);
}

bool caps_may_come(const struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		for (uint32_t i = 0; i < limiter->bucket_count; i++) {
			if (is_in_the_way(limiter, i))
				return true;
		}
	}
	return false;
}
