/*
 * adapt_setting - the setting `adapt`: whether a rate is felt for, and how; see
 * core/limiter/adapt.h.
 */
#ifndef RATEFS_CORE_ADAPT_SETTING_H
#define RATEFS_CORE_ADAPT_SETTING_H

#include "core/values/quantity.h"

#include <stdbool.h>

enum adapt_kind { ADAPT_NONE, ADAPT_AIMD, ADAPT_CUBIC };
enum adapt_scope { ADAPT_FLEET, ADAPT_HOST };

/* `increase`: a rate, or billionths of the limiter's. */
struct adapt_step {
	struct rate rate;
	uint64_t share;
	bool is_share;
};

/* The setting. */
struct adapt {
	enum adapt_kind kind;
	uint64_t scope; /* enum adapt_scope */
	struct rate min;
	uint64_t decrease; /* billionths */
	struct adapt_step increase;
	uint64_t period_ns;
	uint64_t scale; /* billionths */
};

/*
 * Parses or prints `none`, or the kind and parameters; parameters that are not given have their
 * defaults. 0, -EINVAL or -ERANGE with a sentence in @error, which has room for ERROR_TEXT bytes.
 * At most SETTING_TEXT bytes are printed.
 */
int adapt_setting_parse(const char *text, struct adapt *adapt, char *error);
void adapt_setting_print(const struct adapt *adapt, char *text);

#endif
