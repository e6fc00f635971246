/*
 * daemon - the state that all parts of the mount share, and the steps in which it changes.
 *
 * One thread, the loop, does all short work. A source that has to wait for a disk, and pages of
 * metrics of many limiters, have threads of their own. One lock guards all members that change
 * after the start. A step is: daemon_lock(), an engine call, and daemon_unlock(), which collects
 * the requests that it decided, sets the timer, lets go of the lock and answers.
 */
#ifndef RATEFS_FS_MOUNT_DAEMON_H
#define RATEFS_FS_MOUNT_DAEMON_H

#include "core/base/lanes.h"
#include "core/base/list.h"
#include "core/limiter/change.h"
#include "fs/base/clock.h"
#include "fs/base/options.h"
#include "fs/mount/events.h"
#include "fs/mount/mounts.h"
#include "fs/mount/pages.h"
#include "fs/mount/pending.h"
#include "fs/mount/refusal.h"

#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

struct node_row;
struct parameter_table;
struct fleet;
struct state;

/* Open files by the numbers that the kernel has for them, see handle.h. */
struct handle_table {
	struct handle **at; /* owned */
	uint32_t *free;	    /* owned; indices */
	uint32_t size;	    /* of both */
	uint32_t free_count;
};

struct daemon {
	struct options *options;   /* borrowed */
	struct fuse_session *fuse; /* set before the loop runs */
	struct caller caller;	   /* of the request that the loop received last */

	pthread_mutex_t lock;
	struct engine engine;
	struct source *source;
	struct fleet *fleet;	       /* borrowed; NULL on one host */
	_Atomic uint64_t use_until_ns; /* fleets: the last grants may be delivered until then */
	struct pending_table pending;  /* requests not answered yet */
	struct events events;
	struct state *state; /* borrowed: the knowledge for a successor */
	struct handle_table handles;
	struct lanes watched; /* open files that a poll found to block, see await.h */
	uint32_t watched_count;
	struct handle *freezer;		    /* the open file that freezes, see frozen.h, or NULL */
	struct list slots;		    /* open files that hold a slot, see slot.h */
	struct parameter_table *parameters; /* nodes with a number in their name, see node.c */
	struct amounts amounts;		    /* of the last such name that was looked up */
	struct refusals refusals;
	struct lanes texts; /* open files with a text that was read to its end */
	struct pages pages;
	uint64_t armed_ns;     /* when the timer goes off; NEVER_NS: it does not; 0: it did */
	uint64_t sweep_ns;     /* when to look for requests that wait too long for the kernel */
	uint64_t look_ns;      /* await: before that, readers are not looked at again ... */
	uint64_t look_due_ns;  /* ... and then they are to be, or NEVER_NS */
	uint64_t wall_ns;      /* when to look at the time of day, while there are windows */
	bool stopping;	       /* every reader gets ESHUTDOWN */
	struct timespec began; /* wall clock at the start */

	uint64_t request_timeout_ns; /* the kernel aborts the mount after this; 0: never */
	int32_t keeper;		     /* its pid */
	bool outlives;		     /* the mount outlives this server */
	struct mount_id mount;	     /* as the keeper has made it */
	uint32_t damaged;	     /* settings files that were refused at the start */
};

void daemon_lock(struct daemon *daemon);
void daemon_unlock(struct daemon *daemon);

/*
 * Makes a daemon without open files. 0 or -errno; daemon_free() when no file is open any more.
 * @options, @source and @state are borrowed.
 */
int daemon_init(struct daemon *daemon, struct options *options, struct source *source,
		struct state *state, const struct owner *root);
void daemon_free(struct daemon *daemon);

/*
 * Tells the engine the time of day, which the loop does only while there are windows: before a step
 * that may begin the first. Under the lock.
 */
void daemon_tell_wall(struct daemon *daemon, uint64_t now_ns);

/* Does all that is due; from the loop. */
void daemon_run(struct daemon *daemon);

/* Tells when daemon_run() has something to do, or NEVER_NS. */
uint64_t daemon_due_ns(struct daemon *daemon);

/* Gives up @pending, which waits, with -@err. Under the lock. */
void daemon_give_up(struct daemon *daemon, struct pending *pending, int err);

/* Answers request @unique with EINTR, if a signal may interrupt it. */
void daemon_interrupt(struct daemon *daemon, uint64_t unique);

/* Answers every waiting reader with ESHUTDOWN, now and from now on. */
void daemon_stop(struct daemon *daemon);

/* Counts a grant, which was delivered just now, if that was too late. Without the lock. */
void daemon_delivered(struct daemon *daemon);

/*
 * Remembers why a request of user @uid was refused, for its last_error: one at the file or
 * directory of @row of @limiter; NULL: at none. Under the lock.
 */
void daemon_refused(struct daemon *daemon, uint32_t uid, const struct limiter *limiter,
		    const struct node_row *row, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* Tells whether user @uid may have one more: 0, or -ENOSPC, which its last_error explains. */
int daemon_has_room(struct daemon *daemon, uint32_t uid, enum bound_id id);

#endif
