/*
 * tokens - a model of what leases are worth in core/fleet/fleet.h, for Spin: levels in markers
 * (rule 12), and changes of rate, burst and count.
 *
 * THE PROMISE: in any window all hosts together are granted no more than the burst and what flows
 * in at the rate; while some host with a right has not applied a change yet, the larger burst and
 * the larger rate. A change gives nobody a token. `room` is what may still be granted by that: it
 * is a bucket with the whole burst and the whole rate. And at any moment the rates that hosts use
 * sum up to no more than the whole rate.
 *
 * That no two hosts are entitled to one partition is what tiles.pml is for, so here each
 * transaction is executed and answered in one step, the clocks tick together, and Q is D. Whatever
 * a guard allows may happen at any moment, and nothing has to. A host that is cut off renews
 * nothing and applies nothing; the coordinator closes its session whenever it likes.
 *
 * A setting has a count of 1 or 2, and a rate and a burst of 2 or 4 tokens (a tick). All
 * combinations of settings before and after are searched.
 *
 * Variants, by -D:
 *	CHANGES		so many there are, of any host's
 *	D		ticks of a right
 *	SAME_RATE	the rate is always 2
 *	RATES		no bucket has anything in it, and bursts are alike; a change may be of something else
 *	KEEPS		nothing is given back, and no change is of something else
 *	ANEW		the limiter is removed, and one of its name is made anew, rather than changed; then the
 *			promise is for both together
 *	STALE		a marker is read a while before the partition is taken: then it counts twice if
 *			another took and gave back the partition between the two, which rule 12 bears
 *	MUTANT_...	leaves out a rule, or a part of one
 *	REACH_...	claims that something is never reached that must be
 *	SHORT		for a breadth-first search, which finds a shortest counterexample
 *
 * Two changes within Q are searched in full, three by hosts that give nothing back. The record of
 * a fourth one says what that of a third does: the least of all, and the fewest partitions.
 *
 * Left out, and where it is covered; traces are in tests/sim/traces/fleet:
 *  - debts, intervals, takes larger than the burst, several limits: tests/core/limiter, and the
 *    random fleets of tests/sim; rates of `max`: traces settings/max_between_counts,
 *    returning_host_changes;
 *  - the reserve, keys, slots, buckets of single partitions, `offline`: traces in shares, and
 *    faults/degraded*, and tests/core/limiter/test_holding.c;
 *  - renames, and paths below one that was given up, which rule 16 treats like removals: traces in
 *    names;
 *  - a successor: it finds levels in the buckets, makes no markers for Q, and knows the earlier
 *    settings as its predecessor did: traces in successors, names/name_deleted_successor,
 *    settings/successor_changes;
 *  - transactions without an answer, and clocks that differ: tiles.pml;
 *  - elections, which may take back a change: traces settings/change_taken_back,
 *    names/making_taken_back;
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
#define PARTS 2
#define GENERATIONS (CHANGES + 1)

#define ALL_HOSTS 0 .. HOSTS - 1
#define ALL_PARTS 0 .. PARTS - 1
#define NOBODY 255

/* A partition on a host, as in core/limiter/lease.h; its transaction under way is executed. */
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

byte setting[GENERATIONS]; /* 1: two partitions; 2: the rate is 4; 4: the burst is 4 */
byte now;		   /* the version of /g */

#define COUNT(g) (1 + (setting[g] & 1))
#define RATE_OF_ALL(g) (2 + (setting[g] & 2))
#define BURST_OF_ALL(g) (2 + ((setting[g] & 4) >> 1))
/* The worth of a partition. */
#define RATE(g) (RATE_OF_ALL(g) / COUNT(g))
#ifdef RATES
#define BURST(g) 0
#else
#define BURST(g) (BURST_OF_ALL(g) / COUNT(g))
#endif

/* As in core/fleet/publish.c. */
#ifdef MUTANT_BURST
#define IS_BELOW(a, b) (RATE(a) <= RATE(b))
#else
#define IS_BELOW(a, b) (RATE(a) <= RATE(b) && BURST(a) <= BURST(b))
#endif
#define IS_WITHIN(a, b) (COUNT(a) <= COUNT(b) && IS_BELOW(a, b))
#define RESTRICTS(old, new) \
	(COUNT(old) != COUNT(new) && !IS_WITHIN(old, new) && !IS_WITHIN(new, old))
#ifdef MUTANT_SAVED
#define KEEPS_SAVINGS(old, new) true
#else
#define KEEPS_SAVINGS(old, new) (COUNT(old) == COUNT(new) && BURST(old) == BURST(new))
#endif

/* A record, of /c/LID. */
typedef record {
	byte saved; /* the generation since which levels in markers count */
	/* The worth that hosts may still use that do not know of it yet: */
	bool names;
	byte before;   /* the least of the settings, a generation */
	byte first;    /* the fewest partitions */
	bool unclear;  /* none is the least */
	bool recut;    /* not all have as many partitions */
	bool restricts; /* others keep to what is less */
};

#ifdef MUTANT_CHAIN_SKIP
#define RECORDS (GENERATIONS + 1)
#else
#define RECORDS GENERATIONS
#endif
record said[RECORDS];

/* --- The coordinator's nodes --- */

byte lease[PARTS] = NOBODY;

#define FULL 255 /* in a marker that was made with the limiter */
#ifdef RATES
#define NEW_LEVEL 0
#define FLOWS_IN(h) 0
#else
#define NEW_LEVEL FULL
#define FLOWS_IN(h) (USABLE(h) * RATE_FOR(h))
#endif

typedef mark {
	bool there;
	byte level;
	byte saved;
};

mark marker[PARTS];

/* --- Hosts --- */

typedef host {
	byte g;	     /* the generation applied */
	byte right;  /* ticks until the right ends */
	byte lately; /* ticks in which others may use what it was before */
	byte before, first; /* as in the record, like the rest */
	bool unclear, recut, restricts;
#ifdef ANEW
	byte left;   /* ticks in which others may not know yet that the limiter is removed */
#endif
	bool closed; /* its session is, and it does not know */
	byte level;  /* in its bucket */
	mtype hold[PARTS] = NONE;
	byte wait[PARTS]; /* WAITING: ticks until it is HELD */
	mark carries[PARTS]; /* DRAINING: the level that goes with it */
#ifdef STALE
	mark read[PARTS];
#endif
};

host is[HOSTS];

/* The marker of a partition as a host that takes it knows it. */
#ifdef STALE
#define READ(h, p) is[h].read[p]
#else
#define READ(h, p) marker[p]
#endif

#define SMALLER(a, b) ((a) < (b) -> (a) : (b))

/* As in core/limiter/holding.c. */
#define IS_NARROW(h) (is[h].lately && is[h].restricts)
#ifdef MUTANT_COUNT
#define COUNT_FOR(h) COUNT(is[h].g)
#else
#define COUNT_FOR(h) (IS_NARROW(h) -> SMALLER(is[h].first, COUNT(is[h].g)) : COUNT(is[h].g))
#endif
#ifdef MUTANT_RATE
#define RATE_FOR(h) RATE(is[h].g)
#else
#define RATE_FOR(h) (IS_NARROW(h) -> SMALLER(RATE(is[h].before), RATE(is[h].g)) : RATE(is[h].g))
#endif
#ifdef MUTANT_BURST
#define BURST_FOR(h) BURST(is[h].g)
#else
#define BURST_FOR(h) (IS_NARROW(h) -> SMALLER(BURST(is[h].before), BURST(is[h].g)) : BURST(is[h].g))
#endif
#define IS_USABLE(h, p) (is[h].hold[p] == HELD && p < COUNT_FOR(h))
#define USABLE(h) (is[h].right -> IS_USABLE(h, 0) + IS_USABLE(h, 1) : 0)
#define CAPACITY(h) (USABLE(h) * BURST_FOR(h))

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
	part = USABLE(0) * RATE_FOR(0) + USABLE(1) * RATE_FOR(1);
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

/* Rule 12: the level that comes with a marker. */
inline join_part(h, p) {
	part = 0;
	if
#ifdef MUTANT_MARKER
	:: true ->
#else
	:: READ(h, p).saved == said[is[h].g].saved ->
#endif
		part = (READ(h, p).level == FULL -> BURST(is[h].g) : READ(h, p).level)
	:: else
	fi;
	is[h].level = is[h].level + part;
#ifdef REACH_LEFT
	assert(!part || READ(h, p).level == FULL);
#endif
#ifdef STALE
	forget(is[h].read[p])
#endif
}

inline take_clean(h, p) {
	printf("host %d: takes %d, clean, with %d\n", h, p, READ(h, p).level);
	extend_right(h);
	is[h].hold[p] = HELD;
	lease[p] = h;
	join_part(h, p);
	forget(marker[p]);
	settle()
}

inline take_unclean(h, p) {
	printf("host %d: takes %d, unclean\n", h, p);
	extend_right(h);
	is[h].hold[p] = WAITING;
	is[h].wait[p] = Q;
	lease[p] = h;
	settle()
}

/* Rule 8: the level of the bucket is divided among the usable partitions. */
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
	lease[p] = NOBODY;
	marker[p].there = true;
	marker[p].level = is[h].carries[p].level;
	marker[p].saved = is[h].carries[p].saved;
	forget(is[h].carries[p]);
	settle()
}

inline leave(h, p) {
	printf("host %d: gives %d back, without a marker\n", h, p);
	extend_right(h);
	is[h].hold[p] = NONE;
	is[h].wait[p] = 0;
	lease[p] = NOBODY;
	settle()
}

inline forget_before(h) {
	is[h].before = 0;
	is[h].first = 0;
	is[h].unclear = false;
	is[h].recut = false;
	is[h].restricts = false
}

inline heed(h, record_read) {
	if
	:: record_read.names ->
		is[h].lately = Q;
		is[h].before = record_read.before;
		is[h].first = record_read.first;
		is[h].unclear = record_read.unclear;
		is[h].recut = record_read.recut;
		is[h].restricts = record_read.restricts
	:: else
	fi
}

inline use_nothing(h) {
	is[h].level = 0;
	for (i : ALL_PARTS) {
		is[h].hold[i] = NONE;
		is[h].wait[i] = 0;
		forget(is[h].carries[i])
	}
}

/* As in core/fleet/before.c. */
#ifdef MUTANT_CHAIN
#define KNOWS_EARLIER(h) false
#else
#define KNOWS_EARLIER(h) is[h].lately
#endif
#define UNCLEAR(h, old) \
	(is[h].unclear || (!IS_BELOW(old, is[h].before) && !IS_BELOW(is[h].before, old)))
#define RECUT(h, old, new) \
	(is[h].recut || COUNT(is[h].before) != COUNT(old) || COUNT(old) != COUNT(new))
#ifdef MUTANT_CHAIN_LEAST
#define RESTRICTS_ALL(h, old, new) \
	(is[h].restricts || RESTRICTS(old, new) || RESTRICTS(is[h].before, new))
#else
#define RESTRICTS_ALL(h, old, new) RECUT(h, old, new)
#endif

/* The earlier settings in the record of @new, when host @h makes @new of @old. */
inline name_before(h, old, new, said_by) {
	said_by.names = (setting[old] != setting[new] || is[h].lately);
	if
	:: !said_by.names -> skip
	:: setting[old] != setting[new] && !KNOWS_EARLIER(h) ->
		said_by.before = old;
		said_by.first = COUNT(old);
		said_by.unclear = false;
		said_by.recut = (COUNT(old) != COUNT(new));
		said_by.restricts = RESTRICTS(old, new)
	:: setting[old] != setting[new] && KNOWS_EARLIER(h) ->
		said_by.before = (IS_BELOW(old, is[h].before) -> old : is[h].before);
		said_by.first = SMALLER(is[h].first, COUNT(old));
		said_by.unclear = UNCLEAR(h, old);
		said_by.recut = RECUT(h, old, new);
		said_by.restricts = RESTRICTS_ALL(h, old, new)
	:: setting[old] == setting[new] && is[h].lately ->
		said_by.before = is[h].before;
		said_by.first = is[h].first;
		said_by.unclear = is[h].unclear;
		said_by.recut = is[h].recut;
		said_by.restricts = is[h].restricts
	fi;
#ifdef MUTANT_CHAIN_RENEWED
	if
	:: KNOWS_EARLIER(h) && is[h].restricts && !RESTRICTS(old, new) ->
		said_by.before = is[h].before;
		said_by.first = is[h].first
	:: else
	fi;
#endif
	skip
}

inline adopt(h) {
	printf("host %d: applies generation %d\n", h, now);
#ifdef ANEW
	use_nothing(h);
	is[h].left = Q;
#endif
#if defined(MUTANT_ADOPT)
	skip;
#elif defined(MUTANT_CHAIN_SKIP)
	name_before(h, is[h].g, now, said[GENERATIONS]);
	if
	:: said[now].restricts -> heed(h, said[now])
	:: else -> heed(h, said[GENERATIONS])
	fi;
	said[GENERATIONS].names = false;
	said[GENERATIONS].before = 0;
	said[GENERATIONS].first = 0;
	said[GENERATIONS].unclear = false;
	said[GENERATIONS].recut = false;
	said[GENERATIONS].restricts = false;
#else
	heed(h, said[now]);
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
	is[h].lately = 0;
	forget_before(h);
#ifdef ANEW
	is[h].left = (now == REMOVED && KNOWS_NAMES -> Q : 0);
#endif
#if defined(MUTANT_JOIN)
	skip;
#elif defined(MUTANT_CHAIN_JOIN)
	if
	:: said[now].restricts -> heed(h, said[now])
	:: else
	fi;
#else
	heed(h, said[now]);
#endif
	settle()
}

#ifdef ANEW
#define IS_BUSY(h) false
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
		for (i : ALL_PARTS) {
			lease[i] = NOBODY;
			forget(marker[i]);
			marker[i].there = (i < COUNT(now) && !WAITS(h));
			marker[i].level = (marker[i].there -> FULL : 0);
			marker[i].saved = (marker[i].there -> now : 0)
		}
		/* It begins with its burst. */
		larger();
		room = most
	fi;
	settle()
}
#else
#define IS_BUSY(h) \
	(setting[now] != setting[now + 1] && KNOWS_EARLIER(h) && RECUT(h, now, now + 1) && \
	 UNCLEAR(h, now))

inline change(h) {
	printf("host %d: changes count %d rate %d burst %d to count %d rate %d burst %d\n", h,
	       COUNT(now), RATE_OF_ALL(now), BURST_OF_ALL(now), COUNT(now + 1),
	       RATE_OF_ALL(now + 1), BURST_OF_ALL(now + 1));
	extend_right(h);
	now++;
	said[now].saved = (KEEPS_SAVINGS(now - 1, now) -> said[now - 1].saved : now);
	name_before(h, now - 1, now, said[now]);
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
#ifdef MUTANT_9_EXTENDS
	:: d_step { !is[h].closed && is[h].right < D -> extend_right(h); settle() }
#endif
	:: d_step { !is[h].closed && is[h].g < now -> adopt(h) }
	:: d_step { is[h].closed -> drop_all(h) }
	:: d_step { is[h].closed -> begin(h) }
	:: d_step { IS_CURRENT(h) && is[h].g == now && now < CHANGES && !IS_BUSY(h) -> change(h) }
	od
}

proctype demand(byte h; byte p)
{
end:	do
	:: d_step { IS_CURRENT(h) && IS_THERE && is[h].hold[p] == NONE && p < COUNT_FOR(h) &&
	   lease[p] == NOBODY &&
		marker[p].there && READ(h, p).there -> take_clean(h, p) }
#ifdef STALE
	:: d_step { is[h].hold[p] == NONE && marker[p].there && !is[h].read[p].there ->
		printf("host %d: reads the marker of %d\n", h, p);
		is[h].read[p].there = true;
		is[h].read[p].level = marker[p].level;
		is[h].read[p].saved = marker[p].saved;
		tidy() }
#endif
	:: d_step { IS_CURRENT(h) && IS_THERE && is[h].hold[p] == NONE && p < COUNT_FOR(h) &&
	   lease[p] == NOBODY &&
		!marker[p].there -> take_unclean(h, p) }
#ifndef KEEPS
	:: d_step { is[h].hold[p] == HELD -> drain(h, p) }
	:: d_step { IS_CURRENT(h) && is[h].hold[p] == DRAINING -> give(h, p) }
	:: d_step { IS_CURRENT(h) && is[h].hold[p] == WAITING -> leave(h, p) }
#endif
	od
}

inline close(h) {
	printf("coordinator: closes the session of host %d\n", h);
	for (i : ALL_PARTS) {
		lease[i] = (lease[i] == h -> NOBODY : lease[i])
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
	:: is[h].right == 1 -> is[h].right = 0; is[h].level = 0 /* rule 12 */
	:: else
	fi;
	if
	:: is[h].lately == 1 -> is[h].lately = 0; forget_before(h)
	:: is[h].lately > 1 -> is[h].lately--
	:: else
	fi;
#ifdef ANEW
	is[h].left = (is[h].left -> is[h].left - 1 : 0);
#endif
	for (i : ALL_PARTS) {
		if
		:: is[h].wait[i] -> is[h].wait[i]--
		:: else
		fi;
		if
		:: is[h].hold[i] == WAITING && !is[h].wait[i] -> is[h].hold[i] = HELD
		:: else
		fi;
#ifdef STALE
		forget(is[h].read[i]);
#endif
		skip
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

/* With RATES a change may be of something else. */
#if (defined(RATES) && !defined(KEEPS)) || defined(ANEW)
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
		/* Rule 14; and what an earlier setting left behind. */
		for (i : ALL_PARTS) {
			marker[i].there = true;
			marker[i].level = NEW_LEVEL;
			marker[i].saved = (i < COUNT(0) -> 0 : GENERATIONS)
		}
		run clock();
		run coordinator();
		for (n : ALL_HOSTS) {
			run process(n);
			for (i : ALL_PARTS) {
				run demand(n, i)
			}
		}
		tidy()
	}
}
