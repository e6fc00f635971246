/*
 * order - which sibling comes first: `weight`, `min` and `priority`.
 *
 * The siblings at a limiter are its children, its keys, its partitions, and its own queue. Those
 * that put a waiter forward are served in this order:
 *
 * 1. Siblings with a `min` that is due: the one first that has been due for longest.
 * 2. The highest class, which is `priority`.
 * 3. Within a class, start-time fair queueing: the least start tag; of equal tags the earlier
 *    waiter. Each class has a virtual time V, the least start tag in it at its last grant. A
 *    sibling that puts a waiter forward after it had none starts at V, or at its finish tag F if
 *    that is later; otherwise at F. A grant of n tokens makes F = start + n / weight. When no
 *    sibling of a class has had a waiter for a while V is the latest F. So idle siblings save
 *    nothing up, what was taken while no other wanted it is not paid for, and a take counts by
 *    its size.
 *
 * A `min` is due from the time R on. A grant while it is due counts for it: R moves on by n / min.
 * A sibling that puts a waiter forward after it had none starts at the time at which it came, or at
 * the earliest R of those that do if that is before; but at its own R if that is later. So minima
 * that are more than there is fall behind together, are served in proportion, and a sibling that
 * comes then waits no longer than the others. They are made up for by what they bring in a second,
 * and by a take of each: where the earliest R is further behind, the clock by which all of them are
 * due is held back.
 *
 * Grants by weight do not move R, so what a sibling got beyond its min is not held against it
 * later. All grants move F, so a sibling gets the greater of its min and its weighted part, not
 * both; but a take moves F no further ahead of V than a second of the min, in whole tokens, and two
 * of it. It never moves F back: a larger one before it counts in full.
 * Without waiters elsewhere a grant may leave no tag: that is one take at most.
 *
 * Tags are in units of 1/TAG_SCALE token of weight 1, kept exactly with the remainder of the
 * division. A take moves a tag by 1e17 at most. After V has passed 2^62 the class begins anew at 0,
 * and siblings that have no waiter then lose their F.
 *
 * Goyal, Vin, Cheng: "Start-time fair queuing: a scheduling algorithm for integrated services
 * packet switching networks" (1996). Gulati, Merchant, Varman: "mClock: handling throughput
 * variability for hypervisor IO scheduling" (2010).
 */
#ifndef RATEFS_CORE_ORDER_H
#define RATEFS_CORE_ORDER_H

#include "core/limiter/queue.h"
#include "core/limiter/saving.h"
#include "core/values/settings.h"

/* The `min` of a sibling. */
struct guarantee {
	struct heap_node due;	 /* in order->guaranteed while it is put forward: R is its key */
	struct sibling *sibling; /* borrowed */
	struct fraction rate;	 /* 0: none */
	u128 flow;		 /* the same in 2^-48 token a nanosecond, rounded up */
	uint64_t due_ns;	 /* R when it is next put forward, at the earliest */
	uint64_t part;		 /* and part/rate.num ns more */
	uint64_t granted_ns;	 /* last grant under it */
};

/* A limiter among the children of its parent, or a limiter's own queue among its children. */
struct sibling {
	struct heap_node turn; /* in its class while it puts a waiter forward: the start tag */
	struct waiter *head;   /* that waiter; borrowed */
	struct guarantee *guarantee; /* owned; NULL: it never had a min */
	uint64_t largest;	     /* take that was wanted in it since a waiter waits there */
	uint64_t finish;	     /* finish tag, of the class and its era in @era */
	uint32_t era;
	uint16_t part; /* of the finish tag: part/weight of a unit more */
	uint16_t weight;
};

/* The siblings of one priority. */
struct order_class {
	struct heap forward;	  /* siblings that put a waiter forward */
	struct heap_node *latest; /* in it: that came last; NULL: it has left */
	uint64_t time;		  /* V */
	uint64_t last;		  /* the latest finish tag */
	uint64_t busy_ns;	  /* when a sibling last put a waiter forward, or was granted one */
	uint64_t takes;		  /* sum of the largest take of each sibling */
	uint64_t wanted;	  /* tokens that are wanted in all siblings */
	uint64_t weights;	  /* of siblings in which a waiter waits */
	uint32_t era;		  /* the class, and above CLASS_BITS how often it began anew */
};

/* The order of the siblings at one limiter, for tokens or for slots. */
struct order {
	struct order_class classes[PRIORITIES];
	struct heap guaranteed;	    /* siblings that put a waiter forward and have a min, by R */
	struct heap_node *last_due; /* in it: that came last; NULL: it has left */
	struct sibling own;	    /* the limiter's own queue */
	uint64_t own_wanted;	    /* tokens wanted there */
	uint64_t guaranteed_wanted; /* in siblings with a min */
	uint64_t guaranteed_takes;  /* sum of the largest take of each of them */
	u128 minima;		    /* sum of the flow of those in which a waiter waits */
	uint64_t lag_ns;	    /* of the clock of minima behind the time */
	struct saving saving;	    /* of tokens, for those that wait here and below */
	uint32_t forward;	    /* bits of classes with a sibling that puts a waiter forward */
};

/* Makes the order of a limiter's siblings. NULL: no memory. */
struct order *order_new(void);

/*
 * Gets the memory that @settings need for a limiter's place among its siblings. 0 or -ENOMEM.
 */
int order_prepare(struct sibling *sibling, const struct settings *settings);

/* Frees what @sibling owns. It is in no order. */
void order_free_sibling(struct sibling *sibling);

/*
 * Sets the place of @sibling in @order (NULL: it has no siblings) to what @settings say. @wanted
 * tokens are wanted in it, and @waits tells whether a waiter waits there. If its place changes the
 * caller is to put its waiter forward again.
 */
void order_follow(struct order *order, struct sibling *sibling, const struct settings *settings,
		  uint64_t wanted, bool waits);

/*
 * Counts @tokens more (or less) that are wanted in @sibling, and in @more siblings more (or less:
 * -1) a waiter waits. A take of them counts for @size in the order.
 */
void order_count(struct order *order, struct sibling *sibling, uint64_t tokens, uint64_t size,
		 int more);

/* Returns the finish tag of @sibling, which has the settings by default and puts none forward. */
uint64_t order_tag(const struct order *order, const struct sibling *sibling);

/* Tells whether such a tag is ahead of V, and a waiter waits in another sibling of its class. */
bool order_is_ahead(const struct order *order, uint64_t finish);

/* Gives @sibling, which has the settings by default and is new, the finish tag that it had. */
void order_resume(const struct order *order, struct sibling *sibling, uint64_t finish);

/* Notes that @sibling puts @head forward. */
void order_enter(struct order *order, struct sibling *sibling, struct waiter *head,
		 uint64_t now_ns);

/* Notes that @sibling puts no waiter forward. */
void order_leave(struct order *order, struct sibling *sibling);

/* Returns the waiter that comes first at @now_ns; NULL: none is put forward. */
struct waiter *order_first(const struct order *order, uint64_t now_ns);

/* Returns when another waiter will come first, as a min is due then; NEVER_NS. */
uint64_t order_next_ns(const struct order *order, uint64_t now_ns);

#define LATEST_TICKET UINT64_MAX /* that of a waiter which would come now */

/* A waiter that is in @sibling, whether it is put forward or not. */
struct contender {
	const struct sibling *sibling;
	uint64_t ticket;
};

/* Tells whether waiter @a would come before @b, in another sibling, if both were put forward. */
bool order_precedes(const struct order *order, const struct contender *a, const struct contender *b,
		    uint64_t now_ns);

/* Tells whether a waiter of @sibling that came now would be the first. */
bool order_wins(const struct order *order, const struct sibling *sibling, uint64_t now_ns);

/* The ways in which a sibling comes before another. */
enum order_cause {
	ORDER_BY_MIN,	   /* its min is due */
	ORDER_BY_PRIORITY, /* its class is higher */
	ORDER_BY_WEIGHT,   /* it has had less, for its weight */
};

/*
 * Returns the waiter that comes before one of @sibling that came now, and in *@cause why it does.
 * NULL: the waiter of @sibling would be the first.
 */
const struct waiter *order_before(const struct order *order, const struct sibling *sibling,
				  uint64_t now_ns, enum order_cause *cause);

/*
 * Counts a grant of @tokens to @sibling, which puts no waiter forward any more. Tells whether it
 * was under its min.
 */
bool order_grant(struct order *order, struct sibling *sibling, uint64_t tokens, uint64_t now_ns);

/* A waiter whose time is to be told, in @sibling. */
struct prospect {
	const struct sibling *sibling;
	uint64_t wanted; /* tokens in @sibling, of it as far as it waits already */
	bool waits;	 /* a waiter waits in @sibling */
	uint64_t asked;	 /* tokens that @sibling grants until it has its own: these included */
	uint64_t tokens; /* its own */
	uint64_t flow;	 /* tokens that may be granted before @sibling puts it forward */
	uint64_t now_ns;
	uint64_t until_ns; /* siblings have their min until then; NEVER_NS: for all they want */
};

/*
 * Returns how many tokens are granted at most until the waiter of @prospect has its own, as long as
 * no other waiter comes and that is not after until_ns. Exact if no other sibling has waiters.
 */
uint64_t order_ahead(const struct order *order, const struct prospect *prospect);

#endif
