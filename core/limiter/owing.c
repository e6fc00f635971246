/* owing - finish tags of idle keys, see owing.h. */
#include "core/limiter/owing.h"

#include <stdlib.h>

/* Tags that have been passed are dropped so many at a time: more than are begun. */
enum { DROPS = 2 };

static const struct order *order_of(const struct keys *keys)
{
	return keys->limiter->turns.order;
}

static void drop_passed(struct keys *keys)
{
	for (int i = 0; i < DROPS; i++) {
		const struct owing *oldest = list_first(&keys->owing, struct owing, by_age);

		if (!oldest || order_is_ahead(order_of(keys), oldest->finish))
			return;
		(void)owing_end(keys, oldest->key);
	}
}

void owing_begin(struct keys *keys, struct key *key, const struct sibling *sibling)
{
	uint64_t finish = order_tag(order_of(keys), sibling);
	struct owing *owing;

	drop_passed(keys);
	if (!order_is_ahead(order_of(keys), finish))
		return;
	owing = malloc(sizeof(*owing));
	if (!owing)
		return;
	*owing = (struct owing){.key = key, .count = key->count, .finish = finish};
	list_append(&keys->owing, &owing->by_age);
	key->owing = owing;
	key->owes = true;
}

uint64_t owing_end(struct keys *keys, struct key *key)
{
	struct owing *owing = key->owing;
	uint64_t finish;

	if (!key->owes)
		return 0;
	finish = owing->finish;
	list_remove(&keys->owing, &owing->by_age);
	key->count = owing->count;
	key->owes = false;
	free(owing);
	return finish;
}

bool owing_is_ahead(const struct keys *keys, const struct key *key)
{
	return key->owes && order_is_ahead(order_of(keys), key->owing->finish);
}
