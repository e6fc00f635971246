/*
 * key_strays - folders of keys without a host that lives: their hosts died or left, and no reader
 * misses the key again, so no host would end it.
 *
 * Once an hour a host lists the keys of one of the limiters whose keys it leases, leases those that
 * are strays, without their names, and ends them by K4 and K5 of keys.md.
 */
#ifndef RATEFS_CORE_KEY_STRAYS_H
#define RATEFS_CORE_KEY_STRAYS_H

#include "core/fleet/parts.h"

/* A host looks so often, give or take a quarter; first within that. */
#define KEY_STRAYS_NS	    (3600 * NSEC_PER_SEC)
#define KEY_STRAYS_RETRY_NS (60 * NSEC_PER_SEC) /* it used no leaves of such a limiter */

enum {
	KEY_STRAYS_MAX = 64,	 /* keys without a name that a host leases at a time */
	KEY_STRAYS_LISTED = 256, /* keys that are looked at in an hour, one each KEY_SPACING_NS */
};

bool key_strays_new(struct fleet *fleet);
void key_strays_free(struct fleet *fleet);

/* Lists keys, or begins to lease the next one, if it is time. */
void key_strays_look(struct fleet *fleet);

/* The session is gone. */
void key_strays_forget(struct fleet *fleet);

#endif
