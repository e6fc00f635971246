/*
 * load - readers that are made up: so many a second, for so long.
 *
 * A text such as `orders 20/s for 10min`. Readers come by chance (a Poisson process), the same ones
 * for the same text and number of the load, or at equal intervals.
 */
#ifndef RATEFS_COMPANIONS_LOAD_H
#define RATEFS_COMPANIONS_LOAD_H

#include "core/values/quantity.h"
#include "core/values/text.h"

enum {
	LOAD_TEXT = 4096,	     /* room for a text */
	LOAD_READERS_MAX = 10000000, /* of one load, in the mean */
};

#define LOAD_FORM "LIMITER[/keys/KEY] RATE [of TOKENS] for DURATION [even]"

struct load {
	char text[LOAD_TEXT]; /* in pieces */
	const char *limiter;  /* in text: a path */
	const char *key;      /* in text, of 1 to NAME_BYTES_MAX bytes; or NULL */
	struct fraction rate; /* readers a nanosecond */
	uint64_t tokens;      /* that each takes, up to TOKENS_MAX */
	uint64_t for_ns;      /* readers come before that; at least 1 */
	bool is_even;
	double readers; /* that come in the mean */

	uint64_t next_ns; /* when the next reader comes; NEVER_NS: no more do */
	uint64_t came;	  /* readers so far */
	double at_ns;	  /* as next_ns, where chance has it */
	unsigned short chance[3];
};

/* Parses @text; chance is that of load @number. 0, or -EINVAL with a reason. */
int load_parse(struct load *load, const char *text, unsigned int number, char error[ERROR_TEXT]);

/* Moves on to the reader behind the one that comes at @load->next_ns. */
void load_advance(struct load *load);

#endif
