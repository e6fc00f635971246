/*
 * header_quota - what the header fields of a response say of the quotas of a service.
 *
 * Fields of one quota have names that differ in one word, such as `x-ratelimit-remaining` and
 * `x-ratelimit-reset`. The words are:
 *
 *	ratelimit, rate-limit	with all that comes before: whose it is
 *	limit, max		tokens in a window
 *	remaining		tokens that are left
 *	reset, reset-after	when it is whole again: header_value_wait()
 *	interval-seconds, interval-milliseconds, fillrate	a window, and its tokens
 *	second(ly), minute, hour, day, daily	one of several, and its window
 *	requests		it fills little by little, and the reset is when it is full
 *	tokens			likewise, and it is of the unit `tokens` and not of requests
 *	input, output, prompt, generated	parts of the name of a unit, such as input_tokens
 *
 * A name with another word is left out. The fields RateLimit and RateLimit-Policy are read as
 * draft-ietf-httpapi-ratelimit-headers has them, versions 07 to 10, where `qu` is the unit; and
 * X-Shopify-Shop-Api-Call-Limit as Shopify has it.
 *
 * Where a quota fills little by little, `remaining` holds until the next token comes: the time to
 * the reset, divided by the tokens that are missing. Of a unit thousands may come in a second, and
 * it holds for a second at least, or until the reset. A window longer than a minute is no rate, and
 * `remaining` counts in it only with a reset.
 */
#ifndef RATEFS_COMPANIONS_HEADER_QUOTA_H
#define RATEFS_COMPANIONS_HEADER_QUOTA_H

#include "core/values/amounts.h"

#include <stdbool.h>
#include <stdint.h>

enum { QUOTA_VALUE_TEXT = 48, QUOTA_KEY_TEXT = 64, QUOTAS_MAX = 16 };

/* As `feedback` is told of it. */
struct header_quota {
	bool has_remaining, has_limit;
	uint64_t remaining, reset_ns;
	uint64_t limit, window_ns;
	char unit[UNIT_TEXT]; /* "": of requests */
};

/* One quota as far as it was read. */
struct quota_field {
	char key[QUOTA_KEY_TEXT]; /* the words that its fields share */
	bool has_limit, has_remaining;
	bool fills;	  /* little by little */
	bool is_foreign;  /* of something else that cannot be a unit */
	bool is_relative; /* @reset counts from now on, however large it is */
	uint64_t limit, remaining;
	uint64_t fill;	    /* tokens that a window brings, if @limit is another; 0 */
	uint64_t window_ns; /* 0: not known */
	char reset[QUOTA_VALUE_TEXT];
	char unit[UNIT_TEXT];
};

/* Begins as zeros. */
struct quota_fields {
	struct quota_field list[QUOTAS_MAX];
	uint32_t count;
};

/* Reads a field, its @name in small letters. All that it does not know is left out. */
void header_quota_add(struct quota_fields *fields, const char *name, const char *value);

/* Fills in @quotas, as of @now_ns since 1970; returns their number. */
uint32_t header_quota_list(const struct quota_fields *fields, uint64_t now_ns,
			   struct header_quota quotas[QUOTAS_MAX]);

#endif
