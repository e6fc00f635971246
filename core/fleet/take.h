/*
 * take - the transaction that takes leaves: it is planned, sent, and answered. Rules 6 to 8 and 18
 * of fleet.h.
 */
#ifndef RATEFS_CORE_TAKE_H
#define RATEFS_CORE_TAKE_H

#include "core/fleet/coordinator.h"
#include "core/fleet/parts.h"
#include "core/fleet/tile.h"

/* Marks those of @tiles whose hosts are gone, of as many hosts as fit one transaction. */
void take_mark_gone(const struct fleet *fleet, struct tiles *tiles);

/*
 * Adds to @request, a TRANSACTION_TAKE that was begun: up to @wanted leaves of @holding, of @tiles
 * as they were listed and marked, and those whose own tokens are read; and one of the reserve,
 * whose tiles are @reserve, if that is not NULL. This host's own tiles are put into both as they
 * are known. False: nothing is added, since there is nothing to be taken now, it does not fit, or
 * there is no memory.
 */
bool take_add(struct fleet *fleet, struct request *request, struct holding *holding,
	      struct tiles *tiles, uint32_t wanted, struct tiles *reserve);

/* It was answered: has the leases that it took, and ends those that it did not. */
void take_answered(struct fleet *fleet, const struct request *request);

#endif
