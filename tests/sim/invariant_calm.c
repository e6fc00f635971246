/* invariant_calm - bounds on a fleet at peace, see invariant_calm.h. */
#include "invariant_calm.h"

#include <stdio.h>

/*
 * A reconnection: an attempt that comes to nothing takes 2 s, the pause after it 1 s, and that
 * twice; then a session that is gone is noticed, and the next one has settings to read: 2 s.
 */
#define RECONNECT_NS UINT64_C(8000000000)

/* So much of the rate is used, whatever partitions are on their way from one host to another. */
static const double USED_LEAST = 0.8;

/*
 * In a window a host renews every R and is refused as often. Of each limiter it takes partitions,
 * most of them one by one, gives back and claims, five in all in each R; and each other host may be
 * faster once to take what it wants. It lists the free partitions, the claims and the hosts in every
 * R for each of two reasons. It reads the markers of the partitions that it takes, and the nodes
 * that it watches.
 *
 * The rules allow more: what was wanted counts for a second, so where demand comes and goes and others
 * claim, a host may take and give back each partition every second. These bounds are for demand as the
 * traces make it. They find what goes on without a reason.
 */
enum {
	TRANSACTIONS_EACH = 110,
	LISTS_EACH = 6,
	LISTS_MORE = 60,
	MARKERS_MOST = 32, /* read before a transaction that takes partitions */
	READS_MORE = 120   /* of nodes that are watched, and by a round that comes to nothing */
};

bool calm_is_steady(const struct settings *settings)
{
	if (settings->enforcement != ENFORCEMENT_ENFORCE || !settings->limit_count ||
	    settings->reserve_hosts || settings->release_interval_ns || settings->adapt.kind ||
	    settings->backoff.kind || settings->slots.kind)
		return false;
	for (uint32_t i = 0; i < settings->limit_count; i++) {
		if (!settings->limits[i].rate.amount)
			return false;
	}
	return true;
}

/* Tokens a second of the slowest limit. */
static double slowest(const struct settings *settings)
{
	double least = rate_per_second(&settings->limits[0].rate);

	for (uint32_t i = 1; i < settings->limit_count; i++) {
		double rate = rate_per_second(&settings->limits[i].rate);

		least = rate < least ? rate : least;
	}
	return least;
}

/*
 * A host that died is given up after T and a tick. Its partitions have no markers, and are waited
 * for.
 */
uint64_t calm_settle_ns(const struct fleet_constants *constants)
{
	return RECONNECT_NS + constants->session_ns + NSEC_PER_SEC + constants->quarantine_ns;
}

/*
 * A host with more than its share keeps it for `lease`, and gives a quarter of the excess every R:
 * after 4 R there is something for every reader that waits. A single partition then earns the
 * tokens at its part of the rate.
 */
uint64_t calm_wait_ns(const struct settings *settings, const struct fleet_constants *constants,
		      uint64_t tokens)
{
	uint32_t count = settings_partition_count(settings);
	double earns_ns;

	if (!calm_is_steady(settings))
		return NEVER_NS;
	earns_ns = (double)(tokens + 1) * count / slowest(settings) * (double)NSEC_PER_SEC;
	return calm_settle_ns(constants) + settings->lease_ns + 4 * constants->renewal_ns +
	       (uint64_t)earns_ns;
}

/*
 * A partition is not divided: a host whose readers do not use all of one keeps it for the part that
 * they use. So of one partition each such host owes nothing.
 */
bool calm_check_use(const struct settings *settings, uint32_t idle, double could, double did,
		    char why[WHY_TEXT])
{
	uint32_t count = settings_partition_count(settings);
	uint32_t owed = idle < count ? count - idle : 0;

	could = could * owed / count;
	if (did >= could * USED_LEAST)
		return true;
	snprintf(why, WHY_TEXT, "readers waited all the time, and %.0f of %.0f tokens were granted",
		 did, could);
	return false;
}

/*
 * Shares of equal hosts differ by a partition at most, and while they are rebalanced by another; a
 * partition that goes from one host to another in the window counts for both. Tokens that were saved
 * up come on top.
 */
bool calm_check_shares(const struct settings *settings, uint32_t hosts, uint64_t least,
		       uint64_t most, char why[WHY_TEXT])
{
	uint32_t count = settings_partition_count(settings);
	double piece = slowest(settings) / count * ((double)CALM_WINDOW_NS / (double)NSEC_PER_SEC);
	double burst = (double)settings->burst / hosts + 1;

	if (count < hosts || (double)(most - least) <= 3 * piece + burst)
		return true;
	snprintf(why, WHY_TEXT,
		 "of %u equal hosts one was granted %llu, another %llu: a partition is worth %.1f",
		 hosts, (unsigned long long)least, (unsigned long long)most, piece);
	return false;
}

bool calm_check_traffic(const struct traffic *traffic, uint32_t limiters, uint32_t hosts,
			const struct fleet_constants *constants, char why[WHY_TEXT])
{
	uint64_t renewals = CALM_WINDOW_NS / constants->renewal_ns + 1;
	uint64_t each = limiters ? limiters : 1;

	if (traffic->transactions <= 2 * renewals + (TRANSACTIONS_EACH + hosts) * each &&
	    traffic->lists <= renewals * (1 + LISTS_EACH * each) + LISTS_MORE &&
	    traffic->reads <= READS_MORE * each + MARKERS_MOST * traffic->transactions)
		return true;
	snprintf(why, WHY_TEXT,
		 "a host sent %llu transactions, %llu reads and %llu lists in %llu s, with "
		 "%u limiters",
		 (unsigned long long)traffic->transactions, (unsigned long long)traffic->reads,
		 (unsigned long long)traffic->lists,
		 (unsigned long long)(CALM_WINDOW_NS / NSEC_PER_SEC), limiters);
	return false;
}
