/* inside - what the parts of local.h share: local.c and load.c. */
#ifndef RATEFS_FS_LOCAL_INSIDE_H
#define RATEFS_FS_LOCAL_INSIDE_H

#include "fs/local/local.h"
#include "fs/mount/daemon.h"

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
