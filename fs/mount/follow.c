/* follow - the file `events`, see follow.h. */
#include "fs/mount/follow.h"
#include "fs/base/clock.h"
#include "fs/mount/text.h"

#include <errno.h>
#include <stdlib.h>

enum { EVENT_READ_MAX = 16384 };

struct follower {
	struct queued queued;
	struct handle *handle; /* borrowed: it is open as long as this is not answered */
	uint32_t size;	       /* bytes that the kernel can take */
};

static bool poll_events(struct daemon *daemon, struct handle *handle)
{
	if (daemon->stopping || !handle->begun ||
	    events_wait_for(&daemon->events, handle->viewer, &handle->position))
		return true;
	handle_follow(daemon, handle);
	return false;
}

/* Serves the head by offset; the text after it, whatever the offset, is the next line. */
static void read_events(struct daemon *daemon, struct handle *handle,
			const struct read_request *read)
{
	char text[EVENT_READ_MAX];
	size_t size = read->size < sizeof(text) ? read->size : sizeof(text), length = 0;
	struct follower *follower = NULL;
	int err = 0;

	daemon_lock(daemon);
	/* Not yet with a part of the head: busybox polls before it reads each byte. */
	handle->begun = read->offset >= EVENTS_HEAD_BYTES ||
			read->size >= (size_t)(EVENTS_HEAD_BYTES - read->offset);
	if (read->offset < EVENTS_HEAD_BYTES) {
		daemon_unlock(daemon);
		text_reply(read->caller->request, EVENTS_HEAD, EVENTS_HEAD_BYTES, read->offset,
			   read->size);
		return;
	}
	if (daemon->stopping)
		err = ESHUTDOWN;
	else
		length = events_read(&daemon->events, handle->viewer, &handle->position, text,
				     size);
	if (!err && !length && read->nonblocking) {
		err = EAGAIN;
		if (handle->poll)
			poll_events(daemon, handle);
	} else if (!err && !length) {
		err = daemon_has_room(daemon, read->caller->uid, BOUND_READERS) ? EBUSY : ENOMEM;
		follower = err == EBUSY ? NULL : malloc(sizeof(*follower));
	}
	if (follower) {
		*follower = (struct follower){
			.queued = {.asked_ns = clock_ns(), .until_ns = NEVER_NS},
			.handle = handle,
			.size = (uint32_t)size,
		};
		pending_insert(&daemon->pending, &follower->queued.pending, read->caller,
			       PENDING_FOLLOWER);
	}
	daemon_unlock(daemon);
	if (follower)
		return;
	if (err)
		fuse_reply_err(read->caller->request, err);
	else
		fuse_reply_buf(read->caller->request, text, length);
}

static off_t size_events(const struct node *node)
{
	(void)node;
	return EVENTS_HEAD_BYTES;
}

const struct node_kind EVENTS_FILE = {
	.size = size_events,
	.open = handle_open_view,
	.reopen = handle_reopen_view,
	.read = read_events,
	.poll = poll_events,
};

static bool has_news(const struct daemon *daemon, struct handle *handle)
{
	return daemon->stopping ||
	       events_wait_for(&daemon->events, handle->viewer, &handle->position);
}

static void notify_pollers(struct daemon *daemon)
{
	struct handle *polling = list_first(&daemon->polling_events, struct handle, follower);
	struct handle *next;

	for (; polling; polling = next) {
		next = list_next(polling, follower);
		if (has_news(daemon, polling))
			handle_notify(daemon, polling);
	}
}

/* Looks at followers only when something has happened: there may be many. */
void follow_collect(struct daemon *daemon, struct outbox *outbox)
{
	struct queued *queued, *next;

	if (daemon->events.told == daemon->events.end && !daemon->stopping)
		return;
	daemon->events.told = daemon->events.end;
	notify_pollers(daemon);
	for (queued = pending_first(&daemon->pending, PENDING_FOLLOWER); queued; queued = next) {
		next = pending_next(queued);
		if (has_news(daemon, ((struct follower *)queued)->handle))
			pending_decide(&daemon->pending, &queued->pending, outbox);
	}
}

void follow_answer(struct daemon *daemon, struct pending *pending)
{
	struct follower *follower = (struct follower *)pending;
	char text[EVENT_READ_MAX];
	size_t length;
	bool stopping;

	pthread_mutex_lock(&daemon->lock);
	stopping = daemon->stopping;
	length = events_read(&daemon->events, follower->handle->viewer, &follower->handle->position,
			     text, follower->size);
	pthread_mutex_unlock(&daemon->lock);
	if (length)
		fuse_reply_buf(pending->request, text, length);
	else /* another thread read the same open file: this one asks anew */
		fuse_reply_err(pending->request, stopping ? ESHUTDOWN : EINTR);
	free(follower);
}
