/* membership - which other hosts there are, see membership.h. */
#include "core/fleet/membership.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"

#include <stdlib.h>

enum { WATCHING_HOSTS = 2 };

struct membership {
	bool alone;
	bool watched;
	bool asked;
	bool known;
	bool shrunk; /* not told yet */
	bool turned; /* likewise: @alone is another than it was */
	uint32_t count;
	uint64_t look_ns; /* when to look again */
};

bool membership_new(struct fleet *fleet)
{
	fleet->membership = calloc(1, sizeof(*fleet->membership));
	return fleet->membership;
}

void membership_free(struct fleet *fleet)
{
	free(fleet->membership);
}

bool membership_is_alone(const struct fleet *fleet)
{
	return fleet->membership->alone;
}

bool membership_is_known(const struct fleet *fleet)
{
	return fleet->membership->known;
}

uint32_t membership_count(const struct fleet *fleet)
{
	return fleet->membership->count ? fleet->membership->count : 1;
}

static void become_alone(struct fleet *fleet, bool alone)
{
	if (fleet->membership->alone == alone)
		return;
	fleet->membership->alone = alone;
	fleet->membership->turned = true;
	holdings_set_alone(fleet, alone);
}

static void ask_for_hosts(struct fleet *fleet, bool watch);

static void hosts_listed(struct fleet *fleet, struct request *request)
{
	struct membership *membership = fleet->membership;

	membership->asked = false;
	membership->look_ns = fleet->now_ns + fleet_jitter(fleet, FLEET_HOSTS_NS);
	if (request->answer != ANSWER_OK)
		return;
	if (request->name_count < membership->count)
		membership->shrunk = true;
	membership->count = request->name_count;
	membership->watched = request->watch;
	membership->known = request->name_count > 1 || request->watch;
	if (request->name_count <= WATCHING_HOSTS && !request->watch)
		ask_for_hosts(fleet, true);
	if (request->name_count > 1)
		become_alone(fleet, false);
	else if (request->watch)
		become_alone(fleet, true);
}

static void ask_for_hosts(struct fleet *fleet, bool watch)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_HOSTS, 0, path);
	request = request_new(REQUEST_LIST, path, hosts_listed);
	if (!request)
		return;
	request->watch = watch;
	fleet->membership->asked = true;
	request_send(fleet, request);
}

void membership_watch(struct fleet *fleet)
{
	const struct membership *membership = fleet->membership;

	if (session_state(fleet) != FLEET_READY || membership->asked || session_is_leaving(fleet) ||
	    membership->watched)
		return;
	if (fleet->now_ns >= membership->look_ns)
		ask_for_hosts(fleet, membership->count && membership->count <= WATCHING_HOSTS);
	else if (holdings_look_ns(fleet) != NEVER_NS)
		fleet_wake_at(fleet, membership->look_ns);
}

void membership_look_soon(struct fleet *fleet)
{
	fleet->membership->look_ns = 0;
}

void membership_changed(struct fleet *fleet)
{
	fleet->membership->watched = false;
	fleet->membership->look_ns = 0;
	fleet_wake_at(fleet, 0);
}

void membership_forget(struct fleet *fleet)
{
	fleet->membership->watched = false;
	fleet->membership->asked = false;
}

bool membership_has_shrunk(struct fleet *fleet)
{
	bool shrunk = fleet->membership->shrunk;

	fleet->membership->shrunk = false;
	return shrunk;
}

bool membership_has_turned(struct fleet *fleet)
{
	bool turned = fleet->membership->turned;

	fleet->membership->turned = false;
	return turned;
}
