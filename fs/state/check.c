/*
 * check - whether what a predecessor left can be what a server wrote, see state.h.
 *
 * A server that dies of a mistake may have written anywhere before. Records of the log have a sum.
 * The parts that are written with every token have none: their indexes and flags are checked.
 */
#include "fs/base/log.h"
#include "fs/state/inside.h"
#include "fs/state/parameter.h"

#include "core/fleet/znode.h"
#include "core/limiter/lease.h"

#include <stddef.h>
#include <string.h>

bool state_flag_is_sound(const bool *flag)
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

/* Returns the byte behind the text at @at of @record; 0: the text does not end within it. */
static size_t text_end(const struct log_record *record, size_t at)
{
	const char *bytes = (const char *)record, *end = NULL;

	if (at < record->bytes)
		end = memchr(bytes + at, '\0', record->bytes - at);
	return end ? (size_t)(end - bytes) + 1 : 0;
}

static bool limiter_is_sound(const struct log_record *record, uint32_t settings)
{
	size_t name = state_name_at(record, settings), end = text_end(record, name);

	return !(record->parts & ~RECORD_PARTS) && end && end - name <= NAME_BYTES_MAX + 1;
}

/* A log as far as it was looked at. */
struct walk {
	uint64_t left;	   /* bytes */
	uint32_t settings; /* in a table */
	uint32_t numbers;  /* of settings that were there */
};

static bool record_is_sound(const struct log_record *record, struct walk *walk)
{
	if (walk->left < sizeof(*record) || record->bytes < sizeof(*record) ||
	    record->bytes > walk->left || record->bytes % 8 || record->sum != state_sum(record))
		return false;
	switch ((enum record_kind)record->kind) {
	case RECORD_LIMITER:
		return record->settings < walk->numbers && limiter_is_sound(record, walk->settings);
	case RECORD_REMOVED:
		return true;
	case RECORD_SETTINGS:
		return record->id == walk->numbers++ && text_end(record, sizeof(*record));
	case RECORD_KINDS:
		break;
	}
	return false;
}

static bool log_is_sound(const struct state *state)
{
	const struct header *header = state->header;
	uint32_t which = header->log;
	uint64_t end = which < 2 ? header->log_end[which] : UINT64_MAX;
	struct walk walk = {.left = end};
	const struct log_record *record;

	if (end > STATE_LOG_BYTES || header->setting_count[which] > STATE_SETTINGS_MAX)
		return false;
	walk.settings = header->setting_count[which];
	for (; walk.left; walk.left -= record->bytes) {
		record = (const struct log_record *)(state->logs[which] + end - walk.left);
		if (!record_is_sound(record, &walk))
			return false;
	}
	return true;
}

static bool units_are_sound(const struct state *state)
{
	uint32_t count = state->header->unit_count;

	if (!count || count > UNITS_MAX || state->header->journal.unit >= count)
		return false;
	for (uint32_t i = 1; i < count; i++) {
		const struct unit *unit = &state->units[i];

		if (unit->limit >= LIMITS_MAX || unit->next >= UNITS_MAX)
			return false;
	}
	return true;
}

/* Tells whether @amounts can be @count that a server wrote. */
static bool amounts_are_sound(const struct amounts *amounts, uint64_t count)
{
	char unit[UNIT_TEXT];

	if (!count)
		return true;
	if (count > AMOUNTS_MAX || amounts->count != count)
		return false;
	for (uint64_t i = 0; i < count; i++) {
		const struct amount *amount = &amounts->of[i];

		if (amount->tokens > TOKENS_MAX ||
		    !amount_read_unit(amount->unit, strnlen(amount->unit, UNIT_TEXT), unit) ||
		    !amount_is_of(amount->unit, unit))
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
		const char *key = state->handle_texts + (size_t)i * STATE_HANDLE_TEXT;

		if (!(handle->life >> LIFE_BITS))
			return false;
		if (!(handle->life & LIFE_USED))
			continue;
		if (!state_flag_is_sound(&handle->granted) || !state_flag_is_sound(&handle->half) ||
		    !state_flag_is_sound(&handle->polls) ||
		    !state_flag_is_sound(&handle->slot_lost))
			return false;
		if (handle->row >= state->header->row_count || handle->tokens > TOKENS_MAX ||
		    handle->most > TOKENS_MAX || handle->given > TOKENS_MAX ||
		    handle->partition > STATE_PIECES_MAX ||
		    !amounts_are_sound(&state->handle_amounts[i], handle->units) ||
		    (handle->key && (!*key || !memchr(key, '\0', STATE_HANDLE_TEXT))))
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
		const struct parameter *parameter = &state->parameters[i];

		if (parameter->name.tokens > TOKENS_MAX || parameter->name.most > TOKENS_MAX ||
		    parameter->generation > INT32_MAX ||
		    !amounts_are_sound(&state->parameter_amounts[i], parameter->name.units))
			return false;
	}
	return true;
}

/* A lease that has a tile lies in it. */
static bool handover_place_is_sound(const struct handover_place *place)
{
	bool has_tile = place->kind != HANDOVER_CLAIM &&
			(place->state == LEASE_HELD || place->state == LEASE_WAITING ||
			 place->state == LEASE_DRAINING);

	return place->state < LEASE_STATE_COUNT && place->kind < HANDOVER_KIND_COUNT &&
	       state_flag_is_sound(&place->sent) && place->first <= place->last &&
	       place->last < PARTITIONS_MAX && place->tile_last < PARTITIONS_MAX &&
	       place->parts_bytes < ZNODE_TEXT &&
	       (!has_tile ||
		(place->tile_first <= place->first && place->last <= place->tile_last));
}

static bool handover_key_is_sound(const struct handover_key *key)
{
	return state_flag_is_sound(&key->used) &&
	       !(key->leaves[HANDOVER_KEY_WORDS - 1] >> KEY_LEAVES % 64);
}

static bool fleet_is_sound(const struct state *state)
{
	const struct zookeeper_handover *zookeeper = &state->fleet->zookeeper;
	const struct handover_memory *fleet = &state->fleet->fleet;

	for (uint32_t i = 0; i < HANDOVER_PLACES; i++) {
		if (!handover_place_is_sound(&fleet->places[i]))
			return false;
	}
	for (uint32_t i = 0; i < HANDOVER_KEYS; i++) {
		if (!handover_key_is_sound(&fleet->keys[i]))
			return false;
	}
	return state_flag_is_sound(&fleet->key_seeded) && zookeeper->current < 2 &&
	       !fleet->hid[HID_TEXT - 1] &&
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
		    place->most > TOKENS_MAX ||
		    place->site.partition > PARTITIONS_MAX + RESERVE_HOSTS_MAX ||
		    !state_flag_is_sound(&place->is_opener))
			return false;
	}
	return true;
}

static bool keys_are_sound(const struct state *state)
{
	return key_ledger_is_sound(state->key_ledger);
}

bool state_is_sound(const struct state *state)
{
	const struct {
		bool (*is_sound)(const struct state *state);
		const char *what;
	} parts[] = {{log_is_sound, "limiters"},	 {units_are_sound, "buckets"},
		     {handles_are_sound, "open files"},	 {parameters_are_sound, "names"},
		     {places_are_sound, "places"},	 {fleet_is_sound, "the fleet"},
		     {keys_are_sound, "windows of keys"}};
	const char *damaged = rows_are_sound(state->header) ? NULL : "rows";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && !damaged; i++) {
		if (!parts[i].is_sound(state))
			damaged = parts[i].what;
	}
	if (damaged)
		log_error("the state of the server before is damaged: %s", damaged);
	return !damaged;
}
