/*
 * torn - a list that a server reads while it writes: a transaction changes one node after the
 * other, and a reader beside it sees the children that came or went until then.
 *
 * The transactions of a session are not torn for itself: it is answered in their order.
 */
#include "tests/sim/coordinator/connection.h"
#include "tests/sim/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* A server writes for so long. */
#define WRITING_NS UINT64_C(20000000)

/* The names of children, of which some come and go. */
struct names {
	const char **list; /* owned */
	uint32_t count;
	size_t bytes; /* with the zeros at their ends */
};

static const struct commit *commit_of(const struct znodes *znodes, uint64_t zxid)
{
	const struct commit *commit = znodes->newest;

	while (commit && commit->zxid != zxid)
		commit = commit->older;
	return commit;
}

static bool is_of(const struct znode_state *state, const struct commit *commit)
{
	return state && state->changed_zxid == commit->zxid;
}

static void come(struct names *names, const char *name)
{
	names->list[names->count++] = name;
	names->bytes += strlen(name) + 1;
}

static void go(struct names *names, const char *name)
{
	uint32_t i = 0;

	while (i < names->count && strcmp(names->list[i], name) != 0)
		i++;
	if (i == names->count)
		return;
	names->list[i] = names->list[--names->count];
	names->bytes -= strlen(name) + 1;
}

/* The children of @parent just before @commit. */
static void list_before(const struct znode *parent, const struct commit *commit,
			struct names *names)
{
	for (const struct znode *n = parent->first_child; n; n = n->next_sibling) {
		const struct znode_state *state = znode_at(n, commit->at_ns);

		while (is_of(state, commit))
			state = state->older;
		if (state && state->there)
			come(names, n->name);
	}
}

/* Counts the changes of children of @parent in @commit; makes the first @count of them. */
static uint32_t change(const struct znode *parent, const struct commit *commit, uint32_t count,
		       struct names *names)
{
	uint32_t changes = 0;

	for (const struct znode_state *s = commit->touched; s; s = s->next_touched) {
		bool was_there = s->older && s->older->there;

		if (s->node->parent != parent || s->there == was_there)
			continue;
		if (changes++ >= count)
			continue;
		if (s->there)
			come(names, s->node->name);
		else
			go(names, s->node->name);
	}
	return changes;
}

static void give(const struct names *names, struct request *result)
{
	size_t pointers = names->count * sizeof(char *);
	char *to;

	result->names = memory_get(pointers + names->bytes);
	result->name_count = names->count;
	to = (char *)result->names + pointers;
	for (uint32_t i = 0; i < names->count; i++) {
		result->names[i] = to;
		to = stpcpy(to, names->list[i]) + 1;
	}
}

bool torn_list(struct connection *connection, const struct znode_state *state, uint64_t view_ns,
	       struct request *result)
{
	struct zookeeper *zookeeper = connection->link->zookeeper;
	const struct commit *commit = commit_of(&zookeeper->znodes, state->children_zxid);
	struct names names = {0};
	uint32_t changes;

	if (!zookeeper->torn || !commit || commit->session == connection->session ||
	    commit->at_ns + WRITING_NS < view_ns)
		return false;
	changes = change(state->node, commit, 0, NULL);
	if (changes < 2 || !random_below(&zookeeper->random, 2))
		return false;
	names.list = memory_get((state->children + 2 * changes) * sizeof(*names.list));
	list_before(state->node, commit, &names);
	change(state->node, commit, 1 + (uint32_t)random_below(&zookeeper->random, changes - 1),
	       &names);
	give(&names, result);
	free(names.list);
	return true;
}
