/* key_change - the transactions about a leased key, see key_change.h. */
#include "core/fleet/key_change.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/request.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"
#include "core/limiter/keys.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* Of clean tiles of keys: tokens go with no tile. */
static const struct rest NOTHING_LEFT = {.saved = 1, .count = 1};

void key_change_end(struct key_leases *leases)
{
	if (leases->planned)
		plan_end(&leases->plan);
	leases->planned = false;
	leases->sent = KEY_SENT_NOTHING;
	leases->subject = 0;
}

static bool add_node(const struct key_lease *lease, struct request *request,
		     enum operation_kind kind, const char *name, unsigned int flags)
{
	char path[ZNODE_TEXT];

	znode_path_key(lease->holding->id, lease->cut, lease->hash, name, path);
	return request_add(request, kind, path, NULL,
			   kind == OPERATION_DELETE ? NODE_VERSION_ANY : 0, flags);
}

/* Rule K3. */
static bool add_make(const struct fleet *fleet, struct key_lease *lease, struct request *request)
{
	struct tile whole = {.last = KEY_LEAVES - 1};
	char name[TILE_TEXT];

	memcpy(whole.hid, session_hid(fleet), HID_TEXT);
	tile_print(&whole, name);
	return add_node(lease, request, OPERATION_CREATE, NULL, 0) &&
	       add_node(lease, request, OPERATION_CREATE, name, 0);
}

/* Rule K4. */
static bool add_end(struct key_lease *lease, struct request *request)
{
	char name[TILE_TEXT];

	for (uint32_t i = 0; i < lease->folder.tiles.count; i++) {
		tile_print(&lease->folder.tiles.list[i], name);
		if (!add_node(lease, request, OPERATION_DELETE, name, 0))
			return false;
	}
	return add_node(lease, request, OPERATION_DELETE, NULL, 0);
}

struct addition {
	const struct key_lease *lease;
	struct request *request;
	bool added;
};

static void add_tile(void *of, const struct tile *tile, bool there)
{
	struct addition *addition = of;
	char name[TILE_TEXT];

	tile_print(tile, name);
	addition->added = addition->added &&
			  add_node(addition->lease, addition->request,
				   there ? OPERATION_DELETE : OPERATION_CREATE, name, 0);
}

/* Asserts that the hosts are gone whose tiles are taken. */
static bool assert_gone(const struct plan *plan, struct request *request)
{
	char path[ZNODE_TEXT];

	for (uint32_t i = 0; i < plan->gain_count; i++) {
		const char *hid = plan->gains[i].hid;
		bool done = !*hid;

		for (uint32_t j = 0; j < i; j++)
			done = done || !strcmp(plan->gains[j].hid, hid);
		if (done)
			continue;
		znode_path_named(ZNODE_HOST, 0, hid, path);
		if (!request_add(request, OPERATION_CREATE, path, NULL, 0, 0) ||
		    !request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0))
			return false;
	}
	return true;
}

static bool add_claim(const struct fleet *fleet, struct key_lease *lease, struct request *request)
{
	uint32_t claim = lease->decision.claim;
	char name[ZNODE_TEXT];

	if (claim == lease->folder.claimed)
		return true;
	if (lease->folder.claimed &&
	    !add_node(lease, request, OPERATION_DELETE, lease->folder.claim, 0))
		return false;
	znode_claim_print(session_hid(fleet), claim, 1, NULL, 0, name);
	return !claim ||
	       add_node(lease, request, OPERATION_CREATE, name, NODE_EPHEMERAL | NODE_SEQUENTIAL);
}

/* Plans what is to be taken and given. False: there is no memory, or it is too much. */
static bool make_plan(struct fleet *fleet, struct key_lease *lease)
{
	struct key_leases *leases = fleet->key_leases;
	const struct key_decision *decision = &lease->decision;
	struct tiles *tiles = &lease->folder.tiles;
	int done = 0;

	/* Leaves that are not usable yet stay as they are. */
	for (uint32_t i = 0; i < tiles->count; i++) {
		struct tile *tile = &tiles->list[i];

		tile->fixed = false;
		for (uint32_t leaf = tile->first; leaf <= tile->last; leaf++) {
			if (tile_is_of(tile, session_hid(fleet)) &&
			    lease->usable_ns[leaf] > fleet->clocks.waiter_ns)
				tile->fixed = true;
		}
	}
	leases->rules = (struct plan_rules){
		.hid = session_hid(fleet),
		.full = NOTHING_LEFT,
		.seed = fleet_random(fleet),
	};
	if (plan_begin(&leases->plan, &leases->rules, tiles))
		return false;
	leases->planned = true;
	if (decision->takes)
		done = plan_take(&leases->plan, decision->takes, true);
	else if (decision->gives)
		done = plan_give(&leases->plan, decision->gives, term_epoch(fleet), &NOTHING_LEFT);
	return done >= 0;
}

static bool add_change(struct fleet *fleet, struct key_lease *lease, struct request *request)
{
	struct key_leases *leases = fleet->key_leases;
	struct addition addition = {.lease = lease, .request = request, .added = true};

	if (!assert_gone(&leases->plan, request))
		return false;
	plan_changes(&leases->plan, add_tile, &addition);
	return addition.added && add_claim(fleet, lease, request) &&
	       request->operation_count > HEAD_LENGTH && request->operation_count <= OPERATIONS_MAX;
}

/* Tells whether all leaves of @tile, which is of @lease, are usable. */
static bool is_usable(const struct fleet *fleet, const struct key_lease *lease,
		      const struct tile *tile)
{
	for (uint32_t leaf = tile->first; leaf <= tile->last; leaf++) {
		if (!lease->usable_ns[leaf] || lease->usable_ns[leaf] > fleet->clocks.waiter_ns)
			return false;
	}
	return true;
}

bool key_change_leave(const struct fleet *fleet, const struct key_lease *lease,
		      struct request *request)
{
	const struct tiles *tiles = &lease->folder.tiles;
	struct addition addition = {.lease = lease, .request = request, .added = true};

	if (request->operation_count + 2 * tiles->count > OPERATIONS_MAX)
		return request->operation_count == HEAD_LENGTH;
	for (uint32_t i = 0; i < tiles->count && lease->listed && !lease->stale; i++) {
		struct tile clean = {.first = tiles->list[i].first,
				     .last = tiles->list[i].last,
				     .epoch = term_epoch(fleet),
				     .rest = NOTHING_LEFT};

		if (!tile_is_of(&tiles->list[i], session_hid(fleet)) ||
		    !is_usable(fleet, lease, &tiles->list[i]))
			continue;
		add_tile(&addition, &tiles->list[i], true);
		add_tile(&addition, &clean, false);
	}
	return addition.added;
}

/* Chooses what is sent, and stops the use of what is given back. */
static bool prepare(struct fleet *fleet, struct key_lease *lease)
{
	struct key_leases *leases = fleet->key_leases;

	memcpy(leases->former_ns, lease->usable_ns, sizeof(leases->former_ns));
	if (!lease->folder.tiles.count) {
		leases->sent = KEY_SENT_MAKE;
		return lease->decision.takes;
	}
	if (lease->decision.ends) {
		leases->sent = KEY_SENT_END;
		if (lease->used < KEY_LEAVES || (lease->key && lease->key->turns.queue.length))
			return false;
		memset(lease->usable_ns, 0, sizeof(lease->usable_ns));
		key_lease_use(fleet, lease);
		return true;
	}
	leases->sent = KEY_SENT_CHANGE;
	if (!make_plan(fleet, lease))
		return false;
	if (lease->decision.gives)
		key_lease_note(fleet, lease, &leases->plan.after, 0);
	return true;
}

static void take_back(struct fleet *fleet, struct key_lease *lease)
{
	memcpy(lease->usable_ns, fleet->key_leases->former_ns, sizeof(lease->usable_ns));
	key_lease_use(fleet, lease);
}

bool key_change_send(struct fleet *fleet, struct key_lease *lease)
{
	struct key_leases *leases = fleet->key_leases;
	struct request *request;
	bool added;

	lease->has_work = false;
	request = transaction_begin(fleet, TRANSACTION_KEY);
	if (!request)
		return false;
	added = prepare(fleet, lease);
	if (added && leases->sent == KEY_SENT_MAKE)
		added = add_make(fleet, lease, request);
	else if (added && leases->sent == KEY_SENT_END)
		added = add_end(lease, request);
	else if (added)
		added = add_change(fleet, lease, request);
	if (!added) {
		take_back(fleet, lease);
		key_change_end(leases);
		transaction_give_up(fleet, request);
		return false;
	}
	leases->subject = lease->number;
	transaction_send(fleet, request);
	return true;
}

/* Returns the tokens that flow into @leaves leaves of a key within @ns. */
static uint64_t flow_of(const struct rate *rate, uint64_t ns)
{
	struct fraction flow = rate_fraction(rate);
	u128 tokens = (u128)flow.num * (ns / KEY_PARTS) * KEY_LEAVES;

	tokens /= flow.den;
	return tokens < TOKENS_MAX ? (uint64_t)tokens : TOKENS_MAX;
}

/* Rule K3: they bring what flowed in since then. */
static void made(struct fleet *fleet, struct key_lease *lease)
{
	uint64_t now_ns = fleet->clocks.waiter_ns, tokens, burst;
	uint64_t usable_ns = fleet->epochs.known_ns + fleet->constants.quarantine_ns;
	uint64_t cut_ns = lease->holding->cut_ns, since_ns = usable_ns;

	if (cut_ns && cut_ns + fleet->constants.quarantine_ns > since_ns)
		since_ns = cut_ns + fleet->constants.quarantine_ns;

	for (int i = 0; i < KEY_LEAVES; i++)
		lease->usable_ns[i] = usable_ns;
	key_lease_note_gain(fleet, lease, usable_ns);
	key_lease_use(fleet, lease);
	key_lease_find_limit(fleet, lease);
	if (since_ns > now_ns || lease->used != KEY_LEAVES || rate_is_unlimited(&lease->rate))
		return;
	burst = (uint64_t)((u128)lease->burst * KEY_LEAVES / KEY_PARTS);
	tokens = flow_of(&lease->rate, now_ns - since_ns);
	keys_bring(&fleet->engine->schedule, lease->key, tokens < burst ? tokens : burst);
}

static void changed(struct fleet *fleet, struct key_lease *lease)
{
	struct key_leases *leases = fleet->key_leases;
	struct tiles tiles = lease->folder.tiles;

	for (uint32_t i = 0; i < leases->plan.gain_count; i++) {
		const struct tile *gain = &leases->plan.gains[i];
		uint64_t usable_ns = epoch_usable_ns(&fleet->epochs, gain, fleet->clocks.waiter_ns,
						     fleet->constants.quarantine_ns);

		key_lease_note_gain(fleet, lease, usable_ns);
		for (uint32_t leaf = gain->first; leaf <= gain->last; leaf++)
			lease->usable_ns[leaf] = usable_ns;
	}
	lease->folder.tiles = leases->plan.after;
	leases->plan.after = tiles;
	key_lease_use(fleet, lease);
}

/* The folder of the limiter's keys may be missing: nothing rests on which host makes it. */
static void make_folder(struct fleet *fleet, const struct key_lease *lease)
{
	char path[ZNODE_TEXT];

	znode_path_key(lease->holding->id, lease->cut, lease->hash, NULL, path);
	*strrchr(path, '/') = '\0';
	(void)request_send_one(fleet, OPERATION_CREATE, path, NULL, 0, NULL);
}

bool key_change_answered(struct fleet *fleet, struct key_lease *lease,
			 const struct request *request)
{
	enum key_sent sent = fleet->key_leases->sent;

	if (request->answer != ANSWER_OK) {
		take_back(fleet, lease);
		if (sent == KEY_SENT_MAKE && request->answer == ANSWER_NO_NODE)
			make_folder(fleet, lease);
		key_lease_look_later(fleet, lease,
				     sent == KEY_SENT_MAKE ? KEY_JITTER_NS : KEY_CONFLICT_NS);
		return false;
	}
	if (sent == KEY_SENT_END)
		return true;
	if (sent == KEY_SENT_MAKE)
		made(fleet, lease);
	else
		changed(fleet, lease);
	key_lease_look_later(fleet, lease, 0);
	return false;
}
