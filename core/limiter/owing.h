/*
 * owing - finish tags (order.h) of idle keys.
 *
 * A key that was granted tokens comes after its siblings until they have had as much. So a key that
 * is opened for each token anew has its tag kept, or it would come first each time. That takes
 * memory only while the tag is ahead, that is while readers wait in siblings.
 */
#ifndef RATEFS_CORE_OWING_H
#define RATEFS_CORE_OWING_H

#include "core/limiter/keys.h"

/* The tag of an idle key, and its count of tokens, whose place the pointer takes. */
struct owing {
	struct list_link by_age; /* in keys->owing */
	struct key *key;	 /* borrowed; it owns this */
	union key_count count;	 /* of the key */
	uint64_t finish;	 /* its tag */
};

/*
 * Keeps the finish tag of @key, which was closed and was @sibling until now, if that is ahead. A
 * tag for which there is no memory is lost.
 */
void owing_begin(struct keys *keys, struct key *key, const struct sibling *sibling);

/* Returns the tag of @key, which is idle, and keeps it no more; 0: there is none. */
uint64_t owing_end(struct keys *keys, struct key *key);

/* Tells whether the tag of @key, which is idle, is still ahead. */
bool owing_is_ahead(const struct keys *keys, const struct key *key);

#endif
