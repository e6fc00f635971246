/*
 * url - what a request for tokens asks for: the rest of its URL behind the name of the route.
 *
 *	LIMITER?n=N[,UNIT=N]&key=KEY&key_from=FIELD&within=DURATION&wait=yes&refuse=STATUS&rest=
 *
 * `%XX` stands for a byte, in the path and in values; `+` for itself. Each parameter comes once at
 * most, only one of key and key_from, and one of within and wait. All behind
 * `rest=` is ignored: a proxy may append what its client asked for.
 */
#ifndef RATEFS_COMPANIONS_SERVE_URL_H
#define RATEFS_COMPANIONS_SERVE_URL_H

#include "core/values/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	URL_HEADER_TEXT = 65,				/* room for the name of a header field */
	URL_UNITS_TEXT = 160,				/* room for amounts of units */
	URL_FILE_TEXT = PATH_TEXT + 2 * NAME_BYTES_MAX, /* room for the path of a file */
};

/* Bounds of `within`, inclusive. */
#define URL_WITHIN_MIN_NS UINT64_C(1000000)
#define URL_WITHIN_MAX_NS UINT64_C(3600000000000)

struct url {
	char limiter[PATH_TEXT];	/* its path, without slashes at the ends */
	char key[NAME_BYTES_MAX + 1];	/* name of the key's directory, "" for none */
	char key_from[URL_HEADER_TEXT]; /* header field with the key, "" for none */
	uint64_t tokens, most;		/* as of take/A-B; both the same of take/N */
	char units[URL_UNITS_TEXT];	/* `,UNIT=N…` behind that, "" for none */
	uint64_t within_ns;		/* 0: it does not wait; NEVER_NS: for any time */
	unsigned int refusal;		/* HTTP status of a refusal: 401, 403, 429 or 503 */
};

/* Parses @text. 0, or -EINVAL or -ERANGE with a sentence in @error. */
int url_parse(const char *text, struct url *url, char error[ERROR_TEXT]);

/*
 * Makes the name of a key of @text, a NUL-terminated value from outside: `/`, `%`, control
 * characters and a dot at the beginning become `%XX`, so different texts have different names.
 * 0; -EINVAL if @text is empty, -ERANGE if the name has more than NAME_BYTES_MAX bytes.
 */
int url_key(const char *text, char key[NAME_BYTES_MAX + 1]);

/*
 * Writes the path of file @name of the limiter, or of the key if there is one, from the mount point
 * on. Returns its length.
 */
size_t url_file(const struct url *url, const char *name, char path[URL_FILE_TEXT]);

/*
 * Writes the name of the file from which tokens are read. `within` is in the name if @waits, cut to
 * two digits: the kernel remembers each name.
 */
void url_take(const struct url *url, bool waits, char name[NAME_BYTES_MAX]);

#endif
