/*
 * apply - what was read of other hosts' settings takes effect here, all of it together: first those
 * that are gone, then names, then the rest in order of ids, since a parent is older than its children.
 */
#include "core/fleet/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_id(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static void tell(struct fleet *fleet, struct limiter *limiter, enum fleet_applied applied,
		 const char *text)
{
	if (fleet->listener && fleet->listener->applied)
		fleet->listener->applied(fleet->listener, limiter, applied, text);
}

static void changed(struct fleet *fleet, struct limiter *limiter, bool removed)
{
	if (fleet->listener && fleet->listener->changed)
		fleet->listener->changed(fleet->listener, limiter, removed);
}

static void remove_limiter(struct fleet *fleet, struct holding *holding)
{
	struct limiter *limiter = holding->limiter;
	char path[PATH_TEXT];

	/* Its children are gone too, or somebody deleted nodes by hand. */
	while (limiter->first_child)
		remove_limiter(fleet, limiter->first_child->holding);
	tree_path(limiter, path);
	names_leave(fleet, holding->id, path);
	tell(fleet, limiter, FLEET_REMOVED, "removed");
	changed(fleet, limiter, true);
	holding_gone(fleet, holding);
	change_apply_removal(fleet->engine, limiter);
}

/* A limiter, and not the name of one that is gone. */
static bool is_there(const struct found *found)
{
	return found->there && (found->bad || !found->record.removed);
}

/*
 * Tells whether @found is the limiter of @holding: where an election took back its making, its id
 * was given again. A node that was made anew with its name is its own.
 */
static bool is_same(const struct holding *holding, const struct found *found)
{
	const struct holding *above = holding->limiter->parent->holding;

	return found->bad || !holding->made_zxid || holding->made_zxid == found->made_zxid ||
	       (found->record.parent == (above ? above->id : 0) &&
		!strcmp(found->record.name, holding->limiter->name));
}

static bool is_found(const struct fleet *fleet, const struct holding *holding)
{
	struct found key = {.id = holding->id};
	const struct found *found = bsearch(&key, fleet->found, fleet->found_count, sizeof(key),
					    by_id);

	return found && is_there(found) && is_same(holding, found);
}

/* A name that was left, of a limiter that may never have been known here. */
static void note_left(struct fleet *fleet, const struct found *found)
{
	const struct record *record = &found->record;
	const struct holding *parent = record->parent ? holding_of_id(fleet, record->parent) : NULL;
	const char *gone = record->parent && !parent ? names_of(fleet, record->parent) : NULL;
	char path[2 * PATH_TEXT];
	size_t length;

	path[0] = '\0';
	if (parent)
		tree_path(parent->limiter, path);
	else if (gone)
		snprintf(path, PATH_TEXT, "%s", gone);
	else if (record->parent)
		names_lose(fleet);
	length = strlen(path);
	snprintf(path + length, NAME_BYTES_MAX + 2, "%s%s", length ? "/" : "", record->name);
	names_leave(fleet, record->removed, path);
	/* As a host comes: the one that removed it may have died since. */
	if (fleet->state == FLEET_LOADING)
		sweep_add(fleet, found->id);
}

static void apply_removals(struct fleet *fleet)
{
	struct holding *next;

	for (uint32_t i = 0; i < fleet->found_count && !fleet->follow_all; i++) {
		struct holding *holding = holding_of_id(fleet, fleet->found[i].id);

		if (holding && !is_there(&fleet->found[i]))
			remove_limiter(fleet, holding);
	}
	if (!fleet->follow_all)
		return;
	/* With one its children may go, so that it begins anew after each. */
	for (struct holding *h = fleet->holdings; h; h = next) {
		next = h->next;
		if (h->limiter->removed || is_found(fleet, h))
			continue;
		remove_limiter(fleet, h);
		next = fleet->holdings;
	}
}

static void tell_renamed(struct fleet *fleet, struct limiter *limiter, const char *name)
{
	char path[PATH_TEXT], line[PATH_TEXT + NAME_BYTES_MAX + 16];

	tree_path(limiter->parent, path);
	snprintf(line, sizeof(line), "renamed %s%s%s", path, *path ? "/" : "", name);
	tell(fleet, limiter, FLEET_RENAMED, line);
}

/* First names that nobody has, so that they can change places. */
static void apply_names(struct fleet *fleet)
{
	char name[NAME_BYTES_MAX + 1];

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < fleet->found_count; i++) {
			const struct found *found = &fleet->found[i];
			struct holding *holding = holding_of_id(fleet, found->id);

			if (!holding || !is_there(found) || found->bad ||
			    !strcmp(holding->limiter->name, found->record.name))
				continue;
			snprintf(name, sizeof(name), "%s", found->record.name);
			if (!pass) {
				char path[PATH_TEXT];

				tree_path(holding->limiter, path);
				names_leave(fleet, holding->id, path);
				tell_renamed(fleet, holding->limiter, name);
				snprintf(name, sizeof(name), "\001%llu",
					 (unsigned long long)found->id);
			}
			if (change_apply_name(fleet->engine, holding->limiter, name))
				fleet_tell(fleet, FLEET_SPOILT,
					   "limiter %llu cannot be named '%.100s'",
					   (unsigned long long)found->id, name);
			if (pass)
				changed(fleet, holding->limiter, false);
		}
	}
}

static void note_node(struct holding *holding, const struct found *found)
{
	holding->version = found->version;
	holding->made_zxid = found->made_zxid;
	holding->changed_zxid = found->changed_zxid;
}

/* Tells whether another write than the one that is known made the node of @holding as it is. */
static bool is_rewritten(const struct holding *holding, const struct found *found)
{
	return holding->changed_zxid && holding->changed_zxid != found->changed_zxid;
}

/*
 * An election may have taken back the settings that @holding has: then those that were written
 * before it, or after it, do not name them.
 */
static void heed_before(struct fleet *fleet, struct holding *holding, const struct record *record)
{
	struct record own = *record;

	if (fleet->follow_all && !before_is_alike(holding->settings, &record->settings)) {
		(void)before_name(fleet, holding, &own);
		record = &own;
	}
	before_heed(fleet, holding, record);
}

static void tune(struct fleet *fleet, struct holding *holding, const struct found *found)
{
	const struct owner *owner = &found->record.owner;
	struct limiter *limiter = holding->limiter;
	uint32_t altered = 0;
	char line[NAME_BYTES_MAX + SETTING_TEXT];

	if (holding->version == found->version && holding->generation == found->record.generation &&
	    !is_rewritten(holding, found)) {
		note_node(holding, found);
		return;
	}
	heed_before(fleet, holding, &found->record);
	if (change_apply_settings(fleet->engine, limiter, &found->record.settings, &altered)) {
		fleet_tell(fleet, FLEET_SPOILT, "no memory for the settings of limiter %llu",
			   (unsigned long long)found->id);
		fleet->follow_failed = true;
		return;
	}
	if (limiter->uid != owner->uid || limiter->gid != owner->gid ||
	    limiter->access != owner->access) {
		change_apply_owner(fleet->engine, limiter, owner);
		snprintf(line, sizeof(line), "uid %u gid %u access %o", owner->uid, owner->gid,
			 (unsigned int)owner->access);
		tell(fleet, limiter, FLEET_OWNED, line);
	}
	for (int id = 0; id < SETTING_COUNT; id++) {
		char value[SETTING_TEXT];

		if (!(altered >> id & 1))
			continue;
		setting_print((enum setting_id)id, &found->record.settings, value);
		snprintf(line, sizeof(line), "%s %s", setting_name((enum setting_id)id), value);
		tell(fleet, limiter, FLEET_SET, line);
	}
	note_node(holding, found);
	holding->generation = found->record.generation;
	holding->saved = found->record.saved;
	changed(fleet, limiter, false);
	fleet_reshare(fleet, holding);
	demand_rouse(fleet, holding, false);
}

static void make(struct fleet *fleet, const struct found *found)
{
	const struct record *record = &found->record;
	struct holding *above = record->parent ? holding_of_id(fleet, record->parent) : NULL;
	struct limiter *parent = above ? above->limiter : fleet->engine->tree.root, *made;
	int err = record->parent && !above ? -ENOENT : 0;

	if (!err)
		err = change_restore(fleet->engine, parent, record->name, &record->settings,
				     &record->owner, NULL, 0, &made);
	if (err) {
		fleet_tell(fleet, FLEET_SPOILT, "limiter %llu '%.100s' refused: %s",
			   (unsigned long long)found->id, record->name, strerror(-err));
		return;
	}
	holding_enter(fleet, made->holding, found->id);
	note_node(made->holding, found);
	made->holding->generation = record->generation;
	made->holding->saved = record->saved;
	before_heed(fleet, made->holding, record);
	changed(fleet, made, false);
	fleet_reshare(fleet, made->holding);
	if (fleet->state == FLEET_READY)
		tell(fleet, made, FLEET_MADE, "created");
	demand_rouse(fleet, made->holding, false);
}

static void apply_root(struct fleet *fleet, const struct found *found)
{
	struct limiter *root = fleet->engine->tree.root;

	fleet->root_version = found->there ? found->version : -1;
	if (!found->there)
		return;
	fleet->root_generation = found->record.generation;
	change_apply_owner(fleet->engine, root, &found->record.owner);
	changed(fleet, root, false);
}

/* Constants are what safety rests on: while it runs a host only becomes more careful. */
static void apply_constants(struct fleet *fleet)
{
	const struct fleet_constants *new = &fleet->follow_globals.constants;
	struct fleet_constants *now = &fleet->constants;

	if (!fleet->constants_known) {
		*now = *new;
		fleet->constants_known = true;
		return;
	}
	if (new->right_ns < now->right_ns)
		now->right_ns = new->right_ns;
	if (new->quarantine_ns > now->quarantine_ns)
		now->quarantine_ns = new->quarantine_ns;
	now->renewal_ns = new->renewal_ns < now->right_ns ? new->renewal_ns : now->renewal_ns;
	now->session_ns = new->session_ns;
}

void apply_found(struct fleet *fleet)
{
	qsort(fleet->found, fleet->found_count, sizeof(*fleet->found), by_id);
	apply_constants(fleet);
	apply_removals(fleet);
	apply_names(fleet);
	for (uint32_t i = 0; i < fleet->found_count; i++) {
		const struct found *found = &fleet->found[i];
		struct holding *holding = found->id ? holding_of_id(fleet, found->id) : NULL;

		if (found->id > fleet->follow_globals.last_id)
			fleet->follow_globals.last_id = found->id;
		/* The next write to it says again what is known here. */
		if (found->bad && holding)
			holding->version = found->version;
		if (found->bad)
			continue;
		if (!found->id)
			apply_root(fleet, found);
		else if (found->there && found->record.removed)
			note_left(fleet, found);
		else if (found->there && holding)
			tune(fleet, holding, found);
		else if (found->there)
			make(fleet, found);
	}
}
