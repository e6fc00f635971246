/* settings - what a limiter is told to do, see settings.h. */
#include "settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LEASE_MIN_NS	NSEC_PER_SEC
#define LEASE_MAX_NS	(3600 * NSEC_PER_SEC)
#define INTERVAL_MIN_NS (NSEC_PER_SEC / 1000)
#define INTERVAL_MAX_NS (3600 * NSEC_PER_SEC)

const struct settings SETTINGS_DEFAULT = {
	.burst = 1,
	.lease_ns = 15 * NSEC_PER_SEC,
};

static const char *const MODE_NAMES[MODE_COUNT] = {
	[MODE_ENFORCE] = "enforce",
	[MODE_SHADOW] = "shadow",
	[MODE_OPEN] = "open",
	[MODE_CLOSED] = "closed",
};

static const char SPACE[] = " \t\n\r\v\f";

char *text_trim(char *text)
{
	size_t length;

	text += strspn(text, SPACE);
	length = strlen(text);
	while (length && strchr(SPACE, text[length - 1]))
		length--;
	text[length] = '\0';
	return text;
}

static int refuse(int err, char error[ERROR_TEXT], const char *text, const char *why)
{
	snprintf(error, ERROR_TEXT, "'%.200s': %s", text, why);
	return err;
}

static const char RATE_GRAMMAR[] =
	"not a rate: NUMBER[UNIT]/PERIOD such as 500/s, 2GiB/min or 1000/90s, or max, or 0";
static const char RATE_BOUNDS[] =
	"out of bounds, or too fine: a rate is 0, max, or 1/26d to 1000000000000/s";

static int parse_limit(char *word, struct limit *limit, char error[ERROR_TEXT])
{
	char *colon = strchr(word, ':');
	int err;

	if (colon)
		*colon = '\0';
	err = rate_parse(word, &limit->rate);
	if (err)
		return refuse(err, error, word, err == -ERANGE ? RATE_BOUNDS : RATE_GRAMMAR);
	limit->burst = 0;
	if (!colon)
		return 0;
	if (rate_is_unlimited(&limit->rate))
		return refuse(-EINVAL, error, colon + 1, "max has no burst");
	err = tokens_parse(colon + 1, &limit->burst);
	if (err == -EINVAL)
		return refuse(err, error, colon + 1, "not a burst: a whole number such as 20");
	if (err || !limit->burst)
		return refuse(-ERANGE, error, colon + 1, "out of bounds: a burst is 1 to 1e13");
	return 0;
}

static int parse_rate(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	struct limit limits[LIMITS_MAX];
	uint32_t count = 0, words = 0;
	char copy[SETTING_TEXT], *rest = copy, *word;
	bool unlimited = false;
	int err;

	if (strlen(text) >= sizeof(copy))
		return refuse(-EINVAL, error, text, "too long for a rate");
	memcpy(copy, text, strlen(text) + 1);
	while (*(rest += strspn(rest, SPACE))) {
		word = rest;
		rest += strcspn(rest, SPACE);
		if (*rest)
			*rest++ = '\0';
		if (words++ == LIMITS_MAX)
			return refuse(-ERANGE, error, text, "more than 8 limits");
		err = parse_limit(word, &limits[count], error);
		if (err)
			return err;
		if (rate_is_unlimited(&limits[count].rate))
			unlimited = true;
		else
			count++;
	}
	if (unlimited && words > 1)
		return refuse(-EINVAL, error, text, "max stands alone");
	if (!words)
		return refuse(-EINVAL, error, text, RATE_GRAMMAR);
	memcpy(settings->limits, limits, count * sizeof(*limits));
	settings->limit_count = count;
	return 0;
}

static void print_rate(const struct settings *settings, char text[SETTING_TEXT])
{
	size_t used = 0;
	char rate[QUANTITY_TEXT];

	if (!settings->limit_count) {
		rate_print(&RATE_UNLIMITED, text);
		return;
	}
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct limit *limit = &settings->limits[i];

		rate_print(&limit->rate, rate);
		used += (size_t)snprintf(text + used, SETTING_TEXT - used, "%s%s", i ? " " : "",
					 rate);
		if (limit->burst)
			used += (size_t)snprintf(text + used, SETTING_TEXT - used, ":%llu",
						 (unsigned long long)limit->burst);
	}
}

static int parse_burst(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	uint64_t burst;
	int err = tokens_parse(text, &burst);

	if (err == -EINVAL)
		return refuse(err, error, text, "not a burst: a whole number such as 20");
	if (err || !burst)
		return refuse(-ERANGE, error, text, "out of bounds: a burst is 1 to 1e13");
	settings->burst = burst;
	return 0;
}

static void print_burst(const struct settings *settings, char text[SETTING_TEXT])
{
	count_print(settings->burst, text);
}

static int parse_duration(const char *text, uint64_t min_ns, uint64_t max_ns, bool zero,
			  uint64_t *ns, char error[ERROR_TEXT])
{
	uint64_t value;
	int err = duration_parse(text, &value);
	char least[QUANTITY_TEXT], most[QUANTITY_TEXT], why[4 * QUANTITY_TEXT];

	if (err == -EINVAL)
		return refuse(err, error, text, "not a duration: such as 200ms, 15s, 1min or 1h");
	if (err || ((value < min_ns || value > max_ns) && !(zero && !value))) {
		duration_print(min_ns, least);
		duration_print(max_ns, most);
		snprintf(why, sizeof(why), "out of bounds: %s%s to %s", zero ? "0s or " : "", least,
			 most);
		return refuse(-ERANGE, error, text, why);
	}
	*ns = value;
	return 0;
}

static int parse_interval(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	return parse_duration(text, INTERVAL_MIN_NS, INTERVAL_MAX_NS, true, &settings->interval_ns,
			      error);
}

static void print_interval(const struct settings *settings, char text[SETTING_TEXT])
{
	duration_print(settings->interval_ns, text);
}

static int parse_mode(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	for (int mode = 0; mode < MODE_COUNT; mode++) {
		if (!strcmp(text, MODE_NAMES[mode])) {
			settings->mode = (enum limiter_mode)mode;
			return 0;
		}
	}
	return refuse(-EINVAL, error, text, "not a mode: enforce, shadow, open or closed");
}

static void print_mode(const struct settings *settings, char text[SETTING_TEXT])
{
	snprintf(text, SETTING_TEXT, "%s", MODE_NAMES[settings->mode]);
}

static int parse_partitions(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	uint64_t count;
	int err;

	if (!strcmp(text, "auto")) {
		settings->partitions = 0;
		return 0;
	}
	err = count_parse(text, &count);
	if (err == -EINVAL)
		return refuse(err, error, text, "not a count: auto or a whole number");
	if (err || count < 1 || count > PARTITIONS_MAX)
		return refuse(-ERANGE, error, text, "out of bounds: auto or 1 to 4096");
	settings->partitions = (uint32_t)count;
	return 0;
}

static void print_partitions(const struct settings *settings, char text[SETTING_TEXT])
{
	if (settings->partitions)
		count_print(settings->partitions, text);
	else
		snprintf(text, SETTING_TEXT, "auto");
}

static int parse_lease(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	return parse_duration(text, LEASE_MIN_NS, LEASE_MAX_NS, false, &settings->lease_ns, error);
}

static void print_lease(const struct settings *settings, char text[SETTING_TEXT])
{
	duration_print(settings->lease_ns, text);
}

static int parse_reserve(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	static const char grammar[] = "not a reserve: none, or RATE hosts=N such as 10/s hosts=8";
	static const char hosts_word[] = "hosts=";
	char copy[SETTING_TEXT];
	struct rate rate;
	uint64_t hosts;
	size_t length;
	int err;

	if (!strcmp(text, "none")) {
		settings->reserve_hosts = 0;
		return 0;
	}
	if (strlen(text) >= sizeof(copy))
		return refuse(-EINVAL, error, text, grammar);
	memcpy(copy, text, strlen(text) + 1);
	length = strcspn(copy, SPACE);
	text += length + strspn(text + length, SPACE);
	copy[length] = '\0';
	if (strncmp(text, hosts_word, strlen(hosts_word)) != 0)
		return refuse(-EINVAL, error, copy, grammar);
	err = rate_parse(copy, &rate);
	if (!err)
		err = count_parse(text + strlen(hosts_word), &hosts);
	if (err == -EINVAL)
		return refuse(err, error, copy, grammar);
	if (err || rate_is_unlimited(&rate) || !rate.amount || hosts < 1 ||
	    hosts > RESERVE_HOSTS_MAX)
		return refuse(-ERANGE, error, copy,
			      "out of bounds: a finite rate above 0, and hosts=1 to hosts=4096");
	settings->reserve_rate = rate;
	settings->reserve_hosts = (uint32_t)hosts;
	return 0;
}

static void print_reserve(const struct settings *settings, char text[SETTING_TEXT])
{
	char rate[QUANTITY_TEXT];

	if (!settings->reserve_hosts) {
		snprintf(text, SETTING_TEXT, "none");
		return;
	}
	rate_print(&settings->reserve_rate, rate);
	snprintf(text, SETTING_TEXT, "%s hosts=%u", rate, settings->reserve_hosts);
}

/* The table: one row per setting. */
static const struct {
	const char *name;
	int (*parse)(const char *text, struct settings *settings, char error[ERROR_TEXT]);
	void (*print)(const struct settings *settings, char text[SETTING_TEXT]);
} SETTINGS[SETTING_COUNT] = {
	[SETTING_RATE] = {"rate", parse_rate, print_rate},
	[SETTING_BURST] = {"burst", parse_burst, print_burst},
	[SETTING_INTERVAL] = {"interval", parse_interval, print_interval},
	[SETTING_MODE] = {"mode", parse_mode, print_mode},
	[SETTING_PARTITIONS_COUNT] = {"partitions.count", parse_partitions, print_partitions},
	[SETTING_PARTITIONS_LEASE] = {"partitions.lease", parse_lease, print_lease},
	[SETTING_PARTITIONS_RESERVE] = {"partitions.reserve", parse_reserve, print_reserve},
};

const char *setting_name(enum setting_id id)
{
	return SETTINGS[id].name;
}

int setting_parse(enum setting_id id, const char *text, struct settings *settings,
		  char error[ERROR_TEXT])
{
	char copy[SETTING_TEXT], *trimmed;

	text += strspn(text, SPACE);
	if (!*text)
		return refuse(-EINVAL, error, text, "empty");
	if (strlen(text) >= sizeof(copy))
		return refuse(-EINVAL, error, text, "too long");
	memcpy(copy, text, strlen(text) + 1);
	trimmed = text_trim(copy);
	return SETTINGS[id].parse(trimmed, settings, error);
}

void setting_print(enum setting_id id, const struct settings *settings, char text[SETTING_TEXT])
{
	SETTINGS[id].print(settings, text);
}

bool setting_equal(enum setting_id id, const struct settings *a, const struct settings *b)
{
	char text_a[SETTING_TEXT], text_b[SETTING_TEXT];

	setting_print(id, a, text_a);
	setting_print(id, b, text_b);
	return !strcmp(text_a, text_b);
}

/*
 * What a partition has of limit @i when the reserve is set aside first: (rate - hosts * reserve) /
 * count, exactly. 0, or -ERANGE when that is negative or no rate that can be written.
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

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct fraction flow = rate_fraction(&settings->limits[i].rate);

		if ((u128)flow.num * settings->interval_ns / flow.den >= TOKENS_MAX) {
			snprintf(error, ERROR_TEXT,
				 "an interval would release more than 1e13 tokens");
			return -ERANGE;
		}
		if (settings->reserve_hosts && share_beside_reserve(settings, i, count, &share)) {
			char text[SETTING_TEXT];

			print_reserve(settings, text);
			return refuse(
				-ERANGE, error, text,
				"does not fit: hosts times the reserve must stay within the rate");
		}
	}
	return 0;
}

static int parse_line(char *line, struct settings *settings, char error[ERROR_TEXT])
{
	char *equals = strchr(line, '='), *name, *value;

	if (!equals)
		return refuse(-EINVAL, error, line, "not a name=value line");
	*equals = '\0';
	name = text_trim(line);
	value = equals + 1;
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (!strcmp(name, SETTINGS[id].name))
			return setting_parse((enum setting_id)id, value, settings, error);
	}
	return refuse(-EINVAL, error, name, "no such setting");
}

int settings_parse(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	struct settings next = *settings;
	unsigned int number = 0, found = 0;
	char line[2 * SETTING_TEXT], why[ERROR_TEXT], *trimmed;
	int err;

	while (*text) {
		size_t length = strcspn(text, "\n");

		number++;
		if (length >= sizeof(line)) {
			snprintf(error, ERROR_TEXT, "line %u: too long", number);
			return -EINVAL;
		}
		memcpy(line, text, length);
		line[length] = '\0';
		text += length + (text[length] == '\n');
		trimmed = text_trim(line);
		if (!*trimmed || *trimmed == '#')
			continue;
		found++;
		err = parse_line(trimmed, &next, why);
		if (err) {
			snprintf(error, ERROR_TEXT, "line %u: %.480s", number, why);
			return err;
		}
	}
	if (!found)
		return refuse(-EINVAL, error, "", "no setting given");
	err = settings_check(&next, error);
	if (!err)
		*settings = next;
	return err;
}

size_t settings_print(const struct settings *settings, char *text, size_t size)
{
	char value[SETTING_TEXT];
	size_t used = 0;

	for (int id = 0; id < SETTING_COUNT && used < size; id++) {
		setting_print((enum setting_id)id, settings, value);
		used += (size_t)snprintf(text + used, size - used, "%s=%s\n", SETTINGS[id].name,
					 value);
	}
	return used < size ? used : size - 1;
}

/* The largest number up to 20 for which a partition gives at least one token per lease. */
uint32_t settings_partition_count(const struct settings *settings)
{
	u128 count = PARTITIONS_AUTO;

	if (settings->partitions)
		return settings->partitions;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		struct fraction flow = rate_fraction(&settings->limits[i].rate);
		u128 tokens = (u128)flow.num * settings->lease_ns / flow.den;

		if (tokens < count)
			count = tokens;
	}
	return count < 1 ? 1 : (uint32_t)count;
}

struct settings settings_of_partition(const struct settings *settings, uint32_t index)
{
	uint32_t count = settings_partition_count(settings);
	struct settings share = *settings;

	share.mode = MODE_ENFORCE;
	share.partitions = 1;
	share.reserve_hosts = 0;
	share.burst = settings->burst / count ? settings->burst / count : 1;
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
