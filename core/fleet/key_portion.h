/*
 * key_portion - how many leaves of a key this host takes, gives back and claims: a pure function of
 * facts, see keys.md.
 *
 * A host whose readers missed tokens of the key wants all leaves; else those for what was asked
 * for, and a quarter more. The leaves are divided among all hosts by share.h; a host without a
 * claim wants what it has. A host that lacks leaves claims as many as it wants for as long as
 * others have any. Steps that are too small to be worth a transaction are left out.
 *
 * An idle host ends the key if it is the only one that has some. If there are others, all but the
 * one with the first leaves give theirs back. So not all of them do that at once. A stray that no
 * host that lives has leaves of is taken, to be ended.
 */
#ifndef RATEFS_CORE_KEY_PORTION_H
#define RATEFS_CORE_KEY_PORTION_H

#include "core/fleet/share.h"
#include "core/values/settings.h"

/* Fewer leaves are not worth a transaction for a host that has some; that others claim of. */
enum { KEY_STEP = 5, KEY_SPARE = 2 };

/* Amounts are leaves. */
struct key_facts {
	double asked;  /* tokens a second that readers were granted of late */
	double leaf;   /* tokens a second that a leaf brings */
	bool missed;   /* readers missed some in the last second */
	bool idle;     /* readers asked for none for long */
	bool stray;    /* there are leaves, and no reader of this host has asked for the key */
	uint32_t kept; /* held, or waited for */
	uint32_t free; /* no host that lives has them */
	uint32_t claimed;
	/* Other hosts that have leaves or a claim, which is what they want; room for one more. */
	struct claim *others;
	uint32_t other_count;
	bool claims;   /* one of them has a claim */
	bool is_first; /* none of them has leaves before this host's */
};

struct key_decision {
	uint32_t takes, gives;
	uint32_t claim; /* from now on; 0: none */
	bool ends;
};

/* Decides by @facts, whose @others it may put into another order. */
void key_portion_decide(const struct key_facts *facts, struct key_decision *decision);

#endif
