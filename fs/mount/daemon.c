/* daemon - steps of the engine and what comes of them, see daemon.h. */
#include "fs/mount/daemon.h"
#include "fs/base/log.h"
#include "fs/mount/channel.h"
#include "fs/mount/node.h"
#include "fs/mount/wake.h"

#include "core/fleet/fleet.h"
#include "core/limiter/wall.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

void daemon_refused(struct daemon *daemon, uint32_t uid, const struct limiter *limiter,
		    const struct node_row *row, const char *format, ...)
{
	char text[ERROR_TEXT], file[NODE_FILE_TEXT] = "";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (limiter && !limiter->removed && !(limiter->is_key && limiter->parent->removed))
		node_file(limiter, row, file);
	refusals_add(&daemon->refusals, uid, file, text);
}

int daemon_has_room(struct daemon *daemon, uint32_t uid, enum bound_id id)
{
	char error[ERROR_TEXT];
	int err = users_check(&daemon->engine.users, uid, id, error);

	if (err)
		daemon_refused(daemon, uid, NULL, NULL, "%s", error);
	return err;
}

/* Tells whether readers, or polls, wait for something other than tokens. */
static bool has_awaiters(const struct daemon *daemon)
{
	return daemon->watched_count || pending_first(&daemon->pending, PENDING_AWAITER);
}

static uint64_t due_ns(const struct daemon *daemon)
{
	uint64_t at_ns = engine_next_ns(&daemon->engine);
	uint64_t decided_ns = pending_due_ns(&daemon->pending);

	at_ns = decided_ns < at_ns ? decided_ns : at_ns;
	if (wall_is_needed(&daemon->engine) && daemon->wall_ns < at_ns)
		at_ns = daemon->wall_ns;
	if (has_awaiters(daemon) && daemon->look_due_ns < at_ns)
		at_ns = daemon->look_due_ns;
	return daemon->pending.count && daemon->sweep_ns < at_ns ? daemon->sweep_ns : at_ns;
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
static void set_timer(struct daemon *daemon)
{
	uint64_t at_ns = due_ns(daemon);

	if (daemon->stopping || (daemon->armed_ns && at_ns >= daemon->armed_ns))
		return;
	daemon->armed_ns = at_ns;
	wake_at(at_ns);
}

void daemon_lock(struct daemon *daemon)
{
	pthread_mutex_lock(&daemon->lock);
}

/*
 * Collects what was decided, of all kinds; a kind is left alone if nothing of it can be decided.
 */
static struct pending *collect_answers(struct daemon *daemon)
{
	struct outbox outbox = {NULL, &outbox.first};

	if (engine_has_done(&daemon->engine))
		PENDING_ROWS[PENDING_READER].collect(daemon, &outbox);
	if (engine_has_changed(&daemon->engine))
		PENDING_ROWS[PENDING_WRITER].collect(daemon, &outbox);
	if (has_awaiters(daemon))
		PENDING_ROWS[PENDING_AWAITER].collect(daemon, &outbox);
	return outbox.first;
}

/* Answers what was collected, and frees it. Without the lock. */
static void send_answers(struct daemon *daemon, struct pending *pending)
{
	uint8_t channel = channel_current(); /* of a request that is yet to be answered */

	while (pending) {
		struct pending *next = pending->next;

		channel_reply_to(pending->channel);
		PENDING_ROWS[pending->kind].answer(daemon, pending);
		pending = next;
	}
	channel_reply_to(channel);
}

void daemon_unlock(struct daemon *daemon)
{
	struct pending *answers;

	if (daemon->fleet)
		daemon->use_until_ns = fleet_use_until_ns(daemon->fleet);
	if (engine_is_thawing(&daemon->engine))
		engine_go_on(&daemon->engine, clock_ns());
	/*
	 * Answers first, then the timer. An answer may come to nothing, and be another reader's
	 * turn.
	 */
	while ((answers = collect_answers(daemon))) {
		pthread_mutex_unlock(&daemon->lock);
		send_answers(daemon, answers);
		pthread_mutex_lock(&daemon->lock);
	}
	set_timer(daemon);
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

void daemon_give_up(struct daemon *daemon, struct pending *pending, int err)
{
	const struct pending_row *row = &PENDING_ROWS[pending->kind];
	enum pending_end end = PENDING_FREED;

	channel_reply_to(pending->channel);
	if (row->give_up)
		end = row->give_up(daemon, pending, err);
	if (end == PENDING_STAYS)
		return;
	pending_remove(&daemon->pending, pending);
	fuse_reply_err(pending->request, err);
	pending->request = NULL;
	if (end == PENDING_FREED)
		free(pending);
}

void daemon_interrupt(struct daemon *daemon, uint64_t unique)
{
	struct pending *pending;

	daemon_lock(daemon);
	pending = pending_find(&daemon->pending, unique);
	if (pending && !PENDING_ROWS[pending->kind].resolute)
		daemon_give_up(daemon, pending, EINTR);
	daemon_unlock(daemon);
}

/* Tells since when @pending waits; NEVER_NS: it waits for a bounded time. */
static uint64_t waiting_since_ns(const struct daemon *daemon, const struct pending *pending)
{
	const struct pending_row *row = &PENDING_ROWS[pending->kind];
	const struct queued *queued = (const struct queued *)pending;

	if (row->since_ns)
		return row->since_ns(daemon, pending);
	return row->queued && queued->until_ns == NEVER_NS ? queued->asked_ns : NEVER_NS;
}

/*
 * Gives up requests that waited too long. With fs.fuse.max_request_timeout or
 * default_request_timeout set, the kernel aborts the whole mount when one request waits longer: a
 * reader that waited half as long gets EINTR and asks again.
 */
static void sweep_requests(struct daemon *daemon, uint64_t now_ns)
{
	uint64_t half_ns = daemon->request_timeout_ns / 2;

	for (uint32_t i = 0; i < daemon->pending.size; i++) {
		struct pending *pending = daemon->pending.chains[i], *next;

		for (; pending; pending = next) {
			uint64_t since_ns = waiting_since_ns(daemon, pending);

			next = pending->next;
			if (since_ns < now_ns && now_ns - since_ns >= half_ns)
				daemon_give_up(daemon, pending, EINTR);
		}
	}
	daemon->sweep_ns = now_ns + half_ns / 4;
}

/* Gives up requests of @kind whose time is up. */
static void expire_requests(struct daemon *daemon, enum pending_kind kind, uint64_t now_ns)
{
	struct queued *oldest;

	while ((oldest = pending_first(&daemon->pending, kind)) && oldest->until_ns <= now_ns)
		PENDING_ROWS[kind].expire(daemon, oldest);
}

void daemon_tell_wall(struct daemon *daemon, uint64_t now_ns)
{
	if (!wall_is_needed(&daemon->engine))
		wall_set(&daemon->engine, clock_wall_offset_ns(), now_ns);
}

void daemon_run(struct daemon *daemon)
{
	uint64_t now_ns;

	daemon_lock(daemon);
	now_ns = clock_ns();
	engine_run(&daemon->engine, now_ns);
	if (wall_is_needed(&daemon->engine) && now_ns >= daemon->wall_ns) {
		wall_set(&daemon->engine, clock_wall_offset_ns(), now_ns);
		daemon->wall_ns = now_ns + WALL_NS;
	}
	for (int kind = 0; kind < PENDING_KIND_COUNT; kind++) {
		if (PENDING_ROWS[kind].expire)
			expire_requests(daemon, (enum pending_kind)kind, now_ns);
	}
	if (daemon->request_timeout_ns && daemon->sweep_ns <= now_ns)
		sweep_requests(daemon, now_ns);
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
			daemon_give_up(daemon, daemon->pending.chains[i], ESHUTDOWN);
	}
	daemon_unlock(daemon);
}

/* Reads seconds from a sysctl file; 0 where the kernel does not have it. */
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
		struct state *state, const struct owner *root)
{
	uint64_t seed[2];
	int err;

	*daemon = (struct daemon){.options = options,
				  .source = source,
				  .state = state,
				  .armed_ns = NEVER_NS,
				  .look_due_ns = NEVER_NS};
	daemon->request_timeout_ns = request_timeout_ns();
	daemon->sweep_ns = daemon->request_timeout_ns ? 0 : NEVER_NS;
	clock_gettime(CLOCK_REALTIME, &daemon->began);
	pthread_mutex_init(&daemon->lock, NULL);
	pthread_cond_init(&daemon->pages.ended, NULL);
	err = engine_init(&daemon->engine, source, root, clock_ns());
	if (err)
		goto no_engine;
	wall_set(&daemon->engine, clock_wall_offset_ns(), clock_ns());
	if (getrandom(seed, sizeof(seed), 0) == sizeof(seed)) {
		keys_seed(&daemon->engine.schedule, seed);
		memcpy(daemon->engine.tree.seed, seed, sizeof(seed));
	}
	memcpy(daemon->engine.users.bounds, options->bounds, sizeof(options->bounds));
	daemon->engine.users.mounter = root->uid;
	err = pending_init(&daemon->pending, &daemon->engine.users);
	if (err)
		goto no_pending;
	return 0;

no_pending:
	engine_free(&daemon->engine);
no_engine:
	pthread_mutex_destroy(&daemon->lock);
	return err;
}

void daemon_free(struct daemon *daemon)
{
	pending_free(&daemon->pending);
	engine_free(&daemon->engine);
	refusals_free(&daemon->refusals);
	pthread_mutex_destroy(&daemon->lock);
}
