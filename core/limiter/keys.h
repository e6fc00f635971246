/*
 * keys - per-key buckets of a limiter: each key has a bucket of its own, with key_rate and
 * key_burst, and its tokens are also tokens of the limiter and its ancestors.
 *
 * A key is made when it is first asked for. It costs a `struct key` while its bucket is not full,
 * and is a `struct limiter` below its own only while files of it are open. A key that is full and
 * was not used for KEYS_LINGER_NS is forgotten.
 *
 * There are at most keys_max. When one more is asked for, the oldest key without a take is
 * forgotten, or else the key that was idle longest. The bucket keys->unknown stands for the keys
 * that are not remembered: it holds at most as much as any of them would hold by now, and a new key
 * begins with that. It is full, as a new limiter's, except for a while after a key was forgotten
 * that was not full. So making the daemon forget brings no more than key_rate and key_burst allow.
 * In a fleet the unknown bucket begins empty, and follows this host's share.
 *
 * A change of key_rate or key_burst counts at once for keys in use, and for idle keys when they are
 * next looked at, each change as of its time (tuning.h). A key can have a rate and a burst of its
 * own (key_overrides.h).
 */
#ifndef RATEFS_CORE_KEYS_H
#define RATEFS_CORE_KEYS_H

#include "core/base/chain.h"
#include "core/limiter/limiter.h"
#include "core/limiter/tuning.h"

enum {
	KEYS_FRESH_MAX = 65536, /* idle keys of a limiter without a take */
	KEYS_SWEEP = 256,	/* keys forgotten in one go, at most */
	KEYS_SWEEPS = 16,	/* limiters with such keys in one step, at most */
};

/* A key that was found by its name can be found by its number for so long. */
#define KEYS_LINGER_NS (2 * NSEC_PER_SEC)
/* Slack, so that many are forgotten at a time; and the pause when there are more than fit. */
#define KEYS_SLACK_NS (NSEC_PER_SEC / 10)
#define KEYS_PAUSE_NS (NSEC_PER_SEC / 1000)

struct key_lease;
struct key_rest;
struct key_units;
struct ledger;
struct owing;

enum key_list_id {
	KEYS_FRESH,
	KEYS_USED,
	KEYS_OVERRIDDEN,
	KEYS_OPEN,
	KEY_LISTS,
	KEY_LISTS_MASK = 3
};

/* Tokens that were granted to a key, while it is idle. */
union key_count {
	uint64_t granted;
	struct key_rest *rest; /* owned: with levels of units, see key_units.h */
};

struct key {
	struct chain_link by_name, by_id;
	struct list_link by_use; /* in its list */
	struct key_level level;	 /* while it is idle; as of when it was last used */
	uint64_t id;		 /* never used twice */
	union {
		union key_count count;	  /* idle, and it owes nothing */
		struct owing *owing;	  /* idle, and it owes: owned, see owing.h */
		struct limiter *inflated; /* open; owned */
	};
	uint32_t served, refused; /* idle */
	uint32_t uid;		  /* the user it was made for */
	uint8_t list : 2;	  /* enum key_list_id */
	uint8_t owes : 1;
	uint8_t overridden : 1; /* it has overrides */
	uint8_t rests : 1;	/* idle, and its count is a rest */
	uint8_t name_bytes;
	char name[]; /* NUL-terminated */
};

struct key_list {
	struct list keys; /* the one that was used last is the last */
	uint32_t count;
};

/* All keys of a limiter. */
struct keys {
	struct limiter *limiter; /* borrowed; NULL once it is gone: the keys follow */
	struct chains by_name;
	struct key_list lists[KEY_LISTS];
	struct list owing;    /* of idle keys that owe, the oldest first */
	struct list waiting;  /* of open keys in which readers or openers wait */
	uint32_t waiters;     /* in all of them */
	struct heap_node due; /* in the schedule's forgets */
	struct tunings tunings;
	struct settings settings; /* of each key that is open */
	struct key_level unknown;
	struct overrides *overrides; /* held: those in force */
	struct key_units *units;     /* owned; NULL: key_rate never had a unit or a window */
	const struct wall *wall;     /* borrowed */
	struct ledger *ledger;	     /* borrowed; NULL: uses of windows are not kept */
	uint64_t number;	     /* of the limiter there; 0: it has none */
	/* A key with overrides that is new begins full if @whole, else it was empty then. */
	uint64_t whole : 1;
	uint64_t since_ns : 63;
};

/* Notes that keys with overrides begin as of @now_ns from now on. */
static inline void keys_begin_at(struct keys *keys, uint64_t now_ns)
{
	keys->since_ns = now_ns & (UINT64_MAX >> 1);
}

/* Sets the seed of the hash of names; once, before there are keys. */
void keys_seed(struct schedule *schedule, const uint64_t seed[2]);

/*
 * Finds the key called @name (1 to 255 bytes) of @limiter, or makes it for @uid. 0, -ENOMEM, or
 * -ENOSPC: there are keys_max, all in use; or users_check() says no, and the oldest idle key here
 * is not of @uid. The key may be forgotten in the next step unless it is open.
 */
int keys_get(struct schedule *schedule, struct limiter *limiter, const char *name, uint32_t uid,
	     struct key **key);

/*
 * Finds or makes the key called @name (1 to 255 bytes) of @limiter, which had number @id in a
 * predecessor of the caller and was made there for @uid. It was there, so no bound applies; the
 * caller opens it before the next step. 0 or -ENOMEM.
 */
int keys_restore(struct schedule *schedule, struct limiter *limiter, const char *name, uint32_t uid,
		 uint64_t id, struct key **key);

/* Finds the key called @name of @length bytes. NULL: it is not remembered. */
struct key *keys_named(const struct keys *keys, const char *name, size_t length);

/* Finds the key with number @id. NULL: it is forgotten. */
struct key *keys_find(const struct schedule *schedule, uint64_t id);

/* Opens @key of @limiter as a limiter, with a reference for keys_close(). NULL: no memory. */
struct limiter *keys_open(struct schedule *schedule, struct limiter *limiter, struct key *key);
void keys_close(struct schedule *schedule, struct limiter *inflated);

/*
 * Sets how many leaves of a key, which is open as @inflated and stays so, this host may use from
 * now on: its bucket follows at once, without a token more. 0 before it is closed. 0 or -ENOMEM.
 */
int keys_lease(struct schedule *schedule, struct limiter *inflated, uint32_t leaves);

/* Gets, sets what the source knows of a key that it leases; NULL: it leases none. */
struct key_lease *keys_lease_of(const struct limiter *inflated);
void keys_set_lease(struct limiter *inflated, struct key_lease *lease);

/* Puts @tokens into the bucket of such a key. */
void keys_bring(struct schedule *schedule, struct limiter *inflated, uint64_t tokens);

/* Returns the key that is open as @inflated, or NULL once it is gone. */
struct key *keys_key(const struct limiter *inflated);

/* Returns the burst that all hosts of a fleet together have of limit @i, no window, of a key. */
uint64_t keys_whole_burst(const struct limiter *inflated, uint32_t i);

/* Return the number of keys remembered, and of readers and openers that wait in them. */
uint32_t keys_count(const struct limiter *limiter);
uint32_t keys_waiting(const struct limiter *limiter);

/*
 * Counts a reader or opener of the open key @inflated that @joins its queue there, or has left it:
 * the queue is as it is after that.
 */
void keys_count_waiter(struct limiter *inflated, bool joins);

/*
 * Return the open key after @key, or the first (NULL); of those in which a reader or opener waits,
 * or of all, which may be very many. NULL: there are no more.
 */
struct limiter *keys_next_waiting(const struct limiter *limiter, struct limiter *key);
struct limiter *keys_next_open(const struct limiter *limiter, const struct limiter *key);

/*
 * Returns the first key whose place in the listing is not below *@place, and its place (below
 * 2^62); NULL: there are no more. The next one is looked for from the place after.
 */
struct key *keys_from(const struct limiter *limiter, uint64_t *place);

/* Gets the memory that keys of @limiter need for @settings. 0 or -ENOMEM. */
int keys_prepare(const struct schedule *schedule, struct limiter *limiter,
		 const struct settings *settings);

/*
 * Follows the settings of @limiter; with @full a limit that was not there before begins full. Tells
 * whether keys that are open, whose settings were @old before, are to follow.
 */
bool keys_follow(struct schedule *schedule, struct limiter *limiter, bool full,
		 struct settings *old);

/* Tells whether the open @key has memory for the buckets of its settings. */
bool keys_can_follow(const struct limiter *key);

/*
 * Returns what the settings of the open @key were where those of all were @old: units of its own.
 * It has the units of its settings from then on.
 */
struct settings keys_former(struct limiter *key, const struct settings *old);

/* Has the ledger forget the keys of @limiter, which is removed for good. */
void keys_end_windows(const struct limiter *limiter);

/*
 * Removes the keys of @limiter, which is about to go: readers that wait in them get -ENODEV. The
 * memory is freed in later steps.
 */
void keys_remove(struct schedule *schedule, struct limiter *limiter);

/* Returns when keys_run() has something to forget, or NEVER_NS. */
static inline uint64_t keys_next_ns(const struct schedule *schedule)
{
	return schedule->forgets.root ? schedule->forgets.root->key : NEVER_NS;
}

/* Forgets keys that are due, as many as one step may. */
void keys_run(struct schedule *schedule);

/* Forgets all keys of limiters that are gone, at the end. */
void keys_free(struct schedule *schedule);

#endif
