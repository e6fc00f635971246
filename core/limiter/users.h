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
#include "core/base/list.h"
#include "core/values/settings.h"

#include <stdbool.h>

enum bound_id {
	BOUND_READERS,	/* that wait */
	BOUND_LIMITERS, /* and partitions that were made */
	BOUND_KEYS,
	BOUND_FILES, /* that are open, slots among them */
	BOUND_NAMES, /* different ones with a number in them that are remembered */
	BOUND_TEXTS, /* KiB of them that are kept for open files, and of changes that wait */
	BOUND_COUNT
};

struct bound {
	uint32_t all;
	uint32_t each;
};

/* Records left of users that have nothing: most have something again soon. */
enum { USERS_IDLE_MAX = 64 };

/* The counts of one user. */
struct user {
	struct chain_link link;
	uint32_t uid;
	uint32_t used[BOUND_COUNT];
	struct list names; /* links borrowed: of its BOUND_NAMES, see fs/state/parameter.h */
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

/* Finds the counts of @uid. NULL: it has nothing, or there was no memory for them. */
static inline struct user *users_find(const struct users *users, uint32_t uid)
{
	struct chain_link *link = chains_find(&users->by_uid, uid);

	while (link && container_of(link, struct user, link)->uid != uid)
		link = link->next;
	return link ? container_of(link, struct user, link) : NULL;
}

/* Makes counts of @uid, which has none. NULL: no memory. */
struct user *users_make(struct users *users, uint32_t uid);

/* Frees @user if it has nothing and others are kept for use again. */
void users_forget(struct users *users, struct user *user);

/* Says in @error, if it is not NULL, why @uid may not have one more. Returns -ENOSPC. */
int users_refuse(const struct users *users, uint32_t uid, enum bound_id id, char error[ERROR_TEXT]);

/* Tells whether the bounds of each bind @uid. */
static inline bool users_binds(const struct users *users, uint32_t uid)
{
	return uid != 0 && uid != users->mounter;
}

/* Tells whether @uid has as many as each user may have. */
static inline bool users_is_full(const struct users *users, uint32_t uid, enum bound_id id)
{
	const struct user *user = users_find(users, uid);

	return user && user->used[id] >= users->bounds[id].each && users_binds(users, uid);
}

/*
 * Tells whether @uid may have one more: 0, or -ENOSPC with a sentence in @error (which may be
 * NULL).
 */
static inline int users_check(const struct users *users, uint32_t uid, enum bound_id id,
			      char error[ERROR_TEXT])
{
	if (users->used[id] < users->bounds[id].all && !users_is_full(users, uid, id))
		return 0;
	return users_refuse(users, uid, id, error);
}

/*
 * Count @count more, or less, whatever the bounds. Without memory only all together are counted.
 */
static inline void users_add_many(struct users *users, uint32_t uid, enum bound_id id,
				  uint32_t count)
{
	struct user *user = users_find(users, uid);

	users->used[id] += count;
	if (!user)
		user = users_make(users, uid);
	if (user)
		user->used[id] += count;
}

static inline void users_drop_many(struct users *users, uint32_t uid, enum bound_id id,
				   uint32_t count)
{
	struct user *user = users_find(users, uid);

	users->used[id] -= count;
	if (!user || !user->used[id])
		return;
	user->used[id] -= user->used[id] < count ? user->used[id] : count;
	if (users->by_uid.count > USERS_IDLE_MAX)
		users_forget(users, user);
}

/* The same for one. */
static inline void users_add(struct users *users, uint32_t uid, enum bound_id id)
{
	users_add_many(users, uid, id, 1);
}

static inline void users_drop(struct users *users, uint32_t uid, enum bound_id id)
{
	users_drop_many(users, uid, id, 1);
}

void users_free(struct users *users);

#endif
