/* source_local_inside - what the parts of source_local.h share: source_local.c and source_local_load.c. */
#ifndef RATEFS_FS_SOURCE_LOCAL_INSIDE_H
#define RATEFS_FS_SOURCE_LOCAL_INSIDE_H

#include "fs/daemon.h"
#include "fs/source_local.h"

struct source_local {
	struct source interface;
	struct daemon *daemon; /* borrowed */
	const char *directory; /* borrowed; NULL: nothing is kept */
	int root;	       /* descriptor of the directory */
	int lock;	       /* descriptor of the file that says it is in use */
	bool started;
	pthread_t thread;
	pthread_mutex_t mutex; /* of the two below; never held while the daemon's is asked for */
	pthread_cond_t work;
	struct levels *levels; /* owned while it loads */
	struct change *change; /* to be stored */
	bool stop;
};

#endif
