/*
 * room - the bytes of this host's nodes and watches, which have to fit requests of the coordinator.
 *
 * A session's close deletes all its ephemeral nodes in one transaction, and a session that comes to
 * another server sets all its watches again in one request; both hold whole paths. ZooKeeper takes
 * 1,048,575 bytes by default. It commits a larger close, and cannot read it when it starts again;
 * it hangs up on a larger request, whenever it comes.
 */
#include "core/fleet/inside.h"

enum {
	LENGTH_BYTES = 4, /* before each path */
	AGAIN_PARTS = 4,  /* it is told again once a quarter was given back in between */
};

static uint32_t path_bytes(const struct fleet *fleet, enum znode_kind kind, uint64_t id)
{
	return LENGTH_BYTES + fleet->coordinator->prefix_bytes + znode_bytes(kind, id);
}

static uint32_t host_bytes(const struct fleet *fleet)
{
	return path_bytes(fleet, ZNODE_HOST, 0);
}

uint32_t room_own_bytes(const struct fleet *fleet)
{
	return *fleet->hid ? fleet->own_bytes + host_bytes(fleet) : 0;
}

/* Returns how many nodes of @bytes each there is room for. */
static uint32_t room_for(const struct fleet *fleet, uint32_t bytes)
{
	uint32_t used = fleet->own_bytes + host_bytes(fleet);

	return used < FLEET_OWN_BYTES_MAX ? (FLEET_OWN_BYTES_MAX - used) / bytes : 0;
}

uint32_t room_for_leases(const struct fleet *fleet, const struct holding *holding)
{
	uint32_t room = room_for(fleet, path_bytes(fleet, ZNODE_LEASE, holding->id));
	uint32_t most = fleet->leases < FLEET_LEASES_MAX ? FLEET_LEASES_MAX - fleet->leases : 0;

	return room < most ? room : most;
}

bool room_for_claim(const struct fleet *fleet, const struct holding *holding)
{
	return holding->claim_counted ||
	       room_for(fleet, path_bytes(fleet, ZNODE_CLAIM, holding->id));
}

bool room_is_scarce(const struct fleet *fleet)
{
	return fleet->leases >= FLEET_LEASES_MAX / 2 || fleet->own_bytes >= FLEET_OWN_BYTES_MAX / 2;
}

void room_count_lease(struct fleet *fleet, const struct holding *holding, bool there)
{
	uint32_t bytes = path_bytes(fleet, ZNODE_LEASE, holding->id);

	fleet->own_bytes = there ? fleet->own_bytes + bytes : fleet->own_bytes - bytes;
	if (fleet->own_bytes < FLEET_OWN_BYTES_MAX - FLEET_OWN_BYTES_MAX / AGAIN_PARTS &&
	    fleet->leases < FLEET_LEASES_MAX - FLEET_LEASES_MAX / AGAIN_PARTS)
		fleet->full = false;
}

void room_count_claim(struct fleet *fleet, struct holding *holding, bool there)
{
	uint32_t bytes = path_bytes(fleet, ZNODE_CLAIM, holding->id);

	if (there == holding->claim_counted)
		return;
	holding->claim_counted = there;
	fleet->own_bytes = there ? fleet->own_bytes + bytes : fleet->own_bytes - bytes;
}

void room_count_left(struct fleet *fleet, uint64_t id, bool claim)
{
	fleet->own_bytes += path_bytes(fleet, claim ? ZNODE_CLAIM : ZNODE_LEASE, id);
}

bool room_watch_learnt(struct fleet *fleet, struct holding *holding)
{
	uint32_t bytes = path_bytes(fleet, ZNODE_FREE, holding->id);

	if (holding->learnt_watched)
		return true;
	if (fleet->learnt_bytes + bytes > FLEET_LEARNT_BYTES_MAX)
		return false;
	holding->learnt_watched = true;
	fleet->learnt_bytes += bytes;
	return true;
}

void room_unwatch_learnt(struct fleet *fleet, struct holding *holding)
{
	if (!holding->learnt_watched)
		return;
	holding->learnt_watched = false;
	fleet->learnt_bytes -= path_bytes(fleet, ZNODE_FREE, holding->id);
}

void room_was_missing(struct fleet *fleet)
{
	fleet->counters.left_out++;
	fleet->claims_from_ns = fleet->now_ns + fleet->constants.renewal_ns;
	if (fleet->full)
		return;
	fleet->full = true;
	fleet_tell(fleet, FLEET_FULL,
		   "full: %u leases, %u bytes of paths: no more is taken or claimed until some "
		   "are given back",
		   fleet->leases, room_own_bytes(fleet));
}
