/*
 * amounts - amounts of several units in one take, or one charge.
 *
 * A limit of `rate` may have a unit, by name: `60/min tpm=90000/min`. A take has an amount of the
 * unit without a name, and may have amounts of others: `1,tpm=1800`.
 *
 * A name has letters, digits and `_`, begins with a letter, and has up to 15 of them. It is no word
 * that stands for something else where units are named.
 */
#ifndef RATEFS_CORE_AMOUNTS_H
#define RATEFS_CORE_AMOUNTS_H

#include "core/values/quantity.h"

enum {
	AMOUNTS_MAX = 8, /* units with names in one take, or one charge */
	UNIT_TEXT = 16,	 /* bytes of a name, with a NUL; the rest is 0 */
};

struct amount {
	char unit[UNIT_TEXT];
	uint64_t tokens; /* to TOKENS_MAX */
};

/* Each unit is there once. */
struct amounts {
	uint64_t count;
	struct amount of[AMOUNTS_MAX];
};

/* A correction after the work. */
struct charge {
	int64_t tokens; /* of the unit without a name; given back if negative */
	struct amounts taken, returned;
};

#define UNIT_WHY                                                                               \
	"not a unit: a letter, and up to 14 letters, digits and _ after it, and none of max, " \
	"none, within, unit, limit, remaining, reset, window, strict"

/* Reads the @length bytes of @text as the name of a unit. False: it is none. */
bool amount_read_unit(const char *text, size_t length, char unit[UNIT_TEXT]);

/* Tells whether @a and @b are one. */
bool amount_is_of(const char a[UNIT_TEXT], const char b[UNIT_TEXT]);

/* Tells whether @unit is in @amounts, maybe 0 of it. */
bool amounts_name(const struct amounts *amounts, const char unit[UNIT_TEXT]);

/* Returns how much of @unit is in @amounts; 0: it is not there. */
uint64_t amounts_of(const struct amounts *amounts, const char unit[UNIT_TEXT]);

/* Adds what is in @more to @sum, up to TOKENS_MAX of each unit, as far as there is room. */
void amounts_add(struct amounts *sum, const struct amounts *more);

/*
 * The name of a take: `N` or `A-B` as of tokens_parse_range(), `UNIT=N`, or several of these after
 * commas: the amount without a unit first, each unit once, and units only beside one number N. 0,
 * -EINVAL (not understood) or -ERANGE; then nothing is changed.
 */
int amounts_parse_take(const char *text, uint64_t *tokens, uint64_t *most, struct amounts *amounts);

/* Likewise for `eta`, and others that want one number N: not A-B. */
int amounts_parse(const char *text, uint64_t *tokens, struct amounts *amounts);

/*
 * A charge: tokens with an optional sign, `UNIT=TOKENS`, or several of these after white
 * space: the amount without a unit first, and each unit once. 0, -EINVAL or -ERANGE.
 */
int amounts_parse_charge(const char *text, struct charge *charge);

#endif
