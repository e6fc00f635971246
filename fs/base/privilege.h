/*
 * privilege - what a daemon that root starts gives up, once it has mounted: its user, with `user=NAME`,
 * and every capability but those that it ends with.
 *
 * Kept is CAP_SYS_ADMIN, without which a mount that root has made cannot be unmounted: fusermount3 does it
 * for the user who mounted only. CAP_DAC_READ_SEARCH is kept, too, if the way to the mount point is closed
 * to the daemon otherwise; and CAP_DAC_OVERRIDE, without `user=`, if `local:DIR` is.
 *
 * The keeper and the first server each do this by themselves. Those that the keeper starts later begin with
 * what it has kept, and that is what a server needs: it unmounts, too, if the keeper is killed.
 *
 * A daemon that an ordinary user starts has nothing to give up. It may gain by an exec what no other
 * does: fusermount3, which unmounts for it, is setuid.
 *
 * There is no filter of system calls: what the C library's name service and ZooKeeper's client call differs
 * from machine to machine, and a filter that is wrong kills the daemon, and with it the mount.
 */
#ifndef RATEFS_FS_BASE_PRIVILEGE_H
#define RATEFS_FS_BASE_PRIVILEGE_H

#include "fs/base/options.h"

/* Looks up who it shall be. 0, or the exit status after a message. */
int privilege_choose(const struct options *options);

/* Makes @directory, new, that user's. 0 or -1 after a message. */
int privilege_give(const char *directory);

/* Files are opened and made as that user, or again as before; of this thread. */
void privilege_files(bool as_user);

/*
 * Gives up, in this thread and all that it starts; again in a program that was started with what was kept. 0
 * or -1 after a message.
 */
int privilege_drop(const struct options *options);

/* The program that this process is about to become has what was kept, as that user, too. */
void privilege_hand_on(void);

/* Likewise of a thread that needs nothing at all. */
void privilege_drop_all(void);

#endif
