/*
 * queue - readers that wait, first come, first served.
 *
 * Readers that came once stand in a list: joining and leaving are O(1). Readers that have taken an
 * old place again (parking.h) are in a heap beside it, by their tickets: they may belong anywhere.
 */
#ifndef RATEFS_CORE_QUEUE_H
#define RATEFS_CORE_QUEUE_H

#include "core/base/heap.h"
#include "core/base/list.h"

#include <stdbool.h>
#include <stdint.h>

struct amounts;
struct limiter;
struct slot;

/*
 * A reader that asks for tokens, or an opener that wants a slot. The memory is the caller's. The
 * caller fills in @limiter, and @tokens, @most, @amounts, or @slot and @is_opener, and @expiry, and
 * leaves it alone while it waits.
 */
struct waiter {
	union {
		struct {
			uint64_t ticket;       /* the order of arrival over all limiters */
			struct list_link once; /* without a @place: in queue.once */
		};
		struct heap_node turn; /* with a @place: in queue.returned; its key is the ticket */
	};
	struct limiter *limiter; /* borrowed; it cannot be removed while a reader waits in it */
	uint64_t tokens;	 /* that it waits for */
	uint64_t most; /* it is granted as many as are there, up to this, if that is more */
	union {
		uint64_t granted;  /* with outcome 0: from @tokens to @most */
		struct slot *slot; /* of an opener, the caller's: to be opened */
	};
	const struct amounts *amounts; /* borrowed: of units, see units.h; NULL: none */
	uint64_t asked_ns;	       /* when it began to wait */
	struct expiry *expiry;	       /* the caller's; NULL: it waits as long as it takes */
	int outcome;		       /* -EINPROGRESS while it waits; then 0, or -errno */
	uint32_t place : 28;	       /* that it has taken again, see parking.h; 0: it came once */
	uint32_t is_admitted : 1;      /* a predecessor let it wait: no bound refuses it */
	uint32_t is_polled : 1; /* a poll of its file waits, too: they count as one for queue_max */
	uint32_t is_opener : 1; /* it wants a slot, not tokens */
	uint32_t is_poller : 1; /* of a struct poller, see poller.h */
};

/* The time at which a waiter gives up, with -EAGAIN. */
struct expiry {
	struct heap_node node;
	struct waiter *waiter;
	uint64_t at_ns; /* the caller's time; @node may have a later one, see limiter_hasten() */
};

struct queue {
	struct list once;     /* waiters that came once */
	struct heap returned; /* waiters with a place, by their tickets */
	uint32_t length;      /* of both together */
};

static inline struct waiter *waiter_of_turn(struct heap_node *node)
{
	return container_of(node, struct waiter, turn);
}

/* Returns the waiter with the lowest ticket, or NULL. */
static inline struct waiter *queue_first(const struct queue *queue)
{
	struct heap_node *returned = queue->returned.root;
	struct waiter *once = list_first(&queue->once, struct waiter, once);

	return returned && (!once || returned->key < once->ticket) ? waiter_of_turn(returned)
								   : once;
}

/*
 * Has the processor fetch the waiter behind @waiter, which is in a queue, while other work is done:
 * of many waiters the next one is in no cache when its turn comes.
 */
static inline void queue_fetch_next(const struct waiter *waiter)
{
	const struct waiter *next = waiter->place ? NULL : list_next(waiter, once);

	if (next)
		__builtin_prefetch(&next->tokens);
}

static inline void queue_append(struct queue *queue, struct waiter *waiter)
{
	list_append(&queue->once, &waiter->once);
	queue->length++;
}

/* Puts in @waiter, which has a place, where its ticket says. */
static inline void queue_return(struct queue *queue, struct waiter *waiter)
{
	waiter->turn.back = NULL;
	heap_insert(&queue->returned, &waiter->turn, waiter->ticket);
	queue->length++;
}

static inline void queue_remove(struct queue *queue, struct waiter *waiter)
{
	if (waiter->place)
		heap_remove(&queue->returned, &waiter->turn);
	else
		list_remove(&queue->once, &waiter->once);
	queue->length--;
}

static inline struct waiter *queue_shift(struct queue *queue)
{
	struct waiter *first = queue_first(queue);

	if (first)
		queue_remove(queue, first);
	return first;
}

#endif
