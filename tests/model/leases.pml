/*
 * leases - a model of the lease protocol of core/fleet/fleet.h, for Spin. Rules have their numbers
 * there.
 *
 * THE PROMISE: no two hosts are ever entitled to one partition; with SETTINGS, nor to more than the
 * rate.
 *
 * Whatever a guard allows may happen at any moment, and nothing has to: a host that does nothing is
 * paused or dead, while its clock goes on and its requests travel on.
 *
 *  - The coordinator orders all transactions. It closes a session whenever it likes, with all its
 *    ephemeral nodes in one step; the host learns of that late or never.
 *  - A request is executed any time after it was sent, or never. Its answer comes any time later,
 *    or never. A host gives up waiting at any time; the request is a stray then, which may still be
 *    executed.
 *  - A host believes at any time that its session is gone, rightly or not, and opens another. The
 *    rest of the old one (leases, a stray) stays until the coordinator closes it; before that there
 *    is no third one.
 *  - A process is killed at any time, also between two stores of one step, and its successor goes
 *    on in its session with what was kept (core/fleet/handover.h). Between two steps that is what
 *    the process knew. Within a step the order of stores and sends is what matters.
 *  - Nothing is read before a take: clean and unclean ones are tried at any time, so listings are
 *    as stale as they like. Nodes read after a barrier are as old as they can be.
 *  - Clocks tick in turn. Over any interval two of them differ by up to a tick, either way, which
 *    is slip and granularity in one. So Q is D + 1 ticks, the least that can be safe.
 *
 * Versions of /h are not counted. Of a session's requests those that are not executed yet and still
 * can be have its present version, and executing one of them spoils the others: that is all there
 * is to it. Strays that would only raise the version are left out: they forbid, as a request does
 * that is lost. The read before a barrier is left out likewise: with the version of an old read, or
 * with the one that a successor knows, the barrier is refused at worst, and is sent again.
 *
 * Variants, by -D:
 *	HOSTS, PARTS, D	sizes
 *	LEAN		none leaves a session that is not closed
 *	NO_KILLS	no process is killed
 *	PROMPT		takes and give-backs are executed and answered in one step
 *	LOSS		one election brings back any state since the last close of a session;
 *			LEAN
 *	LOSS_CLOSES	or any earlier one: more than the rules can bear
 *	SETTINGS	the count changes once, from 1 to 2 or from 2 to 1; LEAN and PROMPT
 *	MUTANT_...	leaves out a rule, or a part of one
 *	REACH_...	claims that something is never reached that must be
 *	SHORT		for a breadth-first search, which finds a shortest counterexample
 *
 * Left out, and where it is covered; traces are in tests/sim/traces/fleet, and all but the last two
 * come up in the random fleets of tests/sim:
 *  - what leases are worth, levels (12), changes of rate and burst, the making and removal of
 *    limiters (14, 16): tokens.pml;
 *  - when a connection or a session is given up (13): any moment is searched here, the waits are in
 *    traces faults/slow_*;
 *  - leaving (15), whose give-backs are as others: traces leases/leave_*;
 *  - several partitions in one transaction, which is executed as a whole or not at all;
 *  - claims, the reserve, slots: traces in shares;
 *  - foreign hands, and the watch over the nodes of one's own leases (10): traces
 *    leases/lease_deleted*;
 *  - several elections in one history: traces settings/change_taken_back, leases/old_marker_used;
 *  - changes of D, of which a host takes only what makes it more careful: nowhere;
 *  - clocks that go wrong by more than 0.5 %: nowhere, it is outside of the promise.
 */
#ifdef LOSS
#define LEAN
#endif
#ifdef SETTINGS
#define LEAN
#define PROMPT
#define PARTS 2
#endif

#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef PARTS
#define PARTS 1
#endif
#ifndef D
#define D 2
#endif
#ifdef MUTANT_Q
#define Q D
#else
#define Q (D + 1)
#endif

#define ALL_HOSTS 0 .. HOSTS - 1
#define ALL_PARTS 0 .. PARTS - 1

/* A host: has no session; has nothing under way; awaits an answer; needs a barrier (rule 9). */
mtype = { CLOSED, READY, ASKED, UNSURE };
/* A partition on a host, as in core/limiter/lease.h. */
mtype = { NONE, TAKING, WAITING, HELD, DRAINING, IN_DOUBT };
/* Transactions. LEAVE gives back without a marker. */
mtype = { NOTHING, RENEW, BARRIER, TAKE_CLEAN, TAKE_UNCLEAN, GIVE, LEAVE };
/*
 * Where a transaction is: not executed yet; executed, or refused by a check, or by what rule 10 is
 * about, with the answer under way; gone down with an election.
 */
mtype = { SENT, ACKED, REFUSED, MISMATCH, VANISHED };

/* Variables that mean nothing between two steps. A breadth-first search cannot have it hidden. */
#ifdef SHORT
#define scratch
inline tidy() { i = 0; n = 0; part = 0; sum = 0; holders = 0; executed = 0; kind = 0 }
#else
#define scratch hidden
inline tidy() { skip }
#endif
scratch byte i, n, part, sum, holders, executed;
scratch mtype kind;

/* --- The coordinator's nodes --- */

/* A host's present session, and the one before. */
#define CUR(h) (2 * (h))
#define OLD(h) (2 * (h) + 1)
#define ALL_SESSIONS 0 .. 2 * HOSTS - 1
#define NOBODY 255

typedef session {
	bool alive;	       /* /h/HID is there */
	mtype stray = NOTHING; /* may yet be executed; its answer is not awaited */
	byte stray_part;
};

session at[2 * HOSTS];
byte lease[PARTS] = NOBODY; /* /l: whose session's */
byte marker[PARTS] = 1;	    /* /f: made in which epoch, or 0 for none; at first by rule 14 */
byte epoch = 1;

#ifdef LOSS
/* The state that an election brings back. */
bool saved;
bool saved_alive[2 * HOSTS];
byte saved_lease[PARTS];
byte saved_marker[PARTS];
#define REMAINS(s) (at[s].alive || saved_alive[s])
#else
#define REMAINS(s) at[s].alive
#endif

/* --- Hosts --- */

typedef host {
	mtype state = CLOSED;
	mtype kind = NOTHING;  /* the transaction under way, */
	mtype stage = NOTHING; /* where it is, */
	byte part;	       /* its partition, */
	byte age;	       /* and the ticks since it was sent */
	byte right;	       /* ticks until the right ends */
	mtype hold[PARTS] = NONE;
	byte wait[PARTS];     /* WAITING: ticks until it is HELD */
	bool unmarked[PARTS]; /* DRAINING: it goes back without a marker */
	bool mine[PARTS]; /* whose lease a look after the executed barrier shows */
#ifdef MUTANT_4
	bool grants;
#endif
#ifdef MUTANT_7_VANISHED
	byte gone[PARTS]; /* 1 when neither lease nor marker were seen, and the ticks since */
#endif
#ifdef LOSS
	bool unsaved; /* its transaction was executed after the state that is brought back */
	bool newer;   /* so was what was acknowledged last */
	bool behind;  /* the version of /h is below the one acknowledged last */
#endif
#ifdef SETTINGS
	byte g;	       /* the version of /g applied */
	byte adopting; /* ticks until Q after that */
#endif
};

host is[HOSTS];

/* Whether a transaction of that kind has the version of /h that is there. */
#ifdef LOSS
#define FITS(h, kind) (at[CUR(h)].alive && (!is[h].behind || kind == BARRIER))
#else
#define FITS(h, kind) at[CUR(h)].alive
#endif

/* Rule 10: the version read of /h is below the one acknowledged last, so history was lost. */
#if defined(LOSS) && !defined(MUTANT_10_READ)
#define READS_LESS(h) is[h].behind
#else
#define READS_LESS(h) false
#endif

/* Rule 2: whether a transaction of that kind has a check of /g; rule 9: a barrier has not. */
#ifdef MUTANT_G
#define CHECKS_G(kind) false
#else
#define CHECKS_G(kind) (kind != BARRIER)
#endif

/* Rule 9: a barrier extends no right. */
#ifdef MUTANT_9_EXTENDS
#define EXTENDS(kind) true
#else
#define EXTENDS(kind) (kind != BARRIER)
#endif

/* --- The promise --- */

/* Rule 4. */
#ifdef MUTANT_4
#define ENTITLED(h, p) (is[h].hold[p] == HELD && is[h].grants)
#else
#define ENTITLED(h, p) (is[h].hold[p] == HELD && is[h].right > 0)
#endif

#ifdef SETTINGS
/* The whole rate is 2. For Q after adopting: the smaller rate, only indices below both counts. */
bool grow;
byte g;
#define COUNT(g) (1 + (grow == (g)))
#define RATE(h, p) \
	(is[h].adopting > 0 -> (p == 0) : (p < COUNT(is[h].g) -> 2 / COUNT(is[h].g) : 0))
#define SETTLED(h) (is[h].g == 1 && is[h].adopting == 0)
#endif

#if defined(REACH_CLEAN) || defined(REACH_UNCLEAN)
#define LAST_USER
byte user[PARTS] = NOBODY;
bool waited[PARTS]; /* whether its holder did */
#endif

inline promise() {
	sum = 0;
	for (i : ALL_PARTS) {
		holders = 0;
		for (n : ALL_HOSTS) {
			if
			:: ENTITLED(n, i) ->
				holders++;
#ifdef SETTINGS
				sum = sum + RATE(n, i);
#endif
#ifdef REACH_CLEAN
				assert(waited[i] || user[i] == NOBODY || user[i] == n);
#endif
#ifdef REACH_UNCLEAN
				assert(!waited[i] || user[i] == NOBODY || user[i] == n);
#endif
#ifdef LAST_USER
				user[i] = n;
#endif
			:: else
			fi
		}
		assert(holders <= 1)
	}
	assert(sum <= 2);
#ifdef REACH_TAKEN_BACK
	assert(!(ENTITLED(0, 0) && is[0].behind && is[1].hold[0] == WAITING && lease[0] == CUR(1)));
#endif
#ifdef REACH_GROWN
	assert(!(grow && SETTLED(0) && SETTLED(1) && ENTITLED(0, 0) && ENTITLED(1, 1)));
#endif
#ifdef REACH_SHRUNK
	assert(!(!grow && SETTLED(0) && ENTITLED(0, 0)));
#endif
}

/* --- What the coordinator does --- */

/* A former session without leases and strays is as good as closed. */
inline fade(s) {
	n = 0;
	for (i : ALL_PARTS) {
		n = n + (lease[i] == s)
	}
	if
	:: n == 0 && at[s].stray == NOTHING -> at[s].alive = false
	:: else
	fi
}

#ifdef LOSS
inline forget_saved() {
	saved = false;
	for (i : ALL_SESSIONS) {
		saved_alive[i] = false
	}
	for (i : ALL_PARTS) {
		saved_lease[i] = 0;
		saved_marker[i] = 0
	}
}
#endif

inline close(s) {
	printf("coordinator: closes session %d\n", s);
	for (i : ALL_PARTS) {
		if
		:: lease[i] == s -> lease[i] = NOBODY
		:: else
		fi
	}
#if defined(LOSS) && !defined(LOSS_CLOSES)
	if
	:: saved ->
		for (n : ALL_HOSTS) {
			is[n].unsaved = false;
			is[n].newer = false
		}
		forget_saved()
	:: else
	fi;
#endif
	at[s].stray = NOTHING;
	at[s].stray_part = 0;
	at[s].alive = false
}

/* The operations of @kind for @part by session @s: all, or none. */
inline transact(s) {
	executed = 0;
	if
	:: kind == RENEW || kind == BARRIER -> executed = 1
	:: kind == TAKE_CLEAN && lease[part] == NOBODY && marker[part] ->
		lease[part] = s;
		marker[part] = 0;
		executed = 1
	:: kind == TAKE_UNCLEAN && lease[part] == NOBODY && !marker[part] ->
		lease[part] = s;
		executed = 1
	:: kind == GIVE && lease[part] != NOBODY && !marker[part] ->
		lease[part] = NOBODY;
		marker[part] = epoch;
		executed = 1
	:: kind == LEAVE && lease[part] != NOBODY ->
		lease[part] = NOBODY;
		executed = 1
	:: else
	fi
}

inline execute(h) {
	kind = is[h].kind;
	part = is[h].part;
	if
	:: !FITS(h, kind) -> is[h].stage = MISMATCH
	:: else ->
#if defined(LOSS) && !defined(MUTANT_11)
		/* Rule 11. */
		if
		:: kind == TAKE_CLEAN && marker[part] < epoch -> is[h].kind = TAKE_UNCLEAN
		:: else
		fi;
#endif
		transact(CUR(h));
		if
		:: executed -> is[h].stage = ACKED
		:: !executed && (kind == GIVE || kind == LEAVE) -> is[h].stage = MISMATCH
		:: else -> is[h].stage = REFUSED
		fi
	fi;
	printf("coordinator: %e of host %d: %e\n", kind, h, is[h].stage);
	if
	:: is[h].stage == ACKED ->
#ifndef MUTANT_2
		/* Rule 2: no older request has the version any more. */
		at[CUR(h)].stray = NOTHING;
		at[CUR(h)].stray_part = 0;
#endif
#ifdef LOSS
		is[h].unsaved = saved;
#endif
		for (i : ALL_PARTS) {
			is[h].mine[i] = (is[h].hold[i] == IN_DOUBT && lease[i] == CUR(h))
		}
	:: else -> is[h].age = 0
	fi
}

inline execute_stray(h, s) {
	kind = at[s].stray;
	part = at[s].stray_part;
	transact(s);
	printf("coordinator: stray %e of session %d: %d\n", kind, s, executed);
#ifdef REACH_STRAY
	assert(!executed);
#endif
	at[s].stray = NOTHING;
	at[s].stray_part = 0;
	if
#ifndef MUTANT_2
	:: executed && s == CUR(h) && is[h].stage == SENT ->
		is[h].stage = MISMATCH;
		is[h].age = 0
#endif
	:: s == OLD(h) -> fade(s)
	:: else
	fi
}

#ifdef LOSS
inline save() {
	printf("coordinator: what follows may be lost\n");
	for (i : ALL_SESSIONS) {
		saved_alive[i] = at[i].alive
	}
	for (i : ALL_PARTS) {
		saved_lease[i] = lease[i];
		saved_marker[i] = marker[i]
	}
	saved = true
}

/* It closes all connections, and what they carried is gone; but not answers on their way. */
inline elect() {
	printf("coordinator: election, history is lost\n");
	epoch = 2;
	for (i : ALL_SESSIONS) {
		at[i].alive = saved_alive[i];
		at[i].stray = NOTHING;
		at[i].stray_part = 0
	}
	for (i : ALL_PARTS) {
		lease[i] = saved_lease[i];
		marker[i] = saved_marker[i]
	}
	for (n : ALL_HOSTS) {
		if
		:: is[n].stage == SENT ->
			is[n].stage = VANISHED;
			is[n].age = 0
		:: else
		fi;
		is[n].behind = is[n].newer;
		is[n].newer = false
	}
	forget_saved();
	skip
}
#endif

#ifdef SETTINGS
/* Rule 2: a transaction sent before that comes later is refused. */
inline change_count() {
	printf("coordinator: the count is %d\n", COUNT(1));
#ifndef MUTANT_G
	for (n : ALL_HOSTS) {
		if
		:: is[n].stage == SENT && CHECKS_G(is[n].kind) ->
			is[n].stage = REFUSED;
			is[n].age = 0
		:: else
		fi
	}
#endif
	g = 1
}
#endif

/* --- What a host does --- */

inline forget_request(h) {
	is[h].kind = NOTHING;
	is[h].stage = NOTHING;
	is[h].part = 0;
	is[h].age = 0;
	for (i : ALL_PARTS) {
		is[h].mine[i] = false
	}
#ifdef LOSS
	is[h].unsaved = false;
#endif
}

/* Without anything to use no right is needed: the next take brings one that ends later. */
inline settle(h) {
	n = 0;
	for (i : ALL_PARTS) {
		if
		:: is[h].hold[i] == HELD || is[h].hold[i] == WAITING -> n++
		:: is[h].hold[i] == DRAINING -> n++
		:: else
		fi
	}
	if
	:: n == 0 -> is[h].right = 0
	:: else
	fi
}

/* Rule 2: one at a time, with the versions of /g and /h. Its time counts from here (rule 3). */
inline ask(h, what, which) {
	printf("host %d: sends %e %d\n", h, what, which);
	is[h].state = ASKED;
	is[h].kind = what;
	is[h].part = which;
	is[h].stage = SENT;
#ifdef SETTINGS
	if
	:: is[h].g != g && CHECKS_G(what) -> is[h].stage = REFUSED
	:: else
	fi
#endif
}

/* The connection is closed. No answer will come, but what was sent may still arrive. */
inline disconnect(h) {
	if
	:: is[h].stage != SENT || !FITS(h, is[h].kind) -> skip
	:: is[h].stage == SENT && (is[h].kind == RENEW || is[h].kind == BARRIER) -> skip
	:: else ->
		at[CUR(h)].stray = is[h].kind;
		at[CUR(h)].stray_part = is[h].part
	fi
}

/* Rules 1 and 10. */
inline drop_all(h) {
	printf("host %d: drops everything\n", h);
	disconnect(h);
	for (i : ALL_PARTS) {
#ifdef MUTANT_1
		if
		:: is[h].hold[i] == HELD -> skip
		:: else -> is[h].hold[i] = NONE; is[h].wait[i] = 0; is[h].unmarked[i] = false
		fi
#else
		is[h].hold[i] = NONE;
		is[h].wait[i] = 0;
		is[h].unmarked[i] = false
#endif
	}
	is[h].state = CLOSED;
	forget_request(h);
	settle(h)
}

/* With a new session comes a new HID; the rest of the one before is as another host's. */
inline reopen(h) {
	printf("host %d: opens a session\n", h);
	at[OLD(h)].alive = at[CUR(h)].alive;
	at[OLD(h)].stray = at[CUR(h)].stray;
	at[OLD(h)].stray_part = at[CUR(h)].stray_part;
	for (i : ALL_PARTS) {
		if
		:: lease[i] == CUR(h) -> lease[i] = OLD(h)
		:: else
		fi
	}
	fade(OLD(h));
	at[CUR(h)].alive = true;
	at[CUR(h)].stray = NOTHING;
	at[CUR(h)].stray_part = 0;
#ifdef LOSS
	saved_alive[CUR(h)] = false;
	for (i : ALL_PARTS) {
		if
		:: saved && saved_lease[i] == CUR(h) ->
			saved_lease[i] = OLD(h);
			saved_alive[OLD(h)] = true
		:: else
		fi
	}
	is[h].newer = false;
	is[h].behind = false;
#endif
#ifdef SETTINGS
	/*
	 * A host that joins adopts the last change as if it came now: /c says the settings before.
	 */
	is[h].g = g;
#ifndef MUTANT_JOIN
	is[h].adopting = (g == 1 -> Q : 0);
#else
	is[h].adopting = 0;
#endif
#endif
	is[h].state = READY
}

/* Rule 7: counted from the receipt of the answer. */
inline wait_out(h, p) {
	is[h].hold[p] = WAITING;
	is[h].wait[p] = Q;
#ifdef MUTANT_7_AT_ONCE
	is[h].wait[p] = 0;
#endif
#ifdef MUTANT_7_SENT
	is[h].wait[p] = Q - is[h].age;
#endif
#ifdef MUTANT_7_VANISHED
	is[h].wait[p] = Q + (is[h].gone[p] > 0) - is[h].gone[p];
	is[h].gone[p] = 0;
#endif
	if
	:: is[h].wait[p] == 0 -> is[h].hold[p] = HELD
	:: else
	fi
}

/* Rule 9: the barrier has passed. */
inline look(h) {
	for (part : ALL_PARTS) {
		if
		:: is[h].hold[part] == IN_DOUBT && is[h].mine[part] ->
#ifdef REACH_DOUBT
			assert(false);
#endif
#ifdef MUTANT_9_AT_ONCE
			is[h].hold[part] = HELD;
#else
			is[h].hold[part] = WAITING;
			is[h].wait[part] = Q;
#endif
		:: is[h].hold[part] == IN_DOUBT && !is[h].mine[part] -> is[h].hold[part] = NONE
		:: else
		fi
	}
}

/* Rule 3. */
inline extend_right(h) {
#ifdef MUTANT_3
	is[h].age = 0;
#endif
	if
	:: EXTENDS(is[h].kind) && D > is[h].age && D - is[h].age > is[h].right ->
		is[h].right = D - is[h].age
	:: else
	fi
}

inline acknowledged(h) {
#ifdef REACH_LAPSE
	assert(is[h].kind != RENEW || is[h].hold[0] != HELD || is[h].right > 0 || is[h].age >= D);
#endif
	extend_right(h);
#ifdef MUTANT_4
	is[h].grants = true;
#endif
#ifdef LOSS
	is[h].newer = is[h].newer || (is[h].unsaved && epoch == 1);
	is[h].behind = is[h].unsaved && epoch == 2;
#endif
	is[h].state = READY;
	part = is[h].part;
	if
	:: is[h].kind == TAKE_CLEAN -> /* rule 6 */
#ifdef LAST_USER
		waited[part] = false;
#endif
		is[h].hold[part] = HELD
	:: is[h].kind == TAKE_UNCLEAN -> wait_out(h, part)
	:: is[h].kind == GIVE || is[h].kind == LEAVE ->
		is[h].hold[part] = NONE;
		is[h].unmarked[part] = false
	:: is[h].kind == BARRIER -> look(h)
	:: else
	fi;
	forget_request(h)
}

/* All is as it was; a give-back that was due still is. */
inline refused(h) {
	is[h].state = READY;
	part = is[h].part;
	if
	:: is[h].kind == TAKE_CLEAN || is[h].kind == TAKE_UNCLEAN -> is[h].hold[part] = NONE
	:: is[h].kind == BARRIER -> is[h].state = UNSURE
	:: else
	fi;
	forget_request(h)
}

inline answer(h) {
	printf("host %d: hears %e\n", h, is[h].stage);
	if
	:: is[h].stage == ACKED -> acknowledged(h)
	:: is[h].stage == REFUSED -> refused(h)
	:: is[h].stage == MISMATCH && is[h].kind == BARRIER -> refused(h) /* it is read again */
#ifdef MUTANT_10
	:: is[h].stage == MISMATCH && is[h].kind != BARRIER -> is[h].behind = false; refused(h)
#else
	:: is[h].stage == MISMATCH && is[h].kind != BARRIER -> drop_all(h) /* rule 10 */
#endif
	fi;
	settle(h)
}

/* Rules 9 and 13: the outcome is unknown. */
inline silence(h) {
	printf("host %d: gives up waiting\n", h);
	disconnect(h);
	is[h].state = UNSURE;
	if
#ifdef MUTANT_9_BARRIER
	/* A look without a barrier: while the lease is there, it was not given back. */
	:: is[h].kind == GIVE ->
		is[h].state = READY;
		is[h].hold[is[h].part] = (lease[is[h].part] == CUR(h) -> HELD : NONE)
#endif
	:: is[h].kind == RENEW || is[h].kind == BARRIER -> skip
	:: else -> is[h].hold[is[h].part] = IN_DOUBT; is[h].unmarked[is[h].part] = false
	fi;
	forget_request(h);
	settle(h)
}

/* Whether a give-back of that partition is under way. */
#define SENDS(h, p) ((is[h].kind == GIVE || is[h].kind == LEAVE) && is[h].part == p)

/* Killed; the successor knows what was kept. Its transaction under way is in doubt. */
inline resume(h) {
	printf("host %d: is killed, its successor goes on\n", h);
	disconnect(h);
	for (i : ALL_PARTS) {
		if
		:: is[h].hold[i] == TAKING || (is[h].hold[i] == DRAINING && SENDS(h, i)) ->
#ifdef MUTANT_KEPT_UNSENT
			if
			:: is[h].hold[i] == DRAINING -> skip
			:: else -> is[h].hold[i] = IN_DOUBT
			fi
#else
			is[h].hold[i] = IN_DOUBT;
			is[h].unmarked[i] = false
#endif
#ifdef MUTANT_KEPT_WAITING
		:: is[h].hold[i] == WAITING -> is[h].hold[i] = HELD; is[h].wait[i] = 0
#endif
#ifdef MUTANT_KEPT_UNMARKED
		:: is[h].hold[i] == DRAINING && !SENDS(h, i) -> is[h].unmarked[i] = false
#endif
		:: else
		fi
	}
#ifdef REACH_SUCCESSOR
	assert(!ENTITLED(h, 0));
#endif
#ifdef MUTANT_KEPT_LOOK
	for (i : ALL_PARTS) {
		is[h].mine[i] = (lease[i] == CUR(h))
	}
	look(h);
	is[h].state = READY;
#else
	is[h].state = UNSURE;
#endif
	forget_request(h);
	settle(h)
}

/* Killed within a step: the right of what was acknowledged is kept, the lease is not. */
inline resume_acknowledged(h) {
	extend_right(h);
	resume(h)
}

#ifdef MUTANT_KEPT_LATE
/* Killed within a step: a give-back is sent, and what is kept does not say so yet. */
inline resume_sent(h, p) {
	ask(h, GIVE, p);
	disconnect(h);
	is[h].state = UNSURE;
	forget_request(h)
}
#endif

#ifdef PROMPT
inline at_once(h) {
	if
	:: is[h].stage == SENT -> execute(h)
	:: else
	fi;
	answer(h);
	promise()
}
#else
inline at_once(h) { skip }
#endif

/* --- When --- */

/* Rule 5: of up to two partitions. */
#define HOLDS_ANY(h) (is[h].hold[0] != NONE || is[h].hold[PARTS - 1] != NONE)

#ifdef SETTINGS
#define WANTS(h, p) (is[h].hold[p] == NONE && p < COUNT(is[h].g))
#else
#define WANTS(h, p) (is[h].hold[p] == NONE)
#endif

proctype process(byte h)
{
end:	do
	:: d_step { is[h].state == CLOSED && !REMAINS(OLD(h)) -> reopen(h); tidy() }
	:: d_step { is[h].state == READY && HOLDS_ANY(h) -> ask(h, RENEW, 0); tidy() }
	:: d_step { is[h].state == UNSURE && !READS_LESS(h) -> ask(h, BARRIER, 0); tidy() }
	:: d_step { is[h].state == UNSURE && READS_LESS(h) -> drop_all(h); tidy() }
	:: d_step { is[h].state == ASKED && is[h].stage != SENT && is[h].stage != VANISHED ->
		answer(h); promise(); tidy() }
	:: d_step { is[h].state == ASKED -> silence(h); tidy() }
#ifdef LEAN
	:: d_step { is[h].state != CLOSED && !at[CUR(h)].alive -> drop_all(h); tidy() }
#else
	:: d_step { is[h].state != CLOSED -> drop_all(h); tidy() }
#endif
#ifndef NO_KILLS
	:: d_step { is[h].state != CLOSED -> resume(h); promise(); tidy() }
	:: d_step { is[h].state == ASKED && is[h].stage == ACKED && EXTENDS(is[h].kind) ->
		resume_acknowledged(h); promise(); tidy() }
#endif
#ifdef MUTANT_4
	/* The end of the right is noticed when there is time for it. */
	:: d_step { is[h].grants && is[h].right == 0 -> is[h].grants = false; tidy() }
#endif
#ifdef SETTINGS
	:: d_step { is[h].state != CLOSED && is[h].g != g ->
		printf("host %d: adopts the change\n", h);
		is[h].g = g;
#ifndef MUTANT_ADOPT
		is[h].adopting = Q;
#endif
		promise(); tidy() }
#endif
	od
}

/* A due give-back is sent at once or any time later. */
#ifdef PROMPT
#define NO_HURRY(h) (is[h].state == READY)
inline send_draining(h, p) {
	ask(h, (is[h].unmarked[p] -> LEAVE : GIVE), p);
	at_once(h)
}
#else
#define NO_HURRY(h) true
inline send_draining(h, p) { skip }
#endif

proctype demand(byte h; byte p)
{
end:	do
	:: d_step { is[h].state == READY && WANTS(h, p) ->
		is[h].hold[p] = TAKING;
		ask(h, TAKE_CLEAN, p); at_once(h); tidy() }
	:: d_step { is[h].state == READY && WANTS(h, p) ->
		is[h].hold[p] = TAKING;
		ask(h, TAKE_UNCLEAN, p); at_once(h); tidy() }
#ifdef MUTANT_8_LATE
	:: d_step { is[h].state == READY && is[h].hold[p] == HELD ->
		ask(h, GIVE, p); at_once(h); tidy() }
#else
	/* Rule 8: use stops first. */
	:: d_step { is[h].hold[p] == HELD && NO_HURRY(h) ->
		is[h].hold[p] = DRAINING; send_draining(h, p); tidy() }
#endif
	/* Rule 8: a host that waits cannot say that it is clean. */
	:: d_step { is[h].hold[p] == WAITING && NO_HURRY(h) ->
		is[h].hold[p] = DRAINING;
		is[h].wait[p] = 0;
#ifndef MUTANT_8_WAITING
		is[h].unmarked[p] = true;
#endif
		send_draining(h, p); tidy() }
	:: d_step { is[h].state == READY && is[h].hold[p] == DRAINING ->
		ask(h, (is[h].unmarked[p] -> LEAVE : GIVE), p); at_once(h); tidy() }
#ifdef MUTANT_KEPT_LATE
	:: d_step { is[h].state == READY && is[h].hold[p] == HELD -> resume_sent(h, p); tidy() }
#endif
#ifdef MUTANT_7_VANISHED
	:: d_step { is[h].gone[p] == 0 && lease[p] == NOBODY && !marker[p] ->
		printf("host %d: sees no lease and no marker\n", h);
		is[h].gone[p] = 1; tidy() }
#endif
	od
}

proctype coordinator(byte h)
{
end:	do
	:: d_step { is[h].stage == SENT -> execute(h); tidy() }
	:: d_step { at[CUR(h)].stray != NOTHING -> execute_stray(h, CUR(h)); tidy() }
	:: d_step { at[OLD(h)].stray != NOTHING -> execute_stray(h, OLD(h)); tidy() }
	:: d_step { at[CUR(h)].alive -> close(CUR(h)); tidy() }
	:: d_step { at[OLD(h)].alive -> close(OLD(h)); tidy() }
	od
}

byte turn; /* whose clock ticks next */

#ifdef MUTANT_7_SENT
#define AGE_MAX Q
#else
#define AGE_MAX D
#endif

inline tick(h) {
	printf("host %d: its clock ticks\n", h);
	if
	:: is[h].right > 0 -> is[h].right--
	:: else
	fi;
	if
	:: (is[h].stage == SENT || is[h].stage == ACKED) && is[h].age < AGE_MAX -> is[h].age++
	:: else
	fi;
	for (i : ALL_PARTS) {
		if
		:: is[h].wait[i] == 1 ->
#ifdef LAST_USER
			waited[i] = true;
#endif
			is[h].hold[i] = HELD;
			is[h].wait[i] = 0
		:: is[h].wait[i] > 1 -> is[h].wait[i]--
		:: else
		fi;
#ifdef MUTANT_7_VANISHED
		if
		:: is[h].gone[i] > 0 && is[h].gone[i] <= Q -> is[h].gone[i]++
		:: else
		fi;
#endif
		skip
	}
#ifdef SETTINGS
	if
	:: is[h].adopting > 0 -> is[h].adopting--
	:: else
	fi;
#endif
	skip
}

proctype clocks()
{
end:	do
	:: d_step { tick(turn); turn = (turn + 1) % HOSTS; promise(); tidy() }
	od
}

#ifdef LOSS
proctype election()
{
end:	do
	:: d_step { epoch == 1 && !saved -> save(); tidy() }
	:: d_step { epoch == 1 && saved -> elect(); tidy() }
	od
}
#endif

#ifdef SETTINGS
proctype operator()
{
end:	d_step { change_count(); tidy() }
}
#endif

init {
	atomic {
#ifdef SETTINGS
		/* A new index has a marker, as if it was used before: that is the harder case. */
		if
		:: grow = true
		:: grow = false
		fi;
		run operator();
#endif
#ifdef LOSS
		run election();
#endif
		run clocks();
		for (n : ALL_HOSTS) {
			run process(n);
			run coordinator(n);
			for (i : ALL_PARTS) {
				run demand(n, i)
			}
		}
		tidy()
	}
}
