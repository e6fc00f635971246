/*
 * absence - readers and openers that are interrupted and ask again, see reader.h.
 *
 * `interrupt NAME [for DURATION]`: it leaves its queue, and asks again for the same after that time
 * (0: at once), as a thread does that a signal has interrupted. Whether it then has its old place
 * is decided here, by the time that it was away, and the core has to agree.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/answers.h"
#include "tests/sim/world/sim.h"

#include <stdio.h>

static struct reader *reader_of(struct occurrence *occurrence)
{
	return (struct reader *)((char *)occurrence - offsetof(struct reader, absence.back));
}

static struct asker asker_of(const struct reader *reader)
{
	return (struct asker){.thread = reader->absence.thread, .number = reader->check.number};
}

static void come_back(struct sim *sim, struct occurrence *occurrence)
{
	struct reader *reader = reader_of(occurrence);

	/* Tokens granted until now were granted before it came back. */
	host_step(reader->place->host);
	if (reader->waiter.is_opener)
		slot_ask(sim, reader);
	else if (reader->manner == READ_TRYING)
		reader_try(sim, reader);
	else
		reader_ask(sim, reader, reader->tokens, reader->most, reader->absence.within_ns);
}

static void drop(struct occurrence *occurrence)
{
	reader_free(reader_of(occurrence));
}

void absence_begin(struct sim *sim, struct reader *reader, uint64_t away_ns)
{
	struct absence *absence = &reader->absence;
	struct host *host = reader->place->host;
	struct memory *before = host_enter(host);
	struct asker asker;

	if (!absence->thread)
		absence->thread = ++sim->threads;
	asker = asker_of(reader);
	engine_interrupt(&host->engine, &reader->waiter, &asker, host_now(host));
	host_leave(before);
	absence->number = reader->check.number;
	absence->left_ns = host_now(host);
	absence->back = (struct occurrence){.happens = come_back, .dropped = drop};
	answers_tell(sim, host, reader->name, "interrupted", "");
	sim_later(sim, host, &absence->back, sim->now_ns + away_ns);
	host_collect(host);
}

bool absence_asker(const struct reader *reader, struct asker *asker)
{
	if (reader->absence.left_ns)
		*asker = asker_of(reader);
	return reader->absence.left_ns;
}

void absence_end(struct sim *sim, struct reader *reader, uint64_t within_ns, bool does)
{
	struct absence *absence = &reader->absence;
	uint64_t now_ns = host_now(reader->place->host);
	bool should = now_ns - absence->left_ns < PARKING_NS && within_ns;

	if (!absence->left_ns)
		return;
	/* A key that was forgotten meanwhile is another one. */
	if (does != should && (does || !reader->place->is_key))
		sim_fail(sim, INVARIANT_QUEUE, reader->place,
			 does ? "a place is given that should be gone"
			      : "a reader that came back in time has lost its place");
	if (does)
		reader->check.number = absence->number;
	absence->left_ns = 0;
}
