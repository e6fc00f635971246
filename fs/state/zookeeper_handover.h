/*
 * zookeeper_handover - facts about the connection to ZooKeeper for a successor, in memory that
 * outlives this server: beside core/fleet/handover.h, which says if there is a session to go on
 * with.
 */
#ifndef RATEFS_FS_STATE_ZOOKEEPER_HANDOVER_H
#define RATEFS_FS_STATE_ZOOKEEPER_HANDOVER_H

#include "core/fleet/coordinator.h"

enum { CREDENTIALS_MAX = 1024, CLOCKS = 3 };

/* The clocks of a host as of a look at those of the kernel. */
struct clock_look {
	uint64_t last_ns[CLOCKS]; /* of the kernel's, then */
	struct clocks clocks;
};

/* All zero at first. */
struct zookeeper_handover {
	int64_t session;
	char password[16];		       /* of the session */
	char credentials[CREDENTIALS_MAX + 1]; /* read at the start, by one who may */
	_Atomic uint32_t current;	       /* which of the two counts */
	struct clock_look looks[2];
};

#endif
