/*
 * balance - the policy of sharing a limiter, see balance.h.
 *
 * 1. Where others claim nothing, a host keeps for a while what it does not want any more, and gives
 *    back the newest first: demand that comes and goes costs no writes.
 * 2. Where all together want more than there is, each has its share (share.h), and a host above it
 *    gives back the oldest first, in parts.
 * 3. Where there are more hosts than partitions, hosts take turns of a `lease`.
 * 4. A host that lacks some looks for more, at once and then every R. A host that has what it wants
 *    looks when it is told that claims have changed.
 * 5. A host whose look did not find enough claims what it wants, and wakes the first in line when
 *    it gives something back.
 */
#include "core/fleet/balance.h"
#include "core/fleet/times.h"

#include <stdlib.h>

enum {
	YOUNG_PARTS = 3,  /* of `lease`: nothing younger goes under contention */
	EXCESS_PARTS = 4, /* of what is above a share: so much goes before its lease is over */
	SAVING_PARTS = 8, /* of `lease`: a turn is longer while a large take is saved up */
	HYSTERESIS_PERCENT = 20, /* another amount is claimed if it differs by more */
	JITTER_PARTS = 4,	 /* of an interval: the next look is so much later at most */
};

static bool has_target(const struct balance *balance)
{
	return balance->share.target != UINT32_MAX;
}

/* The order in which pieces go back */

/* Tells whether without @piece, of pieces with @slots, fewer slots than are open would be left. */
static bool is_in_use(const struct facts *facts, const struct piece *piece, uint32_t slots)
{
	return facts->slots_used && facts->slots_used + piece->slots > slots;
}

/* Returns the slots of all pieces but the first @gone. */
static uint32_t slots_left(const struct facts *facts, uint32_t gone)
{
	uint32_t slots = 0;

	for (uint32_t i = gone; i < facts->piece_count; i++)
		slots += facts->pieces[i].slots;
	return slots;
}

static bool is_older(const struct piece *a, const struct piece *b)
{
	return a->age_ns != b->age_ns ? a->age_ns > b->age_ns : a->index < b->index;
}

/*
 * Returns the next piece to go, of all but the first @gone: the newest, or with @oldest the oldest
 * of those that are @age_ns old and have been of use. NULL: there is none.
 */
static struct piece *next_to_go(const struct facts *facts, uint32_t gone, bool oldest,
				uint64_t age_ns)
{
	uint32_t slots = slots_left(facts, gone);
	struct piece *next = NULL;

	for (uint32_t i = gone; i < facts->piece_count; i++) {
		struct piece *piece = &facts->pieces[i];

		if (piece->is_read || piece->is_numbered || is_in_use(facts, piece, slots))
			continue;
		if (oldest && (!piece->is_of_use || piece->age_ns < age_ns))
			continue;
		if (!next || is_older(piece, next) == oldest)
			next = piece;
	}
	return next;
}

/* Gives back at most @most pieces, see next_to_go(). Returns how many. */
static uint32_t give(const struct facts *facts, struct decision *decision, uint32_t most,
		     bool oldest, uint64_t age_ns)
{
	uint32_t given = 0;

	while (given < most) {
		struct piece *next = next_to_go(facts, decision->gives, oldest, age_ns), piece;

		if (!next)
			break;
		piece = *next;
		*next = facts->pieces[decision->gives];
		facts->pieces[decision->gives++] = piece;
		given++;
	}
	return given;
}

/* Looking for more */

static bool lacks_some(const struct facts *facts, uint32_t kept)
{
	return kept < facts->wanted || facts->misses_read;
}

/* Tells whether other hosts may look for what is kept and not wanted: little was left free. */
static bool is_scarce(const struct balance *balance, uint32_t kept)
{
	return balance->left_free < kept;
}

/*
 * Tells whether the last is kept though it is not wanted: claims of others must be seen soon, also
 * where there is no room to watch them.
 */
static bool keeps_last(const struct balance *balance, const struct facts *facts)
{
	return !facts->wanted && is_scarce(balance, facts->kept) && !facts->claims_are_watched;
}

/*
 * Returns about how much later the next look is. A host that lacks nothing and has a part is told
 * of claims, or looks for them; one that has none, but wants a reserve, looks for what a dead host
 * left.
 */
static uint64_t look_interval(const struct balance *balance, const struct facts *facts)
{
	bool concerns = facts->has_leases || facts->claim_is_lost;

	if (balance->is_lacking || balance->share.contended || facts->claimed ||
	    keeps_last(balance, facts) || (facts->lacks_reserve && !balance->reserves_gone))
		return facts->renewal_ns;
	if (concerns && facts->claims_have_changed)
		return 0;
	if (concerns && !facts->lacks_reserve && facts->claims_are_watched)
		return NEVER_NS;
	return concerns ? facts->lease_ns / YOUNG_PARTS : FLEET_RESERVE_NS;
}

uint64_t balance_looked(struct balance *balance, const struct facts *facts, uint32_t left_free,
			bool reserves_gone)
{
	balance->left_free = left_free;
	balance->reserves_gone = reserves_gone;
	balance->is_lacking = lacks_some(facts, facts->kept);
	return look_interval(balance, facts);
}

void balance_look_soon(struct balance *balance)
{
	balance->look_ns = 0;
}

void balance_seek_reserve(struct balance *balance)
{
	if (balance->reserves_gone)
		balance->seeks_reserve = false;
}

/* A host that begins to lack something looks at once; after a vain look it waits. */
static void choose_look(struct balance *balance, const struct facts *facts, uint32_t kept,
			struct decision *decision)
{
	bool lacks = lacks_some(facts, kept);

	decision->is_met = kept >= facts->wanted;
	if (!lacks)
		balance->is_lacking = false;
	else if (!balance->is_lacking && !balance->share.contended)
		balance->look_ns = 0;
	if (facts->lacks_reserve && !balance->seeks_reserve)
		balance->look_ns = 0;
	/* Nothing was to be looked for until now. */
	if (facts->claims_have_changed && balance->look_ns == NEVER_NS)
		balance->look_ns = 0;
	balance->seeks_reserve = facts->lacks_reserve;
	decision->looks = !facts->is_looking && facts->now_ns >= balance->look_ns &&
			  !facts->is_removed && facts->is_leased &&
			  (lacks || facts->lacks_reserve || facts->has_leases || facts->claimed ||
			   facts->claim_is_lost);
}

/* Giving back: partitions that are not wanted any more */

static void begin_spare(struct balance *balance, const struct facts *facts)
{
	uint64_t third_ns = facts->lease_ns / YOUNG_PARTS;

	balance->spare_until_ns = facts->now_ns +
				  (third_ns < FLEET_SPARE_MAX_NS ? third_ns : FLEET_SPARE_MAX_NS);
	balance->spare_wanted = 0;
}

void balance_end_spare(struct balance *balance)
{
	balance->has_spare = true;
	balance->spare_until_ns = 0;
	balance->spare_wanted = 0;
}

/* Notes that more is kept than was wanted in the last second. */
static void note_spare(struct balance *balance, const struct facts *facts,
		       struct decision *decision)
{
	decision->spare_begins = !balance->has_spare;
	if (decision->spare_begins)
		begin_spare(balance, facts);
	balance->has_spare = true;
	if (keeps_last(balance, facts) &&
	    balance->look_ns >
		    facts->now_ns + facts->renewal_ns / JITTER_PARTS * (JITTER_PARTS + 1))
		decision->look_in_ns = look_interval(balance, facts);
	if (balance->spare_wanted < facts->wanted)
		balance->spare_wanted = facts->wanted;
}

/*
 * Returns how many to keep. Demand that comes and goes would cost two writes each time, so a
 * partition that is not wanted is kept for a while where there is plenty, and the last one also
 * where there is not; unless others claim some, or the host has many leases.
 */
static uint32_t to_keep(const struct balance *balance, const struct facts *facts)
{
	bool over = facts->now_ns >= balance->spare_until_ns;

	if (facts->has_claimants || facts->has_little_room)
		return facts->wanted;
	if (is_scarce(balance, facts->kept))
		return facts->wanted || over ? facts->wanted : 1;
	return over ? balance->spare_wanted : facts->kept;
}

/* A partition that waits is of use to no host yet; the next one would begin its wait anew. */
static void give_unwanted(struct balance *balance, const struct facts *facts,
			  struct decision *decision)
{
	uint32_t keep;

	if (facts->kept <= facts->wanted) {
		balance->has_spare = false;
		return;
	}
	note_spare(balance, facts, decision);
	if (!facts->wanted && facts->saves && !facts->has_claimants)
		return;
	keep = to_keep(balance, facts);
	if (keep < facts->held)
		give(facts, decision, facts->held - keep, false, 0);
	if (facts->now_ns >= balance->spare_until_ns)
		begin_spare(balance, facts);
}

/* Giving back: the shares of others */

/* Tells whether a partition whose lease is over stays because its slots are in use. */
static bool is_held_up(const struct facts *facts, uint32_t gone)
{
	uint32_t slots = slots_left(facts, gone);

	for (uint32_t i = gone; i < facts->piece_count; i++) {
		const struct piece *piece = &facts->pieces[i];

		if (piece->age_ns >= facts->lease_ns &&
		    (piece->is_numbered || is_in_use(facts, piece, slots)))
			return true;
	}
	return false;
}

/* Returns the age at which a turn is over: longer while a large take is being saved up. */
static uint64_t turn_ns(const struct facts *facts)
{
	return facts->saves_up ? facts->lease_ns + facts->lease_ns / SAVING_PARTS : facts->lease_ns;
}

/* Tells whether every lease is so old that the one which came with this host's turn is, too. */
static bool is_turn_over(const struct facts *facts, uint32_t gone)
{
	uint64_t long_ns = turn_ns(facts);

	for (uint32_t i = gone; i < facts->piece_count; i++) {
		if (facts->pieces[i].age_ns < long_ns)
			return false;
	}
	return true;
}

/* Tells whether a host that went to the end of the line would have to give up one of @kept. */
static bool takes_turns(const struct balance *balance, uint32_t kept)
{
	return balance->share.starving && kept > balance->share.target_behind;
}

/*
 * Gives back what is above this host's share: all whose lease is over, and a part of the excess at
 * least, of what is no longer young. A host at its share whose turn is over gives back one.
 */
static uint32_t give_contended(const struct balance *balance, const struct facts *facts,
			       uint32_t kept, struct decision *decision)
{
	uint32_t excess = kept > balance->share.target ? kept - balance->share.target : 0;
	uint32_t part = (excess + EXCESS_PARTS - 1) / EXCESS_PARTS, given;

	if (excess) {
		given = give(facts, decision, excess, true, facts->lease_ns);
		if (given < part)
			given += give(facts, decision, part - given, true,
				      facts->lease_ns / YOUNG_PARTS);
		return given;
	}
	if (!takes_turns(balance, kept) || !is_turn_over(facts, decision->gives))
		return 0;
	given = give(facts, decision, 1, true, 0);
	decision->turn_ends = given;
	return given;
}

/* Makes way for hosts that have less than their share. */
static void make_way(struct balance *balance, const struct facts *facts, uint32_t kept,
		     struct decision *decision)
{
	bool above = kept > balance->share.target, has_to = above || takes_turns(balance, kept);

	if (!has_target(balance) || !has_to)
		decision->yields = UINT32_MAX;
	if (!has_target(balance) || facts->now_ns < balance->give_ns)
		return;
	/* Fewer slots are opened, so that a partition comes free to be given back. */
	if (has_to && is_held_up(facts, decision->gives))
		decision->yields = above ? balance->share.target : kept - 1;
	if (!give_contended(balance, facts, kept, decision))
		return;
	decision->yields = UINT32_MAX;
	balance->give_ns = facts->now_ns + facts->renewal_ns;
}

bool balance_may_give(const struct balance *balance, const struct facts *facts)
{
	return facts->kept > facts->wanted || has_target(balance);
}

void balance_decide(struct balance *balance, const struct facts *facts, struct decision *decision)
{
	*decision = (struct decision){.yields = facts->yields};
	/* Without a connection nothing can go back, and what is wanted shows afterwards. */
	if (facts->is_connected && !facts->is_removed && facts->is_leased)
		give_unwanted(balance, facts, decision);
	if (!facts->is_ready || facts->is_leaving)
		return;
	make_way(balance, facts, facts->kept - decision->gives, decision);
	if (!facts->wanted)
		balance_end_contention(balance);
	choose_look(balance, facts, facts->kept - decision->gives, decision);
}

/* Claims */

void balance_end_contention(struct balance *balance)
{
	balance->share = (struct share){.target = UINT32_MAX};
}

void balance_forget(struct balance *balance)
{
	balance->look_ns = 0;
	balance->share.target = UINT32_MAX;
}

uint32_t balance_lack(const struct balance *balance, uint32_t wanted, uint32_t kept)
{
	uint32_t limit = wanted < balance->share.target ? wanted : balance->share.target;

	return limit > kept ? limit - kept : 0;
}

/*
 * Tells whether a claim of @wanted could change a share: else it lost its place for nothing. With
 * more hosts than partitions, a host that has 0 or 1 gains nothing by claiming more.
 */
static bool changes_share(const struct balance *balance, const struct facts *facts, uint32_t wanted)
{
	uint32_t less = wanted < facts->claimed ? wanted : facts->claimed;

	return balance->share.target >= less &&
	       !(balance->share.starving && balance->share.target <= 1);
}

bool balance_claims(const struct balance *balance, const struct facts *facts, uint32_t *claim)
{
	bool wants = !facts->is_removed && (facts->is_unmet || balance->share.contended);
	uint32_t now = facts->claimed, wanted = wants ? facts->wanted : 0;
	uint32_t more = wanted > now ? wanted - now : now - wanted;

	*claim = wanted;
	if (facts->is_leaving || facts->claim_is_lost)
		return false;
	if (!now)
		return wanted && facts->now_ns >= facts->claim_room_ns;
	if (facts->now_ns < facts->claim_at_ns)
		return false;
	return !wanted || facts->claims_anew || facts->parts_differ ||
	       (changes_share(balance, facts, wanted) &&
		(uint64_t)more * 100 > (uint64_t)now * HYSTERESIS_PERCENT);
}

void balance_weigh(struct balance *balance, const struct claim_line *line, uint32_t wanted,
		   uint32_t capacity)
{
	balance->share = share_weigh(line, wanted, capacity);
}
