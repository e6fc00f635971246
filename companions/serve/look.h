/*
 * look - the tree at one moment, and how viewers of the page are told of it.
 *
 * A message is an event of a stream of server-sent events (WHATWG HTML, 9.2), with JSON:
 *
 *	all      {"at": SECONDS, "status": {NAME: TEXT}, "hosts": [HOST], "hosts_note": TEXT,
 *	          "limiters": [LIMITER]}
 *	changes  the same: limiters that are new or changed, and "gone": [PATH]
 *	holders  {"limiter": PATH, "holders": [[NAME, SHARE, RATE, PIECES]]}
 *	trouble  {"why": TEXT}
 *
 * SECONDS are those of a clock that steps of the time of day do not move. A HOST is a line of the
 * file hosts, split at blanks. A LIMITER is its path and then the numbers of look.c's table, null:
 * not told, 1e999: max. Bytes of names that are not UTF-8 become U+FFFD.
 */
#ifndef RATEFS_COMPANIONS_SERVE_LOOK_H
#define RATEFS_COMPANIONS_SERVE_LOOK_H

#include "companions/sample.h"

#include <stdbool.h>
#include <stdio.h>

struct look {
	struct page page;     /* owned */
	char *status, *hosts; /* owned: the files, as far as LOOK_BYTES; NULL: not read */
	bool is_fleet;	      /* and its coordinator answers */
};

/* Takes a look at the tree. 0 or -errno; then there is nothing to free. */
int look_take(const char *mountpoint, struct look *look);
void look_free(struct look *look);

/* Print a message each. */
void look_print_all(const struct look *look, FILE *out);
void look_print_changes(const struct look *now, const struct look *before, FILE *out);
void look_print_trouble(const char *why, FILE *out);

/*
 * Prints the holders of limiter @path of a fleet; reads files of each partition or piece. Returns
 * of how many.
 */
size_t look_print_holders(const char *mountpoint, const char *path, FILE *out);

#endif
