/* state - what a successor has to know: the limiters and their buckets, see state.h. */
#include "fs/state.h"
#include "fs/log.h"
#include "fs/parameter.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char MAGIC[8] = "ratefs\n";

enum {
	BASE_BITS = 16,
	KEY_NAME_BYTES = NAME_BYTES_MAX + 1,
	UNITS_MAX = 1 << 22,
	FIRST_UNITS = 4096
};

/* The memory is sparse: what was never written does not cost anything. */
static const uint64_t HEADER_BYTES = 64 << 10;
static const uint64_t LOG_BYTES = UINT64_C(1) << 30;
static const uint64_t LOG_SLACK_BYTES = 1 << 20;

struct header {
	char magic[8];
	uint32_t version;
	uint32_t generation; /* servers before this one */
	uint32_t setting_count;
	_Atomic uint32_t log; /* which of the two counts */
	_Atomic uint64_t log_end[2];
	uint64_t done;
	int64_t began_s;
	uint64_t engine_began_ns;
	uint64_t last_key;
	uint32_t last_id;
	uint32_t base;
	uint32_t unit_count; /* that were ever used; the first is not */
	uint32_t handle_count;
	uint32_t parameter_count;
	uint32_t row_count;
	char rows[NODE_ROWS_MAX][NODE_PATH_TEXT]; /* their paths, by number */
};

struct record {
	uint32_t bytes; /* with what follows; a multiple of 8 */
	bool removed;
	uint8_t name_bytes; /* the name follows, and the settings, each with a NUL */
	uint16_t access;
	uint32_t id, parent, uid, gid, made_s;
	uint32_t changed_s[SETTING_COUNT];
	uint32_t settings_bytes;
};

/* A level, as of @filled_ns; fields as in struct bucket. */
struct level_copy {
	int64_t level;
	uint64_t part;
	int64_t released;
	uint64_t grid_ns, filled_ns, awaited;
};

/* One bucket of a limiter; that of the first limit has the counters too. */
struct unit {
	uint32_t id;		    /* of the limiter; 0: free */
	uint32_t limit;		    /* index */
	uint32_t next;		    /* of the next limit; 0: none, or free: the next free one */
	_Atomic uint32_t current;   /* which of the two counts */
	uint64_t amount, period_ns; /* of the rate; amount is another until the level is right */
	uint64_t decimals;
	struct level_copy copies[2];
	uint64_t granted, served, charged, returned;
};

struct state {
	int descriptor;
	char *bytes; /* mapped */
	struct header *header;
	char *logs[2];
	struct unit *units;
	struct state_handle *handles;
	char *key_names;
	struct parameter *parameters;
	uint64_t live_bytes;  /* of the log when it was last written anew */
	uint32_t free_units;  /* the first */
	uint32_t units_until; /* so many are used before those that are free are looked for */
	uint8_t numbers[NODE_ROWS_MAX]; /* of our rows */
	uint8_t rows[NODE_ROWS_MAX];	/* back */
	uint32_t base;			/* as in the header, before there is one */
	bool kept;			/* limiters are kept: in a fleet they are not */
};

static uint64_t all_bytes(void)
{
	return HEADER_BYTES + 2 * LOG_BYTES + (uint64_t)UNITS_MAX * sizeof(struct unit) +
	       (uint64_t)STATE_HANDLES_MAX * (sizeof(struct state_handle) + KEY_NAME_BYTES) +
	       (uint64_t)PARAMETERS_MAX * sizeof(struct parameter);
}

struct state *state_open(int descriptor)
{
	struct state *state = calloc(1, sizeof(*state));
	void *bytes = MAP_FAILED;

	static_assert(sizeof(struct header) <= 64 << 10, "the header has its room");
	/* Behind is what was set aside. */
	if (state && (lseek(descriptor, 0, SEEK_END) >= (off_t)all_bytes() ||
		      !ftruncate(descriptor, (off_t)all_bytes())))
		bytes = mmap(NULL, all_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
	if (bytes == MAP_FAILED) {
		log_error("no memory for a successor: %s", strerror(errno));
		free(state);
		close(descriptor);
		return NULL;
	}
	state->descriptor = descriptor;
	state->bytes = bytes;
	state->header = bytes;
	state->logs[0] = state->bytes + HEADER_BYTES;
	state->logs[1] = state->logs[0] + LOG_BYTES;
	state->units = (struct unit *)(state->logs[1] + LOG_BYTES);
	state->handles = (struct state_handle *)(state->units + UNITS_MAX);
	state->key_names = (char *)(state->handles + STATE_HANDLES_MAX);
	state->parameters =
		(struct parameter *)(state->key_names + (size_t)STATE_HANDLES_MAX * KEY_NAME_BYTES);
	return state;
}

struct parameter *state_parameters(struct state *state, uint32_t **used)
{
	*used = &state->header->parameter_count;
	return state->parameters;
}

void state_close(struct state *state)
{
	if (!state)
		return;
	munmap(state->bytes, all_bytes());
	close(state->descriptor);
	free(state);
}

bool state_is_there(const struct state *state)
{
	const struct header *header = state->header;

	return !memcmp(header->magic, MAGIC, sizeof(MAGIC)) && header->version == STATE_VERSION;
}

bool state_is_strange(const struct state *state)
{
	return state->header->version && !state_is_there(state);
}

int state_set_aside(struct state *state, uint32_t servers)
{
	off_t all = (off_t)all_bytes(), from = 0, until;
	int descriptor = state->descriptor;

	if (ftruncate(descriptor, 2 * all))
		return -errno;
	while ((from = lseek(descriptor, from, SEEK_DATA)) >= 0 && from < all) {
		until = lseek(descriptor, from, SEEK_HOLE);
		until = until < all ? until : all;
		for (ssize_t done; from < until; from += done) {
			done = pwrite(descriptor, state->bytes + from, (size_t)(until - from),
				      all + from);
			if (done <= 0)
				return done ? -errno : -EIO;
		}
	}
	if (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, all))
		return -errno;
	state->base = servers << BASE_BITS;
	return 0;
}

uint32_t state_base(const struct state *state)
{
	return state->header->version ? state->header->base : state->base;
}

/* Rows have the numbers that they were given first; new ones get those that follow. */
static void number_rows(struct state *state)
{
	struct header *header = state->header;
	char path[NODE_PATH_TEXT];

	if (!header->row_count)
		header->row_count = NODE_ROOT;
	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		uint32_t number = NODE_ROOT;

		node_path(&NODES[i], path);
		while (number < header->row_count && strcmp(header->rows[number], path) != 0)
			number++;
		if (number == header->row_count && number < NODE_ROWS_MAX) {
			strcpy(header->rows[number], path);
			header->row_count++;
		}
		if (number == NODE_ROWS_MAX)
			continue; /* too many upgrades: it cannot be told to the kernel */
		state->numbers[i] = (uint8_t)number;
		state->rows[number] = (uint8_t)i;
	}
}

uint8_t state_row_number(const struct state *state, const struct node_row *row)
{
	return state->numbers[row - NODES];
}

uint8_t state_row(const struct state *state, uint8_t number)
{
	return state->rows[number];
}

uint32_t state_generation(const struct state *state)
{
	return state->header->generation;
}

void state_done(struct state *state, uint64_t unique)
{
	state->header->done = unique;
}

bool state_was_done(const struct state *state, uint64_t unique)
{
	return state->header->done == unique;
}

void state_keys(struct state *state, const struct daemon *daemon)
{
	state->header->last_key = daemon->engine.schedule.last_key;
}

/* Room for a record of @bytes at most in the log that counts, or NULL. */
static struct record *room(struct state *state, uint32_t which, size_t bytes)
{
	uint64_t end = state->header->log_end[which];

	return end + bytes <= LOG_BYTES ? (struct record *)(state->logs[which] + end) : NULL;
}

/* Appends what @limiter is now. 0 or -ENOMEM. */
static int append(struct state *state, uint32_t which, const struct limiter *limiter)
{
	size_t name_bytes = strlen(limiter->name);
	size_t most = sizeof(struct record) + name_bytes + 2 + SETTING_COUNT * 2 * SETTING_TEXT + 8;
	struct record *record = room(state, which, most);
	struct settings settings;
	char *text;

	if (!record)
		return -ENOMEM;
	text = (char *)(record + 1) + name_bytes + 1;
	limiter_settings(limiter, &settings);
	*record = (struct record){.name_bytes = (uint8_t)name_bytes,
				  .access = limiter->access,
				  .id = limiter->id,
				  .parent = limiter->parent ? limiter->parent->id : 0,
				  .uid = limiter->uid,
				  .gid = limiter->gid,
				  .made_s = limiter->made_s};
	memcpy(record->changed_s, limiter->changed_s, sizeof(record->changed_s));
	memcpy(record + 1, limiter->name, name_bytes + 1);
	record->settings_bytes = (uint32_t)settings_print(&settings, text,
							  SETTING_COUNT * 2 * SETTING_TEXT);
	record->bytes = (uint32_t)(sizeof(*record) + name_bytes + record->settings_bytes + 2 + 7) &
			~7u;
	state->header->log_end[which] += record->bytes;
	return 0;
}

static int append_all(struct state *state, uint32_t which, const struct limiter *limiter)
{
	int err = append(state, which, limiter);

	for (const struct limiter *l = limiter->first_child; l && !err; l = l->next_sibling)
		err = append_all(state, which, l);
	return err;
}

/* Writes the log anew in the other place. */
static int rewrite(struct state *state, const struct daemon *daemon)
{
	struct header *header = state->header;
	uint32_t old = header->log, which = !old;
	int err;

	header->log_end[which] = 0;
	err = append_all(state, which, daemon->engine.tree.root);
	if (err)
		return err;
	state->live_bytes = header->log_end[which];
	header->log = which;
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(HEADER_BYTES + old * LOG_BYTES), (off_t)LOG_BYTES);
	return 0;
}

static bool is_rate_of(const struct unit *unit, const struct bucket *bucket)
{
	return unit->amount == bucket->rate.amount && unit->period_ns == bucket->rate.period_ns &&
	       unit->decimals == bucket->rate.decimals;
}

static void write_level(struct unit *unit, const struct bucket *bucket)
{
	uint32_t other = !unit->current;
	bool same = is_rate_of(unit, bucket);

	if (!same)
		*(volatile uint64_t *)&unit->period_ns = 0; /* no rate has that */
	unit->copies[other] = (struct level_copy){
		bucket->level,	 bucket->part,	    bucket->released,
		bucket->grid_ns, bucket->filled_ns, bucket->awaited,
	};
	atomic_store_explicit(&unit->current, other, memory_order_release);
	if (same)
		return;
	unit->amount = bucket->rate.amount;
	unit->decimals = bucket->rate.decimals;
	atomic_signal_fence(memory_order_release);
	*(volatile uint64_t *)&unit->period_ns = bucket->rate.period_ns;
}

static void read_level(const struct unit *unit, struct bucket *bucket)
{
	const struct level_copy *copy = &unit->copies[unit->current];

	if (!is_rate_of(unit, bucket))
		return;
	bucket->level = copy->level;
	bucket->part = copy->part;
	bucket->released = copy->released;
	bucket->grid_ns = copy->grid_ns;
	bucket->filled_ns = copy->filled_ns;
	bucket->awaited = copy->awaited;
}

/* Frees the units of limiters that are gone. */
static void sweep_units(struct state *state, const struct tree *tree)
{
	struct header *header = state->header;
	uint32_t freed = 0;

	for (uint32_t i = 1; i < header->unit_count; i++) {
		struct unit *unit = &state->units[i];

		if (unit->id && tree_find_id(tree, unit->id))
			continue;
		if (unit->id) {
			unit->id = 0;
			unit->next = state->free_units;
			state->free_units = i;
			freed++;
		}
	}
	if (freed < header->unit_count / 4 && state->units_until < UNITS_MAX)
		state->units_until *= 2;
}

/* A unit for limit @limit of @id, or 0. */
static uint32_t new_unit(struct state *state, const struct tree *tree, uint32_t id, uint32_t limit)
{
	struct header *header = state->header;
	uint32_t i;

	if (!state->free_units && header->unit_count >= state->units_until)
		sweep_units(state, tree);
	i = state->free_units;
	if (i)
		state->free_units = state->units[i].next;
	else if (header->unit_count < UNITS_MAX)
		i = header->unit_count++;
	if (!i)
		return 0;
	state->units[i] = (struct unit){.limit = limit};
	atomic_signal_fence(memory_order_release);
	*(volatile uint32_t *)&state->units[i].id = id;
	return i;
}

static void write_limiter(struct state *state, const struct tree *tree, struct limiter *limiter)
{
	struct unit *unit;

	if (!limiter->kept)
		limiter->kept = new_unit(state, tree, limiter->id, 0);
	if (!limiter->kept)
		return;
	unit = &state->units[limiter->kept];
	unit->granted = limiter->counters[COUNTER_GRANTED];
	unit->served = limiter->counters[COUNTER_SERVED];
	unit->charged = limiter->counters[COUNTER_CHARGED];
	unit->returned = limiter->counters[COUNTER_RETURNED];
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		write_level(unit, &limiter->buckets[i]);
		if (!unit->next && i + 1 < limiter->bucket_count)
			unit->next = new_unit(state, tree, limiter->id, i + 1);
		if (!unit->next)
			return;
		unit = &state->units[unit->next];
	}
}

static void write_all(struct state *state, const struct tree *tree, struct limiter *limiter)
{
	if (limiter->bucket_count)
		write_limiter(state, tree, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		write_all(state, tree, l);
}

int state_begin(struct state *state, struct daemon *daemon)
{
	struct header *header = state->header;
	int err;

	state->kept = !daemon->fleet;
	memcpy(header->magic, MAGIC, sizeof(MAGIC));
	header->setting_count = SETTING_COUNT;
	header->began_s = daemon->began.tv_sec;
	header->engine_began_ns = daemon->engine.began_ns;
	header->unit_count = 1;
	header->base = state->base;
	state->units_until = FIRST_UNITS;
	number_rows(state);
	err = state->kept ? rewrite(state, daemon) : 0;
	if (state->kept)
		write_all(state, &daemon->engine.tree, daemon->engine.tree.root);
	header->last_id = daemon->engine.tree.last_id;
	state_keys(state, daemon);
	if (!err)
		header->version = STATE_VERSION;
	return err;
}

int state_continue(struct state *state, struct daemon *daemon)
{
	int err;

	state->kept = true;
	/* Records have as many settings as this table. */
	err = rewrite(state, daemon);
	state->header->setting_count = SETTING_COUNT;
	return err;
}

void state_limiter_changed(struct state *state, struct daemon *daemon, struct limiter *limiter)
{
	struct header *header = state->header;
	uint32_t which = header->log;
	int err = 0;

	if (!state->kept || limiter->removed)
		return;
	header->last_id = daemon->engine.tree.last_id;
	if (header->log_end[which] <= 2 * state->live_bytes + LOG_SLACK_BYTES)
		err = append(state, which, limiter);
	else
		err = rewrite(state, daemon);
	if (err)
		log_error("no room to keep limiters for a successor");
	state_taken(state, daemon, limiter);
}

void state_limiter_removed(struct state *state, struct daemon *daemon, uint32_t id)
{
	uint32_t which = state->header->log;
	struct record *record;

	(void)daemon;
	if (!state->kept)
		return;
	record = room(state, which, sizeof(*record));
	if (!record) {
		log_error("no room to keep limiters for a successor");
		return;
	}
	*record = (struct record){.bytes = (sizeof(*record) + 7) & ~7u, .removed = true, .id = id};
	state->header->log_end[which] += record->bytes;
}

/* The last record of each limiter, by id. NULL: no memory. */
static const struct record **last_records(struct state *state, uint32_t *count)
{
	uint32_t which = state->header->log;
	const char *log = state->logs[which];
	const struct record **last;
	const struct record *record;

	*count = state->header->last_id + 1;
	last = calloc(*count, sizeof(const struct record *));
	for (uint64_t at = 0; last && at < state->header->log_end[which]; at += record->bytes) {
		record = (const struct record *)(log + at);
		assert(record->bytes && record->bytes % 8 == 0);
		if (record->id < *count)
			last[record->id] = record->removed ? NULL : record;
	}
	return last;
}

int state_limiters(struct state *state,
		   int (*restore)(void *argument, const struct state_limiter *limiter),
		   void *argument)
{
	bool same = state->header->setting_count == SETTING_COUNT;
	uint32_t count;
	const struct record **last = last_records(state, &count);
	int err = last ? 0 : -ENOMEM;

	for (uint32_t id = 0; !err && id < count; id++) {
		const struct record *record = last[id];
		struct state_limiter limiter;

		if (!record)
			continue;
		/* Behind a table of settings of another length. */
		const char *name =
			(const char *)(record->changed_s + state->header->setting_count + 1);
		limiter = (struct state_limiter){
			.id = id,
			.parent = record->parent,
			.owner = {record->uid, record->gid, record->access},
			.made_s = record->made_s,
			.changed_s = same ? record->changed_s : NULL,
			.name = name,
			.settings = name + record->name_bytes + 1,
		};
		err = restore(argument, &limiter);
	}
	free(last);
	return err;
}

void state_taken(struct state *state, struct daemon *daemon, struct limiter *limiter)
{
	if (!state->kept)
		return;
	for (; limiter->parent; limiter = limiter->parent) {
		if (!limiter->is_key && !limiter->partition)
			write_limiter(state, &daemon->engine.tree, limiter);
	}
}

static void read_unit(struct state *state, uint32_t i, struct limiter *limiter)
{
	const struct unit *unit = &state->units[i];

	if (unit->limit < limiter->bucket_count)
		read_level(unit, &limiter->buckets[unit->limit]);
	if (unit->limit)
		return;
	limiter->kept = i;
	limiter->counters[COUNTER_GRANTED] = unit->granted;
	limiter->counters[COUNTER_SERVED] = unit->served;
	limiter->counters[COUNTER_CHARGED] = unit->charged;
	limiter->counters[COUNTER_RETURNED] = unit->returned;
}

void state_restore(struct state *state, struct daemon *daemon)
{
	struct header *header = state->header;
	struct tree *tree = &daemon->engine.tree;

	state->units_until = header->unit_count > FIRST_UNITS ? header->unit_count : FIRST_UNITS;
	for (uint32_t i = 1; i < header->unit_count; i++) {
		struct limiter *limiter = state->units[i].id
						  ? tree_find_id(tree, state->units[i].id)
						  : NULL;

		if (limiter) {
			read_unit(state, i, limiter);
			continue;
		}
		state->units[i].id = 0;
		state->units[i].next = state->free_units;
		state->free_units = i;
	}
	number_rows(state);
	header->generation++;
	if (tree->last_id < header->last_id)
		tree->last_id = header->last_id;
	daemon->engine.schedule.last_key = header->last_key;
	daemon->engine.began_ns = header->engine_began_ns;
	daemon->began.tv_sec = header->began_s;
}

struct state_handle *state_handle(struct state *state, uint32_t index)
{
	return &state->handles[index];
}

uint32_t state_handle_count(const struct state *state)
{
	return state->header->handle_count;
}

void state_handle_used(struct state *state, uint32_t index)
{
	if (index >= state->header->handle_count)
		state->header->handle_count = index + 1;
}

char *state_key_name(struct state *state, uint32_t index)
{
	return state->key_names + (size_t)index * KEY_NAME_BYTES;
}
