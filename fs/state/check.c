/*
 * check - whether what a predecessor left can be what a server wrote, see state.h.
 *
 * A server that dies of a mistake may have written anywhere before. Records of the log have a sum; of what
 * is written with every token, everything that a successor would look something up by is looked at.
 */
#include "fs/base/log.h"
#include "fs/state/inside.h"
#include "fs/state/parameter.h"

#include "core/limiter/lease.h"

#include <stddef.h>
#include <string.h>

/* Tells whether the byte at @flag is one that a bool can have. */
static bool flag_is_sound(const bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, sizeof(byte));
	return byte <= 1;
}

static bool rows_are_sound(const struct header *header)
{
	if (header->row_count > STATE_ROWS_MAX)
		return false;
	for (uint32_t i = 0; i < header->row_count; i++) {
		if (!memchr(header->rows[i], '\0', STATE_ROW_TEXT))
			return false;
	}
	return true;
}

/* @left bytes are there, with @settings in a table. */
static bool record_is_sound(const struct log_record *record, uint64_t left, uint32_t settings)
{
	uint64_t text = offsetof(struct log_record, changed_s) +
			settings * sizeof(record->changed_s[0]);
	const char *bytes = (const char *)record;

	if (left < text || record->bytes < text || record->bytes > left || record->bytes % 8 ||
	    record->sum != state_sum(record) || !flag_is_sound(&record->removed))
		return false;
	if (record->removed)
		return true;
	text += record->name_bytes;
	if (text >= record->bytes || bytes[text])
		return false;
	/* The settings, and those before. */
	for (int i = 0; i < 2; i++) {
		const char *end = memchr(bytes + text + 1, '\0', record->bytes - text - 1);

		if (!end)
			return false;
		text = (uint64_t)(end - bytes);
	}
	return true;
}

static bool log_is_sound(const struct state *state)
{
	const struct header *header = state->header;
	uint32_t which = header->log;
	uint64_t end = which < 2 ? header->log_end[which] : UINT64_MAX;
	const struct log_record *record;

	if (end > STATE_LOG_BYTES || header->setting_count[which] > STATE_SETTINGS_MAX)
		return false;
	for (uint64_t at = 0; at < end; at += record->bytes) {
		record = (const struct log_record *)(state->logs[which] + at);
		if (!record_is_sound(record, end - at, header->setting_count[which]))
			return false;
	}
	return true;
}

static bool units_are_sound(const struct state *state)
{
	uint32_t count = state->header->unit_count;

	if (!count || count > UNITS_MAX)
		return false;
	for (uint32_t i = 1; i < count; i++) {
		const struct unit *unit = &state->units[i];

		if (unit->current > 1 || unit->limit >= LIMITS_MAX || unit->next >= UNITS_MAX)
			return false;
	}
	return true;
}

static bool handles_are_sound(const struct state *state)
{
	uint32_t count = state->header->handle_count;

	if (count > STATE_HANDLES_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct state_handle *handle = &state->handles[i];
		const char *key = state->key_names + (size_t)i * KEY_NAME_BYTES;

		if (!(handle->life >> LIFE_BITS))
			return false;
		if (!(handle->life & LIFE_USED))
			continue;
		if (!flag_is_sound(&handle->granted) || !flag_is_sound(&handle->half) ||
		    !flag_is_sound(&handle->polls))
			return false;
		if (handle->row >= state->header->row_count || handle->tokens > TOKENS_MAX ||
		    handle->partition > PARTITIONS_MAX + RESERVE_HOSTS_MAX ||
		    (handle->key && (!*key || !memchr(key, '\0', KEY_NAME_BYTES))))
			return false;
	}
	return true;
}

static bool parameters_are_sound(const struct state *state)
{
	uint32_t count = state->header->parameter_count;

	if (count > PARAMETERS_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (state->parameters[i].tokens > TOKENS_MAX ||
		    state->parameters[i].generation > INT32_MAX)
			return false;
	}
	return true;
}

static bool fleet_is_sound(const struct state *state)
{
	const struct zookeeper_kept *zookeeper = &state->fleet->zookeeper;
	const struct fleet_kept *fleet = &state->fleet->fleet;

	for (uint32_t i = 0; i < KEPT_MAX; i++) {
		const struct kept_place *place = &fleet->places[i];

		if (place->state >= LEASE_STATE_COUNT ||
		    (place->index >= 2 * PARTITIONS_MAX && place->index != KEPT_CLAIM))
			return false;
	}
	return zookeeper->current < 2 && !fleet->hid[HID_TEXT - 1] &&
	       memchr(zookeeper->credentials, '\0', sizeof(zookeeper->credentials));
}

static bool places_are_sound(const struct state *state)
{
	uint32_t count = state->header->place_count;

	if (count > PARKING_PLACES_MAX)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct parked_place *place = &state->places[i];

		if (place->state > PLACE_TAKEN || place->tokens > TOKENS_MAX ||
		    place->partition > PARTITIONS_MAX + RESERVE_HOSTS_MAX ||
		    !flag_is_sound(&place->is_opener))
			return false;
	}
	return true;
}

bool state_is_sound(const struct state *state)
{
	const struct {
		bool (*is_sound)(const struct state *state);
		const char *what;
	} parts[] = {{log_is_sound, "limiters"},	{units_are_sound, "buckets"},
		     {handles_are_sound, "open files"}, {parameters_are_sound, "names"},
		     {places_are_sound, "places"},	{fleet_is_sound, "the fleet"}};
	const char *damaged = rows_are_sound(state->header) ? NULL : "rows";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !damaged; i++) {
		if (!parts[i].is_sound(state))
			damaged = parts[i].what;
	}
	if (damaged)
		log_error("the state of the server before is damaged: %s", damaged);
	return !damaged;
}
