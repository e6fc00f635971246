/*
 * lanes - a queue of what several users ask for, in which none waits for all that another asks for.
 *
 * Each user has a lane, and lanes are served in turn. User 0 has one alone; others whose numbers
 * differ by a multiple of 63 share one, and count as one user: so nothing here allocates or fails,
 * however many users there are. Within a lane order of arrival holds. Zeros are an empty queue.
 */
#ifndef RATEFS_CORE_LANES_H
#define RATEFS_CORE_LANES_H

#include "core/base/list.h"

#include <stdint.h>

enum { LANE_COUNT = 64 };

struct lanes {
	struct list lane[LANE_COUNT];
	uint32_t length[LANE_COUNT];
	uint32_t last; /* the lane that was served last */
};

static inline uint32_t lanes_number(uint32_t uid)
{
	return uid ? 1 + uid % (LANE_COUNT - 1) : 0;
}

/* Puts @link of @uid, which is in no list, behind the others of its lane. */
static inline void lanes_append(struct lanes *lanes, uint32_t uid, struct list_link *link)
{
	list_append(&lanes->lane[lanes_number(uid)], link);
	lanes->length[lanes_number(uid)]++;
}

/* Takes @link of @uid out, in which it is. */
static inline void lanes_remove(struct lanes *lanes, uint32_t uid, struct list_link *link)
{
	list_remove(&lanes->lane[lanes_number(uid)], link);
	lanes->length[lanes_number(uid)]--;
}

/* Returns the first link of the lane of @uid, or NULL. */
static inline struct list_link *lanes_first(const struct lanes *lanes, uint32_t uid)
{
	return lanes->lane[lanes_number(uid)].first;
}

/* Returns how many there are in the lane of @uid. */
static inline uint32_t lanes_length(const struct lanes *lanes, uint32_t uid)
{
	return lanes->length[lanes_number(uid)];
}

/* Takes out the link whose turn it is, of lanes without a bit in @but. NULL: there is none. */
static inline struct list_link *lanes_take_but(struct lanes *lanes, uint64_t but)
{
	for (uint32_t i = 1; i <= LANE_COUNT; i++) {
		uint32_t next = (lanes->last + i) % LANE_COUNT;
		struct list_link *link = lanes->lane[next].first;

		if (!link || but >> next & 1)
			continue;
		lanes->last = next;
		list_remove(&lanes->lane[next], link);
		lanes->length[next]--;
		return link;
	}
	return NULL;
}

/* Takes out the link whose turn it is, or returns NULL: there is none. */
static inline struct list_link *lanes_take(struct lanes *lanes)
{
	return lanes_take_but(lanes, 0);
}

#endif
