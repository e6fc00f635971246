/* layout - the nodes that must be there before a host joins: see NODES in fleet.h. */
#ifndef RATEFS_CORE_LAYOUT_H
#define RATEFS_CORE_LAYOUT_H

#include "core/fleet/parts.h"

bool layout_new(struct fleet *fleet);
void layout_free(struct fleet *fleet);

/* Looks at the nodes, makes those that are missing, and then has the settings read. */
void layout_look(struct fleet *fleet);

#endif
