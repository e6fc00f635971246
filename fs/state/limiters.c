/* limiters - the limiters, one record after the other, see state.h. */
#include "fs/base/log.h"
#include "fs/state/inside.h"

#include "core/limiter/holding.h"
#include "core/base/siphash.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SLACK_BYTES = 1 << 20;

/* Room for a record of @bytes at most in the log that counts, or NULL. */
static struct log_record *find_room(struct state *state, uint32_t which, size_t bytes)
{
	uint64_t end = state->header->log_end[which];

	return end + bytes <= STATE_LOG_BYTES ? (struct log_record *)(state->logs[which] + end)
					      : NULL;
}

uint64_t state_sum(const struct log_record *record)
{
	static const uint64_t seed[2];
	size_t from = offsetof(struct log_record, bytes);

	return siphash((const char *)record + from, record->bytes - from, seed);
}

/* @record is written until @end: it counts once its length does. */
static void finish_record(struct state *state, uint32_t which, struct log_record *record,
			  const char *end)
{
	record->bytes = (uint32_t)(end - (const char *)record + 7) & ~7u;
	record->sum = state_sum(record);
	state->header->log_end[which] += record->bytes;
}

static struct state_holding holding_of(const struct holding *holding)
{
	return (struct state_holding){
		.lid = holding->id,
		.generation = holding->generation,
		.saved = holding->saved,
		.cut = holding->cut,
		.version = holding->version,
		.used_ns = holding->used_ns,
		.maker = holding->maker,
	};
}

size_t state_name_at(const struct log_record *record, uint32_t settings)
{
	size_t at = sizeof(*record);

	if (record->parts & RECORD_HOLDING)
		at += sizeof(struct state_holding);
	if (record->parts & RECORD_CHANGED)
		at += settings * sizeof(uint32_t);
	return at;
}

/* Appends @settings under the next number. 0 or -ENOMEM. */
static int append_settings(struct state *state, uint32_t which, const struct settings *settings)
{
	size_t room = settings_room(settings);
	struct log_record *record = find_room(state, which, sizeof(*record) + room + 8);

	if (!record)
		return -ENOMEM;
	*record = (struct log_record){.kind = RECORD_SETTINGS, .id = state->settings_written++};
	finish_record(state, which, record,
		      record->rest + settings_print(settings, record->rest, room) + 1);
	return 0;
}

/*
 * Returns the number of @settings in the log that was written last, which has them from now on, or
 * -ENOMEM. The pool's block remembers it, and of which log it is. Number 0 are the defaults.
 */
static int64_t number_of(struct state *state, uint32_t which, const struct settings *settings)
{
	uint64_t *kept = pool_kept(settings);

	if (!kept)
		return 0;
	if (*kept >> 32 != state->logs_written) {
		uint64_t number = state->settings_written;

		if (append_settings(state, which, settings))
			return -ENOMEM;
		*kept = (uint64_t)state->logs_written << 32 | number;
	}
	return (uint32_t)*kept;
}

/* Appends what @limiter is now. 0 or -ENOMEM. */
static int append_record(struct state *state, uint32_t which, const struct limiter *limiter)
{
	int64_t settings = number_of(state, which, limiter_settings(limiter));
	size_t changed_bytes = limiter->changed_s ? SETTING_COUNT * sizeof(uint32_t) : 0;
	size_t name_bytes = strlen(limiter->name) + 1;
	struct state_holding holding = {0};
	struct log_record *record;
	char *at;

	if (limiter->holding)
		holding = holding_of(limiter->holding);
	record = find_room(state, which,
			   sizeof(*record) + sizeof(holding) + changed_bytes + name_bytes + 8);
	if (settings < 0 || !record)
		return -ENOMEM;
	*record = (struct log_record){
		.kind = RECORD_LIMITER,
		.access = limiter->access,
		.id = limiter->id,
		.parent = limiter->parent ? limiter->parent->id : 0,
		.uid = limiter->uid,
		.gid = limiter->gid,
		.made_s = limiter->made_s,
		.settings = (uint32_t)settings,
	};
	at = record->rest;
	if (limiter->holding) {
		record->parts |= RECORD_HOLDING;
		at = mempcpy(at, &holding, sizeof(holding));
	}
	if (changed_bytes) {
		record->parts |= RECORD_CHANGED;
		at = mempcpy(at, limiter->changed_s, changed_bytes);
	}
	at = mempcpy(at, limiter->name, name_bytes);
	finish_record(state, which, record, at);
	return 0;
}

static int append_records(struct state *state, uint32_t which, const struct limiter *limiter)
{
	int err = append_record(state, which, limiter);

	for (const struct limiter *l = limiter->first_child; l && !err; l = l->next_sibling)
		err = append_records(state, which, l);
	return err;
}

/* Writes the log anew in the other place. */
int state_rewrite(struct state *state)
{
	struct header *header = state->header;
	uint32_t old = header->log, which = !old;
	int err;

	header->log_end[which] = 0;
	header->setting_count[which] = SETTING_COUNT;
	state->logs_written++;
	state->settings_written = 0;
	err = append_settings(state, which, &SETTINGS_DEFAULT);
	if (!err)
		err = append_records(state, which, state->server.engine->tree.root);
	if (err)
		return err;
	state->live_bytes = header->log_end[which];
	header->log = which;
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(STATE_HEADER_BYTES + old * STATE_LOG_BYTES),
			(off_t)STATE_LOG_BYTES);
	return 0;
}

/* Marks the state as lost: a successor finds it strange, and begins anew from the source. */
static void lose_state(struct state *state)
{
	log_error(
		"no room to keep limiters for a successor: it will begin anew, with empty buckets");
	state->header->version = STATE_LOST;
}

void state_limiter_changed(struct state *state, struct limiter *limiter)
{
	struct header *header = state->header;
	uint32_t which = header->log;
	int err = -ENOMEM;

	if (!state->kept || limiter->removed || header->version == STATE_LOST)
		return;
	header->last_id = state->server.engine->tree.last_id;
	if (header->log_end[which] <= state->live_bytes / 2 * 3 + SLACK_BYTES)
		err = append_record(state, which, limiter);
	if (err)
		err = state_rewrite(state);
	if (err)
		lose_state(state);
	state_taken(state, limiter);
}

void state_limiter_removed(struct state *state, uint32_t id)
{
	struct header *header = state->header;
	struct log_record *record;

	if (!state->kept || header->version == STATE_LOST)
		return;
	record = find_room(state, header->log, sizeof(*record));
	/* It may be in the tree still. */
	if (!record && !state_rewrite(state))
		record = find_room(state, header->log, sizeof(*record));
	if (!record) {
		lose_state(state);
		return;
	}
	*record = (struct log_record){.kind = RECORD_REMOVED, .id = id};
	finish_record(state, header->log, record, record->rest);
}

/* By number; of one limiter the last one last. */
static int by_id(const void *a, const void *b)
{
	const struct log_record *one = *(const struct log_record *const *)a;
	const struct log_record *other = *(const struct log_record *const *)b;

	if (one->id != other->id)
		return one->id < other->id ? -1 : 1;
	return one < other ? -1 : one > other;
}

/* The log that counts, as it is read: its limiters by id, and the texts of settings by number. */
struct index {
	const struct log_record **limiters; /* owned */
	const char **settings;		    /* owned */
	size_t limiter_count, settings_count;
};

static int index_log(struct state *state, struct index *index)
{
	uint32_t which = state->header->log;
	const char *log = state->logs[which], *end = log + state->header->log_end[which];
	const struct log_record *record;
	size_t count = 1;

	for (const char *at = log; at < end; at += ((const struct log_record *)at)->bytes)
		count++;
	*index = (struct index){
		.limiters = calloc(count, sizeof(const struct log_record *)),
		.settings = calloc(count, sizeof(const char *)),
	};
	if (!index->limiters || !index->settings)
		return -ENOMEM;
	for (const char *at = log; at < end; at += record->bytes) {
		record = (const struct log_record *)at;
		if (record->kind == RECORD_SETTINGS)
			index->settings[index->settings_count++] = record->rest;
		else
			index->limiters[index->limiter_count++] = record;
	}
	qsort(index->limiters, index->limiter_count, sizeof(const struct log_record *), by_id);
	return 0;
}

/* Reads @record, in a log of @settings in a table. */
static struct state_limiter limiter_of(const struct index *index, const struct log_record *record,
				       uint32_t settings)
{
	struct state_limiter limiter = {
		.id = record->id,
		.parent = record->parent,
		.owner = {record->uid, record->gid, record->access},
		.made_s = record->made_s,
		.name = (const char *)record + state_name_at(record, settings),
		.settings = index->settings[record->settings],
	};

	if (record->parts & RECORD_HOLDING)
		memcpy(&limiter.holding, record->rest, sizeof(limiter.holding));
	if (record->parts & RECORD_CHANGED && settings == SETTING_COUNT)
		limiter.changed_s =
			(const uint32_t *)(limiter.name - SETTING_COUNT * sizeof(uint32_t));
	return limiter;
}

int state_limiters(struct state *state,
		   int (*restore)(void *argument, const struct state_limiter *limiter),
		   void *argument)
{
	uint32_t settings = state->header->setting_count[state->header->log];
	struct index index;
	int err = index_log(state, &index);

	for (size_t i = 0; !err && i < index.limiter_count; i++) {
		const struct log_record *record = index.limiters[i];
		struct state_limiter limiter;

		if (record->kind == RECORD_REMOVED ||
		    (i + 1 < index.limiter_count && index.limiters[i + 1]->id == record->id))
			continue;
		limiter = limiter_of(&index, record, settings);
		err = restore(argument, &limiter);
	}
	free(index.limiters);
	free(index.settings);
	return err;
}
