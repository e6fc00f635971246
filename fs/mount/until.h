/*
 * until - the conditions that reads wait for: functions `until` of the rows of NODES, see node.h.
 */
#ifndef RATEFS_FS_MOUNT_UNTIL_H
#define RATEFS_FS_MOUNT_UNTIL_H

#include "fs/mount/handle.h"

/* There is a line for the reader of events. */
uint64_t until_event(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

/*
 * In a fleet, the coordinator has told what the text is about, or does not tell in time. The same
 * of the tiles of @holding (NULL: of the hosts alone), in a fleet.
 */
uint64_t until_surveyed(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);
uint64_t until_seen(struct daemon *daemon, struct holding *holding, uint64_t asked_ns);

#endif
