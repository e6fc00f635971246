/*
 * tree - limiters by name and by id, parents and children.
 */
#ifndef RATEFS_CORE_TREE_H
#define RATEFS_CORE_TREE_H

#include "core/limiter/limiter.h"
#include "core/values/name.h"

struct tree {
	struct limiter *root;	  /* owned */
	struct limiter **by_name; /* owned, buckets of chains */
	struct limiter **by_id;	  /* owned */
	uint32_t size;		  /* of both, a power of two */
	uint32_t count;		  /* limiters without the root and without partitions */
	uint32_t last_id;
	uint64_t seed
		[2]; /* keeps strangers from choosing names of one chain; set before there are any */
};

/* 0 or -ENOMEM. The root has id 0. */
int tree_init(struct tree *tree);

/* Frees everything; nobody may wait. */
void tree_free(struct tree *tree);

/* NULL when there is none. */
struct limiter *tree_find(const struct tree *tree, const struct limiter *parent, const char *name);
struct limiter *tree_find_id(const struct tree *tree, uint32_t id);

/* Number of limiters above @limiter; the root has 0. */
uint32_t tree_depth(const struct limiter *limiter);

/* Memory for a limiter named @name, not in the tree yet; NULL if there is none. */
struct limiter *tree_new(const char *name);

/* Puts @limiter (owned by the tree then) below @parent under the next id. */
void tree_insert(struct tree *tree, struct limiter *parent, struct limiter *limiter);

/* Takes @limiter, which has no children, out of the tree; it lives on while it is referenced. */
void tree_remove(struct tree *tree, struct limiter *limiter);

/* Renames; @name (from malloc) is taken over. */
void tree_rename(struct tree *tree, struct limiter *limiter, char *name);

/*
 * Path from the root without a leading slash, "" for the root; of a partition or a key: its
 * limiter's.
 */
void tree_path(const struct limiter *limiter, char path[PATH_TEXT]);

/* Frees a limiter that is in no tree (any more), has no partitions, and that nobody holds. */
void limiter_free(struct limiter *limiter);

/* Holds the memory of a limiter beyond its removal. */
void limiter_hold(struct limiter *limiter);
void limiter_drop(struct limiter *limiter);

#endif
