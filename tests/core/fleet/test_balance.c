/* Tests of balance: facts of a limiter, and what follows from them. Each row is a sentence. */
#include "core/fleet/balance.h"
#include "core/values/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { PIECES_MAX = 5 };

#define MS UINT64_C(1000000)
#define S  (1000 * MS)

/* The rows' time, R, and a lease, if they tell no other. */
#define NOW   (1000 * S)
#define R     (1500 * MS)
#define LEASE (30 * S)

#define NONE UINT32_MAX

/* A piece that has been of use; such with slots. */
#define AGED(age)                                  \
	{                                          \
		.age_ns = (age), .is_of_use = true \
	}
#define SLOTS(age, count)                                            \
	{                                                            \
		.age_ns = (age), .is_of_use = true, .slots = (count) \
	}

/* All together claim more than there is, and this host's share is @is. */
#define SHARE(is) .balance.share = {.contended = true, .target = (is)}
/* There are more hosts than partitions: its share is @is, and at the end of the line @behind. */
#define TURNS(is, behind)  \
	.balance.share = { \
		.contended = true, .starving = true, .target = (is), .target_behind = (behind)}

/*
 * Facts, beside those that hold of all rows; the memory, in which a share that is not contended has
 * no target; and the decision.
 */
struct row {
	const char *sentence;
	bool offline, joining; /* this host has no connection; has not joined */
	bool unleased;	       /* the limiter needs no leases */
	uint32_t waiting;      /* kept beside the pieces */
	struct facts facts;
	struct piece pieces[PIECES_MAX]; /* those without an age are not there */
	struct balance balance;
	struct decision decision;  /* its @yields: 0 for all */
	uint32_t goes[PIECES_MAX]; /* indexes of those that are given back, in order */
};

/* The next look is later; and the last one left much free. */
#define LATER  .balance.look_ns = NOW + R
#define PLENTY .balance.look_ns = NOW + R, .balance.left_free = 10

static const struct row ROWS[] = {
	/* Partitions that are not wanted. */
	{
		"partitions that are wanted stay",
		.facts = {.wanted = 2, .has_claimants = true},
		.pieces = {AGED(40 * S), AGED(40 * S)},
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a partition that is not wanted any more is kept for a while where there is plenty",
		.facts = {.wanted = 1},
		.pieces = {AGED(S), AGED(S)},
		PLENTY,
		.decision = {.is_met = true, .spare_begins = true},
	},
	{
		"the while does not begin anew at each look",
		.facts = {.wanted = 1},
		.pieces = {AGED(S), AGED(S)},
		PLENTY,
		.balance.has_spare = true,
		.balance.spare_until_ns = NOW + 1,
		.decision = {.is_met = true},
	},
	{
		"after a while as many stay as were wanted meanwhile",
		.facts = {.wanted = 1},
		.pieces = {AGED(4 * S), AGED(3 * S), AGED(2 * S), AGED(S)},
		PLENTY,
		.balance.has_spare = true,
		.balance.spare_until_ns = NOW,
		.balance.spare_wanted = 2,
		.decision = {.is_met = true, .gives = 2},
		.goes = {3, 2},
	},
	{
		"after a while no fewer stay than are wanted now",
		.facts = {.wanted = 3},
		.pieces = {AGED(4 * S), AGED(3 * S), AGED(2 * S), AGED(S)},
		PLENTY,
		.balance.has_spare = true,
		.balance.spare_until_ns = NOW,
		.balance.spare_wanted = 2,
		.decision = {.is_met = true, .gives = 1},
		.goes = {3},
	},
	{
		"partitions that are not wanted go at once where others claim some",
		.facts = {.wanted = 1, .has_claimants = true},
		.pieces = {AGED(3 * S), AGED(2 * S), AGED(S)},
		PLENTY,
		.decision = {.is_met = true, .spare_begins = true, .gives = 2},
		.goes = {2, 1},
	},
	{
		"partitions that are not wanted go at once where the host has many leases",
		.facts = {.wanted = 1, .has_little_room = true},
		.pieces = {AGED(3 * S), AGED(2 * S)},
		PLENTY,
		.decision = {.is_met = true, .spare_begins = true, .gives = 1},
		.goes = {1},
	},
	{
		"partitions that are not wanted go at once where little is free",
		.facts = {.wanted = 2},
		.pieces = {AGED(3 * S), AGED(2 * S), AGED(S)},
		LATER,
		.balance.left_free = 2,
		.decision = {.is_met = true, .spare_begins = true, .gives = 1},
		.goes = {2},
	},
	{
		"the last one is kept for a while also where little is free",
		.facts = {.wanted = 0},
		.pieces = {AGED(3 * S), AGED(2 * S)},
		LATER,
		.decision = {.is_met = true, .spare_begins = true, .gives = 1},
		.goes = {1},
	},
	{
		"the last one goes after a while where little is free",
		.facts = {.wanted = 0},
		.pieces = {AGED(3 * S)},
		LATER,
		.balance.has_spare = true,
		.balance.spare_until_ns = NOW,
		.decision = {.is_met = true, .gives = 1},
		.goes = {0},
	},
	{
		"claims are looked for soon while the last one is kept where little is free",
		.facts = {.wanted = 0},
		.pieces = {AGED(3 * S)},
		.balance.look_ns = NOW + 10 * S,
		.decision = {.is_met = true, .spare_begins = true, .look_in_ns = R},
	},
	{
		"a look that comes soon is not put off while the last one is kept",
		.facts = {.wanted = 0},
		.pieces = {AGED(3 * S)},
		.balance.look_ns = NOW + R + R / 4,
		.decision = {.is_met = true, .spare_begins = true},
	},
	{
		"no look is sooner for the last one where there is plenty",
		.facts = {.wanted = 0},
		.pieces = {AGED(3 * S)},
		.balance.left_free = 10,
		.balance.look_ns = NOW + 10 * S,
		.decision = {.is_met = true, .spare_begins = true},
	},
	{
		"a limiter that saves up tokens keeps what it has",
		.facts = {.wanted = 0, .saves = true},
		.pieces = {AGED(3 * S)},
		LATER,
		.balance.has_spare = true,
		.decision = {.is_met = true},
	},
	{
		"tokens are not saved up where others claim some",
		.facts = {.wanted = 0, .saves = true, .has_claimants = true},
		.pieces = {AGED(3 * S)},
		LATER,
		.balance.has_spare = true,
		.decision = {.is_met = true, .gives = 1},
		.goes = {0},
	},
	{
		"tokens that are saved up keep nothing while some are used",
		.facts = {.wanted = 1, .saves = true},
		.pieces = {AGED(3 * S), AGED(2 * S)},
		LATER,
		.balance.has_spare = true,
		.decision = {.is_met = true, .gives = 1},
		.goes = {1},
	},
	{
		"a partition that waits for its quarantine is not given back",
		.facts = {.wanted = 1, .has_claimants = true},
		.pieces = {AGED(3 * S)},
		.waiting = 2,
		LATER,
		.decision = {.is_met = true, .spare_begins = true},
	},
	{
		"of all that came at one time the last goes first",
		.facts = {.wanted = 2, .has_claimants = true},
		.pieces = {AGED(S), AGED(2 * S), AGED(S), AGED(S)},
		LATER,
		.decision = {.is_met = true, .spare_begins = true, .gives = 2},
		.goes = {3, 2},
	},
	{
		"a partition whose own tokens are read stays",
		.facts = {.wanted = 1, .has_claimants = true},
		.pieces = {AGED(2 * S), {.age_ns = S, .is_of_use = true, .is_read = true}},
		LATER,
		.decision = {.is_met = true, .spare_begins = true, .gives = 1},
		.goes = {0},
	},
	{
		"a partition goes that was of no use",
		.facts = {.wanted = 0, .has_claimants = true},
		.pieces = {{.age_ns = S}},
		LATER,
		.decision = {.is_met = true, .spare_begins = true, .gives = 1},
		.goes = {0},
	},
	{
		"as many go as leave the slots that are open",
		.facts = {.wanted = 0, .has_claimants = true, .slots_used = 2},
		.pieces = {SLOTS(3 * S, 2), SLOTS(2 * S, 2), SLOTS(S, 2)},
		LATER,
		.decision = {.is_met = true, .spare_begins = true, .gives = 2},
		.goes = {2, 1},
	},
	{
		"a smaller partition goes if the slots of a larger one are in use",
		.facts = {.wanted = 1, .has_claimants = true, .slots_used = 3},
		.pieces = {SLOTS(2 * S, 1), SLOTS(S, 3)},
		LATER,
		.decision = {.is_met = true, .spare_begins = true, .gives = 1},
		.goes = {0},
	},
	{
		"without a connection nothing is given back",
		.offline = true,
		.facts = {.wanted = 0, .has_claimants = true},
		.pieces = {AGED(S)},
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a limiter that needs no leases has no spare",
		.unleased = true,
		.facts = {.wanted = 0, .has_claimants = true},
		.pieces = {AGED(S)},
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a limiter that is gone has no spare",
		.facts = {.wanted = 0, .has_claimants = true, .is_removed = true},
		.pieces = {AGED(S)},
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a host that has not joined yet gives back what is not wanted",
		.joining = true,
		.facts = {.wanted = 0, .has_claimants = true},
		.pieces = {AGED(S)},
		.decision = {.spare_begins = true, .gives = 1},
		.goes = {0},
	},

	/* The shares of others. */
	{
		"a host at its share keeps it",
		.facts = {.wanted = 9},
		.pieces = {AGED(40 * S), AGED(40 * S)},
		SHARE(2),
		LATER,
	},
	{
		"above its share a host gives back all whose lease is over, the oldest first",
		.facts = {.wanted = 9},
		.pieces = {AGED(LEASE), AGED(40 * S), AGED(31 * S), AGED(10 * S)},
		SHARE(1),
		LATER,
		.decision = {.gives = 3},
		.goes = {1, 2, 0},
	},
	{
		"no more goes than is above the share",
		.facts = {.wanted = 9},
		.pieces = {AGED(40 * S), AGED(41 * S), AGED(42 * S)},
		SHARE(2),
		LATER,
		.decision = {.gives = 1},
		.goes = {2},
	},
	{
		"before the lease is over a quarter of the excess goes",
		.facts = {.wanted = 9},
		.pieces = {AGED(10 * S), AGED(10 * S), AGED(10 * S), AGED(10 * S)},
		SHARE(0),
		LATER,
		.decision = {.gives = 1},
		.goes = {0},
	},
	{
		"a part of a quarter is one more",
		.facts = {.wanted = 9},
		.pieces = {AGED(11 * S), AGED(12 * S), AGED(13 * S), AGED(14 * S), AGED(15 * S)},
		SHARE(0),
		LATER,
		.decision = {.gives = 2},
		.goes = {4, 3},
	},
	{
		"leases that are over count for the quarter of the excess",
		.facts = {.wanted = 9},
		.pieces = {AGED(40 * S), AGED(12 * S), AGED(12 * S), AGED(12 * S)},
		SHARE(0),
		LATER,
		.decision = {.gives = 1},
		.goes = {0},
	},
	{
		"a lease that is over and one that is not are a part of the excess together",
		.facts = {.wanted = 9},
		.pieces = {AGED(12 * S), AGED(40 * S), AGED(12 * S), AGED(12 * S), AGED(12 * S)},
		SHARE(0),
		LATER,
		.decision = {.gives = 2},
		.goes = {1, 0},
	},
	{
		"nothing younger than a third of a lease goes",
		.facts = {.wanted = 9},
		.pieces = {AGED(10 * S - 1), AGED(5 * S)},
		SHARE(0),
		LATER,
	},
	{
		"a partition that has been of no use yet stays under contention",
		.facts = {.wanted = 9},
		.pieces = {{.age_ns = 40 * S}, AGED(35 * S)},
		SHARE(0),
		LATER,
		.decision = {.gives = 1},
		.goes = {1},
	},
	{
		"under contention nothing goes for a while after the last that went",
		.facts = {.wanted = 9},
		.pieces = {AGED(40 * S)},
		SHARE(0),
		LATER,
		.balance.give_ns = NOW + 1,
	},
	{
		"partitions that go as not wanted are not given to others again",
		.facts = {.wanted = 2, .has_claimants = true},
		.pieces = {AGED(40 * S), AGED(35 * S), AGED(S)},
		SHARE(1),
		LATER,
		.decision = {.spare_begins = true, .gives = 2},
		.goes = {2, 0},
	},
	{
		"a host that has not joined gives nothing to others",
		.joining = true,
		.facts = {.wanted = 9},
		.pieces = {AGED(40 * S)},
		SHARE(0),
	},
	{
		"a host that leaves has given back all anyway",
		.facts = {.wanted = 9, .is_leaving = true},
		.pieces = {AGED(40 * S)},
		SHARE(0),
	},

	/* Turns. */
	{
		"with more hosts than partitions a host gives back one when its turn is over",
		.facts = {.wanted = 1},
		.pieces = {AGED(LEASE)},
		TURNS(1, 0),
		LATER,
		.decision = {.gives = 1, .turn_ends = true},
		.goes = {0},
	},
	{
		"a turn is a lease long",
		.facts = {.wanted = 1},
		.pieces = {AGED(LEASE - 1)},
		TURNS(1, 0),
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a turn is over when the newest lease is",
		.facts = {.wanted = 2},
		.pieces = {AGED(40 * S), AGED(LEASE - 1)},
		TURNS(2, 1),
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a share that stays at the end of the line is not part of the turn",
		.facts = {.wanted = 1},
		.pieces = {AGED(40 * S)},
		TURNS(1, 1),
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a turn ends with one partition, not with all",
		.facts = {.wanted = 2},
		.pieces = {AGED(40 * S), AGED(41 * S)},
		TURNS(2, 0),
		LATER,
		.decision = {.gives = 1, .turn_ends = true},
		.goes = {1},
	},
	{
		"without hosts that have nothing there are no turns",
		.facts = {.wanted = 1},
		.pieces = {AGED(40 * S)},
		SHARE(1),
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a turn is an eighth longer while a large take is saved up",
		.facts = {.wanted = 1, .saves_up = true},
		.pieces = {AGED(LEASE + LEASE / 8 - 1)},
		TURNS(1, 0),
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a turn is not longer than that for a large take",
		.facts = {.wanted = 1, .saves_up = true},
		.pieces = {AGED(LEASE + LEASE / 8)},
		TURNS(1, 0),
		LATER,
		.decision = {.gives = 1, .turn_ends = true},
		.goes = {0},
	},
	{
		"a host above its share does not go to the end of the line",
		.facts = {.wanted = 2},
		.pieces = {AGED(40 * S), AGED(40 * S)},
		TURNS(1, 0),
		LATER,
		.decision = {.gives = 1},
		.goes = {0},
	},
	{
		"a turn does not end with nothing to give",
		.facts = {.wanted = 1},
		.pieces = {{.age_ns = 40 * S}},
		TURNS(1, 0),
		LATER,
		.decision = {.is_met = true},
	},

	/* Slots that others wait for. */
	{
		"above its share a host opens no more slots than of it, while they hold a lease up",
		.facts = {.wanted = 9, .slots_used = 3},
		.pieces = {SLOTS(40 * S, 1), SLOTS(40 * S, 1), SLOTS(40 * S, 1)},
		SHARE(1),
		LATER,
		.decision = {.yields = 1},
	},
	{
		"at the end of its turn a host opens slots of one partition less",
		.facts = {.wanted = 2, .slots_used = 2},
		.pieces = {SLOTS(40 * S, 1), SLOTS(40 * S, 1)},
		TURNS(2, 0),
		LATER,
		.decision = {.is_met = true, .yields = 1},
	},
	{
		"slots are opened until the lease is over",
		.facts = {.wanted = 9, .slots_used = 2},
		.pieces = {SLOTS(LEASE - 1, 1), SLOTS(LEASE - 1, 1)},
		SHARE(1),
		LATER,
	},
	{
		"slots are opened again when a partition has come free",
		.facts = {.wanted = 9, .slots_used = 1, .yields = 1},
		.pieces = {SLOTS(40 * S, 1), SLOTS(40 * S, 1)},
		SHARE(1),
		LATER,
		.decision = {.gives = 1},
		.goes = {0},
	},
	{
		"slots are opened again by a host that is at its share",
		.facts = {.wanted = 9, .slots_used = 1, .yields = 1},
		.pieces = {SLOTS(40 * S, 1)},
		SHARE(1),
		LATER,
	},
	{
		"slots are opened again where others claim no more than there is",
		.facts = {.wanted = 1, .slots_used = 1, .yields = 1},
		.pieces = {SLOTS(40 * S, 1)},
		LATER,
		.decision = {.is_met = true},
	},
	{
		"slots stay closed until what others are to have can go",
		.facts = {.wanted = 9, .slots_used = 1, .yields = 1},
		.pieces = {SLOTS(40 * S, 1), SLOTS(40 * S, 1)},
		SHARE(1),
		LATER,
		.balance.give_ns = NOW + 1,
		.decision = {.yields = 1},
	},

	/* Looks for more. */
	{
		"a host that begins to lack some looks at once",
		.facts = {.wanted = 2},
		.pieces = {AGED(S)},
		LATER,
		.decision = {.looks = true},
	},
	{
		"after a vain look a host waits",
		.facts = {.wanted = 2},
		.pieces = {AGED(S)},
		LATER,
		.balance.is_lacking = true,
	},
	{
		"after a vain look a host looks again in time",
		.facts = {.wanted = 2},
		.pieces = {AGED(S)},
		.balance.look_ns = NOW,
		.balance.is_lacking = true,
		.decision = {.looks = true},
	},
	{
		"where all want more than there is a host does not look at once",
		.facts = {.wanted = 2},
		.pieces = {AGED(S)},
		SHARE(1),
		LATER,
	},
	{
		"a host looks at once for a partition whose own tokens are read",
		.facts = {.wanted = 1, .misses_read = true},
		.pieces = {AGED(S)},
		LATER,
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host looks at once for one of the reserve",
		.facts = {.wanted = 0, .lacks_reserve = true},
		LATER,
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host looks at once for one of the reserve only once",
		.facts = {.wanted = 0, .lacks_reserve = true},
		LATER,
		.balance.seeks_reserve = true,
		.decision = {.is_met = true},
	},
	{
		"a host looks for one of the reserve in time",
		.facts = {.wanted = 0, .lacks_reserve = true},
		.balance.look_ns = NOW,
		.balance.seeks_reserve = true,
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host that has what it wants looks for claims of others in time",
		.facts = {.wanted = 1, .has_leases = true},
		.pieces = {AGED(S)},
		.balance.look_ns = NOW,
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host that has what it wants looks when it is told of other claims",
		.facts = {.wanted = 1, .has_leases = true, .claims_have_changed = true},
		.pieces = {AGED(S)},
		.balance.look_ns = NEVER_NS,
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host that looks soon anyway is not hurried by other claims",
		.facts = {.wanted = 1, .has_leases = true, .claims_have_changed = true},
		.pieces = {AGED(S)},
		LATER,
		.decision = {.is_met = true},
	},
	{
		"a host looks for its share while it has a claim",
		.facts = {.wanted = 0, .claimed = 1},
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host looks for the claim that it may have",
		.facts = {.wanted = 0, .claim_is_lost = true},
		.decision = {.is_met = true, .looks = true},
	},
	{
		"a host that has and wants nothing does not look",
		.facts = {.wanted = 0},
		.decision = {.is_met = true},
	},
	{
		"one look is under way at a time",
		.facts = {.wanted = 1, .is_looking = true},
	},
	{
		"nothing is looked for of a limiter that is gone",
		.facts = {.wanted = 1, .is_removed = true},
	},
	{
		"nothing is looked for of a limiter that needs no leases",
		.unleased = true,
		.facts = {.wanted = 1},
	},
	{
		"a host that has not joined looks for nothing",
		.joining = true,
		.facts = {.wanted = 1},
	},
	{
		"a host that leaves looks for nothing",
		.facts = {.wanted = 1, .is_leaving = true},
	},
};

/* Completes the facts of @row, whose pieces are copied to @pieces. */
static struct facts facts_of(const struct row *row, struct piece *pieces)
{
	struct facts facts = row->facts;

	memcpy(pieces, row->pieces, sizeof(row->pieces));
	facts.now_ns = NOW;
	facts.renewal_ns = R;
	facts.lease_ns = LEASE;
	facts.is_connected = !row->offline;
	facts.is_ready = !row->joining;
	facts.is_leased = !row->unleased;
	facts.yields = facts.yields ? facts.yields : UINT32_MAX;
	facts.pieces = pieces;
	while (facts.piece_count < PIECES_MAX && pieces[facts.piece_count].age_ns) {
		pieces[facts.piece_count].index = facts.piece_count;
		facts.piece_count++;
	}
	facts.held = facts.piece_count;
	facts.kept = facts.held + row->waiting;
	return facts;
}

static struct balance balance_of(const struct row *row)
{
	struct balance balance = row->balance;

	if (!balance.share.contended)
		balance.share.target = NONE;
	return balance;
}

static void decides(void **state)
{
	const struct row *row = *state;
	struct balance balance = balance_of(row);
	struct piece pieces[PIECES_MAX];
	struct facts facts = facts_of(row, pieces);
	struct decision decision;

	/* The facts of pieces are not gathered where they are not needed. */
	if (!balance_may_give(&balance, &facts))
		facts.piece_count = facts.slots_used = 0;
	balance_decide(&balance, &facts, &decision);
	assert_int_equal(decision.gives, row->decision.gives);
	for (uint32_t i = 0; i < decision.gives; i++)
		assert_int_equal(pieces[i].index, row->goes[i]);
	assert_int_equal(decision.yields, row->decision.yields ? row->decision.yields : UINT32_MAX);
	assert_int_equal(decision.spare_begins, row->decision.spare_begins);
	assert_int_equal(decision.turn_ends, row->decision.turn_ends);
	assert_int_equal(decision.is_met, row->decision.is_met);
	assert_int_equal(decision.looks, row->decision.looks);
	assert_int_equal(decision.look_in_ns, row->decision.look_in_ns);
}

/* The next look, after one that left nothing free. */
struct looked {
	const char *sentence;
	struct facts facts;
	struct balance balance;
	bool reserves_gone, lacks;
	uint32_t left_free;
	uint64_t in_ns;
};

static const struct looked LOOKED[] = {
	{
		"a host that did not find enough looks again after R",
		.facts = {.wanted = 2, .kept = 1, .has_leases = true},
		.lacks = true,
		.in_ns = R,
	},
	{
		"a host that did not find the partition whose tokens are read looks again after R",
		.facts = {.wanted = 1, .kept = 1, .has_leases = true, .misses_read = true},
		.lacks = true,
		.in_ns = R,
	},
	{
		"a host looks again after R where all want more than there is",
		.facts = {.wanted = 1, .kept = 1, .has_leases = true},
		.balance.share.contended = true,
		.in_ns = R,
	},
	{
		"a host that has a claim looks again after R",
		.facts = {.wanted = 1, .kept = 1, .has_leases = true, .claimed = 1},
		.in_ns = R,
	},
	{
		"a host that keeps the last one where little is free looks again after R",
		.facts = {.wanted = 0, .kept = 2, .has_leases = true},
		.left_free = 1,
		.in_ns = R,
	},
	{
		"a host that keeps what it does not want where there is plenty looks seldom",
		.facts = {.wanted = 0, .kept = 2, .has_leases = true},
		.left_free = 2,
		.in_ns = LEASE / 3,
	},
	{
		"a host that found no reserve looks again after R",
		.facts = {.lacks_reserve = true},
		.in_ns = R,
	},
	{
		"a host looks seldom for a reserve of which all are leased",
		.facts = {.lacks_reserve = true},
		.reserves_gone = true,
		.in_ns = 60 * S,
	},
	{
		"a host that has what it wants looks each third of a lease",
		.facts = {.wanted = 1, .kept = 1, .has_leases = true},
		.in_ns = LEASE / 3,
	},
	{
		"a host that has what it wants and is told of claims does not look",
		.facts = {.wanted = 1, .kept = 1, .has_leases = true, .claims_are_watched = true},
		.in_ns = NEVER_NS,
	},
	{
		"a host that keeps the last one and is told of claims does not look",
		.facts = {.wanted = 0, .kept = 2, .has_leases = true, .claims_are_watched = true},
		.left_free = 1,
		.in_ns = NEVER_NS,
	},
	{
		"a host that was told of claims while it looked looks again",
		.facts = {.wanted = 1, .kept = 1, .has_leases = true, .claims_have_changed = true},
		.in_ns = 0,
	},
	{
		"a host that is told of claims looks for a reserve all the same",
		.facts = {.lacks_reserve = true, .has_leases = true, .claims_are_watched = true},
		.reserves_gone = true,
		.in_ns = LEASE / 3,
	},
	{
		"a host that may have a claim looks each third of a lease",
		.facts = {.claim_is_lost = true},
		.in_ns = LEASE / 3,
	},
	{
		"a host that has and wants nothing looks each minute at most",
		.in_ns = 60 * S,
	},
};

static void looks_again(void **state)
{
	const struct looked *row = *state;
	struct balance balance = row->balance;
	struct facts facts = row->facts;

	facts.now_ns = NOW;
	facts.renewal_ns = R;
	facts.lease_ns = LEASE;
	assert_int_equal(balance_looked(&balance, &facts, row->left_free, row->reserves_gone),
			 row->in_ns);
	assert_int_equal(balance.is_lacking, row->lacks);
}

/* Facts, and the claim that follows if there is another now. */
struct claims {
	const char *sentence;
	struct facts facts;
	struct balance balance; /* as in struct row */
	bool now;
	uint32_t claim;
};

static const struct claims CLAIMS[] = {
	{
		"a host that did not find enough claims what it wants",
		.facts = {.wanted = 3, .is_unmet = true},
		.now = true,
		.claim = 3,
	},
	{
		"a host that has what it wants claims nothing",
		.facts = {.wanted = 3},
	},
	{
		"a host that holds what others claim joins the claimants",
		.facts = {.wanted = 3},
		SHARE(NONE),
		.now = true,
		.claim = 3,
	},
	{
		"a host without room for a claim makes none",
		.facts = {.wanted = 3, .is_unmet = true, .claim_room_ns = NOW + 1},
		.claim = 3,
	},
	{
		"a host without room for another claim changes the one that it has",
		.facts = {.wanted = 3, .is_unmet = true, .claimed = 1, .claim_room_ns = NOW + 1},
		.now = true,
		.claim = 3,
	},
	{
		"a claim is deleted when nothing is lacking",
		.facts = {.wanted = 3, .claimed = 3},
		.now = true,
	},
	{
		"a claim is deleted with its limiter",
		.facts = {.wanted = 3, .claimed = 3, .is_unmet = true, .is_removed = true},
		.now = true,
	},
	{
		"a claim is not changed so soon",
		.facts = {.wanted = 9, .claimed = 3, .is_unmet = true, .claim_at_ns = NOW + 1},
		.claim = 9,
	},
	{
		"a claim is not changed by a fifth",
		.facts = {.wanted = 12, .claimed = 10, .is_unmet = true},
		.claim = 12,
	},
	{
		"a claim is changed by more than a fifth",
		.facts = {.wanted = 13, .claimed = 10, .is_unmet = true},
		.now = true,
		.claim = 13,
	},
	{
		"less is claimed by more than a fifth, too",
		.facts = {.wanted = 7, .claimed = 10, .is_unmet = true},
		.now = true,
		.claim = 7,
	},
	{
		"a claim of more than the share keeps its place",
		.facts = {.wanted = 9, .claimed = 3},
		SHARE(2),
		.claim = 9,
	},
	{
		"a claim is changed to less than the share",
		.facts = {.wanted = 2, .claimed = 9},
		SHARE(2),
		.now = true,
		.claim = 2,
	},
	{
		"a claim that changes a share of one is changed while each host has something",
		.facts = {.wanted = 9, .claimed = 1},
		SHARE(1),
		.now = true,
		.claim = 9,
	},
	{
		"with more hosts than partitions a claim of nothing is deleted",
		.facts = {.wanted = 0, .claimed = 1},
		TURNS(1, 0),
		.now = true,
	},
	{
		"with more hosts than partitions a claim of one keeps its place",
		.facts = {.wanted = 9, .claimed = 1},
		TURNS(1, 0),
		.claim = 9,
	},
	{
		"with more hosts than partitions a claim of more than one is changed",
		.facts = {.wanted = 9, .claimed = 2},
		TURNS(2, 0),
		.now = true,
		.claim = 9,
	},
	{
		"a claim is made anew at the end of a turn",
		.facts = {.wanted = 1, .claimed = 1, .claims_anew = true},
		TURNS(1, 0),
		.now = true,
		.claim = 1,
	},
	{
		"no claim is made before the one that may be there is found",
		.facts = {.wanted = 3, .is_unmet = true, .claim_is_lost = true},
		.claim = 3,
	},
	{
		"a host that leaves claims nothing",
		.facts = {.wanted = 3, .is_unmet = true, .is_leaving = true},
		.claim = 3,
	},
};

static void claims(void **state)
{
	const struct claims *row = *state;
	struct balance balance = row->balance;
	struct facts facts = row->facts;
	uint32_t claim;

	if (!balance.share.contended)
		balance.share.target = NONE;
	facts.now_ns = NOW;
	assert_int_equal(balance_claims(&balance, &facts, &claim), row->now);
	assert_int_equal(claim, row->claim);
}

/* The memory from one decision to the next. */

static struct facts facts_at(uint64_t now_ns, uint32_t wanted, struct piece *pieces, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		pieces[i] =
			(struct piece){.index = i, .age_ns = now_ns + 100 * S, .is_of_use = true};
	return (struct facts){
		.now_ns = now_ns,
		.renewal_ns = R,
		.lease_ns = LEASE,
		.is_connected = true,
		.is_ready = true,
		.is_leased = true,
		.wanted = wanted,
		.yields = UINT32_MAX,
		.held = count,
		.kept = count,
		.pieces = pieces,
		.piece_count = count,
	};
}

/* Returns how many of @kept go back at @now_ns. */
static uint32_t gives(struct balance *balance, uint64_t now_ns, uint64_t lease_ns, uint32_t wanted,
		      uint32_t kept)
{
	struct piece pieces[PIECES_MAX];
	struct facts facts = facts_at(now_ns, wanted, pieces, kept);
	struct decision decision;

	facts.lease_ns = lease_ns;
	balance_decide(balance, &facts, &decision);
	return decision.gives;
}

static struct balance nothing_known(void)
{
	return (struct balance){.share.target = NONE, .left_free = 10};
}

static void test_spare_is_kept_for_a_third_of_a_lease_and_no_longer_than_five_seconds(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	assert_int_equal(gives(&balance, 0, LEASE, 1, 3), 0);
	assert_int_equal(gives(&balance, 5 * S - 1, LEASE, 1, 3), 0);
	assert_int_equal(gives(&balance, 5 * S, LEASE, 1, 3), 2);
	balance = nothing_known();
	assert_int_equal(gives(&balance, 0, 3 * S, 1, 3), 0);
	assert_int_equal(gives(&balance, S - 1, 3 * S, 1, 3), 0);
	assert_int_equal(gives(&balance, S, 3 * S, 1, 3), 2);
}

static void test_the_most_that_was_wanted_in_that_time_stays(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	assert_int_equal(gives(&balance, 0, LEASE, 1, 4), 0);
	assert_int_equal(gives(&balance, S, LEASE, 3, 4), 0);
	assert_int_equal(gives(&balance, 2 * S, LEASE, 0, 4), 0);
	assert_int_equal(gives(&balance, 5 * S, LEASE, 0, 4), 1);
	assert_int_equal(gives(&balance, 10 * S - 1, LEASE, 1, 3), 0);
	assert_int_equal(gives(&balance, 10 * S, LEASE, 0, 3), 2);
}

static void test_the_time_begins_anew_when_all_was_wanted_again(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	assert_int_equal(gives(&balance, 0, LEASE, 1, 2), 0);
	assert_int_equal(gives(&balance, 4 * S, LEASE, 2, 2), 0);
	assert_int_equal(gives(&balance, 5 * S, LEASE, 1, 2), 0);
	assert_int_equal(gives(&balance, 10 * S, LEASE, 1, 2), 1);
}

static void test_spare_goes_when_another_host_has_come(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	assert_int_equal(gives(&balance, 0, LEASE, 1, 3), 0);
	balance_end_spare(&balance);
	assert_int_equal(gives(&balance, S, LEASE, 1, 3), 2);
}

static void test_under_contention_something_goes_each_r(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	balance.share = (struct share){.contended = true, .target = 0};
	assert_int_equal(gives(&balance, S, 1000 * S, 5, 5), 0);
	balance.share = (struct share){.contended = true, .target = 0};
	assert_int_equal(gives(&balance, S, 300 * S, 5, 5), 2);
	assert_int_equal(gives(&balance, S + R - 1, 300 * S, 5, 3), 0);
	assert_int_equal(gives(&balance, S + R, 300 * S, 5, 3), 1);
}

static void test_a_host_that_wants_nothing_has_no_share_to_keep_to(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	balance.share = (struct share){.contended = true, .starving = true, .target = 3};
	(void)gives(&balance, S, LEASE, 0, 0);
	assert_false(balance.share.contended || balance.share.starving);
	assert_int_equal(balance.share.target, NONE);
}

static void test_a_reserve_is_looked_for_at_once_when_a_host_has_gone(void **state)
{
	struct balance balance = nothing_known();
	struct facts facts = facts_at(S, 0, NULL, 0);
	struct decision decision;

	(void)state;
	facts.lacks_reserve = true;
	balance_decide(&balance, &facts, &decision);
	assert_true(decision.looks);
	balance.look_ns = S + balance_looked(&balance, &facts, 0, true);
	balance_decide(&balance, &facts, &decision);
	assert_false(decision.looks);
	balance_seek_reserve(&balance);
	balance_decide(&balance, &facts, &decision);
	assert_true(decision.looks);
	/* Where some were left the next look comes soon anyway. */
	balance.look_ns = S + balance_looked(&balance, &facts, 0, false);
	balance_seek_reserve(&balance);
	balance_decide(&balance, &facts, &decision);
	assert_false(decision.looks);
}

static void test_after_a_look_that_lacked_nothing_the_next_lack_is_looked_for_at_once(void **state)
{
	struct balance balance = nothing_known();
	struct piece pieces[PIECES_MAX];
	struct facts facts = facts_at(S, 2, pieces, 1);
	struct decision decision;

	(void)state;
	balance.look_ns = S + balance_looked(&balance, &facts, 0, false);
	balance_decide(&balance, &facts, &decision);
	assert_false(decision.looks);
	facts.wanted = 1;
	balance_decide(&balance, &facts, &decision);
	assert_false(decision.looks);
	facts.wanted = 2;
	balance_decide(&balance, &facts, &decision);
	assert_true(decision.looks);
}

static void test_a_host_that_is_woken_or_has_lost_its_session_looks_at_once(void **state)
{
	struct balance balance = nothing_known();
	struct piece pieces[PIECES_MAX];
	struct facts facts = facts_at(S, 2, pieces, 1);
	struct decision decision;

	(void)state;
	balance.is_lacking = true;
	balance.look_ns = 2 * S;
	balance_look_soon(&balance);
	balance_decide(&balance, &facts, &decision);
	assert_true(decision.looks);
	balance.look_ns = 2 * S;
	balance.share.target = 1;
	balance_forget(&balance);
	balance_decide(&balance, &facts, &decision);
	assert_true(decision.looks);
	assert_int_equal(balance_lack(&balance, 2, 1), 1);
}

static void test_a_host_takes_what_it_wants_and_no_more_than_its_share(void **state)
{
	struct balance balance = nothing_known();

	(void)state;
	assert_int_equal(balance_lack(&balance, 5, 2), 3);
	assert_int_equal(balance_lack(&balance, 2, 5), 0);
	balance.share = (struct share){.contended = true, .target = 3};
	assert_int_equal(balance_lack(&balance, 5, 2), 1);
	assert_int_equal(balance_lack(&balance, 5, 4), 0);
	assert_int_equal(balance_lack(&balance, 2, 1), 1);
}

enum {
	ROW_COUNT = sizeof(ROWS) / sizeof(ROWS[0]),
	LOOKED_COUNT = sizeof(LOOKED) / sizeof(LOOKED[0]),
	CLAIMS_COUNT = sizeof(CLAIMS) / sizeof(CLAIMS[0]),
};

/* A test of a row: cmocka gives it to the test without changing it. */
#define ROW_TEST(row, function)                                                                  \
	(struct CMUnitTest)                                                                      \
	{                                                                                        \
		.name = (row)->sentence, .test_func = (function), .initial_state = (void *)(row) \
	}

int main(void)
{
	struct CMUnitTest rows[ROW_COUNT + LOOKED_COUNT + CLAIMS_COUNT];
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_spare_is_kept_for_a_third_of_a_lease_and_no_longer_than_five_seconds),
		cmocka_unit_test(test_the_most_that_was_wanted_in_that_time_stays),
		cmocka_unit_test(test_the_time_begins_anew_when_all_was_wanted_again),
		cmocka_unit_test(test_spare_goes_when_another_host_has_come),
		cmocka_unit_test(test_under_contention_something_goes_each_r),
		cmocka_unit_test(test_a_host_that_wants_nothing_has_no_share_to_keep_to),
		cmocka_unit_test(test_a_reserve_is_looked_for_at_once_when_a_host_has_gone),
		cmocka_unit_test(
			test_after_a_look_that_lacked_nothing_the_next_lack_is_looked_for_at_once),
		cmocka_unit_test(test_a_host_that_is_woken_or_has_lost_its_session_looks_at_once),
		cmocka_unit_test(test_a_host_takes_what_it_wants_and_no_more_than_its_share),
	};
	size_t count = 0;
	int failed;

	for (size_t i = 0; i < ROW_COUNT; i++)
		rows[count++] = ROW_TEST(&ROWS[i], decides);
	for (size_t i = 0; i < LOOKED_COUNT; i++)
		rows[count++] = ROW_TEST(&LOOKED[i], looks_again);
	for (size_t i = 0; i < CLAIMS_COUNT; i++)
		rows[count++] = ROW_TEST(&CLAIMS[i], claims);
	failed = cmocka_run_group_tests_name("balance: rows", rows, NULL, NULL);
	return failed + cmocka_run_group_tests_name("balance", tests, NULL, NULL);
}
