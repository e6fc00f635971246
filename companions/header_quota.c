/* header_quota - header fields about quotas, see header_quota.h. */
#include "companions/header_quota.h"
#include "companions/header_value.h"

#include "core/values/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_TEXT = 64, ITEM_TEXT = 160 };

#define POLICY "policy " /* begins the keys of policies */

/* The meaning of a field, by the words of its name. */
enum saying { SAYS_NOTHING, SAYS_LIMIT, SAYS_REMAINING, SAYS_RESET, SAYS_WINDOW, SAYS_FILL };

struct field_name {
	char key[QUOTA_KEY_TEXT];
	enum saying says;
	bool fills, is_relative;
	uint64_t window_ns;
	uint64_t unit_ns; /* of a number that is a window */
	char unit[UNIT_TEXT];
};

/* The longest window that is a rate, and in which `remaining` may be used up without a reset. */
static const uint64_t WINDOW_MOST_NS = 60 * NSEC_PER_SEC;

/* For so long at least what is left of a unit holds that fills little by little. */
static const uint64_t UNIT_HOLDS_NS = NSEC_PER_SEC;

/* Shopify's buckets are empty after so long, whatever their size: 2/s of 40, 4/s of 80. */
static const uint64_t SHOPIFY_NS = 20 * NSEC_PER_SEC;

static const struct {
	const char *word;
	enum saying says;
	bool fills, is_relative, is_of_unit;
	uint64_t window_ns, unit_ns;
} WORDS[] = {
	{.word = "limit", .says = SAYS_LIMIT},
	{.word = "max", .says = SAYS_LIMIT},
	{.word = "remaining", .says = SAYS_REMAINING},
	{.word = "reset", .says = SAYS_RESET},
	{.word = "resettime", .says = SAYS_RESET},
	{.word = "after", .is_relative = true},
	{.word = "interval", .says = SAYS_WINDOW},
	{.word = "seconds", .unit_ns = NSEC_PER_SEC},
	{.word = "milliseconds", .unit_ns = NSEC_PER_SEC / 1000},
	{.word = "fillrate", .says = SAYS_FILL},
	{.word = "second", .window_ns = NSEC_PER_SEC},
	{.word = "secondly", .window_ns = NSEC_PER_SEC},
	{.word = "minute", .window_ns = 60 * NSEC_PER_SEC},
	{.word = "hour", .window_ns = 3600 * NSEC_PER_SEC},
	{.word = "day", .window_ns = 86400 * NSEC_PER_SEC},
	{.word = "daily", .window_ns = 86400 * NSEC_PER_SEC},
	{.word = "requests", .fills = true},
	{.word = "tokens", .fills = true, .is_of_unit = true},
	{.word = "input", .is_of_unit = true},
	{.word = "output", .is_of_unit = true},
	{.word = "prompt", .is_of_unit = true},
	{.word = "generated", .is_of_unit = true},
};

/* Adds @word to the name of a unit. False: that is too long. */
static bool add_to_unit(char unit[UNIT_TEXT], const char *word)
{
	size_t used = strlen(unit);

	return snprintf(unit + used, UNIT_TEXT - used, "%s%s", used ? "_" : "", word) <
	       (int)(UNIT_TEXT - used);
}

/* Adds what @word says to @name. False: it says nothing that is known. */
static bool add_word(struct field_name *name, const char *word)
{
	static const size_t count = sizeof(WORDS) / sizeof(WORDS[0]);
	size_t i = 0, used = strlen(name->key);

	while (i < count && strcmp(WORDS[i].word, word) != 0)
		i++;
	if (i == count || (WORDS[i].says && name->says))
		return false;
	if (WORDS[i].says)
		name->says = WORDS[i].says;
	name->fills |= WORDS[i].fills;
	name->is_relative |= WORDS[i].is_relative;
	if (WORDS[i].unit_ns)
		name->unit_ns = WORDS[i].unit_ns;
	if (WORDS[i].window_ns)
		name->window_ns = WORDS[i].window_ns;
	if (WORDS[i].is_of_unit && !add_to_unit(name->unit, word))
		return false;
	if (WORDS[i].window_ns || WORDS[i].fills || WORDS[i].is_of_unit)
		snprintf(name->key + used, sizeof(name->key) - used, "-%s", word);
	return true;
}

/* Reads the @name of a field. False: it is none about a quota. */
static bool read_name(const char *name, struct field_name *field)
{
	static const char *const MARKS[] = {"ratelimit", "rate-limit"};
	char words[NAME_TEXT], *rest = words, *word;
	const char *mark = NULL;

	*field = (struct field_name){.says = SAYS_NOTHING};
	if (strlen(name) >= NAME_TEXT)
		return false;
	for (size_t i = 0; i < sizeof(MARKS) / sizeof(MARKS[0]) && !mark; i++) {
		mark = strstr(name, MARKS[i]);
		if (!mark)
			continue;
		/* The quotas of x-ratelimit are others than those of ratelimit. */
		snprintf(field->key, sizeof(field->key), "%.*s%s", (int)(mark - name), name,
			 MARKS[i]);
		snprintf(words, sizeof(words), "%s", mark + strlen(MARKS[i]));
	}
	if (!mark || (mark > name && mark[-1] != '-') || (*rest && *rest != '-'))
		return false;
	while ((word = strsep(&rest, "-_"))) {
		if (*word && !add_word(field, word))
			return false;
	}
	/* As x-rate-limit, or x-hubspot-ratelimit-daily. */
	if (!field->says)
		field->says = SAYS_LIMIT;
	return field->says != SAYS_WINDOW || field->unit_ns;
}

/* Returns the quota of @key, which is made if there is none yet; NULL: there are too many. */
static struct quota_field *find_field(struct quota_fields *fields, const char *key)
{
	struct quota_field *field;

	for (uint32_t i = 0; i < fields->count; i++) {
		if (!strcmp(fields->list[i].key, key))
			return &fields->list[i];
	}
	if (fields->count == QUOTAS_MAX)
		return NULL;
	field = &fields->list[fields->count++];
	snprintf(field->key, sizeof(field->key), "%s", key);
	return field;
}

static void set_limit(struct quota_field *field, const char *value)
{
	uint64_t limit;

	if (!header_value_count(value, &limit))
		return;
	field->limit = field->has_limit && field->limit < limit ? field->limit : limit;
	field->has_limit = true;
}

static void set_remaining(struct quota_field *field, const char *value)
{
	uint64_t remaining;

	if (!header_value_count(value, &remaining))
		return;
	if (!field->has_remaining || remaining < field->remaining)
		field->remaining = remaining;
	field->has_remaining = true;
}

/* A time from now on is exact, and one since 1970 depends on two clocks. */
static void set_reset(struct quota_field *field, const char *value, bool relative)
{
	if ((field->is_relative && !relative) || strlen(value) >= QUOTA_VALUE_TEXT)
		return;
	field->is_relative = relative;
	snprintf(field->reset, sizeof(field->reset), "%s", value);
}

static void set_window(struct quota_field *field, const char *value, uint64_t unit_ns)
{
	uint64_t number;

	if (header_value_count(value, &number) && number && number <= DURATION_MAX_NS / unit_ns)
		field->window_ns = number * unit_ns;
}

/* Takes the next item of a list from *@text: up to a comma that is not in quotes. */
static bool next_item(const char **text, char item[ITEM_TEXT])
{
	bool quoted = false;
	size_t used = 0;

	*text += strspn(*text, ", \t");
	if (!**text)
		return false;
	for (; **text && (quoted || **text != ','); (*text)++) {
		quoted ^= **text == '"';
		if (used < ITEM_TEXT - 1)
			item[used++] = **text;
	}
	item[used] = '\0';
	return true;
}

/* Reads a unit in quotes, such as "content-bytes". */
static void read_unit(struct quota_field *field, const char *quoted)
{
	char text[UNIT_TEXT + 2];
	size_t length = strlen(quoted);

	if (!strcmp(quoted, "\"requests\""))
		return;
	field->is_foreign = true;
	if (length < 2 || length >= sizeof(text) || quoted[0] != '"' || quoted[length - 1] != '"')
		return;
	snprintf(text, sizeof(text), "%s", quoted + 1);
	for (char *at = text; *at; at++)
		*at = *at == '-' ? '_' : *at;
	field->is_foreign = !amount_read_unit(text, length - 2, field->unit);
}

/* Reads the parameters behind an item, such as `q=100;w=60`, into @field. */
static void read_parameters(struct quota_field *field, char *parameters)
{
	char *parameter;

	while ((parameter = strsep(&parameters, ";"))) {
		parameter += strspn(parameter, " ");
		if (!strncmp(parameter, "q=", 2) || !strncmp(parameter, "l=", 2))
			set_limit(field, parameter + 2);
		else if (!strncmp(parameter, "w=", 2))
			set_window(field, parameter + 2, NSEC_PER_SEC);
		else if (!strncmp(parameter, "r=", 2))
			set_remaining(field, parameter + 2);
		else if (!strncmp(parameter, "t=", 2))
			set_reset(field, parameter + 2, true);
		else if (!strncmp(parameter, "qu=", 3))
			read_unit(field, parameter + 3);
	}
}

/* Reads one of `limit=100, remaining=50, reset=5`. */
static void read_member(struct quota_fields *fields, const char *item)
{
	struct quota_field *field = find_field(fields, "ratelimit");

	if (!field)
		return;
	if (!strncmp(item, "limit=", 6))
		set_limit(field, item + 6);
	else if (!strncmp(item, "remaining=", 10))
		set_remaining(field, item + 10);
	else if (!strncmp(item, "reset=", 6))
		set_reset(field, item + 6, true);
}

/*
 * Reads a list of policies, or of what is left in them. Their names are in the keys; where a number
 * stands in place of a name it is the limit.
 */
static void read_list(struct quota_fields *fields, const char *value)
{
	char item[ITEM_TEXT], key[QUOTA_KEY_TEXT], *parameters;
	struct quota_field *field;

	while (next_item(&value, item)) {
		size_t name = strcspn(item, ";");

		if (item[0] != '"' && strcspn(item, "=") < name) {
			read_member(fields, item);
			continue;
		}
		parameters = item + name + (item[name] == ';');
		item[name] = '\0';
		snprintf(key, sizeof(key), POLICY "%.50s", item);
		field = find_field(fields, key);
		if (!field)
			return;
		set_limit(field, item);
		read_parameters(field, parameters);
	}
}

/* Reads `32/40`: so many of a bucket are used. */
static void read_shopify(struct quota_fields *fields, const char *value)
{
	struct quota_field *field = find_field(fields, "shopify");
	char *end;
	uint64_t used = strtoul(value, &end, 10), limit;

	if (!field || *end != '/' || !header_value_count(end + 1, &limit) || !limit || used > limit)
		return;
	field->fills = true;
	field->has_limit = true;
	field->has_remaining = true;
	field->limit = limit;
	field->remaining = limit - used;
	field->window_ns = SHOPIFY_NS;
	snprintf(field->reset, sizeof(field->reset), "%.3f",
		 (double)used / (double)limit * (double)(SHOPIFY_NS / NSEC_PER_SEC));
}

void header_quota_add(struct quota_fields *fields, const char *name, const char *value)
{
	struct field_name read;
	struct quota_field *field;

	if (!strcmp(name, "ratelimit") || !strcmp(name, "ratelimit-policy")) {
		read_list(fields, value);
		return;
	}
	if (!strcmp(name, "x-shopify-shop-api-call-limit")) {
		read_shopify(fields, value);
		return;
	}
	if (!read_name(name, &read))
		return;
	field = find_field(fields, read.key);
	if (!field)
		return;
	field->fills |= read.fills;
	if (*read.unit)
		memcpy(field->unit, read.unit, UNIT_TEXT);
	if (read.window_ns)
		field->window_ns = read.window_ns;
	switch (read.says) {
	case SAYS_LIMIT:
		set_limit(field, value);
		/* As `100, 100;w=10`. */
		if (strchr(value, ','))
			read_list(fields, strchr(value, ','));
		break;
	case SAYS_REMAINING:
		set_remaining(field, value);
		break;
	case SAYS_RESET:
		set_reset(field, value, read.is_relative);
		break;
	case SAYS_WINDOW:
		set_window(field, value, read.unit_ns);
		break;
	case SAYS_FILL:
		(void)header_value_count(value, &field->fill);
		break;
	case SAYS_NOTHING:
		break;
	}
}

/* Returns the window of @field: its own, or that of the policy with the same limit. */
static uint64_t window_of(const struct quota_fields *fields, const struct quota_field *field)
{
	char key[QUOTA_KEY_TEXT];

	if (field->window_ns || !field->has_limit)
		return field->window_ns;
	snprintf(key, sizeof(key), POLICY "%llu", (unsigned long long)field->limit);
	for (uint32_t i = 0; i < fields->count; i++) {
		if (!strcmp(fields->list[i].key, key))
			return fields->list[i].window_ns;
	}
	return 0;
}

/* Finds until when what is left in @field holds. False: that is not known. */
static bool find_reset(const struct quota_field *field, uint64_t window_ns, uint64_t now_ns,
		       uint64_t *reset_ns)
{
	uint64_t missing, least_ns;

	if (!*field->reset || !header_value_wait(field->reset, now_ns, reset_ns)) {
		*reset_ns = window_ns;
		return window_ns && window_ns <= WINDOW_MOST_NS;
	}
	if (!field->fills || !field->has_limit)
		return *reset_ns;
	missing = field->limit > field->remaining ? field->limit - field->remaining : 0;
	least_ns = *reset_ns < UNIT_HOLDS_NS ? *reset_ns : UNIT_HOLDS_NS;
	if (missing > 1)
		*reset_ns = (*reset_ns + missing - 1) / missing;
	if (*field->unit && *reset_ns < least_ns)
		*reset_ns = least_ns;
	return missing && *reset_ns;
}

/* Tells whether @policy is that of another field, which says all of it. */
static bool is_told(const struct quota_fields *fields, const struct quota_field *policy)
{
	if (strncmp(policy->key, POLICY, strlen(POLICY)) != 0 || policy->has_remaining)
		return false;
	for (uint32_t i = 0; i < fields->count; i++) {
		const struct quota_field *other = &fields->list[i];

		if (other != policy && other->has_limit && other->limit == policy->limit &&
		    window_of(fields, other) == policy->window_ns)
			return true;
	}
	return false;
}

uint32_t header_quota_list(const struct quota_fields *fields, uint64_t now_ns,
			   struct header_quota quotas[QUOTAS_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < fields->count; i++) {
		const struct quota_field *field = &fields->list[i];
		uint64_t window_ns = window_of(fields, field), reset_ns = 0;
		struct header_quota quota = {.has_remaining = field->has_remaining};

		if (field->is_foreign || is_told(fields, field))
			continue;
		if (quota.has_remaining)
			quota.has_remaining = find_reset(field, window_ns, now_ns, &reset_ns);
		if (quota.has_remaining) {
			quota.remaining = field->remaining;
			quota.reset_ns = reset_ns;
		}
		quota.has_limit = field->has_limit && window_ns && window_ns <= WINDOW_MOST_NS;
		if (quota.has_limit) {
			quota.limit = field->fill ? field->fill : field->limit;
			quota.window_ns = window_ns;
		}
		memcpy(quota.unit, field->unit, UNIT_TEXT);
		if (quota.has_remaining || quota.has_limit)
			quotas[count++] = quota;
	}
	return count;
}
