/*
 * tiles - a model of the protocol of core/fleet in which names are the state, for Spin.
 *
 * THE PROMISE: no two hosts are ever entitled to one leaf; and where the rate is so small that
 * nothing flows in, all hosts together are never granted more tokens than the burst.
 * With RESCUE also: at any moment, whatever came before, a host that is alone from then on uses all
 * leaves a bounded time later.
 *
 * NODES
 *
 *	/t/LID/A-B+E+L	the leaves A to B are free and clean: E is an epoch, L what is left
 *	/t/LID/A-B.HID	they are leased by that host
 *	/h/HID		ephemeral, a host's session; its version counts the host's transactions
 *	/d/HID+E	that host's right is over, as was found in epoch E
 *
 * RULES of core/fleet/fleet.h. This model alone searches 1, 3 and 6 to 10; of 2, 11 and 12 what is
 * about /h and tiles; of 18 what a level is worth after an election; and the rules of a key, of
 * core/fleet/keys.md. The model tokens.pml alone searches 16 and 17, the rest of 18, and what of 2
 * and 11 is about /g. Both have 4 and 5; neither has 19 and 20. Names and Shapes are 6, Clean is 7,
 * Gone and Ended are 8, Giving back is 9, Ending 10, Reviving 3:
 *
 *  - Names: a transaction about leaves deletes tiles by their exact names, and creates tiles of the
 *    same leaves. A name says all, so it asserts all.
 *  - Shapes: any host splits and merges clean tiles, and its own. The parts
 *    of a clean tile have its E, and L between them. Two clean tiles become one with the smaller E
 *    and the sum of L.
 *  - Clean: a host deletes A-B+E+L and creates A-B.ME. Where E is the epoch of the acknowledgement
 *    it is usable at once and brings L. Else it brings nothing, and is usable Q after the host
 *    first knew the epoch of the acknowledgement.
 *  - Gone: a host creates and deletes /h/X, which asserts that X is gone, deletes A-B.X and creates
 *    A-B.ME. It brings nothing, and is usable Q after the host first knew, in the epoch of the
 *    acknowledgement, that X is gone: by a read without /h/X after X was seen by any name, or by
 *    the acknowledgement.
 *  - Ended: with a check of /d/X+E a tile A-B.X is taken as a clean one of epoch E with nothing
 *    left.
 *  - Ending: a host reads the version of /h/X. Q after it received it, it deletes /h/X at that
 *    version and creates /d/X+E in one transaction. E is the epoch of its own last transaction that
 *    was acknowledged before it sent that read.
 *  - Giving back: only what is usable. Use stops and the tokens leave the bucket, then A-B.ME is
 *    deleted and A-B+E+L created. E is the epoch of the last acknowledgement that extended the
 *    right.
 *  - Reviving: where the right has lapsed when an acknowledgement is received, and that is of a
 *    later epoch than the last one that extended the right, what is held, or waited for, is usable
 *    no sooner than Q after the host first knew that epoch. The bucket is empty after every lapse.
 *
 * The leaves of a KEY are there while they are of use. Beside the rules above:
 *  - Making: where there are no tiles of the key one transaction makes all of them, as the host's.
 *    They bring what flowed in since the host knew, in the epoch of the acknowledgement, for Q that
 *    there were none. Usable then.
 *  - Ending: a host that holds all leaves, usable, stops their use, takes their whole burst out of
 *    its bucket and deletes them. Without the whole burst in the bucket it does not.
 *  - Tokens go with no tile: a tile that is taken is empty, and a bucket keeps no more than the
 *    share of the leaves that stay.
 *
 * Quotas that services tell (rule 21 of fleet.h) need no model of their own: they add up parts of
 * leaves, each of which is one host's by THE PROMISE, and that a clean tile of the newest epoch
 * brings its L is the rule by which it brings its part. tests/core/limiter/test_allowance.c
 * searches their arithmetic: hosts that hear late, leaves that move, hosts that die.
 *
 * A host knows an epoch by an acknowledgement in it. All waits are of one form: Q after something
 * is known, of which a part may be over when the acknowledgement comes.
 *
 * THE MODEL
 *
 * Whatever a guard allows may happen at any moment, and nothing has to: a host that does nothing is
 * paused or dead, while its clock goes on and its requests travel on.
 *
 *  - The coordinator orders all transactions. It closes a session whenever it likes, with its node;
 *    the host learns of that late or never.
 *  - A request is executed any time after it was sent, or never. Its answer comes any time later,
 *    or never. A host gives up waiting at any time; the request is a stray then, which may still be
 *    executed.
 *  - A process is killed at any time, and its successor goes on in its session with what was kept
 *    (core/fleet/handover.h).
 *  - An election brings back any state since the last close of a session.
 *  - Lists are as stale as they like. A request with a name that is not there when it is executed
 *    is as one that was never sent. So a request says of which leaves it is, and the rest of the
 *    name is found when it is executed: that is one of all the names that it might have said.
 *  - A part of a tile is taken by a split, which any host may do at any time, and a take.
 *  - Clocks tick in turn. Over any interval two of them differ by up to a tick, either way, which
 *    is slip and granularity in one. So Q is D + 1 ticks, the least that can be safe.
 *  - What a host can know it knows at once, which is the worst: a later knowledge is a longer wait.
 *  - The name of a host that is gone makes no difference between its tiles and those of another, so
 *    it is not kept. A tile with /d/X+E is as a clean one, so it is made one. Deleting /d is left
 *    out: it can only cause waits.
 *  - After an election a host may be ended at once, at the version that was brought back: its
 *    neighbour may have read it long before.
 *
 * Variants, by -D when the model is compiled:
 *	HOSTS, LEAVES, D sizes
 *	LINGER		a host leaves a session that is not closed
 *	RESCUE		see above
 * and by the words in VARIANT, in the environment of the search:
 *	ONE_LEAF	of two
 *	NO_KILLS	no process is killed
 *	PROMPT		what is about tiles is executed before a clock ticks, and answered at once or
 *			never
 *	LOSS		there is an election
 *	LOSS_CLOSES	it may also take back the close of a session
 *	PATIENT		a session is closed only after the right of its host, as with T > Q
 *	NEIGHBOUR	hosts end one another
 *	LEVELS		tiles bring tokens
 *	KEEPS_LEVEL	a bucket is not emptied by a lapse
 *	KEY		the leaves are a key's (core/fleet/keys.md): see below; with LEVELS
 *	MUTANT_...	leaves out a rule, or a part of one
 *	REACH_...	claims that something is never reached that must be
 *
 * Left out, and where it is covered:
 *  - changes of settings, /g: tokens.pml. A changed count is another folder of tiles;
 *  - when a connection or a session is given up (13): any moment is searched;
 *  - several tiles in one transaction, which is executed as a whole or not at all;
 *  - the ring in which hosts watch one another, and claims: nothing rests on them;
 *  - foreign hands; several elections in one history; clocks that go wrong by more than 0.5 %.
 */
#ifndef HOSTS
#define HOSTS 2
#endif
#ifndef LEAVES
#define LEAVES 2
#endif
#ifndef D
#define D 1
#endif
#define Q_MAX (D + 1)
#define Q (D + 1 - ON(MUTANT_Q))

/* The options of a variant, from the environment; none is part of a state. */
#define OPTIONS(X) \
	X(LOSS) X(LOSS_CLOSES) X(NEIGHBOUR) X(LEVELS) X(PROMPT) X(NO_KILLS) X(PATIENT) X(ONE_LEAF) \
	X(KEEPS_LEVEL) X(KEY) \
	X(MUTANT_1) X(MUTANT_2) X(MUTANT_3) X(MUTANT_11_BARRIER) X(MUTANT_11_AT_ONCE) X(MUTANT_12) \
	X(MUTANT_12_READ) X(MUTANT_KEPT_WAITING) X(MUTANT_Q) \
	X(MUTANT_NAME) X(MUTANT_SPLIT) X(MUTANT_SPLIT_LEVEL) X(MUTANT_MERGE) X(MUTANT_MERGE_EPOCH) \
	X(MUTANT_CLEAN_EPOCH) X(MUTANT_CLEAN_LEVEL) \
	X(MUTANT_GONE_ASSERT) X(MUTANT_GONE_AT_ONCE) X(MUTANT_GONE_SENT) X(MUTANT_GONE_ORDER) \
	X(MUTANT_GONE_EPOCH) \
	X(MUTANT_GIVE_LATE) X(MUTANT_GIVE_EPOCH) X(MUTANT_GIVE_LEVEL) X(MUTANT_GIVE_WAITING) \
	X(MUTANT_REVIVE) X(MUTANT_REVIVE_WAITING) X(MUTANT_ALONE) \
	X(MUTANT_END_Q) X(MUTANT_END_VERSION) X(MUTANT_END_EPOCH) X(MUTANT_END_CHECK) \
	X(MUTANT_MAKE_EPOCH) X(MUTANT_MAKE_LEVEL) X(MUTANT_MAKE_ASSERT) \
	X(MUTANT_UNMAKE_LEVEL) X(MUTANT_UNMAKE_KEEPS) X(MUTANT_UNMAKE_LATE) \
	X(MUTANT_UNMAKE_PART) X(MUTANT_UNMAKE_WAITING) X(MUTANT_KEY_FULL) \
	X(REACH_GIVEN) X(REACH_SEIZED) X(REACH_ENDED) X(REACH_DOUBT) X(REACH_STRAY) X(REACH_LAPSE) \
	X(REACH_SUCCESSOR) X(REACH_TAKEN_BACK) X(REACH_REVIVED) X(REACH_OLD_EPOCH) \
	X(REACH_MADE) X(REACH_MADE_LATE)
#define DECLARE(option) static int option;
#define CHOOSE(option) option = is_chosen(#option, sizeof(#option) - 1);
#define ON(option) c_expr { option }

c_decl {
	OPTIONS(DECLARE)

	static int words_known;

	static int is_chosen(const char *name, size_t length)
	{
		const char *at = getenv("VARIANT");

		while (at && *at) {
			size_t word = strcspn(at, " ");

			if (word == length && !strncmp(at, name, length)) {
				words_known++;
				return 1;
			}
			at += word;
			at += strspn(at, " ");
		}
		return 0;
	}

	static void choose(void)
	{
		const char *at = getenv("VARIANT");
		int words = 0;

		OPTIONS(CHOOSE)
		while (at && *at) {
			words++;
			at += strcspn(at, " ");
			at += strspn(at, " ");
		}
		if (words != words_known) {
			fprintf(stderr, "VARIANT: no such option: %s\n", getenv("VARIANT"));
			exit(2);
		}
	}
}

#define ALL_HOSTS 0 .. HOSTS - 1
#define ALL_LEAVES 0 .. LEAVES - 1

/* A host: has nothing under way; awaits an answer; needs a barrier (rule 11). */
mtype = { READY, ASKED, UNSURE };
/* Transactions. TAKE: a clean tile; SEIZE: that of a host that is gone; MAKE, UNMAKE: a key's. */
mtype = { NOTHING, RENEW, BARRIER, TAKE, SEIZE, GIVE, END, MAKE, UNMAKE };
/*
 * Where a transaction is: not executed yet; executed, or refused by a name, or by the version of
 * /h, with the answer under way; gone down with an election.
 */
mtype = { SENT, ACKED, REFUSED, MISMATCH, VANISHED };

/* A leaf on a host; from WAITS(1) on: usable after so many ticks. MINE: a look will show it. */
#define NONE 0
#define HELD 1
#define DOUBT 2
#define MINE 3
#define WAITS(ticks) (3 + (ticks))
#define IS_WAITING(h, p) (is[h].hold[p] >= WAITS(1))

/* Variables that mean nothing between two steps: 0 there. */
byte i, n, count, holders, executed, found, level;
mtype kind;

/* --- The coordinator's nodes --- */

/* A host's present session, and the one before. */
#define CUR(h) (h)
#define OLD(h) (HOSTS + (h))
#ifdef LINGER
#define SESSIONS (2 * HOSTS)
#else
#define SESSIONS HOSTS
#endif
#define ALL_SESSIONS 0 .. SESSIONS - 1

/* A transaction: the leaves of the tile, or the host that is ended; and what it says. */
typedef request {
	mtype kind = NOTHING;
	unsigned first : 2;
	unsigned last : 2;
	unsigned late : 1; /* E is the second epoch; of what was executed: its own epoch */
	unsigned level : 2; /* L */
};

typedef session {
	bool alive = true; /* /h/HID is there */
	request stray;	   /* may yet be executed; its answer is not awaited */
};

/*
 * Whose a leaf's tile is: none's, it is clean; a session's that is gone; a session's; a key's leaf
 * has none.
 */
#define FREE 0
#define GONE 1
#define OF(s) (2 + (s))
#define ABSENT 15

typedef leaf {
	unsigned owner : 4;
	unsigned late : 1;   /* FREE: E is the second epoch */
	unsigned joined : 1; /* the next leaf is in the same tile */
	unsigned level : 2;  /* FREE, the first leaf of a tile: L */
};

session at[SESSIONS];
leaf tile[LEAVES];
bool second; /* epoch */

/* Clocks of what a host knows, from the first moment at which it can know it; up to Q. */
typedef sight {
	byte gone[LEAVES]; /* that the leaf's session is gone */
	byte still[HOSTS]; /* the version of that host's node */
	byte second;	   /* that the second epoch has begun */
};

sight seen[HOSTS];

/* The state that an election brings back. */
bool saved;
bool saved_alive[SESSIONS];
leaf saved_tile[LEAVES];
#define REMAINS(s) (at[s].alive || saved_alive[s])

/* --- Hosts --- */

typedef host {
	mtype state = READY;
	request asked;	       /* the transaction under way, */
	mtype stage = NOTHING; /* where it is, */
	byte age;	       /* the ticks since it was sent, */
	byte wait;	       /* executed: the ticks until what it took is usable */
	byte right;	       /* ticks until the right ends */
	byte hold[LEAVES];
	byte level; /* in its bucket */
	bool second;  /* the epoch of the last acknowledgement that extended the right */
	bool unsaved; /* its transaction was executed after the state that is brought back */
	bool newer;   /* so was what was acknowledged last */
	bool behind;  /* the version of /h is below the one acknowledged last */
};

host is[HOSTS];

/* Whether a transaction of that kind has the version of /h that is there. */
#define FITS(h, kind) (at[CUR(h)].alive && (!is[h].behind || kind == BARRIER))

/* Rule 12: the version read of /h is below the one acknowledged last, so history was lost. */
#define READS_LESS(h) (is[h].behind && !ON(MUTANT_12_READ))

/* Rule 11: a barrier extends no right. */
#define EXTENDS(kind) (kind != BARRIER)

#define SMALLER(a, b) ((a) < (b) -> (a) : (b))
#define LARGER(a, b) ((a) > (b) -> (a) : (b))

/* --- The promise --- */

#define ENTITLED(h, p) (is[h].hold[p] == HELD && is[h].right > 0)

byte granted; /* tokens, ever: the rate is so small that none flows in */
#define BURST (LEAVES - ON(ONE_LEAF))
byte last_leaf; /* of a KEY */

inline promise() {
	for (i : ALL_LEAVES) {
		holders = 0;
		for (n : ALL_HOSTS) {
			holders = holders + ENTITLED(n, i)
		}
		assert(holders <= 1)
	}
	assert(!ON(REACH_TAKEN_BACK) || !(ENTITLED(0, 0) && is[0].behind && IS_WAITING(1, 0)))
}

/* --- What the coordinator does --- */

inline forget(r) {
	r.kind = NOTHING;
	r.first = 0;
	r.last = 0;
	r.late = 0;
	r.level = 0
}

inline forget_saved() {
	saved = false;
	for (i : ALL_SESSIONS) {
		saved_alive[i] = false
	}
	for (i : ALL_LEAVES) {
		saved_tile[i].owner = FREE;
		saved_tile[i].joined = false;
		saved_tile[i].level = 0
	}
}

/* A leaf's session is gone. */
inline lose_leaf(p) {
	tile[p].owner = GONE;
	for (n : ALL_HOSTS) {
		seen[n].gone[p] = (ON(MUTANT_GONE_ORDER) -> Q : 0)
	}
}

inline close(s) {
	printf("coordinator: closes session %d\n", s);
	for (i : ALL_LEAVES) {
		if
		:: tile[i].owner == OF(s) -> lose_leaf(i)
		:: else
		fi
	}
	if
	:: saved && !ON(LOSS_CLOSES) ->
		for (n : ALL_HOSTS) {
			is[n].unsaved = false;
			is[n].newer = false
		}
		forget_saved()
	:: else
	fi;
	forget(at[s].stray);
	at[s].alive = false
}

/* Whether there is a tile of just these leaves. */
inline find_tile(low, high) {
	found = !tile[high].joined;
	if
	:: low > 0 -> found = found && !tile[low - 1].joined
	:: else
	fi;
	for (i : (low) .. (high)) {
		found = found && (i == high || tile[i].joined)
	}
}

inline change_tile(r, whose, epoch, left) {
	for (i : r.first .. r.last) {
		tile[i].owner = whose;
		tile[i].late = epoch;
		tile[i].level = 0;
		for (n : ALL_HOSTS) {
			seen[n].gone[i] = 0
		}
	}
	tile[r.first].level = left
}

/* Rule 8: the transaction asserts that the tile's host is gone. */
#define CAN_SEIZE(owner, s) \
	(owner == GONE || (ON(MUTANT_GONE_ASSERT) && owner != FREE && owner != OF(s)))

#define CAN_MAKE(owner) (owner == ABSENT || (ON(MUTANT_MAKE_ASSERT) && owner == FREE))

#define CAN_TAKE(owner, s) \
	(owner == FREE || (ON(MUTANT_END_CHECK) && ended && owner != GONE && owner != OF(s)))

bool ended; /* MUTANT_END_CHECK: /d of some host was seen */
bool given; /* REACH_GIVEN: by the first host, which does nothing more */

/* /d/X+E in place of /h/X: a tile of X is as a clean one of epoch E, and empty. */
inline end_host(r) {
	for (i : ALL_LEAVES) {
		if
		:: tile[i].owner == OF(CUR(r.first)) ->
			tile[i].owner = FREE;
			tile[i].late = (ON(MUTANT_END_EPOCH) -> second : r.late);
			tile[i].level = 0
		:: else
		fi
	}
	ended = ON(MUTANT_END_CHECK);
	forget(at[CUR(r.first)].stray);
	at[CUR(r.first)].alive = false
}

/* A host is ended at the version that its neighbour knows. */
inline spoil_ends(h) {
	for (n : ALL_HOSTS) {
		seen[n].still[h] = 0;
		if
		:: is[n].stage == SENT && is[n].asked.kind == END && is[n].asked.first == h &&
				!ON(MUTANT_END_VERSION) ->
			is[n].stage = REFUSED;
			is[n].age = 0
		:: else
		fi
	}
	for (i : ALL_SESSIONS) {
		if
		:: at[i].stray.kind == END && at[i].stray.first == h && !ON(MUTANT_END_VERSION) ->
			forget(at[i].stray)
		:: else
		fi
	}
}

/* Request @r of session @s: all of it is executed, or nothing. */
inline transact(s, r) {
	executed = 0;
	kind = r.kind;
	if
	:: kind == RENEW || kind == BARRIER -> executed = 1
	:: kind == END && at[CUR(r.first)].alive ->
		executed = 1;
		end_host(r)
	:: kind == UNMAKE ->
		/* The folder has to be empty then. */
		found = true;
		for (i : 0 .. last_leaf) {
			found = found && (tile[i].owner == OF(s) ||
				(ON(MUTANT_UNMAKE_PART) && i > 0))
		}
		if
		:: found ->
			executed = 1;
			for (i : 0 .. last_leaf) {
				tile[i].owner = ABSENT;
				tile[i].late = 0;
				tile[i].level = 0;
				tile[i].joined = i < last_leaf
			}
			given = given || (ON(REACH_MADE) && s != CUR(1))
		:: else
		fi
	:: kind == MAKE || kind == TAKE || kind == SEIZE || kind == GIVE ->
		find_tile(r.first, r.last);
		if
		:: !found -> skip
		:: found && kind == MAKE && CAN_MAKE(tile[r.first].owner) ->
			executed = 1;
			r.late = 0;
			r.level = r.last + 1 - r.first;
			change_tile(r, OF(s), 0, 0)
		:: found && kind == TAKE && CAN_TAKE(tile[r.first].owner, s) ->
			executed = 1;
			r.late = tile[r.first].late;
			r.level = tile[r.first].level;
			change_tile(r, OF(s), 0, 0)
		:: found && kind == SEIZE && CAN_SEIZE(tile[r.first].owner, s) ->
			executed = 1;
			count = 0;
			if
			:: s < HOSTS -> count = seen[s].gone[r.first]
			:: else
			fi;
			change_tile(r, OF(s), 0, 0)
		:: found && kind == GIVE && tile[r.first].owner == OF(s) ->
			executed = 1;
			given = given || (ON(REACH_GIVEN) && s != CUR(1));
			change_tile(r, FREE, r.late, r.level)
		:: else
		fi
	:: else
	fi
}

/* When what was taken is usable: Q after the host first knew what it has to know. */
inline set_wait(h) {
	is[h].wait = 0;
	if
	:: kind == TAKE && is[h].asked.late < second && !ON(MUTANT_CLEAN_EPOCH) ->
		is[h].wait = Q - seen[h].second
	:: kind == MAKE && second && !ON(MUTANT_MAKE_EPOCH) ->
		is[h].wait = Q - seen[h].second
	:: kind == SEIZE && ON(MUTANT_GONE_SENT) ->
		is[h].wait = SMALLER(Q - count, Q - is[h].age)
	:: kind == SEIZE && !ON(MUTANT_GONE_SENT) && !ON(MUTANT_GONE_AT_ONCE) ->
		is[h].wait = Q - count
	:: else
	fi;
	/* Rule 7: a level counts in its epoch. */
	if
	:: kind == TAKE && (is[h].asked.late < second || ON(KEY)) && !ON(MUTANT_CLEAN_LEVEL) ->
		is[h].asked.level = 0
	/* The rate is so small that nothing flows in since the epoch is known. */
	:: kind == MAKE && second && !ON(MUTANT_MAKE_LEVEL) -> is[h].asked.level = 0
	:: else
	fi;
	/* It begins full, as that of a limiter does. */
	if
	:: ON(MUTANT_KEY_FULL) && (kind == TAKE || kind == SEIZE) -> is[h].asked.level = 1
	:: else
	fi;
	is[h].asked.late = second
}

inline execute(h) {
	if
	:: !FITS(h, is[h].asked.kind) -> is[h].stage = MISMATCH
	:: else ->
		transact(CUR(h), is[h].asked);
		is[h].stage = (executed -> ACKED : REFUSED)
	fi;
	printf("coordinator: kind %d %d-%d of host %d: stage %d\n", is[h].asked.kind,
	       is[h].asked.first, is[h].asked.last, h, is[h].stage);
	if
	:: is[h].stage == ACKED ->
		set_wait(h);
		/* Rule 2: no older request has the version any more. */
		if
		:: !ON(MUTANT_2) -> forget(at[CUR(h)].stray)
		:: else
		fi;
		spoil_ends(h);
		is[h].unsaved = saved;
		for (i : ALL_LEAVES) {
			if
			:: is[h].asked.kind == BARRIER && is[h].hold[i] == DOUBT ->
				is[h].hold[i] = (tile[i].owner == OF(CUR(h)) -> MINE : NONE)
			:: else
			fi
		}
	:: else -> is[h].age = 0
	fi
}

inline execute_stray(h, s) {
	transact(s, at[s].stray);
	printf("coordinator: stray kind %d %d-%d of session %d: %d\n", at[s].stray.kind,
	       at[s].stray.first, at[s].stray.last, s, executed);
	assert(!ON(REACH_STRAY) || !executed);
	forget(at[s].stray);
	if
	:: executed && s == CUR(h) ->
		spoil_ends(h);
		if
		:: is[h].stage == SENT && !ON(MUTANT_2) ->
			is[h].stage = MISMATCH;
			is[h].age = 0
		:: else
		fi
	:: else
	fi
}

/* Anybody may split and merge what is clean, a host what is its own. */
#define IS_HELD(p) (tile[p].owner >= OF(0))

inline split(p) {
	printf("coordinator: split after %d\n", p);
	tile[p].joined = false;
	for (i : p .. p + 1) {
		if
		/* A node of these leaves is there, whatever its state; the children are clean. */
		:: ON(MUTANT_NAME) && IS_HELD(i) -> tile[i].owner = FREE; tile[i].late = second
		/* The children are as new as the transaction. */
		:: ON(MUTANT_SPLIT) -> tile[i].late = second
		:: else
		fi
	}
	n = p;
	do
	:: n > 0 && tile[n - 1].joined -> n--
	:: else -> break
	od;
	level = tile[n].level;
	tile[n].level = SMALLER(level, p + 1 - n);
	tile[p + 1].level = level - tile[n].level;
	if
	:: ON(MUTANT_SPLIT_LEVEL) -> tile[p + 1].level = SMALLER(level, 1)
	:: else
	fi
}

#define CAN_MERGE(p) \
	((tile[p].owner == tile[p + 1].owner && tile[p].owner != GONE) || \
	 (ON(MUTANT_MERGE) && tile[p].owner == FREE && tile[p + 1].owner == GONE))

inline merge(p) {
	printf("coordinator: merge after %d\n", p);
	tile[p].joined = true;
	tile[p + 1].owner = tile[p].owner;
	/* Rule 6: the smaller epoch, of all leaves on either side. */
	found = (ON(MUTANT_MERGE_EPOCH) -> tile[p].late || tile[p + 1].late :
		 tile[p].late && tile[p + 1].late);
	n = p;
	do
	:: n > 0 && tile[n - 1].joined -> n--
	:: else -> break
	od;
	level = tile[p + 1].level;
	tile[p + 1].level = 0;
	tile[n].level = tile[n].level + level;
	tile[n].late = found;
	do
	:: tile[n].joined -> n++; tile[n].late = found
	:: else -> break
	od;
	skip
}

inline save() {
	printf("coordinator: what follows may be lost\n");
	for (i : ALL_SESSIONS) {
		saved_alive[i] = at[i].alive
	}
	for (i : ALL_LEAVES) {
		saved_tile[i].owner = tile[i].owner;
		saved_tile[i].joined = tile[i].joined;
		saved_tile[i].level = tile[i].level
	}
	saved = true
}

/* It closes all connections, and what they carried is gone; but not answers on their way. */
inline elect() {
	printf("coordinator: election, history is lost\n");
	second = true;
	for (i : ALL_SESSIONS) {
		at[i].alive = saved_alive[i];
		forget(at[i].stray)
	}
	for (i : ALL_LEAVES) {
		tile[i].owner = saved_tile[i].owner;
		tile[i].joined = saved_tile[i].joined;
		tile[i].level = saved_tile[i].level;
		tile[i].late = false;
		/* Gone: a sight of another epoch does not count. */
		for (n : ALL_HOSTS) {
			seen[n].gone[i] = (ON(MUTANT_GONE_EPOCH) && tile[i].owner == GONE -> Q : 0)
		}
	}
	for (n : ALL_HOSTS) {
		/* At worst a version that is there again was read long ago. */
		for (i : ALL_HOSTS) {
			seen[n].still[i] = Q
		}
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

/* --- What a host does --- */

inline forget_request(h) {
	forget(is[h].asked);
	is[h].stage = NOTHING;
	is[h].age = 0;
	is[h].wait = 0;
	is[h].unsaved = false
}

/* Rule 2: one at a time, with the version of /h. Its time counts from here (rule 3). */
inline ask(h, what, low, high) {
	printf("host %d: sends kind %d %d-%d\n", h, what, low, high);
	is[h].state = ASKED;
	is[h].stage = SENT;
	is[h].asked.kind = what;
	is[h].asked.first = low;
	is[h].asked.last = high
}

/* Rule 9: use stops first. */
inline ask_give(h, low, high) {
	ask(h, GIVE, low, high);
	for (i : (low) .. (high)) {
		is[h].hold[i] = (ON(MUTANT_GIVE_LATE) -> HELD : NONE)
	}
	is[h].asked.late = (ON(MUTANT_GIVE_EPOCH) -> second : is[h].second);
	is[h].asked.level = SMALLER(is[h].level, high + 1 - low);
	if
	:: !ON(MUTANT_GIVE_LEVEL) -> is[h].level = is[h].level - is[h].asked.level
	:: else
	fi;
	if
	:: ON(KEY) -> is[h].asked.level = 0
	:: else
	fi
}

#define IS_FULL(h) (is[h].level > last_leaf || ON(MUTANT_UNMAKE_LEVEL) || \
	(ON(MUTANT_UNMAKE_PART) && is[h].level && is[h].hold[last_leaf] == NONE))

inline ask_unmake(h) {
	ask(h, UNMAKE, 0, last_leaf);
	for (i : 0 .. last_leaf) {
		is[h].hold[i] = (ON(MUTANT_UNMAKE_LATE) -> HELD : NONE)
	}
	is[h].asked.level = is[h].level;
	if
	:: !ON(MUTANT_UNMAKE_KEEPS) && !ON(MUTANT_UNMAKE_LATE) -> is[h].level = 0
	:: else
	fi
}

/* The connection is closed. No answer will come, but what was sent may still arrive. */
inline disconnect(h) {
	if
	:: is[h].stage == SENT && FITS(h, is[h].asked.kind) && is[h].asked.kind != RENEW &&
			is[h].asked.kind != BARRIER ->
		at[CUR(h)].stray.kind = is[h].asked.kind;
		at[CUR(h)].stray.first = is[h].asked.first;
		at[CUR(h)].stray.last = is[h].asked.last;
		at[CUR(h)].stray.late = is[h].asked.late;
		at[CUR(h)].stray.level = is[h].asked.level
	:: else
	fi
}

#ifdef LINGER
/* The rest of the session before is as another host's. */
inline leave_session(h) {
	at[OLD(h)].alive = at[CUR(h)].alive;
	at[OLD(h)].stray.kind = at[CUR(h)].stray.kind;
	at[OLD(h)].stray.first = at[CUR(h)].stray.first;
	at[OLD(h)].stray.last = at[CUR(h)].stray.last;
	at[OLD(h)].stray.level = at[CUR(h)].stray.level;
	forget(at[CUR(h)].stray);
	for (i : ALL_LEAVES) {
		if
		:: tile[i].owner == OF(CUR(h)) -> tile[i].owner = OF(OLD(h))
		:: else
		fi
	}
	at[CUR(h)].alive = false
}
#define CAN_LEAVE(h) !at[OLD(h)].alive
#else
#define leave_session(h) skip
#define CAN_LEAVE(h) true
#endif

/* Rules 1 and 10: with a new session comes a new HID. */
inline drop_all(h) {
	printf("host %d: drops everything, opens a session\n", h);
	disconnect(h);
	leave_session(h);
	if
	:: at[CUR(h)].alive -> close(CUR(h))
	:: else
	fi;
	for (i : ALL_LEAVES) {
		is[h].hold[i] = (ON(MUTANT_1) && is[h].hold[i] == HELD -> HELD : NONE)
	}
	is[h].state = READY;
	forget_request(h);
	is[h].level = 0;
	at[CUR(h)].alive = true;
	spoil_ends(h);
	for (i : ALL_LEAVES) {
		if
		:: saved && saved_tile[i].owner == OF(CUR(h)) -> saved_tile[i].owner = GONE
		:: else
		fi
	}
	saved_alive[CUR(h)] = false;
	is[h].second = second;
	is[h].newer = false;
	is[h].behind = false
}

/* Rule 3: a right that lapsed in another epoch does not come back before all rights of then end. */
inline revive(h) {
	if
	:: EXTENDS(is[h].asked.kind) && is[h].asked.late > is[h].second && is[h].right == 0 &&
			!ON(MUTANT_REVIVE) ->
		for (i : ALL_LEAVES) {
			if
			:: seen[h].second < Q && (is[h].hold[i] == HELD ||
					(IS_WAITING(h, i) && !ON(MUTANT_REVIVE_WAITING))) ->
				assert(!ON(REACH_REVIVED));
				is[h].hold[i] = LARGER(is[h].hold[i], WAITS(Q - seen[h].second))
			:: else
			fi
		}
	:: else
	fi;
	if
	:: EXTENDS(is[h].asked.kind) -> is[h].second = is[h].asked.late
	:: else
	fi
}

/* Rule 3. */
inline extend_right(h) {
	is[h].age = (ON(MUTANT_3) -> 0 : is[h].age);
	revive(h);
	if
	:: EXTENDS(is[h].asked.kind) && D > is[h].age && D - is[h].age > is[h].right ->
		is[h].right = D - is[h].age
	:: else
	fi
}

/* Ways in which a tile goes from one host to another. */
inline reach_taken(h) {
	found = false;
	for (n : ALL_HOSTS) {
		found = found || (n != h && is[n].hold[is[h].asked.first] == HELD)
	}
	assert(!ON(REACH_MADE) || is[h].asked.kind != MAKE || is[h].wait || h == 0 || !given);
	assert(!ON(REACH_MADE_LATE) || is[h].asked.kind != MAKE || is[h].wait == 0);
	assert(!ON(REACH_OLD_EPOCH) || is[h].asked.kind != TAKE || is[h].wait == 0);
	assert(!ON(REACH_ENDED) || is[h].asked.kind != TAKE || is[h].wait || !found);
	assert(!ON(REACH_GIVEN) || is[h].asked.kind != TAKE || is[h].wait || !given)
}

inline acknowledged(h) {
	assert(!ON(REACH_LAPSE) || is[h].asked.kind != RENEW || is[h].hold[0] != HELD ||
	       is[h].right > 0 || is[h].age >= D);
	extend_right(h);
	is[h].newer = is[h].newer || (is[h].unsaved && !second);
	is[h].behind = is[h].unsaved && second;
	is[h].state = READY;
	if
	:: is[h].asked.kind == TAKE || is[h].asked.kind == SEIZE || is[h].asked.kind == MAKE ->
		reach_taken(h);
		for (i : is[h].asked.first .. is[h].asked.last) {
			is[h].hold[i] = (is[h].wait -> WAITS(is[h].wait) : HELD)
		}
		is[h].level = is[h].level + is[h].asked.level
	:: is[h].asked.kind == GIVE || is[h].asked.kind == UNMAKE ->
		for (i : is[h].asked.first .. is[h].asked.last) {
			is[h].hold[i] = NONE
		}
	:: is[h].asked.kind == BARRIER ->
		for (i : ALL_LEAVES) {
			if
			:: is[h].hold[i] == MINE ->
				assert(!ON(REACH_DOUBT));
				is[h].hold[i] = (ON(MUTANT_11_AT_ONCE) -> HELD : WAITS(Q))
			:: else
			fi
		}
	:: else
	fi;
	forget_request(h)
}

/* All is as it was. */
inline refused(h) {
	is[h].state = (is[h].asked.kind == BARRIER -> UNSURE : READY);
	if
	:: is[h].asked.kind == GIVE || is[h].asked.kind == UNMAKE ->
		for (i : is[h].asked.first .. is[h].asked.last) {
			is[h].hold[i] = HELD
		}
		is[h].level = is[h].level + is[h].asked.level
	:: else
	fi;
	forget_request(h)
}

inline answer(h) {
	printf("host %d: hears stage %d\n", h, is[h].stage);
	if
	:: is[h].stage == ACKED -> acknowledged(h)
	:: is[h].stage == REFUSED -> refused(h)
	:: is[h].stage == MISMATCH && is[h].asked.kind == BARRIER -> refused(h) /* read again */
	:: is[h].stage == MISMATCH && is[h].asked.kind != BARRIER ->
		if
		:: ON(MUTANT_12) -> is[h].behind = false; refused(h)
		:: else -> drop_all(h) /* rule 12 */
		fi
	fi
}

#define IS_OF_TILE(kind) (kind == TAKE || kind == SEIZE || kind == GIVE || kind == MAKE || \
	kind == UNMAKE)

/* Rules 9 and 13: the outcome is unknown. */
inline doubt(h) {
	disconnect(h);
	is[h].state = UNSURE;
	for (i : ALL_LEAVES) {
		if
		:: is[h].hold[i] == MINE -> is[h].hold[i] = DOUBT
		:: else
		fi
	}
	if
	:: IS_OF_TILE(is[h].asked.kind) ->
		for (i : is[h].asked.first .. is[h].asked.last) {
			is[h].hold[i] = DOUBT
		}
	:: else
	fi
}

inline silence(h) {
	printf("host %d: gives up waiting\n", h);
	if
	/* A look without a barrier: while the tile is there, it was not given back. */
	:: is[h].asked.kind == GIVE && ON(MUTANT_11_BARRIER) ->
		disconnect(h);
		is[h].state = READY;
		for (i : is[h].asked.first .. is[h].asked.last) {
			is[h].hold[i] = (tile[i].owner == OF(CUR(h)) -> HELD : NONE)
		}
	:: else -> doubt(h)
	fi;
	forget_request(h)
}

/*
 * Killed; the successor knows what was kept. Its transaction under way is in doubt. Of one that was
 * acknowledged the right may be kept, and what it took not yet.
 */
inline resume(h, acknowledged_right) {
	printf("host %d: is killed, its successor goes on\n", h);
	if
	:: acknowledged_right -> extend_right(h)
	:: else
	fi;
	assert(!ON(REACH_SUCCESSOR) || !ENTITLED(h, 0));
	doubt(h);
	for (i : ALL_LEAVES) {
		if
		:: IS_WAITING(h, i) && ON(MUTANT_KEPT_WAITING) -> is[h].hold[i] = HELD
		:: else
		fi
	}
	forget_request(h)
}

/* --- After each step: the host forgets all that makes no difference any more --- */

inline settle(h) {
	/* A session that is gone for good: nothing that the host sent, or sends, is executed. */
	if
	:: !REMAINS(CUR(h)) && is[h].stage != ACKED ->
		for (i : ALL_LEAVES) {
			if
			:: is[h].hold[i] == DOUBT || is[h].hold[i] == MINE -> is[h].hold[i] = NONE
			:: else
			fi
		}
		is[h].state = READY;
		forget_request(h)
	:: else
	fi;
	count = 0;
	level = 0;
	for (i : ALL_LEAVES) {
		count = count + (is[h].hold[i] == HELD || IS_WAITING(h, i));
		level = level + (is[h].hold[i] == HELD)
	}
	/* Without anything to use no right is needed: the next take brings one that ends later. */
	if
	:: count == 0 -> is[h].right = 0
	:: else
	fi;
	if
	:: !ON(MUTANT_GIVE_LEVEL) && !ON(MUTANT_UNMAKE_KEEPS) ->
		is[h].level = SMALLER(is[h].level, level)
	:: else
	fi;
	if
	:: is[h].right == 0 && !ON(KEEPS_LEVEL) && !ON(MUTANT_UNMAKE_KEEPS) -> is[h].level = 0
	:: else
	fi;
	for (n : ALL_HOSTS) {
		if
		:: n == h || !at[CUR(h)].alive || !ON(NEIGHBOUR) -> seen[n].still[h] = 0
		:: else
		fi
	}
}

inline after() {
	for (holders : ALL_HOSTS) {
		settle(holders)
	}
	promise();
	i = 0; n = 0; count = 0; holders = 0; executed = 0; found = 0; level = 0; kind = 0
}

/* --- When --- */

#define HOLDS_ANY(h) (is[h].right || is[h].hold[0] || is[h].hold[LEAVES - 1] || \
	is[h].hold[LEAVES / 2])

/* A transaction about tiles is executed before a clock ticks, and answered at once or never. */
#define IS_PROMPT(h) (ON(PROMPT) && is[h].state == ASKED && is[h].asked.kind != RENEW)
#define MATCHES(p, whose) (!ON(PROMPT) || tile[p].owner == (whose))
inline prompt(h) {
	if
	:: ON(PROMPT) && is[h].asked.kind != RENEW -> answer(h)
	:: else
	fi
}

/* The transactions of a host about the tile of leaves @a to @b. */
#define IS_NONE(h, a, b) (is[h].hold[a] == NONE && is[h].hold[b] == NONE && \
	is[h].hold[((a) + (b)) / 2] == NONE)
#define IS_USABLE(h, p) (is[h].hold[p] == HELD || (ON(MUTANT_GIVE_WAITING) && IS_WAITING(h, p)))
#define ARE_USABLE(h, a, b) (IS_USABLE(h, a) && IS_USABLE(h, b) && IS_USABLE(h, ((a) + (b)) / 2))

#define CAN_ASK(h, b) (is[h].state == READY && at[CUR(h)].alive && (b == 0 || !ON(ONE_LEAF)))
#define TILE_STEPS(a, b) \
	:: d_step { CAN_ASK(h, b) && IS_NONE(h, a, b) && MATCHES(a, FREE) && MATCHES(b, FREE) -> \
		ask(h, TAKE, a, b) } \
	:: d_step { CAN_ASK(h, b) && IS_NONE(h, a, b) && MATCHES(a, GONE) && MATCHES(b, GONE) -> \
		ask(h, SEIZE, a, b) } \
	:: d_step { CAN_ASK(h, b) && ARE_USABLE(h, a, b) -> ask_give(h, a, b) }

#define IS_OWN(h, p) (is[h].hold[p] == HELD || (ON(MUTANT_UNMAKE_WAITING) && IS_WAITING(h, p)))
#define CAN_UNMAKE(h) (IS_OWN(h, 0) && (IS_OWN(h, last_leaf) || ON(MUTANT_UNMAKE_PART)))

#define STANDS_STILL (Q - ON(MUTANT_END_Q))
#define ENDS(h, x) (CAN_ASK(h, 0) && ON(NEIGHBOUR) && at[CUR(x)].alive && \
	seen[h].still[x] >= STANDS_STILL)

inline ask_end(h, x) {
	ask(h, END, x, x);
	/* The epoch in which the count began. */
	is[h].asked.late = (second && seen[h].second >= Q)
}

proctype process(byte h)
{
end:	do
	:: atomic { if
	:: d_step { is[h].state == READY && at[CUR(h)].alive && HOLDS_ANY(h) ->
		ask(h, RENEW, 0, 0) }
	:: d_step { is[h].state == UNSURE && !READS_LESS(h) -> ask(h, BARRIER, 0, 0) }
	:: d_step { is[h].state == UNSURE && READS_LESS(h) -> drop_all(h) }
	:: d_step { is[h].state == ASKED && is[h].stage != SENT && is[h].stage != VANISHED ->
		answer(h) }
	:: d_step { is[h].state == ASKED -> silence(h) }
#ifdef LINGER
	:: d_step { CAN_LEAVE(h) -> drop_all(h) }
#else
	:: d_step { !at[CUR(h)].alive -> drop_all(h) }
#endif
	:: d_step { !ON(NO_KILLS) && is[h].state != ASKED && HOLDS_ANY(h) -> resume(h, false) }
	:: d_step { !ON(NO_KILLS) && is[h].state == ASKED && is[h].stage == ACKED &&
			EXTENDS(is[h].asked.kind) ->
		resume(h, true) }
	TILE_STEPS(0, 0)
#if LEAVES >= 2
	TILE_STEPS(1, 1)
	TILE_STEPS(0, 1)
#endif
#if LEAVES == 3
	TILE_STEPS(2, 2)
	TILE_STEPS(1, 2)
	TILE_STEPS(0, 2)
#endif
	:: d_step { ON(KEY) && CAN_ASK(h, 0) && IS_NONE(h, 0, last_leaf) &&
			MATCHES(0, ABSENT) ->
		ask(h, MAKE, 0, last_leaf) }
	:: d_step { ON(KEY) && CAN_ASK(h, 0) && CAN_UNMAKE(h) && IS_FULL(h) -> ask_unmake(h) }
	:: d_step { ENDS(h, (h + 1) % HOSTS) -> ask_end(h, (h + 1) % HOSTS) }
#if HOSTS == 3
	:: d_step { ENDS(h, (h + 2) % HOSTS) -> ask_end(h, (h + 2) % HOSTS) }
#endif
	:: d_step { is[h].level && is[h].right ->
		printf("host %d: grants a token\n", h);
		is[h].level--;
		granted++;
		assert(granted <= BURST) }
	fi;
	d_step { after() } }
	od
}

/* PATIENT: a session outlives the right, T > Q. */
#define IS_CLOSED(h) (!ON(PATIENT) || (is[h].right == 0 && is[h].stage != ACKED))

proctype coordinator(byte h)
{
end:	do
	:: atomic { if
	:: d_step { is[h].stage == SENT -> execute(h); prompt(h) }
	:: d_step { ON(PROMPT) && is[h].stage == SENT && is[h].asked.kind != RENEW ->
		execute(h);
		silence(h) }
	:: d_step { at[CUR(h)].stray.kind != NOTHING -> execute_stray(h, CUR(h)) }
	:: d_step { at[CUR(h)].alive && IS_CLOSED(h) -> close(CUR(h)) }
#ifdef LINGER
	:: d_step { at[OLD(h)].stray.kind != NOTHING -> execute_stray(h, OLD(h)) }
	:: d_step { at[OLD(h)].alive -> close(OLD(h)) }
#endif
	fi;
	d_step { after() } }
	od
}

#if LEAVES > 1
proctype shape(byte p)
{
end:	do
	:: atomic { if
	:: d_step { tile[p].joined && !ON(ONE_LEAF) -> split(p) }
	:: d_step { !tile[p].joined && CAN_MERGE(p) && !ON(ONE_LEAF) -> merge(p) }
	fi;
	d_step { after() } }
	od
}
#endif

byte turn; /* whose clock ticks next */

#define AGE_MAX (ON(MUTANT_GONE_SENT) -> Q : D)

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
	if
	:: is[h].stage == ACKED && is[h].wait -> is[h].wait--
	:: else
	fi;
	for (i : ALL_LEAVES) {
		if
		:: is[h].hold[i] == WAITS(1) ->
			assert(!ON(REACH_SEIZED));
			is[h].hold[i] = HELD
		:: is[h].hold[i] > WAITS(1) -> is[h].hold[i]--
		:: else
		fi;
		if
		:: tile[i].owner == GONE && seen[h].gone[i] < Q -> seen[h].gone[i]++
		:: else
		fi
	}
	for (n : ALL_HOSTS) {
		if
		:: n != h && at[CUR(n)].alive && seen[h].still[n] < Q -> seen[h].still[n]++
		:: else
		fi
	}
	if
	:: second && seen[h].second < Q -> seen[h].second++
	:: else
	fi
}

#if HOSTS == 3
#define WAITS_FOR_PROMPT (IS_PROMPT(0) || IS_PROMPT(1) || IS_PROMPT(2))
#else
#define WAITS_FOR_PROMPT (IS_PROMPT(0) || IS_PROMPT(1))
#endif

proctype clocks()
{
end:	do
	:: atomic { if
	:: d_step { !WAITS_FOR_PROMPT -> tick(turn); turn = (turn + 1) % HOSTS }
	fi;
	d_step { after() } }
	od
}

#ifdef RESCUE
/*
 * From here on all hosts but one are silent, and it does what it can: in the end it uses all
 * leaves. Sessions end by what the variant has for that: by the neighbour, or by themselves.
 */
byte round, other;
#define ROUNDS (3 * Q_MAX + 4)

inline carry_out(h) {
	execute(h);
	answer(h)
}

inline rescue_tile(h, low, high) {
	if
	:: is[h].state == READY && IS_NONE(h, low, high) ->
		find_tile(low, high);
		if
		:: found && tile[low].owner == FREE -> ask(h, TAKE, low, high); carry_out(h)
		:: found && tile[low].owner == GONE -> ask(h, SEIZE, low, high); carry_out(h)
		:: else
		fi
	:: else
	fi
}

inline rescue_session(h) {
	if
	:: is[h].stage == SENT -> execute(h)
	:: else
	fi;
	if
	:: is[h].stage == VANISHED -> silence(h)
	:: is[h].stage != VANISHED && is[h].state == ASKED -> answer(h)
	:: else
	fi;
	if
	:: !at[CUR(h)].alive || (is[h].state == UNSURE && READS_LESS(h)) -> drop_all(h)
	:: at[CUR(h)].alive && is[h].state == UNSURE && !READS_LESS(h) ->
		ask(h, BARRIER, 0, 0);
		carry_out(h)
	:: else
	fi
}

proctype rescuer(byte h)
{
end:	do
	:: atomic {
	printf("host %d: is the only one from now on\n", h);
	do
	:: round == ROUNDS -> break
	:: else ->
		skip;
		d_step { rescue_session(h); after() };
		other = 0;
		do
		:: other == HOSTS -> break
		:: other < HOSTS ->
			skip;
			d_step {
				if
				:: other != h && at[CUR(other)].alive && !ON(NEIGHBOUR) &&
						!ON(MUTANT_ALONE) ->
					close(CUR(other))
				:: other != h && ENDS(h, other) ->
					ask_end(h, other);
					carry_out(h)
				:: else
				fi;
				after();
				other++
			}
		od;
		skip;
		d_step { rescue_tile(h, 0, 0); after() };
#if LEAVES >= 2
		d_step { rescue_tile(h, 1, 1); after() };
		d_step { rescue_tile(h, 0, 1); after() };
#endif
		d_step {
			if
			:: is[h].state == READY -> ask(h, RENEW, 0, 0); carry_out(h)
			:: else
			fi;
			for (i : ALL_LEAVES) {
				assert(round + 1 < ROUNDS || ENTITLED(h, i) || (i && ON(ONE_LEAF)))
			}
			after();
			other = 0
		};
		do
		:: other == HOSTS -> break
		:: other < HOSTS -> skip; d_step { tick(other); after(); other++ }
		od;
		round++
	od;
	round = 0;
	other = 0 }
	od
}
#endif

proctype election()
{
end:	do
	:: atomic { if
	:: d_step { ON(LOSS) && !second && !saved -> save() }
	:: d_step { ON(LOSS) && !second && saved -> elect() }
	fi;
	d_step { after() } }
	od
}

init {
	atomic {
		c_code { choose(); };
		last_leaf = BURST - 1;
		run election();
		run clocks();
		for (i : ALL_LEAVES) {
			tile[i].level = ON(LEVELS) && !ON(KEY);
			tile[i].owner = (ON(KEY) -> ABSENT : FREE);
			tile[i].joined = ON(KEY) && i < last_leaf
		}
#ifdef LINGER
		for (n : ALL_HOSTS) {
			at[OLD(n)].alive = false
		}
#endif
		for (n : ALL_HOSTS) {
			run process(n);
#ifdef RESCUE
			run rescuer(n);
#endif
			run coordinator(n)
		}
#if LEAVES > 1
		for (i : 0 .. LEAVES - 2) {
			run shape(i)
		}
#endif
		i = 0;
		n = 0
	}
}
