/*
 * trigger - a threshold of pressure, as a trigger of PSI: an event when readers waited for a time
 * within a window, at most one event in a window.
 *
 * The text, its bounds and the sliding window are those of Linux (Documentation/accounting/psi.rst,
 * window_update() of kernel/sched/psi.c): at the end of a window the next one begins, and what
 * readers waited in the last one counts in proportion to what of it a window that ends now still
 * covers. PSI looks ten times in a window; here the time of the event is computed.
 */
#ifndef RATEFS_CORE_TRIGGER_H
#define RATEFS_CORE_TRIGGER_H

#include "core/limiter/pressure.h"
#include "core/values/quantity.h"

#define TRIGGER_WINDOW_MIN_NS (NSEC_PER_SEC / 2)
#define TRIGGER_WINDOW_MAX_NS (10 * NSEC_PER_SEC)

struct trigger {
	uint64_t stall_ns, window_ns; /* the threshold; 1 to @window_ns, and the bounds above */
	bool begun;		      /* there was a first look */
	uint64_t start_ns;	      /* of the window ... */
	uint64_t start_total_ns;      /* ... and the sum of waits then */
	double before_ns;	      /* waits of the window before, 0 to @window_ns */
	bool reached;		      /* the threshold was, and no event has followed yet */
	bool event;		      /* it is yet to be taken */
	bool had_event;		      /* the last one ... */
	uint64_t event_ns;	      /* ... was then */
};

/*
 * Parses `some STALL WINDOW`, in microseconds, without blanks around it. 0, or -EINVAL, also for
 * what is out of bounds; then @trigger is untouched.
 */
int trigger_parse(const char *text, struct trigger *trigger);

/* Tells whether @stall_ns and @window_ns are within the bounds. */
bool trigger_is_possible(uint64_t stall_ns, uint64_t window_ns);

/*
 * Looks at @pressure (NULL: no reader has ever waited) at @now_ns; the first look begins a window.
 * Returns when to look again at the latest: 0: there is an event to be taken; NEVER_NS: when
 * readers begin to wait, or no longer do. The looks are to follow each such change. Of a stretch
 * above a window without one, the mean counts.
 */
uint64_t trigger_look(struct trigger *trigger, const struct pressure *pressure, uint64_t now_ns);

/* Takes the event. Returns whether there was one. */
bool trigger_take(struct trigger *trigger);

#endif
