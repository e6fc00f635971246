/*
 * users - what each user has of what there is a bound on, and the bounds: of all users together,
 * and of each.
 *
 * The bound of each does not bind user 0 and one more, the one who mounts: they can end the daemon,
 * too. Limiters are counted for who owns them, the others for who asked.
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

/* What the bounds are unless something else is said, and the most that @all of them may be. */
extern const struct bound BOUNDS_DEFAULT[BOUND_COUNT];
extern const uint32_t BOUNDS_MAX[BOUND_COUNT];

/* `readers`, `limiters`, ... */
const char *users_bound_name(enum bound_id id);

/*
 * Whether @uid may have one more: 0, or -ENOSPC with a sentence in @error (NULL: nobody reads it).
 */
int users_check(const struct users *users, uint32_t uid, enum bound_id id, char error[ERROR_TEXT]);

/* One more, or one less, whatever the bounds. Without memory it is counted among all only. */
void users_add(struct users *users, uint32_t uid, enum bound_id id);
void users_drop(struct users *users, uint32_t uid, enum bound_id id);

void users_free(struct users *users);

#endif
