/*
 * key_windows - windows of the calendar of a key: `key_rate` is `1000/day@00:00 10/min`.
 *
 * While the key is open each is a bucket of window.h, and while it is idle it is what was used of
 * one window. That counts until the window is over, whatever the limit is by then: where the limit
 * has other windows, it counts in the one that the key is looked at in.
 *
 * The uses of keys are told to a ledger, and found there again by a server that begins: so a key
 * has in each window what it should, also if the server ended in between. Without a ledger, or for
 * a key of which it is not known what was used, all is used until the next window.
 */
#ifndef RATEFS_CORE_KEY_WINDOWS_H
#define RATEFS_CORE_KEY_WINDOWS_H

#include "core/limiter/bucket.h"
#include "core/values/limit.h"

/* The use of the window that began at @begin_s: none from @end_s on. All 0: none. */
struct key_use {
	int64_t begin_s, end_s; /* of the wall clock */
	int64_t used;		/* tokens: 0 to 2^62; TOKENS_MAX or more: all that the limit has */
};

/* The memory that a bucket of windows of a key borrows. */
struct key_window {
	struct rate rate;
	struct window window;
};

/* Where uses are kept by names. The engine's caller has it. */
struct ledger {
	/* Returns the number of @path, a limiter's, above 0; 0: there is no room. */
	uint64_t (*number)(struct ledger *ledger, const char *path);

	/*
	 * Finds the use of windows of @kind and @unit of @key of limiter @number. False: there is
	 * none. With "" as @key, of keys that it does not know: *@use says until when all may be
	 * used; false: it is so.
	 */
	bool (*recall)(struct ledger *ledger, uint64_t number, const char *key, const char *unit,
		       uint8_t kind, struct key_use *use);

	/* Notes that use; where no token is used, it may forget it. */
	void (*note)(struct ledger *ledger, uint64_t number, const char *key, const char *unit,
		     uint8_t kind, const struct key_use *use);

	/* Notes that limiter @number is gone. */
	void (*end)(struct ledger *ledger, uint64_t number);
};

/*
 * Makes a bucket of @limit, of windows, in which @use is used, in @room, which lives as long as it.
 */
void key_window_begin(const struct limit *limit, const struct key_use *use, const struct wall *wall,
		      uint64_t now_ns, struct key_window *room, struct bucket *bucket);

/* Returns what is used of a bucket of windows, which is refilled. */
struct key_use key_window_use(const struct bucket *bucket);

/* Returns the use of all tokens of the window of @rate that is now. */
struct key_use key_window_all(const struct rate *rate, const struct wall *wall, uint64_t now_ns);

/* Returns what counts of @use at @now_ns: all of it, or nothing. */
int64_t key_use_now(const struct key_use *use, const struct wall *wall, uint64_t now_ns);

/* Has @unknown be no less than @use in anything. */
void key_use_join(struct key_use *unknown, const struct key_use *use, const struct wall *wall,
		  uint64_t now_ns);

/*
 * Has those of @count buckets @before that are of windows borrow from @former, as many: the memory
 * that they borrowed until now is for others.
 */
void key_windows_move(struct bucket *before, uint32_t count, struct key_window *former);

#endif
