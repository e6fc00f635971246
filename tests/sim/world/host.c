/* host - one machine with its daemon, see host.h. */
#include "tests/sim/actors/polling.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/actors/writing.h"
#include "tests/sim/books/common.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/world/act.h"
#include "tests/sim/world/sim.h"

#include "tests/sim/invariants/empty_check.h"

#include "core/limiter/wall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The two clocks of a host begin somewhere else than its engine's. */
#define HOLDER_BEGAN_NS UINT64_C(1000000000000)
#define WAITER_BEGAN_NS UINT64_C(5000000000000)

static const struct owner ROOT = {.access = 0755};

uint64_t host_now(const struct host *host)
{
	return clock_read(&host->clock, host->sim->now_ns);
}

struct memory *host_enter(struct host *host)
{
	return memory_enter(host->fleet ? &host->memory : NULL);
}

void host_leave(struct memory *before)
{
	memory_enter(before);
}

/* Without a fleet settings are not kept: every change is stored at once. */
static void store(struct source *source, struct change *change)
{
	struct host *host = (struct host *)((char *)source - offsetof(struct host, source));

	change_stored(&host->engine, change, 0);
}

static void no_memory(void)
{
	fprintf(stderr, "simulate: no memory\n");
	exit(2);
}

static struct host *host_of_client(struct client *client)
{
	return (struct host *)((char *)client - offsetof(struct host, client));
}

static struct host *host_of_listener(struct fleet_listener *listener)
{
	return (struct host *)((char *)listener - offsetof(struct host, listener));
}

/* Each thing that comes from the coordinator is a step. */

static struct memory *begin_step(struct host *host)
{
	struct memory *before = host_enter(host);

	engine_run(&host->engine, host_now(host));
	return before;
}

static void end_step(struct host *host, struct memory *before)
{
	host_leave(before);
	host_settle(host);
}

static void on_connected(struct client *client, uint64_t session)
{
	struct host *host = host_of_client(client);
	struct memory *before = begin_step(host);

	fleet_connected(host->fleet, session, host_now(host));
	end_step(host, before);
}

static void on_disconnected(struct client *client)
{
	struct host *host = host_of_client(client);
	struct memory *before = begin_step(host);

	fleet_disconnected(host->fleet, host_now(host));
	end_step(host, before);
}

static void on_expired(struct client *client)
{
	struct host *host = host_of_client(client);
	struct memory *before = begin_step(host);

	fleet_expired(host->fleet, host_now(host));
	end_step(host, before);
}

static void on_changed(struct client *client, const char *path)
{
	struct host *host = host_of_client(client);
	struct memory *before = begin_step(host);

	fleet_changed(host->fleet, path, host_now(host));
	end_step(host, before);
}

static void on_answered(struct client *client, struct request *request)
{
	struct host *host = host_of_client(client);
	struct memory *before = begin_step(host);

	fleet_answered(host->fleet, request, host_now(host));
	end_step(host, before);
}

static void on_clocks(struct client *client, struct clocks *clocks)
{
	struct host *host = host_of_client(client);
	uint64_t waiter_ns = clock_read(&host->waiter_clock, host->sim->now_ns);

	*clocks = (struct clocks){HOLDER_BEGAN_NS + host_now(host), WAITER_BEGAN_NS + waiter_ns};
}

static void befall(struct host *host)
{
	host->is_ambushed = false;
	host->sim->disturbed_ns = host->sim->now_ns;
	if (host->state == HOST_DOWN || host->paused)
		return;
	if (host->deed == AMBUSH_PAUSE) {
		host_pause(host);
		return;
	}
	host_kill(host);
	/* It was killed when it had sent: the memory is as it was then. */
	if (host->as_sent)
		memcpy(host->options.handover, host->as_sent, sizeof(*host->as_sent));
}

/* Stops the process, with grants on their way: see reader.c. */
static void stall(struct host *host)
{
	host->stalls = false;
	host->stalled = false;
	host->sim->disturbed_ns = host->sim->now_ns;
	if (host->state == HOST_UP && !host->paused)
		host_pause(host);
}

static void on_ambushed(struct client *client, enum ambush_deed deed, bool step)
{
	struct host *host = host_of_client(client);

	free(host->as_sent);
	host->as_sent = NULL;
	host->deed = deed;
	if (!step) {
		befall(host);
		return;
	}
	host->is_ambushed = true;
	if (deed == AMBUSH_KILL)
		host->as_sent = memory_copy(host->options.handover, sizeof(*host->as_sent));
}

/* Notes of the fleet. */

static void heard_event(struct fleet_listener *listener, enum fleet_event event, const char *text)
{
	const struct host *host = host_of_listener(listener);

	(void)event;
	sim_print(host->sim, host, "event %s", text);
}

/* The word for a step of a lease; NULL for those that are not told. */
static const char *word_of(enum lease_state from, enum lease_state to)
{
	if (to == LEASE_HELD)
		return "held";
	if (to == LEASE_WAITING)
		return "waiting";
	if (from == LEASE_DRAINING && to == LEASE_NONE)
		return "released";
	if (to == LEASE_IN_DOUBT || (to == LEASE_NONE && from != LEASE_TAKING))
		return "lost";
	return NULL;
}

static void remember_change(struct host *host, struct lease_change change)
{
	if (host->change_count == host->change_room) {
		size_t room = host->change_room * 2 + 16;
		struct lease_change *larger = memory_get(room * sizeof(*larger));

		if (host->change_count)
			memcpy(larger, host->changes, host->change_count * sizeof(*larger));
		free(host->changes);
		host->changes = larger;
		host->change_room = room;
	}
	host->changes[host->change_count++] = change;
}

static struct run run_of(const struct holding *holding, const struct lease *lease)
{
	return (struct run){
		.cut = holding->cut,
		.reserve = lease == &holding->reserve,
		.first = lease->first,
		.last = lease->last,
	};
}

static void heard_lease(struct fleet_listener *listener, const struct holding *holding,
			const struct lease *lease, enum lease_state from, enum lease_state to)
{
	struct host *host = host_of_listener(listener);
	struct memory *before = memory_enter(NULL);
	const char *word = word_of(from, to);
	struct run run = run_of(holding, lease);
	char path[PATH_TEXT];

	host->reshared = true;
	remember_change(host, (struct lease_change){common_leases(host->sim, holding), run, to});
	if (word && !host->sim->quiet) {
		tree_path(holding->limiter, path);
		sim_print(host->sim, host, "lease %s/partitions/%s%u %s", path,
			  run.reserve ? "r" : "", run.first, word);
	}
	memory_enter(before);
}

static void heard_applied(struct fleet_listener *listener, struct limiter *limiter,
			  enum fleet_applied applied, const char *text)
{
	(void)limiter;
	(void)applied;
	(void)text;
	host_of_listener(listener)->applied = true;
}

static void heard_slots_lost(struct fleet_listener *listener, struct limiter *limiter, bool all)
{
	slots_lose(host_of_listener(listener), limiter, all);
}

static uint32_t list_slots(struct fleet_listener *listener, struct held_slot list[HOST_SLOTS_MAX])
{
	return slots_tell(host_of_listener(listener), list);
}

void host_collect(struct host *host)
{
	struct waiter *waiter;

	/* A process that is stopped answers nothing, also if that was while it did this. */
	if (host->paused && !host->sim->ending)
		return;
	while ((waiter = engine_done(&host->engine))) {
		if (waiter->is_poller)
			polling_answered(host->sim, waiter);
		else
			reader_done(host->sim, (struct reader *)waiter, waiter->outcome);
	}
}

static void let_park(struct host *host)
{
	host->parked_used = 0;
	parking_init(&host->engine.schedule.parking, host->parked, PLACES_PARKED,
		     &host->parked_used);
}

void host_schedule(struct host *host)
{
	uint64_t at_ns = NEVER_NS;

	if (host->state != HOST_DOWN && !host->paused)
		at_ns = clock_when(&host->clock, engine_next_ns(&host->engine));
	if (at_ns == NEVER_NS)
		heap_remove(&host->sim->due, &host->due);
	else
		heap_place(&host->sim->due, &host->due, at_ns);
}

/* The process has gone, with its memory and all it knew. */
static void end_process(struct host *host)
{
	struct sim *sim = host->sim;

	while (host->readers)
		reader_vanish(sim, host->readers);
	polling_vanish(host);
	slots_vanish(host);
	writing_vanish(host);
	for (struct place *p = host->places; p; p = p->next)
		p->limiter = NULL;
	if (host->id_room)
		memset(host->by_id, 0, host->id_room * sizeof(*host->by_id));
	lease_check_ends_all(&host->holder);
	host->holder.end_ns = 0;
	host->change_count = 0;
	link_kill(host->link);
	memory_drop(&host->memory);
	host->fleet = NULL;
	host->state = HOST_DOWN;
	host->in_touch_ns = UINT64_MAX;
	host->paused = false;
	host->stalls = false;
	host->stalled = false;
	host->command_count = 0;
	while (host->postponed) {
		struct occurrence *next = host->postponed->next;

		host->postponed->dropped(host->postponed);
		host->postponed = next;
	}
	host_schedule(host);
}

/* It has left: all that it had must be gone. */
static void end_leaving(struct host *host)
{
	struct sim *sim = host->sim;
	char why[WHY_TEXT];

	if (!host->writings && link_is_idle(host->link)) {
		struct memory *before;

		slots_close_all(host);
		before = host_enter(host);
		place_forget_all(host);
		engine_free(&host->engine);
		fleet_free(host->fleet);
		host_leave(before);
		if (!empty_check_memory(0, host->memory.count, why))
			sim_fail(sim, INVARIANT_EMPTY, NULL, why);
	}
	sim_print(sim, host, "stopped");
	host->former.count = 0;
	end_process(host);
}

/* Changes are known before the readers that were granted by them are looked at. */
static void follow(struct host *host)
{
	writing_collect(host);
	/* Programs of the former process are told nothing. */
	if (host->applied || host->engine.tree.last_id != host->last_id) {
		host->last_id = host->engine.tree.last_id;
		host->applied = false;
		host->reshared = true;
		place_follow(host);
	}
	common_check_leases(host);
}

/* Notes since when it is in touch with the coordinator: it hears in /w what services say. */
static void follow_touch(struct host *host)
{
	bool touches = host->state == HOST_UP && host->fleet && !host->paused &&
		       fleet_state(host->fleet) == FLEET_READY && fleet_is_connected(host->fleet) &&
		       strcmp(host->sim->zookeeper.denied, "/w") != 0;

	if (!touches)
		host->in_touch_ns = UINT64_MAX;
	else if (host->in_touch_ns == UINT64_MAX)
		host->in_touch_ns = host->sim->now_ns;
}

void host_settle(struct host *host)
{
	if (host->fleet)
		follow(host);
	follow_touch(host);
	host_collect(host);
	ledger_check(host);
	host_schedule(host);
	if (host->state == HOST_LEAVING && fleet_has_left(host->fleet) && !host->sim->failed)
		end_leaving(host);
	if (host->is_ambushed && !host->sim->failed)
		befall(host);
	if (host->stalled && !host->sim->failed)
		stall(host);
}

void host_step(struct host *host)
{
	struct memory *before = begin_step(host);

	end_step(host, before);
}

static void start_fleet(struct host *host, bool succeeds)
{
	struct sim *sim = host->sim;
	struct memory *before;

	host->client = (struct client){on_connected, on_disconnected, on_expired, on_changed,
				       on_answered,  on_clocks,	      on_ambushed};
	host->listener = (struct fleet_listener){.event = heard_event,
						 .lease = heard_lease,
						 .applied = heard_applied,
						 .slots = list_slots,
						 .slots_lost = heard_slots_lost};
	host->options.host = host->name;
	host->holder.name = host->name;
	host->link = link_new(&sim->zookeeper, &host->client);
	host->link->coordinator.prefix_bytes = sim->prefix_bytes;
	host->link->memory = &host->memory;
	before = memory_enter(&host->memory);
	host->fleet = fleet_new(&host->engine, &host->link->coordinator, &host->options,
				&host->listener);
	if (!host->fleet ||
	    engine_init(&host->engine, fleet_source(host->fleet), &ROOT, host_now(host)))
		no_memory();
	wall_set(&host->engine, host->wall_ahead_ns, host_now(host));
	let_park(host);
	if (succeeds) {
		former_restore(host);
		if (fleet_resume(host->fleet, host_now(host)))
			no_memory();
		former_fill(host);
	}
	fleet_start(host->fleet, host_now(host));
	memory_enter(before);
	host_settle(host);
}

void host_succeed(struct host *host)
{
	host->state = HOST_UP;
	host->last_id = 0;
	host->life++;
	start_fleet(host, true);
}

void host_start(struct host *host)
{
	host->state = HOST_UP;
	host->last_id = 0;
	host->life++;
	if (host->sim->fleet) {
		start_fleet(host, false);
		return;
	}
	host->source.store = store;
	if (engine_init(&host->engine, &host->source, &ROOT, 0))
		no_memory();
	wall_set(&host->engine, host->wall_ahead_ns, host_now(host));
	let_park(host);
}

void host_set_clock(struct host *host, int64_t wall_ns)
{
	struct memory *before = begin_step(host);

	for (struct place *p = host->places; p; p = p->next)
		calendar_check_look(&p->rate.calendar, host_now(host));
	host->wall_ahead_ns = wall_ns - (int64_t)host_now(host);
	wall_set(&host->engine, host->wall_ahead_ns, host_now(host));
	end_step(host, before);
}

void host_pause(struct host *host)
{
	host->paused = true;
	host->in_touch_ns = UINT64_MAX;
	link_pause(host->link);
	host_schedule(host);
}

void host_resume(struct host *host)
{
	struct sim *sim = host->sim;
	struct occurrence *postponed = host->postponed;
	size_t count = host->command_count;

	host->paused = false;
	for (struct common *c = sim->commons; c; c = c->next) {
		if (c->rate)
			c->rate->rate.late_ns = ENGINE_CATCH_UP_NS;
	}
	host->postponed = NULL;
	host->command_count = 0;
	link_resume(host->link);
	for (struct place *p = host->places; p; p = p->next)
		common_late(p);
	host->resumes = true;
	host_step(host);
	host->resumes = false;
	/* The readers that have come meanwhile are all there now. */
	for (size_t i = 0; i < count && host->state != HOST_DOWN; i++) {
		act(sim, host->commands[i]);
		if (host->state != HOST_DOWN)
			host_step(host);
	}
	while (postponed) {
		struct occurrence *next = postponed->next;

		sim_later(sim, host, postponed, sim->now_ns);
		postponed = next;
	}
}

void host_kill(struct host *host)
{
	if (host->fleet)
		former_keep(host);
	end_process(host);
}

void host_stop(struct host *host)
{
	struct sim *sim = host->sim;
	struct memory *before;

	engine_stop(&host->engine);
	while (host->readers)
		reader_cancel(sim, host->readers);
	while (host->pollings)
		polling_end(sim, host->pollings);
	host->state = HOST_LEAVING;
	before = begin_step(host);
	fleet_leave(host->fleet, host_now(host));
	end_step(host, before);
}
