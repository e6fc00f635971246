/*
 * users - counts, and their bounds, of limiters, keys, files and so on of each user, see users.h.
 */
#include "core/limiter/users.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Records left of users that have nothing: most have something again soon. */
enum { IDLE_MAX = 64 };

struct user {
	struct chain_link link;
	uint32_t uid;
	uint32_t used[BOUND_COUNT];
};

static const struct {
	const char *name;
	const char *what;
} BOUNDS[BOUND_COUNT] = {
	[BOUND_READERS] = {"readers", "readers that wait"},
	[BOUND_LIMITERS] = {"limiters", "limiters"},
	[BOUND_KEYS] = {"keys", "keys"},
	[BOUND_FILES] = {"files", "open files"},
	[BOUND_NAMES] = {"names", "different names in take/ and eta/"},
};

const struct bound BOUNDS_DEFAULT[BOUND_COUNT] = {
	[BOUND_READERS] = {1000000, 100000}, [BOUND_LIMITERS] = {1000000, 100000},
	[BOUND_KEYS] = {4000000, 1000000},   [BOUND_FILES] = {2000000, 200000},
	[BOUND_NAMES] = {1 << 20, 1 << 18},
};

const uint32_t BOUNDS_MAX[BOUND_COUNT] = {
	[BOUND_READERS] = 1000000,  [BOUND_LIMITERS] = 1000000, [BOUND_KEYS] = 1000000000,
	[BOUND_FILES] = 1000000000, [BOUND_NAMES] = 1 << 20,
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

static struct user *find_user(const struct users *users, uint32_t uid)
{
	struct chain_link *link = chains_find(&users->by_uid, uid);

	while (link && hash_uid(link, NULL) != uid)
		link = link->next;
	return link ? container_of(link, struct user, link) : NULL;
}

static struct user *get_user(struct users *users, uint32_t uid)
{
	struct user *user = find_user(users, uid);

	if (user)
		return user;
	user = calloc(1, sizeof(*user));
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

int users_check(const struct users *users, uint32_t uid, enum bound_id id, char error[ERROR_TEXT])
{
	const struct bound *bound = &users->bounds[id];
	const struct user *user = find_user(users, uid);
	bool bound_by_each = uid != 0 && uid != users->mounter;
	bool of_all = users->used[id] >= bound->all;

	if (!of_all && !(bound_by_each && user && user->used[id] >= bound->each))
		return 0;
	if (error && of_all)
		snprintf(error, ERROR_TEXT, "there are %u %s, the most there can be",
			 users->used[id], BOUNDS[id].what);
	else if (error)
		snprintf(error, ERROR_TEXT, "user %u has %u %s, the most a user can have", uid,
			 user->used[id], BOUNDS[id].what);
	return -ENOSPC;
}

void users_add(struct users *users, uint32_t uid, enum bound_id id)
{
	struct user *user = get_user(users, uid);

	users->used[id]++;
	if (user)
		user->used[id]++;
}

static bool has_nothing(const struct user *user)
{
	for (int id = 0; id < BOUND_COUNT; id++) {
		if (user->used[id])
			return false;
	}
	return true;
}

void users_drop(struct users *users, uint32_t uid, enum bound_id id)
{
	struct user *user = find_user(users, uid);

	users->used[id]--;
	if (!user || !user->used[id])
		return;
	user->used[id]--;
	if (users->by_uid.count > IDLE_MAX && has_nothing(user)) {
		chains_remove(&users->by_uid, &user->link);
		free(user);
	}
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
