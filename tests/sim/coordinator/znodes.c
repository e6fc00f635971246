/* znodes - the tree of nodes that the simulated coordinator keeps, see znodes.h. */
#include "tests/sim/coordinator/znodes.h"
#include "tests/sim/base/memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_CHAINS = 256, NSEC_PER_MSEC = 1000000 };

static uint64_t hash(const char *path)
{
	uint64_t h = UINT64_C(14695981039346656037);

	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * UINT64_C(1099511628211);
	return h ^ (h >> 29);
}

static struct znode **chain_of(const struct znodes *znodes, const char *path)
{
	return &znodes->by_path[hash(path) & (znodes->size - 1)];
}

static void grow(struct znodes *znodes)
{
	struct znode **old = znodes->by_path;
	uint32_t size = znodes->size;

	znodes->size *= 2;
	znodes->by_path = memory_get(znodes->size * sizeof(struct znode *));
	for (uint32_t i = 0; i < size; i++) {
		while (old[i]) {
			struct znode *node = old[i], **chain = chain_of(znodes, node->path);

			old[i] = node->next_by_path;
			node->next_by_path = *chain;
			*chain = node;
		}
	}
	free(old);
}

struct znode *znodes_find(const struct znodes *znodes, const char *path)
{
	struct znode *node = *chain_of(znodes, path);

	while (node && strcmp(node->path, path) != 0)
		node = node->next_by_path;
	return node;
}

static struct znode *insert(struct znodes *znodes, struct znode *parent, const char *path)
{
	size_t length = strlen(path);
	struct znode *node = memory_get(sizeof(*node) + length + 1), **chain;

	if (znodes->count++ == znodes->size)
		grow(znodes);
	memcpy(node->path, path, length + 1);
	node->name = strrchr(node->path, '/') + 1;
	chain = chain_of(znodes, path);
	node->next_by_path = *chain;
	*chain = node;
	node->parent = parent;
	if (!parent)
		return node;
	node->next_sibling = parent->first_child;
	if (node->next_sibling)
		node->next_sibling->previous_sibling = node;
	parent->first_child = node;
	return node;
}

static void drop_blob(struct blob *blob)
{
	if (blob && !--blob->references)
		free(blob);
}

static void free_states(struct znode_state *state)
{
	while (state) {
		struct znode_state *older = state->older;

		drop_blob(state->data);
		free(state);
		state = older;
	}
}

/* Takes @node, of which nothing is known any more, out of the tree. */
static void forget_node(struct znodes *znodes, struct znode *node)
{
	struct znode **at = chain_of(znodes, node->path);

	while (*at != node)
		at = &(*at)->next_by_path;
	*at = node->next_by_path;
	znodes->count--;
	if (node->previous_sibling)
		node->previous_sibling->next_sibling = node->next_sibling;
	else if (node->parent)
		node->parent->first_child = node->next_sibling;
	if (node->next_sibling)
		node->next_sibling->previous_sibling = node->previous_sibling;
	free_states(node->newest);
	free(node->listing);
	free(node);
}

static void disown(struct znode *node, struct session *owner)
{
	if (node->previous_owned)
		node->previous_owned->next_owned = node->next_owned;
	else
		owner->owned = node->next_owned;
	if (node->next_owned)
		node->next_owned->previous_owned = node->previous_owned;
	node->next_owned = NULL;
	node->previous_owned = NULL;
}

static void own(struct znode *node, struct session *owner)
{
	node->previous_owned = NULL;
	node->next_owned = owner->owned;
	if (owner->owned)
		owner->owned->previous_owned = node;
	owner->owned = node;
}

static struct session *owner_of(const struct znode_state *state)
{
	return state && state->there ? state->owner : NULL;
}

/* @state, or NULL for none, is what the node is now. */
static void set_newest(struct znode *node, struct znode_state *state)
{
	struct session *before = owner_of(node->newest), *after = owner_of(state);

	node->newest = state;
	if (before == after)
		return;
	if (before)
		disown(node, before);
	if (after)
		own(node, after);
}

/* A new state of @node in the newest commit, that is as the one before. */
static struct znode_state *touch(struct znodes *znodes, struct znode *node)
{
	struct commit *commit = znodes->newest;
	struct znode_state *state = memory_get(sizeof(*state));

	if (node->newest)
		*state = *node->newest;
	if (state->data)
		state->data->references++;
	state->older = node->newest;
	state->next_touched = NULL;
	state->node = node;
	state->at_ns = commit->at_ns;
	if (commit->touched)
		commit->last_touched->next_touched = state;
	else
		commit->touched = state;
	commit->last_touched = state;
	return state;
}

static void set_data(struct znode_state *state, const char *data, const struct commit *commit)
{
	size_t length = data ? strlen(data) : 0;

	drop_blob(state->data);
	state->data = NULL;
	if (length) {
		state->data = memory_get(sizeof(*state->data) + length + 1);
		state->data->references = 1;
		memcpy(state->data->text, data, length + 1);
	}
	state->changed_zxid = commit->zxid;
	state->changed_ms = (int64_t)(commit->at_ns / NSEC_PER_MSEC);
}

struct commit *znodes_begin(struct znodes *znodes, uint64_t zxid, uint64_t now_ns)
{
	struct commit *commit = memory_get(sizeof(*commit));

	commit->zxid = zxid;
	commit->at_ns = now_ns;
	commit->older = znodes->newest;
	if (znodes->newest)
		znodes->newest->newer = commit;
	else
		znodes->oldest = commit;
	znodes->newest = commit;
	return commit;
}

/* Takes back what the newest commit did to nodes, the last first. */
static void revert(struct znodes *znodes)
{
	struct commit *commit = znodes->newest;

	while (commit->touched) {
		struct znode_state **at = &commit->touched, *state, *before = NULL;
		struct znode *node;

		while ((*at)->next_touched) {
			before = *at;
			at = &(*at)->next_touched;
		}
		state = *at;
		node = state->node;
		assert(node->newest == state);
		*at = NULL;
		commit->last_touched = before;
		set_newest(node, state->older);
		state->older = NULL;
		free_states(state);
		if (!node->newest && !node->watches && !node->first_child)
			forget_node(znodes, node);
	}
}

void znodes_undo(struct znodes *znodes)
{
	struct commit *commit = znodes->newest;

	revert(znodes);
	znodes->newest = commit->older;
	if (commit->older)
		commit->older->newer = NULL;
	else
		znodes->oldest = NULL;
	free(commit);
}

static struct znode *there(const struct znodes *znodes, const char *path)
{
	struct znode *node = znodes_find(znodes, path);

	return node && node->newest && node->newest->there ? node : NULL;
}

static struct znode *parent_there(const struct znodes *znodes, const char *path)
{
	char parent[NODE_PATH_MAX];
	const char *slash = strrchr(path, '/');

	if (slash == path)
		return znodes->root;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	return there(znodes, parent);
}

static enum answer check(const struct znodes *znodes, const struct operation *operation,
			 struct znode **node)
{
	*node = there(znodes, operation->path);
	if (!*node)
		return ANSWER_NO_NODE;
	if (operation->version != NODE_VERSION_ANY &&
	    operation->version != (*node)->newest->version)
		return ANSWER_BAD_VERSION;
	return ANSWER_OK;
}

static enum answer set(struct znodes *znodes, const struct operation *operation)
{
	struct znode_state *state;
	struct znode *node;
	enum answer answer = check(znodes, operation, &node);

	if (answer != ANSWER_OK)
		return answer;
	state = touch(znodes, node);
	state->version++;
	set_data(state, operation->data, znodes->newest);
	set_newest(node, state);
	return ANSWER_OK;
}

/* A child of @parent comes or goes. */
static void count_child(struct znodes *znodes, struct znode *parent, int change)
{
	struct znode_state *state = touch(znodes, parent);

	state->children = (uint32_t)((int64_t)state->children + change);
	state->sequence += change > 0;
	state->children_zxid = znodes->newest->zxid;
	set_newest(parent, state);
}

static enum answer create(struct znodes *znodes, struct session *session,
			  struct operation *operation)
{
	struct znode *parent, *node;
	struct znode_state *state;
	char path[NODE_PATH_MAX + 16];

	if (operation->path[0] != '/' || strlen(operation->path) >= NODE_PATH_MAX)
		return ANSWER_REFUSED;
	parent = parent_there(znodes, operation->path);
	if (!parent)
		return ANSWER_NO_NODE;
	if (parent->newest->owner)
		return ANSWER_REFUSED; /* an ephemeral node has no children */
	snprintf(path, sizeof(path), "%s", operation->path);
	if (operation->flags & NODE_SEQUENTIAL)
		snprintf(path, sizeof(path), "%s%010u", operation->path, parent->newest->sequence);
	node = znodes_find(znodes, path);
	if (node && node->newest && node->newest->there)
		return ANSWER_EXISTS;
	if (!node)
		node = insert(znodes, parent, path);
	state = touch(znodes, node);
	state->there = true;
	state->version = 0;
	state->sequence = 0;
	state->children = 0;
	state->owner = operation->flags & NODE_EPHEMERAL ? session : NULL;
	state->made_zxid = znodes->newest->zxid;
	state->children_zxid = state->made_zxid;
	set_data(state, operation->data, znodes->newest);
	set_newest(node, state);
	count_child(znodes, parent, 1);
	if (operation->flags & NODE_SEQUENTIAL)
		operation->made = memory_text(path, strlen(path));
	return ANSWER_OK;
}

static void delete_node(struct znodes *znodes, struct znode *node)
{
	struct znode_state *state = touch(znodes, node);

	state->there = false;
	set_data(state, NULL, znodes->newest);
	set_newest(node, state);
	count_child(znodes, node->parent, -1);
}

static enum answer delete (struct znodes *znodes, const struct operation *operation) {
	struct znode *node; enum answer answer = check(znodes, operation, &node);

	if (answer != ANSWER_OK) return answer;
	if (node == znodes->root) return ANSWER_REFUSED;
	if (node->newest->children) return ANSWER_NOT_EMPTY;
	delete_node(znodes, node);
	return ANSWER_OK;
}

static enum answer execute(struct znodes *znodes, struct session *session,
			   struct operation *operation)
{
	struct znode *node;

	switch (operation->kind) {
	case OPERATION_CHECK:
		return check(znodes, operation, &node);
	case OPERATION_SET:
		return set(znodes, operation);
	case OPERATION_CREATE:
		return create(znodes, session, operation);
	case OPERATION_DELETE:
		return delete (znodes, operation);
	}
	return ANSWER_REFUSED;
}

enum answer znodes_apply(struct znodes *znodes, struct session *session,
			 struct operation *operations, uint32_t count, uint64_t zxid,
			 uint64_t now_ns, uint32_t *failed)
{
	enum answer answer = count <= OPERATIONS_MAX ? ANSWER_OK : ANSWER_REFUSED;
	uint32_t done = 0;

	znodes_begin(znodes, zxid, now_ns)->session = session;
	while (answer == ANSWER_OK && done < count) {
		answer = execute(znodes, session, &operations[done]);
		done += answer == ANSWER_OK;
	}
	if (answer == ANSWER_OK)
		return answer;
	*failed = done;
	revert(znodes);
	for (uint32_t i = 0; i < done; i++) {
		free(operations[i].made);
		operations[i].made = NULL;
	}
	return answer;
}

void znodes_end_session(struct znodes *znodes, struct session *session, uint64_t zxid,
			uint64_t now_ns)
{
	struct commit *commit = znodes_begin(znodes, zxid, now_ns);

	commit->closed = session;
	while (session->owned)
		delete_node(znodes, session->owned);
	session->closed = true;
}

static bool is_leaf(const struct znode *node, const char *prefix)
{
	return node->newest && node->newest->there && !node->newest->children &&
	       !strncmp(node->path, prefix, strlen(prefix));
}

const char *znodes_any(const struct znodes *znodes, const char *prefix, uint64_t number)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < znodes->size; i++) {
		for (const struct znode *n = znodes->by_path[i]; n; n = n->next_by_path)
			count += is_leaf(n, prefix);
	}
	number = count ? number % count : 0;
	for (uint32_t i = 0; i < znodes->size && count; i++) {
		for (const struct znode *n = znodes->by_path[i]; n; n = n->next_by_path) {
			if (is_leaf(n, prefix) && !number--)
				return n->path;
		}
	}
	return NULL;
}

uint32_t znodes_below(const struct znodes *znodes, const char *path)
{
	size_t length = strlen(path);
	uint32_t count = 0;

	for (uint32_t i = 0; i < znodes->size; i++) {
		for (const struct znode *n = znodes->by_path[i]; n; n = n->next_by_path)
			count += n->newest && n->newest->there && !strncmp(n->path, path, length) &&
				 n->path[length] == '/';
	}
	return count;
}

const struct znode_state *znode_at(const struct znode *node, uint64_t at_ns)
{
	const struct znode_state *state = node->newest;

	while (state && state->at_ns > at_ns)
		state = state->older;
	return state;
}

const struct listing *znode_list(const struct znode_state *state, uint64_t at_ns)
{
	struct znode *node = state->node;
	struct listing *listing = node->listing;
	size_t size = state->children * sizeof(char *);
	char *to;

	if (listing && listing->zxid == state->children_zxid)
		return listing;
	for (const struct znode *n = node->first_child; n; n = n->next_sibling) {
		const struct znode_state *child = znode_at(n, at_ns);

		if (child && child->there)
			size += strlen(n->name) + 1;
	}
	free(listing);
	listing = memory_get(sizeof(*listing) + size);
	listing->zxid = state->children_zxid;
	listing->size = size;
	to = (char *)(listing->names + state->children);
	for (const struct znode *n = node->first_child; n; n = n->next_sibling) {
		const struct znode_state *child = znode_at(n, at_ns);

		if (!child || !child->there)
			continue;
		listing->names[listing->count++] = to;
		to = stpcpy(to, n->name) + 1;
	}
	assert(listing->count == state->children);
	node->listing = listing;
	return listing;
}

/* States before @commit are forgotten. */
static void settle(struct znodes *znodes, struct commit *commit)
{
	struct znode_state *next;

	for (struct znode_state *state = commit->touched; state; state = next) {
		struct znode *node = state->node;

		next = state->next_touched;
		free_states(state->older);
		state->older = NULL;
		if (!state->there && node->newest == state && !node->watches && !node->first_child)
			forget_node(znodes, node);
	}
}

void znodes_forget(struct znodes *znodes, uint64_t before_ns)
{
	while (znodes->oldest && znodes->oldest->at_ns < before_ns) {
		struct commit *commit = znodes->oldest;

		settle(znodes, commit);
		znodes->oldest = commit->newer;
		if (commit->newer)
			commit->newer->older = NULL;
		else
			znodes->newest = NULL;
		free(commit);
	}
}

void znodes_open(struct znodes *znodes)
{
	*znodes = (struct znodes){.size = FIRST_CHAINS};
	znodes->by_path = memory_get(znodes->size * sizeof(struct znode *));
	znodes->root = insert(znodes, NULL, "/");
	znodes->root->newest = memory_get(sizeof(struct znode_state));
	znodes->root->newest->node = znodes->root;
	znodes->root->newest->there = true;
}

void znodes_close(struct znodes *znodes)
{
	znodes_forget(znodes, UINT64_MAX);
	for (uint32_t i = 0; i < znodes->size; i++) {
		while (znodes->by_path[i]) {
			struct znode *node = znodes->by_path[i];

			znodes->by_path[i] = node->next_by_path;
			free_states(node->newest);
			free(node->listing);
			free(node);
		}
	}
	free(znodes->by_path);
}
