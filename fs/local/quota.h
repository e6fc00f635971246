/*
 * quota - the use of windows of the calendar, kept in `.windows` as tokens are taken.
 *
 * The file is a header and records of QUOTA_BYTES, one for each limit of windows. A record is
 * written, but not synced, with each token: so it is exact when the daemon and its keeper are
 * killed. It is synced within QUOTA_SYNC_S of a change, for a power loss. Takes since then are not
 * known: a record also has a reserve, which counts as used if the machine was started anew since
 * and there was no clean end. That is what was taken in the second before it was synced, at least a
 * token. Where half of it is taken sooner the record is synced at once, with twice the reserve: so
 * it is too small only for what comes all of a sudden, in the time of a sync. A window that began
 * after the one of the record is full.
 *
 * A record is found by a hash of the limiter's path and of the windows: `day@00:00,Europe/Paris`.
 * The number of tokens may be another than it was.
 */
#ifndef RATEFS_FS_LOCAL_QUOTA_H
#define RATEFS_FS_LOCAL_QUOTA_H

#include "core/limiter/change.h"

enum { QUOTA_BYTES = 64, QUOTA_SYNC_S = 1 };

struct quota;

/* Opens the file of @directory, or makes it. NULL after a message. */
struct quota *quota_open(int directory);

/* Notes a clean end if @clean, and frees it. NULL is none. */
void quota_close(struct quota *quota, bool clean);

/* Fills the windows of @limiter, which was restored just now, as they are known. */
void quota_restore(struct quota *quota, struct limiter *limiter, uint64_t now_ns);

/* Forgets the records of limiters that were not restored, and begins to keep those that were. */
void quota_begin(struct quota *quota, struct engine *engine);

/*
 * Has records of @limiter, which is new or has other limits; of it and all below it, where names
 * have changed; or none any more.
 */
void quota_follow(struct quota *quota, const struct limiter *limiter);
void quota_follow_all(struct quota *quota, const struct limiter *limiter);
void quota_forget(struct quota *quota, uint32_t id);

/* Tells whether there is anything to keep. */
bool quota_is_kept(const struct quota *quota);

/* Writes what was used of the windows of @limiter. Tells whether it is to be synced at once. */
bool quota_used(struct quota *quota, const struct limiter *limiter);

/*
 * Once a second and, @early, when quota_used() says so, under the daemon's lock: foresees what may
 * be taken until the next sync. Tells whether there is something to be synced; quota_sync() does
 * that, without the lock. 0 or -errno.
 */
bool quota_foresee(struct quota *quota, bool early);
int quota_sync(const struct quota *quota);

#endif
