/*
 * key_ledger - what is used of windows of the calendar of keys, by hashes of names: the ledger of
 * core/limiter/key_windows.h.
 *
 * It is in the memory for a successor (state.h), so that it is exact when the server is killed
 * between any two stores. Where settings are kept in a directory (fs/local), a file there has the
 * same records: those that have changed are written and synced together, at most
 * KEY_LEDGER_SYNC_S later. After an end of the server and its keeper that was not clean it is not
 * known how much was taken since. So the file has a reserve, too, which then counts as used of each
 * window of each key. It is the most that one key took in the second before, at least a token.
 * Where a key takes half of it sooner there is a sync at once, with twice the reserve: so it is too
 * small only for a burst that comes in the time of a sync.
 *
 * A record is a use of one window, or a limiter: its number by its path. Uses are by that number,
 * so that a limiter that is renamed keeps them. Uses of windows that are over are dropped when
 * room is needed.
 */
#ifndef RATEFS_FS_KEY_LEDGER_H
#define RATEFS_FS_KEY_LEDGER_H

#include "core/limiter/key_windows.h"
#include "core/limiter/limiter.h"

#include <stdatomic.h>

#ifndef KEY_LEDGER_INDEX_BITS /* a test has less */
#define KEY_LEDGER_INDEX_BITS 24
#endif

enum {
	KEY_LEDGER_RECORDS = 1 << KEY_LEDGER_INDEX_BITS, /* in memory, and in the file */
	KEY_LEDGER_BYTES = 64,				 /* of a record */
	KEY_LEDGER_SYNC_S = 1,
};

struct key_ledger_record {
	uint64_t name[2];	      /* 0, 0: it is free */
	int64_t begin_s, end_s, used; /* as struct key_use; of a limiter 0 */
	int64_t synced;		      /* used, as the file has it */
	uint64_t number; /* of a limiter: its index, and how many there were before; or 0 */
	uint64_t sum;	 /* of what is above, in the file */
};

struct key_ledger_memory {
	uint64_t seed[2];     /* of names: random, so that strangers cannot aim at a hash */
	uint64_t made;	      /* numbers of limiters */
	int64_t lost_until_s; /* there was no room: keys without a record have used all till then */
	uint32_t count;	      /* records that were ever used */
	/* The record that is being written, and its index + 1, as in state.h; 0: none is. */
	_Atomic uint32_t journal_at;
	struct key_ledger_record journal;
	struct key_ledger_record records[KEY_LEDGER_RECORDS];
};

struct key_ledger;

/* Tells whether @memory, which a predecessor may have left, can be what a server wrote. */
bool key_ledger_is_sound(const struct key_ledger_memory *memory);

/*
 * Begins with what is in @memory: zeros, or what a predecessor has left. Where there was one
 * (@succeeds), and that is zeros, keys have used all. NULL: no memory. @memory and @wall are
 * borrowed.
 */
struct key_ledger *key_ledger_new(struct key_ledger_memory *memory, const struct wall *wall,
				  bool succeeds);

/* Returns what the engine has. Unknown keys are recalled while limiters are restored. */
struct ledger *key_ledger_interface(struct key_ledger *ledger);

/*
 * Opens the file of @directory, which it has from now on, and reads it unless a predecessor has
 * left the records. 0; -EBADMSG: it is damaged, and keys that are not found have used all; or
 * -errno.
 */
int key_ledger_load(struct key_ledger *ledger, int directory);

/* Notes that all limiters are restored: forgets those that were not. */
void key_ledger_begin(struct key_ledger *ledger);

/* Has the number of @limiter, and of all below it, found by the paths that they have now. */
void key_ledger_follow(struct key_ledger *ledger, const struct limiter *limiter);

/* Tells whether there is a file, and something to be written or to become less. */
bool key_ledger_is_kept(const struct key_ledger *ledger);

/*
 * Returns and clears whether there is to be a sync at once: a key has taken so much, or a limiter
 * was renamed.
 */
bool key_ledger_hurries(struct key_ledger *ledger);

/* Records that are to be written. */
struct key_batch {
	struct key_batch_entry {
		uint32_t at; /* in the file: 0 is its header */
		struct key_ledger_record record;
	} * entries; /* owned */
	uint32_t count;
	bool raises; /* the header comes first: it has a larger reserve */
};

/*
 * Once a second and, @early, when key_ledger_hurries() says so: collects what has changed. 0 or
 * -ENOMEM. key_ledger_write(), which needs no lock, writes and syncs it: 0 or -errno.
 * key_ledger_written() hears of that, and frees it.
 */
int key_ledger_collect(struct key_ledger *ledger, bool early, struct key_batch *batch);
int key_ledger_write(const struct key_ledger *ledger, const struct key_batch *batch);
void key_ledger_written(struct key_ledger *ledger, struct key_batch *batch, int err);

/* Writes all and notes a clean end if @clean, and frees it. NULL is none. */
void key_ledger_close(struct key_ledger *ledger, bool clean);

#endif
