/* none - for a build without ZooKeeper's library: there is no such source. */
#include "fs/base/log.h"
#include "fs/zookeeper/zookeeper.h"

#include <errno.h>
#include <stddef.h>

struct zookeeper *zookeeper_open(const char *servers, const char *path, const char *credentials,
				 struct zookeeper_handover *handover)
{
	(void)path;
	(void)credentials;
	(void)handover;
	log_error("cannot use the ZooKeeper servers %s: this ratefs was built without ZooKeeper",
		  servers);
	return NULL;
}

struct coordinator *zookeeper_coordinator(struct zookeeper *zookeeper)
{
	(void)zookeeper;
	return NULL;
}

void zookeeper_attach(struct zookeeper *zookeeper, struct daemon *daemon, struct fleet *fleet)
{
	(void)zookeeper;
	(void)daemon;
	(void)fleet;
}

int zookeeper_start(struct zookeeper *zookeeper)
{
	(void)zookeeper;
	return -ENOSYS;
}

void zookeeper_stop(struct zookeeper *zookeeper)
{
	(void)zookeeper;
}

void zookeeper_free(struct zookeeper *zookeeper)
{
	(void)zookeeper;
}
