/*
 * until - the conditions that reads wait for: functions `until` of the rows of NODES, see node.h.
 */
#ifndef RATEFS_FS_MOUNT_UNTIL_H
#define RATEFS_FS_MOUNT_UNTIL_H

#include "fs/mount/handle.h"

/* There is a line for the reader of events. */
uint64_t until_event(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

/* In a fleet, the coordinator has told what the text is about, or does not tell in time. */
uint64_t until_surveyed(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

#endif
