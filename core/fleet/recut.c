/* recut - the leaves of a limiter, made and numbered anew, see recut.h. */
#include "core/fleet/recut.h"
#include "core/fleet/baseline.h"
#include "core/fleet/parts.h"
#include "core/fleet/request.h"
#include "core/fleet/tile.h"
#include "core/fleet/znode.h"

/* Tells whether hosts under @settings use leaves for anything. */
static bool uses_leaves(const struct settings *settings)
{
	return settings_limit(settings) || settings->slots.kind == SLOTS_COUNT;
}

void recut_name(const struct fleet *fleet, const struct holding *holding, struct record *record)
{
	record->cut = holding_is_cut_alike(holding->settings, &record->settings)
			      ? holding->cut
			      : record->generation;
	record->used = holding->used_ns > fleet->clocks.waiter_ns ||
		       (uses_leaves(holding->settings) && !uses_leaves(&record->settings));
}

void recut_heed(const struct fleet *fleet, struct holding *holding, const struct record *record)
{
	/* An election may have taken back its settings: then no record tells of them. */
	if (record->used || (baseline_is_void(fleet) && uses_leaves(holding->settings)))
		holding->used_ns = fleet->clocks.waiter_ns + fleet->constants.quarantine_ns;
}

bool recut_is_free(const struct fleet *fleet, const struct holding *holding)
{
	return !uses_leaves(holding->settings) && holding->used_ns <= fleet->clocks.waiter_ns;
}

bool recut_add_tiles(const struct fleet *fleet, struct request *request,
		     const struct record *record, uint64_t id, bool is_free)
{
	const uint32_t leaves[] = {holding_leaves(&record->settings),
				   record->settings.reserve_hosts};
	char path[ZNODE_TEXT], name[TILE_TEXT];

	for (int reserve = 0; reserve < 2; reserve++) {
		struct tile tile = {
			.last = leaves[reserve] - 1,
			.epoch = is_free ? fleet->epochs.newest : EPOCH_NONE,
			.rest.saved = record->saved,
		};

		if (!leaves[reserve])
			continue;
		tile_print(&tile, name);
		znode_path_tile(id, record->cut, reserve, NULL, path);
		if (!request_add(request, OPERATION_CREATE, path, NULL, 0, 0))
			return false;
		znode_path_tile(id, record->cut, reserve, name, path);
		if (!request_add(request, OPERATION_CREATE, path, NULL, 0, 0))
			return false;
	}
	return true;
}
