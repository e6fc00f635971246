/* key_leases - the keys that this host leases, see key_leases.h. */
#include "core/fleet/key_leases.h"
#include "core/base/siphash.h"
#include "core/fleet/handover.h"
#include "core/fleet/holdings.h"
#include "core/fleet/key_change.h"
#include "core/fleet/key_demand.h"
#include "core/fleet/key_lease.h"
#include "core/fleet/membership.h"
#include "core/fleet/request.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"
#include "core/limiter/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool key_leases_new(struct fleet *fleet)
{
	fleet->key_leases = calloc(1, sizeof(*fleet->key_leases));
	return fleet->key_leases;
}

void key_leases_free(struct fleet *fleet)
{
	if (!fleet->key_leases)
		return;
	key_change_end(fleet->key_leases);
	free(fleet->key_leases);
}

uint32_t key_leases_count(const struct fleet *fleet)
{
	return fleet->key_leases->count;
}

static struct key_lease *find_number(const struct fleet *fleet, uint64_t number)
{
	struct key_lease *lease = fleet->key_leases->first;

	while (lease && lease->number != number)
		lease = lease->next;
	return lease;
}

static void drop(struct fleet *fleet, struct key_lease *lease)
{
	struct key_leases *leases = fleet->key_leases;
	struct key_lease **at = &leases->first;

	while (*at != lease)
		at = &(*at)->next;
	*at = lease->next;
	leases->count--;
	leases->nameless -= !lease->key;
	room_count_key(fleet, false);
	handover_drop_key(fleet, &lease->place);
	if (lease->key) {
		(void)keys_lease(&fleet->engine->schedule, lease->key, 0);
		keys_set_lease(lease->key, NULL);
		keys_close(&fleet->engine->schedule, lease->key);
	}
	holdings_let_go(lease->holding);
	key_folder_free(&lease->folder);
	free(lease);
}

void key_leases_drop(struct fleet *fleet, const struct holding *holding)
{
	for (struct key_lease *lease = fleet->key_leases->first, *next; lease; lease = next) {
		next = lease->next;
		if (lease->holding == holding)
			drop(fleet, lease);
	}
}

void key_leases_forget(struct fleet *fleet)
{
	while (fleet->key_leases->first)
		drop(fleet, fleet->key_leases->first);
	key_change_end(fleet->key_leases);
	fleet->key_leases->seeded = false;
	fleet->key_leases->seeding = false;
}

bool key_leases_are_of(const struct fleet *fleet, const struct holding *holding)
{
	return holding && holding->settings->key_share == KEY_SHARE_LEASED && holding->usable &&
	       (!rate_is_unlimited(&holding->settings->key_rate) ||
		overrides_limit(holding->settings->overrides)) &&
	       *session_hid(fleet);
}

/* Returns the hash of the name of @key. */
static uint64_t hash_of(const struct fleet *fleet, const struct key *key)
{
	return siphash(key->name, key->name_bytes, fleet->key_leases->seed);
}

/* Gives the open @key the lease of it that has no name yet. NULL: there is none. */
static struct key_lease *find_nameless(struct fleet *fleet, struct limiter *key)
{
	struct key_leases *leases = fleet->key_leases;
	struct key_lease *lease;

	if (!leases->nameless || !leases->seeded)
		return NULL;
	lease = key_lease_find(fleet, key->parent->holding, hash_of(fleet, keys_key(key)));
	if (!lease || lease->key)
		return NULL;
	key_lease_name(fleet, lease,
		       keys_open(&fleet->engine->schedule, key->parent, keys_key(key)));
	leases->named = true;
	fleet_wake_at(fleet, fleet->now_ns);
	return lease;
}

void key_leases_miss(struct fleet *fleet, struct limiter *key)
{
	struct key_leases *leases = fleet->key_leases;
	struct key_lease *lease = keys_lease_of(key);

	if (!lease)
		lease = find_nameless(fleet, key);
	if (lease) {
		lease->missed = true;
		if (lease->due_ns > fleet->now_ns + KEY_PERIOD_NS) {
			lease->due_ns = fleet->now_ns;
			key_lease_wake(fleet, lease, fleet->now_ns);
		}
	} else if (key_leases_are_of(fleet, key->parent->holding)) {
		if (!leases->missed.count)
			leases->aged_ns = fleet->now_ns + KEY_PERIOD_NS;
		keys_missed_note(&leases->missed, keys_key(key)->id, key->parent->id);
		if (leases->count < KEY_LEASES_MAX)
			fleet_wake_at(fleet, leases->begin_ns);
	}
}

bool key_leases_may_come(const struct limiter *key)
{
	const struct key_lease *lease = keys_lease_of(key);

	return lease && !lease->used && !lease->listed;
}

void key_leases_revive(struct fleet *fleet)
{
	uint64_t usable_ns = fleet->epochs.known_ns + fleet->constants.quarantine_ns;

	for (struct key_lease *lease = fleet->key_leases->first; lease; lease = lease->next) {
		for (int i = 0; i < KEY_LEAVES; i++) {
			if (lease->usable_ns[i] && lease->usable_ns[i] < usable_ns)
				lease->usable_ns[i] = usable_ns;
		}
		key_lease_note_gain(fleet, lease, usable_ns);
		key_lease_use(fleet, lease);
	}
}

/* Looks at its folder. */

void key_leases_print_seed(const struct fleet *fleet, char seed[KEY_SEED_TEXT])
{
	static const uint64_t halves[][2] = {{0}, {1}};
	const uint64_t *drawn = &fleet->random_state; /* cannot be guessed, as it began so */
	uint64_t high = siphash(drawn, sizeof(*drawn), halves[0]);
	uint64_t low = siphash(drawn, sizeof(*drawn), halves[1]);

	snprintf(seed, KEY_SEED_TEXT, "%016" PRIx64 "-%016" PRIx64, high, low);
}

static void seed_read(struct fleet *fleet, struct request *request)
{
	struct key_leases *leases = fleet->key_leases;
	char rest;

	leases->seeding = false;
	leases->seeded = request->answer == ANSWER_OK &&
			 sscanf(request->data, "%16" SCNx64 "-%16" SCNx64 "%c", &leases->seed[0],
				&leases->seed[1], &rest) == 2;
	if (leases->seeded)
		handover_keep_seed(fleet, leases->seed);
	leases->begin_ns = leases->seeded ? 0 : fleet->now_ns + fleet->constants.renewal_ns;
}

static void read_seed(struct fleet *fleet)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (fleet->key_leases->seeding)
		return;
	znode_path(ZNODE_KEYS_OF, 0, path);
	request = request_new(REQUEST_GET, path, seed_read);
	if (!request)
		return;
	fleet->key_leases->seeding = true;
	request_send(fleet, request);
}

/* Notes which hosts with tiles are gone: they were there before this read, and are not now. */
static void note_gone(struct fleet *fleet, const struct request *request)
{
	for (uint32_t i = 0; i < request->name_count; i++) {
		struct tile tile;

		if (tile_parse(request->names[i], &tile) && *tile.hid &&
		    membership_is_fresh(fleet) && strcmp(tile.hid, session_hid(fleet)) != 0 &&
		    !membership_has(fleet, tile.hid))
			epoch_note_gone(&fleet->epochs, tile.hid, fleet->clocks.waiter_ns);
	}
}

static void listed(struct fleet *fleet, struct request *request)
{
	struct key_lease *lease = find_number(fleet, request->of.number);
	const char *hid = session_hid(fleet);

	if (!lease)
		return;
	lease->listing = false;
	/* A list says nothing of a change that this host is making meanwhile. */
	if (lease->stale || fleet->key_leases->subject == lease->number) {
		key_lease_look_later(fleet, lease, 0);
		return;
	}
	if (request->answer != ANSWER_OK && request->answer != ANSWER_NO_NODE) {
		key_lease_look_later(fleet, lease, fleet->constants.renewal_ns);
		return;
	}
	note_gone(fleet, request);
	key_folder_free(&lease->folder);
	if (!key_folder_read(&lease->folder, request->names, request->name_count, hid,
			     &fleet->epochs) ||
	    (request->answer == ANSWER_OK && !lease->folder.tiles.whole)) {
		/* A server may read while it writes. */
		key_lease_look_later(fleet, lease, fleet->constants.renewal_ns);
		return;
	}
	lease->listed = true;
	key_lease_note(fleet, lease, &lease->folder.tiles,
		       fleet->clocks.waiter_ns + fleet->constants.quarantine_ns);
	key_demand_decide(fleet, lease);
}

static void list(struct fleet *fleet, struct key_lease *lease)
{
	struct request *request;
	char path[ZNODE_TEXT];

	znode_path_key(lease->holding->id, lease->cut, lease->hash, NULL, path);
	request = request_new(REQUEST_LIST, path, listed);
	if (!request)
		return;
	/* A look at what may be a stray leaves no watch behind. */
	request->watch = lease->key || key_lease_kept(lease);
	request->of.number = lease->number;
	lease->listing = true;
	lease->stale = false;
	request_send(fleet, request);
}

void key_leases_changed(struct fleet *fleet, const struct znode *znode)
{
	uint64_t hash;

	if (!znode_key_parse(znode->name, &hash))
		return;
	for (struct key_lease *lease = fleet->key_leases->first; lease; lease = lease->next) {
		if (lease->hash == hash && lease->holding->id == znode->id &&
		    lease->cut == znode->cut)
			key_lease_look_later(fleet, lease, KEY_JITTER_NS);
	}
}

/* Begins to lease the key that ran out most often. */
static void begin(struct fleet *fleet)
{
	struct key_leases *leases = fleet->key_leases;
	struct schedule *schedule = &fleet->engine->schedule;
	struct limiter *limiter, *opened;
	struct key_missed missed;
	struct key_lease *lease;
	struct key *key;
	uint64_t hash;

	if (!keys_missed_take(&leases->missed, &missed))
		return;
	key = keys_find(schedule, missed.key);
	limiter = tree_find_id(&fleet->engine->tree, missed.limiter);
	if (!key || !limiter || limiter->removed || !key_leases_are_of(fleet, limiter->holding))
		return;
	opened = keys_open(schedule, limiter, key);
	if (!opened)
		return;
	hash = hash_of(fleet, key);
	lease = key_lease_find(fleet, limiter->holding, hash)
			? NULL
			: key_lease_begin(fleet, limiter->holding, hash);
	if (!lease) {
		keys_close(schedule, opened);
		return;
	}
	key_lease_name(fleet, lease, opened);
	list(fleet, lease);
}

/* Looks at one lease, which may go. */
static void look(struct fleet *fleet, struct key_lease *lease)
{
	lease->wake_ns = NEVER_NS;
	if ((lease->key && lease->key->removed) || lease->holding->limiter->removed ||
	    lease->cut != lease->holding->cut) {
		drop(fleet, lease);
		return;
	}
	key_lease_use(fleet, lease);
	if (lease->stale && !lease->listing && fleet->now_ns >= lease->look_ns)
		list(fleet, lease);
	else if (lease->stale && !lease->listing)
		key_lease_wake(fleet, lease, lease->look_ns);
	if (fleet->now_ns < lease->due_ns) {
		key_lease_wake(fleet, lease, lease->due_ns);
		return;
	}
	key_demand_measure(fleet, lease);
	lease->due_ns = fleet->now_ns + KEY_PERIOD_NS;
	if (lease->listed && !lease->stale && !lease->listing)
		key_demand_decide(fleet, lease);
	lease->missed = false;
	key_lease_wake(fleet, lease, lease->due_ns);
	if (lease->listed && !lease->has_work && !lease->stale &&
	    (!lease->folder.tiles.count || (!lease->key && !key_lease_kept(lease))))
		drop(fleet, lease);
}

static void look_at_all(struct fleet *fleet)
{
	struct key_leases *leases = fleet->key_leases;

	if (fleet->now_ns >= leases->wake_ns) {
		leases->wake_ns = NEVER_NS;
		for (struct key_lease *lease = leases->first, *next; lease; lease = next) {
			next = lease->next;
			if (fleet->now_ns >= lease->wake_ns)
				look(fleet, lease);
			else if (lease->wake_ns < leases->wake_ns)
				leases->wake_ns = lease->wake_ns;
		}
	}
	if (leases->first)
		fleet_wake_at(fleet, leases->wake_ns);
	/* If it is time already, the step sends it, or waits for an answer first. */
	if (leases->has_work && fleet->now_ns < leases->next_ns)
		fleet_wake_at(fleet, leases->next_ns);
}

/* A host came or went: leaves may be free now. */
static void note_hosts(struct fleet *fleet)
{
	struct key_leases *leases = fleet->key_leases;

	if (leases->changes == membership_changes(fleet))
		return;
	leases->changes = membership_changes(fleet);
	for (struct key_lease *lease = leases->first; lease; lease = lease->next) {
		if (lease->folder.other_count)
			key_lease_look_later(fleet, lease, KEY_CONFLICT_NS);
	}
}

/* A successor without a connection uses what was leased, too. */
static void use_named(struct fleet *fleet)
{
	if (!fleet->key_leases->named)
		return;
	fleet->key_leases->named = false;
	for (struct key_lease *lease = fleet->key_leases->first; lease; lease = lease->next)
		key_lease_use(fleet, lease);
}

void key_leases_step(struct fleet *fleet)
{
	struct key_leases *leases = fleet->key_leases;

	use_named(fleet);
	if (!leases->first && !leases->missed.count)
		return;
	if (session_state(fleet) != FLEET_READY || !session_is_connected(fleet) ||
	    session_is_leaving(fleet))
		return;
	note_hosts(fleet);
	look_at_all(fleet);
	if (!leases->missed.count || leases->count >= KEY_LEASES_MAX)
		return;
	if (fleet->now_ns >= leases->aged_ns) {
		keys_missed_age(&leases->missed);
		leases->aged_ns = fleet->now_ns + KEY_PERIOD_NS;
	}
	if (fleet->now_ns >= leases->begin_ns) {
		leases->begin_ns = fleet->now_ns + KEY_SPACING_NS;
		if (leases->seeded)
			begin(fleet);
		else
			read_seed(fleet);
	}
	fleet_wake_at(fleet, leases->begin_ns);
}

/* Returns the lease that has had something to send for longest; NULL: none has. */
static struct key_lease *next_work(const struct key_leases *leases)
{
	struct key_lease *next = NULL;

	for (struct key_lease *lease = leases->first; lease; lease = lease->next) {
		if (lease->has_work && !lease->stale && !lease->listing &&
		    (!next || lease->work_ns <= next->work_ns))
			next = lease;
	}
	return next;
}

void key_leases_leave(struct fleet *fleet)
{
	bool gives = session_state(fleet) == FLEET_READY && session_is_connected(fleet) &&
		     term_runs(fleet);

	while (!gives && fleet->key_leases->first)
		drop(fleet, fleet->key_leases->first);
}

/*
 * Gives back as many keys as fit, which are not used from then on. An answer changes nothing: the
 * host is about to go in any case.
 */
static bool send_leave(struct fleet *fleet)
{
	struct key_leases *leases = fleet->key_leases;
	struct request *request;

	if (!leases->first)
		return false;
	request = transaction_begin(fleet, TRANSACTION_KEY);
	while (request && leases->first && key_change_leave(fleet, leases->first, request))
		drop(fleet, leases->first);
	if (request && request->operation_count > HEAD_LENGTH) {
		transaction_send(fleet, request);
		return true;
	}
	if (request)
		transaction_give_up(fleet, request);
	while (leases->first)
		drop(fleet, leases->first);
	return false;
}

bool key_leases_send(struct fleet *fleet)
{
	struct key_leases *leases = fleet->key_leases;
	struct key_lease *lease;

	if (session_is_leaving(fleet))
		return send_leave(fleet);
	if (!term_runs(fleet) || !leases->has_work)
		return false;
	if (fleet->now_ns < leases->next_ns) {
		fleet_wake_at(fleet, leases->next_ns);
		return false;
	}
	leases->next_ns = fleet->now_ns + KEY_SPACING_NS;
	while ((lease = next_work(leases))) {
		if (key_change_send(fleet, lease))
			return true;
	}
	leases->has_work = false;
	return false;
}

void key_leases_answered(struct fleet *fleet, const struct request *request)
{
	struct key_leases *leases = fleet->key_leases;
	struct key_lease *lease = find_number(fleet, leases->subject);

	if (lease && key_change_answered(fleet, lease, request))
		drop(fleet, lease);
	key_change_end(leases);
}

void key_leases_doubt(struct fleet *fleet)
{
	struct key_lease *lease = find_number(fleet, fleet->key_leases->subject);

	key_change_end(fleet->key_leases);
	if (!lease)
		return;
	/* Leaves that were on their way back, or were taken, are in use no more, or not yet. */
	key_lease_look_later(fleet, lease, 0);
}

/* A host that is asked for so much of what it has keeps it, see key_portion.h. */
static const double ASKED_AT_FIRST = 0.75;

static int resume_key(struct fleet *fleet, struct holding *holding,
		      const struct handover_key *place, uint32_t at)
{
	struct key_lease *lease = key_lease_begin(fleet, holding, place->hash);

	if (!lease)
		return -ENOMEM;
	for (int i = 0; i < KEY_LEAVES; i++) {
		if (place->leaves[i / 64] >> i % 64 & 1)
			lease->usable_ns[i] = 1;
	}
	lease->place = at + 1;
	lease->asked = ASKED_AT_FIRST * key_lease_kept(lease) * key_demand_leaf(fleet, lease);
	key_lease_use(fleet, lease);
	key_lease_look_later(fleet, lease, 0);
	return 0;
}

int key_leases_resume(struct fleet *fleet)
{
	const struct handover_memory *memory = handover_memory(fleet);
	struct key_leases *leases = fleet->key_leases;
	int err = 0;

	leases->seeded = memory->key_seeded;
	memcpy(leases->seed, memory->key_seed, sizeof(leases->seed));
	for (uint32_t i = 0; i < HANDOVER_KEYS && !err; i++) {
		const struct handover_key *place = &memory->keys[i];
		struct holding *holding = holdings_find(fleet, place->id);
		uint32_t at = i + 1;

		if (place->used && holding && holding->cut == place->cut)
			err = resume_key(fleet, holding, place, i);
		else
			handover_drop_key(fleet, &at);
	}
	return err;
}
