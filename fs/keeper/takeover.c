/*
 * takeover - going on where a predecessor ended, see takeover.h.
 *
 * The kernel sends again by hash chains, not in the order of arrival; so everything is received
 * before anything is done. A reader that was interrupted and asked again has its place by its first
 * asking, and a place that is parked is between those of the requests before and after.
 */
#include "fs/keeper/takeover.h"
#include "fs/base/log.h"
#include "fs/mount/arrivals.h"
#include "fs/mount/channel.h"
#include "fs/mount/handle.h"
#include "fs/mount/loop.h"
#include "fs/mount/wake.h"
#include "fs/state/state.h"

#include "core/limiter/learning.h"

#include <errno.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NOTIFY_RESEND = 7 }; /* since Linux 6.9 */

struct message {
	uint64_t unique;
	uint64_t order; /* its number without RESEND, or that of the first asking of its place */
	void *bytes;	/* owned */
	size_t size;
	uint8_t channel;
};

struct messages {
	struct message *at; /* owned */
	size_t count;
	size_t again; /* of them: those that a predecessor had, in order */
	size_t size;
};

static int add_message(struct messages *messages, const struct fuse_buf *buffer)
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

/* Orders messages that come again first, by their numbers; then the others as they came. */
static int by_turn(const void *a, const void *b)
{
	const struct message *one = a, *other = b;
	bool again = one->unique & FUSE_RESEND;

	if (again != !!(other->unique & FUSE_RESEND))
		return again ? -1 : 1;
	return one->unique < other->unique ? -1 : one->unique > other->unique;
}

static bool is_again(const struct fuse_buf *buffer)
{
	const struct fuse_in_header *header = buffer->mem;

	/* Interrupts and what is forgotten come before, or in between. */
	return header->unique & FUSE_RESEND || header->opcode == FUSE_INTERRUPT ||
	       header->opcode == FUSE_FORGET || header->opcode == FUSE_BATCH_FORGET;
}

static int receive_messages(struct daemon *daemon, struct messages *messages)
{
	struct pollfd device = {.fd = fuse_session_fd(daemon->fuse), .events = POLLIN};
	struct fuse_buf buffer = {0};
	bool more = true;
	int length, err = 0;

	/*
	 * A killed client can withdraw its request between poll and read: the timer ends that read.
	 */
	wake_at(clock_ns());
	while (more && !err && poll(&device, 1, 0) > 0) {
		length = fuse_session_receive_buf(daemon->fuse, &buffer);
		if (length == -EINTR)
			continue;
		if (length <= 0)
			break; /* the loop finds that out, too */
		more = is_again(&buffer);
		err = add_message(messages, &buffer);
	}
	free(buffer.mem);
	if (messages->count)
		qsort(messages->at, messages->count, sizeof(*messages->at), by_turn);
	while (messages->again < messages->count &&
	       messages->at[messages->again].unique & FUSE_RESEND)
		messages->again++;
	return err;
}

static int by_unique(const void *key, const void *element)
{
	uint64_t unique = *(const uint64_t *)key;
	uint64_t other = ((const struct message *)element)->unique & ~FUSE_RESEND;

	return unique < other ? -1 : unique > other;
}

static bool was_asked(const void *what, uint64_t unique)
{
	const struct messages *messages = what;

	return messages->again &&
	       bsearch(&unique, messages->at, messages->again, sizeof(*messages->at), by_unique);
}

static int by_asking(const void *key, const void *element)
{
	uint64_t number = ((const struct parked_place *)key)->asker.number;
	uint64_t other = ((const struct message *)element)->unique & ~FUSE_RESEND;

	return number < other ? -1 : number > other;
}

static int by_order(const void *a, const void *b)
{
	const struct message *one = a, *other = b;

	return one->order < other->order ? -1 : one->order > other->order;
}

static int by_first(const void *a, const void *b)
{
	const struct parked_place *one = a, *other = b;

	return one->first < other->first ? -1 : one->first > other->first;
}

/*
 * Moves the places that the predecessor knew of to @places, from malloc. Returns how many there
 * are, or -ENOMEM.
 */
static ssize_t move_places(struct daemon *daemon, struct parked_place **places)
{
	uint32_t *used;
	struct parked_place *kept = state_places(daemon->state, &used);
	uint32_t count = *used;

	*places = malloc((count + 1) * sizeof(**places));
	if (!*places)
		return -ENOMEM;
	memcpy(*places, kept, count * sizeof(*kept));
	*used = 0;
	parking_init(&daemon->engine.schedule.parking, kept, PARKING_PLACES_MAX, used);
	return count;
}

/*
 * Drops those of @count @places that no asker can take any more, and sorts the others by their
 * first asking. Then orders @messages, sorted by number before, so that a message with a place
 * comes by its first asking. Returns how many places are left.
 */
static size_t match_places(struct messages *messages, struct parked_place *places, size_t count,
			   uint64_t now_ns, bool is_frozen)
{
	size_t left = 0;

	for (size_t i = 0; i < count; i++) {
		bool was_asked = messages->again &&
				 bsearch(&places[i], messages->at, messages->again,
					 sizeof(*messages->at), by_asking);
		/* While there was no server the askers could not come back. */
		bool may_come = places[i].state == PLACE_PARKED &&
				(is_frozen || places[i].at_ns + PARKING_NS > now_ns);

		if (places[i].state != PLACE_FREE && (was_asked || may_come))
			places[left++] = places[i];
	}
	qsort(places, left, sizeof(*places), by_first);
	for (size_t i = 0; i < messages->count; i++)
		messages->at[i].order = messages->at[i].unique & ~FUSE_RESEND;
	for (size_t i = 0; i < left; i++) {
		struct message *message = messages->again
						  ? bsearch(&places[i], messages->at,
							    messages->again, sizeof(*messages->at),
							    by_asking)
						  : NULL;

		if (message)
			message->order = places[i].first;
	}
	if (messages->again)
		qsort(messages->at, messages->again, sizeof(*messages->at), by_order);
	return left;
}

/* Parks @places as they come before the asking @until, from *@next on. */
static void restore_places(struct daemon *daemon, const struct parked_place *places, size_t count,
			   size_t *next, uint64_t until)
{
	struct schedule *schedule = &daemon->engine.schedule;

	for (; *next < count && places[*next].first <= until; ++*next)
		parking_restore(&schedule->parking, &places[*next], ++schedule->tickets,
				clock_ns() + PARKING_NS);
}

static void process_messages(struct daemon *daemon, const struct messages *messages,
			     const struct parked_place *places, size_t place_count)
{
	size_t next = 0;

	for (size_t i = 0; i < messages->count; i++) {
		struct message *message = &messages->at[i];
		struct fuse_buf buffer = {.mem = message->bytes, .size = message->size};

		daemon_lock(daemon);
		restore_places(daemon, places, place_count, &next,
			       i < messages->again ? message->order : UINT64_MAX);
		daemon_unlock(daemon);
		channel_reply_to(message->channel);
		loop_process(daemon, &buffer, clock_ns());
	}
	daemon_lock(daemon);
	restore_places(daemon, places, place_count, &next, UINT64_MAX);
	daemon_unlock(daemon);
}

/* Stops saving tokens up for waiters that did not ask again. */
static void forget_awaited(struct limiter *limiter)
{
	for (uint32_t i = 0; !limiter->turns.current && i < limiter->bucket_count; i++)
		bucket_await(&limiter->buckets[i], 0);
	if (!limiter->turns.current && limiter->learning && limiter->learning->limited)
		bucket_await(&limiter->learning->bucket, 0);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		forget_awaited(l);
}

int takeover(struct daemon *daemon)
{
	struct fuse_out_header resend = {.len = sizeof(resend), .error = NOTIFY_RESEND};
	struct messages messages = {0};
	struct parked_place *places = NULL;
	ssize_t count = move_places(daemon, &places);
	int err = count < 0 ? (int)count : 0;

	if (!err && write(fuse_session_fd(daemon->fuse), &resend, sizeof(resend)) < 0)
		err = errno == ENODEV ? 0 : -errno;
	if (!err)
		err = receive_messages(daemon, &messages);
	if (!err) {
		daemon_lock(daemon);
		err = handle_take_over(daemon, was_asked, &messages);
		daemon_unlock(daemon);
	}
	if (!err) {
		handle_wake_all(daemon);
		count = (ssize_t)match_places(&messages, places, (size_t)count, clock_ns(),
					      daemon->freezer);
		process_messages(daemon, &messages, places, (size_t)count);
		daemon_lock(daemon);
		forget_awaited(daemon->engine.tree.root);
		daemon_unlock(daemon);
		log_info("%zu requests were asked again", messages.again);
	}
	for (size_t i = 0; i < messages.count; i++)
		free(messages.at[i].bytes);
	free(messages.at);
	free(places);
	return err;
}
