/*
 * room - the bytes of this host's nodes and watches, which have to fit requests of the coordinator.
 *
 * A session's close deletes all its ephemeral nodes in one transaction, and a session that comes to
 * another server sets all its watches again in one request; both hold whole paths. ZooKeeper takes
 * 1,048,575 bytes by default. It commits a larger close, and cannot read it when it starts again;
 * it hangs up on a larger request, whenever it comes.
 */
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"

#include <stdlib.h>

enum {
	LENGTH_BYTES = 4, /* before each path */
	AGAIN_PARTS = 4,  /* it is told again once a quarter was given back in between */
};

struct room {
	uint32_t leases; /* in any state but NONE */
	uint32_t claims;
	uint32_t keys;		    /* that are leased */
	uint32_t own_bytes;	    /* of the paths of claims */
	uint32_t agreed_rate_bytes; /* of those of /a/LID and /w/LID whose data are watched */
	uint32_t claims_bytes;	    /* of those of /w/LID that are */
	bool full;		    /* that there is no room for more was told */
	uint64_t claims_from_ns;    /* after there was no room for one: not before */
};

bool room_new(struct fleet *fleet)
{
	fleet->room = calloc(1, sizeof(*fleet->room));
	return fleet->room;
}

void room_free(struct fleet *fleet)
{
	free(fleet->room);
}

uint32_t room_leases(const struct fleet *fleet)
{
	return fleet->room->leases;
}

bool room_is_used(const struct fleet *fleet)
{
	return fleet->room->leases || fleet->room->claims || fleet->room->keys;
}

uint64_t room_claims_from_ns(const struct fleet *fleet)
{
	return fleet->room->claims_from_ns;
}

void room_forget(struct fleet *fleet)
{
	fleet->room->own_bytes = 0;
}

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
	const struct room *room = fleet->room;

	return *session_hid(fleet) ? room->own_bytes + host_bytes(fleet) : 0;
}

/* Returns how many nodes of @bytes each there is room for. */
static uint32_t room_for(const struct fleet *fleet, uint32_t bytes)
{
	const struct room *room = fleet->room;
	uint32_t used = room->own_bytes + host_bytes(fleet);

	return used < FLEET_OWN_BYTES_MAX ? (FLEET_OWN_BYTES_MAX - used) / bytes : 0;
}

uint32_t room_for_leases(const struct fleet *fleet)
{
	const struct room *room = fleet->room;

	return room->leases < FLEET_LEASES_MAX ? FLEET_LEASES_MAX - room->leases : 0;
}

bool room_for_claim(const struct fleet *fleet, const struct holding *holding, uint32_t parts_bytes)
{
	return room_for(fleet, path_bytes(fleet, ZNODE_CLAIM, holding->id) + parts_bytes);
}

bool room_is_scarce(const struct fleet *fleet)
{
	const struct room *room = fleet->room;

	return room->leases >= FLEET_LEASES_MAX / 2 || room->own_bytes >= FLEET_OWN_BYTES_MAX / 2;
}

void room_count_lease(struct fleet *fleet, bool there)
{
	struct room *room = fleet->room;

	room->leases = there ? room->leases + 1 : room->leases - 1;
	if (room->own_bytes < FLEET_OWN_BYTES_MAX - FLEET_OWN_BYTES_MAX / AGAIN_PARTS &&
	    room->leases < FLEET_LEASES_MAX - FLEET_LEASES_MAX / AGAIN_PARTS)
		room->full = false;
}

void room_count_claim(struct fleet *fleet, uint64_t id, uint32_t parts_bytes, bool there)
{
	struct room *room = fleet->room;
	uint32_t bytes = path_bytes(fleet, ZNODE_CLAIM, id) + parts_bytes;

	room->claims = there ? room->claims + 1 : room->claims - 1;
	room->own_bytes = there ? room->own_bytes + bytes : room->own_bytes - bytes;
}

void room_count_key(struct fleet *fleet, bool there)
{
	fleet->room->keys = there ? fleet->room->keys + 1 : fleet->room->keys - 1;
}

void room_count_left(struct fleet *fleet, uint64_t id, uint32_t parts_bytes)
{
	fleet->room->own_bytes += path_bytes(fleet, ZNODE_CLAIM, id) + parts_bytes;
}

/* Gives the node of @kind room for a watch of its data, unless it has it: @watched. */
static bool watch_data(struct fleet *fleet, enum znode_kind kind, uint64_t id, bool *watched)
{
	struct room *room = fleet->room;
	uint32_t bytes = path_bytes(fleet, kind, id);

	if (*watched)
		return true;
	if (room->agreed_rate_bytes + bytes > FLEET_AGREED_RATE_BYTES_MAX)
		return false;
	*watched = true;
	room->agreed_rate_bytes += bytes;
	return true;
}

static void unwatch_data(struct fleet *fleet, enum znode_kind kind, uint64_t id, bool *watched)
{
	if (!*watched)
		return;
	*watched = false;
	fleet->room->agreed_rate_bytes -= path_bytes(fleet, kind, id);
}

bool room_watch_agreed_rate(struct fleet *fleet, struct holding *holding)
{
	return watch_data(fleet, ZNODE_AGREED_RATE, holding->id, &holding->agreed_rate_watched);
}

void room_unwatch_agreed_rate(struct fleet *fleet, struct holding *holding)
{
	unwatch_data(fleet, ZNODE_AGREED_RATE, holding->id, &holding->agreed_rate_watched);
}

bool room_watch_told(struct fleet *fleet, struct holding *holding)
{
	return watch_data(fleet, ZNODE_CLAIMS, holding->id, &holding->told_watched);
}

void room_unwatch_told(struct fleet *fleet, struct holding *holding)
{
	unwatch_data(fleet, ZNODE_CLAIMS, holding->id, &holding->told_watched);
}

bool room_watches_told(const struct holding *holding)
{
	return holding->told_watched;
}

void room_was_missing(struct fleet *fleet)
{
	struct room *room = fleet->room;

	fleet->counters.left_out++;
	room->claims_from_ns = fleet->now_ns + fleet->constants.renewal_ns;
	if (room->full)
		return;
	room->full = true;
	fleet_tell(fleet, FLEET_FULL,
		   "full: %u leases, %u bytes of paths: no more is taken or claimed until some "
		   "are given back",
		   room->leases, room_own_bytes(fleet));
}

bool room_watches_agreed_rate(const struct holding *holding)
{
	return holding->agreed_rate_watched;
}

bool room_watch_claims(struct fleet *fleet, struct holding *holding)
{
	struct room *room = fleet->room;
	uint32_t bytes = path_bytes(fleet, ZNODE_CLAIMS, holding->id);

	if (holding->claims_watched)
		return true;
	if (room->claims_bytes + bytes > FLEET_CLAIMS_BYTES_MAX)
		return false;
	holding->claims_watched = true;
	room->claims_bytes += bytes;
	return true;
}

void room_unwatch_claims(struct fleet *fleet, struct holding *holding)
{
	if (!holding->claims_watched)
		return;
	holding->claims_watched = false;
	fleet->room->claims_bytes -= path_bytes(fleet, ZNODE_CLAIMS, holding->id);
}

bool room_watches_claims(const struct holding *holding)
{
	return holding->claims_watched;
}
