/* member - the daemon as one host of a fleet, see member.h. */
#include "fs/zookeeper/member.h"
#include "fs/base/log.h"
#include "fs/mount/holders.h"
#include "fs/mount/node.h"
#include "fs/mount/slot.h"
#include "fs/mount/wake.h"
#include "fs/state/state.h"
#include "fs/zookeeper/zookeeper.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t JOIN_NS = 10 * NSEC_PER_SEC;
static const uint64_t JOIN_SLOW_NS = 20 * NSEC_PER_SEC; /* more, if it answers */
static const uint64_t MOMENT_NS = NSEC_PER_SEC / 4;
static const uint64_t LEAVE_NS = 3 * NSEC_PER_SEC;
static const struct timespec STEP = {.tv_nsec = 2000000};

struct member {
	struct fleet_listener listener; /* first */
	struct daemon *daemon;		/* borrowed */
	struct options *options;	/* borrowed */
	struct fleet_options fleet_options;
	struct zookeeper *zookeeper;
	struct fleet *fleet;
	bool started;
	bool succeeds; /* a predecessor */
	char last_event[ERROR_TEXT];
};

static void on_event(struct fleet_listener *listener, enum fleet_event event, const char *text)
{
	struct member *member = (struct member *)listener;

	/* The first event is the reason; that the coordinator is out of reach follows from it. */
	if (event != FLEET_DEGRADED)
		snprintf(member->last_event, sizeof(member->last_event), "%s", text);
	events_add(&member->daemon->events, 0, viewer_subject(NULL), "fleet %s", text);
	log_info("fleet: %s", text);
}

enum { LEASE_NAME = 16 };

/* Prints A, A-B, or rA of the reserve. */
static void lease_name(const struct holding *holding, const struct lease *lease,
		       char name[LEASE_NAME])
{
	if (lease == &holding->reserve)
		snprintf(name, LEASE_NAME, "r%u", lease->first);
	else if (lease->first == lease->last)
		snprintf(name, LEASE_NAME, "%u", lease->first);
	else
		snprintf(name, LEASE_NAME, "%u-%u", lease->first, lease->last);
}

static void on_lease(struct fleet_listener *listener, const struct holding *holding,
		     const struct lease *lease, enum lease_state from, enum lease_state to)
{
	struct member *member = (struct member *)listener;
	char path[PATH_TEXT], name[LEASE_NAME];

	/* States in between are of no interest. */
	if (to == LEASE_TAKING || (from == LEASE_TAKING && to == LEASE_NONE))
		return;
	tree_path(holding->limiter, path);
	lease_name(holding, lease, name);
	events_add(&member->daemon->events, holding->limiter->uid, viewer_subject(holding->limiter),
		   "%s/partitions/%s %s", path, name, lease_state_name(to));
}

static void on_applied(struct fleet_listener *listener, struct limiter *limiter,
		       enum fleet_applied applied, const char *text)
{
	struct member *member = (struct member *)listener;
	char path[PATH_TEXT];

	tree_path(limiter, path);
	events_add(&member->daemon->events, limiter->uid, viewer_subject(limiter), "%s %s", path,
		   text);
	if (applied == FLEET_OWNED && member->daemon->fuse)
		node_owner_changed(member->daemon, limiter);
}

static void on_reshared(struct fleet_listener *listener, struct limiter *limiter)
{
	struct daemon *daemon = ((struct member *)listener)->daemon;

	state_taken(daemon->state, limiter);
}

static void on_changed(struct fleet_listener *listener, struct limiter *limiter, bool removed)
{
	struct daemon *daemon = ((struct member *)listener)->daemon;

	if (removed)
		state_limiter_removed(daemon->state, limiter->id);
	else
		state_limiter_changed(daemon->state, limiter);
}

static uint32_t on_slots(struct fleet_listener *listener, struct held_slot list[HOST_SLOTS_MAX])
{
	return holders_tell(((struct member *)listener)->daemon, list);
}

static void on_slots_lost(struct fleet_listener *listener, struct limiter *limiter, bool all)
{
	slot_lose(((struct member *)listener)->daemon, limiter, all);
}

struct member *member_open(struct options *options, struct daemon *daemon, struct state *state)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member) {
		log_error("no memory");
		return NULL;
	}
	member->listener = (struct fleet_listener){on_event,   on_lease, on_applied,   on_reshared,
						   on_changed, on_slots, on_slots_lost};
	member->daemon = daemon;
	member->options = options;
	member->fleet_options = (struct fleet_options){
		.host = options->host,
		.weight = options->weight,
		.constants = {.renewal_ns = FLEET_RENEWAL_NS,
			      .right_ns = options->right_ns,
			      .session_ns = options->session_ns},
		.handover = &state_fleet(state)->fleet,
	};
	if (member->fleet_options.constants.renewal_ns > options->right_ns / 4)
		member->fleet_options.constants.renewal_ns = options->right_ns / 4;
	member->zookeeper = zookeeper_open(options->servers, options->path, options->credentials,
					   &state_fleet(state)->zookeeper);
	if (!member->zookeeper) {
		free(member);
		return NULL;
	}
	member->fleet = fleet_new(&daemon->engine, zookeeper_coordinator(member->zookeeper),
				  &member->fleet_options, &member->listener);
	if (!member->fleet) {
		log_error("no memory");
		zookeeper_free(member->zookeeper);
		free(member);
		return NULL;
	}
	return member;
}

void member_attach(struct member *member)
{
	zookeeper_attach(member->zookeeper, member->daemon, member->fleet);
	member->daemon->fleet = member->fleet;
}

struct source *member_source(struct member *member)
{
	return fleet_source(member->fleet);
}

/* Runs the engine until @done, or for @for_ns, or @joining is interrupted. Whether it was done. */
static bool run_until(struct daemon *daemon, bool (*done)(const void *what), const void *what,
		      uint64_t for_ns, bool joining)
{
	uint64_t until_ns = clock_ns() + for_ns;
	bool is_done;

	do {
		daemon_run(daemon);
		daemon_lock(daemon);
		is_done = done(what);
		daemon_unlock(daemon);
		if (!is_done)
			nanosleep(&STEP, NULL);
	} while (!is_done && clock_ns() < until_ns && !(joining && wake_is_ending()));
	return is_done;
}

static bool has_joined(const void *fleet)
{
	return fleet_state(fleet) == FLEET_READY && fleet_knows_hosts(fleet);
}

static bool is_joining(struct daemon *daemon, const struct fleet *fleet)
{
	bool joining;

	daemon_lock(daemon);
	joining = fleet_is_joining(fleet);
	daemon_unlock(daemon);
	return joining;
}

static bool is_up_to_date(const void *fleet)
{
	return fleet_is_up_to_date(fleet);
}

static bool has_left(const void *fleet)
{
	return fleet_has_left(fleet);
}

/* Puts a limiter of a predecessor back into the tree under its number. */
static int restore_limiter(void *argument, const struct state_limiter *former)
{
	struct member *member = argument;
	struct engine *engine = &member->daemon->engine;
	struct limiter *parent = tree_find_id(&engine->tree, former->parent), *limiter;
	const struct state_holding *holding = &former->holding;
	struct settings settings = SETTINGS_DEFAULT;
	char error[ERROR_TEXT];
	int err;

	if (!former->id) {
		change_apply_owner(engine, engine->tree.root, &former->owner);
		return 0;
	}
	if (!parent || settings_parse(former->settings, &settings, error))
		return 0; /* the fleet knows better */
	engine->tree.last_id = former->id - 1;
	err = change_restore(engine, parent, former->name, &settings, &former->owner, NULL, 0,
			     &limiter);
	settings_drop(&settings);
	if (err)
		return err;
	err = limiter_set_times(limiter, former->made_s, former->changed_s);
	if (err)
		return err;
	fleet_restored(member->fleet, limiter,
		       &(struct former_holding){holding->lid, holding->generation, holding->saved,
						holding->cut, holding->version, holding->used_ns,
						(enum holding_maker)holding->maker});
	return 0;
}

int member_resume(struct member *member)
{
	struct daemon *daemon = member->daemon;
	int err;

	daemon_lock(daemon);
	member->succeeds = true;
	err = state_limiters(daemon->state, restore_limiter, member);
	if (!err) {
		state_restoring(daemon->state, STATE_LEVELS);
		err = fleet_resume(member->fleet, clock_ns());
	}
	if (!err)
		state_restore(daemon->state);
	daemon_unlock(daemon);
	if (err)
		log_error("cannot go on with the limiters there were: %s", strerror(-err));
	return err;
}

int member_join(struct member *member)
{
	struct daemon *daemon = member->daemon;
	bool joined;
	int err;

	err = zookeeper_start(member->zookeeper);
	if (err) {
		log_error("cannot start the coordinator's thread: %s", strerror(-err));
		return -1;
	}
	member->started = true;
	daemon_lock(daemon);
	fleet_start(member->fleet, clock_ns());
	daemon_unlock(daemon);
	/*
	 * Readers of a predecessor wait: they go on as soon as the fate of its requests is known.
	 */
	if (member->succeeds) {
		(void)run_until(daemon, is_up_to_date, member->fleet, MOMENT_NS, true);
		return 0;
	}
	/* Even with `nowait` a moment tells more. */
	joined = run_until(daemon, has_joined, member->fleet,
			   member->options->no_wait ? MOMENT_NS : JOIN_NS, true);
	/* Slow, not away. */
	if (!joined && !member->options->no_wait && is_joining(daemon, member->fleet))
		joined = run_until(daemon, has_joined, member->fleet, JOIN_SLOW_NS, true);
	if (joined || member->options->no_wait)
		return 0;
	if (wake_is_ending()) {
		log_info("interrupted");
		return -1;
	}
	log_error("no coordinator within 10 s: tried %s (%s%s%s)%s", member->options->servers,
		  fleet_state_name(fleet_state(member->fleet)), *member->last_event ? "; " : "",
		  member->last_event,
		  fleet_is_connected(member->fleet) ? "" : "; -o nowait mounts without one");
	return -1;
}

void member_leave(struct member *member)
{
	struct daemon *daemon = member->daemon;

	if (!member->started)
		return;
	daemon_lock(daemon);
	fleet_leave(member->fleet, clock_ns());
	daemon_unlock(daemon);
	(void)run_until(daemon, has_left, member->fleet, LEAVE_NS, false);
	zookeeper_stop(member->zookeeper);
	member->started = false;
}

void member_free(struct member *member)
{
	fleet_free(member->fleet);
	zookeeper_free(member->zookeeper);
	free(member);
}
