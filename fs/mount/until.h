/*
 * until - the conditions that reads wait for: functions `until` of the rows of NODES, see node.h.
 */
#ifndef RATEFS_FS_MOUNT_UNTIL_H
#define RATEFS_FS_MOUNT_UNTIL_H

#include "fs/mount/handle.h"

/* There is a line for the reader of events. */
uint64_t until_event(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

/* Of the file `frozen`: a thread that it does not list yet waits, or it is read for no freeze. */
uint64_t until_asked(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

/*
 * In a fleet, the coordinator has told what the text is about, or does not tell in time; that, and
 * what each host's node says now. The same of the tiles of @holding (NULL: of the hosts alone), in
 * a fleet.
 */
uint64_t until_surveyed(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);
uint64_t until_hosts_seen(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);
uint64_t until_seen(struct daemon *daemon, struct holding *holding, uint64_t asked_ns);

/*
 * Likewise of the hosts, where they lease slots that are used up here in the limiter or above it:
 * which of them are open elsewhere.
 */
uint64_t until_slots_seen(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

/* Polls of `pressure` alone: the threshold was reached, see core/limiter/trigger.h. */
uint64_t until_pressed(struct daemon *daemon, struct handle *handle, uint64_t asked_ns);

#endif
