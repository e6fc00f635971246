/* state_log - the limiters, one record after the other, see state.h. */
#include "fs/state_inside.h"
#include "fs/log.h"

#include "core/holding.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t SLACK_BYTES = 1 << 20;

enum { SETTINGS_BYTES = SETTING_COUNT * 2 * SETTING_TEXT };

/* Room for a record of @bytes at most in the log that counts, or NULL. */
static struct limiter_record *room(struct state *state, uint32_t which, size_t bytes)
{
	uint64_t end = state->header->log_end[which];

	return end + bytes <= STATE_LOG_BYTES ? (struct limiter_record *)(state->logs[which] + end)
					      : NULL;
}

/* Appends what @limiter is now. 0 or -ENOMEM. */
static int append(struct state *state, uint32_t which, const struct limiter *limiter)
{
	size_t name_bytes = strlen(limiter->name);
	size_t most = sizeof(struct limiter_record) + name_bytes + 3 + 2 * SETTINGS_BYTES + 8;
	struct limiter_record *record = room(state, which, most);
	const struct holding *holding = limiter->holding;
	struct settings settings;
	char *text;

	if (!record)
		return -ENOMEM;
	text = (char *)(record + 1) + name_bytes + 1;
	limiter_settings(limiter, &settings);
	*record = (struct limiter_record){.name_bytes = (uint8_t)name_bytes,
					  .access = limiter->access,
					  .id = limiter->id,
					  .parent = limiter->parent ? limiter->parent->id : 0,
					  .uid = limiter->uid,
					  .gid = limiter->gid,
					  .made_s = limiter->made_s};
	memcpy(record->changed_s, limiter->changed_s, sizeof(record->changed_s));
	if (holding) {
		record->holding = (struct state_holding){
			.lid = holding->id,
			.generation = holding->generation,
			.restricted_ns = holding->restricted ? holding->restricted_ns : 0,
			.version = holding->version,
			.before_count = holding->before_count,
		};
	}
	memcpy(record + 1, limiter->name, name_bytes + 1);
	record->settings_bytes = (uint32_t)settings_print(&settings, text, SETTINGS_BYTES);
	text += record->settings_bytes + 1;
	*text = '\0';
	if (holding && holding->restricted)
		text += settings_print(&holding->before, text, SETTINGS_BYTES);
	record->bytes = (uint32_t)(text + 1 - (char *)record + 7) & ~7u;
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
int state_rewrite(struct state *state, const struct daemon *daemon)
{
	struct header *header = state->header;
	uint32_t old = header->log, which = !old;
	int err;

	header->log_end[which] = 0;
	header->setting_count[which] = SETTING_COUNT;
	err = append_all(state, which, daemon->engine.tree.root);
	if (err)
		return err;
	state->live_bytes = header->log_end[which];
	header->log = which;
	(void)fallocate(state->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(STATE_HEADER_BYTES + old * STATE_LOG_BYTES),
			(off_t)STATE_LOG_BYTES);
	return 0;
}
void state_limiter_changed(struct state *state, struct daemon *daemon, struct limiter *limiter)
{
	struct header *header = state->header;
	uint32_t which = header->log;
	int err = 0;

	if (!state->kept || limiter->removed)
		return;
	header->last_id = daemon->engine.tree.last_id;
	if (header->log_end[which] <= 2 * state->live_bytes + SLACK_BYTES)
		err = append(state, which, limiter);
	else
		err = state_rewrite(state, daemon);
	if (err)
		log_error("no room to keep limiters for a successor");
	state_taken(state, daemon, limiter);
}

void state_limiter_removed(struct state *state, struct daemon *daemon, uint32_t id)
{
	uint32_t which = state->header->log;
	struct limiter_record *record;

	(void)daemon;
	if (!state->kept)
		return;
	record = room(state, which, sizeof(*record));
	if (!record) {
		log_error("no room to keep limiters for a successor");
		return;
	}
	*record = (struct limiter_record){
		.bytes = (sizeof(*record) + 7) & ~7u, .removed = true, .id = id};
	state->header->log_end[which] += record->bytes;
}

/* The last record of each limiter, by id. NULL: no memory. */
static const struct limiter_record **last_records(struct state *state, uint32_t *count)
{
	uint32_t which = state->header->log;
	const char *log = state->logs[which];
	const struct limiter_record **last;
	const struct limiter_record *record;

	*count = state->header->last_id + 1;
	last = calloc(*count, sizeof(const struct limiter_record *));
	for (uint64_t at = 0; last && at < state->header->log_end[which]; at += record->bytes) {
		record = (const struct limiter_record *)(log + at);
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
	bool same = state->header->setting_count[state->header->log] == SETTING_COUNT;
	uint32_t count;
	const struct limiter_record **last = last_records(state, &count);
	int err = last ? 0 : -ENOMEM;

	for (uint32_t id = 0; !err && id < count; id++) {
		const struct limiter_record *record = last[id];
		struct state_limiter limiter;

		if (!record)
			continue;
		/* Behind a table of settings of another length. */
		const char *name = (const char *)(record->changed_s +
						  state->header->setting_count[state->header->log] +
						  1);
		limiter = (struct state_limiter){
			.id = id,
			.parent = record->parent,
			.owner = {record->uid, record->gid, record->access},
			.made_s = record->made_s,
			.changed_s = same ? record->changed_s : NULL,
			.name = name,
			.settings = name + record->name_bytes + 1,
			.holding = record->holding,
		};
		limiter.before = limiter.settings + record->settings_bytes + 1;
		err = restore(argument, &limiter);
	}
	free(last);
	return err;
}
