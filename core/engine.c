/* engine - THE entry: one step per event, see engine.h. */
#include "engine.h"
#include "partition.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t seconds_since_start(const struct engine *engine)
{
	return (uint32_t)((engine->schedule.now_ns - engine->began_ns) / NSEC_PER_SEC);
}

int engine_init(struct engine *engine, struct source *source, const struct owner *root,
		uint64_t now_ns)
{
	*engine = (struct engine){.source = source, .began_ns = now_ns};
	engine->schedule.now_ns = now_ns;
	if (tree_init(&engine->tree))
		return -ENOMEM;
	limiter_configure(&engine->schedule, engine->tree.root, &SETTINGS_DEFAULT, NULL, true);
	engine->tree.root->uid = root->uid;
	engine->tree.root->gid = root->gid;
	engine->tree.root->access = root->access;
	return 0;
}

static void remove_all_partitions(struct schedule *schedule, struct limiter *limiter)
{
	partition_remove(schedule, limiter, 0);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		remove_all_partitions(schedule, l);
}

void engine_free(struct engine *engine)
{
	assert(!engine->waiting && !engine->line);
	remove_all_partitions(&engine->schedule, engine->tree.root);
	tree_free(&engine->tree);
}

static struct waiter *waiter_of_expiry(struct heap_node *node)
{
	return ((struct expiry *)((char *)node - offsetof(struct expiry, node)))->waiter;
}

uint64_t engine_next_ns(const struct engine *engine)
{
	const struct heap_node *deadline = engine->schedule.deadlines.root;
	const struct heap_node *expiry = engine->schedule.expiries.root;
	uint64_t next_ns = deadline ? deadline->key : NEVER_NS;

	return expiry && expiry->key < next_ns ? expiry->key : next_ns;
}

void engine_run(struct engine *engine, uint64_t now_ns)
{
	struct schedule *schedule = &engine->schedule;
	uint64_t earliest_ns = now_ns > ENGINE_CATCH_UP_NS ? now_ns - ENGINE_CATCH_UP_NS : 0;
	uint64_t next_ns;

	while ((next_ns = engine_next_ns(engine)) <= now_ns && next_ns != NEVER_NS) {
		struct heap_node *deadline = schedule->deadlines.root;
		uint64_t at_ns = next_ns > earliest_ns ? next_ns : earliest_ns;

		if (at_ns > schedule->now_ns)
			schedule->now_ns = at_ns;
		/* One who is served at the very end of the time it allowed is served. */
		if (deadline && deadline->key == next_ns) {
			heap_remove(&schedule->deadlines, deadline);
			limiter_settle(schedule, limiter_of_due(deadline));
		} else {
			limiter_expire(schedule, waiter_of_expiry(schedule->expiries.root));
		}
	}
	if (now_ns > schedule->now_ns)
		schedule->now_ns = now_ns;
}

int engine_ask(struct engine *engine, struct waiter *waiter, uint64_t within_ns, uint64_t now_ns)
{
	struct schedule *schedule = &engine->schedule;
	struct limiter *limiter = waiter->limiter;
	uint64_t expiry_ns = NEVER_NS;

	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	if (engine->waiting >= ENGINE_WAITERS_MAX)
		return -ENOSPC;
	if (waiter->expiry) {
		if (within_ns < NEVER_NS - schedule->now_ns)
			expiry_ns = schedule->now_ns + within_ns;
		if (limiter_when(schedule, limiter, waiter->tokens) > expiry_ns) {
			limiter->counters[COUNTER_REFUSED]++;
			return -EAGAIN;
		}
	}
	if (limiter_ask(schedule, waiter, expiry_ns))
		return 0;
	engine->waiting++;
	return -EINPROGRESS;
}

int engine_take(struct engine *engine, struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	return limiter_try(&engine->schedule, limiter, tokens) ? 0 : -EAGAIN;
}

int engine_try(struct engine *engine, struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	int err = engine_take(engine, limiter, tokens, now_ns);

	if (err == -EAGAIN)
		limiter->counters[COUNTER_REFUSED]++;
	return err;
}

bool engine_ready(struct engine *engine, struct limiter *limiter, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	return limiter->removed ||
	       limiter_when(&engine->schedule, limiter, 1) <= engine->schedule.now_ns;
}

void engine_stop(struct engine *engine)
{
	engine->schedule.stopped = true;
}

void engine_cancel(struct engine *engine, struct waiter *waiter, uint64_t now_ns)
{
	(void)now_ns;
	limiter_cancel(&engine->schedule, waiter);
	engine->waiting--;
}

void engine_refund(struct engine *engine, struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	if (!limiter->removed)
		limiter_refund(&engine->schedule, limiter, tokens);
}

int engine_charge(struct engine *engine, struct limiter *limiter, int64_t tokens, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	limiter_charge(&engine->schedule, limiter, tokens);
	return 0;
}

uint64_t engine_eta(struct engine *engine, struct limiter *limiter, uint64_t tokens,
		    uint64_t now_ns)
{
	uint64_t at_ns;

	engine_run(engine, now_ns);
	at_ns = limiter_when(&engine->schedule, limiter, tokens);
	return at_ns == NEVER_NS ? NEVER_NS : at_ns - engine->schedule.now_ns;
}

void engine_watch(struct engine *engine, struct limiter *limiter, struct watcher *watcher,
		  uint64_t now_ns)
{
	engine_run(engine, now_ns);
	assert(!limiter->removed);
	limiter_watch(&engine->schedule, limiter, watcher);
}

void engine_refresh(struct engine *engine, struct limiter *limiter, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	(void)limiter_when(&engine->schedule, limiter, 0);
}

__attribute__((format(printf, 3, 4))) static int refuse(struct change *change, int err,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(change->error, sizeof(change->error), format, arguments);
	va_end(arguments);
	return err;
}

/* Memory for the buckets of change->settings, so that nothing can fail once the source has it. */
static int get_buckets(struct change *change)
{
	if (!change->settings.limit_count)
		return 0;
	change->buckets = calloc(change->settings.limit_count, sizeof(*change->buckets));
	return change->buckets ? 0 : refuse(change, -ENOMEM, "no memory for the buckets");
}

static int prepare_make(struct engine *engine, struct change *change)
{
	struct limiter *parent = change->limiter;
	int err = tree_check_name(change->name, change->error);

	if (err)
		return err;
	if (tree_find(&engine->tree, parent, change->name))
		return refuse(change, -EEXIST, "'%s' is there already", change->name);
	if (engine->tree.count >= ENGINE_LIMITERS_MAX)
		return refuse(change, -ENOSPC, "there are %d limiters, the most there can be",
			      ENGINE_LIMITERS_MAX);
	if (tree_depth(parent) >= DEPTH_MAX)
		return refuse(change, -ENOSPC, "limiters are nested %d deep, the most they can be",
			      DEPTH_MAX);
	change->settings = SETTINGS_DEFAULT;
	if (change->text) {
		err = settings_parse(change->text, &change->settings, change->error);
		if (err)
			return err;
	}
	change->made = tree_new(change->name);
	if (!change->made)
		return refuse(change, -ENOMEM, "no memory for a limiter");
	return get_buckets(change);
}

static int prepare_remove(struct change *change)
{
	uint32_t waiting = change->limiter->queue.length + partition_waiting(change->limiter);

	if (change->limiter->first_child)
		return refuse(change, -EBUSY, "'%s' has limiters below it", change->limiter->name);
	if (waiting)
		return refuse(change, -EBUSY, "%u readers wait in '%s'", waiting,
			      change->limiter->name);
	return 0;
}

static int prepare_rename(struct engine *engine, struct change *change)
{
	int err = tree_check_name(change->name, change->error);

	if (err)
		return err;
	if (tree_find(&engine->tree, change->limiter->parent, change->name))
		return refuse(change, -EEXIST, "'%s' is there already", change->name);
	change->renamed = strdup(change->name);
	return change->renamed ? 0 : refuse(change, -ENOMEM, "no memory for a name");
}

static int prepare_settings(struct change *change)
{
	int err;

	limiter_settings(change->limiter, &change->settings);
	if (change->setting < SETTING_COUNT) {
		err = setting_parse((enum setting_id)change->setting, change->text,
				    &change->settings, change->error);
		if (!err)
			err = settings_check(&change->settings, change->error);
	} else {
		err = settings_parse(change->text, &change->settings, change->error);
	}
	return err ? err : get_buckets(change);
}

/* Checks @change against things as they are now and gets the memory it needs. */
static int prepare(struct engine *engine, struct change *change)
{
	if (change->limiter->removed)
		return refuse(change, -ENODEV, "the limiter is gone");
	tree_path(change->limiter, change->path);
	switch (change->kind) {
	case CHANGE_MAKE:
		return prepare_make(engine, change);
	case CHANGE_REMOVE:
		return prepare_remove(change);
	case CHANGE_RENAME:
		return prepare_rename(engine, change);
	case CHANGE_SETTINGS:
		return prepare_settings(change);
	case CHANGE_OWNER:
		limiter_settings(change->limiter, &change->settings);
		break;
	}
	return 0;
}

static void set_owner(struct limiter *limiter, const struct owner *owner)
{
	limiter->uid = owner->uid;
	limiter->gid = owner->gid;
	limiter->access = owner->access;
}

static void apply_settings(struct engine *engine, struct change *change)
{
	struct limiter *limiter = change->limiter;
	struct settings old;

	limiter_settings(limiter, &old);
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (setting_equal((enum setting_id)id, &old, &change->settings))
			continue;
		change->altered |= UINT32_C(1) << id;
		limiter->changed_s[id] = seconds_since_start(engine);
	}
	limiter_configure(&engine->schedule, limiter, &change->settings, change->buckets, true);
	change->buckets = NULL;
	partition_follow(&engine->schedule, limiter);
}

/* Puts @limiter, which is in no tree yet, below @parent with its settings and owner. */
static int adopt(struct engine *engine, struct limiter *parent, struct limiter *limiter,
		 const struct settings *settings, struct bucket *buckets, const struct owner *owner,
		 bool full)
{
	int err = tree_insert(&engine->tree, parent, limiter);

	if (err)
		return err;
	set_owner(limiter, owner);
	limiter->made_s = seconds_since_start(engine);
	for (int id = 0; id < SETTING_COUNT; id++)
		limiter->changed_s[id] = limiter->made_s;
	limiter_configure(&engine->schedule, limiter, settings, buckets, full);
	return 0;
}

static int apply(struct engine *engine, struct change *change)
{
	struct limiter *made = change->made;
	int err;

	switch (change->kind) {
	case CHANGE_MAKE:
		err = adopt(engine, change->limiter, made, &change->settings, change->buckets,
			    &change->owner, true);
		if (err)
			return err;
		change->buckets = NULL;
		break;
	case CHANGE_REMOVE:
		partition_remove(&engine->schedule, change->limiter, 0);
		limiter_evict(&engine->schedule, change->limiter);
		tree_remove(&engine->tree, change->limiter);
		break;
	case CHANGE_RENAME:
		tree_rename(&engine->tree, change->limiter, change->renamed);
		change->renamed = NULL;
		break;
	case CHANGE_SETTINGS:
		apply_settings(engine, change);
		break;
	case CHANGE_OWNER:
		set_owner(change->limiter, &change->owner);
		break;
	}
	return 0;
}

/* The first in line is done: hands it to the caller. */
static void finish(struct engine *engine, int outcome)
{
	struct change *change = engine->line;

	change->outcome = outcome;
	if (outcome && change->made) {
		limiter_free(change->made);
		change->made = NULL;
	}
	free(change->buckets);
	free(change->renamed);
	change->buckets = NULL;
	change->renamed = NULL;
	engine->line = change->next;
	if (!engine->line)
		engine->line_last = NULL;
	change->next = NULL;
	if (engine->changed)
		engine->changed_last->next = change;
	else
		engine->changed = change;
	engine->changed_last = change;
}

/* Starts the first in line, and the next if it is done at once, until the source has one. */
static void start_changes(struct engine *engine)
{
	while (engine->line && !engine->line->started) {
		struct change *change = engine->line;
		int err = prepare(engine, change);

		if (err) {
			finish(engine, err);
			continue;
		}
		change->started = true;
		/* May call engine_stored(), which finishes it; the loop then sees the next. */
		engine->storing = true;
		engine->source->store(engine->source, change);
		engine->storing = false;
	}
}

void engine_change(struct engine *engine, struct change *change, uint64_t now_ns)
{
	bool idle = !engine->line;

	engine_run(engine, now_ns);
	change->next = NULL;
	change->started = false;
	change->altered = 0;
	change->made = NULL;
	change->buckets = NULL;
	change->renamed = NULL;
	change->error[0] = '\0';
	limiter_hold(change->limiter);
	if (idle)
		engine->line = change;
	else
		engine->line_last->next = change;
	engine->line_last = change;
	if (idle)
		start_changes(engine);
}

bool engine_withdraw(struct engine *engine, struct change *change)
{
	struct change **at = &engine->line, *last = NULL;

	if (change->started)
		return false;
	while (*at != change) {
		last = *at;
		at = &last->next;
	}
	*at = change->next;
	if (engine->line_last == change)
		engine->line_last = last;
	limiter_drop(change->limiter);
	return true;
}

void engine_stored(struct engine *engine, struct change *change, int err)
{
	bool inside = engine->storing;

	assert(change == engine->line && change->started);
	if (!err)
		err = apply(engine, change);
	if (err && !change->error[0])
		refuse(change, err, "not stored: %s", strerror(-err));
	finish(engine, err);
	if (!inside)
		start_changes(engine);
}

int engine_restore(struct engine *engine, struct limiter *parent, const char *name,
		   const struct settings *settings, const struct owner *owner,
		   const struct level *levels, uint32_t level_count, struct limiter **restored)
{
	struct change change = {.settings = *settings};
	struct limiter *limiter;
	int err = tree_check_name(name, change.error);

	if (err)
		return err;
	if (tree_find(&engine->tree, parent, name))
		return -EEXIST;
	if (engine->tree.count >= ENGINE_LIMITERS_MAX || tree_depth(parent) >= DEPTH_MAX)
		return -ENOSPC;
	err = get_buckets(&change);
	if (err)
		return err;
	limiter = tree_new(name);
	if (!limiter) {
		free(change.buckets);
		return -ENOMEM;
	}
	err = adopt(engine, parent, limiter, settings, change.buckets, owner, false);
	if (err) {
		free(change.buckets);
		limiter_free(limiter);
		return err;
	}
	for (uint32_t i = 0; i < level_count && i < limiter->bucket_count; i++)
		bucket_restore(&limiter->buckets[i], levels[i].tokens, levels[i].part);
	*restored = limiter;
	return 0;
}

struct waiter *engine_done(struct engine *engine)
{
	struct waiter *waiter = queue_shift(&engine->schedule.done);

	if (waiter)
		engine->waiting--;
	return waiter;
}

struct watcher *engine_fired(struct engine *engine)
{
	struct watcher *watcher = engine->schedule.fired;

	if (watcher)
		engine->schedule.fired = watcher->next;
	return watcher;
}

struct change *engine_changed(struct engine *engine)
{
	struct change *change = engine->changed;

	if (change) {
		engine->changed = change->next;
		limiter_drop(change->limiter);
	}
	return change;
}
