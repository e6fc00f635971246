/* overriding - what is overridden of keys, see overriding.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kept {
	struct kept *next;
	struct settings settings;
};

static struct kept *first;

static struct overrides *keep(const struct settings *whole)
{
	const struct overrides *overrides = whole->overrides;
	struct memory *before = memory_enter(NULL);
	struct kept *kept = first;
	char rate[SETTING_TEXT], error[ERROR_TEXT], *text;
	size_t size;
	int err;

	while (kept && !overrides_equal(kept->settings.overrides, overrides))
		kept = kept->next;
	if (!kept) {
		kept = memory_get(sizeof(*kept));
		kept->settings = SETTINGS_DEFAULT;
		/* A rate has units of key_rate alone, and windows. */
		setting_print(SETTING_KEY_RATE, whole, rate);
		size = sizeof("key_rate=\n") + strlen(rate) + overrides_length(overrides);
		text = malloc(size);
		if (!text)
			abort();
		snprintf(text, size, "key_rate=%s\n%s", rate, overrides_text(overrides));
		err = settings_parse(text, &kept->settings, error);
		free(text);
		if (err) {
			fprintf(stderr, "simulate: overrides are not understood: %s\n", error);
			exit(2);
		}
		kept->next = first;
		first = kept;
	}
	memory_enter(before);
	return kept->settings.overrides;
}

struct settings overriding_copy(const struct settings *settings)
{
	struct settings copy = *settings;

	if (copy.overrides)
		copy.overrides = keep(settings);
	return copy;
}

static bool is_like(const struct limit *a, const struct limit *b)
{
	return !strcmp(a->unit, b->unit) && rate_is_window(&a->rate) == rate_is_window(&b->rate);
}

/* Adds @limits to @its; one of a unit without a burst has that of @whole. */
static void add_limits(struct settings *its, const struct limit *limits, uint32_t count,
		       const struct settings *whole)
{
	for (uint32_t i = 0; i < count; i++) {
		struct limit *made = &its->limits[its->limit_count++];

		*made = limits[i];
		for (uint32_t j = 0; j < whole->key_unit_count && !made->burst; j++) {
			const struct limit *other = &settings_key_units(whole)[j];

			if (is_like(made, other))
				made->burst = other->burst;
		}
	}
}

void overriding_apply(const struct settings *whole, const char *path, struct settings *its)
{
	static const struct key_part all = {1, 1};
	const char *name = strrchr(path, '/') + 1;
	struct override override;
	bool any = overrides_find(whole->overrides, name, strlen(name), &override);

	if (any)
		settings_override(&override, &all, &its->limits[0].rate, &its->burst);
	its->limit_count = !rate_is_unlimited(&its->limits[0].rate);
	if (any && override.has_rate)
		add_limits(its, override.units, override.unit_count, whole);
	else
		add_limits(its, settings_key_units(whole), whole->key_unit_count, whole);
}

void overriding_free(void)
{
	while (first) {
		struct kept *next = first->next;

		settings_drop(&first->settings);
		free(first);
		first = next;
	}
}
