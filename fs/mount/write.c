/* write - files that are written, and changes of the tree, see write.h. */
#include "fs/mount/write.h"
#include "fs/base/clock.h"
#include "fs/mount/text_file.h"

#include "core/limiter/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A change is answered within this time, whatever the source does. */
static const uint64_t ANSWER_WITHIN_NS = 2 * NSEC_PER_SEC;

struct writer *write_new(const char *text, size_t size)
{
	struct writer *writer = calloc(1, sizeof(*writer) + size + 1);

	if (!writer)
		return NULL;
	if (text)
		memcpy(writer->text, text, size);
	writer->change.text = text ? writer->text : NULL;
	writer->size = size;
	return writer;
}

void write_submit(struct daemon *daemon, struct writer *writer, const struct caller *caller)
{
	uint64_t now_ns = clock_ns();
	/* A change that a predecessor had is no new one. */
	int err = caller->again ? 0 : handle_make_room(daemon, caller->uid);

	if (err) {
		(void)daemon_has_room(daemon, caller->uid, BOUND_TEXTS); /* which says why */
		fuse_reply_err(caller->request, -err);
		free(writer);
		return;
	}
	writer->kib = (uint32_t)((sizeof(*writer) + writer->size + 1023) / 1024);
	users_add_many(&daemon->engine.users, caller->uid, BOUND_TEXTS, writer->kib);
	writer->change.asker = caller->uid;
	writer->again = caller->again;
	writer->subject = viewer_subject(writer->change.limiter);
	writer->queued.until_ns = now_ns + ANSWER_WITHIN_NS;
	pending_insert(&daemon->pending, &writer->queued.pending, caller, PENDING_WRITER);
	daemon_tell_wall(daemon, now_ns);
	change_begin(&daemon->engine, &writer->change, now_ns);
}

/*
 * Returns a bit for each setting of @limiter that a user who may write its `config` may not alter
 * by it, as the file of the setting would not be open to @viewer. Under the lock.
 */
static uint32_t denied_settings(const struct limiter *limiter, const struct viewer *viewer)
{
	uint32_t denied = 0;

	if (limiter->removed || node_place_keeper(limiter) == limiter ||
	    viewer_tunes(viewer, limiter->parent))
		return 0;
	for (unsigned int i = 0; i < NODE_COUNT; i++) {
		if (NODES[i].access == ACCESS_PLACE)
			denied |= UINT32_C(1) << NODES[i].setting;
	}
	return denied;
}

/* Changes the setting that @handle is, or all with CHANGE_CONFIG. */
static void change_settings(struct daemon *daemon, struct handle *handle,
			    const struct caller *caller, const char *text, size_t size,
			    unsigned int setting)
{
	struct writer *writer = write_new(text, size);
	struct viewer *viewer = NULL;

	if (!writer ||
	    (setting == CHANGE_CONFIG && viewer_new(&daemon->engine.tree, caller, &viewer))) {
		free(writer);
		fuse_reply_err(caller->request, ENOMEM);
		return;
	}
	writer->change.kind = CHANGE_SETTINGS;
	writer->change.setting = setting;
	writer->change.limiter = handle->limiter;
	writer->row = handle->row;
	daemon_lock(daemon);
	if (setting == CHANGE_CONFIG)
		writer->change.denied = denied_settings(handle->limiter, viewer);
	write_submit(daemon, writer, caller);
	daemon_unlock(daemon);
	free(viewer);
}

static void write_setting(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			  const char *text, size_t size)
{
	change_settings(daemon, handle, caller, text, size, handle->row->setting);
}

static void write_config(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			 const char *text, size_t size)
{
	change_settings(daemon, handle, caller, text, size, CHANGE_CONFIG);
}

/* Overrides a value of the key that @handle is in, or takes that back. */
static void write_override(struct daemon *daemon, struct handle *handle,
			   const struct caller *caller, const char *text, size_t size)
{
	struct writer *writer = write_new(text, size);
	bool rate = handle->row->setting == SETTING_KEY_RATE;
	bool gone;

	if (!writer) {
		fuse_reply_err(caller->request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	gone = handle->limiter->removed;
	if (gone) {
		daemon_refused(daemon, caller->uid, NULL, NULL, "the limiter is gone");
	} else {
		writer->change.kind = CHANGE_SETTINGS;
		writer->change.setting = rate ? CHANGE_KEY_RATE : CHANGE_KEY_BURST;
		writer->change.limiter = handle->limiter->parent;
		writer->row = handle->row;
		strcpy(writer->change.name, keys_key(handle->limiter)->name);
		write_submit(daemon, writer, caller);
	}
	daemon_unlock(daemon);
	if (!gone)
		return;
	free(writer);
	fuse_reply_err(caller->request, ENODEV);
}

int write_check_limiter(struct daemon *daemon, const struct handle *handle, uint32_t uid)
{
	if (!handle->limiter->removed)
		return 0;
	daemon_refused(daemon, uid, NULL, NULL, "the limiter is gone");
	return -ENODEV;
}

static void write_charge(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			 const char *text, size_t size)
{
	char written[SETTING_TEXT] = "";
	struct charge charge;
	int err, wrong = text_copy(text, strlen(text), written, sizeof(written));

	if (!wrong)
		wrong = amounts_parse_charge(written, &charge);
	daemon_lock(daemon);
	err = write_check_limiter(daemon, handle, caller->uid);
	if (caller->again && state_was_done(daemon->state, caller->unique)) {
		err = 0;
	} else if (!err && wrong) {
		err = wrong;
		daemon_refused(
			daemon, caller->uid, handle->limiter, handle->row,
			err == -ERANGE
				? "'%.60s': out of bounds: a charge is a whole number, -1e13 to "
				  "1e13"
				: "'%.60s': not a charge: a whole number such as 12 or -5, or "
				  "with units 1 tpm=-5",
			written);
	} else if (!err) {
		state_done(daemon->state, caller->unique);
		err = engine_charge(&daemon->engine, handle->limiter, &charge, clock_ns());
		if (err == -ERANGE)
			daemon_refused(daemon, caller->uid, handle->limiter, handle->row,
				       "'%.60s': more would come back than was taken", written);
		if (err == -EINVAL)
			daemon_refused(
				daemon, caller->uid, handle->limiter, handle->row,
				"'%.60s': no rate of the limiter, or above it, has that unit",
				written);
		state_taken(daemon->state, handle->limiter);
	}
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(caller->request, -err);
	else
		fuse_reply_write(caller->request, size);
}

const struct node_kind SETTING_FILE = {
	.is_setting = true, .read = text_file_read, .write = write_setting};
const struct node_kind CONFIG_FILE = {
	.read = text_file_read, .write = write_config, .write_max = CONFIG_TEXT};
const struct node_kind OVERRIDE_FILE = {.read = text_file_read, .write = write_override};
const struct node_kind CHARGE_FILE = {.write = write_charge};

static struct writer *writer_of(struct change *change)
{
	return container_of(change, struct writer, change);
}

/* Adds a line to `events` for a change that was made. */
static void tell_change(struct daemon *daemon, const struct writer *writer)
{
	const struct change *change = &writer->change;
	struct events *events = &daemon->events;
	const char *path = change->path;
	const char *slash = strrchr(path, '/');
	char text[SETTING_TEXT];

	switch (change->kind) {
	case CHANGE_MAKE:
		events_add(events, change->asker, viewer_subject(change->made), "%s%s%s created",
			   path, *path ? "/" : "", change->name);
		break;
	case CHANGE_REMOVE:
		events_add(events, change->asker, writer->subject, "%s removed", path);
		break;
	case CHANGE_RENAME:
		events_add(events, change->asker, writer->subject, "%s renamed %.*s%s", path,
			   slash ? (int)(slash - path + 1) : 0, path, change->name);
		break;
	case CHANGE_OWNER:
		events_add(events, change->asker, writer->subject, "%s uid %u gid %u access %o",
			   *path ? path : "/", change->owner.uid, change->owner.gid,
			   change->owner.access);
		break;
	case CHANGE_SETTINGS:
		for (int id = 0; id < SETTING_COUNT; id++) {
			if (!(change->altered >> id & 1))
				continue;
			setting_print((enum setting_id)id, &change->settings, text);
			events_add(events, change->asker, writer->subject, "%s %s %s", path,
				   setting_name((enum setting_id)id), text);
		}
		if (change->altered & ALTERED_OVERRIDES)
			events_add(events, change->asker, writer->subject, "%s overrides %u", path,
				   change->overrides);
		break;
	}
}

/* Keeps the change of @writer for a successor. */
static void keep_change(struct daemon *daemon, const struct writer *writer)
{
	const struct change *change = &writer->change;

	if (change->kind == CHANGE_REMOVE)
		state_limiter_removed(daemon->state, (uint32_t)writer->ino);
	else if (change->kind == CHANGE_MAKE)
		state_limiter_changed(daemon->state, change->made);
	else
		state_limiter_changed(daemon->state, change->limiter);
}

/* Fills in the answer to mkdir and setattr. */
static void fill_entry(struct daemon *daemon, struct writer *writer)
{
	struct node node;

	if (writer->change.kind == CHANGE_MAKE) {
		node = node_of_limiter(writer->change.made);
		(void)node_entry(daemon, &node, writer->queued.pending.uid, &writer->entry);
	} else if (writer->change.kind == CHANGE_OWNER &&
		   !node_decode(daemon, writer->ino, &node)) {
		node_attributes(daemon, &node, writer->queued.pending.uid, &writer->entry.attr);
		node_owner_changed(daemon, node.limiter);
	}
}

/* Finds the limiter that was in the way of a mkdir. NULL: it was not that. */
static struct limiter *find_in_the_way(struct daemon *daemon, const struct writer *writer)
{
	const struct tree *tree = &daemon->engine.tree;
	const struct change *change = &writer->change;
	struct limiter *parent = tree_find_id(tree, writer->subject.id);

	if (change->kind != CHANGE_MAKE || change->outcome != -EEXIST || !parent)
		return NULL;
	return tree_find(tree, parent, change->name);
}

/*
 * Tells whether a change was refused because a predecessor has made it: the source had it, the
 * predecessor did not live to answer, and this server did not know when it asked again. The limiter
 * of a change that is done may be gone, and freed.
 */
static bool was_made_before(struct daemon *daemon, struct writer *writer)
{
	const struct tree *tree = &daemon->engine.tree;
	struct change *change = &writer->change;
	struct limiter *limiter;

	if (!writer->again || !change->outcome)
		return false;
	if (change->kind == CHANGE_REMOVE)
		return change->outcome == -ENODEV;
	limiter = tree_find_id(tree, writer->subject.id);
	if (!limiter)
		return false;
	if (change->kind == CHANGE_RENAME)
		return !strcmp(limiter->name, change->name);
	limiter = find_in_the_way(daemon, writer);
	if (limiter && write_maker(limiter) == MAKER_THIS)
		change->made = limiter;
	return change->made;
}

/*
 * Takes back that nothing has changed: a predecessor had the request, and its answer was lost with
 * it.
 */
static void doubt_refusal(struct daemon *daemon, struct writer *writer)
{
	const struct limiter *limiter = find_in_the_way(daemon, writer);
	struct change *change = &writer->change;
	bool is_own = limiter && write_maker(limiter) == MAKER_UNKNOWN; /* it may be */

	if (!writer->again || (change->outcome != -EHOSTUNREACH && !is_own))
		return;
	change->outcome = -ETIMEDOUT;
	strcpy(change->error, "sent by a server that was killed, not acknowledged: read it back");
}

/* Remembers @why the change of @writer was refused. Its limiter may be gone by then. */
static void refuse(struct daemon *daemon, const struct writer *writer, const char *why)
{
	const struct tree *tree = &daemon->engine.tree;
	uint32_t id = writer->subject.id;
	const struct limiter *limiter = id ? tree_find_id(tree, id) : tree->root;

	daemon_refused(daemon, writer->queued.pending.uid, limiter,
		       writer->row ? writer->row : &NODES[NODE_LIMITER], "%s", why);
}

static void forget_size(struct daemon *daemon, const struct writer *writer)
{
	users_drop_many(&daemon->engine.users, writer->queued.pending.uid, BOUND_TEXTS,
			writer->kib);
}

void write_collect(struct daemon *daemon, struct outbox *outbox)
{
	struct change *change;

	while ((change = engine_changed(&daemon->engine))) {
		struct writer *writer = writer_of(change);
		bool made_before = was_made_before(daemon, writer);

		doubt_refusal(daemon, writer);
		if (made_before)
			change->outcome = 0;
		else if (change->outcome)
			refuse(daemon, writer, change->error);
		else
			tell_change(daemon, writer);
		if (!change->outcome && !made_before)
			keep_change(daemon, writer);
		if (writer->awaited) {
			writer->done = true;
			continue;
		}
		forget_size(daemon, writer);
		if (!writer->queued.pending.request) {
			free(writer); /* answered before it was done */
			continue;
		}
		if (!change->outcome)
			fill_entry(daemon, writer);
		pending_decide(&daemon->pending, &writer->queued.pending, outbox);
	}
}

void write_answer(struct daemon *daemon, struct pending *pending)
{
	struct writer *writer = (struct writer *)pending;
	fuse_req_t request = pending->request;

	(void)daemon;
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

/* Withdraws a change, unless the source has it: then the source goes on. */
enum pending_end write_give_up(struct daemon *daemon, struct pending *pending, int err)
{
	struct writer *writer = (struct writer *)pending;

	(void)err;
	if (!change_withdraw(&daemon->engine, &writer->change))
		return PENDING_ABANDONED;
	forget_size(daemon, writer);
	return PENDING_FREED;
}

void write_expire(struct daemon *daemon, struct queued *queued)
{
	refuse(daemon, container_of(queued, struct writer, queued),
	       "not acknowledged within 2 s: read it back");
	daemon_give_up(daemon, &queued->pending, ETIMEDOUT);
}
