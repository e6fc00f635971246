/* daemon - steps of the engine and what comes of them, see daemon.h. */
#include "fs/daemon.h"
#include "fs/handle.h"
#include "fs/log.h"
#include "fs/loop.h"
#include "fs/metrics.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

void daemon_refused(struct daemon *daemon, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(daemon->last_error, sizeof(daemon->last_error), format, arguments);
	va_end(arguments);
}

/* What is to be answered once the lock is let go of. */
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
	return (struct reader *)((char *)waiter - offsetof(struct reader, waiter));
}

static struct writer *writer_of(struct change *change)
{
	return (struct writer *)((char *)change - offsetof(struct writer, change));
}

static void collect_readers(struct daemon *daemon, struct outbox *outbox)
{
	struct waiter *waiter;

	while ((waiter = engine_done(&daemon->engine))) {
		struct reader *reader = reader_of(waiter);

		pending_remove(&daemon->pending, &reader->pending);
		if (!waiter->outcome)
			reader->handle->granted = true;
		outbox_add(outbox, &reader->pending);
	}
}

static void collect_watchers(struct daemon *daemon)
{
	struct watcher *watcher;

	while ((watcher = engine_fired(&daemon->engine)))
		handle_notify(daemon, handle_of_watcher(watcher));
}

/* A line of `events` for a change that was made. */
static void tell(struct daemon *daemon, const struct change *change)
{
	struct events *events = &daemon->events;
	const char *path = change->path;
	const char *slash = strrchr(path, '/');
	char text[SETTING_TEXT];

	switch (change->kind) {
	case CHANGE_MAKE:
		events_add(events, "%s%s%s created", path, *path ? "/" : "", change->name);
		break;
	case CHANGE_REMOVE:
		events_add(events, "%s removed", path);
		break;
	case CHANGE_RENAME:
		events_add(events, "%s renamed %.*s%s", path, slash ? (int)(slash - path + 1) : 0,
			   path, change->name);
		break;
	case CHANGE_OWNER:
		events_add(events, "%s uid %u gid %u access %o", *path ? path : "/",
			   change->owner.uid, change->owner.gid, change->owner.access);
		break;
	case CHANGE_SETTINGS:
		for (int id = 0; id < SETTING_COUNT; id++) {
			if (!(change->altered >> id & 1))
				continue;
			setting_print((enum setting_id)id, &change->settings, text);
			events_add(events, "%s %s %s", path, setting_name((enum setting_id)id),
				   text);
		}
		break;
	}
}

/* What mkdir and setattr are answered with. */
static void fill_entry(struct daemon *daemon, struct writer *writer)
{
	struct node node;

	if (writer->change.kind == CHANGE_MAKE) {
		node = node_of_limiter(writer->change.made);
		(void)node_entry(daemon, &node, &writer->entry);
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
			daemon_refused(daemon, "%s", change->error);
		else
			tell(daemon, change);
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

static bool has_news(const struct daemon *daemon, const struct handle *handle)
{
	return daemon->stopping || handle->position < daemon->events.end;
}

static void collect_followers(struct daemon *daemon, struct outbox *outbox)
{
	struct follower *follower = daemon->pending.followers;

	while (daemon->polling_events && has_news(daemon, daemon->polling_events))
		handle_notify(daemon, daemon->polling_events);
	while (follower) {
		struct follower *next = follower->next;

		if (has_news(daemon, follower->handle)) {
			follower_leave(&daemon->pending, follower);
			pending_remove(&daemon->pending, &follower->pending);
			outbox_add(outbox, &follower->pending);
		}
		follower = next;
	}
}

static void answer_reader(struct daemon *daemon, struct reader *reader)
{
	if (reader->waiter.outcome)
		fuse_reply_err(reader->pending.request, -reader->waiter.outcome);
	else
		deliver_tokens(daemon, reader->handle, reader->pending.request, reader->size);
	free(reader);
}

static void answer_follower(struct daemon *daemon, struct follower *follower)
{
	char text[EVENT_READ_MAX];
	size_t length;
	bool stopping;

	daemon_lock(daemon);
	stopping = daemon->stopping;
	length = events_read(&daemon->events, &follower->handle->position, text, follower->size);
	daemon_unlock(daemon);
	if (length)
		fuse_reply_buf(follower->pending.request, text, length);
	else /* another thread read the same open file: this one asks anew */
		fuse_reply_err(follower->pending.request, stopping ? ESHUTDOWN : EINTR);
	free(follower);
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

static void answer(struct daemon *daemon, struct pending *pending)
{
	while (pending) {
		struct pending *next = pending->next;

		switch ((enum pending_kind)pending->kind) {
		case PENDING_READER:
			answer_reader(daemon, (struct reader *)pending);
			break;
		case PENDING_FOLLOWER:
			answer_follower(daemon, (struct follower *)pending);
			break;
		case PENDING_WRITER:
			answer_writer((struct writer *)pending);
			break;
		case PENDING_PAGE: /* its thread answers */
			break;
		}
		pending = next;
	}
}

static uint64_t due_ns(const struct daemon *daemon)
{
	const struct writer *oldest = daemon->pending.writers;
	uint64_t at_ns = engine_next_ns(&daemon->engine);

	if (oldest && oldest->until_ns < at_ns)
		at_ns = oldest->until_ns;
	if (daemon->pending.count && daemon->sweep_ns < at_ns)
		at_ns = daemon->sweep_ns;
	return at_ns;
}

uint64_t daemon_due_ns(struct daemon *daemon)
{
	uint64_t at_ns;

	pthread_mutex_lock(&daemon->lock);
	at_ns = due_ns(daemon);
	pthread_mutex_unlock(&daemon->lock);
	return at_ns;
}

/* Sets the timer if something is due before it goes off; one that goes off for nothing is rare. */
static void arm(struct daemon *daemon)
{
	uint64_t at_ns = due_ns(daemon);

	if (at_ns >= daemon->armed_ns)
		return;
	daemon->armed_ns = at_ns;
	loop_wake_at(at_ns);
}

void daemon_lock(struct daemon *daemon)
{
	pthread_mutex_lock(&daemon->lock);
}

void daemon_unlock(struct daemon *daemon)
{
	struct outbox outbox = {NULL, &outbox.first};

	collect_readers(daemon, &outbox);
	collect_changes(daemon, &outbox);
	collect_watchers(daemon);
	collect_followers(daemon, &outbox);
	arm(daemon);
	pthread_mutex_unlock(&daemon->lock);
	answer(daemon, outbox.first);
}

/* Ends a writer's waiting with -@err; what was sent to the source goes on. Under the lock. */
static void abandon_writer(struct daemon *daemon, struct writer *writer, int err)
{
	bool mine = engine_withdraw(&daemon->engine, &writer->change);

	writer_leave(&daemon->pending, writer);
	pending_remove(&daemon->pending, &writer->pending);
	fuse_reply_err(writer->pending.request, err);
	writer->pending.request = NULL;
	if (mine)
		free(writer);
}

/* Ends whatever waits, with -@err. Under the lock. */
static void abandon(struct daemon *daemon, struct pending *pending, int err)
{
	struct follower *follower = (struct follower *)pending;
	struct reader *reader = (struct reader *)pending;

	switch ((enum pending_kind)pending->kind) {
	case PENDING_READER:
		engine_cancel(&daemon->engine, &reader->waiter, clock_ns());
		break;
	case PENDING_FOLLOWER:
		follower_leave(&daemon->pending, follower);
		break;
	case PENDING_WRITER:
		abandon_writer(daemon, (struct writer *)pending, err);
		return;
	case PENDING_PAGE:
		pending_remove(&daemon->pending, pending);
		fuse_reply_err(pending->request, err);
		pending->request = NULL; /* the thread that makes it frees it */
		return;
	}
	pending_remove(&daemon->pending, pending);
	fuse_reply_err(pending->request, err);
	free(pending);
}

bool daemon_interrupt(struct daemon *daemon, uint64_t unique)
{
	struct pending *pending;

	daemon_lock(daemon);
	pending = pending_find(&daemon->pending, unique);
	if (pending)
		abandon(daemon, pending, EINTR);
	daemon_unlock(daemon);
	return pending;
}

static uint64_t waiting_since_ns(const struct pending *pending)
{
	switch ((enum pending_kind)pending->kind) {
	case PENDING_READER:
		return ((const struct reader *)pending)->waiter.asked_ns;
	case PENDING_FOLLOWER:
		return ((const struct follower *)pending)->asked_ns;
	case PENDING_WRITER:
	case PENDING_PAGE:
		break;
	}
	return NEVER_NS;
}

/*
 * With fs.fuse.max_request_timeout or default_request_timeout set, the kernel aborts the whole mount
 * when one request waits longer: whoever waited for half of it gets EINTR and asks again.
 */
static void sweep(struct daemon *daemon, uint64_t now_ns)
{
	uint64_t half_ns = daemon->request_timeout_ns / 2;

	for (uint32_t i = 0; i < daemon->pending.size; i++) {
		struct pending *pending = daemon->pending.chains[i], *next;

		for (; pending; pending = next) {
			next = pending->next;
			if (waiting_since_ns(pending) < now_ns &&
			    now_ns - waiting_since_ns(pending) >= half_ns)
				abandon(daemon, pending, EINTR);
		}
	}
	daemon->sweep_ns = now_ns + half_ns / 4;
}

void daemon_run(struct daemon *daemon)
{
	struct writer *oldest;
	uint64_t now_ns;

	daemon_lock(daemon);
	now_ns = clock_ns();
	engine_run(&daemon->engine, now_ns);
	while ((oldest = daemon->pending.writers) && oldest->until_ns <= now_ns) {
		daemon_refused(daemon, "not acknowledged within 2 s: read it back");
		abandon_writer(daemon, oldest, ETIMEDOUT);
	}
	if (daemon->request_timeout_ns && daemon->sweep_ns <= now_ns)
		sweep(daemon, now_ns);
	/* The timer repeats itself until it is set: always, here. */
	daemon->armed_ns = NEVER_NS;
	if (due_ns(daemon) == NEVER_NS)
		loop_wake_at(NEVER_NS);
	daemon_unlock(daemon);
}

void daemon_stop(struct daemon *daemon)
{
	daemon_lock(daemon);
	daemon->stopping = true;
	for (uint32_t i = 0; i < daemon->pending.size; i++) {
		while (daemon->pending.chains[i])
			abandon(daemon, daemon->pending.chains[i], ESHUTDOWN);
	}
	daemon_unlock(daemon);
}

/* Seconds in a sysctl file; 0 where the kernel does not have it. */
static uint64_t sysctl_seconds(const char *path)
{
	unsigned long long seconds = 0;
	FILE *file = fopen(path, "re");

	if (file) {
		if (fscanf(file, "%llu", &seconds) != 1)
			seconds = 0;
		fclose(file);
	}
	return seconds;
}

static uint64_t request_timeout_ns(void)
{
	uint64_t timeout_s = sysctl_seconds("/proc/sys/fs/fuse/default_request_timeout");
	uint64_t most_s = sysctl_seconds("/proc/sys/fs/fuse/max_request_timeout");

	if (most_s && (!timeout_s || most_s < timeout_s))
		timeout_s = most_s;
	if (timeout_s)
		log_warning("the kernel ends the mount if a request takes %llu s: readers that "
			    "wait get EINTR before that",
			    (unsigned long long)timeout_s);
	return timeout_s * NSEC_PER_SEC;
}

int daemon_init(struct daemon *daemon, struct options *options, struct source *source,
		const struct owner *root)
{
	int err;

	*daemon = (struct daemon){.options = options, .source = source, .armed_ns = NEVER_NS};
	daemon->request_timeout_ns = request_timeout_ns();
	daemon->sweep_ns = daemon->request_timeout_ns ? 0 : NEVER_NS;
	clock_gettime(CLOCK_REALTIME, &daemon->began);
	pthread_mutex_init(&daemon->lock, NULL);
	pthread_cond_init(&daemon->page_made, NULL);
	err = engine_init(&daemon->engine, source, root, clock_ns());
	if (err)
		goto no_engine;
	err = pending_init(&daemon->pending);
	if (err)
		goto no_pending;
	err = node_init(daemon);
	if (err)
		goto no_nodes;
	return 0;

no_nodes:
	pending_free(&daemon->pending);
no_pending:
	engine_free(&daemon->engine);
no_engine:
	pthread_mutex_destroy(&daemon->lock);
	return err;
}

void daemon_free(struct daemon *daemon)
{
	metrics_finish(daemon);
	/* A mount that was aborted leaves its open files behind. */
	while (daemon->open)
		handle_close(daemon, daemon->open);
	node_free(daemon);
	pending_free(&daemon->pending);
	engine_free(&daemon->engine);
	pthread_mutex_destroy(&daemon->lock);
}
