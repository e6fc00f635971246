/*
 * mountpoint - what a mount would hide, and what it would be beside.
 */
#ifndef RATEFS_FS_KEEPER_MOUNTPOINT_H
#define RATEFS_FS_KEEPER_MOUNTPOINT_H

/*
 * Refuses a mount on a ratefs or in one: both would grant, and the lower one would be out of sight.
 * 0, or -1 after a message. @mountpoint is absolute, without links. Sends no request to what is
 * mounted there, so a tree that hangs, is dead or belongs to another user is seen as well. Without
 * /proc nothing is refused.
 */
int mountpoint_check(const char *mountpoint);

/*
 * Refuses a @directory of settings in a ratefs, or at, below or above the mount point, where a
 * server would wait for its own answer. 0, or -1 after a message. Both paths are absolute, without
 * links; the directory need not be there yet.
 */
int mountpoint_check_settings(const char *mountpoint, const char *directory);

/* Warns of a directory that is not empty. */
void mountpoint_warn(const char *mountpoint);

/*
 * Warns if another daemon has made a mount on that directory and lives: a copy of its mount in a
 * container, or an open file, keeps it alive, or it is in a mount namespace of its own; it grants
 * beside this one. The daemon before may
 * be about to end: this waits for 2 s then. From now on this process is known to have one there,
 * until it ends. A daemon in another network namespace is not seen.
 */
void mountpoint_claim(const char *mountpoint);

#endif
