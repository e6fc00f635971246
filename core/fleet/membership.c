/* membership - which other hosts there are, see membership.h. */
#include "core/fleet/membership.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"

#include <stdlib.h>
#include <string.h>

struct membership {
	char (*hids)[HID_TEXT]; /* owned: of the last look, in the order of their names */
	uint32_t count;
	uint32_t looks;	  /* that were answered */
	uint32_t changes; /* of the names that they showed */
	uint32_t epoch;	  /* of this host's last transaction before the last look was asked for */
	bool former;	  /* that look was in another session: it says nothing of who went since */
	bool alone;
	bool had_company; /* another host was seen by this process */
	bool watched;
	bool asked;
	bool known;
	bool shrunk;	  /* not told yet */
	bool turned;	  /* likewise: @alone is another than it was */
	uint64_t look_ns; /* when to look again */
};

bool membership_new(struct fleet *fleet)
{
	fleet->membership = calloc(1, sizeof(*fleet->membership));
	return fleet->membership;
}

void membership_free(struct fleet *fleet)
{
	if (fleet->membership)
		free(fleet->membership->hids);
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

uint32_t membership_looks(const struct fleet *fleet)
{
	return fleet->membership->looks;
}

uint32_t membership_changes(const struct fleet *fleet)
{
	return fleet->membership->changes;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

char (*membership_hids(const struct fleet *fleet, uint32_t *count))[HID_TEXT]
{
	*count = fleet->membership->former ? 0 : fleet->membership->count;
	return fleet->membership->hids;
}

bool membership_is_fresh(const struct fleet *fleet)
{
	return fleet->membership->watched && !fleet->membership->former;
}

bool membership_has(const struct fleet *fleet, const char *hid)
{
	const struct membership *membership = fleet->membership;

	return membership->count &&
	       bsearch(hid, membership->hids, membership->count, HID_TEXT, by_name);
}

static void become_alone(struct fleet *fleet, bool alone)
{
	if (fleet->membership->alone == alone)
		return;
	fleet->membership->alone = alone;
	fleet->membership->turned = true;
	holdings_set_alone(fleet, alone && !fleet->membership->had_company);
}

/* Notes which hosts went, and which of those that had gone are there again. */
static void compare(struct fleet *fleet, char (*hids)[HID_TEXT], uint32_t count)
{
	struct membership *membership = fleet->membership;
	struct epochs *epochs = &fleet->epochs;

	for (uint32_t i = 0; !membership->former && i < membership->count; i++) {
		if (bsearch(membership->hids[i], hids, count, HID_TEXT, by_name))
			continue;
		epoch_note_gone(epochs, membership->hids[i], fleet->clocks.waiter_ns);
		membership->shrunk = true;
	}
	for (uint32_t i = 0; i < count && epochs->gone_count; i++)
		epoch_note_there(epochs, hids[i]);
}

/* Takes the names of @request in place of those that were known. False: there is no memory. */
static bool take_names(struct fleet *fleet, const struct request *request)
{
	char(*hids)[HID_TEXT] = calloc(request->name_count + 1, HID_TEXT);
	struct membership *membership = fleet->membership;
	uint32_t count = 0;

	if (!hids)
		return false;
	for (uint32_t i = 0; i < request->name_count; i++) {
		if (znode_is_hid(request->names[i]))
			memcpy(hids[count++], request->names[i], HID_TEXT);
	}
	qsort(hids, count, HID_TEXT, by_name);
	compare(fleet, hids, count);
	membership->changes += membership->former || count != membership->count ||
			       (count && memcmp(hids, membership->hids, count * HID_TEXT) != 0);
	free(membership->hids);
	membership->hids = hids;
	membership->count = count;
	membership->former = false;
	return true;
}

static void hosts_listed(struct fleet *fleet, struct request *request)
{
	struct membership *membership = fleet->membership;
	bool alone;

	membership->asked = false;
	membership->look_ns = fleet->now_ns + fleet_jitter(fleet, fleet->constants.renewal_ns);
	if (request->answer != ANSWER_OK || !take_names(fleet, request))
		return;
	membership->looks++;
	membership->watched = true;
	membership->known = true;
	alone = membership->count == membership_has(fleet, session_hid(fleet));
	membership->had_company |= !alone;
	become_alone(fleet, alone);
	fleet_wake_at(fleet, 0);
}

static void ask_for_hosts(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_HOSTS, 0, path);
	request = request_new(REQUEST_LIST, path, hosts_listed);
	if (!request)
		return;
	request->watch = true;
	fleet->membership->asked = true;
	fleet->membership->epoch = fleet->epochs.newest;
	request_send(fleet, request);
}

void membership_watch(struct fleet *fleet)
{
	const struct membership *membership = fleet->membership;

	if (session_state(fleet) != FLEET_READY || membership->asked || session_is_leaving(fleet))
		return;
	/* An election may bring hosts back without a word of it. */
	if (membership->watched && membership->epoch != fleet->epochs.newest)
		membership_changed(fleet);
	if (membership->watched)
		return;
	if (fleet->now_ns >= membership->look_ns)
		ask_for_hosts(fleet);
	else
		fleet_wake_at(fleet, membership->look_ns);
}

void membership_look_soon(struct fleet *fleet)
{
	fleet->membership->look_ns = 0;
	fleet_wake_at(fleet, 0);
}

void membership_changed(struct fleet *fleet)
{
	struct membership *membership = fleet->membership;
	uint64_t within_ns = FLEET_HOSTS_SPREAD_NS * membership->count;

	membership->watched = false;
	membership->look_ns = fleet->now_ns + fleet_random(fleet) % (within_ns + 1);
	fleet_wake_at(fleet, membership->look_ns);
}

void membership_forget(struct fleet *fleet)
{
	fleet->membership->watched = false;
	fleet->membership->asked = false;
	fleet->membership->former = true;
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
