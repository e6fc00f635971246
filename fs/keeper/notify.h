/*
 * notify - tells a service manager how the daemon is, by the protocol of sd_notify(3).
 */
#ifndef RATEFS_FS_KEEPER_NOTIFY_H
#define RATEFS_FS_KEEPER_NOTIFY_H

/*
 * Tell that the tree answers, or that the end has begun. Without a service manager they do nothing.
 * They wait for one that reads nothing for 5 s at most, and warn then.
 */
void notify_ready(void);
void notify_stopping(void);

#endif
