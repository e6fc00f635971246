/*
 * takeover - going on where a predecessor ended, see takeover.h.
 *
 * The kernel sends again by hash chains, not in the order of arrival; so everything is received before
 * anything is done.
 */
#include "fs/takeover.h"
#include "fs/channel.h"
#include "fs/handle.h"
#include "fs/log.h"
#include "fs/loop.h"
#include "fs/session.h"
#include "fs/state.h"

#include "core/learning.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOTIFY_RESEND = 7 }; /* since Linux 6.9 */

static const uint64_t RESEND = UINT64_C(1) << 63;

struct message {
	uint64_t unique;
	void *bytes; /* owned */
	size_t size;
	uint8_t channel;
};

struct messages {
	struct message *at; /* owned */
	size_t count;
	size_t again; /* of them: those that a predecessor had, in order */
	size_t size;
};

static int add(struct messages *messages, const struct fuse_buf *buffer)
{
	const struct fuse_in_header *header = buffer->mem;
	size_t size = messages->size ? messages->size * 2 : 256;
	struct message *message;

	if (messages->count == messages->size) {
		message = realloc(messages->at, size * sizeof(*message));
		if (!message)
			return -ENOMEM;
		messages->at = message;
		messages->size = size;
	}
	message = &messages->at[messages->count];
	*message = (struct message){.unique = header->unique,
				    .bytes = malloc(buffer->size),
				    .size = buffer->size,
				    .channel = channel_current()};
	if (!message->bytes)
		return -ENOMEM;
	memcpy(message->bytes, buffer->mem, buffer->size);
	messages->count++;
	return 0;
}

/* Those that come again first, in the order of their numbers; then the others as they came. */
static int by_turn(const void *a, const void *b)
{
	const struct message *one = a, *other = b;
	bool again = one->unique & RESEND;

	if (again != !!(other->unique & RESEND))
		return again ? -1 : 1;
	return one->unique < other->unique ? -1 : one->unique > other->unique;
}

static bool is_again(const struct fuse_buf *buffer)
{
	const struct fuse_in_header *header = buffer->mem;

	/* Interrupts and what is forgotten come before, or in between. */
	return header->unique & RESEND || header->opcode == FUSE_INTERRUPT ||
	       header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET;
}

static int receive(struct daemon *daemon, struct messages *messages)
{
	struct pollfd device = {.fd = fuse_session_fd(daemon->session), .events = POLLIN};
	struct fuse_buf buffer = {0};
	bool more = true;
	int length, err = 0;

	/* Who is killed may take back what is there to be read: the timer ends a read of nothing. */
	loop_wake_at(clock_ns());
	while (more && !err && poll(&device, 1, 0) > 0) {
		length = fuse_session_receive_buf(daemon->session, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0)
			break; /* the loop finds that out, too */
		more = is_again(&buffer);
		err = add(messages, &buffer);
	}
	free(buffer.mem);
	if (messages->count)
		qsort(messages->at, messages->count, sizeof(*messages->at), by_turn);
	while (messages->again < messages->count && messages->at[messages->again].unique & RESEND)
		messages->again++;
	return err;
}

static int by_unique(const void *key, const void *element)
{
	uint64_t unique = *(const uint64_t *)key;
	uint64_t other = ((const struct message *)element)->unique & ~RESEND;

	return unique < other ? -1 : unique > other;
}

static bool was_asked(const void *what, uint64_t unique)
{
	const struct messages *messages = what;

	return messages->again &&
	       bsearch(&unique, messages->at, messages->again, sizeof(*messages->at), by_unique);
}

static void process(struct daemon *daemon, const struct messages *messages)
{
	for (size_t i = 0; i < messages->count; i++) {
		struct message *message = &messages->at[i];
		struct fuse_buf buffer = {.mem = message->bytes, .size = message->size};

		channel_reply_to(message->channel);
		session_process(daemon, &buffer, clock_ns());
	}
}

/* Nobody's turn is saved up for any more who did not ask again. */
static void forget_awaited(struct limiter *limiter)
{
	for (uint32_t i = 0; !limiter->current && i < limiter->bucket_count; i++)
		bucket_await(&limiter->buckets[i], 0);
	if (!limiter->current && limiter->learning && limiter->learning->limited)
		bucket_await(&limiter->learning->bucket, 0);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		forget_awaited(l);
}

int takeover(struct daemon *daemon)
{
	struct fuse_out_header resend = {.len = sizeof(resend), .error = NOTIFY_RESEND};
	struct messages messages = {0};
	int err = 0;

	if (write(fuse_session_fd(daemon->session), &resend, sizeof(resend)) < 0)
		err = errno == ENODEV ? 0 : -errno;
	if (!err)
		err = receive(daemon, &messages);
	if (!err) {
		daemon_lock(daemon);
		err = handle_take_over(daemon, was_asked, &messages);
		daemon_unlock(daemon);
	}
	if (!err) {
		handle_wake_all(daemon);
		process(daemon, &messages);
		daemon_lock(daemon);
		forget_awaited(daemon->engine.tree.root);
		daemon_unlock(daemon);
		log_info("%zu requests were asked again", messages.again);
	}
	for (size_t i = 0; i < messages.count; i++)
		free(messages.at[i].bytes);
	free(messages.at);
	return err;
}
