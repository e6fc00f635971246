/* key_units - the limits of keys that have a unit, see key_units.h. */
#include "core/limiter/key_units.h"
#include "core/limiter/holding.h"
#include "core/limiter/key_memory.h"
#include "core/limiter/owing.h"
#include "core/limiter/tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct limit *key_units_find(const struct limit *limits, uint32_t count, const char *unit,
				   uint8_t kind)
{
	for (uint32_t i = 0; i < count; i++) {
		if (key_limit_is(&limits[i], unit, kind))
			return &limits[i];
	}
	return NULL;
}

static const struct limit *limit_in(const struct settings *settings, const char *unit, uint8_t kind)
{
	return key_units_find(settings_key_units(settings), settings->key_unit_count, unit, kind);
}

/* Tells whether keys of @settings, maybe single ones, have a limit of @unit and @kind. */
static bool is_needed(const struct settings *settings, const char *unit, uint8_t kind)
{
	return limit_in(settings, unit, kind) ||
	       (kind && !*unit && overrides_windows(settings->overrides) >> kind & 1);
}

bool key_units_are_in(const struct settings *settings)
{
	return settings->key_unit_count || overrides_windows(settings->overrides);
}

static const struct settings *settings_of(const struct keys *keys)
{
	return keys->limiter->settings;
}

/* Returns the unit called @name with windows of @kind (0: none), or NULL. */
static struct key_unit *find_unit(const struct keys *keys, const char *name, uint8_t kind)
{
	for (uint32_t i = 0; keys->units && i < keys->units->count; i++) {
		struct key_unit *unit = &keys->units->of[i];

		if (unit->kind == kind && amount_is_of(unit->name, name))
			return unit;
	}
	return NULL;
}

/* Returns the rate of @unit, which may be `max`, and its burst. */
static struct rate rate_of(const struct keys *keys, const struct key_unit *unit, uint64_t *burst)
{
	const struct limit *limit = limit_in(settings_of(keys), unit->name, 0);

	*burst = limit && limit->burst ? limit->burst : settings_of(keys)->key_burst;
	return limit ? limit->rate : RATE_UNLIMITED;
}

/*
 * Gives what @override (or NULL) says of @unit in *@its, and returns that, or NULL. A rate counts
 * for all units; a burst, where the unit has none of its own.
 */
static const struct override *override_of(const struct keys *keys, const struct key_unit *unit,
					  const struct override *override, struct override *its)
{
	const struct limit *limit, *whole = limit_in(settings_of(keys), unit->name, 0);

	if (!override)
		return NULL;
	limit = key_units_find(override->units, override->unit_count, unit->name, 0);
	its->has_rate = override->has_rate;
	its->rate = limit ? limit->rate : RATE_UNLIMITED;
	its->burst = limit && limit->burst   ? limit->burst
		     : whole && whole->burst ? 0
					     : override->burst;
	return its;
}

/* Returns room for a unit that no settings need, neither those in force nor @settings. */
static struct key_unit *find_room(struct keys *keys, const struct settings *settings,
				  uint64_t now_ns)
{
	struct key_units *units = keys->units;
	struct key_unit *over = NULL;

	for (uint32_t i = 0; i < units->count; i++) {
		struct key_unit *unit = &units->of[i];

		if (is_needed(settings, unit->name, unit->kind) ||
		    is_needed(settings_of(keys), unit->name, unit->kind))
			continue;
		if (!unit->kind || !key_use_now(&unit->unknown_use, keys->wall, now_ns))
			return unit;
		over = unit;
	}
	return units->count < KEY_UNITS_MAX ? &units->of[units->count] : over;
}

/* Returns the part that this host has of what is overridden of keys. */
static struct key_part part_of(const struct keys *keys)
{
	return tunings_now(&keys->tunings)->part;
}

/* Begins the limit that @unit has; with @full unknown keys are full. 0 or -ENOMEM. */
static int begin_tunings(const struct keys *keys, struct key_unit *unit, bool full, uint64_t now_ns)
{
	uint64_t burst;
	const struct rate rate = rate_of(keys, unit, &burst);
	struct bucket bucket;
	bool limited;

	if (tunings_init(&unit->tunings, &rate, burst, part_of(keys), now_ns))
		return -ENOMEM;
	limited = tunings_now(&unit->tunings)->limited;
	bucket = tunings_now(&unit->tunings)->bucket;
	if (limited && full)
		bucket_fill(&bucket);
	tunings_rest(&unit->tunings, limited ? &bucket : NULL, now_ns, &unit->unknown);
	return 0;
}

/*
 * Begins the unit @name with windows of @kind (0: none), if it is not there: where the settings in
 * force do not have it, it limits nothing yet. It has the place of one that limits nothing; idle
 * keys have nothing of it.
 */
static int begin_unit(struct keys *keys, const struct settings *settings,
		      const char name[UNIT_TEXT], uint8_t kind, bool full, uint64_t now_ns)
{
	struct key_unit *unit, begun = {.kind = kind};

	if (find_unit(keys, name, kind))
		return 0;
	memcpy(begun.name, name, sizeof(begun.name));
	unit = find_room(keys, settings, now_ns);
	if (!unit || (!kind && begin_tunings(keys, &begun, full, now_ns)))
		return -ENOMEM;
	begun.number = ++keys->units->last_number;
	if (unit == &keys->units->of[keys->units->count])
		keys->units->count++;
	else
		tunings_free(&unit->tunings);
	*unit = begun;
	return 0;
}

/* Begins those of @settings that are not there, as key_units_prepare() and begin_unit() say. */
static int begin_units(struct keys *keys, const struct settings *settings, bool full,
		       uint64_t now_ns)
{
	const struct limit *limits = settings_key_units(settings);
	uint32_t windows = overrides_windows(settings->overrides);
	static const char none[UNIT_TEXT];
	int err = 0;

	if (!key_units_are_in(settings))
		return 0;
	if (!keys->units)
		keys->units = calloc(1, sizeof(*keys->units));
	if (!keys->units)
		return -ENOMEM;
	for (uint32_t i = 0; i < settings->key_unit_count && !err; i++)
		err = begin_unit(keys, settings, limits[i].unit, rate_window_kind(&limits[i].rate),
				 full, now_ns);
	for (uint8_t kind = RATE_MINUTE; kind < RATE_KIND_COUNT && !err; kind++) {
		if (windows >> kind & 1)
			err = begin_unit(keys, settings, none, kind, full, now_ns);
	}
	return err;
}

int key_units_prepare(struct keys *keys, const struct settings *settings, uint64_t now_ns)
{
	return begin_units(keys, settings, false, now_ns);
}

/* Has @keys have a number in the ledger, if they have windows. */
static void find_ledger(struct keys *keys)
{
	char path[PATH_TEXT];

	if (keys->number || !keys->ledger || !settings_have_key_windows(settings_of(keys)))
		return;
	tree_path(keys->limiter, path);
	keys->number = keys->ledger->number(keys->ledger, path);
}

/* Begins the windows of @unit as the ledger has them. */
static void recall_unknown(const struct keys *keys, struct key_unit *unit, uint64_t now_ns)
{
	const struct limit *limit = limit_in(settings_of(keys), unit->name, unit->kind);
	struct ledger *ledger = keys->ledger;
	/* Those of single keys may begin at any time. */
	const struct rate any = {
		.kind = unit->kind, .month = 1, .at = unit->kind >= RATE_MONTH ? 1 : 0};

	unit->unknown_use = key_window_all(limit ? &limit->rate : &any, keys->wall, now_ns);
	if (!limit)
		unit->unknown_use.end_s += unit->unknown_use.end_s - unit->unknown_use.begin_s;
	if (!keys->number)
		return;
	(void)ledger->recall(ledger, keys->number, "", unit->name, unit->kind, &unit->unknown_use);
	if (unit->unknown_use.used)
		ledger->note(ledger, keys->number, "", unit->name, unit->kind, &unit->unknown_use);
}

int key_units_begin(struct keys *keys, bool full, uint64_t now_ns)
{
	int err = begin_units(keys, settings_of(keys), full, now_ns);

	if (err)
		return err;
	find_ledger(keys);
	for (uint32_t i = 0; !full && keys->units && i < keys->units->count; i++) {
		if (keys->units->of[i].kind)
			recall_unknown(keys, &keys->units->of[i], now_ns);
	}
	return 0;
}

void key_units_free(struct keys *keys)
{
	for (uint32_t i = 0; keys->units && i < keys->units->count; i++)
		tunings_free(&keys->units->of[i].tunings);
	free(keys->units);
}

/* Has @unit follow the settings. Tells whether it has another limit now. */
static bool follow_unit(const struct keys *keys, struct key_unit *unit, bool full, uint64_t now_ns)
{
	const struct tuning *now;
	uint64_t burst;
	const struct rate rate = rate_of(keys, unit, &burst);
	const struct key_part part = part_of(keys);
	struct bucket bucket;
	bool limited;

	unit->begins = false;
	if (unit->kind)
		return false; /* a use counts under any limit */
	now = tunings_now(&unit->tunings);
	if (!rate_compare(&now->rate, &rate) && rate_limits_alike(&now->rate, &rate) &&
	    now->burst == burst && key_part_equal(&now->part, &part))
		return false;
	unit->begins = full && tunings_are_new(&unit->tunings);
	/* None is given up for not being needed: keys without a rest have no number. */
	tunings_add(&unit->tunings, &rate, burst, part, full, 0, now_ns);
	limited = tunings_bucket(&unit->tunings, &unit->unknown, NULL, now_ns, &bucket);
	tunings_rest(&unit->tunings, limited ? &bucket : NULL, now_ns, &unit->unknown);
	return true;
}

bool key_units_follow(struct keys *keys, bool full, uint64_t now_ns)
{
	bool any = false;

	find_ledger(keys);
	/* It was prepared, so nothing is missing; keys of a unit without memory are not limited. */
	(void)begin_units(keys, settings_of(keys), full, now_ns);
	for (uint32_t i = 0; keys->units && i < keys->units->count; i++)
		any |= follow_unit(keys, &keys->units->of[i], full, now_ns);
	return any;
}

void key_units_limits(const struct limiter *limiter, const struct override *override,
		      const struct key_part *part, struct settings *its)
{
	bool overrides = override && override->has_rate;
	const struct limit *limits = overrides ? override->units
					       : settings_key_units(limiter->settings);
	uint32_t count = overrides ? override->unit_count : limiter->settings->key_unit_count;

	for (uint32_t i = 0; i < count && its->limit_count < LIMITS_MAX; i++) {
		const struct limit *whole = limit_in(limiter->settings, limits[i].unit,
						     rate_window_kind(&limits[i].rate));
		struct limit *made = &its->limits[its->limit_count];

		if (!whole && *limits[i].unit)
			continue;
		*made = limits[i];
		if (overrides && !rate_is_window(&made->rate))
			settings_key_limit(part, made);
		if (!made->burst)
			made->burst = whole->burst;
		its->limit_count++;
	}
}

/* Buckets. */

struct key_rest *key_units_rest(const struct key *key)
{
	if (!key->rests)
		return NULL;
	return key->owes ? key->owing->count.rest : key->count.rest;
}

static union key_unit_level *level_of(const struct keys *keys, const struct key *key, uint32_t i)
{
	struct key_rest *rest = key_units_rest(key);

	return rest && i < rest->count && rest->of[i].its.number == keys->units->of[i].number
		       ? &rest->of[i].its
		       : NULL;
}

/* Finds the use that the ledger has of the windows of @unit by @key. False: none counts. */
static bool find_use(const struct keys *keys, const struct key *key, const struct key_unit *unit,
		     uint64_t now_ns, struct key_use *use)
{
	struct ledger *ledger = keys->ledger;

	return unit->kind && keys->number &&
	       ledger->recall(ledger, keys->number, key->name, unit->name, unit->kind, use) &&
	       key_use_now(use, keys->wall, now_ns);
}

/*
 * Returns what was used of the windows of unit @i by @key. While keys had no such windows the
 * ledger alone remembers that.
 */
static struct key_use use_of(const struct keys *keys, const struct key *key, uint32_t i,
			     uint64_t now_ns)
{
	const union key_unit_level *level = level_of(keys, key, i);
	struct key_use use;

	if (level)
		return level->use;
	return find_use(keys, key, &keys->units->of[i], now_ns, &use)
		       ? use
		       : keys->units->of[i].unknown_use;
}

/* Gives a key without a level of @unit the bucket of one that is not remembered. */
static bool unknown_bucket(const struct keys *keys, const struct key_unit *unit,
			   const struct override *override, uint64_t now_ns, struct bucket *bucket)
{
	struct bucket unknown;
	bool limited = tunings_bucket(&unit->tunings, &unit->unknown, NULL, now_ns, &unknown);

	if (!override) {
		*bucket = unknown;
		return limited;
	}
	if (!tunings_begin(&unit->tunings, override, keys->since_ns, bucket))
		return false;
	if (keys->whole)
		bucket_fill(bucket);
	bucket_refill(bucket, now_ns);
	if (limited && unknown.level < (int64_t)unknown.burst)
		bucket_leave(bucket, unknown.level > 0 ? (uint64_t)unknown.level : 0);
	return true;
}

/* Gives the bucket of unit @i of @key, idle, with @override (or NULL). False: it has no limit. */
static bool unit_bucket(const struct keys *keys, const struct key *key, uint32_t i,
			const struct override *override, uint64_t now_ns, struct bucket *bucket)
{
	const struct key_unit *unit = &keys->units->of[i];
	const union key_unit_level *level = level_of(keys, key, i);
	struct override room;

	override = override_of(keys, unit, override, &room);
	if (!level)
		return unknown_bucket(keys, unit, override, now_ns, bucket);
	return tunings_bucket(&unit->tunings, &level->level, override, now_ns, bucket);
}

static uint32_t windows_for(const struct keys *keys)
{
	for (uint32_t i = 0; i < keys->units->count; i++) {
		if (keys->units->of[i].kind)
			return LIMITS_MAX;
	}
	return 0;
}

struct key_room *key_units_room(const struct keys *keys)
{
	uint32_t windows = windows_for(keys);
	struct key_room *room = calloc(1, sizeof(*room) + windows * sizeof(room->windows[0]));
	struct key_rest *rest = calloc(1, sizeof(*rest) + KEY_UNITS_MAX * sizeof(rest->of[0]));

	if (room && rest) {
		room->rest = rest;
		room->window_room = windows;
		return room;
	}
	free(room);
	free(rest);
	return NULL;
}

void key_units_free_room(struct key_room *room)
{
	free(room->rest);
	free(room);
}

int key_units_make_room(const struct keys *keys, struct limiter *inflated, struct key_room *room)
{
	struct key_room *made;

	if (!keys->units || (room && room->window_room >= windows_for(keys)))
		return 0;
	made = key_units_room(keys);
	if (!made)
		return -ENOMEM;
	if (room) {
		uint32_t windows = made->window_room;

		free(made->rest);
		*made = *room; /* without windows: it had no room for any */
		made->window_room = windows;
		free(room);
	} else if (inflated->bucket_count) {
		made->buckets.buckets[0] = inflated->buckets[0];
	}
	inflated->buckets = made->buckets.buckets;
	return 0;
}

struct key_window *key_units_window(const struct limiter *inflated, uint32_t i)
{
	return &((struct key_room *)inflated->buckets)->windows[i];
}

/* Returns which bucket of @inflated is of @unit; bucket_count: none. */
static uint32_t bucket_of(const struct limiter *inflated, const struct key_unit *unit)
{
	uint32_t i = 0;

	while (i < inflated->bucket_count &&
	       (!key_limit_is(&inflated->settings->limits[i], unit->name, unit->kind) ||
		bucket_is_window(&inflated->buckets[i]) != (unit->kind != 0)))
		i++;
	return i;
}

static uint64_t granted_of(const struct limiter *inflated, uint32_t j)
{
	return j >= inflated->plain_count ? units_counts(inflated)->of[j].granted : 0;
}

static void note_names(const struct limiter *inflated, struct key_room *room)
{
	for (uint32_t i = 0; i < inflated->settings->limit_count; i++)
		memcpy(room->names[i], inflated->settings->limits[i].unit, sizeof(room->names[i]));
}

/* Gives bucket @j of @inflated what limit of unit it has, without memory of it. */
static void begin_full(const struct limiter *inflated, uint32_t j, uint64_t now_ns)
{
	struct bucket *bucket = &inflated->buckets[j];

	bucket_init(bucket, &inflated->settings->limits[j].rate,
		    settings_burst(inflated->settings, j), 0, now_ns);
	bucket_fill(bucket);
}

/* Begins bucket @j, of windows, of @inflated, which is @key. */
static void open_window(const struct keys *keys, const struct key *key,
			const struct limiter *inflated, uint32_t j, uint64_t now_ns,
			struct bucket *bucket)
{
	const struct limit *limit = &inflated->settings->limits[j];
	const struct key_unit *unit = find_unit(keys, limit->unit, rate_window_kind(&limit->rate));
	struct key_use use = {0};

	if (unit)
		use = use_of(keys, key, (uint32_t)(unit - keys->units->of), now_ns);
	key_window_begin(limit, &use, keys->wall, now_ns, key_units_window(inflated, j), bucket);
}

void key_units_begin_window(const struct limiter *inflated, uint32_t i, uint64_t now_ns,
			    struct bucket *bucket)
{
	open_window(inflated->parent->keys, keys_key(inflated), inflated, i, now_ns, bucket);
}

/* Begins bucket @j of @inflated, which is @key and is about to be open. */
static void open_bucket(const struct keys *keys, const struct key *key,
			const struct override *override, struct limiter *inflated, uint32_t j,
			uint64_t now_ns)
{
	const struct limit *limit = &inflated->settings->limits[j];
	const struct key_unit *unit = find_unit(keys, limit->unit, rate_window_kind(&limit->rate));
	const struct key_rest *rest = key_units_rest(key);
	uint32_t i = unit ? (uint32_t)(unit - keys->units->of) : 0;

	if (rate_is_window(&limit->rate))
		open_window(keys, key, inflated, j, now_ns, &inflated->buckets[j]);
	else if (!unit || !unit_bucket(keys, key, i, override, now_ns, &inflated->buckets[j]))
		begin_full(inflated, j, now_ns);
	if (unit && j >= inflated->plain_count && level_of(keys, key, i))
		units_counts(inflated)->of[j].granted = rest->of[i].granted;
}

void key_units_open(struct keys *keys, struct key *key, const struct override *override,
		    struct key_room *room, struct limiter *inflated, uint64_t now_ns)
{
	const struct settings *settings = inflated->settings;
	struct key_rest *rest = key_units_rest(key);
	uint32_t first = inflated->plain_count;

	if (room) {
		note_names(inflated, room);
		inflated->plain_count = (uint8_t)settings_plain_count(settings);
	}
	inflated->bucket_count = room ? (uint8_t)settings->limit_count : inflated->plain_count;
	for (uint32_t j = first; j < inflated->bucket_count; j++)
		open_bucket(keys, key, override, inflated, j, now_ns);
	/* Logs are the buckets' from now on. */
	for (uint32_t i = 0; rest && i < rest->count; i++) {
		uint32_t j = keys->units ? bucket_of(inflated, &keys->units->of[i])
					 : inflated->bucket_count;

		tunings_end_level(&rest->of[i].its.level,
				  j < inflated->bucket_count ? &inflated->buckets[j] : NULL);
	}
	inflated->counters[COUNTER_GRANTED] = rest ? rest->granted : key->count.granted;
	if (rest)
		free(rest);
	key->rests = false;
}

/* Tells whether @inflated was ever granted tokens. The ledger knows of what else was used. */
static bool was_granted(const struct limiter *inflated)
{
	bool was = inflated->counters[COUNTER_GRANTED] != 0;

	for (uint32_t j = inflated->plain_count; j < inflated->bucket_count; j++)
		was |= units_counts(inflated)->of[j].granted != 0;
	return was;
}

/* Returns what was, until the settings came, bucket of @unit of @inflated; NULL: none was. */
static struct bucket *former_bucket(const struct limiter *inflated, const struct key_room *room,
				    const struct key_unit *unit)
{
	for (uint32_t i = inflated->plain_count; i < inflated->bucket_count; i++) {
		if (amount_is_of(room->names[i], unit->name) &&
		    !bucket_is_window(&inflated->buckets[i]))
			return &inflated->buckets[i];
	}
	return NULL;
}

void key_units_fill(const struct keys *keys, struct limiter *inflated, const struct key_room *room,
		    uint64_t now_ns)
{
	const struct settings *settings = inflated->settings;

	for (uint32_t i = 0; room && keys->units && i < keys->units->count; i++) {
		const struct key_unit *unit = &keys->units->of[i];
		struct bucket *bucket = former_bucket(inflated, room, unit);
		const struct limit *limit = key_units_find(settings->limits, settings->limit_count,
							   unit->name, 0);

		if (!unit->begins || !bucket || !limit)
			continue;
		bucket_retune(bucket, &limit->rate,
			      settings_burst(settings, (uint32_t)(limit - settings->limits)), 0,
			      now_ns);
		bucket_fill(bucket);
	}
}

/* Puts bucket @j of @inflated, @key's of @unit, to rest; bucket_count: there is none. */
static void rest_bucket(const struct keys *keys, const struct key *key, const struct key_unit *unit,
			const struct limiter *inflated, uint32_t j, uint64_t now_ns,
			union key_unit_level *rest)
{
	const struct bucket *bucket = j < inflated->bucket_count ? &inflated->buckets[j] : NULL;

	*rest = (union key_unit_level){.number = unit->number};
	if (!unit->kind)
		tunings_rest(&unit->tunings, bucket, now_ns, &rest->level);
	else if (bucket)
		rest->use = key_window_use(bucket);
	else if (!find_use(keys, key, unit, now_ns, &rest->use))
		rest->number = 0;
}

void key_units_close(struct keys *keys, struct key *key, struct key_room *room,
		     struct limiter *inflated, uint64_t now_ns)
{
	struct key_rest *rest = room ? room->rest : NULL, *fitting;

	key->rests = rest && keys->units &&
		     inflated->bucket_count > key_units_have_flow(inflated) &&
		     was_granted(inflated);
	if (!key->rests) {
		for (uint32_t j = inflated->plain_count; j < inflated->bucket_count; j++)
			bucket_end(&inflated->buckets[j]);
		key->count.granted = inflated->counters[COUNTER_GRANTED];
		return;
	}
	rest->granted = inflated->counters[COUNTER_GRANTED];
	rest->count = keys->units->count;
	for (uint32_t i = 0; i < rest->count; i++) {
		const struct key_unit *unit = &keys->units->of[i];
		uint32_t j = bucket_of(inflated, unit);

		rest_bucket(keys, key, unit, inflated, j, now_ns, &rest->of[i].its);
		rest->of[i].granted = j < inflated->bucket_count ? granted_of(inflated, j) : 0;
	}
	fitting = realloc(rest, sizeof(*rest) + rest->count * sizeof(rest->of[0]));
	key->count.rest = fitting ? fitting : rest;
	room->rest = NULL;
}

void key_units_former(const struct limiter *inflated, struct key_room *room, struct settings *old)
{
	for (uint32_t i = 0; i < inflated->bucket_count; i++) {
		if (room)
			memcpy(old->limits[i].unit, room->names[i], sizeof(room->names[i]));
		else
			*old->limits[i].unit = '\0';
		old->limits[i].rate = bucket_is_window(&inflated->buckets[i])
					      ? *inflated->buckets[i].window->rate
					      : RATE_UNLIMITED;
	}
	if (room)
		note_names(inflated, room);
}

/* Idle keys. */

void key_units_touch(const struct keys *keys, const struct key *key,
		     const struct override *override, uint64_t now_ns)
{
	struct key_rest *rest = key_units_rest(key);

	for (uint32_t i = 0; rest && keys->units && i < rest->count; i++) {
		union key_unit_level *level = level_of(keys, key, i);
		struct bucket bucket;
		bool limited;

		if (!level || keys->units->of[i].kind)
			continue;
		limited = unit_bucket(keys, key, i, override, now_ns, &bucket);
		tunings_end_level(&level->level, limited ? &bucket : NULL);
		tunings_rest(&keys->units->of[i].tunings, limited ? &bucket : NULL, now_ns,
			     &level->level);
	}
}

void key_units_override(const struct keys *keys, const struct key *key, const struct override *old,
			const struct override *override, bool full, uint64_t now_ns)
{
	struct key_rest *rest = key_units_rest(key);

	for (uint32_t i = 0; rest && keys->units && i < rest->count; i++) {
		const struct key_unit *unit = &keys->units->of[i];
		union key_unit_level *its = level_of(keys, key, i);
		struct override old_room, room;
		struct bucket bucket;
		bool limited;

		if (!its || unit->kind)
			continue;
		limited = tunings_override(
			&unit->tunings, &its->level, override_of(keys, unit, old, &old_room),
			override_of(keys, unit, override, &room), full, now_ns, &bucket);
		tunings_end_level(&its->level, limited ? &bucket : NULL);
		tunings_rest(&unit->tunings, limited ? &bucket : NULL, now_ns, &its->level);
	}
}

uint64_t key_units_full_ns(const struct keys *keys, const struct key *key,
			   const struct override *override, uint64_t now_ns)
{
	const struct key_rest *rest = key_units_rest(key);
	uint64_t at_ns = 0;

	for (uint32_t i = 0; rest && keys->units && i < rest->count; i++) {
		const union key_unit_level *its = level_of(keys, key, i);
		struct bucket bucket;
		uint64_t full_at_ns = 0;

		if (its && keys->units->of[i].kind && key_use_now(&its->use, keys->wall, now_ns))
			full_at_ns = calendar_engine_ns(keys->wall, its->use.end_s);
		else if (!keys->units->of[i].kind &&
			 unit_bucket(keys, key, i, override, now_ns, &bucket))
			full_at_ns = bucket_when(&bucket, bucket.burst, now_ns);
		at_ns = full_at_ns > at_ns ? full_at_ns : at_ns;
	}
	return at_ns;
}

/*
 * Leaves unknown keys no more than @use, @key's, leaves of the windows of @unit. The ledger forgets
 * that use: it has no more keys than are remembered.
 */
static void join_use(const struct keys *keys, const struct key *key, struct key_unit *unit,
		     const struct key_use *use, uint64_t now_ns)
{
	static const struct key_use none;

	key_use_join(&unit->unknown_use, use, keys->wall, now_ns);
	if (!keys->number)
		return;
	keys->ledger->note(keys->ledger, keys->number, "", unit->name, unit->kind,
			   &unit->unknown_use);
	keys->ledger->note(keys->ledger, keys->number, key->name, unit->name, unit->kind, &none);
}

void key_units_join_unknown(struct keys *keys, const struct key *key, uint64_t now_ns)
{
	const struct key_rest *rest = key_units_rest(key);

	for (uint32_t i = 0; rest && keys->units && i < rest->count; i++) {
		struct key_unit *unit = &keys->units->of[i];
		const union key_unit_level *its = level_of(keys, key, i);

		if (its && unit->kind)
			join_use(keys, key, unit, &its->use, now_ns);
		else if (its)
			key_memory_join(&unit->tunings, &its->level, now_ns, &unit->unknown);
	}
}

void key_units_forget(struct key *key)
{
	struct key_rest *rest = key_units_rest(key);

	for (uint32_t i = 0; rest && i < rest->count; i++)
		tunings_end_level(&rest->of[i].its.level, NULL);
	free(rest);
	key->rests = false;
}

/* The ledger. */

int key_units_recall(const struct keys *keys, struct key *key, uint64_t now_ns)
{
	uint32_t count = keys->units ? keys->units->count : 0;

	for (uint32_t i = 0; i < count; i++) {
		const struct key_unit *unit = &keys->units->of[i];
		struct key_rest *rest = key->count.rest;
		struct key_use use;

		if (!find_use(keys, key, unit, now_ns, &use))
			continue;
		if (!key->rests)
			rest = calloc(1, sizeof(*rest) + count * sizeof(rest->of[0]));
		if (!rest)
			return -ENOMEM;
		rest->count = count;
		rest->of[i].its = (union key_unit_level){.use = use, .number = unit->number};
		key->count.rest = rest;
		key->rests = true;
	}
	return 0;
}

void key_units_note(const struct limiter *inflated)
{
	const struct keys *keys = inflated->parent->keys;
	const struct key *key = keys_key(inflated);

	for (uint32_t i = 0; key && keys->number && i < inflated->bucket_count; i++) {
		const struct bucket *bucket = &inflated->buckets[i];
		const struct limit *limit = &inflated->settings->limits[i];
		struct key_use use;

		if (!bucket_is_window(bucket))
			continue;
		use = key_window_use(bucket);
		keys->ledger->note(keys->ledger, keys->number, key->name, limit->unit,
				   limit->rate.kind, &use);
	}
}
