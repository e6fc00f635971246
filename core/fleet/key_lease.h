/*
 * key_lease - a key that this host leases: its leaves, and since when they may be used; known to
 * key_leases.c and key_change.c alone.
 */
#ifndef RATEFS_CORE_KEY_LEASE_H
#define RATEFS_CORE_KEY_LEASE_H

#include "core/fleet/key_folder.h"
#include "core/fleet/keys_missed.h"
#include "core/fleet/parts.h"
#include "core/fleet/plan.h"

struct key_lease {
	struct key_lease *next;
	uint64_t number;	 /* never used twice */
	struct holding *holding; /* its limiter is held */
	struct limiter *key;	 /* open for it; NULL: no reader has asked, its name is not known */
	uint64_t cut, hash;
	uint64_t usable_ns[KEY_LEAVES]; /* by the waiter's clock; 0: it is not this host's */
	uint32_t used;			/* of them, those that the bucket knows of */
	uint32_t place;			/* as handover_keep_key() has it */
	struct key_folder folder;	/* owned; as listed last, and changed since by this host */
	bool listed;			/* it was */
	bool listing;
	bool stale;	  /* it is to be listed ... */
	uint64_t look_ns; /* ... not before; as the next ones by the engine's clock */
	bool has_work;
	uint64_t work_ns; /* it has since then */
	struct key_decision decision;
	uint64_t wake_ns;	     /* something may have to be done */
	uint64_t due_ns;	     /* the next look at what was asked for */
	uint64_t used_ns;	     /* it was asked for last */
	uint64_t gained_ns;	     /* the leaves that were taken last may be used since then */
	uint64_t looked_ns, granted; /* at the last look */
	double asked;		     /* tokens a second */
	uint64_t limit_generation;   /* of the limiter, as of which the limit is known; or 0 */
	struct rate rate;	     /* of the key, on all hosts together */
	uint64_t burst;
	bool missed;
};

enum key_sent { KEY_SENT_NOTHING, KEY_SENT_MAKE, KEY_SENT_CHANGE, KEY_SENT_END };

struct key_leases {
	struct key_lease *first; /* owned */
	uint32_t count;
	uint32_t nameless; /* of them, those without a key */
	bool named;	   /* some of them have got one just now */
	uint64_t last_number;
	struct keys_missed missed;
	uint64_t aged_ns;
	uint64_t wake_ns;  /* the first of theirs, or before */
	bool has_work;	   /* some of them may have */
	uint32_t changes;  /* of the hosts, that are acted on */
	uint64_t next_ns;  /* no transaction before; no key that is not leased ... */
	uint64_t begin_ns; /* ... before that */

	/* The key of the hash. */
	bool seeded, seeding;
	uint64_t seed[2];

	/* The transaction under way. */
	enum key_sent sent;
	uint64_t subject; /* number of its lease */
	bool planned;
	struct plan_rules rules;
	struct plan plan;		/* owned; of KEY_SENT_CHANGE */
	uint64_t former_ns[KEY_LEAVES]; /* as @usable_ns was before */
};

/*
 * Begins the lease of the key of @holding whose name has hash @hash, without a key and with no
 * leaves. NULL without memory.
 */
struct key_lease *key_lease_begin(struct fleet *fleet, struct holding *holding, uint64_t hash);

/* Returns the lease of that key; NULL: there is none. */
struct key_lease *key_lease_find(const struct fleet *fleet, const struct holding *holding,
				 uint64_t hash);

/* Gives @lease, which has none, the open @key. Its bucket follows with key_lease_use(). */
void key_lease_name(struct fleet *fleet, struct key_lease *lease, struct limiter *key);

/* Finds out lease->rate and lease->burst: the limiter's, or what is overridden of the key. */
void key_lease_find_limit(const struct fleet *fleet, struct key_lease *lease);

/* Lets there be a look at @lease at @at_ns at the latest. */
void key_lease_wake(struct fleet *fleet, struct key_lease *lease, uint64_t at_ns);

/* Returns how many leaves are held, usable or not. */
uint32_t key_lease_kept(const struct key_lease *lease);

/* Notes that leaves were taken that may be used from @usable_ns on. */
void key_lease_note_gain(const struct fleet *fleet, struct key_lease *lease, uint64_t usable_ns);

/* Lets the bucket have the leaves whose time has come, and writes them down for a successor. */
void key_lease_use(struct fleet *fleet, struct key_lease *lease);

/*
 * Notes that this host has its leaves of @tiles, and no others. Those that it did not have are
 * usable at @usable_ns.
 */
void key_lease_note(struct fleet *fleet, struct key_lease *lease, const struct tiles *tiles,
		    uint64_t usable_ns);

/* Lets its folder be listed anew, at a time at random within @within_ns. */
void key_lease_look_later(struct fleet *fleet, struct key_lease *lease, uint64_t within_ns);

#endif
