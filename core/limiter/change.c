/* change - limiters are made, removed, renamed and set, see change.h. */
#include "core/limiter/change.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/partition.h"
#include "core/limiter/slots.h"
#include "core/limiter/units.h"
#include "core/values/minima.h"

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

__attribute__((format(printf, 3, 4))) static int refuse(struct change *change, int err,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(change->error, sizeof(change->error), format, arguments);
	va_end(arguments);
	return err;
}

/*
 * Gets the memory that @limiter will need for change->settings, so that nothing can fail once the
 * source has stored them.
 */
static int get_memory(struct engine *engine, struct change *change, struct limiter *limiter)
{
	uint32_t count = change->settings.limit_count;
	int err = slots_prepare(limiter, &change->settings);

	if (!err)
		err = keys_prepare(&engine->schedule, limiter, &change->settings);

	if (!err && limiter->turns.sibling)
		err = order_prepare(limiter->turns.sibling, &change->settings);
	change->pooled = pool_get(&engine->schedule.pool, &change->settings);
	if (!limiter->changed_s)
		change->changed_s = calloc(SETTING_COUNT, sizeof(*change->changed_s));
	if (count)
		change->buckets = calloc(1, units_bytes(&change->settings));
	if (learning_is_needed(&change->settings) && !limiter->learning)
		change->learning = learning_new(engine->began_ns ^ engine->schedule.now_ns);
	if (!err && change->pooled && (limiter->changed_s || change->changed_s) &&
	    (!count || change->buckets) &&
	    (!learning_is_needed(&change->settings) || limiter->learning || change->learning))
		return 0;
	return refuse(change, -ENOMEM, "no memory for the settings");
}

/* Returns the sum of the min of all children of @parent but @child. */
static u128 sum_of_minima(const struct limiter *parent, const struct limiter *child)
{
	u128 sum = 0;

	for (const struct limiter *l = parent->first_child; l; l = l->next_sibling) {
		if (l != child)
			sum += minima_term(limiter_settings(l));
	}
	return sum;
}

/* Checks that limiters in @parent may have a min of @sum together where @above has @settings. */
static int check_sum(struct change *change, const struct limiter *parent, u128 sum,
		     const struct limiter *above, const struct settings *settings)
{
	struct rate room = minima_room(settings);
	char path[PATH_TEXT], path_above[PATH_TEXT];

	if (minima_fit(sum, &room))
		return 0;
	tree_path(parent, path);
	tree_path(above, path_above);
	return minima_refuse(change->error, sum, path, path_above, &room);
}

/*
 * Checks change->settings, of @child of @parent, or of one that is to be made there (NULL): its
 * min, with those of its siblings, fits the rate of each limiter above it.
 */
static int check_min(struct change *change, const struct limiter *parent,
		     const struct limiter *child)
{
	u128 sum = sum_of_minima(parent, child) + minima_term(&change->settings);
	int err = 0;

	for (const struct limiter *above = parent; above && !err; above = above->parent)
		err = check_sum(change, parent, sum, above, limiter_settings(above));
	return err;
}

/*
 * Checks the minima that a change of settings concerns: a min that grows, and a rate that gives its
 * children less. Limiters further down are no reason to refuse a rate: they may be those of others.
 */
static int check_minima(struct change *change)
{
	const struct limiter *limiter = change->limiter;
	const struct settings *old = limiter_settings(limiter), *new = &change->settings;
	struct rate room = minima_room(old), new_room = minima_room(new);
	int err = 0;

	if (limiter->parent && rate_compare(&new->min, &old->min) > 0)
		err = check_min(change, limiter->parent, limiter);
	if (!err && rate_compare(&new_room, &room) < 0)
		err = check_sum(change, limiter, sum_of_minima(limiter, NULL), limiter, new);
	return err;
}

/* Gives a limiter the group of its parent, as in any directory that is setgid. */
static void inherit_group(const struct limiter *parent, struct owner *owner)
{
	if (!(parent->access & ACCESS_SETGID))
		return;
	owner->gid = parent->gid;
	owner->access = (uint16_t)(owner->access | ACCESS_SETGID);
}

/* Refuses settings that hosts of a fleet cannot keep together. */
static int check_fleet(const struct engine *engine, struct change *change)
{
	if (!engine->source->adopt)
		return 0;
	if (change->settings.key_concurrency != UINT32_MAX)
		return refuse(change, -EINVAL,
			      "key_concurrency is for one host alone: hosts of a fleet do not "
			      "share the slots of a key");
	if (settings_have_key_windows(&change->settings))
		return refuse(change, -ERANGE,
			      "the hosts of a fleet cannot share windows of the calendar of a key: "
			      "they are for a single host");
	if (change->settings.key_share != KEY_SHARE_LEASED)
		return 0;
	if (change->settings.key_unit_count)
		return refuse(change, -ERANGE,
			      "units of a key cannot be leased: with one key_share is "
			      "proportional");
	if (settings_have_strict_keys(&change->settings))
		return refuse(change, -ERANGE,
			      "a strict window of a key cannot be leased: with one key_share is "
			      "proportional");
	return 0;
}

static int prepare_make(struct engine *engine, struct change *change)
{
	struct limiter *parent = change->limiter;
	int err = name_check(change->name, change->error);

	if (err)
		return err;
	if (tree_find(&engine->tree, parent, change->name))
		return refuse(change, -EEXIST, "'%s' is there already", change->name);
	if (engine->tree.count >= ENGINE_LIMITERS_MAX)
		return refuse(change, -ENOSPC, "there are %d limiters, the most there can be",
			      ENGINE_LIMITERS_MAX);
	if (tree_is_used_up(&engine->tree))
		return refuse(change, -ENOSPC,
			      "all numbers for new limiters are used up until the next mount");
	err = users_check(&engine->users, change->owner.uid, BOUND_LIMITERS, change->error);
	if (err)
		return err;
	if (tree_depth(parent) >= DEPTH_MAX)
		return refuse(change, -ENOSPC, "limiters are nested %d deep, the most they can be",
			      DEPTH_MAX);
	inherit_group(parent, &change->owner);
	change->settings = SETTINGS_DEFAULT;
	if (change->text) {
		err = settings_parse(change->text, &change->settings, change->error);
		if (!err)
			err = check_fleet(engine, change);
		if (!err && change->settings.min.amount)
			err = check_min(change, parent, NULL);
		if (err)
			return err;
	}
	change->made = tree_new(parent, change->name);
	if (!change->made || (!limiter_is_root(parent) && turns_prepare(&parent->turns)) ||
	    (engine->source->adopt && engine->source->adopt(engine->source, change->made)))
		return refuse(change, -ENOMEM, "no memory for a limiter");
	return get_memory(engine, change, change->made);
}

static int prepare_remove(struct change *change)
{
	uint32_t waiting = change->limiter->turns.queue.length +
			   partition_waiting(change->limiter) + slots_waiting(change->limiter) +
			   keys_waiting(change->limiter) - change->limiter->pollers;
	uint32_t open = slots_used(change->limiter);

	if (change->limiter->first_child)
		return refuse(change, -EBUSY, "'%s' has limiters below it", change->limiter->name);
	if (waiting)
		return refuse(change, -EBUSY, "%u reader%s in '%s'", waiting,
			      waiting == 1 ? " waits" : "s wait", change->limiter->name);
	if (open)
		return refuse(change, -EBUSY, "%u slot%s of '%s' %s open", open,
			      open == 1 ? "" : "s", change->limiter->name,
			      open == 1 ? "is" : "are");
	return 0;
}

static int prepare_rename(struct engine *engine, struct change *change)
{
	int err = name_check(change->name, change->error);

	if (err)
		return err;
	if (tree_find(&engine->tree, change->limiter->parent, change->name))
		return refuse(change, -EEXIST, "'%s' is there already", change->name);
	change->renamed = strdup(change->name);
	return change->renamed ? 0 : refuse(change, -ENOMEM, "no memory for a name");
}

/* Checks that the user of @change may alter what it alters. */
static int check_denied(struct change *change)
{
	const struct settings *old = limiter_settings(change->limiter);

	for (int id = 0; id < SETTING_COUNT; id++) {
		if (change->denied >> id & 1 &&
		    !setting_equal((enum setting_id)id, old, &change->settings))
			return refuse(change, -EPERM,
				      "%s is set by those who may tune the limiter above",
				      setting_name((enum setting_id)id));
	}
	return 0;
}

/* Overrides a value of the key change->name, or takes that back. */
static int override_key(struct change *change)
{
	enum override_value value = change->setting == CHANGE_KEY_RATE ? OVERRIDE_RATE
								       : OVERRIDE_BURST;
	struct override_edits edits = {.text = NULL};
	int err = overrides_edit(&edits, change->name, value, change->text, change->error);

	if (!err)
		err = overrides_apply(&edits, &change->settings.overrides, change->error);
	overrides_end_edits(&edits);
	return err;
}

static int prepare_settings(struct engine *engine, struct change *change)
{
	int err;

	change->settings = settings_hold(limiter_settings(change->limiter));
	if (change->setting < SETTING_COUNT) {
		err = setting_parse((enum setting_id)change->setting, change->text,
				    &change->settings, change->error);
		if (!err)
			err = settings_check(&change->settings, change->error);
	} else if (change->setting == CHANGE_CONFIG) {
		err = settings_parse(change->text, &change->settings, change->error);
	} else {
		err = override_key(change);
		if (!err)
			err = settings_check(&change->settings, change->error);
	}
	if (!err)
		err = check_fleet(engine, change);
	if (!err)
		err = check_denied(change);
	if (!err)
		err = check_minima(change);
	return err ? err : get_memory(engine, change, change->limiter);
}

/* Checks @change against things as they are now and gets the memory it needs. */
static int prepare_change(struct engine *engine, struct change *change)
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
		return prepare_settings(engine, change);
	case CHANGE_OWNER:
		change->settings = settings_hold(limiter_settings(change->limiter));
		if (change->unchanged & OWNER_UID)
			change->owner.uid = change->limiter->uid;
		if (change->unchanged & OWNER_GID)
			change->owner.gid = change->limiter->gid;
		if (change->unchanged & OWNER_ACCESS)
			change->owner.access = change->limiter->access;
		break;
	}
	return 0;
}

static void set_owner(struct engine *engine, struct limiter *limiter, const struct owner *owner)
{
	if (!limiter_is_root(limiter) && limiter->uid != owner->uid) {
		users_drop(&engine->users, limiter->uid, BOUND_LIMITERS);
		users_add(&engine->users, owner->uid, BOUND_LIMITERS);
	}
	limiter->uid = owner->uid;
	limiter->gid = owner->gid;
	limiter->access = owner->access;
}

/* Hands the settings and the memory of @change over to @limiter. */
static void configure_limiter(struct engine *engine, struct change *change, struct limiter *limiter,
			      bool full)
{
	uint32_t shares;

	/* It may have begun to learn since the change was prepared. */
	if (!limiter->learning) {
		limiter->learning = change->learning;
		change->learning = NULL;
	}
	engine->tree.partitions -= partition_count(limiter, &shares);
	limiter_configure(&engine->schedule, limiter, change->pooled, change->buckets, full);
	engine->tree.partitions += partition_count(limiter, &shares);
	change->pooled = NULL;
	change->buckets = NULL;
}

/* Notes that settings were altered at @now_s, with memory only if they were not made so. */
static void note_time(struct change *change, struct limiter *limiter, uint32_t now_s)
{
	if (!change->altered || (!limiter->changed_s && now_s == limiter->made_s))
		return;
	if (!limiter->changed_s) {
		limiter->changed_s = change->changed_s;
		change->changed_s = NULL;
		for (int id = 0; id < SETTING_COUNT; id++)
			limiter->changed_s[id] = limiter->made_s;
	}
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (change->altered >> id & 1)
			limiter->changed_s[id] = now_s;
	}
}

static void apply_settings(struct engine *engine, struct change *change)
{
	struct limiter *limiter = change->limiter;
	const struct settings *old = limiter_settings(limiter);

	for (int id = 0; id < SETTING_COUNT && old != change->pooled; id++) {
		if (!setting_equal((enum setting_id)id, old, &change->settings))
			change->altered |= UINT32_C(1) << id;
	}
	if (!overrides_equal(old->overrides, change->settings.overrides))
		change->altered |= ALTERED_OVERRIDES;
	change->overrides = overrides_count(change->settings.overrides);
	note_time(change, limiter, seconds_since_start(engine));
	configure_limiter(engine, change, limiter, true);
}

/* Puts @limiter, which is in no tree yet, below @parent with its settings and owner. */
static void adopt_limiter(struct engine *engine, struct limiter *parent, struct limiter *limiter,
			  struct change *change, const struct owner *owner, bool full)
{
	tree_insert(&engine->tree, parent, limiter);
	users_add(&engine->users, limiter->uid, BOUND_LIMITERS);
	set_owner(engine, limiter, owner);
	limiter->made_s = seconds_since_start(engine);
	configure_limiter(engine, change, limiter, full);
}

static void apply_change(struct engine *engine, struct change *change)
{
	switch (change->kind) {
	case CHANGE_MAKE:
		adopt_limiter(engine, change->limiter, change->made, change, &change->owner, true);
		break;
	case CHANGE_REMOVE:
		change_apply_removal(engine, change->limiter);
		break;
	case CHANGE_RENAME:
		tree_rename(&engine->tree, change->limiter, change->renamed);
		change->renamed = NULL;
		break;
	case CHANGE_SETTINGS:
		apply_settings(engine, change);
		break;
	case CHANGE_OWNER:
		set_owner(engine, change->limiter, &change->owner);
		break;
	}
}

/* Frees what get_memory() got and no limiter has. */
static void free_memory(struct change *change)
{
	free(change->buckets);
	learning_free(change->learning);
	free(change->changed_s);
	pool_drop(change->pooled);
	settings_drop(&change->settings);
	change->buckets = NULL;
	change->learning = NULL;
	change->changed_s = NULL;
	change->pooled = NULL;
}

/* Frees what was got for a change that was not applied. */
static void unprepare_change(struct change *change)
{
	if (change->made)
		limiter_free(change->made);
	free(change->renamed);
	change->made = NULL;
	change->renamed = NULL;
	free_memory(change);
}

/* Hands the change whose turn it is, which is done, to the caller. */
static void finish_change(struct engine *engine, int outcome)
{
	struct change *change = engine->change;

	change->outcome = outcome;
	if (outcome)
		unprepare_change(change);
	free_memory(change);
	engine->change = NULL;
	list_append(&engine->changed, &change->line);
}

/* Returns the change whose turn it is, which the source has or is to have; NULL: there is none. */
static struct change *next_change(struct engine *engine)
{
	if (engine->change)
		return engine->change;
	engine->change = list_entry(lanes_take(&engine->line), struct change, line);
	if (engine->change)
		engine->change->waits = false;
	return engine->change;
}

/* Starts a change, and the next if it is done at once, until the source has one. */
static void start_changes(struct engine *engine)
{
	struct change *change;

	while ((change = next_change(engine)) && !change->started) {
		int err = prepare_change(engine, change);

		if (err) {
			finish_change(engine, err);
			continue;
		}
		change->started = true;
		/* May call change_stored(), which finishes it; the loop then sees the next. */
		engine->storing = true;
		engine->source->store(engine->source, change);
		engine->storing = false;
	}
}

void change_begin(struct engine *engine, struct change *change, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	change->started = false;
	change->altered = 0;
	change->made = NULL;
	change->buckets = NULL;
	change->learning = NULL;
	change->changed_s = NULL;
	change->pooled = NULL;
	change->renamed = NULL;
	change->settings.overrides = NULL;
	change->error[0] = '\0';
	limiter_hold(change->limiter);
	change->waits = true;
	lanes_append(&engine->line, change->asker, &change->line);
	if (!engine->change)
		start_changes(engine);
}

bool change_withdraw(struct engine *engine, struct change *change)
{
	if (!change->waits)
		return false;
	change->waits = false;
	lanes_remove(&engine->line, change->asker, &change->line);
	limiter_drop(change->limiter);
	return true;
}

void change_stored(struct engine *engine, struct change *change, int err)
{
	bool inside = engine->storing;

	assert(change == engine->change && change->started);
	if (!err)
		apply_change(engine, change);
	if (err && !change->error[0])
		refuse(change, err, "not stored: %s", strerror(-err));
	finish_change(engine, err);
	if (!inside)
		start_changes(engine);
}

void change_restart(struct engine *engine, struct change *change)
{
	assert(change == engine->change && change->started);
	unprepare_change(change);
	change->error[0] = '\0';
	change->started = false;
	if (!engine->storing)
		start_changes(engine);
}

int change_apply_settings(struct engine *engine, struct limiter *limiter,
			  const struct settings *settings, uint32_t *altered)
{
	struct change change = {.limiter = limiter, .settings = settings_hold(settings)};
	int err = get_memory(engine, &change, limiter);

	if (err) {
		unprepare_change(&change);
		return err;
	}
	apply_settings(engine, &change);
	free_memory(&change);
	*altered = change.altered;
	return 0;
}

void change_apply_owner(struct engine *engine, struct limiter *limiter, const struct owner *owner)
{
	set_owner(engine, limiter, owner);
}

int change_apply_name(struct engine *engine, struct limiter *limiter, const char *name)
{
	char *copy;

	if (tree_find(&engine->tree, limiter->parent, name))
		return -EEXIST;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	tree_rename(&engine->tree, limiter, copy);
	return 0;
}

void change_apply_removal(struct engine *engine, struct limiter *limiter)
{
	partition_remove_all(&engine->schedule, limiter);
	keys_end_windows(limiter);
	keys_remove(&engine->schedule, limiter);
	limiter_evict(&engine->schedule, limiter);
	users_drop(&engine->users, limiter->uid, BOUND_LIMITERS);
	tree_remove(&engine->tree, limiter);
}

int change_restore(struct engine *engine, struct limiter *parent, const char *name,
		   const struct settings *settings, const struct owner *owner,
		   const struct level *levels, uint32_t level_count, struct limiter **restored)
{
	struct change change = {.settings = SETTINGS_DEFAULT};
	struct limiter *limiter;
	int err = name_check(name, change.error);

	if (err)
		return err;
	if (tree_find(&engine->tree, parent, name))
		return -EEXIST;
	if (engine->tree.count >= ENGINE_LIMITERS_MAX || engine->tree.last_id == UINT32_MAX ||
	    tree_depth(parent) >= DEPTH_MAX)
		return -ENOSPC;
	change.settings = settings_hold(settings);
	change.made = limiter = tree_new(parent, name);
	if (!limiter || (!limiter_is_root(parent) && turns_prepare(&parent->turns)) ||
	    (engine->source->adopt && engine->source->adopt(engine->source, limiter)) ||
	    get_memory(engine, &change, limiter)) {
		unprepare_change(&change);
		return -ENOMEM;
	}
	adopt_limiter(engine, parent, limiter, &change, owner, false);
	for (uint32_t i = 0; i < level_count && i < limiter->bucket_count; i++)
		bucket_restore(&limiter->buckets[i], levels[i].tokens, levels[i].part);
	free_memory(&change);
	*restored = limiter;
	return 0;
}
