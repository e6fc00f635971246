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

enum { SETTINGS_BYTES = SETTING_COUNT * 2 * SETTING_TEXT };

/* Room for a record of @bytes at most in the log that counts, or NULL. */
static struct log_record *room(struct state *state, uint32_t which, size_t bytes)
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

/* @record is written: it counts once its length does. */
static void finish(struct state *state, uint32_t which, struct log_record *record)
{
	record->sum = state_sum(record);
	state->header->log_end[which] += record->bytes;
}

static struct state_holding holding_of(const struct holding *holding)
{
	return (struct state_holding){
		.lid = holding->id,
		.generation = holding->generation,
		.saved = holding->saved,
		.before_ns = holding->before_ns,
		.version = holding->version,
		.before_count = (uint16_t)holding->before_count,
		.before_is = (uint16_t)holding->before_is,
	};
}

/* Appends what @limiter is now. 0 or -ENOMEM. */
static int append(struct state *state, uint32_t which, const struct limiter *limiter)
{
	size_t name_bytes = strlen(limiter->name);
	size_t most = sizeof(struct log_record) + name_bytes + 3 + 2 * SETTINGS_BYTES + 8;
	struct log_record *record = room(state, which, most);
	const struct holding *holding = limiter->holding;
	struct settings settings;
	char *text;

	if (!record)
		return -ENOMEM;
	text = (char *)(record->changed_s + SETTING_COUNT) + name_bytes + 1;
	settings = *limiter_settings(limiter);
	*record = (struct log_record){.name_bytes = (uint8_t)name_bytes,
				      .access = limiter->access,
				      .id = limiter->id,
				      .parent = limiter->parent ? limiter->parent->id : 0,
				      .uid = limiter->uid,
				      .gid = limiter->gid,
				      .made_s = limiter->made_s};
	memcpy(record->changed_s, limiter->changed_s, sizeof(record->changed_s));
	memcpy(record->changed_s + SETTING_COUNT, limiter->name, name_bytes + 1);
	text += settings_print(&settings, text, SETTINGS_BYTES) + 1;
	*text = '\0';
	if (holding)
		record->holding = holding_of(holding);
	if (record->holding.before_ns)
		text += settings_print(&holding->before, text, SETTINGS_BYTES);
	record->bytes = (uint32_t)(text + 1 - (char *)record + 7) & ~7u;
	finish(state, which, record);
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
int state_rewrite(struct state *state)
{
	struct header *header = state->header;
	uint32_t old = header->log, which = !old;
	int err;

	header->log_end[which] = 0;
	header->setting_count[which] = SETTING_COUNT;
	err = append_all(state, which, state->server.engine->tree.root);
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
static void lose(struct state *state)
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
	if (header->log_end[which] <= 2 * state->live_bytes + SLACK_BYTES)
		err = append(state, which, limiter);
	if (err)
		err = state_rewrite(state);
	if (err)
		lose(state);
	state_taken(state, limiter);
}

void state_limiter_removed(struct state *state, uint32_t id)
{
	struct header *header = state->header;
	struct log_record *record;

	if (!state->kept || header->version == STATE_LOST)
		return;
	record = room(state, header->log, sizeof(*record));
	/* It may be in the tree still. */
	if (!record && !state_rewrite(state))
		record = room(state, header->log, sizeof(*record));
	if (!record) {
		lose(state);
		return;
	}
	*record = (struct log_record){
		.bytes = (sizeof(*record) + 7) & ~7u, .removed = true, .id = id};
	finish(state, header->log, record);
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

/* All records by id, or NULL: no memory. */
static const struct log_record **sorted_records(struct state *state, size_t *count)
{
	uint32_t which = state->header->log;
	const char *log = state->logs[which], *end = log + state->header->log_end[which];
	const struct log_record **all;
	const char *at;

	*count = 0;
	for (at = log; at < end; at += ((const struct log_record *)at)->bytes)
		++*count;
	all = calloc(*count + 1, sizeof(const struct log_record *));
	if (!all)
		return NULL;
	*count = 0;
	for (at = log; at < end; at += ((const struct log_record *)at)->bytes)
		all[(*count)++] = (const struct log_record *)at;
	qsort(all, *count, sizeof(const struct log_record *), by_id);
	return all;
}

int state_limiters(struct state *state,
		   int (*restore)(void *argument, const struct state_limiter *limiter),
		   void *argument)
{
	uint32_t settings = state->header->setting_count[state->header->log];
	size_t count;
	const struct log_record **all = sorted_records(state, &count);
	int err = all ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count; i++) {
		const struct log_record *record = all[i];
		const char *name = (const char *)(record->changed_s + settings);
		struct state_limiter limiter;

		if (record->removed || (i + 1 < count && all[i + 1]->id == record->id))
			continue;
		limiter = (struct state_limiter){
			.id = record->id,
			.parent = record->parent,
			.owner = {record->uid, record->gid, record->access},
			.made_s = record->made_s,
			.changed_s = settings == SETTING_COUNT ? record->changed_s : NULL,
			.name = name,
			.settings = name + record->name_bytes + 1,
			.holding = record->holding,
		};
		limiter.before = limiter.settings + strlen(limiter.settings) + 1;
		err = restore(argument, &limiter);
	}
	free(all);
	return err;
}
