/*
 * list - an intrusive doubly linked list.
 *
 * Links are members of the entries, so nothing here allocates or fails, and each operation is O(1).
 * A list that is all zeros is empty.
 */
#ifndef RATEFS_CORE_LIST_H
#define RATEFS_CORE_LIST_H

#include "core/base/container.h"

#include <stddef.h>

struct list_link {
	struct list_link *next, *previous; /* NULL at the ends */
};

struct list {
	struct list_link *first, *last; /* not owned */
};

/* Returns the entry of a link, or NULL for NULL. */
#define list_entry(pointer, type, member)                           \
	__extension__({                                             \
		__typeof__(&((type *)0)->member) link_ = (pointer); \
		link_ ? container_of(link_, type, member) : NULL;   \
	})

/* Return the first entry of a list, and the entry after one; NULL: there is none. */
#define list_first(list, type, member) list_entry((list)->first, type, member)

#define list_next(entry, member) list_entry((entry)->member.next, __typeof__(*(entry)), member)

/* Puts @link, which is in no list, behind the others. */
static inline void list_append(struct list *list, struct list_link *link)
{
	link->next = NULL;
	link->previous = list->last;
	if (list->last)
		list->last->next = link;
	else
		list->first = link;
	list->last = link;
}

/* Puts @link, which is in no list, before the others. */
static inline void list_prepend(struct list *list, struct list_link *link)
{
	link->next = list->first;
	link->previous = NULL;
	if (list->first)
		list->first->previous = link;
	else
		list->last = link;
	list->first = link;
}

/* Takes @link out of @list, in which it is. */
static inline void list_remove(struct list *list, struct list_link *link)
{
	if (link->previous)
		link->previous->next = link->next;
	else
		list->first = link->next;
	if (link->next)
		link->next->previous = link->previous;
	else
		list->last = link->previous;
	link->next = NULL;
	link->previous = NULL;
}

#endif
