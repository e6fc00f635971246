/* names - paths that limiters gave up a moment ago, see names.h. */
#include "core/fleet/names.h"

#include <stdlib.h>
#include <string.h>

struct left_name {
	struct left_name *next;
	uint64_t id;	   /* of the limiter that had it */
	uint64_t until_ns; /* by the waiter's clock */
	char path[];
};

struct names {
	struct left_name *first, *last; /* owned, in the order of their leaving */
	uint64_t known_ns; /* by the waiter's clock: until then some may not be there */
};

bool names_new(struct fleet *fleet)
{
	fleet->names = calloc(1, sizeof(*fleet->names));
	return fleet->names;
}

/* Forgets the names that all hosts have given up by now. They are in the order of their leaving. */
static void forget_old(struct fleet *fleet)
{
	struct left_name *name;

	while ((name = fleet->names->first) && name->until_ns <= fleet->clocks.waiter_ns) {
		fleet->names->first = name->next;
		free(name);
	}
}

void names_lose(struct fleet *fleet)
{
	fleet->names->known_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

void names_leave(struct fleet *fleet, uint64_t id, const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct left_name *name = malloc(sizeof(*name) + bytes);

	forget_old(fleet);
	if (!name) {
		names_lose(fleet);
		return;
	}
	name->id = id;
	name->until_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
	memcpy(name->path, path, bytes);
	name->next = NULL;
	if (fleet->names->first)
		fleet->names->last->next = name;
	else
		fleet->names->first = name;
	fleet->names->last = name;
}

const char *names_of(const struct fleet *fleet, uint64_t id)
{
	for (const struct left_name *name = fleet->names->first; name; name = name->next) {
		if (name->id == id)
			return name->path;
	}
	return NULL;
}

static bool is_below(const char *path, const char *above)
{
	size_t length = strlen(above);

	return !strncmp(path, above, length) && (!path[length] || path[length] == '/');
}

bool names_are_free(struct fleet *fleet, const char *path, uint64_t id)
{
	forget_old(fleet);
	if (fleet->names->known_ns > fleet->clocks.waiter_ns)
		return false;
	for (const struct left_name *name = fleet->names->first; name; name = name->next) {
		if (name->id != id && is_below(path, name->path))
			return false;
	}
	return true;
}

void names_free(struct fleet *fleet)
{
	while (fleet->names && fleet->names->first) {
		struct left_name *next = fleet->names->first->next;

		free(fleet->names->first);
		fleet->names->first = next;
	}
	free(fleet->names);
}
