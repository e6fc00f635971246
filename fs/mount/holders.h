/*
 * holders - the file `holders`: the open files that hold slots of a limiter; and `fleet`: the hosts
 * that have shares of it. Other hosts of a fleet tell of their slots in their nodes.
 */
#ifndef RATEFS_FS_MOUNT_HOLDERS_H
#define RATEFS_FS_MOUNT_HOLDERS_H

#include "fs/mount/node.h"

#include "core/fleet/fleet.h"

/* Under the lock, both: the second shows the file `fleet`. */
void holders_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);
void holders_show_hosts(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);

/* The open slot that has been held for longest. */
struct oldest_slot {
	const char *host; /* of the daemon's options, or of a host that was seen */
	uint32_t pid;
	uint64_t held_ns; /* of another host: whole seconds */
	bool is_own;	  /* this host's */
};

/*
 * Finds the oldest of the slots in @limiter and below it that this host knows of: its own, and
 * those of other hosts as they were seen last. False: it knows of none. Under the lock.
 */
bool holders_oldest(const struct daemon *daemon, const struct limiter *limiter,
		    struct oldest_slot *oldest);

/* Lists what other hosts are to know, see fleet_listener in core/fleet/fleet.h. Under the lock. */
uint32_t holders_tell(const struct daemon *daemon, struct held_slot list[HOST_SLOTS_MAX]);

#endif
