/* key_portion - how many leaves of a key this host takes, gives back and claims: key_portion.h. */
#include "core/fleet/key_portion.h"

static const double SLACK = 1.25;

static uint32_t wanted_leaves(const struct key_facts *facts)
{
	double leaves;

	if (facts->idle || facts->leaf <= 0)
		return 0;
	leaves = facts->asked * SLACK / facts->leaf;
	if (facts->missed || leaves >= KEY_LEAVES - 1)
		return KEY_LEAVES;
	return (uint32_t)leaves + 1;
}

/* Returns what this host gets of all leaves if it wants @wanted. */
static uint32_t leaves_due(const struct key_facts *facts, uint32_t wanted)
{
	struct claim *own = &facts->others[facts->other_count];

	*own = (struct claim){.wanted = wanted, .weight = 1, .sequence = UINT64_MAX};
	division_plain(facts->others, facts->other_count + 1, KEY_LEAVES);
	for (own = facts->others; own->sequence != UINT64_MAX;)
		own++;
	return own->gets;
}

static void decide_idle(const struct key_facts *facts, struct key_decision *decision)
{
	if (facts->other_count && (facts->claims || !facts->is_first))
		decision->gives = facts->kept;
	else if (facts->kept || (facts->stray && !facts->other_count))
		decision->takes = facts->free;
	decision->ends = !facts->other_count && facts->kept == KEY_LEAVES;
}

/* Returns what is to be claimed: about as much as before stays as it is. */
static uint32_t claim_of(const struct key_facts *facts, uint32_t wanted)
{
	uint32_t claimed = facts->claimed;

	return claimed && claimed + KEY_STEP > wanted && claimed < wanted + KEY_STEP ? claimed
										     : wanted;
}

void key_portion_decide(const struct key_facts *facts, struct key_decision *decision)
{
	uint32_t wanted = wanted_leaves(facts), due, lacks;

	*decision = (struct key_decision){0};
	if (!wanted) {
		decide_idle(facts, decision);
		return;
	}
	due = leaves_due(facts, wanted);
	if (facts->claims && facts->kept >= due + KEY_SPARE) {
		decision->gives = facts->kept - due;
		return;
	}
	lacks = wanted > facts->kept ? wanted - facts->kept : 0;
	if (!lacks || (lacks < KEY_STEP && facts->kept && !facts->claimed))
		return;
	if (due > facts->kept)
		decision->takes = due - facts->kept < facts->free ? due - facts->kept : facts->free;
	/* A holder may need less than it has. */
	if (lacks > decision->takes && facts->other_count)
		decision->claim = claim_of(facts, wanted);
}
