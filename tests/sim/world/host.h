/*
 * host - one machine with its daemon: an engine, and in a fleet a link to the coordinator and a
 * clock of its own.
 *
 * The engine is told local time; everything else in the simulator is in true time. In a fleet all
 * memory that the core gets is the host's, so that a process can die without a word.
 */
#ifndef RATEFS_SIM_HOST_H
#define RATEFS_SIM_HOST_H

#include "tests/sim/base/clock.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/coordinator/zookeeper.h"
#include "tests/sim/invariants/calm_check.h"
#include "tests/sim/invariants/lease_check.h"
#include "tests/sim/world/former.h"

#include "core/fleet/fleet.h"
#include "core/limiter/engine.h"

enum host_state { HOST_DOWN, HOST_UP, HOST_LEAVING };

struct sim;

/* More places are never parked at a time: traces interrupt one reader at a time. */
enum { PLACES_PARKED = 256 };
struct common;
struct command;

/* A lease that changed in this step. */
struct lease_change {
	struct lease_check *check; /* of its limiter */
	struct run run;
	enum lease_state to;
};

struct host {
	struct heap_node due; /* first; in sim->due */
	struct sim *sim;
	char name[16];
	enum host_state state;
	bool paused;
	bool resumes;	    /* its first step after that */
	unsigned int life;  /* counts processes */
	struct clock clock; /* the engine's, and the holder's */
	struct clock waiter_clock;
	struct engine engine;
	int64_t wall_ahead_ns; /* its wall clock is ahead of its engine's time */
	struct source source;  /* without a fleet */
	struct parked_place parked[PLACES_PARKED];
	uint32_t parked_used;
	struct memory memory;

	/* In a fleet. */
	struct fleet *fleet; /* owned */
	struct link *link;
	struct client client;
	struct fleet_listener listener;
	struct fleet_options options;	 /* its contents are owned */
	struct former former;		 /* for a successor */
	struct handover_memory *as_sent; /* owned: the memory when its process was to be killed */
	uint64_t in_touch_ns;		 /* it has joined and is connected since; UINT64_MAX: not */
	bool stalls;			 /* its process stops when a grant was decided: */
	bool stalled;			 /* in this step one was */
	bool is_ambushed;		 /* at the end of this step ... */
	enum ambush_deed deed;		 /* ... this befalls it */
	bool applied;			 /* something of the tree changed in this step */
	bool reshared;			 /* its right to use did */
	struct lease_change *changes;	 /* owned */
	size_t change_count, change_room;
	struct traffic traffic_before; /* when the window of calm.c began */
	unsigned int life_before;
	uint64_t joined_ns;	       /* at the last look of calm.c it was in the fleet, or down */
	struct calm_limiters limiters; /* the most that there were in that window at once */
	uint64_t left_out;	       /* fleet_counters.left_out, at the last look of calm.c */
	struct holder holder;	       /* its entitlements */
	struct occurrence *postponed, *last_postponed; /* while it is paused */
	const struct command **commands;	       /* owned: likewise */
	size_t command_count;
	struct writing *writings; /* owned: changes under way */
	bool order_changed;	  /* in this step: settings, or tokens came back */
	bool slots_changed;	  /* a slot was closed in this step, or their number changed */
	uint32_t refused;	  /* commands, since they were last counted */

	struct place *places, *last_place; /* owned */
	struct place **by_id;		   /* owned, @id_room: by limiter->id */
	uint32_t id_room;
	uint32_t last_id;		      /* of the limiters that have places */
	struct reader *readers, *last_reader; /* waiters, in order of asking */
	struct opener *openers;		      /* holders of slots */
	struct polling *pollings;	      /* owned: programs that poll */
};

/* The host's time now. */
uint64_t host_now(const struct host *host);

/* Around what the core does for @host: memory is its own. */
struct memory *host_enter(struct host *host);
void host_leave(struct memory *before);

/* A process begins, without a fleet or in one. */
void host_start(struct host *host);

/* A process goes on where the one before was killed. */
void host_succeed(struct host *host);

/* Serves due readers, collects, checks, and sets when to come back. */
void host_step(struct host *host);

/* Follows each step: collects, checks, sets when to come back. */
void host_settle(struct host *host);

/* Collects readers whose outcome is there. */
void host_collect(struct host *host);

/* When its clock has changed, or it was paused. */
void host_schedule(struct host *host);

void host_pause(struct host *host);

/* Sets its wall clock to @wall_ns since 1970. */
void host_set_clock(struct host *host, int64_t wall_ns);
void host_resume(struct host *host);
void host_kill(struct host *host);
/* Leaves cleanly; the process is gone when it has. */
void host_stop(struct host *host);

#endif
