/*
 * setting_table - THE TABLE of settings: the name of each, and its value from and to text, see
 * settings.h.
 */
#include "core/values/rate_setting.h"
#include "core/values/settings.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define HOUR_NS (3600 * NSEC_PER_SEC)

/* Types of values. A setting of another type has functions of its own. */
enum setting_type {
	TYPE_OWN,
	TYPE_BURST,    /* uint64_t: 1 to TOKENS_MAX */
	TYPE_COUNT,    /* uint32_t: a whole number */
	TYPE_DURATION, /* uint64_t: nanoseconds */
	TYPE_CHOICE,   /* uint32_t: which of the names in @choices */
};

struct setting_row {
	const char *name;
	enum setting_type type;
	size_t at;		    /* offset of the value in struct settings; not of TYPE_OWN */
	uint64_t least, most;	    /* bounds, inclusive; of TYPE_COUNT and TYPE_DURATION */
	const char *zero;	    /* how 0 is written beside these; NULL: it is not allowed */
	const char *const *choices; /* of TYPE_CHOICE: names, and NULL at the end */

	/* Of TYPE_OWN; as setting_parse() and setting_print(). */
	int (*parse)(const char *text, struct settings *settings, char error[ERROR_TEXT]);
	void (*print)(const struct settings *settings, char text[SETTING_TEXT]);
};

const struct settings SETTINGS_DEFAULT = {
	.burst = 1,
	.lease_ns = 15 * NSEC_PER_SEC,
	.key_rate = {.amount = UINT64_MAX, .period_ns = NSEC_PER_SEC}, /* max */
	.key_burst = 1,
	.keys_max = KEYS_MAX_DEFAULT,
	.weight = SIBLING_WEIGHT_DEFAULT,
	.min = {.period_ns = NSEC_PER_SEC},
	.queue_max = UINT32_MAX,
	.wait_max_ns = NEVER_NS,
	.key_concurrency = UINT32_MAX,
};

static const char *const ENFORCEMENT_NAMES[ENFORCEMENT_COUNT + 1] = {
	[ENFORCEMENT_ENFORCE] = "enforce",
	[ENFORCEMENT_SHADOW] = "shadow",
	[ENFORCEMENT_OPEN] = "open",
	[ENFORCEMENT_CLOSED] = "closed",
};

static const char *const KEY_SHARE_NAMES[KEY_SHARE_COUNT + 1] = {
	[KEY_SHARE_PROPORTIONAL] = "proportional",
	[KEY_SHARE_LEASED] = "leased",
};

static int parse_burst(const char *text, uint64_t *value, char error[ERROR_TEXT])
{
	uint64_t burst;
	int err = tokens_parse(text, &burst);

	if (!err && !burst)
		err = -ERANGE;
	if (err)
		return text_refuse(err, error, text, rate_setting_burst_why(err));
	*value = burst;
	return 0;
}

/* Refuses @text for being beside the bounds of @row, which print as @least and @most. */
static int refuse_bounds(const struct setting_row *row, char error[ERROR_TEXT], const char *text,
			 const char *least, const char *most)
{
	char why[4 * QUANTITY_TEXT];

	snprintf(why, sizeof(why), "out of bounds: %s%s%s to %s", row->zero ? row->zero : "",
		 row->zero ? " or " : "", least, most);
	return text_refuse(-ERANGE, error, text, why);
}

static bool is_within(const struct setting_row *row, uint64_t value)
{
	return (value >= row->least && value <= row->most) || (row->zero && !value);
}

static int parse_duration(const struct setting_row *row, const char *text, uint64_t *value,
			  char error[ERROR_TEXT])
{
	uint64_t ns;
	int err = duration_parse(text, &ns);
	char least[QUANTITY_TEXT], most[QUANTITY_TEXT];

	if (err == -EINVAL)
		return text_refuse(err, error, text, DURATION_WHY);
	if (err || !is_within(row, ns)) {
		duration_print(row->least, least);
		duration_print(row->most, most);
		return refuse_bounds(row, error, text, least, most);
	}
	*value = ns;
	return 0;
}

/* Where 0 has a name, the number is not written. */
static int parse_count(const struct setting_row *row, const char *text, uint32_t *value,
		       char error[ERROR_TEXT])
{
	uint64_t count = 0;
	int err = row->zero && !strcmp(text, row->zero) ? 0 : count_parse(text, &count);
	char least[QUANTITY_TEXT], most[QUANTITY_TEXT], why[4 * QUANTITY_TEXT];

	assert(row->most <= UINT32_MAX);
	if (err == -EINVAL) {
		snprintf(why, sizeof(why), "not a count: %s%sa whole number, %llu to %llu",
			 row->zero ? row->zero : "", row->zero ? " or " : "",
			 (unsigned long long)row->least, (unsigned long long)row->most);
		return text_refuse(err, error, text, why);
	}
	if (err || !is_within(row, count) ||
	    (!count && row->zero && strcmp(text, row->zero) != 0)) {
		snprintf(least, sizeof(least), "%llu", (unsigned long long)row->least);
		snprintf(most, sizeof(most), "%llu", (unsigned long long)row->most);
		return refuse_bounds(row, error, text, least, most);
	}
	*value = (uint32_t)count;
	return 0;
}

static int parse_choice(const struct setting_row *row, const char *text, uint32_t *value,
			char error[ERROR_TEXT])
{
	char why[ERROR_TEXT / 2];
	size_t used = (size_t)snprintf(why, sizeof(why), "not understood: ");

	for (uint32_t i = 0; row->choices[i]; i++) {
		if (!strcmp(text, row->choices[i])) {
			*value = i;
			return 0;
		}
		used += (size_t)snprintf(why + used, sizeof(why) - used, "%s%s",
					 !i		       ? ""
					 : row->choices[i + 1] ? ", "
							       : " or ",
					 row->choices[i]);
	}
	return text_refuse(-EINVAL, error, text, why);
}

static int parse_reserve(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	static const char grammar[] = "not a reserve: none, or RATE hosts=N such as 10/s hosts=8 "
				      "(periods: " PERIOD_NAMES ")";
	static const char hosts_word[] = "hosts=";
	const char *rest;
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
		return text_refuse(-EINVAL, error, text, grammar);
	memcpy(copy, text, strlen(text) + 1);
	length = strcspn(copy, TEXT_SPACE);
	rest = text + length + strspn(text + length, TEXT_SPACE);
	copy[length] = '\0';
	if (strncmp(rest, hosts_word, strlen(hosts_word)) != 0)
		return text_refuse(-EINVAL, error, text, grammar);
	err = rate_parse(copy, &rate);
	if (!err)
		err = count_parse(rest + strlen(hosts_word), &hosts);
	if (err == -EINVAL)
		return text_refuse(err, error, text, grammar);
	if (err || rate_is_unlimited(&rate) || !rate.amount || hosts < 1 ||
	    hosts > RESERVE_HOSTS_MAX)
		return text_refuse(
			-ERANGE, error, text,
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

static int parse_offline(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	static const char share[] = "share:";
	uint64_t hosts;
	int err = -EINVAL;

	if (!strcmp(text, "block")) {
		settings->offline = OFFLINE_BLOCK;
		return 0;
	}
	if (!strcmp(text, "open")) {
		settings->offline = OFFLINE_OPEN;
		return 0;
	}
	if (!strncmp(text, share, strlen(share)))
		err = count_parse(text + strlen(share), &hosts);
	if (err == -EINVAL)
		return text_refuse(
			err, error, text,
			"not understood: block, open, or share:N for the rate divided by N");
	if (err || hosts < 1 || hosts > OFFLINE_HOSTS_MAX)
		return text_refuse(-ERANGE, error, text, "out of bounds: share:1 to share:1000000");
	settings->offline = (uint32_t)hosts;
	return 0;
}

static void print_offline(const struct settings *settings, char text[SETTING_TEXT])
{
	if (settings->offline == OFFLINE_BLOCK)
		snprintf(text, SETTING_TEXT, "block");
	else if (settings->offline == OFFLINE_OPEN)
		snprintf(text, SETTING_TEXT, "open");
	else
		snprintf(text, SETTING_TEXT, "share:%u", settings->offline);
}

static int parse_adapt(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	return adapt_setting_parse(text, &settings->adapt, error);
}

static void print_adapt(const struct settings *settings, char text[SETTING_TEXT])
{
	adapt_setting_print(&settings->adapt, text);
}

static int parse_backoff(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	return backoff_setting_parse(text, &settings->backoff, error);
}

static void print_backoff(const struct settings *settings, char text[SETTING_TEXT])
{
	backoff_setting_print(&settings->backoff, text);
}

static int parse_concurrency(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	return concurrency_setting_parse(text, &settings->slots, error);
}

static void print_concurrency(const struct settings *settings, char text[SETTING_TEXT])
{
	concurrency_setting_print(&settings->slots, text);
}

static int parse_min(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	static const char bounds[] =
		"out of bounds, or too fine: a min is none, or 1/26d to 1000000000000/s";
	struct rate rate = {.period_ns = NSEC_PER_SEC};
	int err = strcmp(text, "none") != 0 ? rate_parse(text, &rate) : 0;

	if (err == -EINVAL)
		return text_refuse(err, error, text, "not a min: none, or a rate such as 10/s");
	if (err || rate_is_unlimited(&rate))
		return text_refuse(-ERANGE, error, text, bounds);
	if (!rate.amount)
		rate = (struct rate){.period_ns = NSEC_PER_SEC};
	settings->min = rate;
	return 0;
}

static void print_min(const struct settings *settings, char text[SETTING_TEXT])
{
	if (settings->min.amount)
		rate_print(&settings->min, text);
	else
		snprintf(text, SETTING_TEXT, "none");
}

static int parse_queue_max(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	uint64_t count;
	int err = count_parse(text, &count);

	if (err == -EINVAL)
		return text_refuse(err, error, text, "not a count: max or a whole number");
	if (err || (count > QUEUE_MAX_MOST && count != UINT64_MAX))
		return text_refuse(-ERANGE, error, text, "out of bounds: max or 0 to 1000000000");
	settings->queue_max = count == UINT64_MAX ? UINT32_MAX : (uint32_t)count;
	return 0;
}

static void print_queue_max(const struct settings *settings, char text[SETTING_TEXT])
{
	count_print(settings->queue_max == UINT32_MAX ? UINT64_MAX : settings->queue_max, text);
}

static int parse_wait_max(const char *text, struct settings *settings, char error[ERROR_TEXT])
{
	uint64_t ns = NEVER_NS;
	int err = strcmp(text, "max") != 0 ? duration_parse(text, &ns) : 0;

	if (err == -EINVAL)
		return text_refuse(err, error, text,
				   "not a duration: max, or such as 200ms, 15s or 1h (" PERIOD_NAMES
				   "), or a number of seconds");
	if (err)
		return text_refuse(-ERANGE, error, text, "out of bounds: max or 0s to 3650d");
	settings->wait_max_ns = ns;
	return 0;
}

static void print_wait_max(const struct settings *settings, char text[SETTING_TEXT])
{
	if (settings->wait_max_ns == NEVER_NS)
		snprintf(text, SETTING_TEXT, "max");
	else
		duration_print(settings->wait_max_ns, text);
}

static int parse_key_concurrency(const char *text, struct settings *settings,
				 char error[ERROR_TEXT])
{
	uint64_t count;
	int err = count_parse(text, &count);

	if (err == -EINVAL)
		return text_refuse(err, error, text, "not a count: max or a whole number");
	if (err || !count || (count > SLOTS_COUNT_MAX && count != UINT64_MAX))
		return text_refuse(-ERANGE, error, text, "out of bounds: max or 1 to 1000000");
	settings->key_concurrency = count == UINT64_MAX ? UINT32_MAX : (uint32_t)count;
	return 0;
}

static void print_key_concurrency(const struct settings *settings, char text[SETTING_TEXT])
{
	uint32_t count = settings->key_concurrency;

	count_print(count == UINT32_MAX ? UINT64_MAX : count, text);
}

/* The table: one row per setting. */
static const struct setting_row SETTINGS[SETTING_COUNT] = {
	[SETTING_RATE] = {.name = "rate", .parse = rate_setting_parse, .print = rate_setting_print},
	[SETTING_BURST] = {.name = "burst",
			   .type = TYPE_BURST,
			   .at = offsetof(struct settings, burst)},
	[SETTING_RELEASE_INTERVAL] = {.name = "release_interval",
				      .type = TYPE_DURATION,
				      .at = offsetof(struct settings, release_interval_ns),
				      .least = NSEC_PER_SEC / 1000,
				      .most = HOUR_NS,
				      .zero = "0s"},
	[SETTING_ENFORCEMENT] = {.name = "enforcement",
				 .type = TYPE_CHOICE,
				 .at = offsetof(struct settings, enforcement),
				 .choices = ENFORCEMENT_NAMES},
	[SETTING_PARTITIONS_COUNT] = {.name = "partitions.count",
				      .type = TYPE_COUNT,
				      .at = offsetof(struct settings, partitions),
				      .least = 1,
				      .most = PARTITIONS_MAX,
				      .zero = "auto"},
	[SETTING_PARTITIONS_LEASE] = {.name = "partitions.lease",
				      .type = TYPE_DURATION,
				      .at = offsetof(struct settings, lease_ns),
				      .least = NSEC_PER_SEC,
				      .most = HOUR_NS},
	[SETTING_PARTITIONS_RESERVE] = {.name = "partitions.reserve",
					.parse = parse_reserve,
					.print = print_reserve},
	[SETTING_OFFLINE] = {.name = "offline", .parse = parse_offline, .print = print_offline},
	[SETTING_ADAPT] = {.name = "adapt", .parse = parse_adapt, .print = print_adapt},
	[SETTING_BACKOFF] = {.name = "backoff", .parse = parse_backoff, .print = print_backoff},
	[SETTING_CONCURRENCY] = {.name = "concurrency",
				 .parse = parse_concurrency,
				 .print = print_concurrency},
	[SETTING_KEY_RATE] = {.name = "key_rate",
			      .parse = rate_setting_parse_key,
			      .print = rate_setting_print_key},
	[SETTING_KEY_BURST] = {.name = "key_burst",
			       .type = TYPE_BURST,
			       .at = offsetof(struct settings, key_burst)},
	[SETTING_KEYS_MAX] = {.name = "keys_max",
			      .type = TYPE_COUNT,
			      .at = offsetof(struct settings, keys_max),
			      .least = 1,
			      .most = KEYS_MAX_MOST},
	[SETTING_KEY_SHARE] = {.name = "key_share",
			       .type = TYPE_CHOICE,
			       .at = offsetof(struct settings, key_share),
			       .choices = KEY_SHARE_NAMES},
	[SETTING_WEIGHT] = {.name = "weight",
			    .type = TYPE_COUNT,
			    .at = offsetof(struct settings, weight),
			    .least = 1,
			    .most = SIBLING_WEIGHT_MAX},
	[SETTING_MIN] = {.name = "min", .parse = parse_min, .print = print_min},
	[SETTING_PRIORITY] = {.name = "priority",
			      .type = TYPE_COUNT,
			      .at = offsetof(struct settings, priority),
			      .most = PRIORITIES - 1},
	[SETTING_QUEUE_MAX] = {.name = "queue_max",
			       .parse = parse_queue_max,
			       .print = print_queue_max},
	[SETTING_WAIT_MAX] = {.name = "wait_max", .parse = parse_wait_max, .print = print_wait_max},
	[SETTING_KEY_CONCURRENCY] = {.name = "key_concurrency",
				     .parse = parse_key_concurrency,
				     .print = print_key_concurrency},
};

const char *setting_name(enum setting_id id)
{
	return SETTINGS[id].name;
}

enum setting_id setting_find(const char *name, size_t length)
{
	int id = 0;

	while (id < SETTING_COUNT && (strlen(SETTINGS[id].name) != length ||
				      memcmp(SETTINGS[id].name, name, length) != 0))
		id++;
	return (enum setting_id)id;
}

int setting_parse(enum setting_id id, const char *text, struct settings *settings,
		  char error[ERROR_TEXT])
{
	const struct setting_row *row = &SETTINGS[id];
	void *value = (char *)settings + row->at;
	char word[SETTING_TEXT];

	if (text_copy(text, strlen(text), word, sizeof(word)))
		return text_refuse(-EINVAL, error, text, "too long");
	if (!*word)
		return text_refuse(-EINVAL, error, word, "no value is given");
	switch (row->type) {
	case TYPE_BURST:
		return parse_burst(word, value, error);
	case TYPE_COUNT:
		return parse_count(row, word, value, error);
	case TYPE_DURATION:
		return parse_duration(row, word, value, error);
	case TYPE_CHOICE:
		return parse_choice(row, word, value, error);
	case TYPE_OWN:
		break;
	}
	return row->parse(word, settings, error);
}

void setting_print(enum setting_id id, const struct settings *settings, char text[SETTING_TEXT])
{
	const struct setting_row *row = &SETTINGS[id];
	const void *value = (const char *)settings + row->at;

	switch (row->type) {
	case TYPE_BURST:
		count_print(*(const uint64_t *)value, text);
		break;
	case TYPE_COUNT:
		if (row->zero && !*(const uint32_t *)value)
			snprintf(text, SETTING_TEXT, "%s", row->zero);
		else
			count_print(*(const uint32_t *)value, text);
		break;
	case TYPE_DURATION:
		duration_print(*(const uint64_t *)value, text);
		break;
	case TYPE_CHOICE:
		snprintf(text, SETTING_TEXT, "%s", row->choices[*(const uint32_t *)value]);
		break;
	case TYPE_OWN:
		row->print(settings, text);
		break;
	}
}

bool setting_equal(enum setting_id id, const struct settings *a, const struct settings *b)
{
	char text_a[SETTING_TEXT], text_b[SETTING_TEXT];

	setting_print(id, a, text_a);
	setting_print(id, b, text_b);
	return !strcmp(text_a, text_b);
}
