/* session - the session and its connection, from opening to leaving: rules 1, 13 and 15 of fleet.h. */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Rule 1: whatever comes next, nothing of this session is used. */
void fleet_drop_session(struct fleet *fleet, const char *why)
{
	if (fleet->leases || *fleet->hid)
		fleet_event(fleet, "session dropped: %s", why);
	fleet_keep_nothing(fleet);
	fleet->right = false;
	fleet->right_end_ns = 0;
	fleet->resuming = false;
	fleet->resumed = false;
	for (struct request *r = fleet->outstanding; r; r = r->next)
		r->done = NULL;
	transaction_end(fleet);
	for (struct holding *h = fleet->holdings, *next; h; h = next) {
		next = h->next;
		holding_keep(h);
		if (h->usable || h->reserve_usable)
			fleet_empty(fleet, h);
		for (uint32_t i = 0; i < h->slots; i++) {
			if (h->leases[i].state != LEASE_NONE)
				fleet_lease_becomes(fleet, h, &h->leases[i], LEASE_NONE);
		}
		if (h->reserve.state != LEASE_NONE)
			fleet_lease_becomes(fleet, h, &h->reserve, LEASE_NONE);
		if (h->usable || h->reserve_usable)
			fleet_reshare(fleet, h);
		search_free(h->search);
		h->search = NULL;
		learnt_forget(h);
		free(h->claim);
		h->claim = NULL;
		h->claimed = 0;
		h->given_up = 0;
		h->looking = false;
		h->claim_unknown = false;
		h->claim_kept = 0;
		h->target = UINT32_MAX;
		h->next_search_ns = 0;
		next = h->next;
		holding_let_go(h);
	}
	follow_forget(fleet);
	sweep_forget(fleet);
	survey_forget(fleet);
	fleet->hosts_watched = false;
	fleet->hosts_asked = false;
	fleet->hid[0] = '\0';
	fleet->session = 0;
	fleet->hung_up = false;
	fleet->retry_ns = NEVER_NS;
	fleet->down_since_ns = fleet->now_ns;
	if (fleet->trouble_ns == NEVER_NS)
		fleet->trouble_ns = fleet->clocks.holder_ns;
	fleet->connected = false;
	fleet->state = fleet->leaving ? FLEET_CLOSED : FLEET_CONNECTING;
	/* With the session went the way to find out what became of a change. */
	while (fleet->change && (fleet->change_sent || fleet->leaving))
		publish_finish(fleet, fleet->change_sent ? -ETIMEDOUT : -EAGAIN);
	fleet->coordinator->close(fleet->coordinator);
	if (fleet->leaving) {
		demand_forget(fleet);
		fleet->left = true;
		return;
	}
	fleet->opened_ns = fleet->constants.session_ns;
	fleet->coordinator->open(fleet->coordinator, fleet->opened_ns);
	fleet_wake_at(fleet, 0);
}

void fleet_connected(struct fleet *fleet, uint64_t session, uint64_t now_ns)
{
	bool resumed = session == fleet->session && fleet->state != FLEET_CONNECTING;

	fleet->now_ns = now_ns;
	if (fleet->state == FLEET_CLOSED)
		return;
	if (!resumed && *fleet->hid) {
		fleet_drop_session(fleet, "it is another one");
		return;
	}
	fleet->connected = true;
	fleet->hung_up = false;
	fleet->down_since_ns = NEVER_NS;
	fleet->session = session;
	fleet_wake_at(fleet, 0);
	if (!resumed)
		fleet->counters.sessions++;
	if (!resumed || fleet->state == FLEET_PREPARING || fleet->state == FLEET_LOADING ||
	    fleet->state == FLEET_REFUSED) {
		layout_look(fleet);
	} else if (fleet->state == FLEET_READY) {
		/* What changed meanwhile, and the watches. */
		fleet_watch_leases(fleet);
		follow_begin(fleet);
	} else if (fleet->state == FLEET_IN_DOUBT) {
		doubt_begin(fleet);
	}
}

void fleet_disconnected(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	if (!fleet->connected)
		return;
	fleet->connected = false;
	fleet->hung_up = false;
	fleet->down_since_ns = now_ns;
	if (fleet->trouble_ns == NEVER_NS)
		fleet->trouble_ns = fleet->clocks.holder_ns;
	fleet_wake_at(fleet, 0);
}

void fleet_expired(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	if (fleet->state != FLEET_CLOSED)
		fleet_drop_session(fleet, "it has expired");
}

void fleet_changed(struct fleet *fleet, const char *path, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	if (!strcmp(path, "/g") && fleet->state == FLEET_READY) {
		follow_begin(fleet);
	} else if (!strncmp(path, "/l/", 3)) {
		fleet_lease_changed(fleet, path);
	} else if (!strncmp(path, "/w/", 3) && fleet->state == FLEET_READY) {
		claim_woken(fleet, path);
	} else if (!strncmp(path, "/f/", 3)) {
		learnt_changed(fleet, path);
	} else if (!strcmp(path, "/h")) {
		fleet->hosts_watched = false;
		fleet->hosts_ns = 0;
		fleet_wake_at(fleet, 0);
	}
}

void fleet_watch_connection(struct fleet *fleet)
{
	uint64_t now_ns = fleet->now_ns, waited_ns;

	if (!fleet->connected) {
		if (now_ns - fleet->down_since_ns >= FLEET_HANDLE_NS)
			fleet_drop_session(fleet, "no connection for a minute");
		fleet_wake_at(fleet, fleet->down_since_ns + FLEET_HANDLE_NS);
		return;
	}
	if (!fleet->outstanding || fleet->hung_up)
		return;
	waited_ns = fleet->clocks.holder_ns - fleet->outstanding->sent_ns;
	if (waited_ns < FLEET_ANSWER_NS) {
		fleet_wake_at(fleet, now_ns + FLEET_ANSWER_NS - waited_ns);
		return;
	}
	fleet->hung_up = true;
	if (fleet->trouble_ns == NEVER_NS)
		fleet->trouble_ns = fleet->outstanding->sent_ns;
	fleet_event(fleet, "no answer for 700 ms: the connection is given up");
	fleet->coordinator->hang_up(fleet->coordinator);
}

void fleet_watch_leaving(struct fleet *fleet)
{
	if (!fleet->leaving || fleet->left)
		return;
	if (fleet->now_ns >= fleet->leave_until_ns || fleet->state != FLEET_READY ||
	    (!fleet->leases && !fleet->outstanding))
		fleet_drop_session(fleet, "leaving");
	else
		fleet_wake_at(fleet, fleet->leave_until_ns);
}
