/*
 * guard - a host watches the nodes of its own leases: rule 10 of fleet.h.
 *
 * Nobody but its holder deletes a lease, unless by hand, or it was never really committed. The holder
 * watches it: a server tells of the deletion before it acknowledges a later transaction, so the right
 * ends in time. A watch that was lost with a connection is set by the next one.
 */
#include "core/fleet/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct lease *own_lease(struct holding *holding, const char *name)
{
	bool reserve = *name == 'r';
	uint32_t index = (uint32_t)strtoul(name + reserve, NULL, 10);
	struct lease *lease = &holding->reserve;

	if (reserve && index != holding->reserve_index)
		return NULL;
	if (!reserve && index >= holding->slots)
		return NULL;
	if (!reserve)
		lease = &holding->leases[index];
	return lease->state == LEASE_HELD || lease->state == LEASE_WAITING ? lease : NULL;
}

/* The lease of this host's that has the node @path, NULL: none that is not on its way back. */
static struct lease *lease_of_node(struct fleet *fleet, const char *path)
{
	unsigned long long id;
	struct holding *holding;
	char name[16];

	if (sscanf(path, "/l/%llu/%15s", &id, name) != 2)
		return NULL;
	holding = holding_of_id(fleet, id);
	return holding ? own_lease(holding, name) : NULL;
}

static void lease_seen(void *pointer, struct request *request)
{
	struct fleet *fleet = pointer;
	struct lease *lease = lease_of_node(fleet, request->path);

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
	char path[PATH_ROOM];

	snprintf(path, sizeof(path), "/l/%llu/%s%u", (unsigned long long)holding->id,
		 reserve ? "r" : "", index);
	request = request_new(REQUEST_GET, path, NULL, lease_seen);
	if (!request)
		return;
	request->watch = true;
	fleet_send(fleet, request);
}

void fleet_watch_leases(struct fleet *fleet)
{
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		for (uint32_t i = 0; h->leased && i < h->slots; i++) {
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

void fleet_lease_changed(struct fleet *fleet, const char *path)
{
	if (lease_of_node(fleet, path))
		fleet_drop_session(fleet, "a lease of this host's was changed by a foreign hand");
}
