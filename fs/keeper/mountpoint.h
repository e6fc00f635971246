/*
 * mountpoint - what a mount would hide.
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

/* Warns of a directory that is not empty. */
void mountpoint_warn(const char *mountpoint);

#endif
