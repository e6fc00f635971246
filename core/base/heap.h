/*
 * heap - an intrusive pairing heap: the smallest key first.
 *
 * Holds deadlines (the engine's timers) and turns (children waiting in their parent). It allocates
 * nothing, so it cannot fail. Insert O(1), remove O(log n) amortised.
 *
 * Fredman, Sedgewick, Sleator, Tarjan: "The pairing heap: a new form of self-adjusting heap"
 * (1986).
 */
#ifndef RATEFS_CORE_HEAP_H
#define RATEFS_CORE_HEAP_H

#include "core/base/container.h"

#include <stdbool.h>
#include <stdint.h>

struct heap_node {
	uint64_t key;
	struct heap_node *child; /* first child */
	struct heap_node *next;	 /* next sibling */
	struct heap_node *back;	 /* previous sibling, or the parent; itself when it is the root */
};

struct heap {
	struct heap_node *root; /* not owned */
};

static inline bool heap_holds(const struct heap_node *node)
{
	return node->back;
}

/* Puts @node, which is in no heap, into @heap. */
void heap_insert(struct heap *heap, struct heap_node *node, uint64_t key);

/* Takes @node out of @heap; does nothing if it is in no heap. */
void heap_remove(struct heap *heap, struct heap_node *node);

/* Tells whether @a comes before @b, whose key is the same. */
typedef bool heap_before(const struct heap_node *a, const struct heap_node *b);

/*
 * As heap_insert(), of a heap in which @before decides between equal keys (NULL: nothing does). If
 * @node comes after @latest, a node of @heap (NULL: none), that is all that is looked at, and nodes
 * that came so one after the other leave as cheaply.
 */
void heap_insert_by(struct heap *heap, struct heap_node *node, uint64_t key,
		    struct heap_node *latest, heap_before *before);

/* As heap_remove(), of such a heap. */
void heap_remove_by(struct heap *heap, struct heap_node *node, heap_before *before);

/* Returns the node after @node in a walk over all, in no particular order; NULL after the last. */
struct heap_node *heap_next(const struct heap_node *node);

/* Gives @node the key @key, whether it was in the heap or not. */
static inline void heap_place(struct heap *heap, struct heap_node *node, uint64_t key)
{
	if (heap_holds(node)) {
		if (node->key == key)
			return;
		heap_remove(heap, node);
	}
	heap_insert(heap, node, key);
}

#endif
