/*
 * key_units - the limits of keys that have a unit or are windows of the calendar: `key_rate` is
 * `10/min 500/day@00:00 tpm=9000/min`.
 *
 * Each limit but the first of these is a `struct key_unit`: windows of one length have their use
 * (key_windows.h), others have tunings of their own (tuning.h). It has a use or a bucket of the
 * keys that are not remembered (keys.h), too. An idle key that was granted tokens of any kind has a
 * level or a use of each unit beside key->level, in a `struct key_rest`, which has its count of
 * tokens, too. Any other idle key has what an unknown key has. An open key has its buckets in a
 * `struct key_room`.
 *
 * A key without units and windows costs nothing for them.
 */
#ifndef RATEFS_CORE_KEY_UNITS_H
#define RATEFS_CORE_KEY_UNITS_H

#include "core/limiter/key_windows.h"
#include "core/limiter/keys.h"
#include "core/limiter/units.h"

/* Units in force, and those of a change to come. */
enum { KEY_UNITS_MAX = 2 * LIMITS_MAX };

struct key_unit {
	char name[UNIT_TEXT]; /* "": of windows */
	uint8_t kind;	      /* enum rate_kind of its windows; 0: it is none of the calendar */
	bool begins;	      /* it follows its first share, and keys are full */
	uint32_t number;      /* above 0, never used twice in the limiter */
	struct tunings tunings;
	struct key_level unknown;
	struct key_use unknown_use; /* of windows, in place of these two */
};

struct key_units {
	uint32_t count;
	uint32_t last_number;
	struct key_unit of[KEY_UNITS_MAX];
};

/* The level or the use that an idle key has of a unit; none if that has another number. */
union key_unit_level {
	struct key_level level; /* its member `limiter` is the number */
	struct {
		struct key_use use;
		uint32_t number; /* in the place of that */
		uint32_t none;	 /* 0: it has no log */
	};
};

_Static_assert(sizeof(union key_unit_level) == sizeof(struct key_level), "windows cost no more");

/* An idle key's: by the indices of key_units. */
struct key_rest {
	uint64_t granted; /* of the key, without a unit */
	uint32_t count;
	struct {
		union key_unit_level its;
		uint64_t granted;
	} of[]; /* an open key's has room for all */
};

/* The memory of the buckets of an open key. */
struct key_room {
	struct unit_buckets buckets;	   /* first */
	char names[LIMITS_MAX][UNIT_TEXT]; /* units of the buckets */
	struct key_rest *rest;		   /* owned: for the time when it is closed */
	uint32_t window_room;		   /* LIMITS_MAX if keys have windows, else 0 */
	struct key_window windows[];	   /* of the buckets */
};

/* Returns the limit of @unit and windows of @kind (0: none) among @count of @limits, or NULL. */
const struct limit *key_units_find(const struct limit *limits, uint32_t count, const char *unit,
				   uint8_t kind);

/* Tells whether keys with @settings can have such limits, all of them or single ones. */
bool key_units_are_in(const struct settings *settings);

/*
 * Gets the memory that the units of @settings need in @keys; those that are new limit nothing yet.
 * 0 or -ENOMEM.
 */
int key_units_prepare(struct keys *keys, const struct settings *settings, uint64_t now_ns);

/*
 * Begins those that the settings have; with @full unknown keys are full, or else windows are as the
 * ledger has it. 0 or -ENOMEM.
 */
int key_units_begin(struct keys *keys, bool full, uint64_t now_ns);

/* Gives @key, which is new, the uses that the ledger has of it. 0 or -ENOMEM. */
int key_units_recall(const struct keys *keys, struct key *key, uint64_t now_ns);

/* Tells the ledger what is used of the windows of @inflated. The caller of the engine calls it. */
void key_units_note(const struct limiter *inflated);

/* Frees all; no key is left. */
void key_units_free(struct keys *keys);

/*
 * Follows the limiter's settings; with @full a limit that was not there before begins full. Tells
 * whether there is another limit for keys now.
 */
bool key_units_follow(struct keys *keys, bool full, uint64_t now_ns);

/*
 * Adds the limits of a key of @limiter that have a unit to @its; @override: NULL, or of the key, of
 * which this host has @part.
 */
void key_units_limits(const struct limiter *limiter, const struct override *override,
		      const struct key_part *part, struct settings *its);

/*
 * Gets, frees memory for the buckets of an open key of @keys, which have had units, in force or in
 * a change to come. NULL: there is none.
 */
struct key_room *key_units_room(const struct keys *keys);
void key_units_free_room(struct key_room *room);

/*
 * Has the open key @inflated of @keys, with @room (or NULL) until now, have such memory, if @keys
 * have had units. 0 or -ENOMEM.
 */
int key_units_make_room(const struct keys *keys, struct limiter *inflated, struct key_room *room);

/* Returns the memory of window @i of @inflated, of whose settings limit @i is of windows. */
struct key_window *key_units_window(const struct limiter *inflated, uint32_t i);

/*
 * Begins window @i of the open key @inflated, which its settings had not until now, in @bucket:
 * with what is known to be used of it.
 */
void key_units_begin_window(const struct limiter *inflated, uint32_t i, uint64_t now_ns,
			    struct bucket *bucket);

/* Tells whether the first bucket of @inflated is none of a unit, and none of windows. */
static inline bool key_units_have_flow(const struct limiter *inflated)
{
	return inflated->plain_count && !bucket_is_window(&inflated->buckets[0]);
}

/*
 * Fills the buckets that @inflated has in @room (or NULL) of units that begin: its settings are
 * those of now, and the buckets those of before.
 */
void key_units_fill(const struct keys *keys, struct limiter *inflated, const struct key_room *room,
		    uint64_t now_ns);

/*
 * Begins the buckets of units of @inflated, which is @key and was idle until now; that of key_rate
 * is there, if its plain_count is 1. Takes its rest. @room has its buckets, and is NULL where no
 * key has units.
 */
void key_units_open(struct keys *keys, struct key *key, const struct override *override,
		    struct key_room *room, struct limiter *inflated, uint64_t now_ns);

/* Puts the buckets of units of @inflated, which is refilled, to rest: it is to be idle as @key. */
void key_units_close(struct keys *keys, struct key *key, struct key_room *room,
		     struct limiter *inflated, uint64_t now_ns);

/*
 * Gives @old, what the settings of all keys were, the units and the windows of the buckets that
 * @inflated has in @room (or NULL), which are those of its settings from now on.
 */
void key_units_former(const struct limiter *inflated, struct key_room *room, struct settings *old);

/* Returns the rest of @key. NULL: it is open, or has none. */
struct key_rest *key_units_rest(const struct key *key);

/* Counts the tokens that accrued in @key, which is idle. */
void key_units_touch(const struct keys *keys, const struct key *key,
		     const struct override *override, uint64_t now_ns);

/* Has @key, which is idle, follow its override, which was @old before, by key_overrides.h. */
void key_units_override(const struct keys *keys, const struct key *key, const struct override *old,
			const struct override *override, bool full, uint64_t now_ns);

/* Returns when all buckets of units of @key, which is idle, are full. */
uint64_t key_units_full_ns(const struct keys *keys, const struct key *key,
			   const struct override *override, uint64_t now_ns);

/* Leaves unknown keys no more than @key has, which is idle and about to be forgotten. */
void key_units_join_unknown(struct keys *keys, const struct key *key, uint64_t now_ns);

/* Frees the rest of @key, which is idle. */
void key_units_forget(struct key *key);

#endif
