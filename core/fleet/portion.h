/*
 * portion - how many leaves of a limiter this host keeps, takes, gives back and claims: the policy
 * of sharing where partitions have no numbers. A pure function of recorded facts.
 *
 * 1. A host wants what its readers ask for (appetite.h), and some slack. While no host is short
 *    the slack is half of that, of leaves that are free: none is claimed for it. While one is, a
 *    24th of the limiter is shared as slack by the hosts that are not short, by the square roots of
 *    what they hold: readers who come at random at a rate of L wait for L / (2 s (L + s)) on
 *    average where the slack is s (M/D/1: Kleinrock, "Queueing Systems" 1, 5.8), and while s is
 *    small the mean of all waits is the least so, where all come alike. Half the root of L, and a
 *    28th of L, in tokens a second, are taken off, whatever their chance: so much is idle anyway,
 *    as a host takes more for readers that wait and gives that back a little later (measured, with
 *    the table below). Chance does not divide what is shared: the need is a mean of half a minute,
 *    and drifts by more than such a slack would be. But no host has more slack than makes readers
 *    wait for 0.05 s: where the tokens of a second have a variance of c times their mean, at most
 *    1, readers wait for c L / (2 s (L + s)) (Kingman, "The single server queue in heavy traffic",
 *    1961). Where they ask for less than a token a second, c is not known well: all that slack is
 *    multiplied by L, or by c if that is more. All have a 256th of the limiter at least, divided by
 *    the holders. Children that come before a host that is short have the slack that wants.h says.
 * 2. A host that lacks leaves lists the tiles and takes free ones. While no host claims any it
 *    takes its spare part (3), also when a reader waits whom its leaves would not serve in a tenth
 *    of a second: then it need not come again. For such a reader it looks again once its last look
 *    is a `lease` old, also in vain: it is not told of leaves that came free and that it did not
 *    lack. If there are not enough for what its readers ask for, or for those that wait without a
 *    break, it claims that, with the slack that it may have while a host is short, and all holders
 *    are told. A host that holds nothing takes half of what is free, or all where no host holds
 *    any, so that the first reader need not wait: the rests of the tiles come along. The leaves
 *    beyond its spare part go back as soon as readers are served.
 * 3. A host that is told gives back what it does not want: at once if that is much, and all of
 *    it once it is a third of `lease` old. Much is more than an eighth of what it keeps, and more
 *    than a half while its need was seen for less than 5 s: few tokens show little, and a host
 *    would give back what it takes a moment later. Where no claimant lacks more than an eighth of
 *    what it does not hold, each look gives only this host's part of what all of them lack and is
 *    not free, by what it holds, and twice as much at the next look, an R later, if they still lack
 *    some: if all gave back all that they do not need, some of them would be short a moment later,
 *    and so on, though there is enough for all. It looks ever more seldom while none of that
 *    changes. A host whose readers are gone, have their token saved up, or wants slots gives all:
 *    at once, where it wants nothing but slots, which are counted.
 *    While no host claims any, it keeps up to twice what it wants, and all until its buckets are
 *    full; and while readers ask, its spare part for those to come: as much as each holder would
 *    have if there were one more. While others claim, a host keeps nothing but a token for the next
 *    one of slow readers, if their need were more than a 24th of the limiter divided by the
 *    holders: of a token a second one in half a minute would keep a large part, idle nearly all of
 *    the time. Slow are rare readers (appetite.h), and those that ask for less than a token in R
 *    where there is room for one token only. The host saves that token up, by twice what the
 *    readers need. Then it keeps one leaf, which is room for a token, and the others go: they would
 *    bring nothing before the next reader comes. A reader that comes earlier waits, and has its
 *    turn: as many leaves as bring the tokens that are waited for within 2 R, or a 24th if that is
 *    more, as long as pieces (6) are no larger than a 24th. Leaves that go to and fro lie idle for
 *    R/4 or so each time: the fewer they are and the longer they stay, the less is lost. So no
 *    token is saved up where there are fewer than eight pieces, nor where a leaf were more than
 *    that part of a 24th, nor of windows, whose tokens go with their leaves; the host of rare
 *    readers keeps nothing then. Where rare readers come evenly, and need as much as is worth
 *    having (6), that stays: each finds its token.
 * 4. The claims are divided by share.h. A holder without a claim wants what it holds, and that is
 *    its due: its tiles say how much. Leaves that are fewer than worth having (6) are there for a
 *    saved token, and are left out. A holder above its share claims what it wants, too, and gives
 *    the rest back at once; a thousandth of the limiter too much is no matter, unless another
 *    claimant lacks more than a 50th of its own share. Leaves that are only kept until readers
 *    are served are not claimed.
 * 5. A host looks when it lacks leaves, when claims change that concern it, and at once when
 *    another host gave back what it lacks, or is gone; else every R at first, ever more seldom, and
 *    not at all once nothing that concerns it has changed for a `lease`. Changes concern a host
 *    whose share is less than it wants, or that has more than an equal part, and it looks soon: the
 *    others may have more slack one day. Where none of them lacks much, a host that has little more
 *    than an equal part, and lacks nothing, looks after R. It does not look again before it has
 *    sent the claim that the last look has led to. The next server of a host that had a claim looks
 *    for it, also if nothing is wanted: hosts behind it wait for that.
 * 6. Fewer leaves than bring a token in a `lease` are not worth having. If there are so many hosts
 *    that their shares were smaller, they take turns of a `lease`. A piece that has not yielded a
 *    token yet does not go while a reader waits for one. A turn ends with the last token that comes
 *    in its time: of a part of the next one no more goes along than the leaves' part of the burst.
 * 7. Leaves whose slots are open do not go. A host above its share opens no more, so that some
 *    come free.
 *
 * On a simulated coordinator 500/s on 4,096 leaves come to this, with one greedy host beside light
 * ones whose readers come steadily, in loops (with breaks that differ by a third), or at random
 * (Poisson), from 40 s to 160 s after the start, the mean of six seeds; writes, but renewals, and
 * lists are those of a second and host:
 *
 *                  steady  in loops                at random
 *     light hosts  used    used    waits   lists   used    waits   writes  lists
 *     2 x 2.5/s    99.6 %  99.6 %  0.00 s  0.0     98.7 %  0.08 s  0.01    0.1
 *     5 x 2.5/s    99.4 %  99.3 %  0.01 s  0.0     97.3 %  0.09 s  0.02    0.1
 *     10 x 2.5/s   99.1 %  98.7 %  0.01 s  0.0     97.4 %  0.23 s  0.18    0.7
 *     18 x 2.5/s   99.0 %  98.8 %  0.03 s  0.3     97.4 %  0.39 s  0.48    1.1
 *     29 x 1/s     99.4 %  99.0 %  0.06 s  0.2     97.2 %  0.50 s  0.42    1.0
 *     10 x 7.5/s   99.3 %  98.8 %  0.03 s  0.5     97.3 %  0.26 s  0.57    1.4
 *     2 x 100/s    99.7 %  98.9 %  0.01 s  0.8     96.7 %  0.06 s  0.33    1.0
 *
 * With steady readers there are hardly any writes and lists once a minute has passed
 * (tests/sim/traces/fleet/sharing, tests/core/fleet/test_sharing.c). A hundred greedy hosts that
 * start at once have exactly their shares after 5 transactions each. A light host that turns greedy
 * has its share within 6 s, and a greedy one that turns light leaves it within 2 s. A slack of a
 * sixth of each demand leaves more unused where demands are large: steady, 97.3 % are used beside
 * 10 x 7.5/s, and 93.3 % beside 2 x 100/s.
 */
#ifndef RATEFS_CORE_PORTION_H
#define RATEFS_CORE_PORTION_H

#include "core/fleet/share.h"
#include "core/values/quantity.h"

/* Amounts are leaves. */
struct portion_facts {
	uint64_t now_ns, renewal_ns, lease_ns;

	/* The limiter. */
	uint32_t leaves;
	uint32_t least;	  /* fewer are not worth having: 1 to @leaves */
	double leaf;	  /* tokens a second that one is worth; 0: all or none pass, or not known */
	uint32_t holders; /* hosts that hold some, as they were listed last: at least 1 */
	uint32_t free;	  /* leaves that no host had then */

	/* This host. */
	double need;	   /* for what readers ask for: appetite_need() */
	double chance;	   /* how much those come at random: appetite_chance() */
	double ahead;	   /* slack of those of them that come first: wants_slack() */
	bool is_rare;	   /* readers are rare: appetite_is_rare() */
	bool is_even;	   /* they come evenly: appetite_is_even() */
	bool is_young;	   /* that was not seen for long: appetite_is_young() */
	uint32_t hunger;   /* wanted by readers that wait without a break: appetite_hunger(), 0 */
	uint32_t exact;	   /* wanted for slots, without slack */
	uint32_t first;	   /* wanted by readers that wait where nothing is held; 0: none does */
	uint64_t waiting;  /* tokens that they wait for */
	bool waits_here;   /* a reader waits for tokens of this limiter, not of one below it */
	uint32_t kept;	   /* held, waiting, or being taken */
	uint32_t in_use;   /* of them: for slots that are open */
	uint64_t turn_ns;  /* so long ago the last was taken */
	uint64_t token_ns; /* when there is a token for readers; 0: now */
	bool is_of_use;	   /* something was granted since */
	bool saves;	   /* the buckets are not full yet */
	bool saves_up;	   /* a reader saves up for a take larger than goes with the last piece */
	uint64_t room;	   /* tokens that all buckets have room for; 0: they go with the leaves */
	bool is_unmet;	   /* the last look did not find enough */
	bool is_looking;   /* a look is under way */
	bool is_claiming;  /* a claim is to be sent when it is its turn */
	uint32_t claimed;  /* 0: it has no claim */
	bool lost_claim;   /* it may have one that it does not know */
	bool parts_differ; /* its children want something else than that says */

	/* The others. */
	bool claims;	    /* they claim leaves */
	bool is_watched;    /* claims cannot change without being told */
	uint64_t listed_ns; /* the tiles were listed last; 0: never */
	bool is_seen;	    /* the tiles were listed since then, */
	bool is_stale;	    /* and not since claims changed; */
	bool is_woken;	    /* since then leaves came free for this host; */
	struct share share; /* with them the claims come to this */
};

/* The memory from one decision to the next: at first all 0. */
struct portion {
	uint64_t excess_ns;   /* since then more was kept than was wanted; 0: it is not */
	uint64_t answered_ns; /* the look after which claims of others had their part of it, ... */
	uint8_t answers;      /* ... as so often in a row; less by half if they lacked none ... */
	uint32_t answered;    /* ... of so many leaves ... */
	uint32_t lacked;      /* ... where they lacked so many ... */
	uint64_t again_ns;    /* ... and the next look is so long after it; 0: it is not needed */
	uint64_t give_ns;     /* a host above its share gives nothing back before */
	uint64_t look_ns;     /* the next look, if nothing happens before ... */
	uint64_t look_every_ns; /* ... so long after the last ... */
	uint32_t share;		/* ... which showed this share ... */
	uint32_t holders;	/* ... and so many hosts that hold some */
	uint64_t woken_ns;	/* looks at once for leaves that came free: so far their R go */
	uint64_t claim_ns;	/* another amount is not claimed before */
	bool is_first;		/* more was taken than is wanted, for the first readers */
};

struct portion_decision {
	uint32_t wanted; /* if there was enough for all */
	uint32_t takes;	 /* so many are lacking, of those that the share allows */
	uint32_t gives;	 /* go back now */
	bool looks;	 /* tiles and claims are to be listed */
	bool claims;	 /* the claim is to be @claim from now on, 0: none */
	uint32_t claim;
	bool turn_ends;	 /* the claim goes to the end of the line */
	uint32_t yields; /* slots of so many leaves only are opened; UINT32_MAX: of all */
};

/*
 * Returns the leaves that are claimed for readers who are not hungry: one or none of slow readers
 * for whom no more is kept (3); the most that they may keep.
 */
double portion_plain(const struct portion_facts *facts);
double portion_most(const struct portion_facts *facts);

/* Decides by @facts. */
void portion_decide(struct portion *portion, const struct portion_facts *facts,
		    struct portion_decision *decision);

/*
 * Notes a look that came to the share in @facts. Returns about how much later the next one is, if
 * nothing happens before: R, and twice as long each time that nothing has changed, up to `lease`.
 * NEVER_NS: then it is not needed any more.
 */
uint64_t portion_looked(struct portion *portion, const struct portion_facts *facts);

/* A host that holds leaves, as its tiles say. */
struct holder {
	uint32_t leaves;
	bool claims; /* it has a claim, which says more */
};

/*
 * Computes what the claims of @line come to for this host, with the weight and the parts of @own,
 * if it wants all @leaves: a host that wants less than that share gets what it wants. A part has
 * what it says. All @holders without a claim, @count of them, want what they hold; those of less
 * than @least are left out, with their leaves. @line has room for @count + 1 more, and they are put
 * there. In leaves; if there were less than @least of them for each, in pieces of @least, also all
 * parts.
 */
struct share portion_weigh(struct claim_line *line, const struct holder *holders, uint32_t count,
			   const struct claim *own, uint32_t leaves, uint32_t least);

#endif
