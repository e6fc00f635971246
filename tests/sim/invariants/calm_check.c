/* calm_check - bounds on a fleet at peace, see calm_check.h. */
#include "tests/sim/invariants/calm_check.h"

#include <stdio.h>

/*
 * A reconnection: an attempt that comes to nothing takes 2 s, the pause after it 1 s, and that
 * twice; then a session that is gone is noticed, and the next one has settings to read: 2 s.
 */
#define RECONNECT_NS UINT64_C(8000000000)

/* See calm_check.h for all of these. */
static const double USED_LEAST = 0.95;
static const double LOOK_RENEWALS = 1.25; /* a host looks again within so many R */
static const double SHARES_DIFFER = 0.01; /* parts of the rate, where partitions have no numbers */
static const double CLOCKS_DIFFER = 0.01; /* two at 0.5 % either way */

enum {
	PIECES_MOST = 2,
	/* All of a strict window that was taken counts as used then; so does what is taken next. */
	WINDOWS_UNTIL_FREE = 2,
};

enum {
	LEASES_EACH = 60,
	LEASES_OF_REFUSAL = 32, /* as many as one transaction asks for */
	KEYS_A_SECOND = 10,	/* a second, for keys that are leased: core/fleet/keys.md */
	LISTS_OF_KEY = 3,	/* of each: before, after, and what another host did */
	DONE_EACH = 25,		/* transactions in a window, of one limiter, beside renewals */
	LISTS_OF_ROUND = 3,	/* of what is free, leased and claimed */
	REFUSED_OF_ROUND = 7,
	LISTS_EACH = 8, /* in an R, of one limiter */
	LISTS_MORE = 60,
	READS_OF_REFUSAL = 16, /* all settings, with names that were left */
	READS_OF_CHANGE = 4,   /* /g and the record, each once more if it has changed meanwhile */
	READS_OF_RENEWAL = 2,  /* of the next host's node, and of the one after it */
	READS_EACH = 8,
};

bool calm_check_is_steady(const struct settings *settings)
{
	if (settings->enforcement != ENFORCEMENT_ENFORCE || !settings->limit_count ||
	    *settings->limits[settings->limit_count - 1].unit || settings->reserve_hosts ||
	    settings->release_interval_ns || settings->adapt.kind || settings->backoff.kind ||
	    settings->slots.kind || settings_have_windows(settings))
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
uint64_t calm_check_settle_ns(const struct fleet_constants *constants)
{
	return RECONNECT_NS + constants->session_ns + NSEC_PER_SEC + constants->quarantine_ns;
}

/* Returns the length of the longest strict window; 0: there is none. */
static uint64_t longest_window_ns(const struct settings *settings)
{
	uint64_t longest_ns = 0;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		const struct rate *rate = &settings->limits[i].rate;

		if (rate_is_strict(rate) && rate->period_ns > longest_ns)
			longest_ns = rate->period_ns;
	}
	return longest_ns;
}

/*
 * A host with more than its share keeps it for `lease`, and gives a quarter of the excess every R:
 * after 4 R there is something for every reader that waits. A single partition then earns the
 * tokens at its part of the rate; and where partitions have no numbers, a part that is worth having
 * earns one in a `lease`, or is all there is.
 */
uint64_t calm_check_wait_ns(const struct settings *settings,
			    const struct fleet_constants *constants, uint64_t tokens)
{
	double earns_ns;

	if (!calm_check_is_steady(settings))
		return NEVER_NS;
	earns_ns = (double)NSEC_PER_SEC / slowest(settings);
	if (settings->partitions)
		earns_ns *= settings->partitions;
	else if (earns_ns < (double)settings->lease_ns)
		earns_ns = (double)settings->lease_ns;
	earns_ns *= (double)(tokens + 1);
	return calm_check_settle_ns(constants) + settings->lease_ns + 4 * constants->renewal_ns +
	       WINDOWS_UNTIL_FREE * longest_window_ns(settings) + (uint64_t)earns_ns;
}

/* Tells whether there is a part worth having for each host, so that none has to take turns. */
static bool has_parts(const struct settings *settings, uint32_t hosts)
{
	double leases = (double)settings->lease_ns / (double)NSEC_PER_SEC;

	return hosts <= settings_leaf_count(settings) &&
	       (settings->partitions || hosts <= slowest(settings) * leases);
}

/* Tokens that all hosts together may have at once: saved up, or of a strict window. */
static uint64_t largest_burst(const struct settings *settings)
{
	uint64_t largest = settings->burst;

	for (uint32_t i = 0; i < settings->limit_count; i++) {
		uint64_t burst = settings_burst(settings, i);

		if (rate_is_strict(&settings->limits[i].rate) && burst > largest)
			largest = burst;
	}
	return largest;
}

/* The part of a window for which hosts hold all by turns, though a wake is missed once. */
static double held_part(const struct settings *settings, const struct fleet_constants *constants,
			const struct calm_hosts *hosts)
{
	if (has_parts(settings, hosts->count))
		return 1;
	return 1 - LOOK_RENEWALS * (double)constants->renewal_ns / (double)CALM_WINDOW_NS;
}

/*
 * The part of @could that is owed: of one partition each idle host owes nothing, and where they
 * have no numbers of the least part that is worth having.
 */
static double owed_of(const struct settings *settings, uint32_t idle, double could)
{
	double least = (double)CALM_WINDOW_NS / (double)settings->lease_ns;

	if (!settings->partitions)
		return could > idle * least ? could - idle * least : 0;
	return idle < settings->partitions
		       ? could * (settings->partitions - idle) / settings->partitions
		       : 0;
}

bool calm_check_use(const struct settings *settings, const struct fleet_constants *constants,
		    const struct calm_hosts *hosts, double could, double did, char why[WHY_TEXT])
{
	/* Tokens of a strict window that change hosts count as used. */
	if (longest_window_ns(settings))
		return true;
	could = owed_of(settings, hosts->idle, could);
	if (did + hosts->count >= could * USED_LEAST * held_part(settings, constants, hosts))
		return true;
	snprintf(why, WHY_TEXT, "readers waited all the time, and %.0f of %.0f tokens were granted",
		 did, could);
	return false;
}

bool calm_check_shares(const struct settings *settings, uint32_t hosts, uint64_t least,
		       uint64_t most, char why[WHY_TEXT])
{
	double all = slowest(settings) * ((double)CALM_WINDOW_NS / (double)NSEC_PER_SEC);
	double piece = all / settings_leaf_count(settings);
	double more = (double)largest_burst(settings) / hosts + 1 + CLOCKS_DIFFER * (double)most;

	if (!settings->partitions && piece < all * SHARES_DIFFER)
		piece = all * SHARES_DIFFER;
	if (!has_parts(settings, hosts) || (double)(most - least) <= PIECES_MOST * piece + more)
		return true;
	snprintf(why, WHY_TEXT,
		 "of %u equal hosts one was granted %llu, another %llu: a partition is worth %.1f",
		 hosts, (unsigned long long)least, (unsigned long long)most, piece);
	return false;
}

bool calm_check_traffic(const struct traffic *traffic, const struct calm_limiters *limiters,
			const struct fleet_constants *constants, char why[WHY_TEXT])
{
	uint64_t renewals = CALM_WINDOW_NS / constants->renewal_ns + 1;
	uint64_t each = limiters->count ? limiters->count : 1, lists = traffic->lists;
	uint64_t keys = limiters->leased ? KEYS_A_SECOND * CALM_WINDOW_NS / NSEC_PER_SEC : 0;
	uint64_t wakes = limiters->partitions ? traffic->given : 0, rounds;

	lists -= lists < LISTS_OF_KEY * keys ? lists : LISTS_OF_KEY * keys;
	rounds = (lists + LISTS_OF_ROUND - 1) / LISTS_OF_ROUND;
	if (traffic->transactions <= 2 * renewals + DONE_EACH * each + traffic->refused +
					     traffic->leases + traffic->changes + wakes + keys &&
	    traffic->leases <= LEASES_EACH * each + limiters->partitions +
				       LEASES_OF_REFUSAL * traffic->refused &&
	    traffic->refused <= 2 * renewals + REFUSED_OF_ROUND * rounds + keys + traffic->heard &&
	    lists <= renewals * (1 + LISTS_EACH * each) + LISTS_MORE &&
	    traffic->reads <= READS_OF_RENEWAL * renewals + READS_EACH * each + keys +
				      traffic->transactions + limiters->partitions +
				      READS_OF_CHANGE * traffic->heard +
				      READS_OF_REFUSAL * traffic->refused)
		return true;
	snprintf(why, WHY_TEXT,
		 "a host sent %llu transactions (%llu refused, for %llu leases), %llu reads and "
		 "%llu lists in %llu s, with %u limiters",
		 (unsigned long long)traffic->transactions, (unsigned long long)traffic->refused,
		 (unsigned long long)traffic->leases, (unsigned long long)traffic->reads,
		 (unsigned long long)lists, (unsigned long long)(CALM_WINDOW_NS / NSEC_PER_SEC),
		 limiters->count);
	return false;
}
