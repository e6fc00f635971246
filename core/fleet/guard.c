/*
 * guard - a host watches the nodes of its own leases: rule 10 of fleet.h.
 *
 * Nobody but its holder deletes a lease, unless by hand, or it was never really committed. The holder
 * watches it: a server tells of the deletion before it acknowledges a later transaction, so the right
 * ends in time. A watch that was lost with a connection is set by the next one.
 */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns this host's lease that has node @znode, unless it is on its way back; else NULL. */
static struct lease *lease_of_node(struct fleet *fleet, const struct znode *znode)
{
	struct holding *holding = holding_of_id(fleet, znode->id);
	struct lease *lease;

	if (!holding || (znode->reserve ? znode->index != holding->reserve_index
					: znode->index >= holding->lease_room))
		return NULL;
	lease = znode->reserve ? &holding->reserve : &holding->leases[znode->index];
	return lease->state == LEASE_HELD || lease->state == LEASE_WAITING ? lease : NULL;
}

static void lease_seen(struct fleet *fleet, struct request *request)
{
	struct lease *lease;
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	lease = lease_of_node(fleet, &znode);
	if (!lease)
		return;
	if (request->answer == ANSWER_OK && !strcmp(request->data, fleet->hid))
		lease->watched = true;
	else if (request->answer == ANSWER_OK || request->answer == ANSWER_NO_NODE ||
		 request->answer == ANSWER_REFUSED)
		fleet_drop_session(fleet, "a lease of this host's is another's: a foreign hand");
}

void fleet_watch_lease(struct fleet *fleet, const struct holding *holding, uint32_t index,
		       bool reserve)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path_partition(ZNODE_LEASE, holding->id, index, reserve, path);
	request = request_new(REQUEST_GET, path, lease_seen);
	if (!request)
		return;
	request->watch = true;
	request_send(fleet, request);
}

void fleet_watch_leases(struct fleet *fleet)
{
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		for (uint32_t i = 0; h->leased && i < h->lease_room; i++) {
			const struct lease *lease = &h->leases[i];

			if (!lease->watched &&
			    (lease->state == LEASE_HELD || lease->state == LEASE_WAITING))
				fleet_watch_lease(fleet, h, i, false);
		}
		if (!h->reserve.watched &&
		    (h->reserve.state == LEASE_HELD || h->reserve.state == LEASE_WAITING))
			fleet_watch_lease(fleet, h, h->reserve_index, true);
	}
}

void fleet_lease_changed(struct fleet *fleet, const struct znode *znode)
{
	if (lease_of_node(fleet, znode))
		fleet_drop_session(fleet, "a lease of this host's was changed by a foreign hand");
}
