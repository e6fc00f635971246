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
	switch (header->opcode) {
	case FUSE_INTERRUPT:
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
		return false;
	default:
		return true;
	}
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

struct arrival *arrivals_take(struct arrivals *arrivals)
{
	struct arrival *arrival = list_entry(lanes_take(&arrivals->lanes), struct arrival, link);

	if (!arrival)
		return NULL;
	arrivals->count--;
	arrivals->bytes -= arrival->size;
	return arrival;
}
