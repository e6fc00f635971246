/* watch - of the library on a node, see connection.h. */
#include "tests/sim/coordinator/connection.h"

#include <stdlib.h>

void watch_link(struct watch *watch, struct watch **list)
{
	if (watch->back) {
		*watch->back = watch->next;
		if (watch->next)
			watch->next->back = watch->back;
	}
	watch->next = *list;
	watch->back = list;
	if (*list)
		(*list)->back = &watch->next;
	*list = watch;
}

void watch_unregister(struct watch *watch)
{
	if (!watch->node)
		return;
	*watch->back_of_node = watch->next_of_node;
	if (watch->next_of_node)
		watch->next_of_node->back_of_node = watch->back_of_node;
	watch->node = NULL;
}

void watch_free(struct watch *watch)
{
	watch_unregister(watch);
	*watch->back = watch->next;
	if (watch->next)
		watch->next->back = watch->back;
	free(watch);
}
