/* apply - what was read of other hosts' settings takes effect here, see apply.h. */
#include "core/fleet/apply.h"
#include "core/fleet/baseline.h"
#include "core/fleet/former_names.h"
#include "core/fleet/garbage.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/recut.h"
#include "core/fleet/release.h"
#include "core/fleet/room.h"
#include "core/fleet/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The nodes that were read, all together. */
struct batch {
	struct found *found; /* borrowed; in the order of ids */
	uint32_t count;
	struct globals *globals;
	bool failed; /* there was no memory for some of it */
};

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
	former_names_add(fleet, holding->id, path);
	tell(fleet, limiter, FLEET_REMOVED, "removed");
	changed(fleet, limiter, true);
	apply_gone(fleet, holding);
	change_apply_removal(fleet->engine, limiter);
}

void apply_gone(struct fleet *fleet, struct holding *holding)
{
	leases_drop(fleet, holding);
	room_unwatch_agreed_rate(fleet, holding);
	room_unwatch_told(fleet, holding);
	room_unwatch_claims(fleet, holding);
	holdings_unname(fleet, holding);
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

static bool is_found(const struct batch *batch, const struct holding *holding)
{
	struct found key = {.id = holding->id};
	const struct found *found = bsearch(&key, batch->found, batch->count, sizeof(key), by_id);

	return found && is_there(found) && is_same(holding, found);
}

/* A name that was left, of a limiter that may never have been known here. */
static void note_left(struct fleet *fleet, const struct found *found)
{
	const struct record *record = &found->record;
	const struct holding *parent = record->parent ? holdings_find(fleet, record->parent) : NULL;
	const char *gone = record->parent && !parent ? former_names_of(fleet, record->parent)
						     : NULL;
	char path[2 * PATH_TEXT];
	size_t length;

	path[0] = '\0';
	if (parent)
		tree_path(parent->limiter, path);
	else if (gone)
		snprintf(path, PATH_TEXT, "%s", gone);
	else if (record->parent)
		former_names_note_unknown(fleet);
	length = strlen(path);
	snprintf(path + length, NAME_BYTES_MAX + 2, "%s%s", length ? "/" : "", record->name);
	former_names_add(fleet, record->removed, path);
	/* As a host comes: the one that removed it may have died since. */
	if (session_state(fleet) == FLEET_LOADING)
		garbage_add(fleet, found->id, record->cut);
}

static void apply_removals(struct fleet *fleet, const struct batch *batch)
{
	struct holding *next;

	for (uint32_t i = 0; i < batch->count && !baseline_is_void(fleet); i++) {
		struct holding *holding = holdings_find(fleet, batch->found[i].id);

		if (holding && !is_there(&batch->found[i]))
			remove_limiter(fleet, holding);
	}
	if (!baseline_is_void(fleet))
		return;
	/* With one its children may go, so that it begins anew after each. */
	for (struct holding *h = holdings_first(fleet); h; h = next) {
		next = h->next;
		if (h->limiter->removed || is_found(batch, h))
			continue;
		remove_limiter(fleet, h);
		next = holdings_first(fleet);
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
static void apply_names(struct fleet *fleet, const struct batch *batch)
{
	char name[NAME_BYTES_MAX + 1];

	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t i = 0; i < batch->count; i++) {
			const struct found *found = &batch->found[i];
			struct holding *holding = holdings_find(fleet, found->id);

			if (!holding || !is_there(found) || found->bad ||
			    !strcmp(holding->limiter->name, found->record.name))
				continue;
			snprintf(name, sizeof(name), "%s", found->record.name);
			if (!pass) {
				char path[PATH_TEXT];

				tree_path(holding->limiter, path);
				former_names_add(fleet, holding->id, path);
				tell_renamed(fleet, holding->limiter, name);
				snprintf(name, sizeof(name), "\001%llu",
					 (unsigned long long)found->id);
			}
			holding->maker = MAKER_UNKNOWN;
			if (change_apply_name(fleet->engine, holding->limiter, name))
				fleet_tell(fleet, FLEET_SPOILT,
					   "limiter %llu cannot be named '%.100s'",
					   (unsigned long long)found->id, name);
			if (pass)
				changed(fleet, holding->limiter, false);
		}
	}
}

/*
 * Finds out whether this host made the limiter with @found. Later writers say nothing of the first,
 * and a host that begins a session is a new writer.
 */
static enum holding_maker maker_of(const struct fleet *fleet, const struct holding *holding,
				   const struct found *found)
{
	bool is_known = !holding->made_zxid || holding->made_zxid == found->made_zxid;

	if (is_known && holding->maker != MAKER_UNKNOWN)
		return holding->maker;
	if (found->record.generation != 1 || !*session_hid(fleet))
		return MAKER_UNKNOWN;
	return strcmp(found->record.writer, session_hid(fleet)) ? MAKER_OTHER : MAKER_THIS;
}

static void note_node(const struct fleet *fleet, struct holding *holding, const struct found *found)
{
	holding->maker = maker_of(fleet, holding, found);
	holding->version = found->version;
	holding->made_zxid = found->made_zxid;
	holding->changed_zxid = found->changed_zxid;
}

/*
 * Tells whether another write than the one that is known made the node of @holding as it is, or may
 * have: a successor does not know the write.
 */
static bool is_rewritten(const struct holding *holding, const struct found *found)
{
	return holding->changed_zxid != found->changed_zxid;
}

/* Tells whether @record says what is known of @holding. */
static bool says_the_same(const struct holding *holding, const struct record *record)
{
	const struct limiter *limiter = holding->limiter;

	return holding->generation == record->generation && holding->saved == record->saved &&
	       holding->cut == record->cut && limiter->uid == record->owner.uid &&
	       limiter->gid == record->owner.gid && limiter->access == record->owner.access &&
	       settings_equal(holding->settings, &record->settings);
}

static void tune(struct fleet *fleet, struct batch *batch, struct holding *holding,
		 const struct found *found)
{
	const struct owner *owner = &found->record.owner;
	struct limiter *limiter = holding->limiter;
	uint32_t altered = 0;
	char line[NAME_BYTES_MAX + SETTING_TEXT];

	if (holding->version == found->version && holding->generation == found->record.generation &&
	    !is_rewritten(holding, found)) {
		note_node(fleet, holding, found);
		return;
	}
	recut_heed(fleet, holding, &found->record);
	/*
	 * To apply them anew ends what is saved up for readers that will ask a successor again. It
	 * has yet to look what they want.
	 */
	if (!holding->changed_zxid && says_the_same(holding, &found->record)) {
		note_node(fleet, holding, found);
		holdings_rouse(fleet, holding, false);
		return;
	}
	/* Where an election took back a cut its number may have been given again. */
	if (holding->cut != found->record.cut ||
	    !holding_is_cut_alike(holding->settings, &found->record.settings))
		leases_drop(fleet, holding);
	if (change_apply_settings(fleet->engine, limiter, &found->record.settings, &altered)) {
		fleet_tell(fleet, FLEET_SPOILT, "no memory for the settings of limiter %llu",
			   (unsigned long long)found->id);
		batch->failed = true;
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
	if (altered & ALTERED_OVERRIDES) {
		snprintf(line, sizeof(line), "overrides %u",
			 overrides_count(holding->settings->overrides));
		tell(fleet, limiter, FLEET_SET, line);
	}
	note_node(fleet, holding, found);
	holding->generation = found->record.generation;
	holding->saved = found->record.saved;
	holding->cut = found->record.cut;
	changed(fleet, limiter, false);
	leases_reshare(fleet, holding);
	leases_check_numbers(fleet, holding);
	holdings_rouse(fleet, holding, false);
}

static void make(struct fleet *fleet, const struct found *found)
{
	const struct record *record = &found->record;
	struct holding *above = record->parent ? holdings_find(fleet, record->parent) : NULL;
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
	holdings_enter(fleet, made->holding, found->id);
	note_node(fleet, made->holding, found);
	made->holding->generation = record->generation;
	made->holding->saved = record->saved;
	made->holding->cut = record->cut;
	leases_know_cut(fleet, made->holding);
	recut_heed(fleet, made->holding, record);
	changed(fleet, made, false);
	leases_reshare(fleet, made->holding);
	if (session_state(fleet) == FLEET_READY)
		tell(fleet, made, FLEET_MADE, "created");
	holdings_rouse(fleet, made->holding, false);
}

static void apply_root(struct fleet *fleet, const struct found *found)
{
	struct limiter *root = fleet->engine->tree.root;

	baseline_set_root_version(fleet, found->there ? found->version : -1);
	if (!found->there)
		return;
	baseline_set_root_generation(fleet, found->record.generation);
	change_apply_owner(fleet->engine, root, &found->record.owner);
	changed(fleet, root, false);
}

/* Constants are what safety rests on: while it runs a host only becomes more careful. */
static void apply_constants(struct fleet *fleet, const struct fleet_constants *new)
{
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

bool apply_found(struct fleet *fleet, struct found *found, uint32_t count, struct globals *globals)
{
	struct batch batch = {found, count, globals, false};

	qsort(found, count, sizeof(*found), by_id);
	apply_constants(fleet, &globals->constants);
	apply_removals(fleet, &batch);
	apply_names(fleet, &batch);
	for (; found < batch.found + count; found++) {
		struct holding *holding = found->id ? holdings_find(fleet, found->id) : NULL;

		if (found->id > globals->last_id)
			globals->last_id = found->id;
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
			tune(fleet, &batch, holding, found);
		else if (found->there)
			make(fleet, found);
	}
	return !batch.failed;
}
