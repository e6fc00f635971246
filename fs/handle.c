/* handle - an open file, see handle.h. */
#include "fs/handle.h"

#include "core/partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct handle *handle_of_watcher(struct watcher *watcher)
{
	return (struct handle *)((char *)watcher - offsetof(struct handle, watcher));
}

struct handle *handle_open(struct daemon *daemon, const struct node *node)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	struct limiter *limiter = node->limiter;

	if (!handle)
		return NULL;
	if (node->partition && node->row->read == read_tokens) {
		limiter = partition_get(&daemon->engine.schedule, limiter, node->partition - 1);
		if (!limiter) {
			free(handle);
			return NULL;
		}
	}
	if (node->key) {
		limiter = keys_open(&daemon->engine.schedule, limiter, node->key);
		if (!limiter) {
			free(handle);
			return NULL;
		}
	} else {
		limiter_hold(limiter);
	}
	handle->row = node->row;
	handle->limiter = limiter;
	handle->partition = node->partition;
	handle->tokens = node->tokens;
	handle->within_ns = node->within_ns;
	handle->uid = received.uid;
	users_add(&daemon->engine.users, handle->uid, BOUND_FILES);
	handle->position = daemon->events.end;
	handle->next = daemon->open;
	if (handle->next)
		handle->next->previous = handle;
	daemon->open = handle;
	return handle;
}

static void stop_following(struct daemon *daemon, struct handle *handle)
{
	if (!handle->following)
		return;
	if (handle->previous_follower)
		handle->previous_follower->next_follower = handle->next_follower;
	else
		daemon->polling_events = handle->next_follower;
	if (handle->next_follower)
		handle->next_follower->previous_follower = handle->previous_follower;
	handle->following = false;
}

void handle_close(struct daemon *daemon, struct handle *handle)
{
	if (handle->previous)
		handle->previous->next = handle->next;
	else
		daemon->open = handle->next;
	if (handle->next)
		handle->next->previous = handle->previous;
	stop_following(daemon, handle);
	if (handle->slot.limiter)
		engine_slot_close(&daemon->engine, &handle->slot, !handle->lost, clock_ns());
	limiter_unwatch(&handle->watcher);
	if (handle->limiter->is_key)
		keys_close(&daemon->engine.schedule, handle->limiter);
	else
		limiter_drop(handle->limiter);
	if (handle->poll)
		fuse_pollhandle_destroy(handle->poll);
	users_drop(&daemon->engine.users, handle->uid, BOUND_FILES);
	free(handle->viewer);
	free(handle->text);
	free(handle);
}

void handle_notify(struct daemon *daemon, struct handle *handle)
{
	stop_following(daemon, handle);
	if (handle->poll)
		fuse_lowlevel_notify_poll(handle->poll);
}

void handle_granted(struct handle *handle, size_t size)
{
	handle->granted = true;
	handle->half = handle->row->read == read_stream && size < 2;
}

void handle_keep_text(struct handle *handle, char *text, size_t length)
{
	free(handle->text);
	handle->text = text;
	handle->length = length;
}

bool reply_open(struct handle *handle, fuse_req_t request)
{
	struct fuse_file_info file = {.fh = (uintptr_t)handle, .direct_io = 1};

	/* Once it is answered it may be closed, and gone. */
	return fuse_reply_open(request, &file) != -ENOENT;
}

void answer_open(struct daemon *daemon, struct handle *handle, fuse_req_t request)
{
	if (reply_open(handle, request))
		return;
	daemon_lock(daemon);
	handle->lost = true;
	handle_close(daemon, handle);
	daemon_unlock(daemon);
}

bool poll_tokens(struct daemon *daemon, struct handle *handle)
{
	uint64_t now_ns = clock_ns();

	if (daemon->stopping || handle->half ||
	    engine_ready(&daemon->engine, handle->limiter, now_ns))
		return true;
	if (!handle->watcher.limiter)
		engine_watch(&daemon->engine, handle->limiter, &handle->watcher, now_ns);
	return false;
}

void open_view(struct daemon *daemon, struct handle *handle, fuse_req_t request, int flags)
{
	(void)flags;
	if (!viewer_new(daemon, request, &handle->viewer)) {
		answer_open(daemon, handle, request);
		return;
	}
	daemon_lock(daemon);
	handle_close(daemon, handle);
	daemon_unlock(daemon);
	fuse_reply_err(request, ENOMEM);
}

bool poll_events(struct daemon *daemon, struct handle *handle)
{
	if (daemon->stopping || events_wait_for(&daemon->events, handle->viewer, &handle->position))
		return true;
	if (!handle->following) {
		handle->following = true;
		handle->previous_follower = NULL;
		handle->next_follower = daemon->polling_events;
		if (handle->next_follower)
			handle->next_follower->previous_follower = handle;
		daemon->polling_events = handle;
	}
	return false;
}
