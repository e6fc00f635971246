/*
 * words - settings of several words: `KIND name=value ...`, such as `auto min=1 max=200`.
 *
 * The first word says what kind it is; parameters follow in any order, each at most once, and those
 * that are not given keep the value that they had. A table of struct word says which there are.
 */
#ifndef RATEFS_CORE_WORDS_H
#define RATEFS_CORE_WORDS_H

#include "core/values/quantity.h"
#include "core/values/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum word_type {
	WORD_COUNT,    /* uint64_t: a whole number */
	WORD_DURATION, /* uint64_t: nanoseconds */
	WORD_DECIMAL,  /* uint64_t: billionths, see DECIMAL_ONE */
	WORD_CHOICE,   /* uint64_t: which of the names in @choices */
	WORD_OTHER,    /* a type of which @parse and @print know */
};

/* A parameter. */
struct word {
	const char *name;
	enum word_type type;
	void *value; /* borrowed: of the type's kind; holds what it is if it is not given */
	uint64_t least, most;	    /* bounds, inclusive; of COUNT, DURATION and DECIMAL */
	const char *const *choices; /* of CHOICE: names, and NULL at the end */

	/* Of OTHER: 0, -EINVAL or -ERANGE, refused with sentence @why; @value is untouched. */
	int (*parse)(const char *text, void *value);
	void (*print)(const void *value, char text[QUANTITY_TEXT]);
	const char *why;

	bool given; /* whether the text named it; set by words_parse() */
};

/* Whether the first word of @text, which has no white space before it, is @kind. */
bool words_are(const char *text, const char *kind);

/*
 * Parses the words after the first of @text. 0, -EINVAL or -ERANGE with a sentence in @error; then
 * some of the values may be set already: the caller throws them away.
 */
int words_parse(const char *text, struct word *words, size_t count, char error[ERROR_TEXT]);

/*
 * @kind and every parameter as `name=value` in the order of the table, the values in their shortest
 * exact form.
 */
void words_print(const char *kind, const struct word *words, size_t count, char text[SETTING_TEXT]);

#endif
