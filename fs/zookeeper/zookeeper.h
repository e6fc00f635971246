/*
 * zookeeper - ZooKeeper as the coordinator of a fleet (coordinator.h), for the daemon.
 *
 * The client's thread delivers notices in steps of the engine: it takes the daemon's lock, runs the
 * engine, tells the fleet, and lets go of the lock.
 */
#ifndef RATEFS_FS_ZOOKEEPER_ZOOKEEPER_H
#define RATEFS_FS_ZOOKEEPER_ZOOKEEPER_H

#include "core/fleet/coordinator.h"

/* The waiter's clock may be so much behind. */
#define CLOCK_LOOK_NS UINT64_C(5000000)

struct daemon;
struct fleet;
struct zookeeper;
struct zookeeper_handover;

/*
 * Makes a coordinator. @servers: HOST[:PORT][,...], see base/addresses.h. @path: /NAME[/NAME...],
 * or empty. @credentials: a file whose first line is USER:PASSWORD, that nobody but its owner may
 * read, or NULL. @handover is borrowed: for a successor, and from a predecessor, or NULL. Uses no
 * network. NULL after a message.
 */
struct zookeeper *zookeeper_open(const char *servers, const char *path, const char *credentials,
				 struct zookeeper_handover *handover);

/* Its functions are for the fleet, under the daemon's lock, from the start to the stop. */
struct coordinator *zookeeper_coordinator(struct zookeeper *zookeeper);

/* Says which fleet to tell; before the start. Both are borrowed until the stop. */
void zookeeper_attach(struct zookeeper *zookeeper, struct daemon *daemon, struct fleet *fleet);

/* Starts the thread, in the process that will run the loop. 0 or -errno. */
int zookeeper_start(struct zookeeper *zookeeper);

/*
 * Ends the session and the thread, within 5 s. The fleet has every request back then, and sends no
 * more. Not under the daemon's lock.
 */
void zookeeper_stop(struct zookeeper *zookeeper);
void zookeeper_free(struct zookeeper *zookeeper);

#endif
