/* trigger - a threshold of pressure, see trigger.h. */
#include "core/limiter/trigger.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define NSEC_PER_USEC 1000

bool trigger_is_possible(uint64_t stall_ns, uint64_t window_ns)
{
	return window_ns >= TRIGGER_WINDOW_MIN_NS && window_ns <= TRIGGER_WINDOW_MAX_NS &&
	       stall_ns && stall_ns <= window_ns;
}

int trigger_parse(const char *text, struct trigger *trigger)
{
	uint64_t stall_ns, window_ns;
	uint32_t stall, window;
	int end = 0;

	/* The tenth digit of a number is out of bounds, and not read as one of it. */
	if (sscanf(text, "some%*1[ \t] %9" SCNu32 "%*1[ \t] %9" SCNu32 "%n", &stall, &window,
		   &end) != 2 ||
	    text[end])
		return -EINVAL;
	stall_ns = (uint64_t)stall * NSEC_PER_USEC;
	window_ns = (uint64_t)window * NSEC_PER_USEC;
	if (!trigger_is_possible(stall_ns, window_ns))
		return -EINVAL;
	*trigger = (struct trigger){.stall_ns = stall_ns, .window_ns = window_ns};
	return 0;
}

/* Begins a window at @now_ns, after @before_ns of waiting in the one before. */
static void begin_window(struct trigger *trigger, uint64_t now_ns, uint64_t total_ns,
			 double before_ns)
{
	trigger->begun = true;
	trigger->start_ns = now_ns;
	trigger->start_total_ns = total_ns;
	trigger->before_ns = before_ns;
}

/* Returns how long readers waited in the window that ends at @now_ns. */
static double growth_ns(struct trigger *trigger, uint64_t total_ns, uint64_t now_ns)
{
	double window = (double)trigger->window_ns;
	double growth = (double)(total_ns - trigger->start_total_ns);
	double elapsed = (double)(now_ns - trigger->start_ns);

	if (elapsed < window)
		return growth + trigger->before_ns * (1 - elapsed / window);
	growth *= window / elapsed;
	begin_window(trigger, now_ns, total_ns, growth);
	return growth;
}

/* Returns when to look again while @growth of waiting is below the threshold. */
static uint64_t next_look_ns(const struct trigger *trigger, double growth, bool stalled,
			     uint64_t now_ns)
{
	uint64_t end_ns = trigger->start_ns + trigger->window_ns, at_ns;
	double slope = 1 - trigger->before_ns / (double)trigger->window_ns;

	if (!stalled)
		return growth > 0 ? end_ns : NEVER_NS;
	if ((double)(end_ns - now_ns) * slope < (double)trigger->stall_ns - growth)
		return end_ns;
	at_ns = now_ns + 1 + (uint64_t)ceil(((double)trigger->stall_ns - growth) / slope);
	return at_ns < end_ns ? at_ns : end_ns;
}

uint64_t trigger_look(struct trigger *trigger, const struct pressure *pressure, uint64_t now_ns)
{
	uint64_t total_ns = pressure ? pressure_total_ns(pressure, now_ns) : 0;
	double growth;

	if (!trigger->begun)
		begin_window(trigger, now_ns, total_ns, 0);
	growth = growth_ns(trigger, total_ns, now_ns);
	if (trigger->event)
		return 0;
	if (growth >= (double)trigger->stall_ns)
		trigger->reached = true;
	if (!trigger->reached)
		return next_look_ns(trigger, growth, pressure && pressure->stalled, now_ns);
	if (trigger->had_event && now_ns - trigger->event_ns < trigger->window_ns)
		return trigger->event_ns + trigger->window_ns;
	trigger->reached = false;
	trigger->event = true;
	trigger->had_event = true;
	trigger->event_ns = now_ns;
	return 0;
}

bool trigger_take(struct trigger *trigger)
{
	bool event = trigger->event;

	trigger->event = false;
	return event;
}
