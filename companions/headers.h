/*
 * headers - the header fields of a HTTP response as lines for `feedback`.
 *
 * They come as `curl -D FILE` writes them: blocks of a status line, fields, and a blank line. Of
 * several, such as those of redirections and of 100 Continue, the last one that is final counts.
 * Lines behind a block, such as a body, are left out. Dates count from that of the response, or
 * from now if it has none. Other fields are left out, and so are quotas of a response that comes
 * from a cache (Age above 0).
 *
 * A status 403 counts as throttled if it says when to try again, or that nothing is left, as that
 * of GitHub does.
 */
#ifndef RATEFS_COMPANIONS_HEADERS_H
#define RATEFS_COMPANIONS_HEADERS_H

#include "companions/header_quota.h"

#include "core/values/settings.h"

#include <stddef.h>

enum {
	HEADERS_BYTES_MAX = 65536,
	HEADERS_LINES_MAX = 256,
	HEADERS_TEXT = 2048, /* room for the lines */
};

struct header_report {
	unsigned int status; /* 200 to 999 */
	bool is_throttled;
	uint64_t retry_after_ns; /* 0: not said */
	uint32_t quota_count;
	struct header_quota quotas[QUOTAS_MAX];
};

/*
 * Reads @size bytes of @text, as of @now_ns since 1970. 0; -EINVAL: there is no final status line;
 * -E2BIG; with a sentence in @error.
 */
int headers_read(const char *text, size_t size, uint64_t now_ns, struct header_report *report,
		 char error[ERROR_TEXT]);

/* Names of units in header fields, and the limiter's names for them: `tokens` is `tpm`. */
struct unit_names {
	uint32_t count;
	struct unit_name {
		char header[UNIT_TEXT], limiter[UNIT_TEXT];
	} of[AMOUNTS_MAX];
};

#define UNIT_NAME_WHY                                                                              \
	"not HEADER=UNIT, such as tokens=tpm: a unit in header fields, each once, and one of the " \
	"limiter"

/* Reads `HEADER=UNIT` of @text; where HEADER is requests, all that is of no unit. */
bool headers_add_name(struct unit_names *names, const char *text);

/*
 * Gives the quotas of @report the names of units that @names has for them. Others keep theirs if
 * the limiter of @settings has that unit, and are left out if not.
 */
void headers_name_units(struct header_report *report, const struct unit_names *names,
			const struct settings *settings);

/* Tells whether @report has a quota whose unit is to be looked for in the limiter's settings. */
bool headers_have_units(const struct header_report *report, const struct unit_names *names);

/*
 * Prints @outcome (such as `ok 3`; NULL: the status) and what else @report says, a line for each
 * quota. Returns the length.
 */
size_t headers_print(const struct header_report *report, const char *outcome,
		     char text[HEADERS_TEXT]);

#endif
