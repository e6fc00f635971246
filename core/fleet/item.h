/* item - a partition that a transaction is about. */
#ifndef RATEFS_CORE_ITEM_H
#define RATEFS_CORE_ITEM_H

#include "core/fleet/znode.h"
#include "core/limiter/holding.h"

enum { ITEMS_MAX = 32 }; /* in one transaction: each has up to three operations */

struct item {
	struct holding *holding; /* its limiter is held by us while the item is there */
	uint32_t index;		 /* of a partition; count and above are not used for the reserve */
	bool reserve;
	bool clean;
	uint64_t made_zxid; /* of the marker ... */
	struct marker marker;
	bool old;	    /* ... which was read too long ago to say what is left */
	uint32_t operation; /* its first in the transaction */
};

struct lease *item_lease(const struct item *item);

/* The index of its partition; from PARTITIONS_MAX on: of the reserve. */
uint32_t item_index(const struct item *item);

/* The path of its node of @kind: its lease or its marker. */
void item_path(const struct item *item, enum znode_kind kind, char path[ZNODE_TEXT]);

#endif
