/* slot - the file `slot`, see slot.h. */
#include "fs/mount/slot.h"
#include "fs/mount/read.h"
#include "fs/mount/viewer.h"

#include "core/limiter/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>

/*
 * Puts an opener that waits for @within_ns in the queue, at its place if it was interrupted and
 * asks again. -EINPROGRESS, 0: it has the slot already, or why not; @refusal: when that time is up.
 * Under the lock.
 */
static int wait_for_slot(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			 uint64_t within_ns, int refusal)
{
	bool expires = within_ns != NEVER_NS;
	struct timed_reader *timed = NULL;
	struct reader *opener;
	struct asker asker;
	int err;

	opener = malloc(expires ? sizeof(*timed) : sizeof(*opener));
	if (!opener)
		return -ENOMEM;
	*opener = (struct reader){
		.handle = handle,
		.waiter = {.limiter = handle->limiter,
			   .slot = &handle->slot,
			   .is_opener = true,
			   .is_admitted = caller->again},
	};
	if (expires) {
		timed = (struct timed_reader *)opener;
		timed->refusal = -refusal;
		opener->waiter.expiry = &timed->expiry;
	}
	asker = handle_asker(NULL, caller->pid, caller->uid, caller->unique);
	(void)engine_return(&daemon->engine, &opener->waiter, &asker, within_ns, caller->at_ns);
	pending_insert(&daemon->pending, &opener->pending, caller, PENDING_OPENER);
	err = engine_slot_open(&daemon->engine, &opener->waiter, within_ns, caller->at_ns);
	if (err != -EINPROGRESS) {
		pending_remove(&daemon->pending, &opener->pending);
		free(opener);
	}
	return err == -EAGAIN ? refusal : err;
}

/* Tells whether an opener that finds no slot may wait for one. */
static bool may_wait(const struct daemon *daemon, const struct caller *caller)
{
	return !users_check(&daemon->engine.users, caller->uid, BOUND_READERS, NULL);
}

void slot_note(struct daemon *daemon, struct handle *handle)
{
	list_append(&daemon->slots, &handle->watch);
	state_taken(daemon->state, handle->limiter);
}

void slot_forget(struct daemon *daemon, struct handle *handle)
{
	if (handle->slot.limiter)
		list_remove(&daemon->slots, &handle->watch);
}

bool slot_is_within(const struct limiter *limiter, const struct limiter *above)
{
	while (limiter && limiter != above)
		limiter = limiter->parent;
	return limiter;
}

struct handle *slot_next(const struct daemon *daemon, const struct limiter *limiter,
			 struct handle *handle)
{
	struct handle *next = handle ? list_next(handle, watch)
				     : list_first(&daemon->slots, struct handle, watch);

	while (next && !slot_is_within(next->slot.limiter, limiter))
		next = list_next(next, watch);
	return next;
}

static void open_slot(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		      int flags)
{
	bool is_nonblocking = flags & O_NONBLOCK;
	int err;

	daemon_lock(daemon);
	if (daemon->stopping)
		err = -ESHUTDOWN;
	else if (may_wait(daemon, caller))
		err = wait_for_slot(daemon, handle, caller, is_nonblocking ? 0 : handle->within_ns,
				    is_nonblocking ? -EAGAIN : -EBUSY);
	else
		err = engine_slot_try(&daemon->engine, handle->limiter, &handle->slot,
				      caller->at_ns);
	if (err == -EAGAIN && !is_nonblocking) {
		(void)daemon_has_room(daemon, caller->uid, BOUND_READERS); /* which says why */
		err = -EBUSY;
	} else if (err == -EBUSY) {
		read_explain_bound(daemon, handle, caller->uid);
	}
	if (!err)
		slot_note(daemon, handle);
	else if (err != -EINPROGRESS)
		handle_close(daemon, handle);
	daemon_unlock(daemon);
	if (!err)
		handle_answer_open(daemon, handle, caller->request);
	else if (err != -EINPROGRESS)
		fuse_reply_err(caller->request, -err);
}

/* Notes that the slot of @handle is lost, for good. */
static void lose(struct handle *handle)
{
	handle->slot.lost = true;
	handle->kept->slot_lost = true;
}

/* Tells in `events` that so many slots of @limiter are lost; the line counts for @uid. */
static void tell_lost(struct daemon *daemon, uint32_t uid, const struct limiter *limiter,
		      uint32_t count)
{
	char path[PATH_TEXT];

	limiter = limiter->is_key ? limiter->parent : limiter;
	tree_path(limiter, path);
	events_add(&daemon->events, uid, viewer_subject(limiter), "%s %u slots lost", path, count);
}

/* Tells whether the slot of @handle is lost, and notes and tells that. */
static bool is_lost(struct daemon *daemon, struct handle *handle)
{
	if (!handle->slot.lost && slots_is_lost(&handle->slot)) {
		lose(handle);
		handle_notify(daemon, handle);
		tell_lost(daemon, handle->uid, handle->limiter, 1);
	}
	return handle->slot.lost;
}

/* Answers a read with the number of the slot, which takes nothing: the open file holds it. */
static void read_slot(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	struct state_handle *kept = handle->kept;
	uint32_t number;
	int err;

	daemon_lock(daemon);
	err = !handle->slot.limiter || is_lost(daemon, handle)
		      ? -ENODEV
		      : slots_number(&handle->slot, &number);
	if (!err) {
		/* A successor must not give it to another slot once it was told. */
		kept->slot_above = (uint16_t)slots_numbered_above(&handle->slot);
		atomic_store_explicit(&kept->slot_number, number + 1, memory_order_release);
	}
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(read->caller->request, -err);
	else
		read_reply(read->caller->request, number, (uint64_t)read->offset, read->size);
}

/* A slot that was lost is an error, for which a program can wait without asking for events. */
static unsigned int poll_slot(struct daemon *daemon, struct handle *handle)
{
	return is_lost(daemon, handle) ? POLLERR : 0;
}

void slot_lose(struct daemon *daemon, struct limiter *limiter, bool all)
{
	uint32_t lost = 0;

	for (struct handle *h = NULL; (h = slot_next(daemon, limiter, h));) {
		if (h->slot.lost || (!all && !slots_is_lost(&h->slot)))
			continue;
		lose(h);
		handle_notify(daemon, h);
		lost++;
	}
	if (lost)
		tell_lost(daemon, limiter->uid, limiter, lost);
}

static int reopen_slot(struct daemon *daemon, struct handle *handle,
		       const struct state_handle *kept)
{
	int err = 0;

	if (kept->slot_ns)
		err = slots_restore(&daemon->engine.schedule, handle->limiter, &handle->slot,
				    kept->slot_ns);
	if (handle->slot.limiter) {
		if (kept->slot_number)
			err = slots_restore_number(&handle->slot, kept->slot_above,
						   kept->slot_number - 1);
		slot_note(daemon, handle);
		handle->slot.lost = kept->slot_lost || !slots_are_ours(handle->limiter) ||
				    slots_is_lost(&handle->slot);
	}
	return err;
}

void slot_took_over(struct daemon *daemon)
{
	const struct limiter *limiter = NULL;
	uint32_t lost = 0;

	for (struct handle *h = NULL; (h = slot_next(daemon, daemon->engine.tree.root, h));) {
		if (!h->slot.lost || h->kept->slot_lost)
			continue;
		h->kept->slot_lost = true;
		if (lost && h->limiter != limiter) {
			tell_lost(daemon, limiter->uid, limiter, lost);
			lost = 0;
		}
		limiter = h->limiter;
		lost++;
	}
	if (lost)
		tell_lost(daemon, limiter->uid, limiter, lost);
}

const struct node_kind SLOT_FILE = {.open_waits = true,
				    .open = open_slot,
				    .reopen = reopen_slot,
				    .read = read_slot,
				    .poll_more = poll_slot};

/* Answers an open; the file of a client that is gone is closed. */
void slot_answer(struct daemon *daemon, struct pending *pending)
{
	struct reader *opener = (struct reader *)pending;
	fuse_req_t request = pending->request;
	bool answered = !opener->waiter.outcome;

	if (opener->waiter.outcome == -EAGAIN)
		fuse_reply_err(request, ((struct timed_reader *)opener)->refusal);
	else if (opener->waiter.outcome)
		fuse_reply_err(request, -opener->waiter.outcome);
	else
		answered = handle_reply_open(opener->handle, request);
	if (!answered) {
		pthread_mutex_lock(&daemon->lock);
		opener->handle->lost = true;
		handle_close(daemon, opener->handle);
		pthread_mutex_unlock(&daemon->lock);
	}
	free(opener);
}

enum pending_end slot_give_up(struct daemon *daemon, struct pending *pending, int err)
{
	struct reader *opener = (struct reader *)pending;

	if (opener->waiter.outcome != -EINPROGRESS)
		return PENDING_STAYS;
	read_leave_queue(daemon, opener, err);
	handle_close(daemon, opener->handle);
	return PENDING_FREED;
}
