/*
 * polling - programs that poll token files and read with O_NONBLOCK, see polling.h.
 *
 * `poll PATH/FILE as NAME [after DURATION]`: opens the file and polls it until a read can be
 * answered, and reads that time later (0: at once) by its host's clock. If the read is not answered
 * it polls again. With `stream` it begins anew after each token. A program that is called and reads
 * within POLLER_NS must have its tokens; a later one must not.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/polling.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/books/answers.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct polling {
	struct reader reader; /* first; of it the engine knows nothing */
	struct poller poller;
	struct occurrence read;
	struct polling *next, *previous; /* on its host */
	uint64_t after_ns;
	uint64_t called_ns; /* by its host's clock */
	bool called;	    /* since then; and its tokens neither read nor returned */
	bool again;	    /* after each token */
	bool is_noted;	    /* its grant is in the books */
	bool reads_later;   /* @read is under way */
	bool gone;	    /* it is freed when that happens, or is dropped */
};

static struct polling *polling_of(struct occurrence *occurrence)
{
	return (struct polling *)((char *)occurrence - offsetof(struct polling, read));
}

static void leave_line(struct polling *polling)
{
	struct host *host = polling->reader.place->host;

	if (polling->previous)
		polling->previous->next = polling->next;
	else
		host->pollings = polling->next;
	if (polling->next)
		polling->next->previous = polling->previous;
}

static void line_up(struct polling *polling)
{
	struct host *host = polling->reader.place->host;

	polling->next = host->pollings;
	if (polling->next)
		polling->next->previous = polling;
	host->pollings = polling;
}

const struct reader *polling_after(const struct host *host, const struct reader *reader)
{
	const struct polling *polling = reader ? ((const struct polling *)reader)->next
					       : host->pollings;

	return polling ? &polling->reader : NULL;
}

static void vanish(struct polling *polling)
{
	leave_line(polling);
	polling->gone = true;
	if (!polling->reads_later)
		reader_free(&polling->reader);
}

/* Closes the file of @polling. Tokens of a removed limiter are still kept for it. */
static void finish(struct polling *polling)
{
	struct host *host = polling->reader.place->host;
	struct memory *before = host_enter(host);

	engine_unpoll(&host->engine, &polling->poller, host_now(host));
	if (!polling->reader.place->is_key)
		limiter_drop(polling->poller.waiter.limiter);
	host_leave(before);
	reader_leave(&polling->reader);
	vanish(polling);
}

/* The tokens that were kept went back. */
static void note_return(struct sim *sim, struct polling *polling)
{
	struct place *place = polling->reader.place;

	polling->called = false;
	if (!polling->poller.waiter.limiter->removed)
		ledger_charged(sim, place,
			       &(struct charge){.tokens = -(int64_t)polling->reader.granted,
						.returned = polling->reader.amounts});
	if (!sim->ending)
		answers_tell(sim, place->host, polling->reader.name, "returned", "");
}

void polling_end(struct sim *sim, struct polling *polling)
{
	struct host *host = polling->reader.place->host;
	struct memory *before = host_enter(host);

	engine_unpoll(&host->engine, &polling->poller, host_now(host));
	host_leave(before);
	if (polling->called)
		note_return(sim, polling);
	if (polling->reader.check.state == READER_WAITS)
		ledger_left(sim, &polling->reader);
	if (!sim->ending)
		answers_tell(sim, host, polling->reader.name, "cancelled", "");
	finish(polling);
	host_collect(host);
}

static void read_later(struct sim *sim, struct polling *polling)
{
	polling->reads_later = true;
	sim_later(sim, polling->reader.place->host, &polling->read,
		  sim->now_ns + polling->after_ns);
}

static void begin(struct sim *sim, struct polling *polling)
{
	polling->reader.check = (struct reader_check){.number = ++sim->asked,
						      .tokens = polling->reader.tokens};
}

static void poll_tokens(struct sim *sim, struct polling *polling)
{
	struct host *host = polling->reader.place->host;
	struct memory *before = host_enter(host);

	begin(sim, polling);
	(void)engine_poll(&host->engine, &polling->poller, host_now(host));
	host_leave(before);
	if (polling->poller.state == POLLER_AWAY) {
		read_later(sim, polling);
		return;
	}
	/* A poller that was called at once is collected after readers that were granted then. */
	polling->is_noted = polling->poller.state == POLLER_CALLED;
	polling->reader.granted = polling->poller.waiter.granted;
	if (polling->is_noted)
		ledger_granted(sim, &polling->reader);
	else
		ledger_waits(sim, &polling->reader);
	host_collect(host);
}

static void granted(struct sim *sim, struct polling *polling)
{
	struct reader *reader = &polling->reader;

	answers_grant(sim, reader->place->host, reader->name, reader->granted);
	if (polling->again)
		poll_tokens(sim, polling);
	else
		finish(polling);
}

/* Judges whether the tokens of @polling, which was called, had to be kept until now. */
static void check_kept(struct sim *sim, const struct polling *polling, bool kept)
{
	const struct host *host = polling->reader.place->host;
	bool should = host_now(host) - polling->called_ns < POLLER_NS;

	if (kept != should && !polling->poller.waiter.limiter->removed)
		sim_fail(sim, INVARIANT_QUEUE, polling->reader.place,
			 kept ? "tokens were kept for a poller that came late"
			      : "a poller that came in time does not have its tokens");
}

/*
 * Reads the tokens that are kept, or tokens that can be had at once. Where a read would wait a
 * little the program is interrupted: it polls instead.
 */
static int read_at_once(struct polling *polling, bool *kept)
{
	struct host *host = polling->reader.place->host;
	struct token_read read = {
		.limiter = polling->poller.waiter.limiter,
		.tokens = polling->reader.tokens,
		.most = polling->reader.most,
		.amounts = reader_amounts(&polling->reader),
		.manner = READ_NONBLOCKING,
		.within_ns = NEVER_NS,
		.poller = &polling->poller,
	};
	struct memory *before = host_enter(host);
	struct read_wait wait;
	int err;

	*kept = polling->poller.state == POLLER_CALLED;
	err = engine_read(&host->engine, &read, &wait, host_now(host));
	*kept = *kept && !err && polling->poller.state == POLLER_AWAY;
	if (*kept && wait.waiter.granted != polling->reader.granted)
		sim_fail(host->sim, INVARIANT_QUEUE, polling->reader.place,
			 "a poller has not the tokens that were kept for it");
	if (!err)
		polling->reader.granted = wait.waiter.granted;
	if (err == -EINPROGRESS)
		engine_give_up(&host->engine, &wait.waiter);
	host_leave(before);
	return err == -EINPROGRESS ? -EAGAIN : err;
}

static void read_now(struct sim *sim, struct occurrence *occurrence)
{
	struct polling *polling = polling_of(occurrence);
	struct host *host = polling->reader.place->host;
	bool kept;
	int err;

	polling->reads_later = false;
	if (polling->gone) {
		reader_free(&polling->reader);
		return;
	}
	/* Tokens granted until now were granted before it read. */
	host_step(host);
	err = read_at_once(polling, &kept);
	if (kept || polling->called)
		check_kept(sim, polling, kept);
	polling->called = false;
	if (kept) {
		granted(sim, polling);
	} else if (err == -EAGAIN) {
		poll_tokens(sim, polling);
	} else if (err) {
		answers_refuse(sim, host, polling->reader.name, err);
		finish(polling);
	} else {
		begin(sim, polling);
		ledger_granted(sim, &polling->reader);
		granted(sim, polling);
	}
}

static void drop(struct occurrence *occurrence)
{
	struct polling *polling = polling_of(occurrence);

	polling->reads_later = false;
	if (polling->gone)
		reader_free(&polling->reader);
}

void polling_start(struct sim *sim, struct place *place, const struct command *command)
{
	struct polling *polling = memory_get(sizeof(*polling));
	const struct file *file = &command->file;
	struct reader *reader = &polling->reader;
	int err;

	reader->place = place;
	reader->name = memory_text(command->text, strlen(command->text));
	reader->tokens = file->kind == FILE_TAKE ? file->tokens : 1;
	reader->most = file->kind == FILE_TAKE ? file->most : 1;
	reader->amounts = file->amounts;
	polling->after_ns = command->span_ns;
	polling->again = file->kind == FILE_STREAM;
	polling->read = (struct occurrence){.happens = read_now, .dropped = drop};
	err = reader_enter(reader);
	if (err) {
		answers_refuse(sim, place->host, reader->name, err);
		reader_free(reader);
		return;
	}
	/* A key is there while it is open. */
	if (!place->is_key)
		limiter_hold(place->limiter);
	poller_init(&polling->poller, place->limiter, reader->tokens, reader->most,
		    reader_amounts(reader));
	line_up(polling);
	poll_tokens(sim, polling);
}

void polling_answered(struct sim *sim, struct waiter *waiter)
{
	struct polling *polling =
		(struct polling *)((char *)poller_of(waiter) - offsetof(struct polling, poller));

	if (waiter->outcome == -ETIMEDOUT) {
		check_kept(sim, polling, false);
		note_return(sim, polling);
		return;
	}
	if (waiter->outcome) {
		ledger_left(sim, &polling->reader);
		answers_refuse(sim, polling->reader.place->host, polling->reader.name,
			       waiter->outcome);
		finish(polling);
		return;
	}
	polling->reader.granted = waiter->granted;
	if (!polling->is_noted)
		ledger_granted(sim, &polling->reader);
	polling->called = true;
	polling->called_ns = polling->poller.until_ns - POLLER_NS;
	read_later(sim, polling);
}

void polling_vanish(struct host *host)
{
	while (host->pollings) {
		struct polling *polling = host->pollings;

		if (polling->reader.check.state == READER_WAITS)
			ledger_left(host->sim, &polling->reader);
		if (polling->reader.inside)
			polling->reader.place->readers--;
		vanish(polling);
	}
}

struct polling *polling_named(const struct sim *sim, const char *name)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (struct polling *p = sim->hosts[i].pollings; p; p = p->next) {
			if (!strcmp(p->reader.name, name))
				return p;
		}
	}
	return NULL;
}

struct host *polling_host(const struct polling *polling)
{
	return polling->reader.place->host;
}
