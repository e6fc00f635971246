/*
 * parts - the fleet's parts, and what all of them stand on: the time of a step, chance, words.
 *
 * Each part has a header of its own, and a struct that its file alone knows. A part asks and tells
 * another by that one's functions, and calls only those above itself in this list. A part that
 * wants one below itself to act notes a fact, which that part finds in the step, see fleet.c.
 *
 *	request		requests that are out
 *	session		the host's session and its connection
 *	term		until when what is held may be used
 *	baseline	the settings' version that this host stands on
 *	former_names	names that limiters gave up a moment ago
 *	holdings	what is held of limiters: by id, roused, in use, with something to send
 *	room		how many nodes and watches this host may have
 *	handover	what a successor has to know
 *	leases		the leases of a limiter, and what they are worth
 *	membership	which other hosts there are
 *	uses		what this host tells of its use of limiters
 *	caps		what this host at most uses of windows of the calendar
 *	transaction	the one transaction that is under way
 *	agreed_rate	the rate that the hosts have learnt of a service together
 *	told		what services said of their quotas, as hosts tell one another
 *	garbage		nodes of limiters that are gone
 *	neighbour	hosts that died are ended
 *	survey		who has what
 *	division	claims come to parts of a limiter
 *	share		... and these to what a host should have
 *	balance		the policy: how much is kept, given back, looked for and claimed
 *	portion		the same where partitions have no numbers
 *	appetite	what readers ask for shows how many leaves a host wants
 *	demand		how many partitions are wanted
 *	want		what one child of a limiter asks for
 *	wants		what each child of a limiter wants, and has of its place on this host
 *	claim		how much others want, and what this host tells them of that
 *	apportion	this host's portion: the facts are gathered, and the policy decides
 *	release		giving back
 *	take		the transaction that takes leaves
 *	round		partitions of a limiter are looked for, and taken
 *	key_leases	keys that are leased one by one
 *	key_strays	keys that no host leases any more
 *	recut		the leaves of a limiter, made and numbered anew
 *	apply		settings of other hosts take effect ...
 *	replicate	... as they are read
 *	publish		changes of this host's
 *	relay		leaves that foreign hands have changed
 *	layout		the nodes that must be there before the host joins
 *	barrier		what is done after an unknown outcome
 *	outcome		what follows from the answer to a transaction
 *	rebalance	the facts of each limiter, and what the policy makes of them
 *	resume		going on where a predecessor was
 *	status		what the fleet says of itself
 *	fleet		the step
 */
#ifndef RATEFS_CORE_PARTS_H
#define RATEFS_CORE_PARTS_H

#include "core/fleet/epoch.h"
#include "core/fleet/fleet.h"

struct fleet {
	struct source source; /* first */
	struct engine *engine;
	struct coordinator *coordinator;
	const struct fleet_options *options;
	struct fleet_listener *listener;
	struct fleet_constants constants; /* as told ... */
	bool constants_known;		  /* ... until the fleet's are known */
	struct fleet_counters counters;
	uint64_t random_state;

	/* Of the step. */
	uint64_t now_ns; /* the engine's time */
	struct clocks clocks;
	uint64_t next_ns; /* when there is something to do */
	uint64_t late_ns; /* for how long the host itself did not run, in all */
	bool in_step;
	uint64_t torn_id;   /* a limiter whose tiles are not its leaves, time and again; 0: none */
	uint32_t take_most; /* limiters of which one transaction takes: round.c */
	uint64_t guarded;   /* tiles that were checked since all of them had been: leases_guard() */

	struct epochs epochs; /* of acknowledged transactions; hosts that are gone */

	/* Owned; each is known to its own file alone. */
	struct requests *requests;
	struct session *session;
	struct term *term;
	struct former_names *former_names;
	struct holdings *holdings;
	struct room *room;
	struct handover *handover;
	struct baseline *baseline;
	struct membership *membership;
	struct uses *uses;
	struct caps *caps;
	struct transaction *transaction;
	struct neighbour *neighbour;
	struct surveys *surveys;
	struct key_leases *key_leases;
	struct key_strays *key_strays;
	struct told_folder *told_folder;
	struct garbage *garbage;
	struct recut *recut;
	struct replicate *replicate;
	struct publish *publish;
	struct layout *layout;
	struct barrier *barrier;
};

/* Tells the listener of @event, in words. */
void fleet_tell(struct fleet *fleet, enum fleet_event event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Lets there be a step at @at_ns at the latest; 0: at once. */
void fleet_wake_at(struct fleet *fleet, uint64_t at_ns);

/* Draws a number: for choices, which need to differ between hosts but not to be secret. */
uint64_t fleet_random(struct fleet *fleet);

/* Returns @ns, give or take a quarter. */
uint64_t fleet_jitter(struct fleet *fleet, uint64_t ns);

#endif
