/*
 * tuning - the settings that keys of a limiter have had, and since when. So an idle key's bucket is
 * not touched before it is looked at: then the tokens that accrued under each setting are counted,
 * for as long as it was in force.
 *
 * TUNINGS_MAX are remembered, from the oldest that a key still needs on. When there are more the
 * two oldest become one with the lesser rate and burst: a key that was idle for that long has no
 * more than it should.
 */
#ifndef RATEFS_CORE_TUNING_H
#define RATEFS_CORE_TUNING_H

#include "core/limiter/bucket.h"

enum { TUNINGS_MAX = 64 };

/* A bucket at rest, without a debt. */
struct key_level {
	int64_t level; /* as bucket.h; without a meaning where there was no limit */
	uint64_t part;
	uint64_t filled_ns;
	uint32_t tuning;  /* number of the tuning under which the level was found */
	uint32_t limiter; /* id of the limiter whose key it is */
};

struct tuning {
	struct bucket bucket; /* empty, as of the beginning; nothing if there is no limit */
	struct rate rate;
	uint64_t burst;
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
int tunings_init(struct tunings *tunings, const struct rate *rate, uint64_t burst, uint64_t now_ns);

/*
 * Adds a tuning: @rate (which may be `max`) and @burst count from now on; with @full a limit where
 * there was none begins full. Numbers below @needed are needed no more.
 */
void tunings_add(struct tunings *tunings, const struct rate *rate, uint64_t burst, bool full,
		 uint32_t needed, uint64_t now_ns);

/* Tells whether no rate but 0 was ever set: in a fleet, before the first lease. */
bool tunings_are_new(const struct tunings *tunings);

/* Return the tuning in force, and its number. */
const struct tuning *tunings_now(const struct tunings *tunings);
uint32_t tunings_number(const struct tunings *tunings);

/* Gives the bucket of @level as it is now. False: there is no limit, and no bucket. */
bool tunings_bucket(const struct tunings *tunings, const struct key_level *level, uint64_t now_ns,
		    struct bucket *bucket);

/* Puts @bucket, as of now, to rest. NULL: there is no limit. */
void tunings_rest(const struct tunings *tunings, const struct bucket *bucket, uint64_t now_ns,
		  struct key_level *level);

void tunings_free(struct tunings *tunings);

#endif
