/* recut - the leaves of a limiter, made and numbered anew, see recut.h. */
#include "core/fleet/recut.h"
#include "core/fleet/baseline.h"
#include "core/fleet/parts.h"
#include "core/fleet/plan.h"
#include "core/fleet/request.h"
#include "core/fleet/tile.h"
#include "core/fleet/znode.h"

#include <stdlib.h>

/* Of what is to be numbered anew. */
struct recut {
	uint64_t id, cut; /* the tiles are of these leaves; 0: of none */
	uint32_t pending; /* lists to come */
	bool failed;
	struct tiles tiles[2]; /* owned: of the leaves, of the reserve */
};

bool recut_new(struct fleet *fleet)
{
	fleet->recut = calloc(1, sizeof(*fleet->recut));
	return fleet->recut;
}

void recut_forget(struct fleet *fleet)
{
	tiles_free(&fleet->recut->tiles[0]);
	tiles_free(&fleet->recut->tiles[1]);
	*fleet->recut = (struct recut){0};
}

void recut_free(struct fleet *fleet)
{
	if (fleet->recut)
		recut_forget(fleet);
	free(fleet->recut);
}

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

static uint32_t leaves_of(const struct settings *settings, bool reserve)
{
	return reserve ? settings->reserve_hosts : holding_leaves(settings);
}

static void tiles_listed(struct fleet *fleet, struct request *request)
{
	struct recut *recut = fleet->recut;
	struct znode znode;

	(void)znode_parse(request->path, &znode);
	if (znode.id != recut->id || znode.cut != recut->cut)
		return;
	recut->pending--;
	if (request->answer != ANSWER_OK ||
	    !tiles_read(&recut->tiles[znode.kind == ZNODE_RESERVES], request->names,
			request->name_count, (uint32_t)request->of.number))
		recut->failed = true;
}

bool recut_has_looked(struct fleet *fleet, const struct holding *holding)
{
	struct recut *recut = fleet->recut;
	char path[ZNODE_TEXT];

	if (recut->id == holding->id && recut->cut == holding->cut)
		return !recut->pending;
	recut_forget(fleet);
	recut->id = holding->id;
	recut->cut = holding->cut;
	for (int reserve = 0; reserve < 2; reserve++) {
		uint32_t leaves = leaves_of(holding->settings, reserve);
		struct request *request;

		if (!leaves)
			continue;
		znode_path_tile(holding->id, holding->cut, reserve, NULL, path);
		request = request_new(REQUEST_LIST, path, tiles_listed);
		if (!request) {
			recut->failed = true;
			continue;
		}
		request->of.number = leaves;
		recut->pending++;
		request_send(fleet, request);
	}
	return !recut->pending;
}

/* Tells whether all of @tiles are clean, and puts the oldest epoch into *@epoch. */
static bool are_clean(const struct tiles *tiles, uint32_t *epoch)
{
	for (uint32_t i = 0; i < tiles->count; i++) {
		if (!tile_is_clean(&tiles->list[i]))
			return false;
		if (tiles->list[i].epoch < *epoch)
			*epoch = tiles->list[i].epoch;
	}
	return tiles->whole;
}

bool recut_merge(const struct fleet *fleet, const struct holding *holding, struct recut_tile *all)
{
	const struct recut *recut = fleet->recut;
	const struct tiles *leaves = &recut->tiles[0], *reserve = &recut->tiles[1];
	struct rest full = rest_full(holding->settings, holding->saved);
	uint32_t epoch = UINT32_MAX;
	struct tiles merged;

	if (recut->id != holding->id || recut->cut != holding->cut || recut->failed ||
	    leaves->count + reserve->count > PLAN_CHANGES_MAX || !are_clean(leaves, &epoch) ||
	    (holding->settings->reserve_hosts && !are_clean(reserve, &epoch)) ||
	    !tiles_copy(&merged, leaves))
		return false;
	while (merged.count > 1)
		tiles_merge(&merged, 0, &full);
	*all = (struct recut_tile){epoch, merged.list[0].rest};
	tiles_free(&merged);
	return true;
}

bool recut_delete(const struct fleet *fleet, struct request *request)
{
	const struct recut *recut = fleet->recut;
	char path[ZNODE_TEXT], name[TILE_TEXT];

	for (int reserve = 0; reserve < 2; reserve++) {
		for (uint32_t i = 0; i < recut->tiles[reserve].count; i++) {
			tile_print(&recut->tiles[reserve].list[i], name);
			znode_path_tile(recut->id, recut->cut, reserve, name, path);
			if (!request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY,
					 0))
				return false;
		}
	}
	return true;
}

bool recut_add_tiles(struct request *request, const struct record *record, uint64_t id,
		     const struct recut_tile *all)
{
	char path[ZNODE_TEXT], name[TILE_TEXT];

	for (int reserve = 0; reserve < 2; reserve++) {
		uint32_t leaves = leaves_of(&record->settings, reserve);
		struct tile tile = {.last = leaves - 1, .epoch = all->epoch, .rest = all->rest};

		if (!leaves)
			continue;
		if (reserve)
			tile.rest = (struct rest){.saved = record->saved};
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
