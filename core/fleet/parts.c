/* parts - what all parts of the fleet stand on, see parts.h. */
#include "core/fleet/parts.h"

#include <stdarg.h>
#include <stdio.h>

void fleet_tell(struct fleet *fleet, enum fleet_event event, const char *format, ...)
{
	char text[ERROR_TEXT];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (fleet->listener && fleet->listener->event)
		fleet->listener->event(fleet->listener, event, text);
}

void fleet_wake_at(struct fleet *fleet, uint64_t at_ns)
{
	if (at_ns < fleet->next_ns)
		fleet->next_ns = at_ns;
}

/* xorshift64*. */
uint64_t fleet_random(struct fleet *fleet)
{
	uint64_t x = fleet->random_state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	fleet->random_state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

uint64_t fleet_jitter(struct fleet *fleet, uint64_t ns)
{
	return ns - ns / 4 + fleet_random(fleet) % (ns / 2 + 1);
}
