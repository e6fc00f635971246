/* member - the daemon as one host of a fleet, see member.h. */
#include "fs/member.h"
#include "fs/log.h"
#include "fs/loop.h"
#include "fs/node.h"
#include "fs/source_zookeeper.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const uint64_t JOIN_NS = 10 * NSEC_PER_SEC;
static const uint64_t LEAVE_NS = 3 * NSEC_PER_SEC;
static const struct timespec STEP = {.tv_nsec = 2000000};

struct member {
	struct fleet_listener listener; /* first */
	struct daemon *daemon;		/* borrowed */
	struct options *options;	/* borrowed */
	struct fleet_options fleet_options;
	struct source_zookeeper *zookeeper;
	struct fleet *fleet;
	bool started;
	char last_event[ERROR_TEXT];
};

static void on_event(struct fleet_listener *listener, const char *text)
{
	struct member *member = (struct member *)listener;

	/* The first is why; that it is out of reach follows from it. */
	if (strncmp(text, "degraded", 8) != 0)
		snprintf(member->last_event, sizeof(member->last_event), "%s", text);
	events_add(&member->daemon->events, viewer_subject(NULL), "fleet %s", text);
	log_info("fleet: %s", text);
}

static void partition_name(uint32_t index, char name[16])
{
	if (index < PARTITIONS_MAX)
		snprintf(name, 16, "%u", index);
	else
		snprintf(name, 16, "r%u", index - PARTITIONS_MAX);
}

static void on_lease(struct fleet_listener *listener, const struct holding *holding, uint32_t index,
		     enum lease_state from, enum lease_state to)
{
	struct member *member = (struct member *)listener;
	char path[PATH_TEXT], name[16];

	/* What comes and goes in between is of no interest. */
	if (to == LEASE_TAKING || (from == LEASE_TAKING && to == LEASE_NONE))
		return;
	tree_path(holding->limiter, path);
	partition_name(index, name);
	events_add(&member->daemon->events, viewer_subject(holding->limiter), "%s/partitions/%s %s",
		   path, name, lease_state_name(to));
}

static void on_applied(struct fleet_listener *listener, struct limiter *limiter, const char *text)
{
	struct member *member = (struct member *)listener;
	char path[PATH_TEXT];

	tree_path(limiter, path);
	events_add(&member->daemon->events, viewer_subject(limiter), "%s %s", path, text);
	if (!strncmp(text, "uid ", 4) && member->daemon->session)
		node_owner_changed(member->daemon, limiter);
}

struct member *member_open(struct options *options, struct daemon *daemon)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member) {
		log_error("no memory");
		return NULL;
	}
	member->listener = (struct fleet_listener){on_event, on_lease, on_applied};
	member->daemon = daemon;
	member->options = options;
	member->fleet_options = (struct fleet_options){
		.host = options->host,
		.weight = options->weight,
		.constants = {.renewal_ns = FLEET_RENEWAL_NS,
			      .right_ns = options->right_ns,
			      .session_ns = options->session_ns},
	};
	if (member->fleet_options.constants.renewal_ns > options->right_ns / 4)
		member->fleet_options.constants.renewal_ns = options->right_ns / 4;
	member->zookeeper = source_zookeeper_open(options->servers, options->path,
						  options->credentials);
	if (!member->zookeeper) {
		free(member);
		return NULL;
	}
	member->fleet = fleet_new(&daemon->engine, source_zookeeper_coordinator(member->zookeeper),
				  &member->fleet_options, &member->listener);
	if (!member->fleet) {
		log_error("no memory");
		source_zookeeper_free(member->zookeeper);
		free(member);
		return NULL;
	}
	return member;
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
	} while (!is_done && clock_ns() < until_ns && !(joining && loop_is_ending()));
	return is_done;
}

static bool has_joined(const void *fleet)
{
	return fleet_state(fleet) == FLEET_READY && fleet_knows_hosts(fleet);
}

static bool has_left(const void *fleet)
{
	return fleet_has_left(fleet);
}

int member_join(struct member *member)
{
	struct daemon *daemon = member->daemon;
	bool joined;
	int err;

	source_zookeeper_attach(member->zookeeper, daemon, member->fleet);
	daemon->fleet = member->fleet;
	err = source_zookeeper_start(member->zookeeper);
	if (err) {
		log_error("cannot start the coordinator's thread: %s", strerror(-err));
		return -1;
	}
	member->started = true;
	daemon_lock(daemon);
	fleet_start(member->fleet, clock_ns());
	daemon_unlock(daemon);
	/* Even who does not wait knows more a moment later. */
	joined = run_until(daemon, has_joined, member->fleet,
			   member->options->no_wait ? NSEC_PER_SEC / 4 : JOIN_NS, true);
	if (joined || member->options->no_wait)
		return 0;
	if (loop_is_ending()) {
		log_info("interrupted");
		return -1;
	}
	log_error("no coordinator within 10 s: tried %s (%s%s%s)", member->options->servers,
		  fleet_state_name(fleet_state(member->fleet)), *member->last_event ? "; " : "",
		  member->last_event);
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
	source_zookeeper_stop(member->zookeeper);
	member->started = false;
}

void member_free(struct member *member)
{
	fleet_free(member->fleet);
	source_zookeeper_free(member->zookeeper);
	free(member);
}
