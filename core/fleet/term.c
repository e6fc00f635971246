/* term - until when this host may use what it holds, see term.h. */
#include "core/fleet/term.h"
#include "core/fleet/session.h"

#include <stdlib.h>

struct term {
	bool runs;
	bool degraded; /* out of reach for longer than D */
	bool resumed;  /* a predecessor's, not extended since */
	uint32_t lapses;
	uint64_t end_ns;     /* by the holder's clock */
	uint32_t epoch;	     /* of the acknowledgement that extended it last */
	uint64_t renewal_ns; /* by the engine's */
};

bool term_new(struct fleet *fleet)
{
	fleet->term = calloc(1, sizeof(*fleet->term));
	return fleet->term;
}

void term_free(struct fleet *fleet)
{
	free(fleet->term);
}

bool term_runs(const struct fleet *fleet)
{
	return fleet->term->runs;
}

uint64_t term_end_ns(const struct fleet *fleet)
{
	return fleet->term->end_ns;
}

uint32_t term_epoch(const struct fleet *fleet)
{
	return fleet->term->epoch;
}

bool term_is_over(const struct fleet *fleet)
{
	return fleet->term->runs && fleet->clocks.holder_ns >= fleet->term->end_ns;
}

bool term_is_degraded(const struct fleet *fleet)
{
	return fleet->term->degraded;
}

void term_degrade(struct fleet *fleet)
{
	fleet->term->degraded = true;
}

void term_extend(struct fleet *fleet, uint64_t sent_ns)
{
	struct term *term = fleet->term;
	uint64_t end_ns = sent_ns + fleet->constants.right_ns;

	if (end_ns > term->end_ns)
		term->end_ns = end_ns;
	term->epoch = fleet->epochs.newest;
	session_end_trouble(fleet);
	term->resumed = false;
	term->degraded = false;
	term->runs = fleet->clocks.holder_ns < term->end_ns;
	/* Not sooner than R, or there would be more than one write in it. */
	term->renewal_ns = fleet->now_ns + fleet->constants.renewal_ns +
			   fleet_random(fleet) % (fleet->constants.renewal_ns / 4 + 1);
}

void term_lapse(struct fleet *fleet)
{
	fleet->term->runs = false;
	fleet->term->lapses++;
}

uint32_t term_lapses(const struct fleet *fleet)
{
	return fleet->term->lapses;
}

void term_forget(struct fleet *fleet)
{
	fleet->term->runs = false;
	fleet->term->end_ns = 0;
	fleet->term->resumed = false;
}

void term_resume(struct fleet *fleet, uint64_t end_ns, uint32_t epoch, bool degraded)
{
	fleet->term->resumed = true;
	fleet->term->end_ns = end_ns;
	fleet->term->epoch = epoch;
	fleet->term->degraded = degraded;
	fleet->term->runs = fleet->clocks.holder_ns < end_ns;
}

bool term_is_resumed(const struct fleet *fleet)
{
	return fleet->term->resumed;
}

uint64_t term_renewal_ns(const struct fleet *fleet)
{
	return fleet->term->renewal_ns;
}

void term_renew_at(struct fleet *fleet, uint64_t at_ns)
{
	fleet->term->renewal_ns = at_ns;
}
