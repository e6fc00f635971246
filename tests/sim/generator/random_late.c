/*
 * random_late - a host of a made-up fleet whose steps come late, see maker.h: its process runs for
 * a moment now and then, as on a machine that is busy, and finds all at once that was due or has
 * come meanwhile.
 */
#include "tests/sim/generator/maker.h"

enum {
	LATE_ACTS = 12,	 /* it begins after one act of so many, ... */
	STOPS_MOST = 10, /* ... and so often at most the process does not run */
};

void random_late(struct maker *maker)
{
	struct random *random = &maker->lates;

	if (!maker->has_late)
		return;
	if (!maker->late_turns && !random_below(random, LATE_ACTS)) {
		maker->late_host = (unsigned int)random_below(random, maker->hosts);
		maker->late_turns = 2 * (1 + (unsigned int)random_below(random, STOPS_MOST));
	}
	if (!maker->late_turns)
		return;
	maker->late_turns--;
	/* A pause that is longer (make_pause) goes on. */
	if (!maker->paused[maker->late_host])
		add(maker, "%s h%u", maker->late_turns % 2 ? "pause" : "resume",
		    maker->late_host + 1);
}
