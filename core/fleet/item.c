/* item - a partition that a transaction is about, see item.h. */
#include "core/fleet/item.h"

struct lease *item_lease(const struct item *item)
{
	return item->reserve ? &item->holding->reserve
			     : holding_find_lease(item->holding, item->index);
}

uint32_t item_index(const struct item *item)
{
	return item->reserve ? PARTITIONS_MAX + item->index : item->index;
}

void item_path(const struct item *item, enum znode_kind kind, char path[ZNODE_TEXT])
{
	znode_path_partition(kind, item->holding->id, item->index, item->reserve, path);
}
