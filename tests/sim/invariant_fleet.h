/*
 * invariant_fleet - what the hosts of a fleet grant together keeps the limiter's rate.
 *
 * invariant_rate.h is fed with the grants of all hosts, and with the settings that may be in force
 * somewhere. After a change some hosts use what was set before it, until their right ends or they
 * have seen it: for Q after the first host has applied it, the larger of the old and the new rates
 * and bursts counts. Settings have an order, the limiter's generations: a host that learns of an old
 * one late changes nothing.
 *
 * A host whose settings keep no rate, or that is degraded to what keeps none, is exempt, and the
 * limiter with it as long as there is one: no right bounds what such a host does.
 *
 * In place of the burst stands max(burst, partitions): each host has room for a token at least. A
 * take larger than one makes room for itself on its host. With an interval every host releases
 * batches of its own, each rounded up.
 */
#ifndef RATEFS_SIM_INVARIANT_FLEET_H
#define RATEFS_SIM_INVARIANT_FLEET_H

#include "invariant_rate.h"

enum { VERSIONS_MAX = 16 };

/* Settings, and until when they may be in force somewhere. */
struct version {
	struct settings settings;
	uint64_t generation;
	uint64_t until_ns; /* NEVER_NS for the newest */
};

struct fleet_check {
	struct rate_check rate;
	struct version versions[VERSIONS_MAX]; /* the newest is the last */
	uint32_t count;
	uint32_t exempt;  /* hosts that are degraded to what the rate is not kept by */
	uint64_t started; /* counts the times at which there was no surplus */
};

/* A host has settings of @generation, from now on. */
void fleet_check_follow(struct fleet_check *check, const struct settings *settings,
			uint64_t generation, uint64_t quarantine_ns, uint64_t now_ns);

/* Whether @settings keep no rate at all. */
bool fleet_check_is_free(const struct settings *settings);

/*
 * A host was paused and goes on: what came due meanwhile is accounted as of then, but at most @late_ns
 * back, so that so much more may be granted at once.
 */
void fleet_check_late(struct fleet_check *check, uint64_t late_ns);

/* A host begins, or ceases, to be exempt. */
void fleet_check_exempt(struct fleet_check *check, bool exempt, uint64_t now_ns);

/*
 * Tokens are granted; @largest and @largest_since are that host's. False, and @why, if they must
 * not be. fleet_check_asks(): a reader waits for them.
 */
bool fleet_check_grant(struct fleet_check *check, uint64_t tokens, uint64_t *largest,
		       uint64_t *largest_since, uint64_t now_ns, char why[WHY_TEXT]);
void fleet_check_asks(struct fleet_check *check, uint64_t tokens, uint64_t *largest,
		      uint64_t *largest_since);

/* The newest settings; NULL before there are any. */
const struct settings *fleet_check_settings(const struct fleet_check *check);

#endif
