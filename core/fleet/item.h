/* item - what a transaction does to the tiles of one limiter, or to those of its reserve. */
#ifndef RATEFS_CORE_ITEM_H
#define RATEFS_CORE_ITEM_H

#include "core/fleet/plan.h"
#include "core/fleet/znode.h"
#include "core/limiter/holding.h"

enum { ITEMS_MAX = 32 }; /* in one transaction */

struct item {
	struct holding *holding; /* its limiter is held by us while the item is there */
	uint64_t cut;		 /* of the leaves that it is about */
	bool reserve;
	struct plan *plan; /* owned; NULL: it is not known, a predecessor made it */
	uint32_t end;	   /* of its operations in the request: those from here on are others' */
};

/* Makes the item of @holding as it is now, or of its reserve, without a plan. */
struct item item_of(struct holding *holding, bool reserve);

/* Gives it a plan for @tiles, which changes nothing yet. False: there is no memory. Frees that. */
bool item_begin(struct item *item, const struct tiles *tiles, const char *hid, uint64_t seed);
void item_free(struct item *item);

/* Tells whether its leaves are still there: the limiter is, and they are numbered as they were. */
bool item_counts(const struct item *item);

/* The leases that it can be about are @count leases from this on. */
struct lease *item_leases(const struct item *item, uint32_t *count);

/* The path of its folder. */
void item_path(const struct item *item, char path[ZNODE_TEXT]);

#endif
