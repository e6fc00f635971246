/* arrivals - requests that wait to be served, see arrivals.h. */
#include "fs/mount/arrivals.h"

#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>

static const struct fuse_in_header *header_of(const struct arrival *arrival)
{
	return (const struct fuse_in_header *)arrival->bytes;
}

/* Finds the request with number @unique, or NULL. */
static const struct arrival *find(const struct arrivals *arrivals, uint64_t unique)
{
	for (int i = 0; i < LANE_COUNT; i++) {
		const struct arrival *a = list_first(&arrivals->lanes.lane[i], struct arrival,
						     link);

		for (; a; a = list_next(a, link)) {
			if ((header_of(a)->unique & ~FUSE_RESEND) == unique)
				return a;
		}
	}
	return NULL;
}

bool arrivals_are_of_user(uint32_t opcode)
{
	switch (opcode) {
	case FUSE_INTERRUPT:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return false;
	default:
		return true;
	}
}

/* Finds in whose lane a request comes. False: in none. */
static bool find_lane(const struct arrivals *arrivals, const void *bytes, size_t size,
		      uint32_t *uid)
{
	const struct fuse_in_header *header = bytes;
	const struct fuse_interrupt_in *interrupt = (const struct fuse_interrupt_in *)(header + 1);
	const struct arrival *its;

	if (size < sizeof(*header))
		return false;
	*uid = header->uid;
	if (header->opcode != FUSE_INTERRUPT)
		return arrivals_are_of_user(header->opcode);
	its = size >= sizeof(*header) + sizeof(*interrupt)
		      ? find(arrivals, interrupt->unique & ~FUSE_RESEND)
		      : NULL;
	if (its)
		*uid = its->uid;
	return its;
}

bool arrivals_add(struct arrivals *arrivals, const void *bytes, size_t size, uint8_t channel)
{
	struct arrival *arrival;
	uint32_t uid;

	if (!find_lane(arrivals, bytes, size, &uid))
		return false;
	arrival = malloc(sizeof(*arrival) + size);
	if (!arrival)
		return false;
	arrival->uid = uid;
	arrival->size = (uint32_t)size;
	arrival->channel = channel;
	memcpy(arrival->bytes, bytes, size);
	lanes_append(&arrivals->lanes, uid, &arrival->link);
	arrivals->count++;
	arrivals->bytes += size;
	return true;
}

void arrivals_rest(struct arrivals *arrivals, uint32_t uid, uint64_t from_ns, uint64_t now_ns)
{
	uint64_t rest_ns = RESTS * (now_ns - from_ns);
	uint32_t lane = lanes_number(uid);
	uint64_t other_ns = arrivals->served == lane ? arrivals->other_ns : arrivals->served_ns;

	if (other_ns + REST_OTHERS_NS <= from_ns &&
	    arrivals->count == lanes_length(&arrivals->lanes, uid))
		return;
	arrivals->resting |= UINT64_C(1) << lane;
	arrivals->rests_until_ns[lane] = now_ns + (rest_ns < REST_MOST_NS ? rest_ns : REST_MOST_NS);
}

/* Ends the rests that are over at @now_ns. */
static void end_rests(struct arrivals *arrivals, uint64_t now_ns)
{
	for (uint64_t left = arrivals->resting; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);

		if (arrivals->rests_until_ns[lane] <= now_ns)
			arrivals->resting &= ~(UINT64_C(1) << lane);
	}
}

uint64_t arrivals_next_ns(const struct arrivals *arrivals)
{
	uint64_t next_ns = NEVER_NS;

	for (uint64_t left = arrivals->resting; left; left &= left - 1) {
		uint32_t lane = (uint32_t)__builtin_ctzll(left);

		if (arrivals->lanes.lane[lane].first && arrivals->rests_until_ns[lane] < next_ns)
			next_ns = arrivals->rests_until_ns[lane];
	}
	return next_ns;
}

struct arrival *arrivals_take(struct arrivals *arrivals, uint64_t now_ns)
{
	struct list_link *link;
	struct arrival *arrival;

	/* Without room those of others cannot come: then none rests. */
	if (arrivals->resting && !arrivals_have_room(arrivals))
		arrivals->resting = 0;
	if (arrivals->resting)
		end_rests(arrivals, now_ns);
	link = lanes_take_but(&arrivals->lanes, arrivals->resting);
	arrival = list_entry(link, struct arrival, link);
	if (!arrival)
		return NULL;
	arrivals->count--;
	arrivals->bytes -= arrival->size;
	return arrival;
}
