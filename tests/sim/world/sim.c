/* sim - runs the core on virtual time, see sim.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/world/sim.h"
#include "tests/sim/actors/polling.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/retry.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/answers.h"
#include "tests/sim/books/calm.h"
#include "tests/sim/books/common.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/books/summary.h"
#include "tests/sim/invariants/empty_check.h"
#include "tests/sim/world/act.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many steps at one instant are a loop without end. */
enum { STEPS_AT_ONCE_MAX = 1000000 };

/* So long hosts may take to leave when the trace has ended. */
#define LEAVING_NS UINT64_C(5000000000)

const char *sim_error_symbol(int err)
{
	static const struct {
		int err;
		const char *symbol;
	} symbols[] = {
		{EAGAIN, "EAGAIN"}, {ENODEV, "ENODEV"},	      {ENOENT, "ENOENT"},
		{EBUSY, "EBUSY"},   {EEXIST, "EEXIST"},	      {EINVAL, "EINVAL"},
		{ERANGE, "ERANGE"}, {E2BIG, "E2BIG"},	      {ENOSPC, "ENOSPC"},
		{ENOMEM, "ENOMEM"}, {ENOTCONN, "ENOTCONN"},   {ETIMEDOUT, "ETIMEDOUT"},
		{EACCES, "EACCES"}, {ESHUTDOWN, "ESHUTDOWN"}, {EHOSTUNREACH, "EHOSTUNREACH"},
	};

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		if (symbols[i].err == -err)
			return symbols[i].symbol;
	}
	return "EIO";
}

void sim_print(const struct sim *sim, const struct host *host, const char *format, ...)
{
	char time[QUANTITY_TEXT];
	va_list arguments;

	if (sim->quiet)
		return;
	seconds_print(sim->now_ns, 9, time);
	printf("%s ", time);
	if (sim->fleet && host)
		printf("%s ", host->name);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

static void print_log(const struct sim *sim)
{
	static const char *const names[] = {
		[WAITS] = "waits", [GRANTED] = "granted", [LEFT] = "left",
		[TUNED] = "tuned", [CHARGED] = "charged", [RETURNED] = "returned",
	};
	size_t first = sim->logged > LOG_LENGTH ? sim->logged - LOG_LENGTH : 0;

	for (size_t i = first; i < sim->logged; i++) {
		const struct log_entry *entry = &sim->log[i % LOG_LENGTH];
		char time[QUANTITY_TEXT];

		seconds_print(entry->at_ns, 9, time);
		fprintf(stderr, "  %s %s%s%s %s", time,
			sim->fleet && entry->place ? entry->place->host->name : "",
			sim->fleet ? " " : "", entry->place ? entry->place->path : "-",
			names[entry->happening]);
		if (entry->number)
			fprintf(stderr, " reader %" PRIu64, entry->number);
		fprintf(stderr, " %" PRIu64 "\n", entry->tokens);
	}
}

void sim_fail(struct sim *sim, enum invariant invariant, const struct place *place, const char *why)
{
	char time[QUANTITY_TEXT];

	if (sim->failed)
		return;
	sim->failed = true;
	fflush(stdout);
	seconds_print(sim->now_ns, 9, time);
	fprintf(stderr, "invariant I%d: %s at %s s: %s\n", (int)invariant,
		place ? place->path : "the fleet", time, why);
	print_log(sim);
}

void sim_later(struct sim *sim, struct host *host, struct occurrence *occurrence, uint64_t at_ns)
{
	occurrence->host = host;
	occurrence->life = host->life;
	heap_insert(&sim->pending, &occurrence->node, at_ns);
}

/* On a host that is paused it happens later; on one that has gone, never. */
static void happen(struct sim *sim, struct occurrence *occurrence)
{
	struct host *host = occurrence->host;

	heap_remove(&sim->pending, &occurrence->node);
	if (host->state != HOST_UP || host->life != occurrence->life) {
		occurrence->dropped(occurrence);
	} else if (host->paused) {
		occurrence->next = NULL;
		if (host->postponed)
			host->last_postponed->next = occurrence;
		else
			host->postponed = occurrence;
		host->last_postponed = occurrence;
	} else {
		occurrence->happens(sim, occurrence);
		host_step(host);
	}
}

/* The first thing that is due now; false: nothing is. */
static bool run_one(struct sim *sim)
{
	struct heap_node *due = sim->due.root, *pending = sim->pending.root;

	if (due && due->key <= sim->now_ns)
		host_step((struct host *)due);
	else if (sim->fleet && zookeeper_next_ns(&sim->zookeeper) <= sim->now_ns)
		zookeeper_run_one(&sim->zookeeper);
	else if (pending && pending->key <= sim->now_ns)
		happen(sim, (struct occurrence *)pending);
	else
		return false;
	return true;
}

/* All that is due at this instant but commands. */
static void run_instant(struct sim *sim)
{
	while (!sim->failed && run_one(sim)) {
		if (++sim->steps_now > STEPS_AT_ONCE_MAX) {
			fflush(stdout);
			fprintf(stderr, "a reader never waits: the trace gets no further\n");
			sim->stuck = true;
			return;
		}
	}
}

static uint64_t next_ns(const struct sim *sim)
{
	uint64_t at_ns = sim->due.root ? sim->due.root->key : NEVER_NS;

	if (sim->pending.root && sim->pending.root->key < at_ns)
		at_ns = sim->pending.root->key;
	if (sim->fleet && zookeeper_next_ns(&sim->zookeeper) < at_ns)
		at_ns = zookeeper_next_ns(&sim->zookeeper);
	return at_ns;
}

static void advance(struct sim *sim, uint64_t at_ns)
{
	if (at_ns > sim->now_ns)
		sim->steps_now = 0;
	sim->now_ns = at_ns > sim->now_ns ? at_ns : sim->now_ns;
	sim->zookeeper.now_ns = sim->now_ns;
	run_instant(sim);
	if (!sim->failed)
		calm_look(sim);
}

bool sim_run(struct sim *sim, const struct trace *trace)
{
	const struct command *command = trace->first;

	answers_keep(sim, trace);
	while (!sim->failed && !sim->stuck) {
		uint64_t at_ns = next_ns(sim);

		if (command && command->at_ns < at_ns)
			at_ns = command->at_ns;
		if (at_ns == NEVER_NS)
			break;
		advance(sim, at_ns);
		if (sim->failed || sim->stuck || !command || command->at_ns > sim->now_ns)
			continue;
		if (command->kind == COMMAND_END)
			break;
		act(sim, command);
		if (sim->hosts[command->host].state != HOST_DOWN &&
		    !sim->hosts[command->host].paused)
			host_step(&sim->hosts[command->host]);
		command = command->next;
	}
	return !sim->failed && !sim->stuck;
}

void sim_open(struct sim *sim, const struct fleet_command *fleet, uint64_t seed, bool quiet)
{
	*sim = (struct sim){
		.quiet = quiet, .fleet = fleet->hosts != 0, .prefix_bytes = fleet->prefix_bytes};
	sim->host_count = sim->fleet ? fleet->hosts : 1;
	sim->hosts = memory_get(sim->host_count * sizeof(*sim->hosts));
	if (sim->fleet)
		zookeeper_open(&sim->zookeeper, seed);
	sim->zookeeper.observe = truth_observe;
	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];

		host->sim = sim;
		snprintf(host->name, sizeof(host->name), "h%u", i + 1);
		host->options.weight = fleet->weight_count ? fleet->weights[i % fleet->weight_count]
							   : 1;
		host->options.constants = fleet->constants;
		host->options.handover = memory_get(sizeof(*host->options.handover));
	}
	for (unsigned int i = 0; i < sim->host_count; i++)
		host_start(&sim->hosts[i]);
}

/* Every reader goes. */
static void send_readers_away(struct sim *sim)
{
	sim->ending = true;
	sim->quiet = true;
	for (unsigned int i = 0; i < sim->host_count; i++) {
		if (sim->hosts[i].state != HOST_DOWN)
			engine_stop(&sim->hosts[i].engine);
	}
	while (sim->pending.root) {
		struct occurrence *occurrence = (struct occurrence *)sim->pending.root;

		heap_remove(&sim->pending, &occurrence->node);
		occurrence->dropped(occurrence);
	}
	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];

		while (host->postponed) {
			struct occurrence *next = host->postponed->next;

			host->postponed->dropped(host->postponed);
			host->postponed = next;
		}
		while (host->readers && !sim->failed)
			reader_cancel(sim, host->readers);
		while (host->pollings && !sim->failed)
			polling_end(sim, host->pollings);
		slots_close_all(host);
	}
}

static void remove_limiters(struct host *host)
{
	struct sim *sim = host->sim;
	bool more = true;

	/* A child was made after its parent. */
	while (more) {
		struct place *last = NULL;
		struct change change = {.kind = CHANGE_REMOVE};

		for (struct place *p = host->places; p; p = p->next) {
			if (p->limiter && !p->partition && !p->is_key)
				last = p;
		}
		more = last;
		if (!last)
			break;
		change.limiter = last->limiter;
		change_begin(&host->engine, &change, sim->now_ns);
		engine_changed(&host->engine);
		if (change.outcome) {
			sim_fail(sim, INVARIANT_EMPTY, last, change.error);
			return;
		}
		place_forget_removed(host);
	}
}

static void check_empty(struct host *host)
{
	struct sim *sim = host->sim;
	char why[WHY_TEXT];

	if (host->state == HOST_DOWN)
		return;
	for (struct place *p = host->places; p; p = p->next) {
		if (p->limiter && !empty_check_limiter(p->limiter, why))
			sim_fail(sim, INVARIANT_EMPTY, p, why);
	}
	/* Changes of a fleet may be under way for ever. */
	if (!host->writings && !empty_check_engine(&host->engine, why))
		sim_fail(sim, INVARIANT_EMPTY, NULL, why);
}

/* Readers that can leave do, in good order: their memory must be empty then. The others die. */
static void leave_fleet(struct sim *sim)
{
	uint64_t until_ns = sim->now_ns + LEAVING_NS;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];

		if (host->state == HOST_UP && !host->paused && !sim->failed)
			host_stop(host);
	}
	while (!sim->failed && !sim->stuck && next_ns(sim) <= until_ns)
		advance(sim, next_ns(sim));
	for (unsigned int i = 0; i < sim->host_count && !sim->failed; i++) {
		if (sim->hosts[i].state != HOST_DOWN)
			host_kill(&sim->hosts[i]);
	}
}

static void free_host(struct host *host)
{
	while (host->places) {
		struct place *next = host->places->next;

		place_free(host->places);
		host->places = next;
	}
	free(host->by_id);
	free(host->changes);
	free(host->commands);
	free(host->options.handover);
	free(host->as_sent);
	former_free(&host->former);
}

static void free_all(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		if (!sim->fleet)
			engine_free(&sim->hosts[i].engine);
		free_host(&sim->hosts[i]);
	}
	while (sim->commons) {
		struct common *next = sim->commons->next;

		common_free(sim->commons);
		sim->commons = next;
	}
	overriding_free();
	if (sim->fleet)
		zookeeper_close(&sim->zookeeper);
	truth_free(sim);
	retry_free(sim);
	answers_free(sim);
	free(sim->hosts);
}

bool sim_close(struct sim *sim)
{
	/* A failed run is not safe to take apart: the program ends with it. */
	if (sim->failed)
		return false;
	if (!sim->expects || !sim->quiet)
		summary_print(sim);
	send_readers_away(sim);
	for (unsigned int i = 0; i < sim->host_count && !sim->failed; i++) {
		if (sim->hosts[i].state != HOST_DOWN)
			ledger_check(&sim->hosts[i]);
		check_empty(&sim->hosts[i]);
		if (!sim->fleet && !sim->failed)
			remove_limiters(&sim->hosts[i]);
	}
	if (sim->fleet && !sim->failed)
		leave_fleet(sim);
	if (sim->failed)
		return false;
	free_all(sim);
	return !sim->missed;
}
