/* daemon - steps of the engine and what comes of them, see daemon.h. */
#include "fs/mount/daemon.h"
#include "fs/base/log.h"
#include "fs/mount/answer.h"
#include "fs/mount/channel.h"
#include "fs/mount/handle.h"
#include "fs/mount/loop.h"
#include "fs/state/state.h"

#include "core/fleet/fleet.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void daemon_refused(struct daemon *daemon, uint32_t uid, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	refusals_add(&daemon->refusals, uid, text);
}

int daemon_has_room(struct daemon *daemon, uint32_t uid, enum bound_id id)
{
	char error[ERROR_TEXT];
	int err = users_check(&daemon->engine.users, uid, id, error);

	if (err)
		daemon_refused(daemon, uid, "%s", error);
	return err;
}

static uint64_t due_ns(const struct daemon *daemon)
{
	const struct writer *oldest = daemon->pending.writers;
	uint64_t at_ns = engine_next_ns(&daemon->engine);

	if (oldest && oldest->until_ns < at_ns)
		at_ns = oldest->until_ns;
	for (const struct looker *l = daemon->pending.lookers; l; l = l->next)
		at_ns = l->until_ns < at_ns ? l->until_ns : at_ns;
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

/* Sets the timer if it went off, or if something is due before it does. */
static void arm(struct daemon *daemon)
{
	uint64_t at_ns = due_ns(daemon);

	if (daemon->stopping || (daemon->armed_ns && at_ns >= daemon->armed_ns))
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
	struct pending *answers;

	if (daemon->fleet)
		daemon->use_until_ns = fleet_use_until_ns(daemon->fleet);
	/* Who is due first, then the timer. An answer may come to nothing, and be another's turn. */
	while ((answers = answers_collect(daemon))) {
		pthread_mutex_unlock(&daemon->lock);
		answers_send(daemon, answers);
		pthread_mutex_lock(&daemon->lock);
	}
	arm(daemon);
	pthread_mutex_unlock(&daemon->lock);
}

void daemon_delivered(struct daemon *daemon)
{
	if (!daemon->fleet || clock_ns() <= daemon->use_until_ns)
		return;
	pthread_mutex_lock(&daemon->lock);
	fleet_was_late(daemon->fleet);
	pthread_mutex_unlock(&daemon->lock);
}

/* Ends a writer's waiting with -@err; what was sent to the source goes on. Under the lock. */
static void abandon_writer(struct daemon *daemon, struct writer *writer, int err)
{
	bool mine = change_withdraw(&daemon->engine, &writer->change);

	channel_reply_to(writer->pending.channel);
	writer_leave(&daemon->pending, writer);
	pending_remove(&daemon->pending, &writer->pending);
	fuse_reply_err(writer->pending.request, err);
	writer->pending.request = NULL;
	if (mine)
		free(writer);
}

/* Takes @reader, which waits, out of its queue. Interrupted it may come back to its place. */
static void leave_queue(struct daemon *daemon, struct reader *reader, int err)
{
	const struct pending *pending = &reader->pending;
	const struct handle *handle = reader->waiter.is_opener ? NULL : reader->handle;
	struct asker asker = handle_asker(handle, reader->pid, pending->uid, pending->unique);

	if (err == EINTR)
		engine_interrupt(&daemon->engine, &reader->waiter, &asker, clock_ns());
	else
		engine_cancel(&daemon->engine, &reader->waiter);
}

/* Ends whatever waits, with -@err. Under the lock. */
static void abandon(struct daemon *daemon, struct pending *pending, int err)
{
	struct follower *follower = (struct follower *)pending;
	struct reader *reader = (struct reader *)pending;

	channel_reply_to(pending->channel);
	switch ((enum pending_kind)pending->kind) {
	case PENDING_READER:
		if (reader->waiter.outcome != -EINPROGRESS)
			return; /* done in this very step: about to be answered */
		leave_queue(daemon, reader, err);
		state_taken(daemon->state, reader->handle->limiter);
		break;
	case PENDING_OPENER:
		if (reader->waiter.outcome != -EINPROGRESS)
			return;
		leave_queue(daemon, reader, err);
		handle_close(daemon, reader->handle);
		break;
	case PENDING_FOLLOWER:
		follower_leave(&daemon->pending, follower);
		break;
	case PENDING_LOOKER:
		looker_leave(&daemon->pending, (struct looker *)pending);
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

void daemon_interrupt(struct daemon *daemon, uint64_t unique)
{
	struct pending *pending;

	daemon_lock(daemon);
	pending = pending_find(&daemon->pending, unique);
	/*
	 * A change is bounded in time, and interrupted it would leave the writer not knowing
	 * whether it was made.
	 */
	if (pending && pending->kind != PENDING_WRITER)
		abandon(daemon, pending, EINTR);
	daemon_unlock(daemon);
}

static uint64_t waiting_since_ns(const struct daemon *daemon, const struct pending *pending)
{
	switch ((enum pending_kind)pending->kind) {
	case PENDING_READER:
	case PENDING_OPENER:
		return parking_since_ns(&daemon->engine.schedule.parking,
					&((const struct reader *)pending)->waiter);
	case PENDING_FOLLOWER:
		return ((const struct follower *)pending)->asked_ns;
	case PENDING_WRITER:
	case PENDING_PAGE:
	case PENDING_LOOKER:
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
			if (waiting_since_ns(daemon, pending) < now_ns &&
			    now_ns - waiting_since_ns(daemon, pending) >= half_ns)
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
		refusals_add(&daemon->refusals, oldest->pending.uid,
			     "not acknowledged within 2 s: read it back");
		abandon_writer(daemon, oldest, ETIMEDOUT);
	}
	if (daemon->request_timeout_ns && daemon->sweep_ns <= now_ns)
		sweep(daemon, now_ns);
	daemon->armed_ns = 0; /* the timer repeats itself until it is set: this has it set */
	daemon_unlock(daemon);
}

void daemon_stop(struct daemon *daemon)
{
	daemon_lock(daemon);
	daemon->stopping = true;
	engine_stop(&daemon->engine);
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

static void row_path(unsigned int row, char path[STATE_ROW_TEXT])
{
	node_path(&NODES[row], path);
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
		struct state *state, const struct owner *root)
{
	uint64_t seed[2];
	int err;

	*daemon = (struct daemon){
		.options = options, .source = source, .state = state, .armed_ns = NEVER_NS};
	daemon->request_timeout_ns = request_timeout_ns();
	daemon->sweep_ns = daemon->request_timeout_ns ? 0 : NEVER_NS;
	clock_gettime(CLOCK_REALTIME, &daemon->began);
	pthread_mutex_init(&daemon->lock, NULL);
	pthread_cond_init(&daemon->page_made, NULL);
	err = engine_init(&daemon->engine, source, root, clock_ns());
	if (err)
		goto no_engine;
	if (getrandom(seed, sizeof(seed), 0) == sizeof(seed)) {
		keys_seed(&daemon->engine.schedule, seed);
		memcpy(daemon->engine.tree.seed, seed, sizeof(seed));
	}
	memcpy(daemon->engine.users.bounds, options->bounds, sizeof(options->bounds));
	daemon->engine.users.mounter = root->uid;
	err = pending_init(&daemon->pending, &daemon->engine.users);
	if (err)
		goto no_pending;
	state_attach(state,
		     &(struct state_server){&daemon->engine, &daemon->began, NODE_COUNT, row_path});
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
	/* A mount that was aborted leaves its open files behind. */
	while (daemon->open) {
		/* Its source is closed: the engine takes no step. */
		daemon->open->slot.limiter = NULL;
		if (daemon->open->polling)
			poller_leave(&daemon->engine.schedule, &daemon->open->polling->poller);
		handle_close(daemon, daemon->open);
	}
	free(daemon->handles.at);
	free(daemon->handles.free);
	node_free(daemon);
	pending_free(&daemon->pending);
	engine_free(&daemon->engine);
	refusals_free(&daemon->refusals);
	pthread_mutex_destroy(&daemon->lock);
}
