/*
 * balance - how much of a limiter this host keeps, gives back, looks for and claims, the
 * policy of sharing. CHOOSING in fleet.h is its summary, and share.h has the arithmetic of claims.
 *
 * A pure function of recorded facts: amounts, ages, claims and times. An amount is a number of
 * partitions. rebalance.h gathers the facts of a limiter, and carries the decision out.
 */
#ifndef RATEFS_CORE_BALANCE_H
#define RATEFS_CORE_BALANCE_H

#include "core/fleet/share.h"

#include <stdbool.h>

/* A partition that is held. */
struct piece {
	uint32_t index; /* of those of the same age the lower one is the older */
	uint32_t slots; /* that it brings */
	uint64_t age_ns;
	bool is_read;	  /* readers wait for tokens of this very one */
	bool is_of_use;	  /* something was granted since it came */
	bool is_numbered; /* an open slot has a number of it: it stays */
};

/* The facts of a limiter. */
struct facts {
	uint64_t now_ns;
	uint64_t renewal_ns; /* R */
	uint64_t lease_ns;

	/* This host. */
	bool is_connected;
	bool is_ready; /* it has joined */
	bool is_leaving;
	bool has_little_room;	/* for leases, of all limiters */
	uint64_t claim_room_ns; /* no room for another claim before */

	/* The limiter. */
	bool is_removed;
	bool is_leased; /* capacity must be leased at all */
	uint32_t count; /* of its partitions */
	uint32_t wanted;
	bool is_unmet;	    /* the last look did not find enough */
	bool misses_read;   /* a partition whose own tokens are read is not held */
	bool lacks_reserve; /* one of the reserve is wanted, and not leased */
	uint32_t held;	    /* usable */
	uint32_t kept;	    /* also those that wait, or are being taken */
	bool has_leases;    /* of any kind: some may be on their way back */
	uint32_t yields;    /* slots of so many partitions only are opened; UINT32_MAX: of all */
	bool is_looking;    /* a look for more is under way */

	/* Claims. */
	bool has_claimants;	  /* other hosts claim some, as far as is known */
	uint32_t claimed;	  /* by this host; 0: it has no claim */
	bool claim_is_lost;	  /* it may have one that it does not know */
	bool claims_anew;	  /* it is to go to the end of the line */
	bool claims_are_watched;  /* others' cannot change without being told, */
	bool claims_have_changed; /* and have */
	uint64_t claim_at_ns;	  /* another amount is not claimed before */
	bool parts_differ;	  /* children want something else than this host's says */

	/* Of what is held; only where balance_may_give(). */
	struct piece *pieces; /* the caller's; the decision puts those that go first, in order */
	uint32_t piece_count;
	uint32_t slots_used;
	bool saves;    /* tokens are saved up, and would be lost with the last one */
	bool saves_up; /* a reader does, for a take larger than goes with the last one */
};

/* The memory from one decision to the next: at first all 0, but the target UINT32_MAX. */
struct balance {
	struct share share; /* as the claims were seen last; without a target: there were none */
	uint64_t give_ns;   /* under contention nothing is given back before */

	/* The result of the last look for more. */
	uint32_t left_free; /* amount that no host had after it */
	bool is_lacking;    /* it did not find enough */
	bool reserves_gone; /* all of the reserve are leased ... */
	bool seeks_reserve; /* ... and one is wanted: a look was due at once */
	uint64_t look_ns;   /* the next not before */

	/* More is kept than is wanted. */
	bool has_spare;
	uint64_t spare_until_ns; /* it may be until then ... */
	uint32_t spare_wanted;	 /* ... in which at most so much was wanted */
};

struct decision {
	uint32_t gives;	     /* so many of the pieces go back: the first */
	uint32_t yields;     /* as in struct facts */
	bool spare_begins;   /* from now on more is kept than is wanted */
	bool turn_ends;	     /* the claim is made anew, at the end of the line */
	bool is_met;	     /* no partition is lacking */
	bool looks;	     /* a look for more begins */
	uint64_t look_in_ns; /* the next is about so much later; 0: as it was */
};

/* Tells whether some of what is held may have to go. */
bool balance_may_give(const struct balance *balance, const struct facts *facts);

/* Decides what goes back, and whether more is looked for. */
void balance_decide(struct balance *balance, const struct facts *facts, struct decision *decision);

/*
 * Tells whether the claim should be made, changed or deleted now; @claim is then the amount, 0:
 * none.
 */
bool balance_claims(const struct balance *balance, const struct facts *facts, uint32_t *claim);

/* Notes what the claims of @line come to, see share_weigh(). */
void balance_weigh(struct balance *balance, const struct claim_line *line, uint32_t wanted,
		   uint32_t capacity);

/* Returns how much more should be taken: up to @wanted, and to the share under contention. */
uint32_t balance_lack(const struct balance *balance, uint32_t wanted, uint32_t kept);

/*
 * A look for more is over, which left @left_free free; @reserves_gone: all of the reserve are
 * leased. Returns about how much later the next one is.
 */
uint64_t balance_looked(struct balance *balance, const struct facts *facts, uint32_t left_free,
			bool reserves_gone);

/* Lets the next look be at once. */
void balance_look_soon(struct balance *balance);

/* A host has gone: a reserve is looked for at once, where all were leased. */
void balance_seek_reserve(struct balance *balance);

/* Another host has come: partitions that are not wanted go at once. */
void balance_end_spare(struct balance *balance);

/* Nothing is wanted, or claims are not known: there is no share to keep to. */
void balance_end_contention(struct balance *balance);

/* The session is gone. */
void balance_forget(struct balance *balance);

#endif
