/*
 * users - counts, and their bounds, of limiters, keys, files and so on of each user, see users.h.
 */
#include "core/limiter/users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *name;
	const char *what;
} BOUNDS[BOUND_COUNT] = {
	[BOUND_READERS] = {"readers", "readers that wait"},
	[BOUND_LIMITERS] = {"limiters", "limiters and partitions"},
	[BOUND_KEYS] = {"keys", "keys"},
	[BOUND_FILES] = {"files", "open files"},
	[BOUND_NAMES] = {"names", "different names with a number, as take/5"},
	[BOUND_TEXTS] = {"texts", "KiB of texts of open files, and of changes"},
};

const struct bound BOUNDS_DEFAULT[BOUND_COUNT] = {
	[BOUND_READERS] = {1000000, 100000}, [BOUND_LIMITERS] = {1000000, 100000},
	[BOUND_KEYS] = {4000000, 1000000},   [BOUND_FILES] = {2000000, 200000},
	[BOUND_NAMES] = {1 << 20, 1 << 18},  [BOUND_TEXTS] = {1 << 20, 1 << 16},
};

const uint32_t BOUNDS_MAX[BOUND_COUNT] = {
	[BOUND_READERS] = 1000000,  [BOUND_LIMITERS] = 1000000000, [BOUND_KEYS] = 1000000000,
	[BOUND_FILES] = 1000000000, [BOUND_NAMES] = 1 << 20,	   [BOUND_TEXTS] = 1000000000,
};

const char *users_bound_name(enum bound_id id)
{
	return BOUNDS[id].name;
}

static uint64_t hash_uid(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return container_of(link, const struct user, link)->uid;
}

struct user *users_make(struct users *users, uint32_t uid)
{
	struct user *user = calloc(1, sizeof(*user));

	if (!user)
		return NULL;
	user->uid = uid;
	users->by_uid.hash = hash_uid;
	if (chains_insert(&users->by_uid, &user->link)) {
		free(user);
		return NULL;
	}
	return user;
}

int users_refuse(const struct users *users, uint32_t uid, enum bound_id id, char error[ERROR_TEXT])
{
	const struct user *user = users_find(users, uid);

	if (error && users->used[id] >= users->bounds[id].all)
		snprintf(error, ERROR_TEXT, "there are %u %s, the most there can be",
			 users->used[id], BOUNDS[id].what);
	else if (error && user)
		snprintf(error, ERROR_TEXT, "user %u has %u %s, the most a user can have", uid,
			 user->used[id], BOUNDS[id].what);
	return -ENOSPC;
}

static bool has_nothing(const struct user *user)
{
	for (int id = 0; id < BOUND_COUNT; id++) {
		if (user->used[id])
			return false;
	}
	return true;
}

void users_forget(struct users *users, struct user *user)
{
	if (!has_nothing(user))
		return;
	chains_remove(&users->by_uid, &user->link);
	free(user);
}

void users_free(struct users *users)
{
	uint64_t place = 0;
	struct chain_link *link;

	while ((link = chains_from(&users->by_uid, &place))) {
		chains_remove(&users->by_uid, link);
		free(container_of(link, struct user, link));
	}
}
