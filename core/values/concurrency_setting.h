/*
 * concurrency_setting - the setting `concurrency`: how many slots there are; see
 * core/limiter/concurrency.h.
 */
#ifndef RATEFS_CORE_CONCURRENCY_SETTING_H
#define RATEFS_CORE_CONCURRENCY_SETTING_H

#include <stdint.h>

/* How many slots may be open. */
enum slot_limit_kind { SLOTS_MAX, SLOTS_COUNT, SLOTS_AUTO };

enum { SLOTS_COUNT_MAX = 1000000 };

struct slot_limit {
	enum slot_limit_kind kind; /* SLOTS_MAX: any number */
	uint32_t count;		   /* COUNT: 1 to SLOTS_COUNT_MAX; of a host's share also 0 */
	uint32_t min, max;	   /* AUTO: 1 to SLOTS_COUNT_MAX */
	uint32_t decrease;	   /* AUTO: billionths, above 0 and below one */
};

/*
 * Parses or prints `max`, a number, or `auto` and parameters; parameters that are not given have
 * their defaults. 0, -EINVAL or -ERANGE with a sentence in @error, which has room for ERROR_TEXT
 * bytes. At most SETTING_TEXT bytes are printed.
 */
int concurrency_setting_parse(const char *text, struct slot_limit *slots, char *error);
void concurrency_setting_print(const struct slot_limit *slots, char *text);

#endif
