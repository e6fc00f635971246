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
	share_divide(facts->others, facts->other_count + 1, KEY_LEAVES);
	for (own = facts->others; own->sequence != UINT64_MAX;)
		own++;
	return own->gets;
}

static bool is_worth(uint32_t leaves, uint32_t kept)
{
	return leaves >= KEY_STEP || (leaves && !kept);
}

static void decide_idle(const struct key_facts *facts, struct key_decision *decision)
{
	if (facts->other_count && (facts->claims || !facts->is_first))
		decision->gives = facts->kept;
	else if (facts->kept)
		decision->takes = facts->free;
	decision->ends = !facts->other_count && facts->kept == KEY_LEAVES;
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
	if (due <= facts->kept) {
		if (facts->claims && facts->kept - due >= KEY_STEP)
			decision->gives = facts->kept - due;
		return;
	}
	lacks = due - facts->kept;
	if (!is_worth(lacks, facts->kept)) {
		decision->claim = facts->claimed ? wanted : 0;
		return;
	}
	decision->takes = lacks < facts->free ? lacks : facts->free;
	if (lacks > facts->free)
		decision->claim = wanted;
}
