/*
 * wants - what each child of a limiter wants of it on this host: the parts of this host's claim;
 * and which part of a child's weight and min is this host's.
 *
 * A hungry child (want.h) wants as much as the host, and so does one that waits where the host
 * holds nothing. Any other wants what it asks for, with a little more.
 *
 * It has more slack if it comes first: its class is higher than that of a host that is hungry, or
 * it asks for less than its min. Its readers may come at random, and wait for the less the more
 * slack they have (appetite.h): want_slack() says how much. But the slack of all such children is
 * no more than a 16th of the limiter, of which the hosts that they may be on have equal parts. So
 * much is kept for them that hungry hosts do without.
 *
 * The limiter's own readers, with its keys and partitions, are one child. Slots have no parts:
 * hosts share them alone.
 *
 * The first PARTS_OF_CHILDREN children are listed one by one: those with a min, and those that want
 * most. The others are put together by their class.
 *
 * Where hosts compete, a hungry child has the weight among its siblings on this host that brings it
 * what the division (division.h) gives it here, and that part of its min. So a child on several
 * hosts has its weight and its min once over all of them. Below a child without leaves of its own
 * the order of its children is each host's.
 */
#ifndef RATEFS_CORE_WANTS_H
#define RATEFS_CORE_WANTS_H

#include "core/fleet/parts.h"
#include "core/fleet/share.h"
#include "core/fleet/want.h"

/* Gives @holding the part of it that is of wants; frees that. */
bool wants_attach(struct holding *holding);
void wants_detach(struct holding *holding);

/* Looks at the children of @holding's limiter, every DEMAND_PERIOD_NS while it is in use. */
void wants_tick(const struct fleet *fleet, struct holding *holding);

/* Notes that the children that are not hungry are to have @plain leaves together. */
void wants_note_plain(struct holding *holding, double plain);

/*
 * Notes what other hosts want, as @line of @holding says, of which @silent more hold some without a
 * claim. Returns the leaves that children that come first are to have as slack.
 */
void wants_note_others(struct holding *holding, const struct claim_line *line, uint32_t silent);
double wants_slack(const struct holding *holding);

/*
 * Puts what each child wants into @parts, as znode_claim_print() takes them. Hungry ones want @all,
 * and the others @plain together. Returns how many; 0: the own queue wants all. The second is
 * for a claim of @wanted.
 */
uint32_t wants_gather(const struct holding *holding, uint32_t all, double plain,
		      struct part parts[PARTS_MAX]);
uint32_t wants_of_claim(const struct holding *holding, uint32_t wanted,
			struct part parts[PARTS_MAX]);

/* Fills in the place among its siblings of the child that @part of a claim of @holding names. */
void wants_settle(struct fleet *fleet, const struct holding *holding, struct part *part);

/*
 * Tells whether @parts, of a host that wants @wanted, differ from @claimed in a way that is worth a
 * claim: an amount by a fifth and by a 128th of all @leaves, or by that part if only one of them is
 * all that the host wants; or a child of a higher class.
 */
struct part_list {
	const struct part *parts;
	uint32_t count, wanted;
};
bool wants_differ(const struct part_list *claimed, const struct part_list *wants, uint32_t leaves);

/*
 * Lets the children of @holding's limiter have their parts of weight and min on this host, as the
 * @count parts came to, of which hungry ones want @all; 0: hosts do not compete.
 */
void wants_follow(struct fleet *fleet, struct holding *holding, const struct part *parts,
		  uint32_t count, uint32_t all);

#endif
