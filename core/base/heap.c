/* heap - an intrusive pairing heap, see heap.h. */
#include "core/base/heap.h"

#include <assert.h>
#include <stddef.h>

/* Makes the larger root the first child of the smaller; both are alone. Equal keys: @a stays up. */
static struct heap_node *meld_roots(struct heap_node *a, struct heap_node *b)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (b->key < a->key) {
		struct heap_node *swap = a;

		a = b;
		b = swap;
	}
	b->next = a->child;
	b->back = a;
	if (a->child)
		a->child->back = b;
	a->child = b;
	return a;
}

/* Pairs the siblings from left to right, then melds the pairs from right to left. */
static struct heap_node *meld_siblings(struct heap_node *first)
{
	struct heap_node *pairs = NULL, *all = NULL;

	while (first) {
		struct heap_node *a = first, *b = first->next, *pair;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		pair = meld_roots(a, b);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct heap_node *next = pairs->next;

		pairs->next = NULL;
		all = meld_roots(pairs, all);
		pairs = next;
	}
	return all;
}

static void set_root(struct heap *heap, struct heap_node *node)
{
	heap->root = node;
	if (node) {
		node->back = node;
		node->next = NULL;
	}
}

void heap_insert(struct heap *heap, struct heap_node *node, uint64_t key)
{
	assert(!heap_holds(node));
	node->key = key;
	node->child = NULL;
	node->next = NULL;
	set_root(heap, meld_roots(heap->root, node));
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	struct heap_node *rest;

	if (!heap_holds(node))
		return;
	rest = meld_siblings(node->child);
	if (node == heap->root) {
		set_root(heap, rest);
	} else {
		if (node->back->child == node)
			node->back->child = node->next;
		else
			node->back->next = node->next;
		if (node->next)
			node->next->back = node->back;
		set_root(heap, meld_roots(heap->root, rest));
	}
	node->child = NULL;
	node->next = NULL;
	node->back = NULL;
}

struct heap_node *heap_next(const struct heap_node *node)
{
	if (node->child)
		return node->child;
	while (!node->next) {
		/* From the last sibling back to the first, and up. */
		while (node->back != node && node->back->child != node)
			node = node->back;
		if (node->back == node)
			return NULL;
		node = node->back;
	}
	return node->next;
}
