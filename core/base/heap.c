/* heap - an intrusive pairing heap, see heap.h. */
#include "core/base/heap.h"

#include <assert.h>
#include <stddef.h>

/* Tells whether @b is to be above @a. Equal keys without @before: @a stays up. */
static bool is_above(const struct heap_node *b, const struct heap_node *a, heap_before *before)
{
	return b->key < a->key || (before && b->key == a->key && before(b, a));
}

/* Makes @b the first child of @a. */
static void hang(struct heap_node *a, struct heap_node *b)
{
	b->next = a->child;
	b->back = a;
	if (a->child)
		a->child->back = b;
	a->child = b;
}

/* Makes the larger root the first child of the smaller; both are alone. */
static struct heap_node *meld_roots(struct heap_node *a, struct heap_node *b, heap_before *before)
{
	if (!a)
		return b;
	if (!b)
		return a;
	if (is_above(b, a, before)) {
		struct heap_node *swap = a;

		a = b;
		b = swap;
	}
	hang(a, b);
	return a;
}

/* Pairs the siblings from left to right, then melds the pairs from right to left. */
static struct heap_node *meld_siblings(struct heap_node *first, heap_before *before)
{
	struct heap_node *pairs = NULL, *all = NULL;

	while (first) {
		struct heap_node *a = first, *b = first->next, *pair;

		first = b ? b->next : NULL;
		a->next = NULL;
		if (b)
			b->next = NULL;
		pair = meld_roots(a, b, before);
		pair->next = pairs;
		pairs = pair;
	}
	while (pairs) {
		struct heap_node *next = pairs->next;

		pairs->next = NULL;
		all = meld_roots(pairs, all, before);
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

void heap_insert_by(struct heap *heap, struct heap_node *node, uint64_t key,
		    struct heap_node *latest, heap_before *before)
{
	assert(!heap_holds(node));
	node->key = key;
	node->child = NULL;
	node->next = NULL;
	if (latest && !is_above(node, latest, before))
		hang(latest, node);
	else
		set_root(heap, meld_roots(heap->root, node, before));
}

void heap_insert(struct heap *heap, struct heap_node *node, uint64_t key)
{
	heap_insert_by(heap, node, key, NULL, NULL);
}

void heap_remove_by(struct heap *heap, struct heap_node *node, heap_before *before)
{
	struct heap_node *rest;

	if (!heap_holds(node))
		return;
	rest = meld_siblings(node->child, before);
	if (node == heap->root) {
		set_root(heap, rest);
	} else {
		if (node->back->child == node)
			node->back->child = node->next;
		else
			node->back->next = node->next;
		if (node->next)
			node->next->back = node->back;
		set_root(heap, meld_roots(heap->root, rest, before));
	}
	node->child = NULL;
	node->next = NULL;
	node->back = NULL;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	heap_remove_by(heap, node, NULL);
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
