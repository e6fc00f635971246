/*
 * overrides - rates and bursts of single keys of a limiter, in place of key_rate and key_burst.
 *
 * They are kept as the text that `config` shows: a line for each value, such as
 * `key.bob.rate=100/s`, sorted by the bytes of the names. So a table costs what its text does, and
 * is printed by copying it. In a name white space, control characters, `=` and `%` are written as
 * `%` and two hexadecimal digits.
 *
 * A table is never changed; a change makes another one. It is counted how often it is held.
 */
#ifndef RATEFS_CORE_OVERRIDES_H
#define RATEFS_CORE_OVERRIDES_H

#include "core/values/limit.h"
#include "core/values/name.h"
#include "core/values/quantity.h"
#include "core/values/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OVERRIDES_MAX = 65536,				   /* keys with overrides of a limiter */
	OVERRIDES_TEXT_MAX = 8 << 20,			   /* bytes of all their lines */
	OVERRIDE_NAME_TEXT = 3 * 256,			   /* room for a name as it is written */
	OVERRIDE_TEXT = OVERRIDE_NAME_TEXT + SETTING_TEXT, /* room for a line */
};

/* The values of a key that can be overridden, in the order of their lines. */
enum override_value { OVERRIDE_BURST, OVERRIDE_RATE, OVERRIDE_VALUES };

/* All that is overridden of a key. */
struct override {
	bool has_rate;
	struct rate rate;
	uint64_t burst;			/* 0: it is not overridden */
	uint32_t unit_count;		/* of the rate */
	struct limit units[LIMITS_MAX]; /* of the rate: windows, and limits that have a unit */
};

/* A table. NULL is one without overrides. */
struct overrides;

struct overrides *overrides_hold(const struct overrides *overrides);
void overrides_drop(const struct overrides *overrides);

/* Returns the number of keys that have overrides. */
uint32_t overrides_count(const struct overrides *overrides);

/* Returns the lines, NUL-terminated, and their length. */
const char *overrides_text(const struct overrides *overrides);
size_t overrides_length(const struct overrides *overrides);

bool overrides_equal(const struct overrides *a, const struct overrides *b);

/* Tells whether one of them is a limit: there are rates other than `max`. */
bool overrides_limit(const struct overrides *overrides);

/* Tells whether one of the rates is a strict window. */
bool overrides_are_strict(const struct overrides *overrides);

/*
 * Returns which windows of the calendar without a unit the rates have: a bit for each enum
 * rate_kind.
 */
uint32_t overrides_windows(const struct overrides *overrides);

/*
 * Checks that the rates have no unit that none of the @count limits in @units has, which those of
 * all keys have, and no windows of a unit but those; and that these limits and the windows without
 * a unit are LIMITS_MAX at most. 0, or -ERANGE with a reason.
 */
int overrides_check_units(const struct overrides *overrides, const struct limit *units,
			  uint32_t count, char error[ERROR_TEXT]);

/* Finds those of the key @name of @length bytes. False: there are none. */
bool overrides_find(const struct overrides *overrides, const char *name, size_t length,
		    struct override *override);

/*
 * Calls @each for every key of which @a and @b have different values, or which only one of them
 * has, until it returns false.
 */
void overrides_compare(const struct overrides *a, const struct overrides *b,
		       bool (*each)(void *argument, const char *name), void *argument);

/*
 * Calls @each for every value that is another one in @now than in @before: with what precedes the
 * `=` in its line, and with both values; `default` is one that is not overridden.
 */
void overrides_changes(const struct overrides *before, const struct overrides *now,
		       void (*each)(void *argument, const char *what, const char *value,
				    const char *was),
		       void *argument);

/* Returns what follows the `key.` of a line of `config`. NULL: it is another line. */
const char *overrides_line(const char *line);

/* Changes that are collected: all of them make one table. */
struct override_edits {
	char *text; /* owned: lines as in a table; those of what is taken away end in `=` */
	size_t length, room;
	uint32_t count; /* of lines */
};

/*
 * Adds what @line says, the rest of a line that overrides_line() found; and that @value of key
 * @name be @text, `default` takes it away. 0, -EINVAL, -ERANGE or -ENOMEM with a reason.
 */
int overrides_edit_line(struct override_edits *edits, const char *line, char error[ERROR_TEXT]);
int overrides_edit(struct override_edits *edits, const char *name, enum override_value value,
		   const char *text, char error[ERROR_TEXT]);

/*
 * Makes *@overrides, of which the caller has a hold, what they are with @edits; of one value the
 * last one counts. 0, -ENOSPC or -ENOMEM with a reason; then it is as it was.
 */
int overrides_apply(struct override_edits *edits, struct overrides **overrides,
		    char error[ERROR_TEXT]);

void overrides_end_edits(struct override_edits *edits);

#endif
