/* answer - what comes of steps of the engine, see answer.h. */
#include "fs/mount/answer.h"
#include "fs/mount/channel.h"
#include "fs/mount/handle.h"
#include "fs/state/state.h"

#include "core/fleet/survey.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* In the order in which it is to be sent. */
struct outbox {
	struct pending *first;
	struct pending **last;
};

static void outbox_add(struct outbox *outbox, struct pending *pending)
{
	pending->next = NULL;
	*outbox->last = pending;
	outbox->last = &pending->next;
}

static struct reader *reader_of(struct waiter *waiter)
{
	return container_of(waiter, struct reader, waiter);
}

static struct writer *writer_of(struct change *change)
{
	return (struct writer *)((char *)change - offsetof(struct writer, change));
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

static void collect_waiters(struct daemon *daemon, struct outbox *outbox)
{
	struct waiter *waiter;

	while ((waiter = engine_done(&daemon->engine))) {
		struct reader *reader = reader_of(waiter);

		if (waiter->is_poller) {
			collect_poller(daemon, waiter);
			continue;
		}
		pending_remove(&daemon->pending, &reader->pending);
		if (!waiter->outcome && !waiter->is_opener)
			handle_granted(reader->handle, reader->size);
		if (!waiter->is_opener)
			state_taken(daemon->state, waiter->limiter);
		outbox_add(outbox, &reader->pending);
	}
}

/* A line of `events` for a change that was made. */
static void tell(struct daemon *daemon, const struct writer *writer)
{
	const struct change *change = &writer->change;
	struct events *events = &daemon->events;
	const char *path = change->path;
	const char *slash = strrchr(path, '/');
	char text[SETTING_TEXT];

	switch (change->kind) {
	case CHANGE_MAKE:
		events_add(events, viewer_subject(change->made), "%s%s%s created", path,
			   *path ? "/" : "", change->name);
		break;
	case CHANGE_REMOVE:
		events_add(events, writer->subject, "%s removed", path);
		break;
	case CHANGE_RENAME:
		events_add(events, writer->subject, "%s renamed %.*s%s", path,
			   slash ? (int)(slash - path + 1) : 0, path, change->name);
		break;
	case CHANGE_OWNER:
		events_add(events, writer->subject, "%s uid %u gid %u access %o",
			   *path ? path : "/", change->owner.uid, change->owner.gid,
			   change->owner.access);
		break;
	case CHANGE_SETTINGS:
		for (int id = 0; id < SETTING_COUNT; id++) {
			if (!(change->altered >> id & 1))
				continue;
			setting_print((enum setting_id)id, &change->settings, text);
			events_add(events, writer->subject, "%s %s %s", path,
				   setting_name((enum setting_id)id), text);
		}
		break;
	}
}

/* So that a successor knows of it. */
static void keep(struct daemon *daemon, const struct writer *writer)
{
	const struct change *change = &writer->change;

	if (change->kind == CHANGE_REMOVE)
		state_limiter_removed(daemon->state, (uint32_t)writer->ino);
	else if (change->kind == CHANGE_MAKE)
		state_limiter_changed(daemon->state, change->made);
	else
		state_limiter_changed(daemon->state, change->limiter);
}

/* What mkdir and setattr are answered with. */
static void fill_entry(struct daemon *daemon, struct writer *writer)
{
	struct node node;

	if (writer->change.kind == CHANGE_MAKE) {
		node = node_of_limiter(writer->change.made);
		(void)node_entry(daemon, &node, writer->pending.uid, &writer->entry);
	} else if (writer->change.kind == CHANGE_OWNER &&
		   !node_decode(daemon, writer->ino, &node)) {
		node_attributes(daemon, &node, &writer->entry.attr);
		node_owner_changed(daemon, node.limiter);
	}
}

static void collect_changes(struct daemon *daemon, struct outbox *outbox)
{
	struct change *change;

	while ((change = engine_changed(&daemon->engine))) {
		struct writer *writer = writer_of(change);

		if (change->outcome)
			refusals_add(&daemon->refusals, writer->pending.uid, change->error);
		else
			tell(daemon, writer);
		if (!change->outcome)
			keep(daemon, writer);
		if (writer->awaited) {
			writer->done = true;
			continue;
		}
		if (!writer->pending.request) {
			free(writer); /* answered before it was done */
			continue;
		}
		if (!change->outcome)
			fill_entry(daemon, writer);
		writer_leave(&daemon->pending, writer);
		pending_remove(&daemon->pending, &writer->pending);
		outbox_add(outbox, &writer->pending);
	}
}

static bool has_news(const struct daemon *daemon, struct handle *handle)
{
	return daemon->stopping ||
	       events_wait_for(&daemon->events, handle->viewer, &handle->position);
}

/* Looks at them only when something has happened: there may be many. */
static void collect_followers(struct daemon *daemon, struct outbox *outbox)
{
	struct handle *polling = daemon->polling_events, *next_polling;
	struct follower *follower = daemon->pending.followers, *next;

	if (daemon->events.told == daemon->events.end && !daemon->stopping)
		return;
	daemon->events.told = daemon->events.end;
	for (; polling; polling = next_polling) {
		next_polling = polling->next_follower;
		if (has_news(daemon, polling))
			handle_notify(daemon, polling);
	}
	for (; follower; follower = next) {
		next = follower->next;
		if (has_news(daemon, follower->handle)) {
			follower_leave(&daemon->pending, follower);
			pending_remove(&daemon->pending, &follower->pending);
			outbox_add(outbox, &follower->pending);
		}
	}
}

static void collect_lookers(struct daemon *daemon, struct outbox *outbox)
{
	struct looker *looker = daemon->pending.lookers, *next;
	uint64_t now_ns = looker ? clock_ns() : 0;

	for (; looker; looker = next) {
		next = looker->next;
		if (now_ns < looker->until_ns &&
		    !survey_is_done(daemon->fleet, looker->handle->limiter->holding,
				    looker->asked_ns))
			continue;
		looker_leave(&daemon->pending, looker);
		pending_remove(&daemon->pending, &looker->pending);
		outbox_add(outbox, &looker->pending);
	}
}

/* The lock is taken as it is: what comes of this is collected by who sends the answers. */
static void answer_reader(struct daemon *daemon, struct reader *reader)
{
	fuse_req_t request = reader->pending.request;

	if (reader->waiter.outcome == -EAGAIN) {
		fuse_reply_err(request, ((struct timed_reader *)reader)->refusal);
	} else if (reader->waiter.outcome) {
		fuse_reply_err(request, -reader->waiter.outcome);
	} else if (reply_tokens(request, reader->waiter.tokens, 0, reader->size) == -ENOENT) {
		pthread_mutex_lock(&daemon->lock);
		engine_refund(&daemon->engine, reader->handle->limiter, reader->waiter.tokens,
			      clock_ns());
		state_taken(daemon->state, reader->handle->limiter);
		pthread_mutex_unlock(&daemon->lock);
	} else {
		daemon_delivered(daemon);
	}
	free(reader);
}

/* As a reader: what is left open by one who is gone is closed. */
static void answer_opener(struct daemon *daemon, struct reader *opener)
{
	fuse_req_t request = opener->pending.request;
	bool answered = !opener->waiter.outcome;

	if (opener->waiter.outcome)
		fuse_reply_err(request, -opener->waiter.outcome);
	else
		answered = reply_open(opener->handle, request);
	if (!answered) {
		pthread_mutex_lock(&daemon->lock);
		opener->handle->lost = true;
		handle_close(daemon, opener->handle);
		pthread_mutex_unlock(&daemon->lock);
	}
	free(opener);
}

static void answer_follower(struct daemon *daemon, struct follower *follower)
{
	char text[EVENT_READ_MAX];
	size_t length;
	bool stopping;

	pthread_mutex_lock(&daemon->lock);
	stopping = daemon->stopping;
	length = events_read(&daemon->events, follower->handle->viewer, &follower->handle->position,
			     text, follower->size);
	pthread_mutex_unlock(&daemon->lock);
	if (length)
		fuse_reply_buf(follower->pending.request, text, length);
	else /* another thread read the same open file: this one asks anew */
		fuse_reply_err(follower->pending.request, stopping ? ESHUTDOWN : EINTR);
	free(follower);
}

static void answer_looker(struct daemon *daemon, struct looker *looker)
{
	show_text(daemon, looker->handle, looker->pending.request, looker->pending.uid, 0,
		  looker->size);
	free(looker);
}

static void answer_writer(struct writer *writer)
{
	fuse_req_t request = writer->pending.request;

	if (writer->change.outcome)
		fuse_reply_err(request, -writer->change.outcome);
	else if (writer->change.kind == CHANGE_SETTINGS)
		fuse_reply_write(request, writer->size);
	else if (writer->change.kind == CHANGE_MAKE)
		fuse_reply_entry(request, &writer->entry);
	else if (writer->change.kind == CHANGE_OWNER)
		fuse_reply_attr(request, &writer->entry.attr, ATTRIBUTES_S);
	else
		fuse_reply_err(request, 0);
	free(writer);
}

void answers_send(struct daemon *daemon, struct pending *pending)
{
	uint8_t channel = channel_current(); /* of a request that is yet to be answered */

	while (pending) {
		struct pending *next = pending->next;

		channel_reply_to(pending->channel);
		switch ((enum pending_kind)pending->kind) {
		case PENDING_READER:
			answer_reader(daemon, (struct reader *)pending);
			break;
		case PENDING_OPENER:
			answer_opener(daemon, (struct reader *)pending);
			break;
		case PENDING_FOLLOWER:
			answer_follower(daemon, (struct follower *)pending);
			break;
		case PENDING_WRITER:
			answer_writer((struct writer *)pending);
			break;
		case PENDING_LOOKER:
			answer_looker(daemon, (struct looker *)pending);
			break;
		case PENDING_PAGE: /* its thread answers */
			break;
		}
		pending = next;
	}
	channel_reply_to(channel);
}

struct pending *answers_collect(struct daemon *daemon)
{
	struct outbox outbox = {NULL, &outbox.first};

	collect_waiters(daemon, &outbox);
	collect_changes(daemon, &outbox);
	collect_followers(daemon, &outbox);
	collect_lookers(daemon, &outbox);
	return outbox.first;
}
