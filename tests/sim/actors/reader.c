/*
 * reader - programs that read token files, see reader.h.
 *
 * A grant counts from its decision on: the invariants are told of it then. It reaches its reader at
 * once, unless its host stalls: then that process is stopped before it answers, and answers when it
 * goes on. A grant that was decided while the right lasted may so come after its end; the host
 * has to know and to count it (late_grants), as fs/mount/daemon.c does.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/outcome.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/answers.h"
#include "tests/sim/books/forecast.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/books/slot_order.h"
#include "tests/sim/world/sim.h"

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

void reader_line_up(struct reader *reader)
{
	struct host *host = reader->place->host;

	reader->next = NULL;
	reader->previous = host->last_reader;
	if (host->last_reader)
		host->last_reader->next = reader;
	else
		host->readers = reader;
	host->last_reader = reader;
}

void reader_leave_line(struct reader *reader)
{
	struct host *host = reader->place->host;

	if (reader->previous)
		reader->previous->next = reader->next;
	else
		host->readers = reader->next;
	if (reader->next)
		reader->next->previous = reader->previous;
	else
		host->last_reader = reader->previous;
}

static void begin(struct sim *sim, struct reader *reader, uint64_t tokens, uint64_t most)
{
	reader->tokens = tokens;
	reader->forecast.is_known = false;
	reader->most = most;
	reader->forecast.is_bound = false;
	reader->check = (struct reader_check){.number = ++sim->asked, .tokens = tokens};
}

int reader_enter(struct reader *reader)
{
	int err;

	if (!reader->place->is_key)
		return reader->place->limiter ? 0 : -ENOENT;
	err = key_enter(reader->place);
	reader->inside = !err;
	return err;
}

void reader_leave(struct reader *reader)
{
	if (reader->inside)
		key_leave(reader->place);
	reader->inside = false;
}

/* Reads @reader's tokens as the mount does: 0, -EINPROGRESS, or what the program is told. */
static int read_tokens(struct sim *sim, struct reader *reader, struct token_read *read)
{
	struct host *host = reader->place->host;
	uint64_t now_ns = host_now(host);
	struct read_wait wait;
	struct asker asker;
	int err;

	read->limiter = reader->place->limiter;
	read->tokens = reader->tokens;
	read->most = reader->most;
	read->amounts = reader_amounts(reader);
	read->asker = absence_asker(reader, &asker) ? &asker : NULL;
	wait.waiter.place = 0;
	err = engine_read(&host->engine, read, &wait, now_ns);
	absence_end(sim, reader, reader->absence.within_ns, wait.waiter.place);
	if (!err || err == -EINPROGRESS)
		reader->waiter = wait.waiter;
	if (err != -EINPROGRESS)
		return err;
	reader->refusal = wait.refusal;
	if (wait.within_ns != NEVER_NS)
		reader->waiter.expiry = &reader->expiry;
	err = engine_ask(&host->engine, &reader->waiter, wait.within_ns, now_ns);
	return err == -EAGAIN ? wait.refusal : err;
}

static void ask(struct sim *sim, struct reader *reader, uint64_t tokens, uint64_t most,
		struct token_read *read)
{
	int err = reader_enter(reader);

	begin(sim, reader, tokens, most);
	reader->manner = read->manner;
	/* A place is kept for a reader that would wait, not for a little patience. */
	reader->absence.within_ns = read->manner == READ_BLOCKING ? read->within_ns : 0;
	if (!err) {
		struct memory *before = host_enter(reader->place->host);

		forecast_asks(sim, reader, read->within_ns);
		err = read_tokens(sim, reader, read);
		host_leave(before);
		forecast_refused(sim, reader, err);
	}
	if (err != -EINPROGRESS) {
		reader_done(sim, reader, err);
		return;
	}
	reader_line_up(reader);
	ledger_waits(sim, reader);
	forecast_waits(sim, reader);
	host_collect(reader->place->host);
}

void reader_ask(struct sim *sim, struct reader *reader, uint64_t tokens, uint64_t most,
		uint64_t within_ns)
{
	ask(sim, reader, tokens, most,
	    &(struct token_read){.manner = READ_BLOCKING, .within_ns = within_ns});
}

void reader_try(struct sim *sim, struct reader *reader)
{
	ask(sim, reader, 1, 1, &(struct token_read){.manner = READ_TRYING, .within_ns = NEVER_NS});
}

/* Tells @reader its outcome. */
static void tell(struct sim *sim, struct reader *reader, int err)
{
	if (err) {
		answers_refuse(sim, reader->place->host, reader->name, err);
	} else {
		answers_grant(sim, reader->place->host, reader->name, reader->granted);
		reader->answer_ns = outcome_of_call(sim, reader);
	}
	reader_leave(reader);
	if (reader->done && !sim->ending)
		reader->done(sim, reader, err);
	else
		reader_free(reader);
}

static struct reader *reader_of_delivery(struct occurrence *arrives)
{
	return (struct reader *)((char *)arrives - offsetof(struct reader, delivery.arrives));
}

/* A grant arrives whose process was stopped on the way. */
static void arrive(struct sim *sim, struct occurrence *arrives)
{
	struct reader *reader = reader_of_delivery(arrives);
	const struct delivery *delivery = &reader->delivery;
	struct host *host = reader->place->host;
	bool is_late = host_now(host) > delivery->use_until_ns;

	if (is_late)
		fleet_was_late(host->fleet);
	else if (host_now(host) > delivery->right_until_ns)
		sim_fail(sim, INVARIANT_PIECE, reader->place,
			 "a grant arrived after the end of its right, and its host does not know");
	tell(sim, reader, 0);
}

static void drop(struct occurrence *arrives)
{
	struct reader *reader = reader_of_delivery(arrives);

	/* A key that was open in a process that is gone has gone with it. */
	if (reader->inside && arrives->life != arrives->host->life)
		reader->place->readers--;
	else
		reader_leave(reader);
	reader_free(reader);
}

/* The grant of @reader was decided, and its process is about to be stopped. */
static void deliver_later(struct sim *sim, struct reader *reader)
{
	struct host *host = reader->place->host;
	uint64_t now_ns = host_now(host), right_ns = fleet_right_ns(host->fleet);

	host->stalled = true;
	reader->delivery = (struct delivery){
		.arrives = {.happens = arrive, .dropped = drop},
		.right_until_ns = right_ns ? now_ns + right_ns : NEVER_NS,
		.use_until_ns = fleet_use_until_ns(host->fleet),
	};
	sim_later(sim, host, &reader->delivery.arrives, sim->now_ns);
}

void reader_done(struct sim *sim, struct reader *reader, int err)
{
	const struct host *host = reader->place->host;

	if (reader->waiter.is_opener) {
		slot_done(sim, reader, err);
		return;
	}
	if (reader->check.state == READER_WAITS)
		reader_leave_line(reader);
	if (err == -EAGAIN)
		err = reader->refusal;
	if (err) {
		ledger_left(sim, reader);
	} else {
		reader->granted = reader->waiter.granted;
		ledger_granted(sim, reader);
	}
	if (!err && host->stalls && host->state == HOST_UP && !sim->ending)
		deliver_later(sim, reader);
	else
		tell(sim, reader, err);
}

static void leave_books(struct sim *sim, struct reader *reader)
{
	if (reader->waiter.is_opener)
		slot_order_leaves(reader);
	else
		ledger_left(sim, reader);
}

void reader_interrupt(struct sim *sim, struct reader *reader, uint64_t away_ns)
{
	reader_leave_line(reader);
	leave_books(sim, reader);
	absence_begin(sim, reader, away_ns);
	reader_leave(reader);
}

void reader_cancel(struct sim *sim, struct reader *reader)
{
	struct host *host = reader->place->host;
	struct memory *before = host_enter(host);

	engine_cancel(&host->engine, &reader->waiter);
	host_leave(before);
	reader_leave_line(reader);
	leave_books(sim, reader);
	if (!sim->ending)
		answers_tell(sim, host, reader->name, "cancelled", "");
	reader_leave(reader);
	reader_free(reader);
	host_collect(host);
}

void reader_vanish(struct sim *sim, struct reader *reader)
{
	reader_leave_line(reader);
	leave_books(sim, reader);
	if (reader->inside)
		reader->place->readers--;
	reader_free(reader);
}

struct reader *reader_named(const struct sim *sim, const char *name)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct reader *reader = sim->hosts[i].readers;

		for (; reader; reader = reader->next) {
			if (!strcmp(reader->name, name))
				return reader;
		}
	}
	return NULL;
}
