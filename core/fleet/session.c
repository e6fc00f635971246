/* session - the session and its connection, from opening to leaving: rules 1, 13 and 15 of fleet.h. */
#include "core/fleet/inside.h"
#include "core/fleet/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	SLOW_TIMES = 2,	 /* an answer may take so many times what the last ones took */
	SLOW_PARTS = 8,	 /* a quick answer takes off so much of the difference */
	VAIN_MAX = 8,	 /* give-ups that are counted, here and below ... */
	VAIN_SHIFT = 2,	 /* ... each makes the time four times as long */
	PAUSES_FROM = 2, /* so many sessions come to nothing before there is a pause */
};

#define NSEC_PER_MSEC UINT64_C(1000000)

/* Opens the next session, after a pause if the last ones came to nothing. */
static void open_next(struct fleet *fleet)
{
	uint32_t vain = fleet->fruitless < VAIN_MAX ? fleet->fruitless : VAIN_MAX;
	uint64_t pause_ns = vain < PAUSES_FROM ? 0 : FLEET_PAUSE_NS << (vain - PAUSES_FROM);

	if (pause_ns > FLEET_PAUSE_MAX_NS)
		pause_ns = FLEET_PAUSE_MAX_NS;
	fleet->fruitless++;
	fleet->open_ns = fleet->now_ns;
	if (pause_ns)
		fleet->open_ns += fleet_jitter(fleet, pause_ns);
	fleet->vain_since_ns = fleet->open_ns;
}

static void open_session(struct fleet *fleet)
{
	fleet->open_ns = NEVER_NS;
	fleet->opened_ns = fleet->constants.session_ns;
	fleet->coordinator->open(fleet->coordinator, fleet->opened_ns);
}

/* Rule 1: whatever comes next, nothing of this session is used. */
void fleet_drop_session(struct fleet *fleet, const char *why)
{
	if (fleet->leases || *fleet->hid)
		fleet_tell(fleet, FLEET_DROPPED, "session dropped: %s", why);
	fleet_keep_nothing(fleet);
	fleet->right = false;
	fleet->right_end_ns = 0;
	fleet->resuming = false;
	fleet->resumed = false;
	requests_forget(fleet);
	transaction_end(fleet);
	fleet_empty_usable(fleet);
	for (struct holding *h = fleet->holdings, *next; h; h = next) {
		next = h->next;
		holding_keep(h);
		for (uint32_t i = 0; i < h->lease_room; i++) {
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
		room_count_claim(fleet, h, false);
		room_unwatch_learnt(fleet, h);
		h->claim_kept = 0;
		h->target = UINT32_MAX;
		h->next_search_ns = 0;
		next = h->next;
		holding_let_go(h);
	}
	fleet->own_bytes = 0;
	follow_forget(fleet);
	sweep_forget(fleet);
	survey_forget(fleet);
	fleet->hosts_watched = false;
	fleet->hosts_asked = false;
	fleet->hid[0] = '\0';
	fleet->session = 0;
	fleet->hung_up = false;
	fleet->retry_ns = NEVER_NS;
	if (fleet->trouble_ns == NEVER_NS)
		fleet->trouble_ns = fleet->clocks.holder_ns;
	fleet->connected = false;
	fleet->state = fleet->leaving ? FLEET_CLOSED : FLEET_CONNECTING;
	/* With the session went the way to find out what became of a change. */
	while (fleet->change && (fleet->change_sent || fleet->leaving))
		publish_finish(fleet, fleet->change_sent ? -ETIMEDOUT : -EHOSTUNREACH);
	fleet->coordinator->close(fleet->coordinator);
	if (fleet->leaving) {
		demand_forget(fleet);
		fleet->left = true;
		return;
	}
	open_next(fleet);
	if (fleet->open_ns <= fleet->now_ns)
		open_session(fleet);
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

/* From now on nothing is acknowledged, if it was until now. */
static void note_trouble(struct fleet *fleet, uint64_t now_ns)
{
	if (fleet->vain_since_ns == NEVER_NS)
		fleet->vain_since_ns = now_ns;
}

void fleet_disconnected(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	if (!fleet->connected)
		return;
	fleet->connected = false;
	fleet->hung_up = false;
	note_trouble(fleet, now_ns);
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
	struct znode znode;

	fleet->now_ns = now_ns;
	if (!znode_parse(path, &znode))
		return;
	if (znode.kind == ZNODE_GLOBALS && fleet->state == FLEET_READY) {
		follow_begin(fleet);
	} else if (znode.kind == ZNODE_LEASE) {
		fleet_lease_changed(fleet, &znode);
	} else if (znode.kind == ZNODE_CLAIM && fleet->state == FLEET_READY) {
		claim_woken(fleet, &znode);
	} else if (znode.kind == ZNODE_FREE) {
		learnt_changed(fleet, znode.id);
	} else if (znode.kind == ZNODE_HOSTS) {
		fleet->hosts_watched = false;
		fleet->hosts_ns = 0;
		fleet_wake_at(fleet, 0);
	}
}

/*
 * Returns the longest time that an answer is waited for: then it is too late to renew the right a
 * second time.
 */
static uint64_t longest_answer_ns(const struct fleet *fleet)
{
	const struct fleet_constants *constants = &fleet->constants;
	uint64_t between_ns = constants->renewal_ns / 4 * 5, most_ns = constants->session_ns / 2;

	if (constants->right_ns <= between_ns)
		return FLEET_ANSWER_NS;
	if (most_ns > FLEET_ANSWER_MAX_NS)
		most_ns = FLEET_ANSWER_MAX_NS;
	if (most_ns > (constants->right_ns - between_ns) / 2)
		most_ns = (constants->right_ns - between_ns) / 2;
	return most_ns > FLEET_ANSWER_NS ? most_ns : FLEET_ANSWER_NS;
}

static uint64_t answer_within_ns(const struct fleet *fleet, const struct pace *pace)
{
	uint64_t ns = SLOW_TIMES * pace->slow_ns, most_ns = longest_answer_ns(fleet);

	if (ns < FLEET_ANSWER_NS)
		ns = FLEET_ANSWER_NS;
	ns <<= VAIN_SHIFT * pace->vain;
	return ns < most_ns ? ns : most_ns;
}

static struct pace *pace_of(struct fleet *fleet, const struct request *request)
{
	return request->kind == REQUEST_TRANSACTION ? &fleet->writes : &fleet->reads;
}

/* Returns how long @request is waited for. A read may have been behind a write. */
static uint64_t patience_ns(struct fleet *fleet, const struct request *request)
{
	uint64_t reads_ns = answer_within_ns(fleet, &fleet->reads);
	uint64_t writes_ns = answer_within_ns(fleet, &fleet->writes);

	if (request->kind == REQUEST_TRANSACTION || writes_ns > reads_ns)
		return writes_ns;
	return reads_ns;
}

void fleet_note_answer(struct fleet *fleet, const struct request *request)
{
	struct pace *pace = pace_of(fleet, request);
	uint64_t took_ns = fleet->clocks.holder_ns - request->sent_ns;
	bool is_write = request->kind == REQUEST_TRANSACTION;

	if (request->answer == ANSWER_UNKNOWN)
		return;
	pace->vain = 0;
	if (took_ns > pace->slow_ns)
		pace->slow_ns = took_ns;
	else
		pace->slow_ns -= (pace->slow_ns - took_ns) / SLOW_PARTS;
	/*
	 * Only an answer to a write shows that there is a quorum; before it joins a host may have
	 * none.
	 */
	if (is_write || fleet->state < FLEET_JOINING || fleet->state == FLEET_REFUSED)
		fleet->vain_since_ns = NEVER_NS;
	if (is_write && request->answer == ANSWER_OK && *fleet->hid)
		fleet->fruitless = 0;
}

/*
 * Gives up a session that has come to nothing for a minute, and opens the next one when it is time.
 */
static void watch_session(struct fleet *fleet)
{
	if (fleet->open_ns != NEVER_NS) {
		if (fleet->open_ns <= fleet->now_ns)
			open_session(fleet);
		else
			fleet_wake_at(fleet, fleet->open_ns);
	}
	if (fleet->vain_since_ns == NEVER_NS)
		return;
	if (fleet->now_ns >= fleet->vain_since_ns + FLEET_HANDLE_NS)
		fleet_drop_session(fleet, fleet->connected ? "nothing acknowledged for a minute"
							   : "no connection for a minute");
	fleet_wake_at(fleet, fleet->vain_since_ns + FLEET_HANDLE_NS);
}

static void give_up(struct pace *pace)
{
	if (pace->vain < VAIN_MAX)
		pace->vain++;
}

void fleet_watch_connection(struct fleet *fleet)
{
	uint64_t now_ns = fleet->now_ns, waited_ns, within_ns;
	const struct request *oldest;

	watch_session(fleet);
	oldest = request_oldest(fleet);
	if (!fleet->connected || !oldest || fleet->hung_up)
		return;
	waited_ns = fleet->clocks.holder_ns - oldest->sent_ns;
	within_ns = patience_ns(fleet, oldest);
	if (waited_ns < within_ns) {
		fleet_wake_at(fleet, now_ns + within_ns - waited_ns);
		return;
	}
	fleet->hung_up = true;
	note_trouble(fleet, now_ns);
	if (fleet->trouble_ns == NEVER_NS)
		fleet->trouble_ns = oldest->sent_ns;
	give_up(&fleet->reads);
	give_up(&fleet->writes);
	fleet_tell(fleet, FLEET_HUNG_UP, "no answer for %u ms: the connection is given up",
		   (unsigned int)(within_ns / NSEC_PER_MSEC));
	fleet->coordinator->hang_up(fleet->coordinator);
}

void fleet_watch_leaving(struct fleet *fleet)
{
	if (!fleet->leaving || fleet->left)
		return;
	if (fleet->now_ns >= fleet->leave_until_ns || fleet->state != FLEET_READY ||
	    (!fleet->leases && !request_oldest(fleet)))
		fleet_drop_session(fleet, "leaving");
	else
		fleet_wake_at(fleet, fleet->leave_until_ns);
}
