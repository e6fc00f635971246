/*
 * local - settings of one host: in memory, or kept in a directory.
 *
 * Kept, each limiter is a directory of its name, with its settings in the file `.config` (no
 * limiter's name begins with a dot). A change is written to `.config.new`, synced, renamed over
 * `.config`, and the directory is synced, before it is acknowledged; a thread of its own does that,
 * so that no token waits for a disk. A limiter is made as `.making` and renamed when it is whole,
 * and renamed to `.removed` before it is removed. A directory without settings is not ours, but an
 * empty one gives way to a limiter of its name.
 *
 * The file says what it is, and ends with a checksum. One that does not check out is renamed to
 * `.config.damaged`, and its limiter (with all below it) is neither served nor replaced until an
 * operator has looked.
 *
 * The use of windows of the calendar is in `.windows` (quota.h) and, of keys, in `.keys`
 * (fs/state/key_ledger.h).
 *
 * The tokens left in the buckets are written to `.levels` at a clean end, and used up by the next
 * start.
 */
#ifndef RATEFS_FS_LOCAL_LOCAL_H
#define RATEFS_FS_LOCAL_LOCAL_H

#include "core/limiter/source.h"

struct daemon;
struct local;

/*
 * Makes a source that keeps settings in the directory that the descriptor @named names, or nowhere
 * if @directory, its path for messages, is NULL. NULL after a message. Until local_start() changes
 * are stored from within the call.
 */
struct local *local_open(const char *directory, int named);
struct source *local_source(struct local *local);

/* Restores what is kept into the engine. 0 or -errno after a message. */
int local_load(struct local *local, struct daemon *daemon);

/* Starts the thread. 0 or -errno. */
int local_start(struct local *local);

/* Stops the thread after the change under way. */
void local_stop(struct local *local);

/* Writes the levels if it was started, and frees the source. */
void local_close(struct local *local);

#endif
