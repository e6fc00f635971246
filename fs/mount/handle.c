/* handle - an open file, see handle.h. */
#include "fs/mount/handle.h"
#include "fs/mount/handle_table.h"

#include "core/limiter/partition.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A predecessor may have taken what is in it: then it begins empty. */
static struct limiter *get_partition(struct daemon *daemon, struct limiter *limiter, uint32_t index)
{
	bool known = index < limiter->partition_room && limiter->partitions[index];
	struct limiter *partition = partition_get(&daemon->engine.schedule, limiter, index);

	if (partition && !known && state_generation(daemon->state))
		limiter_empty(&daemon->engine.schedule, partition);
	return partition;
}

/* A handle of @node for @uid, without a number. */
static struct handle *new_handle(struct daemon *daemon, const struct node *node, uint32_t uid)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	struct limiter *limiter = node->limiter;

	if (!handle)
		return NULL;
	if (node->partition && node->row->read == read_tokens) {
		limiter = get_partition(daemon, limiter, node->partition - 1);
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
	handle->uid = uid;
	users_add(&daemon->engine.users, handle->uid, BOUND_FILES);
	handle->position = daemon->events.end;
	handle->next = daemon->open;
	if (handle->next)
		handle->next->previous = handle;
	daemon->open = handle;
	return handle;
}

struct handle *handle_open(struct daemon *daemon, const struct node *node,
			   const struct caller *caller)
{
	struct handle *handle = new_handle(daemon, node, caller->uid);

	if (handle && handle_number(daemon, handle, node, caller)) {
		handle_close(daemon, handle);
		handle = NULL;
	}
	return handle;
}

struct handle *handle_reopen(struct daemon *daemon, const struct node *node, uint32_t index,
			     struct state_handle *kept)
{
	struct handle *handle = new_handle(daemon, node, kept->uid);

	if (!handle)
		return NULL;
	handle->kept = kept;
	handle->number = (kept->life >> LIFE_BITS) << 32 | index;
	handle->granted = kept->granted;
	handle->half = kept->half;
	handle->begun = true;
	if ((node->row->open == open_slot && kept->slot_ns &&
	     slots_restore(&daemon->engine.schedule, handle->limiter, &handle->slot,
			   kept->slot_ns)) ||
	    (node->row->open == open_view &&
	     viewer_of(&daemon->engine.tree, kept->uid, kept->gid, &handle->viewer))) {
		handle_close(daemon, handle);
		return NULL;
	}
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
	if (handle->polling)
		engine_unpoll(&daemon->engine, &handle->polling->poller, clock_ns());
	free(handle->polling);
	if (handle->limiter->is_key)
		keys_close(&daemon->engine.schedule, handle->limiter);
	else
		limiter_drop(handle->limiter);
	if (handle->poll)
		fuse_pollhandle_destroy(handle->poll);
	users_drop(&daemon->engine.users, handle->uid, BOUND_FILES);
	free(handle->viewer);
	if (handle->kept)
		handle_forget(daemon, handle->number);
	free(handle->text);
	free(handle);
}

void handle_notify(struct daemon *daemon, struct handle *handle)
{
	stop_following(daemon, handle);
	if (handle->poll)
		fuse_lowlevel_notify_poll(handle->poll);
}

struct asker handle_asker(const struct handle *handle, uint32_t pid, uint32_t uid, uint64_t unique)
{
	return (struct asker){
		.thread = pid, .uid = uid, .file = handle ? handle->number : 0, .number = unique};
}

void handle_granted(struct handle *handle, size_t size)
{
	char text[TOKEN_TEXT];

	handle->granted = true;
	if (handle->polling)
		handle->polling->poller.late = false;
	handle->kept->granted = true;
	handle_set_half(handle, token_text(handle->tokens, 0, TOKEN_TEXT, text) > size);
}

void handle_set_half(struct handle *handle, bool half)
{
	handle->half = half;
	handle->kept->half = half;
}

void handle_polled(struct handle *handle, uint64_t number)
{
	handle->kept->poll = number;
	handle->kept->polls = true;
}

void handle_keep_text(struct handle *handle, char *text, size_t length)
{
	free(handle->text);
	handle->text = text;
	handle->length = length;
}

bool reply_open(struct handle *handle, fuse_req_t request)
{
	struct fuse_file_info file = {.fh = handle->number, .direct_io = 1};
	struct state_handle *kept = handle->kept;
	uint64_t life = kept->life;

	kept->slot_ns = handle->slot.limiter ? handle->slot.opened_ns : 0;
	/* Once it is answered it may be closed, and gone, or another's. */
	if (fuse_reply_open(request, &file) == -ENOENT)
		return false;
	atomic_compare_exchange_strong(&kept->life, &life, life | LIFE_OPEN);
	return true;
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

/* Without memory a poll is told that a read is answered at once. */
bool poll_tokens(struct daemon *daemon, struct handle *handle)
{
	if (!handle->polling) {
		handle->polling = malloc(sizeof(*handle->polling));
		if (!handle->polling)
			return true;
		handle->polling->handle = handle;
		poller_init(&handle->polling->poller, handle->limiter, handle->tokens);
		if (handle->within_ns != NEVER_NS)
			poller_limit(&handle->polling->poller, &handle->polling->expiry,
				     handle->within_ns);
	}
	return daemon->stopping || handle->half ||
	       engine_poll(&daemon->engine, &handle->polling->poller, clock_ns());
}

void open_view(struct daemon *daemon, struct handle *handle, const struct caller *caller, int flags)
{
	(void)flags;
	if (!viewer_new(&daemon->engine.tree, caller, &handle->viewer)) {
		answer_open(daemon, handle, caller->request);
		return;
	}
	daemon_lock(daemon);
	handle_close(daemon, handle);
	daemon_unlock(daemon);
	fuse_reply_err(caller->request, ENOMEM);
}

bool poll_events(struct daemon *daemon, struct handle *handle)
{
	if (daemon->stopping || !handle->begun ||
	    events_wait_for(&daemon->events, handle->viewer, &handle->position))
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
