/* fleet - the session, the right, and time; see fleet.h for the protocol. */
#include "inside.h"
#include "partition.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So long leaving waits for answers. */
static const uint64_t LEAVE_NS = 2 * NSEC_PER_SEC;

void fleet_event(struct fleet *fleet, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (fleet->listener && fleet->listener->event)
		fleet->listener->event(fleet->listener, text);
}

/* xorshift64*: for choices, which need to differ between hosts but not to be secret. */
uint64_t fleet_random(struct fleet *fleet)
{
	uint64_t x = fleet->random_state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	fleet->random_state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t fleet_jitter(struct fleet *fleet, uint64_t ns)
{
	return ns - ns / 4 + fleet_random(fleet) % (ns / 2 + 1);
}

void fleet_wake_at(struct fleet *fleet, uint64_t at_ns)
{
	if (at_ns < fleet->next_ns)
		fleet->next_ns = at_ns;
}

/* What a holding is about must not go away while something is under way for it. */
void holding_keep(struct holding *holding)
{
	limiter_hold(holding->limiter);
}

void holding_let_go(struct holding *holding)
{
	limiter_drop(holding->limiter);
}

void fleet_lease_becomes(struct fleet *fleet, struct holding *holding, struct lease *lease,
			 enum lease_state to)
{
	enum lease_state from = (enum lease_state)lease->state;
	bool reserve = lease == &holding->reserve;
	uint32_t index = reserve ? PARTITIONS_MAX + holding->reserve_index
				 : (uint32_t)(lease - holding->leases);

	lease_become(lease, to);
	if (!reserve) {
		holding->held = holding->held + (to == LEASE_HELD) - (from == LEASE_HELD);
		holding->leased = holding->leased + (to != LEASE_NONE) - (from != LEASE_NONE);
		holding->draining = holding->draining + (to == LEASE_DRAINING) -
				    (from == LEASE_DRAINING);
	}
	if (from == LEASE_NONE) {
		fleet->leases++;
		holding_keep(holding);
	}
	if (to == LEASE_HELD || to == LEASE_WAITING) {
		lease->since_ns = fleet->now_ns;
		lease->granted = holding_use(holding);
	}
	if (fleet->listener && fleet->listener->lease)
		fleet->listener->lease(fleet->listener, holding, index, from, to);
	if (to == LEASE_NONE) {
		fleet->leases--;
		holding_let_go(holding);
	}
}

void fleet_reshare(struct fleet *fleet, struct holding *holding)
{
	struct schedule *schedule = &fleet->engine->schedule;
	uint32_t count = holding_count(holding), usable = 0;

	if (holding->limiter->removed)
		return;
	for (uint32_t i = 0; fleet->right && i < holding->slots && i < count; i++)
		usable += holding->leases[i].state == LEASE_HELD;
	holding->usable = usable;
	holding->reserve_usable = fleet->right && holding->reserve.state == LEASE_HELD;
	holding->degraded = fleet->degraded;
	limiter_reshare(schedule, holding->limiter);
	partition_follow(schedule, holding->limiter);
}

/* Rule 3. */
void fleet_extend_right(struct fleet *fleet, uint64_t sent_ns)
{
	uint64_t end_ns = sent_ns + fleet->constants.right_ns;
	bool was = fleet->right, degraded = fleet->degraded;

	if (end_ns > fleet->right_end_ns)
		fleet->right_end_ns = end_ns;
	fleet->trouble_ns = NEVER_NS;
	fleet->degraded = false;
	fleet->right = fleet->clocks.holder_ns < fleet->right_end_ns;
	/* Not sooner than R, or there would be more than one write in it. */
	fleet->next_renewal_ns = fleet->now_ns + fleet->constants.renewal_ns +
				 fleet_random(fleet) % (fleet->constants.renewal_ns / 4 + 1);
	if (degraded)
		fleet_event(fleet, "the coordinator is back");
	if (was == fleet->right && !degraded)
		return;
	/* Who has no leases has nothing but what `degraded` gave. */
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		if (degraded || h->held || h->reserve.state == LEASE_HELD)
			fleet_reshare(fleet, h);
	}
}

static void empty(struct fleet *fleet, struct holding *holding)
{
	if (holding->limiter->removed)
		return;
	limiter_empty(&fleet->engine->schedule, holding->limiter);
	for (uint32_t i = 0; i < holding->limiter->partition_slots; i++) {
		if (holding->limiter->partitions[i])
			limiter_empty(&fleet->engine->schedule, holding->limiter->partitions[i]);
	}
}

/* The right has run out: nothing that is held is used from here on. */
static void lapse(struct fleet *fleet)
{
	fleet->right = false;
	if (!fleet->leases)
		return;
	fleet->counters.lapses++;
	fleet_event(fleet, "right lapsed");
	for (struct holding *h = fleet->holdings; h; h = h->next) {
		if (!h->usable && !h->reserve_usable)
			continue;
		empty(fleet, h);
		fleet_reshare(fleet, h);
	}
}

/* Rule 1: whatever comes next, nothing of this session is used. */
void fleet_drop_session(struct fleet *fleet, const char *why)
{
	if (fleet->leases || *fleet->hid)
		fleet_event(fleet, "session dropped: %s", why);
	fleet->right = false;
	fleet->right_end_ns = 0;
	for (struct request *r = fleet->outstanding; r; r = r->next)
		r->done = NULL;
	transaction_end(fleet);
	for (struct holding *h = fleet->holdings, *next; h; h = next) {
		next = h->next;
		holding_keep(h);
		if (h->usable || h->reserve_usable)
			empty(fleet, h);
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
		free(h->claim);
		h->claim = NULL;
		h->claimed = 0;
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
		choose_woken(fleet, path);
	} else if (!strcmp(path, "/h")) {
		fleet->hosts_watched = false;
		fleet->hosts_ns = 0;
		fleet_wake_at(fleet, 0);
	}
}

/* Rule 13, and the watchdog over a connection that never comes. */
static void watch_connection(struct fleet *fleet)
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

/* Whether it is time to do without the coordinator. */
static void watch_reach(struct fleet *fleet)
{
	uint64_t at_ns = fleet->right_end_ns;

	if (fleet->trouble_ns == NEVER_NS || fleet->degraded)
		return;
	/* Who has leases does without when the right ends, others as long after the last contact. */
	if (!fleet->leases)
		at_ns = fleet->trouble_ns + fleet->constants.right_ns;
	if (fleet->clocks.holder_ns < at_ns) {
		fleet_wake_at(fleet, fleet->now_ns + (at_ns - fleet->clocks.holder_ns));
		return;
	}
	fleet->degraded = true;
	fleet_event(fleet, "degraded: the coordinator is out of reach");
	for (struct holding *h = fleet->holdings; h; h = h->next)
		fleet_reshare(fleet, h);
}

static void watch_leaving(struct fleet *fleet)
{
	if (!fleet->leaving || fleet->left)
		return;
	if (fleet->now_ns >= fleet->leave_until_ns || fleet->state != FLEET_READY ||
	    (!fleet->leases && !fleet->outstanding))
		fleet_drop_session(fleet, "leaving");
	else
		fleet_wake_at(fleet, fleet->leave_until_ns);
}

static void run(struct fleet *fleet)
{
	fleet->next_ns = NEVER_NS;
	watch_connection(fleet);
	watch_reach(fleet);
	watch_leaving(fleet);
	if (fleet->left)
		return;
	if (fleet->right)
		fleet_wake_at(fleet, fleet->now_ns + fleet->right_end_ns - fleet->clocks.holder_ns);
	/* Without a connection the next one begins there anyway. */
	if (fleet->retry_ns <= fleet->now_ns && fleet->connected) {
		fleet->retry_ns = NEVER_NS;
		layout_look(fleet);
	}
	if (fleet->connected)
		fleet_wake_at(fleet, fleet->retry_ns);
	publish_expire(fleet);
	demand_look_for_hosts(fleet);
	if (fleet->now_ns >= fleet->next_tick_ns)
		demand_tick(fleet);
	fleet_wake_at(fleet, fleet->next_tick_ns);
	fleet_pump(fleet);
	if (fleet->state == FLEET_READY && fleet->connected &&
	    (fleet->leases || fleet->trouble_ns != NEVER_NS) && !fleet->transaction.kind &&
	    !fleet->following && !fleet->stale)
		fleet_wake_at(fleet, fleet->next_renewal_ns);
}

static void after(struct source *source, uint64_t now_ns)
{
	struct fleet *fleet = (struct fleet *)source;

	fleet->now_ns = now_ns;
	if (now_ns < fleet->next_ns || fleet->running || fleet->state == FLEET_CLOSED)
		return;
	fleet->running = true;
	run(fleet);
	fleet->running = false;
}

/* Rule 4: before anything is granted in this step. */
static void before(struct source *source, uint64_t now_ns)
{
	struct fleet *fleet = (struct fleet *)source;

	(void)now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	if (fleet->right && fleet->clocks.holder_ns >= fleet->right_end_ns)
		lapse(fleet);
}

static uint64_t next_ns(const struct source *source)
{
	const struct fleet *fleet = (const struct fleet *)source;

	return fleet->state == FLEET_CLOSED ? NEVER_NS : fleet->next_ns;
}

void fleet_answered(struct fleet *fleet, struct request *request, uint64_t now_ns)
{
	struct request **at = &fleet->outstanding, *last = NULL;

	fleet->now_ns = now_ns;
	while (*at != request) {
		last = *at;
		at = &last->next;
	}
	*at = request->next;
	if (fleet->outstanding_last == request)
		fleet->outstanding_last = last;
	if (request->done)
		request->done(fleet, request);
	request_free(request);
	fleet->next_ns = 0;
	after(&fleet->source, now_ns);
}

static int adopt(struct source *source, struct limiter *limiter)
{
	struct fleet *fleet = (struct fleet *)source;
	struct holding *holding = holding_new(limiter);

	if (!holding)
		return -ENOMEM;
	holding->alone = fleet->alone;
	holding->degraded = fleet->degraded;
	holding->next = fleet->holdings;
	holding->back = &fleet->holdings;
	if (holding->next)
		holding->next->back = &holding->next;
	fleet->holdings = holding;
	limiter->holding = holding;
	return 0;
}

static void rouse(struct source *source, struct limiter *limiter)
{
	demand_rouse((struct fleet *)source, limiter->holding, true);
}

/* Whether @limiter or one above it may soon have more than it has. */
static bool may_come(struct source *source, const struct limiter *limiter)
{
	const struct fleet *fleet = (const struct fleet *)source;

	if (fleet->leaving || !fleet->connected || fleet->state < FLEET_PREPARING ||
	    fleet->state == FLEET_REFUSED)
		return false;
	for (; limiter; limiter = limiter->parent) {
		const struct holding *h = limiter->holding;

		if (h && holding_needs_leases(h) && h->usable < holding_count(h) &&
		    (h->search || h->next_search_ns <= fleet->now_ns || h->has_work ||
		     (!h->usable && !h->reserve_usable && !h->lacking)))
			return true;
	}
	return false;
}

struct fleet *fleet_new(struct engine *engine, struct coordinator *coordinator,
			const struct fleet_options *options, struct fleet_listener *listener)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));

	if (!fleet)
		return NULL;
	fleet->source = (struct source){
		.store = publish_store,
		.before = before,
		.after = after,
		.next_ns = next_ns,
		.adopt = adopt,
		.rouse = rouse,
		.may_come = may_come,
	};
	fleet->engine = engine;
	fleet->coordinator = coordinator;
	fleet->options = options;
	fleet->listener = listener;
	fleet->constants = options->constants;
	fleet->constants.quarantine_ns = quarantine_of(options->constants.right_ns);
	fleet->random_state = coordinator->random(coordinator) | 1;
	fleet->applied = -1;
	fleet->root_version = -1;
	fleet->trouble_ns = NEVER_NS;
	fleet->retry_ns = NEVER_NS;
	fleet->next_tick_ns = NEVER_NS;
	fleet->next_ns = NEVER_NS;
	return fleet;
}

void fleet_free(struct fleet *fleet)
{
	sweep_free(fleet);
	survey_free(fleet);
	/* What is still out comes back no more. */
	while (fleet->outstanding) {
		struct request *next = fleet->outstanding->next;

		request_free(fleet->outstanding);
		fleet->outstanding = next;
	}
	follow_forget(fleet);
	free(fleet->change_record);
	free(fleet);
}

struct source *fleet_source(struct fleet *fleet)
{
	return &fleet->source;
}

void fleet_start(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	fleet->state = FLEET_CONNECTING;
	fleet->down_since_ns = now_ns;
	fleet->trouble_ns = fleet->clocks.holder_ns;
	fleet->next_ns = 0;
	fleet->opened_ns = fleet->constants.session_ns;
	fleet->coordinator->open(fleet->coordinator, fleet->opened_ns);
}

void fleet_leave(struct fleet *fleet, uint64_t now_ns)
{
	fleet->now_ns = now_ns;
	if (fleet->state == FLEET_CLOSED) {
		fleet->left = true;
		return;
	}
	fleet->leaving = true;
	fleet->leave_until_ns = now_ns + LEAVE_NS;
	for (struct holding *h = fleet->holdings; h; h = h->next)
		drain_all(fleet, h);
	fleet->next_ns = 0;
	after(&fleet->source, now_ns);
}

bool fleet_has_left(const struct fleet *fleet)
{
	return fleet->left;
}
