/*
 * fleet_check - the hosts of a fleet keep the rate of a name in their grants together.
 *
 * rate_check.h is fed with the grants of all hosts, and with the settings that may be in force
 * somewhere. A host uses the settings before a change until its right ends, or until it has seen
 * the change: for Q after the change was committed, the larger of the old and the new rates and
 * bursts counts. For as long the settings of a limiter that was removed count, with those of one
 * that was made with its name; it begins with a burst, so windows begin with it.
 *
 * Settings that keep no rate (max; open, shadow) make no room for those that do: a host that has no
 * others yet is not judged, the grants of the others are. So it is with a host that is degraded to
 * what no right bounds. A window that they are in has no bound, and a bucket is full after them, as
 * on one host: windows begin with the next settings that keep a rate.
 *
 * In place of the burst stands max(burst, partitions), and one token for each host that the reserve
 * is set aside for: each host that holds something has room for a token at least. Where partitions
 * have no numbers a host may hold any part, so it is the burst and a token for each host. A take
 * larger than one makes room for itself on its host. With an interval every host releases batches
 * of its own, each rounded up, and a host of the reserve has room for a batch of the reserve's
 * rate.
 *
 * The same is promised of each unit, as if a limiter had no others: so each unit that the settings
 * have ever had is checked by itself.
 */
#ifndef RATEFS_SIM_FLEET_CHECK_H
#define RATEFS_SIM_FLEET_CHECK_H

#include "tests/sim/invariants/rate_check.h"

enum { VERSIONS_MAX = 16, FLEET_UNITS_MAX = 16 };

/* Settings of a limiter, and until when they may be in force somewhere. */
struct version {
	struct settings settings;
	uint64_t id;
	uint64_t until_ns; /* NEVER_NS for the newest of a limiter that is there */
};

/* The largest that readers of a host asked for at once, while @since counted. */
struct fleet_asked {
	uint64_t largest, since;
};

/* Those without a unit first. */
struct fleet_asks {
	struct fleet_asked of[1 + FLEET_UNITS_MAX];
};

struct fleet_check {
	struct fleet_check *next, *units; /* owned: a list of one for each unit */
	char unit[UNIT_TEXT];		  /* that is checked */
	uint32_t number;		  /* its place in fleet_asks */
	struct rate_check rate;
	struct version versions[VERSIONS_MAX]; /* the newest is the last */
	uint32_t count;
	uint64_t limited; /* the last limiter whose settings keep a rate */
	uint32_t hosts;	  /* that may have a bucket */
};

/* Limiter @id has @settings from now on. */
void fleet_check_follow(struct fleet_check *check, uint64_t id, const struct settings *settings,
			uint64_t quarantine_ns, uint64_t now_ns);

/* It was removed. */
void fleet_check_goes(struct fleet_check *check, uint64_t id, uint64_t quarantine_ns,
		      uint64_t now_ns);

/* Whether @settings keep no rate at all. */
bool fleet_check_is_free(const struct settings *settings);

/*
 * A host was paused and goes on: deadlines that came due meanwhile are accounted as of then, but at
 * most @late_ns back, so that so much more may be granted at once.
 */
void fleet_check_late(struct fleet_check *check, uint64_t late_ns);

/*
 * A reader begins to wait for @tokens and @amounts; or it does not wait any more, granted or not.
 * @asks are those of its host.
 */
void fleet_check_waits(struct fleet_check *check, uint64_t tokens, const struct amounts *amounts,
		       struct fleet_asks *asks);
void fleet_check_leaves(struct fleet_check *check);

/*
 * Return of which units a host with @settings keeps a rate, bit by bit as in fleet_asks; and of
 * which of these @tokens and @amounts are any.
 */
uint32_t fleet_check_keeps(const struct fleet_check *check, const struct settings *settings);
uint32_t fleet_check_concerns(const struct fleet_check *check, uint32_t keeps, uint64_t tokens,
			      const struct amounts *amounts);

/*
 * Tokens, and @amounts, are granted to a reader that waited for @asked, and got as many as were
 * there, on a host that @keeps a rate of these units; @asks are those of its host. False, and @why,
 * if they must not be.
 */
bool fleet_check_grant(struct fleet_check *check, uint32_t keeps, uint64_t tokens, uint64_t asked,
		       const struct amounts *amounts, struct fleet_asks *asks, uint64_t now_ns,
		       char why[WHY_TEXT]);

/* Tokens come back of @unit, or without a unit (""). */
void fleet_check_return(struct fleet_check *check, const char unit[UNIT_TEXT], uint64_t tokens,
			uint64_t now_ns);

/* Frees what it owns. */
void fleet_check_free(struct fleet_check *check);

/* The newest settings of a limiter that is there; NULL: there is none. */
const struct settings *fleet_check_settings(const struct fleet_check *check);

#endif
