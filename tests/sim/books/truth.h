/*
 * truth - limiters as the coordinator has them: their names and settings, commit by commit.
 *
 * Hosts use the settings that they were told, which may be old. The bound of their grants together
 * follows from the commits: settings that were replaced are in force somewhere for Q, since a right
 * ends that was acknowledged before. A user sees names: a limiter that is removed or renamed and
 * one that has its name then share a rate. A limiter below one that is renamed is renamed with it.
 */
#ifndef RATEFS_SIM_TRUTH_H
#define RATEFS_SIM_TRUTH_H

#include "tests/sim/invariants/fleet_check.h"
#include "tests/sim/coordinator/zookeeper.h"

struct sim;

/* A name, with the check of all grants by it. */
struct name {
	struct name *next;
	char *path; /* owned */
	struct fleet_check rate;
};

/* A limiter, also one that was removed. */
struct truth {
	struct truth *next;
	uint64_t id;
	uint64_t parent;
	uint64_t made_zxid;
	bool there;
	char *label; /* owned: the last part of its path */
	struct settings settings;
	uint64_t quoted_ns; /* until then, at most, a quota may be in force that a service told */
	struct name *name;  /* NULL as long as its path is not known */
	uint64_t saved;	    /* the generation since which its limits are so, in its record */
	struct taken_back *taken_back; /* owned */
};

/* Generations that an election took back: @first to @last of them come again. */
struct taken_back {
	struct taken_back *next;
	uint64_t first, last;
};

/* zookeeper->observe of a simulator's coordinator. */
void truth_observe(struct zookeeper *zookeeper, const struct commit *commit);

/* The check of all grants by the name @path; NULL: there never was one of that name. */
struct fleet_check *truth_rate(const struct sim *sim, const char *path);

/* Limiter @id; NULL: there never was one. */
const struct truth *truth_of(const struct sim *sim, uint64_t id);

/*
 * Returns the time that begins now on a host for which the limits of limiter @id are of generation
 * @saved: another one if elections took that generation back, and it came again.
 */
uint64_t truth_time(const struct sim *sim, uint64_t id, uint64_t saved);

/* A service told of a quota of limiter @id for @reset_ns. */
void truth_quoted(struct sim *sim, uint64_t id, uint64_t reset_ns);

/* Tells whether it was in force of late: readers get less than the rate, or did in this window. */
bool truth_is_quoted(const struct sim *sim, const struct truth *truth);

/* Tiles that hosts lease of a limiter, and how many of these hosts there are. */
struct leased_tiles {
	uint32_t tiles, hosts;
};

/* Counts those of the limiter at @path that host @name leases; NULL: that any host does. */
struct leased_tiles truth_tiles(const struct sim *sim, const char *path, const char *name);

/* Returns how many open slots of the limiter at @path the nodes of hosts tell, or that of @name. */
uint32_t truth_told_slots(const struct sim *sim, const char *path, const char *name);

void truth_free(struct sim *sim);

#endif
