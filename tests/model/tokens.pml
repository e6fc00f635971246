/*
 * tokens - a model of what leases are worth in core/fleet/fleet.h, for Spin: levels in the names of
 * tiles, and changes of rate, burst and count.
 *
 * Of the rules there it alone searches 16 (paths that limiters had) and 17 (changes); of 18 what a
 * level is worth where tokens flow in, and under settings other than its own; of 2 that a
 * transaction checks /g; of 11 that a barrier, which does not, extends no right. tiles.pml has the
 * others, and no settings that change.
 *
 * THE PROMISE: in any window all hosts together are granted no more than the burst and what flows
 * in at the rate; while some host with a right has not applied a change yet, the larger burst and
 * the larger rate. A change gives nobody a token. `room` is what may still be granted by that: it
 * is a bucket with the whole burst and the whole rate. And at any moment the rates that hosts use
 * sum up to no more than the whole rate.
 *
 * That no two hosts are entitled to one leaf is what tiles.pml is for, so here each transaction is
 * executed and answered in one step, the clocks tick together, there is one epoch, and Q is D.
 * Whatever a guard allows may happen at any moment, and nothing has to. A host that is cut off
 * renews nothing and applies nothing; the coordinator closes its session whenever it likes.
 *
 * A setting has a count of 1 or 2 leaves, and a rate and a burst of 2 or 4 tokens (a tick). All
 * combinations of settings before and after are searched. A leaf of another count is another node:
 * only the nodes of the last cut are there, since no transaction of a host that has not heard of it
 * is executed.
 *
 * Variants, by -D:
 *	CHANGES		so many there are, of any host's
 *	D		ticks of a right
 *	SAME_RATE	the rate is always 2
 *	RATES		no bucket has anything in it, and bursts are alike
 *	KEEPS		nothing is given back
 *	ANEW		the limiter is removed, and one of its name is made anew, rather than changed; then the
 *			promise is for both together
 *	MUTANT_...	leaves out a rule, or a part of one
 *	REACH_...	claims that something is never reached that must be
 *	SHORT		for a breadth-first search, which finds a shortest counterexample
 *
 * Left out, and where it is covered; traces are in tests/sim/traces/fleet:
 *  - debts, intervals, takes larger than the burst, several limits: tests/core/limiter, and the
 *    random fleets of tests/sim;
 *  - rates of `max`, in which no leaf is used, so that those of another count need not wait: traces
 *    settings/max_before_another_count, max_between_counts;
 *  - the reserve, keys, slots, buckets of single partitions, `offline`: traces in shares, and
 *    faults/degraded*, and tests/core/limiter/test_holding.c;
 *  - renames, and paths below one that was given up, which rule 16 treats like removals: traces in
 *    names;
 *  - a successor: it finds levels in the buckets, and makes tiles of no epoch for Q: traces in
 *    successors, names/name_deleted_successor;
 *  - runs of leaves, elections, transactions without an answer, and clocks that differ: tiles.pml;
 *    elections that take back a change: traces settings/change_taken_back, names/making_taken_back;
 *  - a host that can use nothing keeps up to a token in its bucket, so a change to a smaller burst
 *    leaves one token more for each such host: traces leases/returned_to_nothing.
 */
#ifdef ANEW
#define CHANGES 2
#define REMOVED 1 /* the generation in which there is no limiter */
#define IS_THERE (now != REMOVED)
#else
#define IS_THERE true
#endif
#ifndef D
#define D 2
#endif
#ifndef CHANGES
#define CHANGES 1
#endif
#ifdef MUTANT_Q
#define Q (D - 1)
#else
#define Q D
#endif
#define HOSTS 2
#define LEAVES 2
#define GENERATIONS (CHANGES + 1)

#define ALL_HOSTS 0 .. HOSTS - 1
#define ALL_LEAVES 0 .. LEAVES - 1
#define NOBODY 255

/* A leaf on a host, as in core/limiter/lease.h; its transaction under way is executed. */
mtype = { NONE, WAITING, HELD, DRAINING };

#ifdef SHORT
#define scratch
inline tidy() { i = 0; n = 0; low = 0; sum = 0; most = 0; part = 0 }
#else
#define scratch hidden
inline tidy() { skip }
#endif
scratch byte i, n, low, sum, most, part;

/* --- Settings, by generation --- */

byte setting[GENERATIONS]; /* 1: two leaves; 2: the rate is 4; 4: the burst is 4 */
byte now;		   /* the version of /g */

#define COUNT(g) (1 + (setting[g] & 1))
#define RATE_OF_ALL(g) (2 + (setting[g] & 2))
#define BURST_OF_ALL(g) (2 + ((setting[g] & 4) >> 1))
/* The worth of a leaf. */
#define RATE(g) (RATE_OF_ALL(g) / COUNT(g))
#ifdef RATES
#define BURST(g) 0
#else
#define BURST(g) (BURST_OF_ALL(g) / COUNT(g))
#endif

/* As in core/fleet/publish.c, and core/fleet/recut.c. */
#ifdef MUTANT_SAVED
#define KEEPS_SAVINGS(old, new) true
#else
#define KEEPS_SAVINGS(old, new) (BURST_OF_ALL(old) == BURST_OF_ALL(new))
#endif
#ifdef MUTANT_CUT
#define IS_CUT_ALIKE(old, new) true
#else
#define IS_CUT_ALIKE(old, new) (COUNT(old) == COUNT(new))
#endif

/* A record, of /c/LID. */
typedef record {
	byte saved; /* the generation since which levels in names count */
	byte cut;   /* ... since which leaves are numbered so */
};

record said[GENERATIONS];

/* --- The coordinator's nodes --- */

/* Of each leaf of the last cut. */
byte leased[LEAVES] = NOBODY;

#define FULL 255 /* in a name that was made with the limiter */
#ifdef RATES
#define NEW_LEVEL 0
#define FLOWS_IN(h) 0
#else
#define NEW_LEVEL FULL
#define FLOWS_IN(h) (USABLE(h) * RATE(is[h].g))
#endif

/* The level that goes with a leaf that is given back, and is in its name; or none is known. */
typedef mark {
	bool there;
	byte level;
	byte saved;
};

mark clean[LEAVES];

/* --- Hosts --- */

typedef host {
	byte g;	     /* the generation applied */
	byte right;  /* ticks until the right ends */
#ifdef ANEW
	byte left;   /* ticks in which others may not know yet that the limiter is removed */
#endif
	bool closed; /* its session is, and it does not know */
	byte level;  /* in its bucket */
	mtype hold[LEAVES] = NONE;
	byte wait[LEAVES]; /* WAITING: ticks until it is HELD */
	mark carries[LEAVES]; /* DRAINING: the level that goes with it */
};

host is[HOSTS];

#define SMALLER(a, b) ((a) < (b) -> (a) : (b))

#define IS_USABLE(h, p) (is[h].hold[p] == HELD && p < COUNT(is[h].g))
#define USABLE(h) (is[h].right -> IS_USABLE(h, 0) + IS_USABLE(h, 1) : 0)
#define CAPACITY(h) (USABLE(h) * BURST(is[h].g))

/* Rule 16: the record of a limiter that was removed says so to those who come. */
#ifdef MUTANT_16_JOIN
#define KNOWS_NAMES false
#else
#define KNOWS_NAMES true
#endif

/* Rule 2: a transaction checks /g. */
#ifdef MUTANT_G
#define IS_CURRENT(h) !is[h].closed
#else
#define IS_CURRENT(h) (!is[h].closed && is[h].g == now)
#endif

/* --- The promise --- */

byte room; /* tokens that may be granted now */

/* The larger of rates and bursts that may still be in use: sum and most. */
inline larger() {
	low = now;
	for (n : ALL_HOSTS) {
		low = (is[n].right && is[n].g < low -> is[n].g : low)
	}
	sum = 0;
	most = 0;
	for (n : low .. now) {
#ifdef ANEW
		if
		:: n == REMOVED -> skip
		:: else ->
#endif
		sum = (RATE_OF_ALL(n) > sum -> RATE_OF_ALL(n) : sum);
		most = (BURST_OF_ALL(n) > most -> BURST_OF_ALL(n) : most)
#ifdef ANEW
		fi
#endif
	}
	low = 0
}

inline promise() {
	larger();
	room = SMALLER(room, most);
	part = USABLE(0) * RATE(is[0].g) + USABLE(1) * RATE(is[1].g);
	assert(part <= sum);
#ifdef REACH_BETWEEN
	assert(!USABLE(0) || !USABLE(1) || is[0].g == is[1].g);
#endif
#ifdef REACH_ANEW
	assert(now <= REMOVED || !USABLE(0));
#endif
	skip
}

inline clip(h) {
	is[h].level = SMALLER(is[h].level, CAPACITY(h))
}

inline settle() {
	for (n : ALL_HOSTS) {
		clip(n)
	}
	promise();
	tidy()
}

/* --- What a host does --- */

inline extend_right(h) {
	is[h].right = D
}

inline forget(what) {
	what.there = false;
	what.level = 0;
	what.saved = 0
}

/* Rule 18: the level that comes with a clean leaf. */
inline join_part(h, p) {
	part = 0;
	if
#ifdef MUTANT_LEVEL
	:: true ->
#else
	:: clean[p].saved == said[is[h].g].saved ->
#endif
		part = (clean[p].level == FULL -> BURST(is[h].g) : clean[p].level)
	:: else
	fi;
	is[h].level = is[h].level + part;
#ifdef REACH_LEFT
	assert(!part || clean[p].level == FULL);
#endif
	skip
}

inline take_clean(h, p) {
	printf("host %d: takes %d, clean, with %d\n", h, p, clean[p].level);
	extend_right(h);
	is[h].hold[p] = HELD;
	leased[p] = h;
	join_part(h, p);
	forget(clean[p]);
	settle()
}

/* Of a host that is gone, or of a count that is new. */
inline take_unclean(h, p) {
	printf("host %d: takes %d, unclean\n", h, p);
	extend_right(h);
	is[h].hold[p] = WAITING;
	is[h].wait[p] = Q;
	leased[p] = h;
	settle()
}

/* Rule 9: the level of the bucket is divided among the usable leaves. */
inline drain(h, p) {
	printf("host %d: drains %d\n", h, p);
	n = USABLE(h);
	if
	:: n -> part = SMALLER(is[h].level / n, BURST(is[h].g))
	:: else -> part = 0
	fi;
#ifndef MUTANT_SPLIT
	is[h].level = is[h].level - part;
#endif
	is[h].carries[p].level = part;
	is[h].carries[p].saved = said[is[h].g].saved;
	is[h].hold[p] = DRAINING;
	settle()
}

inline give(h, p) {
	printf("host %d: gives %d back, with %d\n", h, p, is[h].carries[p].level);
	extend_right(h);
	is[h].hold[p] = NONE;
	leased[p] = NOBODY;
	clean[p].there = true;
	clean[p].level = is[h].carries[p].level;
	clean[p].saved = is[h].carries[p].saved;
	forget(is[h].carries[p]);
	settle()
}

inline use_nothing(h) {
	is[h].level = 0;
	for (i : ALL_LEAVES) {
		is[h].hold[i] = NONE;
		is[h].wait[i] = 0;
		forget(is[h].carries[i])
	}
}

inline adopt(h) {
	printf("host %d: applies generation %d\n", h, now);
#ifdef ANEW
	use_nothing(h);
	is[h].left = Q;
#endif
#ifndef MUTANT_KEEPS
	if
	:: said[is[h].g].cut != said[now].cut -> use_nothing(h)
	:: else
	fi;
#endif
	is[h].g = now;
	settle()
}

/* Rule 1. */
inline drop(h) {
	is[h].right = 0;
	is[h].closed = false;
	use_nothing(h)
}

inline drop_all(h) {
	printf("host %d: drops everything\n", h);
	drop(h);
	settle()
}

/* It may have known nothing of the limiter. */
inline begin(h) {
	printf("host %d: begins anew, with generation %d\n", h, now);
	drop(h);
	is[h].g = now;
#ifdef ANEW
	is[h].left = (now == REMOVED && KNOWS_NAMES -> Q : 0);
#endif
	settle()
}

#ifdef ANEW
/* Rule 16. */
#ifdef MUTANT_16
#define WAITS(h) false
#else
#define WAITS(h) is[h].left
#endif

inline change(h) {
	extend_right(h);
	now++;
	if
	:: now == REMOVED -> printf("host %d: removes the limiter\n", h)
	:: else ->
		printf("host %d: makes the limiter anew, rate %d burst %d\n", h, RATE_OF_ALL(now),
		       BURST_OF_ALL(now));
		said[now].saved = now;
		said[now].cut = now;
		for (i : ALL_LEAVES) {
			leased[i] = NOBODY;
			forget(clean[i]);
			clean[i].there = (i < COUNT(now) && !WAITS(h));
			clean[i].level = (clean[i].there -> FULL : 0);
			clean[i].saved = (clean[i].there -> now : 0)
		}
		/* It begins with its burst. */
		larger();
		room = most
	fi;
	settle()
}
#else
inline change(h) {
	printf("host %d: changes count %d rate %d burst %d to count %d rate %d burst %d\n", h,
	       COUNT(now), RATE_OF_ALL(now), BURST_OF_ALL(now), COUNT(now + 1),
	       RATE_OF_ALL(now + 1), BURST_OF_ALL(now + 1));
	extend_right(h);
	now++;
	said[now].saved = (KEEPS_SAVINGS(now - 1, now) -> said[now - 1].saved : now);
	said[now].cut = (IS_CUT_ALIKE(now - 1, now) -> said[now - 1].cut : now);
	if
	:: said[now].cut == now ->
		for (i : ALL_LEAVES) {
			leased[i] = NOBODY;
			forget(clean[i]);
#ifdef MUTANT_CUT_CLEAN
			clean[i].there = (i < COUNT(now));
			clean[i].saved = said[now].saved;
#endif
			skip
		}
	:: else
	fi;
	settle()
}
#endif

inline grant(h) {
	printf("host %d: grants a token\n", h);
	assert(room > 0);
	is[h].level--;
	room--;
	tidy()
}

proctype process(byte h)
{
end:	do
	:: d_step { USABLE(h) && is[h].level -> grant(h) }
	:: d_step { IS_CURRENT(h) && is[h].right < D -> extend_right(h); settle() }
#ifdef MUTANT_11_EXTENDS
	:: d_step { !is[h].closed && is[h].right < D -> extend_right(h); settle() }
#endif
	:: d_step { !is[h].closed && is[h].g < now -> adopt(h) }
	:: d_step { is[h].closed -> drop_all(h) }
	:: d_step { is[h].closed -> begin(h) }
	:: d_step { IS_CURRENT(h) && is[h].g == now && now < CHANGES -> change(h) }
	od
}

proctype demand(byte h; byte p)
{
end:	do
	:: d_step { IS_CURRENT(h) && IS_THERE && is[h].hold[p] == NONE && p < COUNT(is[h].g) &&
	   leased[p] == NOBODY && clean[p].there -> take_clean(h, p) }
	:: d_step { IS_CURRENT(h) && IS_THERE && is[h].hold[p] == NONE && p < COUNT(is[h].g) &&
	   leased[p] == NOBODY && !clean[p].there -> take_unclean(h, p) }
#ifndef KEEPS
	:: d_step { is[h].hold[p] == HELD -> drain(h, p) }
	:: d_step { IS_CURRENT(h) && is[h].hold[p] == DRAINING -> give(h, p) }
#endif
	od
}

inline close(h) {
	printf("coordinator: closes the session of host %d\n", h);
	for (i : ALL_LEAVES) {
		leased[i] = (leased[i] == h -> NOBODY : leased[i])
	}
	is[h].closed = true;
	tidy()
}

proctype coordinator()
{
end:	do
	:: d_step { !is[0].closed -> close(0) }
	:: d_step { !is[1].closed -> close(1) }
	od
}

/* --- Time --- */

inline tick(h) {
	/* Tokens that flowed in before the right ended. */
	is[h].level = SMALLER(is[h].level + FLOWS_IN(h), CAPACITY(h));
	if
	:: is[h].right > 1 -> is[h].right--
	:: is[h].right == 1 -> is[h].right = 0; is[h].level = 0 /* rule 18 */
	:: else
	fi;
#ifdef ANEW
	is[h].left = (is[h].left -> is[h].left - 1 : 0);
#endif
	for (i : ALL_LEAVES) {
		if
		:: is[h].wait[i] -> is[h].wait[i]--
		:: else
		fi;
		if
		:: is[h].hold[i] == WAITING && !is[h].wait[i] -> is[h].hold[i] = HELD
		:: else
		fi
	}
	clip(h)
}

proctype clock()
{
end:	do
	:: d_step {
		printf("clock: ticks\n");
		larger();
		room = SMALLER(room + sum, most);
		tick(0);
		tick(1);
		promise();
		tidy() }
	od
}

#ifdef ANEW
#define DIFFERS(i, s) true
#else
#define DIFFERS(i, s) (!i || setting[i - (i > 0)] != s)
#endif

init {
	atomic {
		for (i : 0 .. CHANGES) {
			if
			:: DIFFERS(i, 0) -> setting[i] = 0
			:: DIFFERS(i, 1) -> setting[i] = 1
#ifndef SAME_RATE
			:: DIFFERS(i, 2) -> setting[i] = 2
			:: DIFFERS(i, 3) -> setting[i] = 3
#endif
#ifndef RATES
			:: DIFFERS(i, 4) -> setting[i] = 4
			:: DIFFERS(i, 5) -> setting[i] = 5
#endif
#if !defined(SAME_RATE) && !defined(RATES)
			:: DIFFERS(i, 6) -> setting[i] = 6
			:: DIFFERS(i, 7) -> setting[i] = 7
#endif
			fi
		}
#ifdef ANEW
		setting[REMOVED] = 0;
#endif
		room = BURST_OF_ALL(0);
		/* Rule 14. */
		for (i : ALL_LEAVES) {
			clean[i].there = (i < COUNT(0));
			clean[i].level = (clean[i].there -> NEW_LEVEL : 0)
		}
		run clock();
		run coordinator();
		for (n : ALL_HOSTS) {
			run process(n);
			for (i : ALL_LEAVES) {
				run demand(n, i)
			}
		}
		tidy()
	}
}
