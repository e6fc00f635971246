/* settings - all the settings of a limiter together, see settings.h. */
#include "core/values/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * Computes what the reserve leaves of limit @i, rate - hosts * reserve, as @num / @den tokens a
 * nanosecond, both below 2^102. 0, or -ERANGE when that is negative: then it is nothing.
 */
static int rest_beside_reserve(const struct settings *settings, uint32_t i, u128 *num, u128 *den)
{
	struct fraction a = rate_fraction(&settings->limits[i].rate);
	struct fraction b = rate_fraction(&settings->reserve_rate);
	u128 set_aside;

	/* Every part is below 2^51 and hosts below 2^13, so the products fit. */
	*num = (u128)a.num * b.den;
	*den = (u128)a.den * b.den;
	set_aside = (u128)b.num * a.den * settings->reserve_hosts;
	if (set_aside > *num) {
		*num = 0;
		return -ERANGE;
	}
	*num -= set_aside;
	return 0;
}

/* Checks that the rest of @settings goes with @rate, a strict window, in @count partitions. */
static int check_strict(const struct settings *settings, const struct rate *rate, uint32_t count,
			char error[ERROR_TEXT])
{
	char text[QUANTITY_TEXT];

	rate_print(rate, text);
	if (count > rate_window(rate)) {
		snprintf(error, ERROR_TEXT, "there are %u partitions: more than tokens in '%s'",
			 count, text);
		return -ERANGE;
	}
	if (settings->reserve_hosts)
		return text_refuse(-ERANGE, error, text,
				   "a strict window has no reserve: partitions.reserve is of a "
				   "rate that flows");
	if (settings->adapt.kind != ADAPT_NONE)
		return text_refuse(-ERANGE, error, text,
				   "adapt learns a rate that flows, not a strict window");
	return 0;
}

bool settings_equal(const struct settings *a, const struct settings *b)
{
	if (!memcmp(a, b, sizeof(*a)))
		return true;
	if (!overrides_equal(a->overrides, b->overrides))
		return false;
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (!setting_equal((enum setting_id)id, a, b))
			return false;
	}
	return true;
}

int settings_check(const struct settings *settings, char error[ERROR_TEXT])
{
	uint32_t count = settings_partition_count(settings);

	if (overrides_check_units(settings->overrides, settings_key_units(settings),
				  settings->key_unit_count, error))
		return -ERANGE;
	if (settings->slots.kind == SLOTS_COUNT && count > settings->slots.count) {
		snprintf(error, ERROR_TEXT,
			 "there are %u partitions: more than slots, of which there are %u", count,
			 settings->slots.count);
		return -ERANGE;
	}
	if (settings->reserve_hosts && settings_plain_count(settings) < settings->limit_count) {
		snprintf(error, ERROR_TEXT,
			 "a reserve has one rate: it cannot be set aside of a rate with units");
		return -ERANGE;
	}
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct fraction flow;
		u128 num, den;

		if (rate_is_window(&settings->limits[i].rate))
			continue;
		if (rate_is_strict(&settings->limits[i].rate)) {
			if (check_strict(settings, &settings->limits[i].rate, count, error))
				return -ERANGE;
			continue;
		}
		flow = rate_fraction(&settings->limits[i].rate);
		if ((u128)flow.num * settings->release_interval_ns / flow.den >= TOKENS_MAX) {
			snprintf(error, ERROR_TEXT,
				 "a release_interval would bring more than 1e13 tokens");
			return -ERANGE;
		}
		if (settings->reserve_hosts && rest_beside_reserve(settings, i, &num, &den)) {
			char text[SETTING_TEXT];

			setting_print(SETTING_PARTITIONS_RESERVE, settings, text);
			return text_refuse(
				-ERANGE, error, text,
				"does not fit: hosts times the reserve must stay within the rate");
		}
	}
	return 0;
}

/* Says which settings there are. */
static int refuse_name(const char *name, char error[ERROR_TEXT])
{
	char why[ERROR_TEXT];
	size_t used = (size_t)snprintf(why, sizeof(why), "no such setting");

	for (int id = 0; id < SETTING_COUNT && used < sizeof(why); id++)
		used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s", id ? ", " : ": ",
					 setting_name((enum setting_id)id));
	return text_refuse(-EINVAL, error, name, why);
}

static int parse_line(const char *line, struct settings *settings, struct override_edits *edits,
		      char error[ERROR_TEXT])
{
	const char *equals = strchr(line, '='), *of_key = overrides_line(line);
	char name[SETTING_TEXT];
	enum setting_id id;

	if (!equals)
		return text_refuse(-EINVAL, error, line, "not a name=value line");
	if (of_key)
		return overrides_edit_line(edits, of_key, error);
	if (text_copy(line, (size_t)(equals - line), name, sizeof(name)))
		return text_refuse(-EINVAL, error, line, "no such setting");
	id = setting_find(name, strlen(name));
	return id == SETTING_COUNT ? refuse_name(name, error)
				   : setting_parse(id, equals + 1, settings, error);
}

struct settings settings_hold(const struct settings *settings)
{
	struct settings copy = *settings;

	copy.overrides = overrides_hold(settings->overrides);
	return copy;
}

void settings_drop(struct settings *settings)
{
	overrides_drop(settings->overrides);
	settings->overrides = NULL;
}

/* Parses the lines of @text; those of keys become @edits. 0 or -errno with a reason. */
static int parse_lines(const char *text, struct settings *settings, struct override_edits *edits,
		       char error[ERROR_TEXT])
{
	unsigned int number = 0, found = 0;
	char line[2 * SETTING_TEXT], why[ERROR_TEXT];

	while (*text) {
		size_t length = strcspn(text, "\n");
		int err = text_copy(text, length, line, sizeof(line));

		number++;
		text += length + (text[length] == '\n');
		if (!err && (!*line || *line == '#' || *line == ';'))
			continue;
		found++;
		if (err)
			snprintf(why, sizeof(why), "too long");
		else
			err = parse_line(line, settings, edits, why);
		if (err) {
			snprintf(error, ERROR_TEXT, "line %u: %.480s", number, why);
			return err;
		}
	}
	if (found)
		return 0;
	snprintf(error, ERROR_TEXT, "no setting is given");
	return -EINVAL;
}

/* Tells whether a line of @text is of setting @id. */
static bool has_line(const char *text, enum setting_id id)
{
	const char *name = setting_name(id);
	size_t length = strlen(name);

	while (*text) {
		const char *word = text + strspn(text, TEXT_SPACE), *equals;

		equals = word + strcspn(word, "=\n");
		while (equals > word && strchr(TEXT_SPACE, equals[-1]))
			equals--;
		if ((size_t)(equals - word) == length && !strncmp(word, name, length))
			return true;
		text = word + strcspn(word, "\n");
	}
	return false;
}

/* `rate` and `key_rate` share the room for limits: the old ones of a line to come are no matter. */
static void make_room(const char *text, struct settings *settings)
{
	if (settings->key_unit_count && has_line(text, SETTING_KEY_RATE))
		settings->key_unit_count = 0;
	if (settings->limit_count && has_line(text, SETTING_RATE))
		settings->limit_count = 0;
}

int settings_parse(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	struct settings next = settings_hold(settings);
	struct override_edits edits = {.text = NULL};
	int err;

	make_room(text, &next);
	err = parse_lines(text, &next, &edits, error);

	if (!err && edits.count)
		err = overrides_apply(&edits, &next.overrides, error);
	if (!err)
		err = settings_check(&next, error);
	overrides_end_edits(&edits);
	if (err) {
		settings_drop(&next);
		return err;
	}
	settings_drop(settings);
	*settings = next;
	return 0;
}

size_t settings_room(const struct settings *settings)
{
	return SETTING_COUNT * 2 * SETTING_TEXT + overrides_length(settings->overrides) + 1;
}

size_t settings_print(const struct settings *settings, char *text, size_t size)
{
	size_t length = overrides_length(settings->overrides), used = 0;
	char value[SETTING_TEXT];

	for (int id = 0; id < SETTING_COUNT && used < size; id++) {
		setting_print((enum setting_id)id, settings, value);
		used += (size_t)snprintf(text + used, size - used, "%s=%s\n",
					 setting_name((enum setting_id)id), value);
	}
	if (used >= size)
		return size - 1;
	length = length < size - used - 1 ? length : size - used - 1;
	memcpy(text + used, overrides_text(settings->overrides), length);
	text[used + length] = '\0';
	return used + length;
}

bool settings_limit(const struct settings *settings)
{
	return settings->limit_count || !rate_is_unlimited(&settings->key_rate) ||
	       settings->key_unit_count || overrides_limit(settings->overrides);
}

bool settings_have_windows(const struct settings *settings)
{
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (rate_is_window(&settings->limits[i].rate))
			return true;
	}
	return false;
}

bool settings_have_strict_keys(const struct settings *settings)
{
	for (uint32_t i = 0; i < settings->key_unit_count; i++) {
		if (rate_is_strict(&settings_key_units(settings)[i].rate))
			return true;
	}
	return rate_is_strict(&settings->key_rate) || overrides_are_strict(settings->overrides);
}

bool settings_have_key_windows(const struct settings *settings)
{
	for (uint32_t i = 0; i < settings->key_unit_count; i++) {
		if (rate_is_window(&settings_key_units(settings)[i].rate))
			return true;
	}
	return overrides_windows(settings->overrides);
}

uint32_t settings_plain_count(const struct settings *settings)
{
	uint32_t count = 0;

	while (count < settings->limit_count && !*settings->limits[count].unit)
		count++;
	return count;
}

bool settings_have_unit(const struct settings *settings, const char unit[UNIT_TEXT])
{
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (amount_is_of(settings->limits[i].unit, unit))
			return true;
	}
	return false;
}

uint64_t settings_burst(const struct settings *settings, uint32_t i)
{
	if (rate_is_window(&settings->limits[i].rate))
		return settings->limits[i].burst;
	if (rate_is_strict(&settings->limits[i].rate))
		return rate_window(&settings->limits[i].rate);
	return settings->limits[i].burst ? settings->limits[i].burst : settings->burst;
}

/* As many as get a token of @rate each in @lease_ns, up to @most. */
static u128 count_for(const struct rate *rate, uint64_t lease_ns, u128 most)
{
	struct fraction flow = rate_fraction(rate);
	u128 tokens = (u128)flow.num * lease_ns / flow.den;

	/* Each of them is there at once. */
	if (rate_is_strict(rate))
		tokens = rate_window(rate);
	return tokens < most ? tokens : most;
}

/* Returns what of the rate of limit @i is not set aside. */
static struct rate rate_beside_reserve(const struct settings *settings, uint32_t i)
{
	const struct rate *rate = &settings->limits[i].rate;
	u128 num, den;

	if (!settings->reserve_hosts || rate_is_window(rate) || rate_is_strict(rate))
		return *rate;
	(void)rest_beside_reserve(settings, i, &num, &den);
	return rate_below(num, den);
}

/* As many as get a token of every limit each in a lease, beside the reserve, up to @most. */
static u128 count_worth_having(const struct settings *settings, u128 most)
{
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];
		struct rate rate = rate_beside_reserve(settings, i);

		if (!rate_is_window(&limit->rate))
			most = count_for(&rate, settings->lease_ns, most);
		else if (limit->burst < most)
			most = limit->burst;
	}
	/* Without a rate of its own it is cut for its keys. */
	if (settings->limit_count)
		return most;
	if (!rate_is_unlimited(&settings->key_rate))
		most = count_for(&settings->key_rate, settings->lease_ns, most);
	for (uint32_t i = 0; i < settings->key_unit_count; i++) {
		if (!rate_is_window(&settings_key_units(settings)[i].rate))
			most = count_for(&settings_key_units(settings)[i].rate, settings->lease_ns,
					 most);
	}
	return most;
}

/* The largest number up to 20 for which a partition gives at least a token a lease, and a slot. */
uint32_t settings_partition_count(const struct settings *settings)
{
	u128 count;

	if (settings->partitions)
		return settings->partitions;
	count = count_worth_having(settings, PARTITIONS_AUTO);
	if (settings->slots.kind == SLOTS_COUNT && settings->slots.count < count)
		count = settings->slots.count;
	return count < 1 ? 1 : (uint32_t)count;
}

uint32_t settings_slots_of_partition(const struct settings *settings, uint32_t index)
{
	uint32_t count = settings_partition_count(settings);

	return settings->slots.count / count + (index < settings->slots.count % count);
}

uint32_t settings_leaf_count(const struct settings *settings)
{
	uint64_t least = LEAVES_MOST;

	if (settings->partitions)
		return settings->partitions;
	if (settings->slots.kind == SLOTS_COUNT && settings->slots.count < least)
		least = settings->slots.count;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct rate *rate = &settings->limits[i].rate;
		uint64_t tokens = rate_is_window(rate) ? settings->limits[i].burst : least;

		if (rate_is_strict(rate) && rate_window(rate) < least)
			least = rate_window(rate);
		if (tokens < QUOTA_SMALL && tokens < least)
			least = tokens;
	}
	return (uint32_t)least;
}

uint32_t settings_least_leaves(const struct settings *settings)
{
	uint32_t leaves = settings_leaf_count(settings);
	uint32_t count = (uint32_t)count_worth_having(settings, leaves);

	/* Hosts do not take turns for keys alone: a turn of a host would be one of its users. */
	if (settings->partitions || !settings->limit_count)
		return 1;
	return count ? leaves / count : leaves;
}

uint32_t settings_slots_of_leaves(const struct settings *settings, uint32_t first, uint32_t last)
{
	uint32_t leaves = settings_leaf_count(settings), slots = settings->slots.count;
	uint32_t more = slots % leaves, from = first < more ? first : more;
	uint32_t to = last + 1 < more ? last + 1 : more;

	return slots / leaves * (last - first + 1) + to - from;
}

uint32_t settings_leaf_of_slot(const struct settings *settings, uint32_t number)
{
	uint32_t leaves = settings_leaf_count(settings), slots = settings->slots.count;
	uint32_t each = slots / leaves, more = slots % leaves;

	if (number < more * (each + 1))
		return number / (each + 1);
	return more + (number - more * (each + 1)) / each;
}

/* @partitions of @count shares of @rate, rounded down where that is no rate that can be written. */
static struct rate rate_times(const struct rate *rate, uint32_t count, uint32_t partitions)
{
	struct fraction flow = rate_fraction(rate);

	if (partitions == count)
		return *rate;
	if (rate_is_strict(rate))
		return rate_window_part(rate, count, partitions);
	return rate_below((u128)flow.num * partitions, (u128)flow.den * count);
}

/*
 * Sums up @partitions of @count shares of limit @i, and the reserve if @reserve, rounded down
 * likewise.
 */
static struct rate rate_of_host(const struct settings *settings, uint32_t i, uint32_t count,
				uint32_t partitions, bool reserve)
{
	struct fraction b;
	u128 num, den;

	if (!settings->reserve_hosts)
		return rate_times(&settings->limits[i].rate, count, partitions);
	(void)rest_beside_reserve(settings, i, &num, &den);
	num *= partitions;
	den *= count;
	if (reserve) {
		b = rate_fraction(&settings->reserve_rate);
		num += (u128)b.num * (den / b.den);
	}
	return rate_below(num, den);
}

/* At least one token. */
static uint64_t burst_of_host(uint64_t burst, uint32_t count, uint32_t partitions)
{
	u128 share = (u128)burst * partitions / count;

	return share < 1 ? 1 : (uint64_t)share;
}

struct key_part settings_key_part(const struct settings *settings, uint32_t held, uint32_t leaves)
{
	uint32_t count = settings_leaf_count(settings);

	if (settings->key_share != KEY_SHARE_LEASED)
		return (struct key_part){held, count};
	return (struct key_part){held * (KEY_PARTS - KEY_LEAVES) + leaves * count,
				 count * KEY_PARTS};
}

void settings_override(const struct override *override, const struct key_part *part,
		       struct rate *rate, uint64_t *burst)
{
	if (override->has_rate)
		*rate = override->rate;
	if (override->has_rate && !rate_is_unlimited(rate))
		*rate = rate_times(&override->rate, part->of, part->parts);
	if (override->burst)
		*burst = burst_of_host(override->burst, part->of, part->parts);
}

void settings_key_limit(const struct key_part *part, struct limit *limit)
{
	const struct override whole = {
		.has_rate = true, .rate = limit->rate, .burst = limit->burst};

	settings_override(&whole, part, &limit->rate, &limit->burst);
}

static void share_key_units(const struct key_part *part, struct settings *settings)
{
	for (uint32_t i = LIMITS_MAX - settings->key_unit_count; i < LIMITS_MAX; i++)
		settings_key_limit(part, &settings->limits[i]);
}

void settings_override_all(const struct override *override, struct settings *settings)
{
	uint32_t count = override->unit_count;

	if (override->burst)
		settings->key_burst = override->burst;
	if (!override->has_rate)
		return;
	settings->key_rate = override->rate;
	settings->key_unit_count = (uint8_t)count;
	memcpy(&settings->limits[LIMITS_MAX - count], override->units,
	       count * sizeof(*override->units));
}

void settings_key_share(const struct settings *settings, uint32_t held, uint32_t leaves,
			struct rate *rate, uint64_t *burst)
{
	struct key_part part = settings_key_part(settings, held, leaves);
	const struct override whole = {
		.has_rate = true, .rate = settings->key_rate, .burst = settings->key_burst};

	settings_override(&whole, &part, rate, burst);
}

struct rate settings_part_of_min(const struct settings *settings, uint32_t all, uint32_t part)
{
	return rate_times(&settings->min, all, part);
}

void settings_of_host(const struct settings *settings, uint32_t leaves, bool reserve,
		      struct settings *share)
{
	uint32_t count = settings_leaf_count(settings);
	const struct key_part part = settings_key_part(settings, leaves, 0);
	bool any = leaves || reserve;

	*share = *settings;
	share->overrides = NULL; /* see holding_key_part() */
	share->burst = any ? burst_of_host(settings->burst, count, leaves) : 0;
	settings_key_share(settings, leaves, 0, &share->key_rate, &share->key_burst);
	share_key_units(&part, share);
	if (settings->min.amount)
		share->min = rate_times(&settings->min, count, leaves);
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct limit *limit = &share->limits[i];

		if (rate_is_window(&limit->rate)) {
			limit->burst = (uint64_t)((u128)limit->burst * leaves / count);
			continue;
		}
		if (limit->burst)
			limit->burst = any ? burst_of_host(limit->burst, count, leaves) : 0;
		limit->rate = rate_of_host(settings, i, count, leaves, reserve);
	}
}

void settings_apply_offline(struct settings *settings)
{
	uint32_t hosts = settings->offline;
	const struct key_part part = {1, hosts};

	if (hosts == OFFLINE_OPEN)
		settings->enforcement = ENFORCEMENT_OPEN;
	if (hosts == OFFLINE_OPEN || hosts == OFFLINE_BLOCK)
		return;
	if (settings->slots.kind == SLOTS_COUNT)
		settings->slots.count /= hosts;
	settings->burst = burst_of_host(settings->burst, hosts, 1);
	settings->key_burst = burst_of_host(settings->key_burst, hosts, 1);
	if (!rate_is_unlimited(&settings->key_rate))
		settings->key_rate = rate_times(&settings->key_rate, hosts, 1);
	share_key_units(&part, settings);
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct limit *limit = &settings->limits[i];

		if (rate_is_window(&limit->rate)) {
			limit->burst /= hosts;
			continue;
		}
		limit->rate = rate_times(&limit->rate, hosts, 1);
		if (limit->burst)
			limit->burst = burst_of_host(limit->burst, hosts, 1);
	}
}

struct settings settings_of_partition(const struct settings *settings, uint32_t index)
{
	uint32_t count = settings_partition_count(settings);
	struct settings share = *settings;

	share.overrides = NULL;
	share.partitions = 1;
	share.reserve_hosts = 0;
	share.weight = SETTINGS_DEFAULT.weight;
	share.min = SETTINGS_DEFAULT.min;
	share.priority = SETTINGS_DEFAULT.priority;
	share.burst = settings->burst / count ? settings->burst / count : 1;
	share.key_rate = rate_share(&settings->key_rate, count);
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct limit *limit = &share.limits[i];

		if (limit->burst)
			limit->burst = limit->burst / count ? limit->burst / count : 1;
		if (rate_is_window(&limit->rate))
			continue;
		if (index >= PARTITIONS_MAX)
			limit->rate = settings->reserve_rate;
		else if (settings->reserve_hosts)
			limit->rate = rate_of_host(settings, i, count, 1, false);
		else
			limit->rate = rate_share(&limit->rate, count);
	}
	return share;
}
