/* key_demand - how much of a leased key this host needs, see key_demand.h. */
#include "core/fleet/key_demand.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/session.h"
#include "core/limiter/bucket.h"
#include "core/limiter/keys.h"

/* How much of what was asked for in a second still counts in the next, with and without grants. */
static const double KEEPS_BUSY = 0.75, KEEPS_IDLE = 0.25;

static double tokens_a_second(const struct rate *rate)
{
	struct fraction flow = rate_fraction(rate);

	return (double)flow.num * (double)NSEC_PER_SEC / (double)flow.den;
}

double key_demand_leaf(const struct fleet *fleet, struct key_lease *lease)
{
	key_lease_find_limit(fleet, lease);
	return rate_is_unlimited(&lease->rate) ? 0 : tokens_a_second(&lease->rate) / KEY_PARTS;
}

void key_demand_measure(struct fleet *fleet, struct key_lease *lease)
{
	const struct limiter *key = lease->key;
	uint64_t granted = key ? key->counters[COUNTER_GRANTED] : 0;
	uint32_t waiting = key ? key->turns.queue.length : 0;
	double seconds = (double)(fleet->now_ns - lease->looked_ns) / (double)NSEC_PER_SEC;
	double asked = seconds > 0 ? (double)(granted - lease->granted) / seconds : 0;
	double asked_before;

	if (waiting && key->bucket_count && !bucket_has(key->buckets, 1))
		lease->missed = true;
	if (granted != lease->granted || lease->missed || waiting)
		lease->used_ns = fleet->now_ns;
	asked_before = lease->asked * (asked > 0 ? KEEPS_BUSY : KEEPS_IDLE);
	lease->asked = asked > asked_before ? asked : asked_before;
	lease->granted = granted;
	lease->looked_ns = fleet->now_ns;
}

/*
 * Rule K4: returns when all that was granted of the key has flown in again, if none is granted
 * until then.
 */
static uint64_t end_ns(const struct fleet *fleet, struct key_lease *lease)
{
	uint64_t since_ns = lease->used_ns > lease->gained_ns ? lease->used_ns : lease->gained_ns;
	struct bucket bucket;

	key_lease_find_limit(fleet, lease);
	if (rate_is_unlimited(&lease->rate))
		return since_ns;
	bucket_init(&bucket, &lease->rate, lease->burst, 0, since_ns);
	return bucket_when(&bucket, lease->burst, since_ns);
}

void key_demand_decide(struct fleet *fleet, struct key_lease *lease)
{
	const char *hid = session_hid(fleet);
	uint32_t kept = key_lease_kept(lease);
	bool had_work;
	struct key_facts facts = {
		.asked = lease->asked,
		.leaf = key_demand_leaf(fleet, lease),
		.missed = lease->missed,
		.stray = !lease->key && lease->folder.tiles.count,
		.idle = fleet->now_ns - lease->used_ns >= KEY_IDLE_NS || (!lease->key && !kept) ||
			!key_leases_are_of(fleet, lease->holding),
		.kept = kept,
		.free = lease->folder.tiles.count ? key_folder_unused(&lease->folder) : KEY_LEAVES,
		.claimed = lease->folder.claimed,
		.others = lease->folder.others,
		.other_count = lease->folder.other_count,
		.claims = lease->folder.claims,
		.is_first = key_folder_is_first(&lease->folder, hid),
	};
	struct key_decision *decision = &lease->decision;

	key_portion_decide(&facts, decision);
	if (decision->ends && fleet->now_ns < end_ns(fleet, lease)) {
		decision->ends = false;
		lease->due_ns = end_ns(fleet, lease);
	}
	had_work = lease->has_work;
	lease->has_work = decision->takes || decision->gives || decision->ends ||
			  decision->claim != facts.claimed;
	if (lease->has_work && !had_work)
		lease->work_ns = fleet->now_ns;
	if (lease->has_work) {
		fleet->key_leases->has_work = true;
		fleet_wake_at(fleet, fleet->key_leases->next_ns);
	}
}
