/*
 * tuning - the settings that keys of a limiter have had, and since when. So an idle key's bucket is
 * not touched before it is looked at: then the tokens that accrued under each setting are counted,
 * for as long as it was in force.
 *
 * TUNINGS_MAX are remembered, from the oldest that a key still needs on. When there are more the
 * two oldest become one with the lesser rate and burst: a key that was idle for that long has no
 * more than it should.
 *
 * Where one of two settings is a strict window the key has used up all of it by the change.
 *
 * Overrides of a key stand in place of each of them, with the part that the host had.
 */
#ifndef RATEFS_CORE_TUNING_H
#define RATEFS_CORE_TUNING_H

#include "core/limiter/bucket.h"
#include "core/values/settings.h"

enum { TUNINGS_MAX = 64 };

/* A bucket at rest. A debt is that of a strict window, or of a rate in place of one. */
struct key_level {
	int64_t level; /* as bucket.h; without a meaning where there was no limit */
	union {
		uint64_t part;
		struct stamps *stamps; /* of a strict window: owned, see tunings_end_level() */
	};
	uint64_t filled_ns;   /* of a strict window: its grid_ns */
	uint32_t limiter;     /* id of the limiter whose key it is */
	uint32_t tuning : 31; /* number of the tuning under which the level was found */
	uint32_t is_strict : 1;
};

struct tuning {
	struct bucket bucket; /* empty, as of the beginning; nothing if there is no limit */
	struct rate rate;
	uint64_t burst;
	struct key_part part; /* that this host has of what is overridden */
	bool limited;
	bool full; /* the limit is new, and the bucket was full */
};

struct tunings {
	struct tuning *list; /* owned; the last one is in force */
	uint32_t count;
	uint32_t room;
	uint32_t first; /* number of the first */
};

/* Begins with a first tuning. 0 or -ENOMEM. */
int tunings_init(struct tunings *tunings, const struct rate *rate, uint64_t burst,
		 struct key_part part, uint64_t now_ns);

/*
 * Adds a tuning: @rate (which may be `max`) and @burst count from now on; with @full a limit where
 * there was none begins full. Numbers below @needed are needed no more.
 */
void tunings_add(struct tunings *tunings, const struct rate *rate, uint64_t burst,
		 struct key_part part, bool full, uint32_t needed, uint64_t now_ns);

/* Tells whether no rate but 0 was ever set: in a fleet, before the first lease. */
bool tunings_are_new(const struct tunings *tunings);

/* Return the tuning in force, and its number. */
const struct tuning *tunings_now(const struct tunings *tunings);
uint32_t tunings_number(const struct tunings *tunings);

/*
 * Gives the bucket of @level as it is now, of a key with @override, or without (NULL). False: there
 * is no limit, and no bucket. That of a strict window has the log of @level, if it still counts.
 */
bool tunings_bucket(const struct tunings *tunings, const struct key_level *level,
		    const struct override *override, uint64_t now_ns, struct bucket *bucket);

/*
 * Does as tunings_bucket(), with the override @old until now and @new from now on; with @full a
 * limit where there was none begins full.
 */
bool tunings_override(const struct tunings *tunings, const struct key_level *level,
		      const struct override *old, const struct override *new, bool full,
		      uint64_t now_ns, struct bucket *bucket);

/* Gives an empty bucket as of @since_ns by the tuning in force. False: there is no limit. */
bool tunings_begin(const struct tunings *tunings, const struct override *override,
		   uint64_t since_ns, struct bucket *bucket);

/* Puts @bucket, as of now, to rest. NULL: there is no limit. A log that it has is @level's then. */
void tunings_rest(const struct tunings *tunings, const struct bucket *bucket, uint64_t now_ns,
		  struct key_level *level);

/* Does the same without the log of a strict window: all that is used counts as taken now. */
void tunings_rest_joined(const struct tunings *tunings, const struct bucket *bucket,
			 uint64_t now_ns, struct key_level *level);

/* Frees the log of @level, if it has one, unless @bucket has it now (NULL: there is no bucket). */
void tunings_end_level(struct key_level *level, const struct bucket *bucket);

void tunings_free(struct tunings *tunings);

#endif
