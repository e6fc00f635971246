/*
 * fleet - one host of a fleet: its step, and what it is told; see fleet.h for the protocol.
 *
 * News of the coordinator and the engine is noted where it belongs, and then acted on in one step,
 * whose order is that of the rules of fleet.h: the session, the right, settings, balance, and at
 * last at most one transaction.
 *
 * That the session is to be dropped is acted on first. Nothing of it is used between the note and
 * the step: a function that notes it returns at once, so do its callers, and each call from outside
 * ends with a step, before the engine grants anything again.
 */
#include "core/fleet/fleet.h"
#include "core/fleet/agreed_rate.h"
#include "core/fleet/apportion.h"
#include "core/fleet/barrier.h"
#include "core/fleet/baseline.h"
#include "core/fleet/caps.h"
#include "core/fleet/claim.h"
#include "core/fleet/demand.h"
#include "core/fleet/former_names.h"
#include "core/fleet/garbage.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/key_strays.h"
#include "core/fleet/layout.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/neighbour.h"
#include "core/fleet/outcome.h"
#include "core/fleet/parts.h"
#include "core/fleet/publish.h"
#include "core/fleet/rebalance.h"
#include "core/fleet/recut.h"
#include "core/fleet/relay.h"
#include "core/fleet/release.h"
#include "core/fleet/replicate.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/round.h"
#include "core/fleet/session.h"
#include "core/fleet/survey.h"
#include "core/fleet/term.h"
#include "core/fleet/told.h"
#include "core/fleet/transaction.h"
#include "core/fleet/uses.h"
#include "core/fleet/wants.h"
#include "core/fleet/znode.h"

#include <errno.h>
#include <stdlib.h>

/* In the order of parts.h. */
static const struct {
	bool (*new)(struct fleet *fleet);
	void (*free)(struct fleet *fleet);
} PARTS[] = {
	{requests_new, requests_free},
	{session_new, session_free},
	{term_new, term_free},
	{baseline_new, baseline_free},
	{former_names_new, former_names_free},
	{holdings_new, holdings_free},
	{room_new, room_free},
	{handover_new, handover_free},
	{membership_new, membership_free},
	{uses_new, uses_free},
	{caps_new, caps_free},
	{transaction_new, transaction_free},
	{surveys_new, surveys_free},
	{key_leases_new, key_leases_free},
	{key_strays_new, key_strays_free},
	{told_new, told_free},
	{garbage_new, garbage_free},
	{neighbour_new, neighbour_free},
	{recut_new, recut_free},
	{replicate_new, replicate_free},
	{publish_new, publish_free},
	{layout_new, layout_free},
	{barrier_new, barrier_free},
};

/* The same of what they have of each holding. */
static const struct {
	bool (*attach)(struct holding *holding);
	void (*detach)(struct holding *holding);
} HOLDING_PARTS[] = {
	{told_attach, told_detach},	      {survey_attach, survey_detach},
	{demand_attach, demand_detach},	      {wants_attach, wants_detach},
	{claim_attach, claim_detach},	      {round_attach, round_detach},
	{apportion_attach, apportion_detach}, {rebalance_attach, rebalance_detach},
};

/* Rule 1: whatever comes next, nothing of this session is used. */
static void drop_session(struct fleet *fleet)
{
	const char *why = session_dropped(fleet);

	if (!why)
		return;
	if (room_leases(fleet) || *session_hid(fleet))
		fleet_tell(fleet, FLEET_DROPPED, "session dropped: %s", why);
	handover_forget(fleet);
	term_forget(fleet);
	barrier_forget(fleet);
	requests_forget(fleet);
	transaction_end(fleet);
	key_leases_forget(fleet);
	key_strays_forget(fleet);
	leases_empty(fleet);
	for (struct holding *h = holdings_first(fleet), *next; h; h = next) {
		holdings_keep(h);
		told_forget(fleet, h);
		leases_forget(fleet, h);
		rebalance_forget(h);
		agreed_rate_forget(h);
		claim_forget(fleet, h);
		room_unwatch_agreed_rate(fleet, h);
		room_unwatch_claims(fleet, h);
		next = h->next;
		holdings_let_go(h);
	}
	/* Nothing is usable: no reader is granted what a cap held back. */
	caps_forget(fleet);
	told_forget_folder(fleet);
	room_forget(fleet);
	replicate_forget(fleet);
	garbage_forget(fleet);
	relay_forget(fleet);
	surveys_forget(fleet);
	neighbour_forget(fleet);
	membership_forget(fleet);
	session_forget(fleet);
	publish_forget(fleet);
	session_reopen(fleet);
	if (session_has_left(fleet))
		holdings_forget(fleet);
}

static void join(struct fleet *fleet)
{
	struct request *request;

	if (session_state(fleet) != FLEET_JOINING || transaction_kind(fleet) ||
	    session_retry_ns(fleet) != NEVER_NS)
		return;
	session_name(fleet);
	request = transaction_begin(fleet, TRANSACTION_JOIN);
	if (request)
		transaction_send(fleet, request);
	else
		session_retry_at(fleet, fleet->now_ns + FLEET_JOIN_RETRY_NS);
}

/* Rule 5. */
static void renew(struct fleet *fleet)
{
	struct request *request = transaction_begin(fleet, TRANSACTION_RENEW);

	term_renew_at(fleet, fleet->now_ns + fleet->constants.renewal_ns);
	if (request && !leases_guard(fleet, request)) {
		transaction_give_up(fleet, request);
		request = NULL;
	}
	if (!request)
		return;
	fleet->counters.renewals++;
	transaction_send(fleet, request);
}

/* Rule 15. */
static void watch_leaving(struct fleet *fleet)
{
	if (!session_is_leaving(fleet) || session_has_left(fleet))
		return;
	if (fleet->now_ns >= session_leave_ns(fleet) || session_state(fleet) != FLEET_READY ||
	    (!room_leases(fleet) && !key_leases_count(fleet) && !request_oldest(fleet)))
		session_drop(fleet, "leaving");
	else
		fleet_wake_at(fleet, session_leave_ns(fleet));
}

/* The session and its connection; how it is joined. */
static void step_session(struct fleet *fleet)
{
	session_watch(fleet);
	drop_session(fleet);
	session_watch_connection(fleet);
}

static void step_layout(struct fleet *fleet)
{
	/* Without a connection the next one begins there anyway. */
	if (session_retry_ns(fleet) <= fleet->now_ns && session_is_connected(fleet)) {
		session_retry_at(fleet, NEVER_NS);
		layout_look(fleet);
	}
	if (session_is_connected(fleet))
		fleet_wake_at(fleet, session_retry_ns(fleet));
}

/* Settings, of others and of this host. */
static void step_settings(struct fleet *fleet)
{
	bool changed;

	join(fleet);
	if (replicate_has_applied(fleet, &changed))
		publish_recheck(fleet, changed);
	replicate_go_on(fleet);
	publish_expire(fleet);
}

static bool is_renewal_wanted(const struct fleet *fleet)
{
	/* A host that holds and claims nothing any more says so once, and is not counted then. */
	return room_is_used(fleet) || transaction_says_used(fleet) ||
	       session_trouble_ns(fleet) != NEVER_NS;
}

static void wake_for_renewal(struct fleet *fleet)
{
	if (session_state(fleet) == FLEET_READY && session_is_connected(fleet) &&
	    is_renewal_wanted(fleet) && !transaction_kind(fleet) && !replicate_runs(fleet) &&
	    !baseline_is_stale(fleet))
		fleet_wake_at(fleet, term_renewal_ns(fleet));
}

/* Rule 2: sends the next transaction, if none is under way. */
static void step_send(struct fleet *fleet)
{
	if (session_state(fleet) != FLEET_READY || !session_is_connected(fleet) ||
	    transaction_kind(fleet) || replicate_runs(fleet))
		return;
	if (baseline_is_stale(fleet)) {
		replicate_begin(fleet);
		return;
	}
	/*
	 * Many searches must not keep a right from being renewed in time. After trouble only an
	 * acknowledged write shows that there is a quorum again.
	 */
	if ((is_renewal_wanted(fleet) && fleet->now_ns >= term_renewal_ns(fleet)) ||
	    caps_are_due(fleet)) {
		renew(fleet);
		return;
	}
	/* One that is refused lets in the next. */
	if (publish_send(fleet))
		return;
	if (fleet->now_ns < transaction_denied_ns(fleet)) {
		fleet_wake_at(fleet, transaction_denied_ns(fleet));
		return;
	}
	if (neighbour_send(fleet) || relay_send(fleet) || rebalance_send(fleet) ||
	    key_leases_send(fleet))
		return;
	if (!session_is_leaving(fleet))
		garbage_send(fleet);
}

/* The outcome of the last transaction, the session, and the right: rules 1 to 13 and 15. */
static void step_right(struct fleet *fleet)
{
	drop_session(fleet);
	outcome_settle(fleet);
	drop_session(fleet);
	step_session(fleet);
	leases_watch_reach(fleet);
	watch_leaving(fleet);
	drop_session(fleet);
	if (term_runs(fleet))
		fleet_wake_at(fleet, fleet->now_ns + term_end_ns(fleet) - fleet->clocks.holder_ns);
}

static void step_keys(struct fleet *fleet)
{
	if (session_state(fleet) == FLEET_READY && session_is_connected(fleet) &&
	    !session_is_leaving(fleet))
		key_strays_look(fleet);
	key_leases_step(fleet);
}

static void act(struct fleet *fleet)
{
	fleet->next_ns = NEVER_NS;
	step_right(fleet);
	if (session_has_left(fleet))
		return;
	step_layout(fleet);
	barrier_watch(fleet);
	step_settings(fleet);
	neighbour_step(fleet);
	rebalance_step(fleet);
	step_keys(fleet);
	step_send(fleet);
	wake_for_renewal(fleet);
}

/* Does not begin within itself: facts that are noted meanwhile are for the next step. */
static void fleet_step(struct fleet *fleet)
{
	if (fleet->in_step || session_state(fleet) == FLEET_CLOSED)
		return;
	fleet->in_step = true;
	act(fleet);
	drop_session(fleet);
	fleet->in_step = false;
}

/*
 * It is @now_ns. Of a host that had something to do long before, all of the time since its last
 * step counts as late: it has seen nothing of what came.
 */
static void note_time(struct fleet *fleet, uint64_t now_ns)
{
	uint64_t due_ns = fleet->next_ns > fleet->now_ns ? fleet->next_ns : fleet->now_ns;

	if (due_ns < now_ns && now_ns - due_ns >= FLEET_LATE_NS)
		fleet->late_ns += now_ns - fleet->now_ns;
	fleet->now_ns = now_ns;
}

static void store(struct source *source, struct change *change)
{
	struct fleet *fleet = (struct fleet *)source;

	publish_store(fleet, change);
	if (!fleet->in_step)
		step_send(fleet);
}

/* Rule 4: before anything is granted in this step. */
static void before(struct source *source, uint64_t now_ns)
{
	struct fleet *fleet = (struct fleet *)source;

	(void)now_ns;
	fleet->coordinator->clocks(fleet->coordinator, &fleet->clocks);
	leases_check_term(fleet);
}

static void after(struct source *source, uint64_t now_ns)
{
	struct fleet *fleet = (struct fleet *)source;

	note_time(fleet, now_ns);
	if (now_ns >= fleet->next_ns)
		fleet_step(fleet);
}

static uint64_t next_ns(const struct source *source)
{
	const struct fleet *fleet = (const struct fleet *)source;

	return session_state(fleet) == FLEET_CLOSED ? NEVER_NS : fleet->next_ns;
}

static void detach(struct holding *holding)
{
	for (size_t i = sizeof(HOLDING_PARTS) / sizeof(HOLDING_PARTS[0]); i-- > 0;)
		HOLDING_PARTS[i].detach(holding);
}

static int adopt(struct source *source, struct limiter *limiter)
{
	struct holding *holding = holding_new(limiter);
	bool made = holding;

	(void)source;
	if (!holding)
		return -ENOMEM;
	holding->detach = detach;
	for (size_t i = 0; i < sizeof(HOLDING_PARTS) / sizeof(HOLDING_PARTS[0]) && made; i++)
		made = HOLDING_PARTS[i].attach(holding);
	if (!made) {
		holding_free(holding);
		return -ENOMEM;
	}
	limiter->holding = holding;
	limiter->settings = &holding->share;
	return 0;
}

static void rouse(struct source *source, struct limiter *limiter)
{
	holdings_rouse((struct fleet *)source, limiter->holding, true);
}

static void told(struct source *source, struct limiter *limiter)
{
	holdings_rouse((struct fleet *)source, limiter->holding, false);
}

static void miss(struct source *source, struct limiter *limiter)
{
	key_leases_miss((struct fleet *)source, limiter);
}

static bool may_come(struct source *source, const struct limiter *limiter)
{
	return (limiter->is_key && key_leases_may_come(limiter)) || caps_may_come(limiter) ||
	       rebalance_may_come((const struct fleet *)source, limiter);
}

static bool slots_may_come(struct source *source, const struct limiter *limiter)
{
	return rebalance_slots_may_come((struct fleet *)source, limiter);
}

struct fleet *fleet_new(struct engine *engine, struct coordinator *coordinator,
			const struct fleet_options *options, struct fleet_listener *listener)
{
	struct fleet *fleet = calloc(1, sizeof(*fleet));
	bool made = fleet;

	if (!fleet)
		return NULL;
	fleet->source = (struct source){
		.store = store,
		.before = before,
		.after = after,
		.next_ns = next_ns,
		.adopt = adopt,
		.rouse = rouse,
		.told = told,
		.miss = miss,
		.may_come = may_come,
		.slots_may_come = slots_may_come,
	};
	fleet->engine = engine;
	fleet->coordinator = coordinator;
	fleet->options = options;
	fleet->listener = listener;
	fleet->constants = options->constants;
	fleet->constants.quarantine_ns = record_quarantine_ns(options->constants.right_ns);
	fleet->take_most = 1;
	fleet->random_state = coordinator->random(coordinator) | 1;
	fleet->next_ns = NEVER_NS;
	for (size_t i = 0; i < sizeof(PARTS) / sizeof(PARTS[0]) && made; i++)
		made = PARTS[i].new(fleet);
	if (made)
		return fleet;
	fleet_free(fleet);
	return NULL;
}

void fleet_free(struct fleet *fleet)
{
	for (size_t i = sizeof(PARTS) / sizeof(PARTS[0]); i-- > 0;)
		PARTS[i].free(fleet);
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
	fleet->next_ns = 0;
	if (!session_id(fleet))
		handover_forget(fleet);
	session_start(fleet);
	if (!session_id(fleet))
		return;
	for (struct holding *h = holdings_first(fleet); h; h = h->next)
		demand_resume(fleet, h, claim_may_be(h));
}

/* Before anything is given back: it claims nothing any more, and asks whom to wake. */
static void tell_others(struct fleet *fleet, struct holding *holding)
{
	claim_withdraw(fleet, holding);
	if (holding->leased || holding->reserve.state != LEASE_NONE)
		claim_look(fleet, holding);
}

void fleet_leave(struct fleet *fleet, uint64_t now_ns)
{
	bool tells = session_state(fleet) == FLEET_READY && session_is_connected(fleet) &&
		     !membership_is_alone(fleet);

	note_time(fleet, now_ns);
	if (session_state(fleet) == FLEET_CLOSED) {
		session_leave_at_once(fleet);
		return;
	}
	session_leave(fleet);
	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		if (tells)
			tell_others(fleet, h);
		release_all(fleet, h);
	}
	key_leases_leave(fleet);
	fleet_step(fleet);
}

void fleet_connected(struct fleet *fleet, uint64_t session, uint64_t now_ns)
{
	enum fleet_state state = session_state(fleet);
	bool resumed = session == session_id(fleet) && state != FLEET_CONNECTING;

	note_time(fleet, now_ns);
	if (state == FLEET_CLOSED)
		return;
	if (!resumed && *session_hid(fleet)) {
		session_drop(fleet, "it is another one");
		fleet_step(fleet);
		return;
	}
	session_connect(fleet, session);
	if (!resumed)
		fleet->counters.sessions++;
	if (!resumed || state == FLEET_PREPARING || state == FLEET_LOADING ||
	    state == FLEET_REFUSED) {
		layout_look(fleet);
	} else if (state == FLEET_READY) {
		/* Changes of the meantime, and the watches. */
		replicate_begin(fleet);
	} else if (state == FLEET_IN_DOUBT) {
		barrier_begin(fleet);
	}
	fleet_step(fleet);
}

void fleet_disconnected(struct fleet *fleet, uint64_t now_ns)
{
	note_time(fleet, now_ns);
	session_disconnect(fleet);
	fleet_step(fleet);
}

void fleet_expired(struct fleet *fleet, uint64_t now_ns)
{
	note_time(fleet, now_ns);
	if (session_state(fleet) == FLEET_CLOSED)
		return;
	session_drop(fleet, "it has expired");
	fleet_step(fleet);
}

void fleet_changed(struct fleet *fleet, const char *path, uint64_t now_ns)
{
	bool ready = session_state(fleet) == FLEET_READY;
	struct znode znode;

	note_time(fleet, now_ns);
	if (!znode_parse(path, &znode))
		return;
	if (znode.kind == ZNODE_GLOBALS && ready)
		replicate_begin(fleet);
	else if (znode.kind == ZNODE_CLAIM && ready)
		claim_woken(fleet, &znode);
	else if (znode.kind == ZNODE_CLAIMS_OF)
		told_folder_changed(fleet);
	else if (znode.kind == ZNODE_CLAIMS) {
		claim_changed(fleet, &znode);
		told_changed(fleet, znode.id);
	} else if (znode.kind == ZNODE_AGREED_RATE)
		agreed_rate_changed(fleet, znode.id);
	else if (znode.kind == ZNODE_HOSTS)
		membership_changed(fleet);
	else if (znode.kind == ZNODE_KEY)
		key_leases_changed(fleet, &znode);
	else if (znode.kind == ZNODE_HOST || znode.kind == ZNODE_ENDS_OF)
		neighbour_changed(fleet, &znode);
	fleet_step(fleet);
}

void fleet_answered(struct fleet *fleet, struct request *request, uint64_t now_ns)
{
	note_time(fleet, now_ns);
	session_note_answer(fleet, request);
	request_returned(fleet, request);
	if (request->done)
		request->done(fleet, request);
	fleet_step(fleet);
	request_free(request);
}

bool fleet_has_left(const struct fleet *fleet)
{
	return session_has_left(fleet);
}
