/*
 * common - a limiter as the whole fleet has it: the sum of all hosts' places of one limiter.
 *
 * A limiter that is renamed has one for each of its names, since a user sees names: hosts that have
 * not heard of it yet grant by the old one. Its partitions are the same ones under all of them.
 */
#ifndef RATEFS_SIM_COMMON_H
#define RATEFS_SIM_COMMON_H

#include "tests/sim/invariants/fleet_check.h"
#include "tests/sim/invariants/lease_check.h"
#include "tests/sim/invariants/quotas_check.h"
#include "tests/sim/invariants/told_check.h"
#include "tests/sim/base/windows.h"

struct host;
struct holding;
struct place;
struct sim;

struct common {
	struct common *next;
	uint64_t id; /* LID; a key's is its limiter's */
	bool is_key;
	bool is_lost;		  /* an election took it back: its id and name are another's */
	struct common *first;	  /* the same limiter by its first name; itself, if that is it */
	char *path;		  /* owned */
	struct fleet_check *rate; /* that of its name, or its own; NULL: it is not known yet */
	struct fleet_check own;	  /* a key's */
	const struct fleet_check *above; /* a key's: that of its limiter's name */
	struct windows windows;
	/* Of the first alone. */
	struct service *service; /* owned, or NULL */
	struct lease_check leases;
	struct quotas_check quotas;
	struct told_check told;
	uint64_t granted_ns; /* the last time */
	uint64_t charged;    /* tokens, ever */

	uint64_t granted;

	/* Tokens that could have been granted while a reader waited, and tokens that were. */
	uint64_t waiting; /* readers, on all hosts */
	uint64_t since_ns;
	double could;
	uint64_t did;

	double could_before; /* when the window of calm.c began */
	uint64_t did_before;
};

/* The limiter of @place, if it is known what it is by now. */
void common_join(struct place *place);

/* Notes the time for which the limits of @place are so on its host, if another one has begun. */
void common_note_time(struct place *place);

/* As which all hosts know the key @place. */
void common_join_key(struct place *place);

/* Time as the fastest clock has it: a host may grant its tokens a little sooner. */
uint64_t common_now(const struct sim *sim);

/* The path of @place is another: its readers are counted by that. */
void common_rejoin(struct place *place);

/* Limiter @id, which was @from, is @to from now on. */
void common_renamed(struct sim *sim, uint64_t id, const char *from, const char *to);

/* Limiter @id is about to have other settings, or to go; has them; has gone. */
void common_tuning(struct sim *sim, uint64_t id);
void common_tuned(struct sim *sim, uint64_t id, const struct settings *settings,
		  uint64_t quarantine_ns);
void common_goes(struct sim *sim, uint64_t id, uint64_t quarantine_ns);

/*
 * Tells of which units the host of @place keeps a rate by leases there now, as fleet_check_keeps():
 * 0 also where it is degraded to share or open.
 */
uint32_t common_keeps(const struct place *place);

/* A reader of @place begins to wait, or leaves. */
void common_waits(struct place *place, uint64_t tokens, const struct amounts *amounts);
void common_leaves(struct place *place);
/* The host of @place was paused and goes on. */
void common_late(struct place *place);

/* Counts until now the tokens that could have been granted. */
void common_measure(struct common *common, const struct sim *sim);

/* Tokens, and @amounts, are granted to a reader that @waited, or not, for @asked at least. */
void common_grants(struct place *place, uint64_t tokens, uint64_t asked,
		   const struct amounts *amounts, bool waited);

/* Tokens of @unit, or without a unit (""), are given back. */
void common_returns(struct place *place, const char *unit, uint64_t tokens);

struct outcome;

/*
 * A service told the host of @place of its quota; its reports of @unit are void on all hosts, NULL:
 * of any unit.
 */
void common_told(struct place *place, const struct outcome *outcome);
void common_void_told(struct place *place, const char *unit);

/* Tokens of @unit are granted in @place, as all hosts together may; come back. */
void common_takes_told(struct place *place, const char *unit, uint64_t tokens);
void common_returns_told(struct place *place, const char *unit, uint64_t tokens);

/* The leases of the limiter of @holding. */
struct lease_check *common_leases(struct sim *sim, const struct holding *holding);

/* After a step of @host: notes its entitlements of now. */
void common_check_leases(struct host *host);

/* Checks that @host has told of all that it says, when it is asked, that it may use. */
void common_audit(struct host *host);

void common_free(struct common *common);

#endif
