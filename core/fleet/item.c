/* item - what a transaction does to the tiles of one limiter, see item.h. */
#include "core/fleet/item.h"

#include <stdlib.h>
#include <string.h>

struct item item_of(struct holding *holding, bool reserve)
{
	return (struct item){.holding = holding, .cut = holding->cut, .reserve = reserve};
}

bool item_begin(struct item *item, const struct tiles *tiles, const char *hid, uint64_t seed)
{
	const struct holding *holding = item->holding;
	struct plan_rules rules = {
		.hid = hid,
		.single = item->reserve || holding_has_numbers(holding->settings),
		.full = rest_full(holding->settings, holding->saved),
		.seed = seed,
	};

	/* Nothing is saved up in a reserve that no host has. */
	if (item->reserve)
		memset(rules.full.nano, 0, sizeof(rules.full.nano));
	item->plan = calloc(1, sizeof(*item->plan));
	if (!item->plan || !plan_begin(item->plan, &rules, tiles))
		return item->plan;
	free(item->plan);
	item->plan = NULL;
	return false;
}

void item_free(struct item *item)
{
	if (item->plan)
		plan_end(item->plan);
	free(item->plan);
	item->plan = NULL;
}

bool item_counts(const struct item *item)
{
	return !item->holding->limiter->removed && item->cut == item->holding->cut;
}

struct lease *item_leases(const struct item *item, uint32_t *count)
{
	*count = item->reserve ? 1 : item->holding->lease_count;
	return item->reserve ? &item->holding->reserve : item->holding->leases;
}

void item_path(const struct item *item, char path[ZNODE_TEXT])
{
	znode_path_tile(item->holding->id, item->cut, item->reserve, NULL, path);
}
