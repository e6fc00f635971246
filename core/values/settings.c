/* settings - all the settings of a limiter together, see settings.h. */
#include "core/values/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/*
 * Computes the share of a partition in limit @i when the reserve is set aside first:
 * (rate - hosts * reserve) / count, exactly. 0, or -ERANGE when that is negative or no rate that
 * can be written.
 */
static int share_beside_reserve(const struct settings *settings, uint32_t i, uint32_t count,
				struct rate *share)
{
	const struct rate *whole = &settings->limits[i].rate;
	struct fraction a, b;
	u128 num, den, set_aside;

	if (!settings->reserve_hosts) {
		*share = rate_share(whole, count);
		return 0;
	}
	a = rate_fraction(whole);
	b = rate_fraction(&settings->reserve_rate);
	/* Every part is below 2^51 and hosts below 2^13, so the products fit. */
	num = (u128)a.num * b.den;
	set_aside = (u128)b.num * a.den * settings->reserve_hosts;
	if (set_aside > num)
		return -ERANGE;
	num -= set_aside;
	den = (u128)a.den * b.den;
	*share = (struct rate){.period_ns = NSEC_PER_SEC};
	if (!num)
		return 0;
	return rate_from_fraction(num, den, count, share);
}

int settings_check(const struct settings *settings, char error[ERROR_TEXT])
{
	uint32_t count = settings_partition_count(settings);
	struct rate share;

	if (settings->slots.kind == SLOTS_COUNT && count > settings->slots.count) {
		snprintf(error, ERROR_TEXT,
			 "there are %u partitions: more than slots, of which there are %u", count,
			 settings->slots.count);
		return -ERANGE;
	}
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct fraction flow = rate_fraction(&settings->limits[i].rate);

		if ((u128)flow.num * settings->release_interval_ns / flow.den >= TOKENS_MAX) {
			snprintf(error, ERROR_TEXT,
				 "a release_interval would bring more than 1e13 tokens");
			return -ERANGE;
		}
		if (settings->reserve_hosts && share_beside_reserve(settings, i, count, &share)) {
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

static int parse_line(const char *line, struct settings *settings, char error[ERROR_TEXT])
{
	const char *equals = strchr(line, '=');
	char name[SETTING_TEXT];

	if (!equals)
		return text_refuse(-EINVAL, error, line, "not a name=value line");
	if (text_copy(line, (size_t)(equals - line), name, sizeof(name)))
		return text_refuse(-EINVAL, error, line, "no such setting");
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (!strcmp(name, setting_name((enum setting_id)id)))
			return setting_parse((enum setting_id)id, equals + 1, settings, error);
	}
	return refuse_name(name, error);
}

int settings_parse(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	struct settings next = *settings;
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
			err = parse_line(line, &next, why);
		if (err) {
			snprintf(error, ERROR_TEXT, "line %u: %.480s", number, why);
			return err;
		}
	}
	if (!found) {
		snprintf(error, ERROR_TEXT, "no setting is given");
		return -EINVAL;
	}
	if (settings_check(&next, error))
		return -ERANGE;
	*settings = next;
	return 0;
}

size_t settings_print(const struct settings *settings, char *text, size_t size)
{
	char value[SETTING_TEXT];
	size_t used = 0;

	for (int id = 0; id < SETTING_COUNT && used < size; id++) {
		setting_print((enum setting_id)id, settings, value);
		used += (size_t)snprintf(text + used, size - used, "%s=%s\n",
					 setting_name((enum setting_id)id), value);
	}
	return used < size ? used : size - 1;
}

bool settings_limit(const struct settings *settings)
{
	return settings->limit_count || !rate_is_unlimited(&settings->key_rate);
}

uint64_t settings_burst(const struct settings *settings, uint32_t i)
{
	return settings->limits[i].burst ? settings->limits[i].burst : settings->burst;
}

/* As many as get a token of @rate each in @lease_ns, up to @most. */
static u128 count_for(const struct rate *rate, uint64_t lease_ns, u128 most)
{
	struct fraction flow = rate_fraction(rate);
	u128 tokens = (u128)flow.num * lease_ns / flow.den;

	return tokens < most ? tokens : most;
}

/* As many as get a token of every limit each in a lease, up to @most. */
static u128 count_worth_having(const struct settings *settings, u128 most)
{
	for (uint32_t i = 0; i < settings->limit_count; i++)
		most = count_for(&settings->limits[i].rate, settings->lease_ns, most);
	/* Without a rate of its own it is cut for its keys. */
	if (!settings->limit_count && !rate_is_unlimited(&settings->key_rate))
		most = count_for(&settings->key_rate, settings->lease_ns, most);
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
	if (settings->partitions)
		return settings->partitions;
	if (settings->slots.kind == SLOTS_COUNT && settings->slots.count < LEAVES_MOST)
		return settings->slots.count;
	return LEAVES_MOST;
}

uint32_t settings_least_leaves(const struct settings *settings)
{
	uint32_t leaves = settings_leaf_count(settings);
	uint32_t count = (uint32_t)count_worth_having(settings, leaves);

	if (settings->partitions)
		return 1;
	return count ? (leaves + count - 1) / count : leaves;
}

uint32_t settings_slots_of_leaves(const struct settings *settings, uint32_t first, uint32_t last)
{
	uint32_t leaves = settings_leaf_count(settings), slots = settings->slots.count;
	uint32_t more = slots % leaves, from = first < more ? first : more;
	uint32_t to = last + 1 < more ? last + 1 : more;

	return slots / leaves * (last - first + 1) + to - from;
}

/* The largest rate that can be written and is not above @num / @den. */
static struct rate rate_below(u128 num, u128 den)
{
	struct rate rate = {.period_ns = NSEC_PER_SEC};

	while (num && rate_from_fraction(num, den, 1, &rate)) {
		num /= 2;
		den = den / 2 + 1;
	}
	return rate;
}

/* Sums up @partitions of @count shares of limit @i, and the reserve if @reserve. */
static struct rate rate_of_host(const struct settings *settings, uint32_t i, uint32_t count,
				uint32_t partitions, bool reserve)
{
	struct rate share = {.period_ns = NSEC_PER_SEC};
	struct fraction a, b;

	if (partitions == count && !settings->reserve_hosts)
		return settings->limits[i].rate;
	(void)share_beside_reserve(settings, i, count, &share);
	a = rate_fraction(&share);
	if (!reserve)
		return rate_below((u128)a.num * partitions, a.den);
	b = rate_fraction(&settings->reserve_rate);
	return rate_below((u128)a.num * partitions * b.den + (u128)b.num * a.den,
			  (u128)a.den * b.den);
}

/* @partitions of @count shares of @rate, rounded down where that is no rate that can be written. */
static struct rate rate_times(const struct rate *rate, uint32_t count, uint32_t partitions)
{
	struct fraction flow = rate_fraction(rate);

	if (partitions == count)
		return *rate;
	return rate_below((u128)flow.num * partitions, (u128)flow.den * count);
}

/* At least one token. */
static uint64_t burst_of_host(uint64_t burst, uint32_t count, uint32_t partitions)
{
	u128 share = (u128)burst * partitions / count;

	return share < 1 ? 1 : (uint64_t)share;
}

void settings_key_share(const struct settings *settings, uint32_t held, uint32_t leaves,
			struct rate *rate, uint64_t *burst)
{
	uint32_t count = settings_leaf_count(settings), parts = held;

	if (settings->key_share == KEY_SHARE_LEASED) {
		parts = held * (KEY_PARTS - KEY_LEAVES) + leaves * count;
		count *= KEY_PARTS;
	}
	*rate = settings->key_rate;
	if (!rate_is_unlimited(rate))
		*rate = rate_times(&settings->key_rate, count, parts);
	*burst = burst_of_host(settings->key_burst, count, parts);
}

void settings_of_host(const struct settings *settings, uint32_t leaves, bool reserve,
		      struct settings *share)
{
	uint32_t count = settings_leaf_count(settings);
	bool any = leaves || reserve;

	*share = *settings;
	share->burst = any ? burst_of_host(settings->burst, count, leaves) : 0;
	settings_key_share(settings, leaves, 0, &share->key_rate, &share->key_burst);
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct limit *limit = &share->limits[i];

		if (limit->burst)
			limit->burst = any ? burst_of_host(limit->burst, count, leaves) : 0;
		limit->rate = rate_of_host(settings, i, count, leaves, reserve);
	}
}

void settings_apply_offline(struct settings *settings)
{
	uint32_t hosts = settings->offline;

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
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct limit *limit = &settings->limits[i];
		struct fraction flow = rate_fraction(&limit->rate);

		limit->rate = rate_below(flow.num, (u128)flow.den * hosts);
		if (limit->burst)
			limit->burst = burst_of_host(limit->burst, hosts, 1);
	}
}

struct settings settings_of_partition(const struct settings *settings, uint32_t index)
{
	uint32_t count = settings_partition_count(settings);
	struct settings share = *settings;

	share.partitions = 1;
	share.reserve_hosts = 0;
	share.burst = settings->burst / count ? settings->burst / count : 1;
	share.key_rate = rate_share(&settings->key_rate, count);
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct limit *limit = &share.limits[i];

		if (limit->burst)
			limit->burst = limit->burst / count ? limit->burst / count : 1;
		if (index >= count)
			limit->rate = settings->reserve_rate;
		else
			(void)share_beside_reserve(settings, i, count, &limit->rate);
	}
	return share;
}
