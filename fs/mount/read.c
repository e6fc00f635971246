/* read - what reading a file does, see handle.h. */
#include "fs/mount/handle.h"
#include "fs/state/state.h"

#include "core/limiter/partition.h"
#include "core/fleet/survey.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void reply_text(fuse_req_t request, const char *text, size_t length, off_t offset, size_t size)
{
	size_t start = (uint64_t)offset < length ? (size_t)offset : length;
	size_t rest = length - start;

	fuse_reply_buf(request, text + start, rest < size ? rest : size);
}

void show_text(struct daemon *daemon, struct handle *handle, fuse_req_t request, uint32_t uid,
	       off_t offset, size_t size)
{
	struct node node = {handle->row,    handle->limiter,   handle->partition,
			    handle->tokens, handle->within_ns, NULL};
	char *text = NULL, *kept;
	size_t length = 0;
	uint32_t shares;
	FILE *out = open_memstream(&text, &length);
	bool gone;

	if (!out) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	pthread_mutex_lock(&daemon->lock);
	gone = handle->limiter->removed ||
	       handle->partition > partition_count(handle->limiter, &shares);
	if (!gone)
		handle->row->show(out, daemon, &node, uid);
	pthread_mutex_unlock(&daemon->lock);
	if (fclose(out) || gone) {
		free(text);
		fuse_reply_err(request, gone ? ENODEV : ENOMEM);
		return;
	}
	/* With the answer the file may be closed, and what it keeps is gone. */
	kept = malloc(length + 1);
	if (kept)
		memcpy(kept, text, length + 1);
	pthread_mutex_lock(&daemon->lock);
	handle_keep_text(handle, kept, kept ? length : 0);
	pthread_mutex_unlock(&daemon->lock);
	reply_text(request, text, length, offset, size);
	free(text);
}

/* Asks the coordinator what @handle's text is about. Whether the reader has to wait for it. */
static bool look(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	struct limiter *limiter = handle->limiter;
	uint64_t now_ns = clock_ns();
	struct looker *looker;

	if (!daemon->fleet || !handle->row->survey || daemon->stopping || limiter->removed)
		return false;
	engine_run(&daemon->engine, now_ns);
	survey_begin(daemon->fleet, limiter->holding);
	if (survey_is_done(daemon->fleet, limiter->holding, now_ns))
		return false;
	looker = malloc(sizeof(*looker));
	if (!looker)
		return false;
	*looker = (struct looker){.handle = handle,
				  .size = read->size,
				  .asked_ns = now_ns,
				  .until_ns = now_ns + FLEET_ANSWER_NS};
	looker_append(&daemon->pending, looker);
	pending_insert(&daemon->pending, &looker->pending, read->caller, PENDING_LOOKER);
	return true;
}

/* Rendered by the read at offset 0, then read on as it was. */
void read_text(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	bool waits;

	daemon_lock(daemon);
	/* A page of metrics in the making may replace the text. */
	if (read->offset && handle->text)
		reply_text(read->caller->request, handle->text, handle->length, read->offset,
			   read->size);
	waits = (read->offset && handle->text) || (!read->offset && look(daemon, handle, read));
	daemon_unlock(daemon);
	if (!waits)
		show_text(daemon, handle, read->caller->request, read->caller->uid, read->offset,
			  read->size);
}

size_t token_text(uint64_t tokens, uint64_t offset, size_t size, char text[TOKEN_TEXT])
{
	size_t length;

	if (tokens == 1) {
		memcpy(text, "1\n", 3);
		length = 2;
	} else {
		length = (size_t)snprintf(text, TOKEN_TEXT, "%" PRIu64 "\n", tokens);
	}
	if (offset >= length)
		return 0;
	length -= offset;
	memmove(text, text + offset, length);
	return length < size ? length : size;
}

int reply_tokens(fuse_req_t request, uint64_t tokens, uint64_t offset, size_t size)
{
	char text[TOKEN_TEXT];
	size_t length = token_text(tokens, offset, size, text);

	return fuse_reply_buf(request, text, length);
}

/*
 * Answers with a token that was taken. A reply that is too late (-ENOENT: the mount was aborted)
 * puts it back; the handle is there as long as the request on it was not answered.
 */
static void deliver(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	if (reply_tokens(read->caller->request, handle->tokens, 0, read->size) != -ENOENT) {
		daemon_delivered(daemon);
		return;
	}
	daemon_lock(daemon);
	engine_refund(&daemon->engine, handle->limiter, handle->tokens, clock_ns());
	state_taken(daemon->state, handle->limiter);
	daemon_unlock(daemon);
}

/*
 * Has the poll of @handle told when there is a token again: it may not be asked once more before,
 * as with EPOLLET.
 */
static void poll_again(struct daemon *daemon, struct handle *handle)
{
	if (handle->poll && poll_tokens(daemon, handle))
		handle_notify(daemon, handle);
}

/*
 * Puts the waiter of @wait in the queue, for a read of @handle. -EINPROGRESS, 0: it was granted, or
 * why not: -EBUSY when too many wait. Under the lock.
 */
static int wait_for_tokens(struct daemon *daemon, struct handle *handle,
			   const struct read_request *read, struct read_wait *wait)
{
	const struct caller *caller = read->caller;
	bool expires = wait->within_ns != NEVER_NS;
	struct reader *reader;
	int err;

	reader = malloc(expires ? sizeof(struct timed_reader) : sizeof(struct reader));
	err = reader ? -EBUSY : -ENOMEM;
	if (!reader || daemon_has_room(daemon, caller->uid, BOUND_READERS)) {
		free(reader);
		engine_give_up(&daemon->engine, &wait->waiter);
		return err;
	}
	*reader = (struct reader){
		.handle = handle,
		.size = read->size < TOKEN_TEXT ? (uint32_t)read->size : TOKEN_TEXT,
		.pid = caller->pid,
		.waiter = wait->waiter,
	};
	if (expires) {
		reader->waiter.expiry = &((struct timed_reader *)reader)->expiry;
		((struct timed_reader *)reader)->refusal = -wait->refusal;
	}
	pending_insert(&daemon->pending, &reader->pending, caller, PENDING_READER);
	err = engine_ask(&daemon->engine, &reader->waiter, wait->within_ns, caller->at_ns);
	state_taken(daemon->state, handle->limiter);
	if (err != -EINPROGRESS) {
		pending_remove(&daemon->pending, &reader->pending);
		free(reader);
	}
	return err == -EAGAIN ? wait->refusal : err;
}

static enum read_manner manner_of(const struct handle *handle, const struct read_request *read)
{
	if (handle->row->read == read_try)
		return READ_TRYING;
	return read->nonblocking ? READ_NONBLOCKING : READ_BLOCKING;
}

/* Takes what @handle asks for: now or, if the reader may wait, later. */
static void take(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	const struct caller *caller = read->caller;
	struct asker asker = handle_asker(handle, caller->pid, caller->uid, caller->unique);
	struct token_read tokens = {
		.limiter = handle->limiter,
		.tokens = handle->tokens,
		.manner = manner_of(handle, read),
		.within_ns = handle->within_ns,
		.asker = &asker,
	};
	struct read_wait wait;
	int err = -ESHUTDOWN;

	daemon_lock(daemon);
	if (handle->polling)
		tokens.poller = &handle->polling->poller;
	if (!daemon->stopping)
		err = engine_read(&daemon->engine, &tokens, &wait, caller->at_ns);
	if (err == -EINPROGRESS)
		err = wait_for_tokens(daemon, handle, read, &wait);
	if (!err) {
		handle_granted(handle, read->size);
		state_taken(daemon->state, handle->limiter);
	} else if (err == -EAGAIN) {
		poll_again(daemon, handle);
	} else if (err == -EINVAL) {
		daemon_refused(daemon, caller->uid,
			       "a take larger than the burst is saved up for a reader that waits: "
			       "it cannot be had with O_NONBLOCK");
	}
	daemon_unlock(daemon);
	if (!err)
		deliver(daemon, handle, read);
	else if (err != -EINPROGRESS)
		fuse_reply_err(read->caller->request, -err);
}

/* What is left of a token's text; nothing when none was granted through this handle. */
static void drain(struct handle *handle, const struct read_request *read)
{
	char text[TOKEN_TEXT];
	size_t rest = token_text(handle->tokens, (uint64_t)read->offset, TOKEN_TEXT, text);

	if (!handle->granted)
		rest = 0;
	else if (rest <= read->size)
		handle_set_half(handle, false);
	fuse_reply_buf(read->caller->request, text, rest < read->size ? rest : read->size);
}

void read_tokens(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	if (read->offset)
		drain(handle, read);
	else
		take(daemon, handle, read);
}

void read_try(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	if (read->offset)
		drain(handle, read);
	else
		take(daemon, handle, read);
}

/* An even offset asks for a token, an odd one gives its newline. */
void read_stream(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	if (read->offset & 1) {
		handle_set_half(handle, false);
		reply_tokens(read->caller->request, 1, 1, read->size);
		return;
	}
	take(daemon, handle, read);
}

/* The head is served by offset; the text after it, whatever the offset, is the next line. */
void read_events(struct daemon *daemon, struct handle *handle, const struct read_request *read)
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
		reply_text(read->caller->request, EVENTS_HEAD, EVENTS_HEAD_BYTES, read->offset,
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
			.handle = handle, .size = (uint32_t)size, .asked_ns = clock_ns()};
		follower_append(&daemon->pending, follower);
		pending_insert(&daemon->pending, &follower->pending, read->caller,
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
