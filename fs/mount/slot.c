/* slot - what opening and reading `slot` do, see handle.h. */
#include "fs/mount/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

/*
 * Puts an opener in the queue, at its place if it was interrupted and asks again. -EINPROGRESS, 0:
 * it has the slot already, or why not. Under the lock.
 */
static int wait_for_slot(struct daemon *daemon, struct handle *handle, const struct caller *caller)
{
	struct reader *opener = malloc(sizeof(*opener));
	struct asker asker;
	int err;

	if (!opener)
		return -ENOMEM;
	*opener = (struct reader){
		.handle = handle,
		.pid = caller->pid,
		.waiter = {.limiter = handle->limiter, .slot = &handle->slot, .is_opener = true},
	};
	asker = handle_asker(NULL, opener->pid, caller->uid, caller->unique);
	(void)engine_return(&daemon->engine, &opener->waiter, &asker, NEVER_NS, caller->at_ns);
	pending_insert(&daemon->pending, &opener->pending, caller, PENDING_OPENER);
	err = engine_slot_open(&daemon->engine, &opener->waiter, caller->at_ns);
	if (err != -EINPROGRESS) {
		pending_remove(&daemon->pending, &opener->pending);
		free(opener);
	}
	return err;
}

/* Whether one who finds no slot may wait for it. */
static bool may_wait(const struct daemon *daemon, const struct caller *caller, int flags)
{
	return !(flags & O_NONBLOCK) &&
	       !users_check(&daemon->engine.users, caller->uid, BOUND_READERS, NULL);
}

void open_slot(struct daemon *daemon, struct handle *handle, const struct caller *caller, int flags)
{
	int err;

	daemon_lock(daemon);
	if (daemon->stopping)
		err = -ESHUTDOWN;
	else if (may_wait(daemon, caller, flags))
		err = wait_for_slot(daemon, handle, caller);
	else
		err = engine_slot_try(&daemon->engine, handle->limiter, &handle->slot,
				      caller->at_ns);
	if (err == -EAGAIN && !(flags & O_NONBLOCK)) {
		(void)daemon_has_room(daemon, caller->uid, BOUND_READERS); /* which says why */
		err = -EBUSY;
	}
	if (err && err != -EINPROGRESS)
		handle_close(daemon, handle);
	daemon_unlock(daemon);
	if (!err)
		answer_open(daemon, handle, caller->request);
	else if (err != -EINPROGRESS)
		fuse_reply_err(caller->request, -err);
}

/* A slot is held by being open: reading takes nothing. */
void read_slot(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	(void)daemon;
	(void)handle;
	reply_tokens(read->caller->request, 1, (uint64_t)read->offset, read->size);
}
