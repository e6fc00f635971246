/* read - files that are read for tokens, see read.h. */
#include "fs/mount/read.h"
#include "fs/base/clock.h"
#include "fs/mount/slot.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the text of @tokens from @offset on to @text. Returns its length, at most @size. */
static size_t token_text(uint64_t tokens, uint64_t offset, size_t size, char text[TOKEN_TEXT])
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

int read_reply(fuse_req_t request, uint64_t tokens, uint64_t offset, size_t size)
{
	char text[TOKEN_TEXT];
	size_t length = token_text(tokens, offset, size, text);

	return fuse_reply_buf(request, text, length);
}

/* Notes that a read of @size bytes is about to be answered with @tokens. Under the lock. */
static void note_grant(struct handle *handle, uint64_t tokens, size_t size)
{
	char text[TOKEN_TEXT];

	handle->given = tokens;
	handle->taken += tokens;
	handle->granted = true;
	if (handle->polling)
		handle->polling->poller.late = false;
	handle->kept->given = tokens;
	handle->kept->granted = true;
	handle_set_half(handle, token_text(tokens, 0, TOKEN_TEXT, text) > size);
}

/*
 * Answers with @tokens that were taken. A reply that is too late (-ENOENT: the mount was aborted)
 * puts them back; the handle is there as long as the request on it was not answered.
 */
static void deliver_tokens(struct daemon *daemon, struct handle *handle, uint64_t tokens,
			   const struct read_request *read)
{
	if (read_reply(read->caller->request, tokens, 0, read->size) != -ENOENT) {
		daemon_delivered(daemon);
		return;
	}
	daemon_lock(daemon);
	engine_refund(&daemon->engine, handle->limiter, tokens, handle->amounts, clock_ns());
	state_taken(daemon->state, handle->limiter);
	daemon_unlock(daemon);
}

/* Tells whether tokens are there. Without memory a read is said to be answered at once. */
static bool poll_tokens(struct daemon *daemon, struct handle *handle)
{
	if (!handle->polling) {
		handle->polling = malloc(sizeof(*handle->polling));
		if (!handle->polling)
			return true;
		handle->polling->handle = handle;
		poller_init(&handle->polling->poller, handle->limiter, handle->tokens, handle->most,
			    handle->amounts);
		if (handle->within_ns != NEVER_NS)
			poller_limit(&handle->polling->poller, &handle->polling->expiry,
				     handle->within_ns);
	}
	return daemon->stopping || handle->half ||
	       engine_poll(&daemon->engine, &handle->polling->poller, clock_ns());
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
 * Puts the waiter of @wait in the queue, for a read of @handle. -EINPROGRESS, 0: it was granted
 * wait->waiter.granted, or why not: -EBUSY when too many wait. Under the lock.
 */
static int wait_for_tokens(struct daemon *daemon, struct handle *handle,
			   const struct read_request *read, struct read_wait *wait)
{
	const struct caller *caller = read->caller;
	bool expires = wait->within_ns != NEVER_NS;
	struct reader *reader;
	uint64_t granted = 0;
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
		granted = reader->waiter.granted;
		pending_remove(&daemon->pending, &reader->pending);
		free(reader);
	}
	wait->waiter.granted = granted;
	return err == -EAGAIN ? wait->refusal : err;
}

static enum read_manner manner_of(const struct handle *handle, const struct read_request *read)
{
	if (handle->row->kind->tries)
		return READ_TRYING;
	return read->nonblocking ? READ_NONBLOCKING : READ_BLOCKING;
}

void read_explain_bound(struct daemon *daemon, const struct handle *handle, uint32_t uid)
{
	const struct limiter *limiter = handle->limiter;
	enum setting_id bound = daemon->engine.refused_by;
	char path[PATH_TEXT], value[SETTING_TEXT];

	if (bound == SETTING_COUNT)
		return;
	setting_print(bound, limiter->settings, value);
	tree_path(limiter->is_key || limiter->partition ? limiter->parent : limiter, path);
	if (bound == SETTING_QUEUE_MAX)
		daemon_refused(daemon, uid, limiter, handle->row,
			       "as many readers wait as queue_max of '%.300s' allows: %s", path,
			       value);
	else
		daemon_refused(daemon, uid, limiter, handle->row,
			       "the wait would be longer than wait_max of '%.300s' allows: %s",
			       path, value);
}

static const char NOT_AT_ONCE[] =
	"a take larger than the burst is saved up for a reader that waits: "
	"it cannot be had with O_NONBLOCK";
static const char NEVER[] =
	"a take larger than a window of the calendar or a strict one, of the limiter or of one "
	"above it, can never be had";

/* Takes the tokens that @handle asks for: now or, if the reader may wait, later. */
static void take_tokens(struct daemon *daemon, struct handle *handle,
			const struct read_request *read)
{
	const struct caller *caller = read->caller;
	struct asker asker = handle_asker(handle, caller->pid, caller->uid, caller->unique);
	struct token_read tokens = {
		.limiter = handle->limiter,
		.tokens = handle->tokens,
		.most = handle->most,
		.amounts = handle->amounts,
		.manner = manner_of(handle, read),
		.again = caller->again,
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
		note_grant(handle, wait.waiter.granted, read->size);
		state_taken(daemon->state, handle->limiter);
	} else if (err == -EAGAIN) {
		poll_again(daemon, handle);
	} else if (err == -EINVAL) {
		daemon_refused(daemon, caller->uid, handle->limiter, handle->row,
			       limiter_can_ever(handle->limiter, handle->tokens, handle->amounts)
				       ? NOT_AT_ONCE
				       : NEVER);
	} else if (err == -EBUSY) {
		read_explain_bound(daemon, handle, caller->uid);
	}
	daemon_unlock(daemon);
	if (!err)
		deliver_tokens(daemon, handle, wait.waiter.granted, read);
	else if (err != -EINPROGRESS)
		fuse_reply_err(read->caller->request, -err);
}

/* Answers with the rest of a token's text: nothing, if no token was granted through this handle. */
static void read_rest(struct handle *handle, const struct read_request *read)
{
	char text[TOKEN_TEXT];
	size_t rest = token_text(handle->given, (uint64_t)read->offset, TOKEN_TEXT, text);

	if (!handle->granted)
		rest = 0;
	else if (rest <= read->size)
		handle_set_half(handle, false);
	fuse_reply_buf(read->caller->request, text, rest < read->size ? rest : read->size);
}

static void read_tokens(struct daemon *daemon, struct handle *handle,
			const struct read_request *read)
{
	if (read->offset)
		read_rest(handle, read);
	else
		take_tokens(daemon, handle, read);
}

/* Reads on in a stream: an even offset asks for a token, an odd one gives its newline. */
static void read_stream(struct daemon *daemon, struct handle *handle,
			const struct read_request *read)
{
	if (read->offset & 1) {
		handle_set_half(handle, false);
		read_reply(read->caller->request, 1, 1, read->size);
		return;
	}
	take_tokens(daemon, handle, read);
}

/* Returns the size of the longest text of tokens, which is known before they are granted. */
static off_t size_tokens(const struct node *node)
{
	char text[TOKEN_TEXT];

	return (off_t)token_text(node->most, 0, sizeof(text), text);
}

const struct node_kind TOKENS_FILE = {
	.takes = true, .size = size_tokens, .read = read_tokens, .poll = poll_tokens};
const struct node_kind TRY_FILE = {
	.takes = true, .tries = true, .size = size_tokens, .read = read_tokens};
const struct node_kind STREAM_FILE = {
	.takes = true, .size = size_tokens, .read = read_stream, .poll = poll_tokens};

static struct reader *reader_of(struct waiter *waiter)
{
	return container_of(waiter, struct reader, waiter);
}

static void collect_poller(struct daemon *daemon, struct waiter *waiter)
{
	struct polling *polling = (struct polling *)poller_of(waiter);

	state_taken(daemon->state, waiter->limiter);
	/* Tokens that went back are nothing to tell of. */
	if (waiter->outcome == -ETIMEDOUT)
		return;
	handle_notify(daemon, polling->handle);
}

void read_collect(struct daemon *daemon, struct outbox *outbox)
{
	struct waiter *waiter;

	while ((waiter = engine_done(&daemon->engine))) {
		struct reader *reader = reader_of(waiter);

		if (waiter->is_poller) {
			collect_poller(daemon, waiter);
			continue;
		}
		if (!waiter->outcome && waiter->is_opener)
			slot_note(daemon, reader->handle);
		else if (!waiter->outcome)
			note_grant(reader->handle, waiter->granted, reader->size);
		if (!waiter->is_opener)
			state_taken(daemon->state, waiter->limiter);
		pending_decide(&daemon->pending, &reader->pending, outbox);
	}
}

/* Answers with the lock taken as it is: the sender of the answers collects the consequences. */
void read_answer(struct daemon *daemon, struct pending *pending)
{
	struct reader *reader = (struct reader *)pending;
	fuse_req_t request = pending->request;

	if (reader->waiter.outcome == -EAGAIN) {
		fuse_reply_err(request, ((struct timed_reader *)reader)->refusal);
	} else if (reader->waiter.outcome) {
		fuse_reply_err(request, -reader->waiter.outcome);
	} else if (read_reply(request, reader->waiter.granted, 0, reader->size) == -ENOENT) {
		pthread_mutex_lock(&daemon->lock);
		engine_refund(&daemon->engine, reader->handle->limiter, reader->waiter.granted,
			      reader->waiter.amounts, clock_ns());
		state_taken(daemon->state, reader->handle->limiter);
		pthread_mutex_unlock(&daemon->lock);
	} else {
		daemon_delivered(daemon);
	}
	free(reader);
}

void read_leave_queue(struct daemon *daemon, struct reader *reader, int err)
{
	const struct pending *pending = &reader->pending;
	const struct handle *handle = reader->waiter.is_opener ? NULL : reader->handle;
	struct asker asker = handle_asker(handle, pending->pid, pending->uid, pending->unique);

	if (err == EINTR)
		engine_interrupt(&daemon->engine, &reader->waiter, &asker, clock_ns());
	else
		engine_cancel(&daemon->engine, &reader->waiter);
}

enum pending_end read_give_up(struct daemon *daemon, struct pending *pending, int err)
{
	struct reader *reader = (struct reader *)pending;

	if (reader->waiter.outcome != -EINPROGRESS)
		return PENDING_STAYS;
	read_leave_queue(daemon, reader, err);
	state_taken(daemon->state, reader->handle->limiter);
	return PENDING_FREED;
}

uint64_t read_since_ns(const struct daemon *daemon, const struct pending *pending)
{
	return parking_since_ns(&daemon->engine.schedule.parking,
				&((const struct reader *)pending)->waiter);
}
