/*
 * layout - the nodes that must be there before a host joins: see NODES in fleet.h.
 *
 * A fleet of the version before, which no host has mounted, is turned over by the first host that
 * comes. Settings stay. In one transaction /v says that this is under way, /g is set, and
 * /h is deleted. That asserts that there is no host: one of the version before that joins meanwhile
 * has read another /g, looks at /v again, and is refused. Then the nodes of its leases are deleted,
 * by any host of this version, and at last /v says this version. The leaves of a limiter are in no
 * tile then, so the first host that wants some has them numbered (relay.h).
 */
#ifndef RATEFS_CORE_LAYOUT_H
#define RATEFS_CORE_LAYOUT_H

#include "core/fleet/parts.h"

bool layout_new(struct fleet *fleet);
void layout_free(struct fleet *fleet);

/* Looks at the nodes, makes those that are missing, and then has the settings read. */
void layout_look(struct fleet *fleet);

#endif
