/* baseline - the settings that this host stands on, see baseline.h. */
#include "core/fleet/baseline.h"

#include <stdlib.h>

struct baseline {
	struct globals globals;
	int32_t version;
	uint64_t zxid;
	bool is_stale;
	bool is_void;
	int32_t root_version;
	uint64_t root_generation;
};

bool baseline_new(struct fleet *fleet)
{
	fleet->baseline = calloc(1, sizeof(*fleet->baseline));
	if (!fleet->baseline)
		return false;
	fleet->baseline->version = -1;
	fleet->baseline->root_version = -1;
	return true;
}

void baseline_free(struct fleet *fleet)
{
	free(fleet->baseline);
}

int32_t baseline_version(const struct fleet *fleet)
{
	return fleet->baseline->version;
}

uint64_t baseline_zxid(const struct fleet *fleet)
{
	return fleet->baseline->zxid;
}

const struct globals *baseline_globals(const struct fleet *fleet)
{
	return &fleet->baseline->globals;
}

void baseline_set(struct fleet *fleet, const struct globals *globals, int32_t version,
		  uint64_t zxid)
{
	fleet->baseline->globals = *globals;
	fleet->baseline->version = version;
	fleet->baseline->zxid = zxid;
	fleet->baseline->is_stale = false;
	fleet->baseline->is_void = false;
}

void baseline_advance(struct fleet *fleet, uint64_t id, uint64_t given, uint64_t zxid)
{
	struct baseline *baseline = fleet->baseline;

	record_add_change(&baseline->globals, baseline->version, id);
	if (given > baseline->globals.last_id)
		baseline->globals.last_id = given;
	baseline->version++;
	baseline->zxid = zxid;
}

bool baseline_is_stale(const struct fleet *fleet)
{
	return fleet->baseline->is_stale;
}

void baseline_note_stale(struct fleet *fleet)
{
	fleet->baseline->is_stale = true;
}

bool baseline_is_void(const struct fleet *fleet)
{
	return fleet->baseline->is_void;
}

void baseline_note_void(struct fleet *fleet)
{
	fleet->baseline->is_void = true;
}

int32_t baseline_root_version(const struct fleet *fleet)
{
	return fleet->baseline->root_version;
}

uint64_t baseline_root_generation(const struct fleet *fleet)
{
	return fleet->baseline->root_generation;
}

void baseline_set_root_version(struct fleet *fleet, int32_t version)
{
	fleet->baseline->root_version = version;
}

void baseline_set_root_generation(struct fleet *fleet, uint64_t generation)
{
	fleet->baseline->root_generation = generation;
}
