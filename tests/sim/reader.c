/* reader - those who read token files, see sim.h. */
#include "memory.h"
#include "sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reader *reader_new(struct sim *sim, struct place *place, char *name, size_t size)
{
	struct reader *reader = memory_get(size);

	(void)sim;
	reader->place = place;
	reader->name = name;
	return reader;
}

void reader_free(struct reader *reader)
{
	free(reader->name);
	free(reader);
}

static void line_up(struct sim *sim, struct reader *reader)
{
	reader->next = NULL;
	reader->previous = sim->last_reader;
	if (sim->last_reader)
		sim->last_reader->next = reader;
	else
		sim->readers = reader;
	sim->last_reader = reader;
}

static void leave_line(struct sim *sim, struct reader *reader)
{
	if (reader->previous)
		reader->previous->next = reader->next;
	else
		sim->readers = reader->next;
	if (reader->next)
		reader->next->previous = reader->previous;
	else
		sim->last_reader = reader->previous;
}

static void begin(struct sim *sim, struct reader *reader, uint64_t tokens)
{
	reader->tokens = tokens;
	reader->check = (struct reader_check){.number = ++sim->asked, .tokens = tokens};
}

void reader_ask(struct sim *sim, struct reader *reader, uint64_t tokens, uint64_t within_ns)
{
	struct waiter *waiter = &reader->waiter;
	int err = -ENOENT;

	begin(sim, reader, tokens);
	*waiter = (struct waiter){.tokens = tokens};
	if (within_ns != NEVER_NS)
		waiter->expiry = &reader->expiry;
	waiter->limiter = reader->place ? reader->place->limiter : NULL;
	if (waiter->limiter)
		err = engine_ask(&sim->engine, waiter, within_ns, sim->now_ns);
	if (err != -EINPROGRESS) {
		reader_done(sim, reader, err);
		return;
	}
	line_up(sim, reader);
	ledger_waits(sim, reader);
	sim_collect(sim);
}

void reader_try(struct sim *sim, struct reader *reader)
{
	begin(sim, reader, 1);
	reader_done(sim, reader, engine_try(&sim->engine, reader->place->limiter, 1, sim->now_ns));
}

void reader_done(struct sim *sim, struct reader *reader, int err)
{
	if (reader->check.state == READER_WAITS)
		leave_line(sim, reader);
	if (err) {
		/* One who read a limiter that is not there never came to it. */
		if (reader->place)
			ledger_left(sim, reader);
		sim_print(sim, "refused %s %s", reader->name, error_symbol(err));
	} else {
		ledger_granted(sim, reader);
		sim_print(sim, "granted %s %llu", reader->name, (unsigned long long)reader->tokens);
		for (struct place *p = reader->place; p; p = p->parent) {
			bool ok = !p->service ||
				  service_call(p->service, reader->tokens, sim->now_ns);

			if (p == reader->place)
				reader->answered_ok = ok;
		}
	}
	if (reader->done && !sim->ending)
		reader->done(sim, reader, err);
	else
		reader_free(reader);
}

void reader_cancel(struct sim *sim, struct reader *reader)
{
	engine_cancel(&sim->engine, &reader->waiter);
	leave_line(sim, reader);
	ledger_left(sim, reader);
	if (!sim->ending)
		sim_print(sim, "cancelled %s", reader->name);
	reader_free(reader);
	sim_collect(sim);
}

struct reader *reader_named(const struct sim *sim, const char *name)
{
	for (struct reader *reader = sim->readers; reader; reader = reader->next) {
		if (!strcmp(reader->name, name))
			return reader;
	}
	return NULL;
}
