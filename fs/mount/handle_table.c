/* handle_table - the numbers by which the kernel knows open files, see handle_table.h. */
#include "fs/mount/handle_table.h"
#include "fs/base/log.h"

#include "core/limiter/partition.h"

#include <errno.h>
#include <stdatomic.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_HANDLES = 256, INDEX_BITS = 32 };

static int grow(struct handle_table *table, uint32_t index)
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

int handle_number(struct daemon *daemon, struct handle *handle, const struct node *node,
		  const struct caller *caller)
{
	struct handle_table *table = &daemon->handles;
	uint32_t index = table->free_count ? table->free[table->free_count - 1]
					   : state_handle_count(daemon->state);
	struct state_handle *kept;
	uint64_t generation;

	if (index >= STATE_HANDLES_MAX)
		return -ENFILE;
	if (index >= table->size && grow(table, index))
		return -ENOMEM;
	if (table->free_count)
		table->free_count--;
	kept = state_handle(daemon->state, index);
	generation = (kept->life ? kept->life >> LIFE_BITS : state_base(daemon->state)) + 1;
	kept->opener = caller->unique;
	kept->tokens = node->tokens;
	kept->within_ns = node->within_ns;
	kept->slot_ns = 0;
	kept->limiter = node->limiter->id;
	kept->partition = node->partition;
	kept->row = state_row_number(daemon->state, (unsigned int)(node->row - NODES));
	kept->granted = false;
	kept->half = false;
	kept->polls = false;
	kept->uid = caller->uid;
	kept->gid = caller->gid;
	kept->key_uid = node->key ? node->key->uid : 0;
	kept->key = node->key ? node->key->id : 0;
	if (node->key)
		strcpy(state_key_name(daemon->state, index), node->key->name);
	atomic_store_explicit(&kept->life, generation << LIFE_BITS | LIFE_USED,
			      memory_order_release);
	state_handle_used(daemon->state, index);
	handle->kept = kept;
	handle->number = generation << INDEX_BITS | index;
	table->at[index] = handle;
	return 0;
}

struct handle *handle_find(const struct daemon *daemon, uint64_t number)
{
	uint32_t index = (uint32_t)number;
	struct handle *handle = index < daemon->handles.size ? daemon->handles.at[index] : NULL;

	return handle && handle->number == number ? handle : NULL;
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

static void close_kept(struct handle_table *table, struct state_handle *kept, uint32_t index)
{
	kept->life = kept->life >> LIFE_BITS << LIFE_BITS;
	table->free[table->free_count++] = index;
}

/* Whether the open was answered, or the kernel still waits for that: then there is nothing to close. */
static bool is_open(const struct state_handle *kept, uint8_t row,
		    bool (*was_asked)(const void *what, uint64_t unique), const void *what)
{
	if (kept->life & LIFE_OPEN)
		return true;
	/* Who waited for a slot, and was killed just now, waits no longer. */
	return !was_asked(what, kept->opener) && (!NODES[row].open || kept->slot_ns);
}

/*
 * Tells whether reads of @node, which was open, get ENODEV for ever: its limiter is gone, or the
 * count of partitions was lowered. Other files of such a partition look at the count with each
 * read.
 */
static bool is_gone(const struct node *node)
{
	uint32_t shares;

	return node->row == &NODES[NODE_NONE] || !node->limiter ||
	       (node->row->read == read_tokens &&
		node->partition > partition_count(node->limiter, &shares));
}

/* Tells whether a file of @row is one of a partition or a key where @kept is. */
static bool is_possible(const struct node_row *row, const struct state_handle *kept)
{
	bool of_key = row->place == NODE_KEY || row->place == NODE_KEY_TAKE ||
		      row->place == NODE_KEY_ETA;

	return (row->place == NODE_PARTITION) == (kept->partition != 0) &&
	       of_key == (kept->key != 0);
}

static int reopen(struct daemon *daemon, uint32_t index, struct state_handle *kept, uint8_t row)
{
	struct node node = {.row = &NODES[row],
			    .limiter = tree_find_id(&daemon->engine.tree, kept->limiter),
			    .partition = kept->partition,
			    .tokens = kept->tokens,
			    .within_ns = kept->within_ns};
	struct handle *handle;

	if (is_gone(&node) || !is_possible(node.row, kept))
		return 0; /* reads get ENODEV */
	if (kept->key &&
	    keys_restore(&daemon->engine.schedule, node.limiter,
			 state_key_name(daemon->state, index), kept->key_uid, kept->key, &node.key))
		return -ENOMEM;
	handle = handle_reopen(daemon, &node, index, kept);
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
	int err = count ? grow(table, count - 1) : 0;

	for (uint32_t i = 0; i < count && !err; i++) {
		struct state_handle *kept = state_handle(daemon->state, i);
		uint8_t row = state_row(daemon->state, (uint8_t)kept->row);

		if (!(kept->life & LIFE_USED) || !is_open(kept, row, was_asked, what)) {
			close_kept(table, kept, i);
			continue;
		}
		kept->life |= LIFE_OPEN;
		err = reopen(daemon, i, kept, row);
	}
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
		if (write(fuse_session_fd(daemon->session), &message, sizeof(message)) < 0 &&
		    errno != ENOENT)
			log_warning("who polls is not woken: %s", strerror(errno));
	}
}
