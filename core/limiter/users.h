/*
 * users - counts of limiters, keys, files and so on of each user, and their bounds: for all users
 * together, and for each.
 *
 * The bound of each does not bind user 0 and the mounter: they can end the daemon, too. Limiters
 * are counted for their owners, all else for the user that asked.
 */
#ifndef RATEFS_CORE_USERS_H
#define RATEFS_CORE_USERS_H

#include "core/base/chain.h"
#include "core/values/settings.h"

enum bound_id {
	BOUND_READERS, /* that wait */
	BOUND_LIMITERS,
	BOUND_KEYS,
	BOUND_FILES, /* that are open, slots among them */
	BOUND_NAMES, /* different ones in take/ and eta/ that the kernel knows */
	BOUND_COUNT
};

struct bound {
	uint32_t all;
	uint32_t each;
};

struct users {
	struct chains by_uid;
	struct bound bounds[BOUND_COUNT];
	uint32_t used[BOUND_COUNT];
	uint32_t mounter;
};

/* The bounds unless options set others, and the most that a bound of all may be. */
extern const struct bound BOUNDS_DEFAULT[BOUND_COUNT];
extern const uint32_t BOUNDS_MAX[BOUND_COUNT];

/* Returns the name of a bound: `readers`, `limiters`, ... */
const char *users_bound_name(enum bound_id id);

/*
 * Tells whether @uid may have one more: 0, or -ENOSPC with a sentence in @error (which may be
 * NULL).
 */
int users_check(const struct users *users, uint32_t uid, enum bound_id id, char error[ERROR_TEXT]);

/*
 * Count one more, or one less, whatever the bounds. Without memory only all together are counted.
 */
void users_add(struct users *users, uint32_t uid, enum bound_id id);
void users_drop(struct users *users, uint32_t uid, enum bound_id id);

void users_free(struct users *users);

#endif
