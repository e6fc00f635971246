/*
 * privilege - the privileges that a daemon of root gives up once it has mounted: its user, with
 * `user=NAME`, and every capability that it does not need to the end.
 *
 * CAP_SYS_ADMIN is kept: without it a mount of root cannot be unmounted, since fusermount3 unmounts
 * for the user of the mount only. CAP_DAC_READ_SEARCH is kept, too, if the way to the mount point
 * is closed to the daemon otherwise; and CAP_DAC_OVERRIDE, without `user=`, if `local:DIR` is.
 *
 * The keeper and the first server each do this by themselves. Servers that the keeper starts later
 * begin with the capabilities it has kept. A server needs them: it unmounts if the keeper is
 * killed.
 *
 * A daemon of an ordinary user has nothing to give up. It may gain privileges by an exec, as no
 * other daemon does: fusermount3, which unmounts for it, is setuid.
 *
 * There is no filter of system calls: the calls of the C library's name service and of ZooKeeper's
 * client differ from machine to machine, and a wrong filter kills the daemon, and with it the
 * mount.
 */
#ifndef RATEFS_FS_BASE_PRIVILEGE_H
#define RATEFS_FS_BASE_PRIVILEGE_H

#include "fs/base/options.h"

/* Looks up the user of `user=NAME`. 0, or the exit status after a message. */
int privilege_choose(const struct options *options);

/* Makes @directory, unless it is there, and gives it to that user. 0 or -1 after a message. */
int privilege_make(const char *directory);

/*
 * Opens, as that user, a descriptor that names @directory, wherever that is moved to. Returns it,
 * which the caller closes, or -1 after a message.
 */
int privilege_open(const char *directory);

/* Has this thread open and make files as that user, or again as before. */
void privilege_files(bool as_user);

/*
 * Gives up privileges, in this thread and all that it starts; again in a program that was started
 * with the kept ones. @directory is a descriptor of the directory of settings, or -1. 0 or -1 after
 * a message.
 */
int privilege_drop(const struct options *options, int directory);

/* Hands the kept capabilities on to the program that this process is about to become. */
void privilege_hand_on(void);

/* Gives up all privileges in a thread that needs none. */
void privilege_drop_all(void);

#endif
