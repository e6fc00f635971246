/* neighbour - hosts that died are ended by the host before them, see neighbour.h. */
#include "core/fleet/neighbour.h"
#include "core/fleet/garbage.h"
#include "core/fleet/membership.h"
#include "core/fleet/request.h"
#include "core/fleet/ring.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The operations of an end, behind the head. */
enum { OPERATION_DELETE_HOST = HEAD_LENGTH };

/* /d/HID+E */
struct end {
	char hid[HID_TEXT];
	uint32_t epoch;
	struct host_caps *caps; /* owned; NULL: it was not read */
};

/* The content of a version of the node of a host that is counted. */
struct heard {
	char hid[HID_TEXT];
	char name[sizeof((struct host_record){0}.name)];
	int32_t version;
	struct host_caps caps;
};

struct neighbour {
	struct ring ring;
	uint32_t looks;	     /* of membership, that the ring is as of */
	struct end ending;   /* of the transaction under way */
	struct heard *heard; /* owned */
	uint32_t heard_count;
	struct end *ends; /* owned */
	uint32_t end_count;
	bool ends_asked, ends_watched;
	uint32_t ends_epoch; /* of this host's last transaction when they were listed */
	uint64_t ends_ns;    /* when they are to be listed; NEVER_NS */
	bool sought;	     /* since the ends were listed last */
	bool ended;	     /* not told yet */
};

bool neighbour_new(struct fleet *fleet)
{
	fleet->neighbour = calloc(1, sizeof(*fleet->neighbour));
	if (!fleet->neighbour)
		return false;
	fleet->neighbour->ends_ns = NEVER_NS;
	return true;
}

static void free_ends(struct end *ends, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		free(ends[i].caps);
	free(ends);
}

void neighbour_free(struct fleet *fleet)
{
	if (!fleet->neighbour)
		return;
	ring_free(&fleet->neighbour->ring);
	free(fleet->neighbour->heard);
	free_ends(fleet->neighbour->ends, fleet->neighbour->end_count);
	free(fleet->neighbour);
}

void neighbour_forget(struct fleet *fleet)
{
	struct neighbour *neighbour = fleet->neighbour;

	ring_free(&neighbour->ring);
	neighbour->heard_count = 0;
	neighbour->looks = 0;
	neighbour->ends_asked = false;
	neighbour->ends_watched = false;
	neighbour->ends_ns = NEVER_NS;
	neighbour->sought = false;
}

static struct ring_facts facts_of(const struct fleet *fleet)
{
	return (struct ring_facts){
		.now_ns = fleet->clocks.waiter_ns,
		.renewal_ns = fleet->constants.renewal_ns,
		.quarantine_ns = fleet->constants.quarantine_ns,
		.epoch = fleet->epochs.newest,
		.lapses = term_lapses(fleet),
	};
}

/* Tells whether this host counts others now. */
static bool counts(const struct fleet *fleet)
{
	return session_state(fleet) == FLEET_READY && session_is_connected(fleet) &&
	       !session_is_leaving(fleet) && transaction_says_used(fleet) && term_runs(fleet);
}

/* Forgets what was heard of hosts that are not among the @hids. */
static void forget_departed(struct neighbour *neighbour, char (*hids)[HID_TEXT], uint32_t count)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < neighbour->heard_count; i++) {
		uint32_t at = 0;

		while (at < count && strcmp(hids[at], neighbour->heard[i].hid) != 0)
			at++;
		if (at < count)
			neighbour->heard[kept++] = neighbour->heard[i];
	}
	neighbour->heard_count = kept;
}

/* Takes the hosts of the last look. */
static void follow_membership(struct fleet *fleet)
{
	struct neighbour *neighbour = fleet->neighbour;
	uint32_t count;
	char(*hids)[HID_TEXT] = membership_hids(fleet, &count);

	if (neighbour->looks == membership_looks(fleet) ||
	    !ring_set(&neighbour->ring, hids, count, session_hid(fleet)))
		return;
	neighbour->looks = membership_looks(fleet);
	forget_departed(neighbour, hids, count);
}

/* Returns what was heard of host @hid; NULL: nothing. */
static struct heard *find_heard(const struct neighbour *neighbour, const char *hid)
{
	for (uint32_t i = 0; i < neighbour->heard_count; i++) {
		if (!strcmp(neighbour->heard[i].hid, hid))
			return &neighbour->heard[i];
	}
	return NULL;
}

static void forget_heard(struct neighbour *neighbour, const char *hid)
{
	struct heard *heard = find_heard(neighbour, hid);

	if (heard)
		*heard = neighbour->heard[--neighbour->heard_count];
}

/*
 * Notes what the node of host @hid, which is called @name, says as @request has read it. Without
 * memory nothing was heard.
 */
static void hear(struct neighbour *neighbour, const char *hid, const char *name,
		 const struct request *request)
{
	struct heard heard = {.version = request->version};
	struct heard *more;

	forget_heard(neighbour, hid);
	more = realloc(neighbour->heard, (neighbour->heard_count + 1) * sizeof(heard));
	if (!more)
		return;
	record_parse_caps(request->data, &heard.caps);
	memcpy(heard.hid, hid, HID_TEXT);
	snprintf(heard.name, sizeof(heard.name), "%s", name);
	more[neighbour->heard_count++] = heard;
	neighbour->heard = more;
}

/* Host @hid, which was seen in this session, is there no more. */
static void remove_host(struct fleet *fleet, const char *hid)
{
	forget_heard(fleet->neighbour, hid);
	epoch_note_gone(&fleet->epochs, hid, fleet->clocks.waiter_ns);
	ring_remove(&fleet->neighbour->ring, hid);
	membership_look_soon(fleet);
}

static void host_read(struct fleet *fleet, struct request *request)
{
	struct neighbour *neighbour = fleet->neighbour;
	struct host_record record;
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	if (request->answer == ANSWER_NO_NODE) {
		remove_host(fleet, znode.name);
	} else if (request->answer == ANSWER_OK || request->answer == ANSWER_REFUSED) {
		/* A foreign hand wrote a record that is not understood: its host is not counted. */
		bool renews = request->answer == ANSWER_OK &&
			      !record_parse_host(request->data, &record) && record.renews;

		ring_heard(&neighbour->ring, znode.name, request->version, renews, request->watch,
			   fleet->clocks.waiter_ns);
		if (renews)
			hear(neighbour, znode.name, record.name, request);
		else
			forget_heard(neighbour, znode.name);
	} else {
		ring_unheard(&neighbour->ring, znode.name);
	}
	fleet_wake_at(fleet, 0);
}

static bool read_host(struct fleet *fleet, const struct ring_read *read)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path_named(ZNODE_HOST, 0, read->hid, path);
	request = request_new(REQUEST_GET, path, host_read);
	if (!request) {
		ring_unheard(&fleet->neighbour->ring, read->hid);
		return false;
	}
	request->watch = read->watch;
	request_send(fleet, request);
	return true;
}

bool neighbour_send(struct fleet *fleet)
{
	struct neighbour *neighbour = fleet->neighbour;
	struct ring_facts facts = facts_of(fleet);
	const struct ring_host *host = counts(fleet) ? ring_overdue(&neighbour->ring, &facts)
						     : NULL;
	char host_path[ZNODE_TEXT], end_path[ZNODE_TEXT], name[ZNODE_TEXT];
	char caps[HOST_CAPS_TEXT] = "";
	const struct heard *heard;
	struct request *request;

	if (!host)
		return false;
	request = transaction_begin(fleet, TRANSACTION_END);
	if (!request)
		return false;
	memcpy(neighbour->ending.hid, host->hid, HID_TEXT);
	neighbour->ending.epoch = host->epoch;
	znode_path_named(ZNODE_HOST, 0, host->hid, host_path);
	znode_end_print(host->hid, host->epoch, name);
	znode_path_named(ZNODE_END, 0, name, end_path);
	heard = find_heard(neighbour, host->hid);
	if (heard && heard->version == host->version)
		record_print_caps(&heard->caps, caps);
	if (!request_add(request, OPERATION_DELETE, host_path, NULL, host->version, 0) ||
	    !request_add(request, OPERATION_CREATE, end_path, caps, 0, 0)) {
		transaction_give_up(fleet, request);
		return false;
	}
	transaction_send(fleet, request);
	return true;
}

/* Adds @end to those that are known. Without memory it is known once they are listed. */
static void add_end(struct neighbour *neighbour, const struct end *end)
{
	size_t size = (neighbour->end_count + 1) * sizeof(*end);
	struct end *ends = realloc(neighbour->ends, size);

	if (!ends)
		return;
	ends[neighbour->end_count++] = *end;
	neighbour->ends = ends;
	neighbour->ended = true;
}

void neighbour_answered(struct fleet *fleet, const struct request *request)
{
	struct neighbour *neighbour = fleet->neighbour;
	const char *hid = neighbour->ending.hid;
	const struct heard *heard = find_heard(neighbour, hid);
	bool gone = request->answer == ANSWER_NO_NODE && request->failed == OPERATION_DELETE_HOST;

	if (request->answer == ANSWER_OK) {
		fleet->counters.ended++;
		fleet_tell(fleet, FLEET_ENDED, "host %s (%s) is silent: its right was ended",
			   heard ? heard->name : "?", hid);
		garbage_add_end(fleet, neighbour->ending.hid, neighbour->ending.epoch);
		add_end(neighbour, &neighbour->ending);
	}
	if (request->answer != ANSWER_OK && !gone) {
		ring_doubt(&neighbour->ring, neighbour->ending.hid);
		return;
	}
	remove_host(fleet, neighbour->ending.hid);
}

void neighbour_doubt(struct fleet *fleet)
{
	ring_doubt(&fleet->neighbour->ring, fleet->neighbour->ending.hid);
}

/* Takes the ends that are listed in place of those that were known. */
static void take_ends(struct neighbour *neighbour, const struct request *request)
{
	struct end *ends = calloc(request->name_count + 1, sizeof(*ends)), *before;
	uint32_t count = 0, before_count = neighbour->end_count;

	if (!ends)
		return;
	for (uint32_t i = 0; i < request->name_count; i++)
		count += znode_end_parse(request->names[i], ends[count].hid, &ends[count].epoch);
	before = neighbour->ends;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = 0;

		while (at < before_count && (strcmp(before[at].hid, ends[i].hid) != 0 ||
					     before[at].epoch != ends[i].epoch))
			at++;
		if (at == before_count) {
			neighbour->ended = true;
		} else {
			ends[i].caps = before[at].caps;
			before[at].caps = NULL;
		}
	}
	free_ends(before, before_count);
	neighbour->ends = ends;
	neighbour->end_count = count;
}

void neighbour_note_ends(struct fleet *fleet, const struct request *request)
{
	if (request->answer != ANSWER_OK)
		return;
	fleet->neighbour->ends_watched = true;
	fleet->neighbour->ends_epoch = fleet->epochs.newest;
	take_ends(fleet->neighbour, request);
	for (uint32_t i = 0; i < fleet->neighbour->end_count; i++)
		garbage_add_end(fleet, fleet->neighbour->ends[i].hid,
				fleet->neighbour->ends[i].epoch);
	fleet_wake_at(fleet, 0);
}

static void ends_listed(struct fleet *fleet, struct request *request)
{
	fleet->neighbour->ends_asked = false;
	neighbour_note_ends(fleet, request);
}

bool neighbour_knows_ends(const struct fleet *fleet)
{
	const struct neighbour *neighbour = fleet->neighbour;

	/* An election may take ends back without a word of it. */
	return neighbour->ends_watched && neighbour->ends_epoch == fleet->epochs.newest;
}

static void list_ends(struct fleet *fleet)
{
	struct neighbour *neighbour = fleet->neighbour;
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path(ZNODE_ENDS_OF, 0, path);
	request = request_new(REQUEST_LIST, path, ends_listed);
	if (!request)
		return;
	request->watch = true;
	neighbour->ends_asked = true;
	neighbour->ends_ns = NEVER_NS;
	neighbour->sought = false;
	request_send(fleet, request);
}

static void watch_others(struct fleet *fleet)
{
	struct ring_facts facts = facts_of(fleet);
	struct ring_read read;

	follow_membership(fleet);
	while ((read = ring_next(&fleet->neighbour->ring, &facts)).hid) {
		if (!read_host(fleet, &read))
			return;
	}
	if (read.at_ns != NEVER_NS)
		fleet_wake_at(fleet, fleet->now_ns + read.at_ns - facts.now_ns);
}

void neighbour_step(struct fleet *fleet)
{
	const struct neighbour *neighbour = fleet->neighbour;

	if (counts(fleet))
		watch_others(fleet);
	if (neighbour->ends_asked || session_state(fleet) != FLEET_READY)
		return;
	if (neighbour->ends_ns <= fleet->now_ns)
		list_ends(fleet);
	else
		fleet_wake_at(fleet, neighbour->ends_ns);
}

void neighbour_seek(struct fleet *fleet)
{
	struct neighbour *neighbour = fleet->neighbour;

	if (neighbour->ends_asked || session_state(fleet) != FLEET_READY)
		return;
	if (neighbour_knows_ends(fleet) || neighbour->ends_ns != NEVER_NS)
		neighbour->sought = true;
	else
		list_ends(fleet);
}

bool neighbour_has_ended(struct fleet *fleet)
{
	bool ended = fleet->neighbour->ended;

	fleet->neighbour->ended = false;
	return ended;
}

void neighbour_changed(struct fleet *fleet, const struct znode *znode)
{
	struct neighbour *neighbour = fleet->neighbour;

	if (znode->kind == ZNODE_HOST) {
		ring_changed(&neighbour->ring, znode->name);
		fleet_wake_at(fleet, 0);
		return;
	}
	neighbour->ends_watched = false;
	if (neighbour->sought)
		neighbour->ends_ns = fleet->now_ns + fleet_random(fleet) % FLEET_ENDS_SPREAD_NS;
	fleet_wake_at(fleet, neighbour->ends_ns);
}

uint32_t neighbour_end_epoch(const struct fleet *fleet, const char *hid)
{
	const struct neighbour *neighbour = fleet->neighbour;
	uint32_t epoch = EPOCH_NONE;

	for (uint32_t i = 0; i < neighbour->end_count; i++) {
		const struct end *end = &neighbour->ends[i];

		if (!strcmp(end->hid, hid) && end->epoch > epoch)
			epoch = end->epoch;
	}
	return epoch;
}

static struct end *find_end(const struct fleet *fleet, const char *hid, uint32_t epoch)
{
	const struct neighbour *neighbour = fleet->neighbour;

	for (uint32_t i = 0; i < neighbour->end_count; i++) {
		if (!strcmp(neighbour->ends[i].hid, hid) && neighbour->ends[i].epoch == epoch)
			return &neighbour->ends[i];
	}
	return NULL;
}

const struct host_caps *neighbour_caps(const struct fleet *fleet, const char *hid, uint32_t epoch)
{
	const struct end *end = find_end(fleet, hid, epoch);

	return end ? end->caps : NULL;
}

struct request *neighbour_ask_end(const char *hid, uint32_t epoch,
				  void (*done)(struct fleet *fleet, struct request *request))
{
	char path[ZNODE_TEXT], name[ZNODE_TEXT];

	znode_end_print(hid, epoch, name);
	znode_path_named(ZNODE_END, 0, name, path);
	return request_new(REQUEST_GET, path, done);
}

void neighbour_note_end(struct fleet *fleet, const struct request *request)
{
	char hid[HID_TEXT];
	struct znode znode;
	struct end *end;
	uint32_t epoch;

	if (!znode_parse(request->path, &znode) || !znode_end_parse(znode.name, hid, &epoch))
		return;
	end = find_end(fleet, hid, epoch);
	if (!end || end->caps)
		return;
	end->caps = calloc(1, sizeof(*end->caps));
	if (end->caps && request->answer == ANSWER_OK)
		record_parse_caps(request->data, end->caps);
}

bool neighbour_is_gone(const struct fleet *fleet, const char *hid)
{
	return epoch_is_gone(&fleet->epochs, hid) || neighbour_end_epoch(fleet, hid);
}
