/* tree - limiters by name and by id, see tree.h. */
#include "core/limiter/tree.h"
#include "core/limiter/bucket.h"
#include "core/limiter/holding.h"
#include "core/base/siphash.h"
#include "core/limiter/learning.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"
#include "core/limiter/usage.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 64 };

static uint64_t hash_name(const struct tree *tree, const struct limiter *parent, const char *name)
{
	const uint64_t seed[2] = {tree->seed[0] ^ parent->id, tree->seed[1]};

	return siphash(name, strlen(name), seed);
}

static struct limiter **name_chain(const struct tree *tree, const struct limiter *parent,
				   const char *name)
{
	return &tree->by_name[hash_name(tree, parent, name) & (tree->size - 1)];
}

static struct limiter **id_chain(const struct tree *tree, uint32_t id)
{
	return &tree->by_id[id & (tree->size - 1)];
}

struct limiter *tree_find(const struct tree *tree, const struct limiter *parent, const char *name)
{
	struct limiter *l = *name_chain(tree, parent, name);

	while (l && (l->parent != parent || strcmp(l->name, name) != 0))
		l = l->next_by_name;
	return l;
}

struct limiter *tree_find_id(const struct tree *tree, uint32_t id)
{
	struct limiter *l = *id_chain(tree, id);

	while (l && l->id != id)
		l = l->next_by_id;
	return l;
}

uint32_t tree_depth(const struct limiter *limiter)
{
	uint32_t depth = 0;

	for (; limiter->parent; limiter = limiter->parent)
		depth++;
	return depth;
}

/* Links @limiter into its chains. */
static void link_chains(struct tree *tree, struct limiter *limiter)
{
	struct limiter **chain = id_chain(tree, limiter->id);

	limiter->next_by_id = *chain;
	*chain = limiter;
	if (limiter_is_root(limiter))
		return;
	chain = name_chain(tree, limiter->parent, limiter->name);
	limiter->next_by_name = *chain;
	*chain = limiter;
}

static void link_all(struct tree *tree, struct limiter *limiter)
{
	link_chains(tree, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		link_all(tree, l);
}

/* Gives the tables @size chains. 0 or -ENOMEM. */
static int resize_tables(struct tree *tree, uint32_t size)
{
	struct limiter **by_name = calloc(size, sizeof(*by_name));
	struct limiter **by_id = calloc(size, sizeof(*by_id));

	if (!by_name || !by_id) {
		free(by_name);
		free(by_id);
		return -ENOMEM;
	}
	free(tree->by_name);
	free(tree->by_id);
	tree->by_name = by_name;
	tree->by_id = by_id;
	tree->size = size;
	link_all(tree, tree->root);
	return 0;
}

/* A limiter below another one, which has siblings. */
struct nested {
	struct limiter limiter; /* first */
	struct sibling sibling;
};

/* Returns where the name lies that @limiter was made with: behind it, in the same memory. */
static char *first_name(struct limiter *limiter)
{
	bool is_nested = limiter->turns.sibling;

	return (char *)limiter + (is_nested ? sizeof(struct nested) : sizeof(*limiter));
}

static void drop_name(struct limiter *limiter)
{
	if (limiter->name != first_name(limiter))
		free(limiter->name);
}

void limiter_free(struct limiter *limiter)
{
	assert(!limiter->keys && !limiter->is_key);
	if (limiter->holds_parent)
		limiter_drop(limiter->parent);
	assert(!limiter->partitions);
	if (limiter->holding)
		holding_free(limiter->holding);
	else
		pool_drop(limiter->settings);
	learning_free(limiter->learning);
	usage_free(limiter);
	slots_free(limiter);
	turns_free(&limiter->turns);
	for (uint32_t i = 0; i < limiter->bucket_count; i++)
		bucket_end(&limiter->buckets[i]);
	free(limiter->buckets);
	free(limiter->changed_s);
	drop_name(limiter);
	free(limiter);
}

void limiter_hold(struct limiter *limiter)
{
	limiter->references++;
}

void limiter_drop(struct limiter *limiter)
{
	assert(limiter->references);
	if (--limiter->references || !limiter->removed)
		return;
	if (limiter->partition)
		partition_free(limiter);
	else
		limiter_free(limiter);
}

struct limiter *tree_new(const struct limiter *parent, const char *name)
{
	bool is_nested = parent && !limiter_is_root(parent);
	size_t bytes = is_nested ? sizeof(struct nested) : sizeof(struct limiter);
	size_t name_bytes = strlen(name) + 1;
	struct limiter *limiter = calloc(1, bytes + name_bytes);

	if (!limiter)
		return NULL;
	limiter->settings = &SETTINGS_DEFAULT;
	if (is_nested)
		turns_place(&limiter->turns, &((struct nested *)limiter)->sibling,
			    limiter->settings);
	limiter->name = memcpy(first_name(limiter), name, name_bytes);
	return limiter;
}

int tree_init(struct tree *tree)
{
	*tree = (struct tree){.root = tree_new(NULL, "")};
	if (!tree->root)
		return -ENOMEM;
	if (resize_tables(tree, FIRST_SIZE)) {
		limiter_free(tree->root);
		return -ENOMEM;
	}
	return 0;
}

void tree_free(struct tree *tree)
{
	struct limiter *l = tree->root, *up;

	/* From the leaves up. */
	while (l) {
		while (l->first_child)
			l = l->first_child;
		up = l->parent;
		if (up)
			tree_remove(tree, l);
		else
			limiter_free(l);
		l = up;
	}
	free(tree->by_name);
	free(tree->by_id);
	*tree = (struct tree){0};
}

/* The one before the first child is the last. */
static void append_child(struct limiter *parent, struct limiter *limiter)
{
	struct limiter *first = parent->first_child;

	limiter->next_sibling = NULL;
	limiter->previous_sibling = first ? first->previous_sibling : limiter;
	if (first) {
		first->previous_sibling->next_sibling = limiter;
		first->previous_sibling = limiter;
	} else {
		parent->first_child = limiter;
	}
}

static void remove_child(struct limiter *parent, struct limiter *limiter)
{
	struct limiter *next = limiter->next_sibling, *first = parent->first_child;

	if (next)
		next->previous_sibling = limiter->previous_sibling;
	else
		first->previous_sibling = limiter->previous_sibling;
	if (limiter == first)
		parent->first_child = next;
	else
		limiter->previous_sibling->next_sibling = next;
}

void tree_insert(struct tree *tree, struct limiter *parent, struct limiter *limiter)
{
	uint32_t shares;

	/* Without memory the chains just grow longer. */
	if (tree->count >= tree->size && tree->size < UINT32_C(1) << 30)
		(void)resize_tables(tree, tree->size * 2);
	limiter->id = ++tree->last_id;
	limiter->parent = parent;
	append_child(parent, limiter);
	link_chains(tree, limiter);
	tree->count++;
	tree->partitions += partition_count(limiter, &shares);
}

static void unlink_name(struct tree *tree, struct limiter *limiter)
{
	struct limiter **at = name_chain(tree, limiter->parent, limiter->name);

	while (*at != limiter)
		at = &(*at)->next_by_name;
	*at = limiter->next_by_name;
}

void tree_remove(struct tree *tree, struct limiter *limiter)
{
	struct limiter *parent = limiter->parent, **at = id_chain(tree, limiter->id);
	uint32_t shares;

	assert(parent && !limiter->first_child && !limiter->turns.queue.length);
	unlink_name(tree, limiter);
	while (*at != limiter)
		at = &(*at)->next_by_id;
	*at = limiter->next_by_id;
	remove_child(parent, limiter);
	tree->count--;
	tree->partitions -= partition_count(limiter, &shares);
	limiter->removed = true;
	if (!limiter->references) {
		limiter_free(limiter);
		return;
	}
	/* Its path, which goes by the parent, is still asked for. */
	limiter->holds_parent = true;
	limiter_hold(parent);
}

void tree_rename(struct tree *tree, struct limiter *limiter, char *name)
{
	struct limiter **chain;

	unlink_name(tree, limiter);
	drop_name(limiter);
	limiter->name = name;
	chain = name_chain(tree, limiter->parent, name);
	limiter->next_by_name = *chain;
	*chain = limiter;
}

void tree_path(const struct limiter *limiter, char path[PATH_TEXT])
{
	const struct limiter *line[DEPTH_MAX + 1];
	size_t used = 0;
	uint32_t depth = 0;

	if (limiter->partition || limiter->is_key)
		limiter = limiter->parent;
	for (; limiter->parent; limiter = limiter->parent)
		line[depth++] = limiter;
	path[0] = '\0';
	while (depth--)
		used += (size_t)snprintf(path + used, PATH_TEXT - used, "%s%s", used ? "/" : "",
					 line[depth]->name);
}
