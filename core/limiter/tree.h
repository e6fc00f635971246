/*
 * tree - limiters by name and by id, parents and children.
 */
#ifndef RATEFS_CORE_TREE_H
#define RATEFS_CORE_TREE_H

#include "core/limiter/limiter.h"
#include "core/values/name.h"

/* Some are left for limiters that other hosts make. */
#define TREE_IDS_MAX (UINT32_MAX - 1000000)

struct tree {
	struct limiter *root;	  /* owned */
	struct limiter **by_name; /* owned, buckets of chains */
	struct limiter **by_id;	  /* owned */
	uint32_t size;		  /* of both, a power of two */
	uint32_t count;		  /* limiters without the root and without partitions */
	uint64_t partitions;	  /* of all these, made or not: the sum of partition_count() */
	uint32_t last_id;	  /* that was given, see tree_is_used_up() */
	uint64_t seed[2];	  /* of the hash of names; set before there are any */
};

/* Makes a tree with a root, which has id 0. 0 or -ENOMEM. */
int tree_init(struct tree *tree);

/* Frees everything; no waiter may be left. */
void tree_free(struct tree *tree);

/* Find a limiter; NULL when there is none. */
struct limiter *tree_find(const struct tree *tree, const struct limiter *parent, const char *name);
struct limiter *tree_find_id(const struct tree *tree, uint32_t id);

/* Returns the number of limiters above @limiter; the root has 0. */
uint32_t tree_depth(const struct limiter *limiter);

/*
 * Gets memory for a limiter named @name below @parent (NULL: for the root), not in the tree yet;
 * NULL if there is none.
 */
struct limiter *tree_new(const struct limiter *parent, const char *name);

/* Tells whether nearly all ids were given: no limiter is made here any more. */
static inline bool tree_is_used_up(const struct tree *tree)
{
	return tree->last_id >= TREE_IDS_MAX;
}

/* Puts @limiter (owned by the tree then) below @parent under the next id. */
void tree_insert(struct tree *tree, struct limiter *parent, struct limiter *limiter);

/* Takes @limiter, which has no children, out of the tree; it lives on while it is referenced. */
void tree_remove(struct tree *tree, struct limiter *limiter);

/* Renames @limiter; @name (from malloc) is taken over. */
void tree_rename(struct tree *tree, struct limiter *limiter, char *name);

/*
 * Writes the path from the root without a leading slash, "" for the root; of a partition or a key:
 * its limiter's.
 */
void tree_path(const struct limiter *limiter, char path[PATH_TEXT]);

/* Frees a limiter that is in no tree (any more), has no partitions, and is not held. */
void limiter_free(struct limiter *limiter);

/* Hold the memory of a limiter beyond its removal, and let it go. */
void limiter_hold(struct limiter *limiter);
void limiter_drop(struct limiter *limiter);

#endif
