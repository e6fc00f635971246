/* none - for a build without ZooKeeper's library: there is no such source. */
#include "fs/base/log.h"
#include "fs/zookeeper/zookeeper.h"

#include <errno.h>
#include <stddef.h>

struct source_zookeeper *source_zookeeper_open(const char *servers, const char *path,
					       const char *credentials, struct zookeeper_kept *kept)
{
	(void)path;
	(void)credentials;
	(void)kept;
	log_error("cannot use the ZooKeeper servers %s: this ratefs was built without ZooKeeper",
		  servers);
	return NULL;
}

struct coordinator *source_zookeeper_coordinator(struct source_zookeeper *source)
{
	(void)source;
	return NULL;
}

void source_zookeeper_attach(struct source_zookeeper *source, struct daemon *daemon,
			     struct fleet *fleet)
{
	(void)source;
	(void)daemon;
	(void)fleet;
}

int source_zookeeper_start(struct source_zookeeper *source)
{
	(void)source;
	return -ENOSYS;
}

void source_zookeeper_stop(struct source_zookeeper *source)
{
	(void)source;
}

void source_zookeeper_free(struct source_zookeeper *source)
{
	(void)source;
}
