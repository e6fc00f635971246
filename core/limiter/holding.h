/*
 * holding - what one host of a fleet holds of one limiter, and what it may use of it.
 *
 * A host has one bucket for all that it holds of a limiter: the summed rate, and room for its share
 * of the burst, at least one token. Of a strict window it has its share in whole tokens, rounded
 * down: over the fleet no more than the limit. Of a window of the calendar it has its share, and
 * grants whole tokens of that. Over the fleet the burst is therefore max(burst,
 * count) where partitions have numbers, and else the burst and one token for each host; and one
 * token more for each host of the reserve, which may hold nothing else. A take larger than that
 * room has its own, and so comes on top by all but its first token. Where nothing is held the
 * bucket has no room: tokens that come back pay a debt and are lost beyond that. Of the tokens that
 * a waiter saved up for a larger take only the first goes.
 *
 * Of each key's rate and burst it has the same share; with `key_share leased` the same share of a
 * tenth, and its leaves of the key (core/fleet/keys.md), which count where something of the
 * limiter is held. Tokens of keys do not go with a partition: a key begins empty where nothing was
 * held before, and keeps one token at most where nothing is held any more. So over the fleet a key
 * gets at most key_rate * w + key_burst + 1 for each host.
 *
 * Of a quota that a service told it has its share, see allowance.h.
 *
 * Without limits (rate and key_rate `max`) and a number of slots, and where enforcement is open or
 * closed, nothing is leased.
 */
#ifndef RATEFS_CORE_HOLDING_H
#define RATEFS_CORE_HOLDING_H

#include "core/limiter/lease.h"
#include "core/limiter/shape.h"
#include "core/limiter/window.h"
#include "core/values/settings.h"

struct apportion;
struct balance;
struct claims;
struct demand;
struct round;
struct sight;
struct told_node;
struct wants;

/* A limiter's place among its siblings, as it is on this host alone. */
struct holding_place {
	uint32_t weight;	    /* 0: as it was set */
	uint32_t min_part, min_all; /* the min's part, of so many; 0: all of it */
};

/* The host that made a limiter with its name. */
enum holding_maker { MAKER_UNKNOWN, MAKER_THIS, MAKER_OTHER };

/* Demand is looked at so often. */
#define DEMAND_PERIOD_NS UINT64_C(100000000)

/* Readers that come within so long of the first one that waits have come with it. */
#define HOLDING_CALM_NS UINT64_C(10000000)

struct holding {
	struct limiter *limiter;      /* borrowed: the limiter lives longer */
	struct holding *next, **back; /* all of the fleet: where the one before points here */
	struct holding *next_active;  /* those that are looked at every DEMAND_PERIOD_NS */
	struct holding *next_by_id;   /* hash chain */
	struct holding *next_roused;  /* those for which something is noted */
	struct holding *next_work;    /* those that have something to send */
	struct holding *next_later;   /* those that are to be roused ... */
	uint64_t later_ns;	      /* ... then; 0: it is none of them */
	bool active;
	bool roused;
	bool begins; /* it has become active */
	bool woken;  /* another host gave something back */
	bool asked;  /* tokens or slots were asked for since */
	bool lacked; /* a reader of A to B tokens got fewer than B at once, for want of them here */
	bool has_work;

	const struct settings *settings; /* as set, for the whole fleet: a pool's reference */
	struct settings share; /* of them, what this host may use: the limiter's settings */
	/*
	 * Until then, by the waiter's clock, other hosts may use leaves by settings from before
	 * these, though these use none; 0: they do not.
	 */
	uint64_t used_ns;
	uint64_t id;	       /* LID */
	uint64_t generation;   /* counts changes */
	uint64_t saved, cut;   /* as in its record */
	uint64_t cut_ns;       /* this host knew of `cut` then, by that clock; 0: it is the first */
	int32_t version;       /* of its node */
	uint64_t made_zxid;    /* of the write that made its node; 0: not known */
	uint64_t changed_zxid; /* of the write that made it as it is; 0: not known */
	enum holding_maker maker;

	/* Leases, in the order of their leaves, and at most one of the reserve. */
	struct lease *leases; /* owned; NULL until there is one */
	uint32_t lease_count, lease_room;
	struct lease reserve;
	uint32_t held;	   /* leaves in state HELD, the reserve's not counted */
	uint32_t draining; /* of those leased: on their way back */
	uint32_t leased;   /* leaves in any state but NONE, the reserve's not counted */

	/* This host's share, as its buckets know it. */
	uint32_t usable;
	bool reserve_usable;
	struct holding_place place;
	bool alone;    /* no other host was seen yet: keys begin full */
	bool degraded; /* `offline` of the settings is in force */

	uint32_t yields;     /* slots of so many partitions only are opened; UINT32_MAX: of all */
	uint64_t delayed_ns; /* how long readers waited, here and below */
	/*
	 * How long readers of A to B tokens, here and below, waited for tokens of this limiter,
	 * but for the wait that lasts since then (0: none does).
	 */
	uint64_t range_waited_ns, range_since_ns;
	/*
	 * The time in which readers, here and below, have waited, but for the first
	 * HOLDING_CALM_NS of each wait: for that of now it begins then. Tokens of readers that
	 * came in that time.
	 */
	uint64_t stalled_ns, stall_ns;
	uint64_t behind;

	/* Tokens granted a second of late; when that was measured (0: never), and at how many. */
	double granted_rate;
	uint64_t measured_ns, granted;

	/* The fleet's: owned, each known to its own file in core/fleet alone. */
	struct demand *demand;
	struct claims *claims;
	struct round *round;
	struct apportion *apportion;
	struct balance *balance;
	struct sight *sight;
	struct wants *wants;
	struct told_node *told;	  /* NULL until there is one */
	uint32_t unproven;	  /* leaves that came of late, of which rule 21 knows nothing ... */
	uint64_t unproven_ns;	  /* ... and when the last of them came */
	uint64_t release_ns;	  /* refused leases are not given back before */
	bool agreed_rate_watched; /* the node of the agreed rate is */
	bool told_watched;	  /* the quotas told are */
	bool claims_watched;	  /* the folder of its claims is */
	void (*detach)(struct holding *holding); /* frees them; NULL: there are none */
};

/* Returns the settings as they were set: in a fleet for all of its hosts together. */
static inline const struct settings *limiter_settings(const struct limiter *limiter)
{
	return limiter->holding ? limiter->holding->settings : limiter->settings;
}

/* Tells whether this host holds nothing of the limiter that may be used. */
static inline bool holding_is_without(const struct holding *holding)
{
	return !holding->usable && !holding->reserve_usable;
}

/* Makes a holding for @limiter, which owns it; NULL when there is no memory. */
struct holding *holding_new(struct limiter *limiter);

/* Frees it, and takes it out of its fleet's list. */
void holding_free(struct holding *holding);

/*
 * Returns the lease that has @leaf, NULL: none has. Adds one of leaves @first to @last, in state
 * NONE, or returns it if it is there: in place of those in that state that have some of them. The
 * others have none of them, and may be moved. NULL when there is no memory.
 */
struct lease *holding_find_lease(const struct holding *holding, uint32_t leaf);
struct lease *holding_add_lease(struct holding *holding, uint32_t first, uint32_t last);

/*
 * Splits the lease that has @leaf and the one before it. Returns the one that begins at @leaf,
 * which has no place in the handover and no rest; it lies behind the other. NULL when there is no
 * memory. All leases may be moved.
 */
struct lease *holding_split_lease(struct holding *holding, uint32_t leaf);

/*
 * Returns the number of leaves that hosts share the capacity of @settings in. Tells whether leaves
 * are numbered alike under @a and @b, the reserve's, too: so the same leaf is the same part.
 */
uint32_t holding_leaves(const struct settings *settings);
bool holding_is_cut_alike(const struct settings *a, const struct settings *b);

/*
 * Tells whether the partitions of @settings have numbers where hosts share them: each leaf is one.
 * Otherwise hosts lease pieces, runs of leaves of any length.
 */
bool holding_has_numbers(const struct settings *settings);

/* Returns what @leaves of limit @i, which is of windows of the calendar, are worth: exactly. */
struct window_share holding_window(const struct holding *holding, uint32_t i, uint32_t leaves);

/* Returns what this host has of it now: its leaves, or what `offline` gives, in whole tokens. */
struct window_share holding_window_share(const struct holding *holding, uint32_t i);

/* Gives the share that settings and leases allow now, as settings for the limiter's buckets. */
void holding_share(const struct holding *holding, struct settings *share);

/*
 * Gives the rate (of settings whose key_rate is not `max`) and the burst of a key of which this
 * host leases @leaves.
 */
void holding_key_share(const struct holding *holding, uint32_t leaves, struct rate *rate,
		       uint64_t *burst);

/* Returns the part that holding_key_share() computes with. */
struct key_part holding_key_part(const struct holding *holding, uint32_t leaves);

/* Returns the number of partitions. */
uint32_t holding_count(const struct holding *holding);

/* Gives the rate of partition @index, as in settings_of_partition(), as it may be used now. */
void holding_partition_share(const struct holding *holding, uint32_t index, struct settings *share);

/* Returns the slots of partition @index that may be used now; of settings with SLOTS_COUNT. */
uint32_t holding_slots_of(const struct holding *holding, uint32_t index);

/* Returns the slots of all partitions that are held. */
uint32_t holding_slots(const struct holding *holding);

/* Tells whether hosts share the slots of the limiter, so that each slot is of a leaf. */
bool holding_leases_slots(const struct holding *holding);

/*
 * Returns the smallest number of a slot of this host's leaves that no open slot has; UINT32_MAX:
 * there is none. Tells whether slot @number is of these leaves.
 */
uint32_t holding_free_number(const struct holding *holding);
bool holding_owns_number(const struct holding *holding, uint32_t number);

/*
 * A leaf is numbered while an open slot has the number of one of its slots: it is not given back.
 * Tells whether one of leaves @first to @last is.
 */
bool holding_is_numbered(const struct holding *holding, uint32_t first, uint32_t last);

/* Counts the numbered leaves of HELD leases, and all slots that these leaves bring. */
struct numbered_leaves {
	uint32_t leaves, slots;
};
struct numbered_leaves holding_numbered_leaves(const struct holding *holding);

/* Returns the first numbered leaf from @leaf on, held or not; the number of leaves: none is. */
uint32_t holding_next_numbered(const struct holding *holding, uint32_t leaf);

/* Returns the tokens granted and slots opened so far: to see if a lease has been of use. */
uint64_t holding_use(const struct holding *holding);

/*
 * Return the tokens that the limiter has granted, and those that waiters here and below want, at
 * least one if any waits. Where it has units, that of which most of the limiter goes counts, in
 * tokens of the slowest limit.
 */
uint64_t holding_granted(const struct holding *holding);
uint64_t holding_waiting(const struct holding *holding);

/*
 * Looks at the buckets at @now_ns. @is_full: none fills any more; windows of the calendar do not.
 * @has_saved: one has what @part of @whole equal parts of the burst come to, at least a token.
 * @room: the fewest tokens that one has room for; 0: one is of windows, whose tokens go with the
 * leaves.
 * @token_ns: when each has a token; NEVER_NS.
 */
struct holding_savings {
	bool is_full, has_saved;
	uint64_t room;
	uint64_t token_ns;
};
struct holding_savings holding_savings(const struct holding *holding, uint64_t now_ns,
				       uint32_t part, uint32_t whole);

/* Tells whether its part of the reserve may be used now. */
bool holding_has_reserve(const struct holding *holding);

/* Tells whether capacity must be leased at all. */
bool holding_needs_leases(const struct holding *holding);

/* Returns the lease with @leaf, or with that part of the reserve. NULL: there is none. */
struct lease *holding_lease(struct holding *holding, uint32_t leaf, bool reserve);

#endif
