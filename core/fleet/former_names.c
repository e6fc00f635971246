/* former_names - paths that limiters gave up a moment ago, see former_names.h. */
#include "core/fleet/former_names.h"

#include <stdlib.h>
#include <string.h>

struct former_name {
	struct former_name *next;
	uint64_t id;	   /* of the limiter that had it */
	uint64_t until_ns; /* by the waiter's clock */
	char path[];
};

struct former_names {
	struct former_name *first, *last; /* owned, in the order in which they were given up */
	uint64_t known_ns; /* by the waiter's clock: until then some may not be there */
};

bool former_names_new(struct fleet *fleet)
{
	fleet->former_names = calloc(1, sizeof(*fleet->former_names));
	return fleet->former_names;
}

/* Forgets the names that all hosts have given up by now. They are in that order. */
static void forget_old(struct fleet *fleet)
{
	struct former_name *name;

	while ((name = fleet->former_names->first) && name->until_ns <= fleet->clocks.waiter_ns) {
		fleet->former_names->first = name->next;
		free(name);
	}
}

void former_names_note_unknown(struct fleet *fleet)
{
	fleet->former_names->known_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

void former_names_add(struct fleet *fleet, uint64_t id, const char *path)
{
	size_t bytes = strlen(path) + 1;
	struct former_name *name = malloc(sizeof(*name) + bytes);

	forget_old(fleet);
	if (!name) {
		former_names_note_unknown(fleet);
		return;
	}
	name->id = id;
	name->until_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
	memcpy(name->path, path, bytes);
	name->next = NULL;
	if (fleet->former_names->first)
		fleet->former_names->last->next = name;
	else
		fleet->former_names->first = name;
	fleet->former_names->last = name;
}

const char *former_names_of(const struct fleet *fleet, uint64_t id)
{
	for (const struct former_name *name = fleet->former_names->first; name; name = name->next) {
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

bool former_names_permit(struct fleet *fleet, const char *path, uint64_t id)
{
	forget_old(fleet);
	if (fleet->former_names->known_ns > fleet->clocks.waiter_ns)
		return false;
	for (const struct former_name *name = fleet->former_names->first; name; name = name->next) {
		if (name->id != id && is_below(path, name->path))
			return false;
	}
	return true;
}

void former_names_free(struct fleet *fleet)
{
	while (fleet->former_names && fleet->former_names->first) {
		struct former_name *next = fleet->former_names->first->next;

		free(fleet->former_names->first);
		fleet->former_names->first = next;
	}
	free(fleet->former_names);
}
