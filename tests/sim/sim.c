/* sim - runs the core on virtual time, see sim.h. */
#include "sim.h"
#include "invariant_empty.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RULE_EMPTY = 5 };

/* So many steps at one instant are a loop without end. */
enum { STEPS_AT_ONCE_MAX = 10000000 };

/* Settings are not kept: every change is stored at once. */
static void store(struct source *source, struct change *change)
{
	struct sim *sim = (struct sim *)((char *)source - offsetof(struct sim, source));

	engine_stored(&sim->engine, change, 0);
}

const char *error_symbol(int err)
{
	static const struct {
		int err;
		const char *symbol;
	} symbols[] = {
		{EAGAIN, "EAGAIN"}, {ENODEV, "ENODEV"}, {ENOENT, "ENOENT"}, {EBUSY, "EBUSY"},
		{EEXIST, "EEXIST"}, {EINVAL, "EINVAL"}, {ERANGE, "ERANGE"}, {E2BIG, "E2BIG"},
		{ENOSPC, "ENOSPC"}, {ENOMEM, "ENOMEM"},
	};

	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		if (symbols[i].err == -err)
			return symbols[i].symbol;
	}
	return "EIO";
}

void sim_print(const struct sim *sim, const char *format, ...)
{
	char time[QUANTITY_TEXT];
	va_list arguments;

	if (sim->quiet)
		return;
	seconds_print(sim->now_ns, 9, time);
	printf("%s ", time);
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
		fprintf(stderr, "  %s %s %s", time, entry->place ? entry->place->path : "-",
			names[entry->happening]);
		if (entry->number)
			fprintf(stderr, " reader %" PRIu64, entry->number);
		fprintf(stderr, " %" PRIu64 "\n", entry->tokens);
	}
}

void sim_fail(struct sim *sim, int number, const struct place *place, const char *why)
{
	char time[QUANTITY_TEXT];

	if (sim->failed)
		return;
	sim->failed = true;
	fflush(stdout);
	seconds_print(sim->now_ns, 9, time);
	fprintf(stderr, "%s invariant %d broken at %s: %s\n", time, number,
		place ? place->path : "-", why);
	print_log(sim);
}

void sim_later(struct sim *sim, struct occurrence *occurrence, uint64_t at_ns)
{
	heap_insert(&sim->pending, &occurrence->node, at_ns);
}

void sim_collect(struct sim *sim)
{
	struct waiter *waiter;

	while ((waiter = engine_done(&sim->engine)))
		reader_done(sim, (struct reader *)waiter, waiter->outcome);
}

static void run_engine(struct sim *sim)
{
	engine_run(&sim->engine, sim->now_ns);
	sim_collect(sim);
	ledger_check(sim);
}

/* All that is due at this instant but commands. */
static void run_instant(struct sim *sim)
{
	run_engine(sim);
	while (sim->pending.root && sim->pending.root->key <= sim->now_ns && !sim->failed) {
		struct occurrence *occurrence = (struct occurrence *)sim->pending.root;

		heap_remove(&sim->pending, &occurrence->node);
		occurrence->happens(sim, occurrence);
		run_engine(sim);
		if (++sim->steps_now > STEPS_AT_ONCE_MAX) {
			fflush(stdout);
			fprintf(stderr, "a reader never waits: the trace gets no further\n");
			sim->stuck = true;
			return;
		}
	}
}

static uint64_t next_ns(const struct sim *sim, const struct command *command)
{
	uint64_t at_ns = engine_next_ns(&sim->engine);

	if (sim->pending.root && sim->pending.root->key < at_ns)
		at_ns = sim->pending.root->key;
	if (command && command->at_ns < at_ns)
		at_ns = command->at_ns;
	return at_ns;
}

bool sim_run(struct sim *sim, const struct trace *trace)
{
	const struct command *command = trace->first;
	uint64_t at_ns;

	while ((at_ns = next_ns(sim, command)) != NEVER_NS && !sim->failed && !sim->stuck) {
		if (at_ns > sim->now_ns)
			sim->steps_now = 0;
		sim->now_ns = at_ns > sim->now_ns ? at_ns : sim->now_ns;
		run_instant(sim);
		if (sim->failed || sim->stuck || !command || command->at_ns > sim->now_ns)
			continue;
		if (command->kind == COMMAND_END)
			break;
		act(sim, command);
		run_engine(sim);
		command = command->next;
	}
	return !sim->failed && !sim->stuck;
}

void sim_open(struct sim *sim, bool quiet)
{
	static const struct owner root = {.access = 0755};

	*sim = (struct sim){.quiet = quiet, .source = {.store = store}};
	if (engine_init(&sim->engine, &sim->source, &root, 0)) {
		fprintf(stderr, "simulate: no memory\n");
		exit(2);
	}
}

static void print_summary(const struct sim *sim)
{
	for (const struct place *p = sim->places; p; p = p->next) {
		printf("summary %s granted %" PRIu64, p->path, p->granted);
		for (size_t w = 0; w < WINDOW_COUNT; w++)
			printf(" %s %" PRIu64, WINDOWS[w].name, p->windows.most[w]);
		putchar('\n');
	}
	for (const struct place *p = sim->places; p; p = p->next)
		service_print(p);
	retry_print(sim);
}

/* Every reader goes. */
static void send_readers_away(struct sim *sim)
{
	sim->ending = true;
	sim->quiet = true;
	while (sim->pending.root) {
		struct occurrence *occurrence = (struct occurrence *)sim->pending.root;

		heap_remove(&sim->pending, &occurrence->node);
		occurrence->dropped(occurrence);
	}
	while (sim->readers && !sim->failed)
		reader_cancel(sim, sim->readers);
}

static void remove_limiters(struct sim *sim)
{
	bool more = true;

	/* A child was made after its parent. */
	while (more) {
		struct place *last = NULL;
		struct change change = {.kind = CHANGE_REMOVE};

		for (struct place *p = sim->places; p; p = p->next) {
			if (p->limiter && !p->partition)
				last = p;
		}
		more = last;
		if (!last)
			break;
		change.limiter = last->limiter;
		engine_change(&sim->engine, &change, sim->now_ns);
		engine_changed(&sim->engine);
		if (change.outcome) {
			sim_fail(sim, RULE_EMPTY, last, change.error);
			return;
		}
		place_forget_removed(sim);
	}
}

static void check_empty(struct sim *sim)
{
	char why[WHY_TEXT];

	for (struct place *p = sim->places; p; p = p->next) {
		if (p->limiter && !empty_check_limiter(p->limiter, why))
			sim_fail(sim, RULE_EMPTY, p, why);
	}
	if (!empty_check_engine(&sim->engine, why))
		sim_fail(sim, RULE_EMPTY, NULL, why);
}

bool sim_close(struct sim *sim)
{
	if (!sim->failed)
		print_summary(sim);
	/* What has failed is not safe to take apart: the program ends with it. */
	if (!sim->failed)
		send_readers_away(sim);
	if (!sim->failed) {
		ledger_check(sim);
		check_empty(sim);
	}
	if (!sim->failed)
		remove_limiters(sim);
	if (sim->failed)
		return false;
	engine_free(&sim->engine);
	while (sim->places) {
		struct place *next = sim->places->next;

		place_free(sim->places);
		sim->places = next;
	}
	retry_free(sim);
	return true;
}
