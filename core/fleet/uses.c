/* uses - what this host tells the others of its use of limiters, see uses.h. */
#include "core/fleet/uses.h"
#include "core/fleet/holdings.h"
#include "core/limiter/slots.h"

#include <stdlib.h>
#include <string.h>

struct uses {
	struct host_use list[HOST_USES_MAX]; /* the largest first */
	uint32_t count;
	struct held_slot slots[HOST_SLOTS_MAX];
	uint32_t slot_count;
	uint64_t measured_ns; /* 0: never */
};

/* A rate is a mean in which a second counts half as much as one about so much later. */
static const double SPAN_S = 5;
/* Less than that is none: a mean of what has ended never comes to 0 by itself. */
static const double LEAST_PER_SECOND = 1e-3;

bool uses_new(struct fleet *fleet)
{
	fleet->uses = calloc(1, sizeof(*fleet->uses));
	return fleet->uses;
}

void uses_free(struct fleet *fleet)
{
	free(fleet->uses);
}

/* Brings the mean of @holding up to date: over a long time without it that of this time. */
static void measure(const struct fleet *fleet, struct holding *holding)
{
	uint64_t granted = holding->limiter->counters[COUNTER_GRANTED];
	double passed_s = (double)(fleet->now_ns - holding->measured_ns) / NSEC_PER_SEC;

	if (holding->measured_ns && passed_s > 0) {
		double rate = (double)(granted - holding->granted) / passed_s;

		holding->granted_rate += (rate - holding->granted_rate) * passed_s /
					 (passed_s + SPAN_S);
		if (holding->granted_rate < LEAST_PER_SECOND)
			holding->granted_rate = 0;
	}
	holding->granted = granted;
	holding->measured_ns = fleet->now_ns;
}

/* Uses are ordered by the sum of grants a second and of waiting readers. */
static double weight_of(const struct host_use *use)
{
	return use->granted + use->waiting;
}

/* Puts @use in its place, if it is one of the largest. */
static void insert(struct uses *uses, const struct host_use *use)
{
	uint32_t at = uses->count;

	while (at && weight_of(&uses->list[at - 1]) < weight_of(use))
		at--;
	if (at == HOST_USES_MAX)
		return;
	if (uses->count < HOST_USES_MAX)
		uses->count++;
	memmove(&uses->list[at + 1], &uses->list[at],
		(uses->count - at - 1) * sizeof(uses->list[0]));
	uses->list[at] = *use;
}

static void measure_all(struct fleet *fleet)
{
	struct uses *uses = fleet->uses;

	uses->count = 0;
	uses->measured_ns = fleet->now_ns;
	for (struct holding *h = holdings_first_active(fleet); h; h = h->next_active) {
		struct host_use use = {.id = h->id, .waiting = h->limiter->turns.waiting};

		measure(fleet, h);
		use.granted = h->granted_rate;
		if (h->limiter->slots)
			use.waiting += h->limiter->slots->turns.waiting;
		if (weight_of(&use) > 0 && holding_needs_leases(h))
			insert(uses, &use);
	}
	uses->slot_count = 0;
	if (fleet->listener->slots)
		uses->slot_count = fleet->listener->slots(fleet->listener, uses->slots);
}

static void enter_slots(const struct fleet *fleet, struct host_record *record)
{
	const struct uses *uses = fleet->uses;

	for (uint32_t i = 0; i < uses->slot_count; i++) {
		const struct held_slot *held = &uses->slots[i];
		uint64_t held_ns = held->opened_ns < fleet->now_ns ? fleet->now_ns - held->opened_ns
								   : 0;

		record->slots[i] = held->slot;
		record->slots[i].held_s = held_ns / NSEC_PER_SEC < UINT32_MAX
						  ? (uint32_t)(held_ns / NSEC_PER_SEC)
						  : UINT32_MAX;
	}
	record->slot_count = uses->slot_count;
}

void uses_enter(struct fleet *fleet, struct host_record *record)
{
	struct uses *uses = fleet->uses;

	record->has_uses = true;
	if (!record->renews)
		return;
	if (!uses->measured_ns || fleet->now_ns - uses->measured_ns >= fleet->constants.renewal_ns)
		measure_all(fleet);
	memcpy(record->uses, uses->list, uses->count * sizeof(uses->list[0]));
	record->use_count = uses->count;
	enter_slots(fleet, record);
}
