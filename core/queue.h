/*
 * queue - readers that wait, first come, first served; leaving is O(1) wherever one stands.
 */
#ifndef RATEFS_CORE_QUEUE_H
#define RATEFS_CORE_QUEUE_H

#include "heap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct limiter;
struct slot;

/*
 * A reader that asks for tokens, or one who wants to open a slot. The memory is the caller's, who
 * fills in @limiter and @tokens or @slot, and leaves it alone while it waits.
 */
struct waiter {
	struct waiter *next;
	struct waiter *previous;
	struct limiter *limiter; /* borrowed; cannot be removed while somebody waits in it */
	uint64_t tokens;
	uint64_t ticket;       /* the order of arrival over all limiters */
	uint64_t asked_ns;     /* when it began to wait */
	struct expiry *expiry; /* the caller's; NULL: it waits as long as it takes */
	struct slot *slot;     /* the caller's: to be opened; NULL: it wants tokens */
	int outcome;	       /* -EINPROGRESS while it waits; then 0, or -errno */
};

/* When a waiter gives up, with -EAGAIN. */
struct expiry {
	struct heap_node node;
	struct waiter *waiter;
	uint64_t at_ns; /* the caller's time; @node may have a later one, see limiter_hasten() */
};

struct queue {
	struct waiter *first;
	struct waiter *last;
	uint32_t length;
};

static inline void queue_append(struct queue *queue, struct waiter *waiter)
{
	waiter->next = NULL;
	waiter->previous = queue->last;
	if (queue->last)
		queue->last->next = waiter;
	else
		queue->first = waiter;
	queue->last = waiter;
	queue->length++;
}

static inline void queue_remove(struct queue *queue, struct waiter *waiter)
{
	if (waiter->previous)
		waiter->previous->next = waiter->next;
	else
		queue->first = waiter->next;
	if (waiter->next)
		waiter->next->previous = waiter->previous;
	else
		queue->last = waiter->previous;
	waiter->next = NULL;
	waiter->previous = NULL;
	queue->length--;
}

static inline struct waiter *queue_shift(struct queue *queue)
{
	struct waiter *first = queue->first;

	if (first)
		queue_remove(queue, first);
	return first;
}

#endif
