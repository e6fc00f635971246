/* await - what waits for something other than tokens, see await.h. */
#include "fs/mount/await.h"
#include "fs/base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LOOKS_AT_ONCE = 4,
	POLLS_AT_ONCE = 256,  /* of a user */
	LOOK_REST_NS = 20000, /* for each look, if there are more: a hundred times what one takes */
};

struct awaiter {
	struct queued queued;
	struct handle *handle; /* borrowed: it is open as long as this is not answered; NULL: */
	struct look look;      /* its name is @name; of a read, only what is read */
	char name[];
};

/* Returns when a reader of @handle need not wait any more, as things stand. */
static uint64_t until_ns(struct daemon *daemon, struct handle *handle, uint64_t asked_ns)
{
	return handle->limiter->removed ? 0 : handle->row->until(daemon, handle, asked_ns);
}

bool await_poll(struct daemon *daemon, struct handle *handle)
{
	uint64_t now_ns;

	if (!handle->row->until || handle->row->brief || handle->half || daemon->stopping)
		return true;
	now_ns = clock_ns();
	engine_run(&daemon->engine, now_ns);
	if (until_ns(daemon, handle, now_ns) <= now_ns)
		return true;
	handle_watch(daemon, handle);
	return false;
}

/* Tells why a reader that would have to wait may not. 0: it may. */
static int refuse(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	if (daemon->stopping)
		return -ESHUTDOWN;
	if (handle->row->brief)
		return 0;
	if (read->nonblocking) {
		/* Its poll may not be asked once more, as with EPOLLET. */
		if (handle->poll)
			handle_watch(daemon, handle);
		return -EAGAIN;
	}
	return daemon_has_room(daemon, read->caller->uid, BOUND_READERS) ? -EBUSY : 0;
}

/* 0: the read is to be answered now. -EINPROGRESS: it waits. Or why not. Under the lock. */
static int begin(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	uint64_t now_ns = clock_ns();
	struct awaiter *awaiter;
	int err;

	engine_run(&daemon->engine, now_ns);
	if (until_ns(daemon, handle, now_ns) <= now_ns)
		return 0;
	handle_set_half(handle, false); /* it begins anew */
	err = refuse(daemon, handle, read);
	awaiter = err ? NULL : calloc(1, sizeof(*awaiter));
	if (!awaiter && handle->row->brief)
		return 0;
	if (!awaiter)
		return err ? err : -ENOMEM;
	awaiter->queued = (struct queued){.asked_ns = now_ns, .until_ns = NEVER_NS};
	awaiter->handle = handle;
	awaiter->look = (struct look){.size = read->size, .offset = read->offset};
	pending_insert(&daemon->pending, &awaiter->queued.pending, read->caller, PENDING_AWAITER);
	return -EINPROGRESS;
}

void await_read(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	int err;

	daemon_lock(daemon);
	err = begin(daemon, handle, read);
	daemon_unlock(daemon);
	if (!err)
		handle->row->kind->answer(daemon, handle, read);
	else if (err != -EINPROGRESS)
		fuse_reply_err(read->caller->request, -err);
}

bool await_look(struct daemon *daemon, const struct node *directory, const struct look *look)
{
	const struct node_kind *kind = directory->row->kind;
	size_t length = look->name ? strlen(look->name) + 1 : 0;
	uint64_t now_ns = clock_ns();
	struct awaiter *awaiter;

	if (!look->caller || !kind->until || daemon->stopping)
		return false;
	engine_run(&daemon->engine, now_ns);
	if (kind->until(daemon, directory->limiter, look->name, now_ns) <= now_ns)
		return false;
	awaiter = calloc(1, sizeof(*awaiter) + length);
	if (!awaiter)
		return false;
	awaiter->queued = (struct queued){.asked_ns = now_ns, .until_ns = NEVER_NS};
	awaiter->look = *look;
	awaiter->look.caller = NULL;
	if (look->name)
		awaiter->look.name = memcpy(awaiter->name, look->name, length);
	pending_insert(&daemon->pending, &awaiter->queued.pending, look->caller, PENDING_AWAITER);
	return true;
}

/* Returns when @awaiter need not wait any more, as things stand. */
static uint64_t awaiter_until_ns(struct daemon *daemon, const struct awaiter *awaiter)
{
	uint64_t asked_ns = awaiter->queued.asked_ns;
	struct node directory;

	if (awaiter->handle)
		return until_ns(daemon, awaiter->handle, asked_ns);
	if (node_decode(daemon, awaiter->look.directory, &directory))
		return 0;
	return directory.row->kind->until(daemon, directory.limiter, awaiter->look.name, asked_ns);
}

/* Notes that readers are to be looked at again at @at_ns. */
static void look_at(struct daemon *daemon, uint64_t at_ns)
{
	if (at_ns < daemon->look_due_ns)
		daemon->look_due_ns = at_ns;
}

/* Looks at a polled file: tells its polls if it can be read. */
static void look_at_poll(struct daemon *daemon, struct handle *handle, uint64_t now_ns)
{
	uint64_t at_ns = until_ns(daemon, handle, now_ns);

	if (at_ns <= now_ns || daemon->stopping)
		handle_notify(daemon, handle);
	else
		look_at(daemon, at_ns);
}

/*
 * Looks at polled files, of each user at so many that other users wait neither for the looks nor
 * for the pause behind them. Returns how many; *@more: there are others.
 */
static uint32_t look_at_polls(struct daemon *daemon, uint64_t now_ns, bool *more)
{
	struct lanes *watched = &daemon->watched;
	uint32_t looks = 0;

	for (uint32_t lane = 0; lane < LANE_COUNT && daemon->watched_count; lane++) {
		uint32_t left = watched->length[lane];

		*more |= left > POLLS_AT_ONCE && !daemon->stopping;
		if (*more && left > POLLS_AT_ONCE)
			left = POLLS_AT_ONCE;
		for (; left; left--, looks++) {
			struct handle *handle = list_first(&watched->lane[lane], struct handle,
							   watch);

			/* Behind the others: it is looked at again after them. */
			lanes_remove(watched, handle->uid, &handle->watch);
			lanes_append(watched, handle->uid, &handle->watch);
			look_at_poll(daemon, handle, now_ns);
		}
	}
	return looks;
}

/* Decides requests that need not wait any more. Returns how many it has looked at. */
static uint32_t look_at_readers(struct daemon *daemon, uint64_t now_ns, struct outbox *outbox)
{
	struct queued *queued = pending_first(&daemon->pending, PENDING_AWAITER), *next;
	uint32_t looks = 0;

	for (; queued; queued = next, looks++) {
		uint64_t at_ns = awaiter_until_ns(daemon, (struct awaiter *)queued);

		next = pending_next(queued);
		if (at_ns <= now_ns)
			pending_decide(&daemon->pending, &queued->pending, outbox);
		else
			look_at(daemon, at_ns);
	}
	return looks;
}

void await_collect(struct daemon *daemon, struct outbox *outbox)
{
	uint64_t now_ns = clock_ns();
	bool more = false;
	uint32_t looks;

	daemon->look_due_ns = NEVER_NS;
	if (now_ns < daemon->look_ns && !daemon->stopping) {
		look_at(daemon, daemon->look_ns);
		return;
	}
	looks = look_at_readers(daemon, now_ns, outbox) + look_at_polls(daemon, now_ns, &more);
	daemon->look_ns = looks > LOOKS_AT_ONCE ? now_ns + (uint64_t)looks * LOOK_REST_NS : now_ns;
	if (more)
		look_at(daemon, daemon->look_ns);
}

void await_answer(struct daemon *daemon, struct pending *pending)
{
	struct awaiter *awaiter = (struct awaiter *)pending;
	const struct caller caller = {
		.request = pending->request, .unique = pending->unique, .uid = pending->uid};
	const struct look *look = &awaiter->look;
	const struct read_request read = {&caller, look->size, look->offset, false};

	if (awaiter->handle)
		awaiter->handle->row->kind->answer(daemon, awaiter->handle, &read);
	else
		look->act(daemon, pending->request, pending->uid, look);
	free(awaiter);
}
