/* handle - open files, see handle.h. */
#include "fs/mount/handle.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"
#include "fs/mount/consumers.h"
#include "fs/mount/frozen.h"
#include "fs/mount/partitions.h"
#include "fs/mount/slot.h"

#include "core/limiter/partition.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_HANDLES = 256, INDEX_BITS = 32, TEXTS_AT_ONCE = 4, TEXTS_READ_MAX = 256 };

static int grow_table(struct handle_table *table, uint32_t index)
{
	uint32_t size = table->size ? table->size : FIRST_HANDLES;
	struct handle **at;
	uint32_t *free_ones;

	while (size <= index)
		size *= 2;
	at = realloc(table->at, size * sizeof(struct handle *));
	if (!at)
		return -ENOMEM;
	table->at = at;
	memset(at + table->size, 0, (size - table->size) * sizeof(struct handle *));
	free_ones = realloc(table->free, size * sizeof(*free_ones));
	if (!free_ones)
		return -ENOMEM;
	table->free = free_ones;
	table->size = size;
	return 0;
}

/* Gives @handle of @node, which @caller opens, a number. 0, -ENOMEM or -ENFILE. */
static int number_handle(struct daemon *daemon, struct handle *handle, const struct node *node,
			 const struct caller *caller)
{
	struct handle_table *table = &daemon->handles;
	uint32_t index = table->free_count ? table->free[table->free_count - 1]
					   : state_handle_count(daemon->state);
	struct state_handle *kept;
	uint64_t generation;

	if (index >= STATE_HANDLES_MAX)
		return -ENFILE;
	if (index >= table->size && grow_table(table, index))
		return -ENOMEM;
	if (table->free_count)
		table->free_count--;
	kept = state_handle(daemon->state, index);
	generation = (kept->life ? kept->life >> LIFE_BITS : state_base(daemon->state)) + 1;
	kept->opener = caller->unique;
	kept->tokens = node->tokens;
	kept->most = node->most;
	kept->given = 0;
	kept->units = 0;
	if (node->amounts) {
		*state_handle_amounts(daemon->state, index) = *node->amounts;
		kept->units = (uint8_t)node->amounts->count;
	}
	kept->within_ns = node->within_ns;
	kept->slot_ns = 0;
	kept->slot_number = 0;
	kept->slot_lost = false;
	kept->limiter = node->limiter->id;
	kept->partition = node->partition;
	kept->row = state_row_number(daemon->state, (unsigned int)(node->row - NODES));
	kept->granted = false;
	kept->half = false;
	kept->polls = false;
	kept->uid = caller->uid;
	kept->gid = caller->gid;
	kept->key_uid = node->key ? node->key->uid : 0;
	kept->pid = caller->pid;
	kept->key = node->key ? node->key->id : 0;
	if (node->key)
		strcpy(state_handle_text(daemon->state, index), node->key->name);
	atomic_store_explicit(&kept->life, generation << LIFE_BITS | LIFE_USED,
			      memory_order_release);
	state_handle_used(daemon->state, index);
	handle->kept = kept;
	handle->number = generation << INDEX_BITS | index;
	table->at[index] = handle;
	return 0;
}

void handle_forget(struct daemon *daemon, uint64_t number)
{
	struct handle_table *table = &daemon->handles;
	uint32_t index = (uint32_t)number;
	struct state_handle *kept;

	if (index >= state_handle_count(daemon->state) || index >= table->size)
		return;
	kept = state_handle(daemon->state, index);
	/* Closed by a predecessor already: another's now. */
	if ((uint32_t)(kept->life >> LIFE_BITS) != (uint32_t)(number >> INDEX_BITS) ||
	    !(kept->life & LIFE_USED))
		return;
	kept->life = kept->life >> LIFE_BITS << LIFE_BITS;
	table->at[index] = NULL;
	table->free[table->free_count++] = index;
}

/* Finds a partition's limiter. A predecessor may have taken its tokens: then it begins empty. */
static struct limiter *get_partition(struct daemon *daemon, struct limiter *limiter, uint32_t index,
				     uint32_t uid)
{
	bool known = partition_find(limiter, index);
	struct limiter *partition = partition_get(&daemon->engine.schedule, limiter, index, uid);

	if (partition && !known && state_generation(daemon->state))
		limiter_empty(&daemon->engine.schedule, partition);
	return partition;
}

/* Gives @handle a copy of @amounts. False: no memory. */
static bool copy_amounts(struct handle *handle, const struct amounts *amounts)
{
	handle->amounts = malloc(sizeof(*amounts));
	if (handle->amounts)
		*handle->amounts = *amounts;
	return handle->amounts;
}

/* Tells whether tokens or slots are had through @handle. */
static bool is_had_by(const struct handle *handle)
{
	return handle->row->kind->takes || handle->row->kind->open_waits;
}

bool handle_makes_partition(const struct node *node)
{
	return node->partition && node->row->kind->takes &&
	       !partition_find(node->limiter, node->partition - 1);
}

/* Makes a handle of @node for @uid, without a number. */
static struct handle *new_handle(struct daemon *daemon, const struct node *node, uint32_t uid)
{
	struct handle *handle = calloc(1, sizeof(*handle));
	struct limiter *limiter = node->limiter;

	if (!handle)
		return NULL;
	if (node->amounts && !copy_amounts(handle, node->amounts)) {
		free(handle);
		return NULL;
	}
	if (node->partition && node->row->kind->takes) {
		limiter = get_partition(daemon, limiter, node->partition - 1, uid);
		if (!limiter) {
			free(handle->amounts);
			free(handle);
			return NULL;
		}
	}
	if (node->key) {
		limiter = keys_open(&daemon->engine.schedule, limiter, node->key);
		if (!limiter) {
			free(handle->amounts);
			free(handle);
			return NULL;
		}
	} else {
		limiter_hold(limiter);
	}
	handle->ino = node_opened(daemon, node);
	handle->row = node->row;
	handle->limiter = limiter;
	handle->partition = node->partition;
	handle->tokens = node->tokens;
	handle->most = node->most;
	handle->within_ns = node->within_ns;
	handle->uid = uid;
	users_add(&daemon->engine.users, handle->uid, BOUND_FILES);
	handle->position = node->row->kind->takes ? 0 : daemon->events.end;
	if (is_had_by(handle))
		list_prepend(&limiter->files, &handle->link);
	return handle;
}

struct handle *handle_open(struct daemon *daemon, const struct node *node,
			   const struct caller *caller)
{
	struct handle *handle = new_handle(daemon, node, caller->uid);

	if (handle && number_handle(daemon, handle, node, caller)) {
		handle_close(daemon, handle);
		handle = NULL;
	}
	return handle;
}

/* Makes a handle as a predecessor had it in @kept at @index. NULL: no memory. */
static struct handle *reopen_handle(struct daemon *daemon, const struct node *node, uint32_t index,
				    struct state_handle *kept)
{
	struct handle *handle = new_handle(daemon, node, kept->uid);

	if (!handle)
		return NULL;
	handle->kept = kept;
	handle->number = (kept->life >> LIFE_BITS) << 32 | index;
	handle->granted = kept->granted;
	handle->given = kept->given;
	handle->half = kept->half;
	if (node->row->kind->reopen && node->row->kind->reopen(daemon, handle, kept)) {
		handle_close(daemon, handle);
		return NULL;
	}
	return handle;
}

static void stop_watching(struct daemon *daemon, struct handle *handle)
{
	if (!handle->watched)
		return;
	lanes_remove(&daemon->watched, handle->uid, &handle->watch);
	daemon->watched_count--;
	handle->watched = false;
}

void handle_watch(struct daemon *daemon, struct handle *handle)
{
	if (handle->watched)
		return;
	lanes_append(&daemon->watched, handle->uid, &handle->watch);
	daemon->watched_count++;
	handle->watched = true;
}

static void drop_text(struct daemon *daemon, struct handle *handle)
{
	if (!handle->text)
		return;
	if (handle->text_is_read)
		lanes_remove(&daemon->texts, handle->uid, &handle->text_link);
	users_drop_many(&daemon->engine.users, handle->uid, BOUND_TEXTS, handle->text_kib);
	free(handle->text);
	handle->text = NULL;
	handle->text_is_read = false;
}

void handle_close(struct daemon *daemon, struct handle *handle)
{
	if (is_had_by(handle))
		list_remove(&handle->limiter->files, &handle->link);
	stop_watching(daemon, handle);
	if (daemon->freezer == handle)
		frozen_end(daemon);
	slot_forget(daemon, handle);
	consumers_note(handle);
	if (handle->slot.limiter)
		engine_slot_close(&daemon->engine, &handle->slot, !handle->lost, clock_ns());
	if (handle->polling)
		engine_unpoll(&daemon->engine, &handle->polling->poller, clock_ns());
	free(handle->polling);
	if (handle->limiter->is_key)
		keys_close(&daemon->engine.schedule, handle->limiter);
	else
		limiter_drop(handle->limiter);
	if (handle->poll)
		fuse_pollhandle_destroy(handle->poll);
	drop_text(daemon, handle);
	users_drop(&daemon->engine.users, handle->uid, BOUND_FILES);
	node_closed(daemon, handle->ino);
	free(handle->viewer);
	free(handle->trigger);
	if (handle->kept)
		handle_forget(daemon, handle->number);
	free(handle->amounts);
	free(handle);
}

void handle_close_all(struct daemon *daemon)
{
	for (uint32_t i = 0; i < daemon->handles.size; i++) {
		struct handle *handle = daemon->handles.at[i];

		if (!handle)
			continue;
		if (handle->slot.limiter)
			slots_close(&daemon->engine.schedule, &handle->slot, !handle->lost);
		if (handle->polling)
			limiter_unpoll(&daemon->engine.schedule, &handle->polling->poller);
		handle_close(daemon, handle);
	}
	free(daemon->handles.at);
	free(daemon->handles.free);
}

void handle_notify(struct daemon *daemon, struct handle *handle)
{
	stop_watching(daemon, handle);
	if (handle->poll)
		fuse_lowlevel_notify_poll(handle->poll);
}

void handle_polled(struct handle *handle, uint64_t number)
{
	handle->kept->poll = number;
	handle->kept->polls = true;
}

/* Finds the file of @uid whose text was read to its end before the others. NULL: there is none. */
static struct handle *oldest_of(struct daemon *daemon, uint32_t uid)
{
	struct handle *handle = list_entry(lanes_first(&daemon->texts, uid), struct handle,
					   text_link);

	while (handle && handle->uid != uid) /* it shares the lane */
		handle = list_next(handle, text_link);
	return handle;
}

/* Takes one such file out of the lanes, of each user in turn. NULL: there is none. */
static struct handle *take_oldest(struct daemon *daemon)
{
	struct handle *handle = list_entry(lanes_take(&daemon->texts), struct handle, text_link);

	if (handle)
		handle->text_is_read = false;
	return handle;
}

int handle_make_room(struct daemon *daemon, uint32_t uid)
{
	struct users *users = &daemon->engine.users;
	struct handle *oldest;
	int err;

	while ((err = users_check(users, uid, BOUND_TEXTS, NULL))) {
		oldest = users_is_full(users, uid, BOUND_TEXTS) ? oldest_of(daemon, uid)
								: take_oldest(daemon);
		if (!oldest)
			break;
		drop_text(daemon, oldest);
	}
	return users_binds(users, uid) ? err : 0;
}

int handle_keep_text(struct daemon *daemon, struct handle *handle, char *text, size_t length)
{
	uint32_t most = daemon->engine.users.bounds[BOUND_TEXTS].each / TEXTS_AT_ONCE + 1;
	size_t kib = (length + 1023) / 1024;
	int err;

	drop_text(daemon, handle);
	handle->length = 0;
	err = handle_make_room(daemon, handle->uid);
	if (err)
		return err;
	handle->text = text;
	handle->length = length;
	/* However long a page is, a user can read others beside it. */
	handle->text_kib = kib < most ? (uint32_t)kib : most;
	users_add_many(&daemon->engine.users, handle->uid, BOUND_TEXTS, handle->text_kib);
	return 0;
}

void handle_text_read(struct daemon *daemon, struct handle *handle)
{
	if (handle->text_is_read)
		lanes_remove(&daemon->texts, handle->uid, &handle->text_link);
	handle->text_is_read = true;
	lanes_append(&daemon->texts, handle->uid, &handle->text_link);
	if (lanes_length(&daemon->texts, handle->uid) > TEXTS_READ_MAX)
		drop_text(daemon, list_entry(lanes_first(&daemon->texts, handle->uid),
					     struct handle, text_link));
}

bool handle_reply_open(struct handle *handle, fuse_req_t request)
{
	struct fuse_file_info file = {.fh = handle->number, .direct_io = 1};
	struct state_handle *kept = handle->kept;
	uint64_t life = kept->life;

	kept->slot_ns = handle->slot.limiter ? handle->slot.opened_ns : 0;
	/* Once it is answered it may be closed, and gone, or another's. */
	if (fuse_reply_open(request, &file) == -ENOENT)
		return false;
	atomic_compare_exchange_strong(&kept->life, &life, life | LIFE_OPEN);
	return true;
}

void handle_answer_open(struct daemon *daemon, struct handle *handle, fuse_req_t request)
{
	if (handle_reply_open(handle, request))
		return;
	daemon_lock(daemon);
	handle->lost = true;
	handle_close(daemon, handle);
	daemon_unlock(daemon);
}

void handle_open_view(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		      int flags)
{
	(void)flags;
	if (!viewer_new(&daemon->engine.tree, caller, &handle->viewer)) {
		handle_answer_open(daemon, handle, caller->request);
		return;
	}
	daemon_lock(daemon);
	handle_close(daemon, handle);
	daemon_unlock(daemon);
	fuse_reply_err(caller->request, ENOMEM);
}

int handle_reopen_view(struct daemon *daemon, struct handle *handle,
		       const struct state_handle *kept)
{
	return viewer_of(&daemon->engine.tree, kept->uid, kept->gid, &handle->viewer);
}

static void close_kept(struct handle_table *table, struct state_handle *kept, uint32_t index)
{
	kept->life = kept->life >> LIFE_BITS << LIFE_BITS;
	table->free[table->free_count++] = index;
}

/* Tells whether the open was answered. If it is asked again, there is nothing to close. */
static bool is_open(const struct state_handle *kept, uint8_t row,
		    bool (*was_asked)(const void *what, uint64_t unique), const void *what)
{
	if (kept->life & LIFE_OPEN)
		return true;
	/* An opener that waited for a slot, and was killed just now, waits no longer. */
	return !was_asked(what, kept->opener) && (!NODES[row].kind->open_waits || kept->slot_ns);
}

/*
 * Tells whether reads of @node, which was open, get ENODEV for ever: its limiter is gone, or its
 * partition. Other files of a partition or piece look for it with each read.
 */
static bool is_gone(const struct node *node)
{
	return node->row == &NODES[NODE_NONE] || !node->limiter ||
	       (node->row->kind->takes &&
		!partitions_has(node->row, node->limiter, node->partition));
}

/* Tells whether a file of @row is one of a partition or a key where @kept is. */
static bool is_possible(const struct node_row *row, const struct state_handle *kept)
{
	bool of_part = node_is_below(row, NODE_PARTITION) || node_is_below(row, NODE_PIECE);

	return of_part == (kept->partition != 0) &&
	       node_is_below(row, NODE_KEY) == (kept->key != 0);
}

static int reopen_kept(struct daemon *daemon, uint32_t index, struct state_handle *kept,
		       uint8_t row)
{
	struct node node = {.row = &NODES[row],
			    .limiter = tree_find_id(&daemon->engine.tree, kept->limiter),
			    .partition = kept->partition,
			    .tokens = kept->tokens,
			    .most = kept->most,
			    .within_ns = kept->within_ns};
	struct handle *handle;

	if (kept->units)
		node.amounts = state_handle_amounts(daemon->state, index);
	if (is_gone(&node) || !is_possible(node.row, kept))
		return 0; /* reads get ENODEV */
	if (kept->key && keys_restore(&daemon->engine.schedule, node.limiter,
				      state_handle_text(daemon->state, index), kept->key_uid,
				      kept->key, &node.key))
		return -ENOMEM;
	handle = reopen_handle(daemon, &node, index, kept);
	if (!handle)
		return -ENOMEM;
	daemon->handles.at[index] = handle;
	return 0;
}

int handle_take_over(struct daemon *daemon, bool (*was_asked)(const void *what, uint64_t unique),
		     const void *what)
{
	struct handle_table *table = &daemon->handles;
	uint32_t count = state_handle_count(daemon->state);
	int err = count ? grow_table(table, count - 1) : 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		struct state_handle *kept = state_handle(daemon->state, i);
		uint8_t row = state_row(daemon->state, (uint8_t)kept->row);

		if (!(kept->life & LIFE_USED) || !is_open(kept, row, was_asked, what)) {
			close_kept(table, kept, i);
			continue;
		}
		kept->life |= LIFE_OPEN;
		err = reopen_kept(daemon, i, kept, row);
	}
	/* Readers of `events` are there now, too. */
	if (!err)
		slot_took_over(daemon);
	return err;
}

void handle_wake_all(struct daemon *daemon)
{
	struct {
		struct fuse_out_header header;
		struct fuse_notify_poll_wakeup_out wakeup;
	} message = {.header = {.len = sizeof(message), .error = FUSE_NOTIFY_POLL}};

	for (uint32_t i = 0; i < state_handle_count(daemon->state); i++) {
		const struct state_handle *kept = state_handle(daemon->state, i);

		if (!(kept->life & LIFE_USED) || !kept->polls)
			continue;
		message.wakeup.kh = kept->poll;
		if (write(fuse_session_fd(daemon->fuse), &message, sizeof(message)) < 0 &&
		    errno != ENOENT)
			log_warning("who polls is not woken: %s", strerror(errno));
	}
}
