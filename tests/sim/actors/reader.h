/* reader - programs that read token files, see reader.c. */
#ifndef RATEFS_SIM_READER_H
#define RATEFS_SIM_READER_H

#include "tests/sim/world/sim.h"

/* The absence of a reader that was interrupted, see absence.c. */
struct absence {
	struct occurrence back;
	uint64_t left_ns;   /* by its host's clock; 0: it is not away */
	uint64_t number;    /* of its asking */
	uint64_t within_ns; /* that it asked for */
	uint32_t thread;    /* 0: it was never away */
};

/* The answer to `eta` at the time of an asking, see forecast.c. */
struct forecast {
	uint64_t eta_ns;
	uint64_t within_ns; /* that it asked for */
	uint64_t news;	    /* until it waited; more since make it void */
	bool full;	    /* as many readers as may waited already */
	bool is_known;
	bool is_bound; /* @eta_ns is a bound, no estimate */
};

/* A grant that is on its way to its reader while the process is stopped, see reader.c. */
struct delivery {
	struct occurrence arrives;
	uint64_t right_until_ns; /* its host's clock: end of the right of then; NEVER_NS: none */
	uint64_t use_until_ns;	 /* fleet_use_until_ns() of then */
};

/* A reader. */
struct reader {
	struct waiter waiter; /* first: the engine's */
	struct expiry expiry;
	struct reader_check check;
	struct absence absence;
	struct delivery delivery;
	struct forecast forecast;
	enum read_manner manner;
	struct reader *next, *previous; /* all waiters of its host */
	struct place *place;
	char *name;		/* owned */
	uint64_t since_ns;	/* it waits */
	int refusal;		/* its answer when its time is up */
	bool inside;		/* has its key open */
	bool asks_again;	/* as soon as it was served, or has worked */
	bool answered_ok;	/* the outcome told by the services behind its limiter */
	uint64_t answer_ns;	/* and how long that takes */
	uint64_t tokens, most;	/* that it asks for */
	struct amounts amounts; /* of units, beside them */
	uint64_t granted;	/* at last */
	/* Called when it was answered and told; NULL: it is freed. */
	void (*done)(struct sim *sim, struct reader *reader, int err);
};

/* Returns the amounts of units that @reader asks for; NULL: none. */
static inline const struct amounts *reader_amounts(const struct reader *reader)
{
	return reader->amounts.count ? &reader->amounts : NULL;
}

struct reader *reader_new(struct sim *sim, struct place *place, char *name, size_t size);
/* It opens what it reads; 0 or -errno. It closes that. */
int reader_enter(struct reader *reader);
void reader_leave(struct reader *reader);
void reader_free(struct reader *reader);
void reader_ask(struct sim *sim, struct reader *reader, uint64_t tokens, uint64_t most,
		uint64_t within_ns);
void reader_try(struct sim *sim, struct reader *reader);
void reader_done(struct sim *sim, struct reader *reader, int err);
void reader_line_up(struct reader *reader);
void reader_leave_line(struct reader *reader);
void reader_cancel(struct sim *sim, struct reader *reader);
/* It is interrupted, and asks again after @away_ns. */
void reader_interrupt(struct sim *sim, struct reader *reader, uint64_t away_ns);
/* It goes with the process that it asked. */
void reader_vanish(struct sim *sim, struct reader *reader);
struct reader *reader_named(const struct sim *sim, const char *name);

/*
 * absence.c: a reader, out of its queue, is away; or is back, has asked for at most @within_ns, and
 * has its place again or not (@does).
 */
void absence_begin(struct sim *sim, struct reader *reader, uint64_t away_ns);
void absence_end(struct sim *sim, struct reader *reader, uint64_t within_ns, bool does);
/* Fills in @asker for a reader that was interrupted; false: it was not. */
bool absence_asker(const struct reader *reader, struct asker *asker);

#endif
