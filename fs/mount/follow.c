/* follow - the file `events`, see follow.h. */
#include "fs/mount/follow.h"
#include "fs/mount/await.h"
#include "fs/mount/text_file.h"

#include <errno.h>

enum { EVENT_READ_MAX = 16384 };

/* Opens the file: its head is there to be read, which polls are told. */
static void open_events(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			int flags)
{
	daemon_lock(daemon);
	handle_set_half(handle, true);
	daemon_unlock(daemon);
	handle_open_view(daemon, handle, caller, flags);
}

/* Serves the head by offset; the text after it, whatever the offset, is the next line. */
static void read_events(struct daemon *daemon, struct handle *handle,
			const struct read_request *read)
{
	daemon_lock(daemon);
	/* Busybox polls before it reads each byte. */
	handle_set_half(handle, (uint64_t)read->offset + read->size < EVENTS_HEAD_BYTES);
	daemon_unlock(daemon);
	if (read->offset >= EVENTS_HEAD_BYTES)
		await_read(daemon, handle, read);
	else
		text_file_reply(read->caller->request, EVENTS_HEAD, EVENTS_HEAD_BYTES, read->offset,
				read->size);
}

static void answer_events(struct daemon *daemon, struct handle *handle,
			  const struct read_request *read)
{
	char text[EVENT_READ_MAX];
	size_t size = read->size < sizeof(text) ? read->size : sizeof(text), length;

	pthread_mutex_lock(&daemon->lock);
	length = events_read(&daemon->events, handle->viewer, &handle->position, text, size);
	pthread_mutex_unlock(&daemon->lock);
	if (length)
		fuse_reply_buf(read->caller->request, text, length);
	else /* another thread read the same open file: this one asks anew */
		fuse_reply_err(read->caller->request, EINTR);
}

static off_t size_events(const struct node *node)
{
	(void)node;
	return EVENTS_HEAD_BYTES;
}

const struct node_kind EVENTS_FILE = {
	.size = size_events,
	.open = open_events,
	.reopen = handle_reopen_view,
	.read = read_events,
	.answer = answer_events,
	.poll = await_poll,
};
