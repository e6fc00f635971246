/* random_slots - a limiter of slots in a random trace of a fleet: see maker.h. */
#include "tests/sim/generator/maker.h"

#include <inttypes.h>

enum {
	SLOT_FLEETS = 3, /* one in so many has it ... */
	SLOT_ACTS = 2,	 /* ... where something is done after one act of so many ... */
	MAKE_ACTS = 4,	 /* ... and first, and now and then, it is made */
	WORK_S = 60,
};

static const char *const SETTINGS[] = {
	"concurrency 1",
	"concurrency 3",
	"concurrency 4",
	"concurrency 8",
	"concurrency 5000",
	"config concurrency=8\\npartitions.count=2",
	"config concurrency=9\\npartitions.count=4",
	"partitions/count auto",
	"partitions/lease 3s",
	"partitions/reserve 1/s hosts=2",
	"rate 50/s",
	"rate max",
	"enforcement open",
	"enforcement closed",
	"enforcement shadow",
	"enforcement enforce",
	"enforcement enforce",
	"enforcement enforce",
	"config offline=share:4",
	"config offline=block",
};

/* Jobs hold slots for long or short, and most of them ask for the number. */
static void add_workers(struct maker *maker, unsigned int host)
{
	struct random *random = &maker->slots;
	uint64_t until_ns = maker->now_ns + random_below(random, WORK_S * NSEC_PER_SEC);

	add(maker, "h%u: workers s %" PRIu64 " slot%s work %" PRIu64 "ms until %" PRIu64 "ns", host,
	    1 + random_below(random, 6), random_below(random, 4) ? " numbered" : "",
	    50 + random_below(random, UINT64_C(1) << (7 + random_below(random, 8))), until_ns);
}

static void make_act(struct maker *maker)
{
	struct random *random = &maker->slots;
	unsigned int host = (unsigned int)random_below(random, maker->hosts) + 1;

	/* A host that is struck makes nothing. */
	if (maker->slot_acts++ < MAKE_ACTS || !random_below(random, MAKE_ACTS * MAKE_ACTS)) {
		add(maker, "h%u: %s", host,
		    maker->slot_acts % 2 ? "mkdir s" : "write s/concurrency 4");
		return;
	}
	switch (random_below(random, 6)) {
	case 0:
		add(maker, "h%u: write s/%s", host, DRAW(random, SETTINGS));
		break;
	case 1:
	case 2:
		add(maker, "h%u: open s/slot%s as s%u", host,
		    random_below(random, 3) ? "" : ",within=0", ++maker->slot_names);
		break;
	case 3:
		for (uint64_t i = 1 + random_below(random, 3); i && maker->slot_names; i--) {
			uint64_t name = 1 + random_below(random, maker->slot_names);

			add(maker, "%s s%" PRIu64, random_below(random, 3) ? "number" : "close",
			    name);
		}
		break;
	default:
		add_workers(maker, host);
		break;
	}
}

void random_slots(struct maker *maker, uint64_t seed)
{
	struct random *random = &maker->slots;

	if (seed % SLOT_FLEETS != 2 || random_below(random, SLOT_ACTS))
		return;
	for (uint64_t i = 1 + random_below(random, 5); i; i--)
		make_act(maker);
}
