/* agreed_rate - the rate that a fleet has learnt of a limiter's service, see agreed_rate.h. */
#include "core/fleet/agreed_rate.h"
#include "core/fleet/holdings.h"
#include "core/fleet/membership.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/znode.h"
#include "core/limiter/learning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void node_path(const struct holding *holding, char path[ZNODE_TEXT])
{
	znode_path(ZNODE_AGREED_RATE, holding->id, path);
}

/*
 * Returns what @holding's limiter learns and shares; NULL: nothing. Of a limiter without limits no
 * host knows which part of it is its own: it learns the rate of its own work alone.
 */
static struct learning *learning_of(const struct holding *holding)
{
	const struct adapt *adapt = &holding->settings->adapt;

	return !holding->limiter->removed && adapt->kind != ADAPT_NONE &&
			       adapt->scope == ADAPT_FLEET && holding->settings->limit_count
		       ? holding->limiter->learning
		       : NULL;
}

/* Returns the holding whose node is at @path; NULL: its limiter is gone. */
static struct holding *holding_at(const struct fleet *fleet, const char *path)
{
	struct znode znode;

	(void)znode_parse(path, &znode);
	return holdings_find(fleet, znode.id);
}

/* Ends the request for @holding; returns what it was about, if that still counts. */
static struct learning *finish(const struct holding *holding)
{
	if (!holding || !holding->limiter->learning)
		return NULL;
	holding->limiter->learning->asking = false;
	return learning_of(holding);
}

static void node_read(struct fleet *fleet, struct request *request)
{
	struct holding *holding = holding_at(fleet, request->path);
	struct learning *learning = finish(holding);
	struct adapt_state found;

	if (holding && request->answer != ANSWER_OK)
		room_unwatch_agreed_rate(fleet, holding);
	if (learning)
		learning->retry_ns = request->answer == ANSWER_OK
					     ? 0
					     : fleet->now_ns + FLEET_AGREED_RATE_SPACING_NS;
	if (learning && request->answer == ANSWER_NO_NODE)
		/* It was deleted by hand, or the layout was turned over. */
		(void)request_send_one(fleet, OPERATION_CREATE, request->path, NULL, 0, NULL);
	if (!learning || request->answer != ANSWER_OK)
		return;
	found = learning->adapted;
	learning->known = true;
	learning->version = request->version;
	learning->session = fleet->counters.sessions;
	learning->told_ns = fleet->now_ns;
	learning->proposes = false;
	if (record_parse_agreed_rate(request->data, holding->settings->adapt.kind, &found))
		return;
	learning->told_rate = found.rate;
	if (!learning->lowered || found.rate < learning->adapted.rate)
		limiter_adopt(&fleet->engine->schedule, holding->limiter, &found);
}

static void read_node(struct fleet *fleet, struct holding *holding)
{
	char path[ZNODE_TEXT];
	struct request *request;

	node_path(holding, path);
	request = request_new(REQUEST_GET, path, node_read);
	if (!request)
		return;
	request->watch = room_watch_agreed_rate(fleet, holding);
	holding->limiter->learning->asking = true;
	request_send(fleet, request);
}

static void node_written(struct fleet *fleet, struct request *request)
{
	struct holding *holding = holding_at(fleet, request->operations[0].path);
	struct learning *learning = finish(holding);

	if (!learning)
		return;
	if (request->answer != ANSWER_OK) {
		learning->known = false;
		return;
	}
	learning->version++;
	learning->told_ns = fleet->now_ns;
	learning->told_rate = learning->sent_rate;
	/* Throttled once more meanwhile: that is still to be told. */
	if (learning->lowered)
		learning->lowered = learning->adapted.rate < learning->sent_rate;
	else if (learning->proposes)
		limiter_adopt(&fleet->engine->schedule, holding->limiter, &learning->proposal);
	learning->proposes = false;
}

static void write_node(struct fleet *fleet, struct holding *holding, struct learning *learning,
		       const struct adapt_state *state)
{
	char path[ZNODE_TEXT], text[AGREED_RATE_TEXT];

	node_path(holding, path);
	record_print_agreed_rate(state, holding->settings->adapt.kind, text);
	learning->asking = request_send_one(fleet, OPERATION_SET, path, text, learning->version,
					    node_written);
	if (learning->asking)
		learning->sent_rate = state->rate;
}

void agreed_rate_tick(struct fleet *fleet, struct holding *holding)
{
	struct learning *learning = learning_of(holding);
	bool ready = session_state(fleet) == FLEET_READY && holding->id &&
		     holding_needs_leases(holding);
	bool told;

	if (!learning) {
		if (holding->limiter->learning)
			holding->limiter->learning->shared = false;
		return;
	}
	learning->shared = ready && !membership_is_alone(fleet);
	if (!ready || learning->asking)
		return;
	if (!learning->known || learning->session != fleet->counters.sessions ||
	    (!room_watches_agreed_rate(holding) &&
	     fleet->now_ns - learning->told_ns >= FLEET_AGREED_RATE_UNWATCHED_NS)) {
		if (fleet->now_ns >= learning->retry_ns)
			read_node(fleet, holding);
		return;
	}
	if (fleet->now_ns - learning->told_ns < FLEET_AGREED_RATE_SPACING_NS)
		return;
	told = learning->told_rate == learning->adapted.rate ||
	       (isinf(learning->told_rate) && isinf(learning->adapted.rate));
	if (learning->lowered || (!learning->shared && !told))
		write_node(fleet, holding, learning, &learning->adapted);
	else if (learning->shared && learning->proposes)
		write_node(fleet, holding, learning, &learning->proposal);
}

void agreed_rate_changed(struct fleet *fleet, uint64_t id)
{
	struct holding *holding = holdings_find(fleet, id);
	struct learning *learning = holding ? holding->limiter->learning : NULL;

	if (holding)
		room_unwatch_agreed_rate(fleet, holding);
	if (!learning)
		return;
	learning->known = false;
	if (learning_of(holding) && holdings_is_active(holding) && !learning->asking &&
	    session_state(fleet) == FLEET_READY)
		read_node(fleet, holding);
}

void agreed_rate_void(struct fleet *fleet, const struct holding *holding)
{
	char path[ZNODE_TEXT];

	node_path(holding, path);
	(void)request_send_one(fleet, OPERATION_SET, path, NULL, NODE_VERSION_ANY, NULL);
}

void agreed_rate_forget(struct holding *holding)
{
	struct learning *learning = holding->limiter->learning;

	if (!learning)
		return;
	learning->asking = false;
	learning->known = false;
	learning->retry_ns = 0;
}
