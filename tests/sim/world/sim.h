/*
 * sim - runs the core on virtual time.
 *
 * The next thing to happen is always the earliest of: deadlines of the engine of a host, messages
 * to or from the coordinator, the simulator's own pending events (struct occurrence), and the next
 * command of the trace; at one instant in this order. After each the invariants are checked; the
 * first that fails ends the run.
 *
 * Without `fleet` there is one host, on a local source, and no coordinator.
 */
#ifndef RATEFS_SIM_SIM_H
#define RATEFS_SIM_SIM_H

#include "core/limiter/change.h"
#include "tests/sim/world/host.h"
#include "tests/sim/invariants/fleet_check.h"
#include "tests/sim/language/trace.h"
#include "tests/sim/books/truth.h"
#include "tests/sim/world/place.h"

struct last_answer;
struct retry;
struct sim;

/* Invariants, which hold whatever happens, by the number that is printed. */
enum invariant {
	INVARIANT_PIECE = 1, /* no piece of a limiter is used by two hosts */
	INVARIANT_RATE,	     /* over every window at most rate * w + burst is granted of a name */
	INVARIANT_USABLE,    /* when faults are over, capacity is granted again in time */
	INVARIANT_TRAFFIC,   /* hosts ask the coordinator so often at most */
	INVARIANT_USE,	     /* where readers wait, the rate is used */
	INVARIANT_FAIR,	     /* equal hosts get equal shares */
	INVARIANT_QUEUE,     /* readers are served in order, and no change or slot is lost */
	INVARIANT_ACCOUNT,   /* each token of a bucket is accounted for */
	INVARIANT_EMPTY,     /* memory returns to empty */
	INVARIANT_ORDER,     /* siblings get what their minima, classes and weights say */
	INVARIANT_FORECAST,  /* readers wait no longer than they were told */
	INVARIANT_QUOTA,     /* no more is granted than a service said is left */
};

/* Something that the simulator does at a later time. */
struct occurrence {
	struct heap_node node; /* first */
	struct host *host;     /* on which it happens: not while it is paused */
	unsigned int life;     /* of the host: it never happens in another */
	struct occurrence *next;
	void (*happens)(struct sim *sim, struct occurrence *occurrence);
	void (*dropped)(struct occurrence *occurrence); /* it never will: frees its owner */
};

enum happening { WAITS, GRANTED, LEFT, TUNED, CHARGED, RETURNED };

/* One line of the log that is printed when an invariant fails. */
struct log_entry {
	uint64_t at_ns;
	enum happening happening;
	const struct place *place;
	uint64_t number; /* of the reader */
	uint64_t tokens;
};

enum { LOG_LENGTH = 32, ANSWER_TEXT = 512 };

struct sim {
	struct host *hosts; /* owned */
	unsigned int host_count;
	bool fleet;
	uint32_t prefix_bytes;		      /* of PATH, before the path of each node */
	struct zookeeper zookeeper;	      /* if so */
	struct heap due;		      /* hosts, by when there must be a step */
	struct common *commons, *last_common; /* owned */
	struct truth *truths;		      /* owned */
	struct name *names;		      /* owned */
	struct clock fastest;		      /* as fast as any host's clock ever was */
	uint64_t now_ns;
	uint64_t disturbed_ns; /* until then something was wrong */
	uint64_t pause_ns;     /* since then hosts pause before they try to join, at most */
	uint64_t look_ns;      /* of calm.c, the next */
	uint64_t traffic_ns;   /* of calm.c, the beginning of the window for traffic */
	uint64_t window_ns;    /* of calm.c, its beginning; 0: there is none */
	uint64_t dues_ns;      /* of dues.c, likewise */
	uint64_t demand_ns;    /* demand changed, or the order among siblings */
	bool quiet;
	bool terse;		       /* grants are not printed */
	bool ending;		       /* the trace is over: readers leave */
	bool failed;		       /* an invariant did */
	bool stuck;		       /* something goes on for ever at one instant */
	bool missed;		       /* an expectation of the trace */
	bool expects;		       /* it expects something: with --quiet there is no summary */
	uint64_t counted[COUNT_KINDS]; /* by the coordinator, at the last `count` */

	struct last_answer *answers;	    /* owned */
	struct retry *retries, *last_retry; /* owned */
	struct heap pending;
	uint64_t asked;	   /* readings so far */
	uint64_t events;   /* of order.c */
	uint64_t news;	   /* of forecast.c */
	uint32_t threads;  /* that were interrupted */
	uint64_t arrivals; /* by loads */
	uint64_t workers;
	uint64_t records;
	uint64_t steps_now; /* steps at this instant */

	struct log_entry log[LOG_LENGTH];
	size_t logged;
};

/* Runs a whole trace, prints what happens. True unless an invariant failed or it goes nowhere. */
bool sim_run(struct sim *sim, const struct trace *trace);

/* Ends everything, prints the summary, frees all. True unless an invariant failed. */
bool sim_close(struct sim *sim);

void sim_open(struct sim *sim, const struct fleet_command *fleet, uint64_t seed, bool quiet);
void sim_later(struct sim *sim, struct host *host, struct occurrence *occurrence, uint64_t at_ns);

/* Prints `TIME [HOST] format`, unless quiet. @host may be NULL. */
void sim_print(const struct sim *sim, const struct host *host, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* @invariant is broken at @place (may be NULL): prints `invariant I1: ...` and what led to it. */
void sim_fail(struct sim *sim, enum invariant invariant, const struct place *place,
	      const char *why);

/* EAGAIN and so on; @err is negative. */
const char *sim_error_symbol(int err);

#endif
