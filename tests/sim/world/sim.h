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
#include "tests/sim/invariants/account_check.h"
#include "tests/sim/invariants/fleet_check.h"
#include "tests/sim/invariants/queue_check.h"
#include "tests/sim/language/trace.h"
#include "tests/sim/books/truth.h"
#include "tests/sim/base/windows.h"

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

/* A limiter or a partition, from its making to the end of the run, with the books kept on it. */
struct place {
	struct place *next; /* of its host, in order of making */
	struct host *host;
	struct common
		*common; /* in a fleet: in a fleet: the limiter as all hosts know it; or NULL */
	struct place *parent;
	struct place *top;	 /* the one below the root that it is in; itself there */
	struct limiter *limiter; /* held; NULL once it is removed */
	char *path;		 /* owned */
	struct settings settings;
	uint32_t partition;	 /* 1 + its index, or 0 */
	bool is_key;		 /* @limiter is there while somebody reads it */
	bool is_counted;	 /* a key of a load, told with the others */
	uint32_t readers;	 /* of a key */
	struct service *service; /* owned, or NULL */

	uint64_t granted;
	struct windows windows;
	struct rate_check rate;
	struct queue_check queue;
	struct account_check accounts[LIMITS_MAX];
	bool followed;		       /* a partition that was tuned in this step */
	uint64_t shadowing;	       /* tokens granted in shadow in this step */
	uint64_t shadowed;	       /* the counter, before */
	struct reader_check *oldest;   /* of a top: the oldest reader in it */
	const struct place *oldest_at; /* and where it waits */

	/* Slots that may be open: now, and over time since `slots` was last asked. */
	uint32_t slots;
	double slots_sum;
	uint64_t slots_ns, slots_since_ns;

	/* In a fleet. */
	uint64_t granted_before; /* when the window of calm.c began, and */
	bool waits, looked_at;	 /* in the last look of calm.c */
	uint64_t most_tokens;	 /* of a top: that a reader waits for in it, then */
	bool always_waits;	 /* since then a reader has waited here */
	bool uses_keys;		 /* since then it has had keys with a rate each */
	uint32_t usable;	 /* partitions, after the last step */
	bool exempt;		 /* it keeps no rate by leases: see common_exempts() */
	uint64_t largest;	 /* take of this host since @largest_since */
	uint64_t largest_since;
};

/* The absence of a reader that was interrupted, see absence.c. */
struct absence {
	struct occurrence back;
	uint64_t left_ns;   /* by its host's clock; 0: it is not away */
	uint64_t number;    /* of its asking */
	uint64_t within_ns; /* that it asked for */
	uint32_t thread;    /* 0: it was never away */
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
	enum read_manner manner;
	struct reader *next, *previous; /* all who wait on its host */
	struct place *place;
	char *name;	    /* owned */
	uint64_t since_ns;  /* it waits */
	int refusal;	    /* its answer when its time is up */
	bool inside;	    /* has its key open */
	bool answered_ok;   /* the outcome told by the services behind its limiter */
	uint64_t answer_ns; /* and how long that takes */
	uint64_t tokens;
	/* Called when it was answered and told; NULL: it is freed. */
	void (*done)(struct sim *sim, struct reader *reader, int err);
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

enum { LOG_LENGTH = 32 };

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
	uint64_t look_ns;      /* of calm.c, the next */
	uint64_t traffic_ns;   /* of calm.c, the beginning of the window for traffic */
	uint64_t window_ns;    /* of calm.c, its beginning; 0: there is none */
	bool quiet;
	bool terse;		       /* grants are not printed */
	bool ending;		       /* the trace is over: readers leave */
	bool failed;		       /* an invariant did */
	bool stuck;		       /* something goes on for ever at one instant */
	bool missed;		       /* an expectation of the trace */
	bool expects;		       /* it expects something: with --quiet there is no summary */
	uint64_t counted[COUNT_KINDS]; /* by the coordinator, at the last `count` */

	struct retry *retries, *last_retry; /* owned */
	struct heap pending;
	uint64_t asked;	   /* readings so far */
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

/* summary.c */
void summary_print(const struct sim *sim);
const char *summary_count_name(int kind);

/* place.c: a limiter by its path, NULL; one of its partitions, NULL if there is none. */
struct place *place_at(const struct host *host, const char *path);
struct place *place_partition(struct place *place, uint32_t index);
/* Its limiter may have been renamed, with all that is in it. */
void place_follow_name(struct place *place);
struct place *place_add(struct host *host, struct place *parent, struct limiter *limiter,
			const char *path);
/* Limiters that have come get places; those that have gone lose theirs. Of a fleet. */
void place_follow(struct host *host);
void place_forget_removed(struct host *host);
void place_forget_all(struct host *host);
void place_free(struct place *place);
struct service *place_service(const struct place *place);

/*
 * key.c: a key of a limiter as a place, NULL if there is none. It is opened for each reader, as by
 * open(2), and closed when it leaves; key_enter() returns 0 or -errno.
 */
struct place *key_of(struct place *place, const char *key);
int key_enter(struct place *place);
void key_leave(struct place *place);
void key_follow(struct place *key, uint64_t now_ns);

/* ledger.c: keeps the books. */
void ledger_waits(struct sim *sim, struct reader *reader);
void ledger_granted(struct sim *sim, struct reader *reader);
void ledger_left(struct sim *sim, struct reader *reader);
void ledger_tuning(struct sim *sim, struct place *place);
void ledger_tuned(struct sim *sim, struct place *place);
void ledger_charged(struct sim *sim, struct place *place, int64_t tokens);
void ledger_check(struct host *host);

/* reader.c */
struct reader *reader_new(struct sim *sim, struct place *place, char *name, size_t size);
/* It opens what it reads; 0 or -errno. It closes that. */
int reader_enter(struct reader *reader);
void reader_leave(struct reader *reader);
void reader_free(struct reader *reader);
void reader_ask(struct sim *sim, struct reader *reader, uint64_t tokens, uint64_t within_ns);
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

/* polling.c: a program that polls a token file begins. */
void polling_start(struct sim *sim, struct place *place, const struct command *command);
struct polling *polling_named(const struct sim *sim, const char *name);
struct host *polling_host(const struct polling *polling);
/* Ends it; it closes its file. */
void polling_end(struct sim *sim, struct polling *polling);
/* The next of those that poll on @host, after @reader (NULL: the first); NULL: there is none. */
const struct reader *polling_after(const struct host *host, const struct reader *reader);
/* Its waiter was answered. */
void polling_answered(struct sim *sim, struct waiter *waiter);
/* All of a host go with its process. */
void polling_vanish(struct host *host);

/* act.c: runs a command. */
void act(struct sim *sim, const struct command *command);

/* Refuses: `error LINE ERRNO sentence`. */
void act_refused(struct sim *sim, const struct host *host, unsigned int line, int err,
		 const char *sentence);

/*
 * writing.c: changes of limiters. Without a fleet one is done or refused at once: its outcome is
 * returned. In one it takes its time, -EINPROGRESS.
 */
int writing_begin(struct host *host, const struct change *change, const struct command *command);
/* Those that are done. */
void writing_collect(struct host *host);
/* All that are under way go with their host. */
void writing_vanish(struct host *host);

/* calm.c: judges what happens while nothing is wrong. */
void calm_look(struct sim *sim);

/* act_fleet.c: commands that concern hosts, links and the coordinator. */
void act_fleet(struct sim *sim, const struct command *command);

/* slot.c */
void slot_open(struct sim *sim, struct place *place, const char *name);
void slot_ask(struct sim *sim, struct reader *reader);
/* Finds an opener that holds a slot, and is no worker; NULL: there is none of that name. */
struct opener *slot_named(const struct sim *sim, const char *name);
struct host *slot_host(const struct opener *opener);
/* @opener closes its slot, and is freed. */
void slot_close(struct sim *sim, struct opener *opener);
void slot_worker(struct sim *sim, struct place *place, char *name, const struct command *command);
/* An opener that waited for a slot, or did not have to. */
void slot_done(struct sim *sim, struct reader *reader, int err);
/* All who hold one close it; or go with their host. */
void slots_close_all(struct host *host);
void slots_vanish(struct host *host);
void slots_check(struct host *host);
/* `slots PATH`: the mean number since it was last asked. */
void slots_print(struct sim *sim, struct place *place, const struct command *command);

/* load.c */
void load_start(struct sim *sim, struct place *place, const struct command *command);
void load_workers(struct sim *sim, struct place *place, const struct command *command);
void load_stream(struct sim *sim, struct place *place, const char *name);

extern const char NO_SERVICE[];

/* outcome.c */
void outcome_write(struct sim *sim, struct place *place, const struct command *command);
/*
 * Calls the services behind @reader's limiter for what it was granted; how long the answer takes.
 */
uint64_t outcome_of_call(struct sim *sim, struct reader *reader);

/* service.c */
void service_set(struct sim *sim, struct place *place, const struct command *command);
bool service_call(struct service *service, uint64_t tokens, uint64_t now_ns);
uint64_t service_latency_ns(const struct service *service);
/* Returns @field of the answers since it was last counted, see expect.h. NAN: it has none such. */
double service_measure(const struct service *service, const char *field, uint64_t now_ns);
void service_count(struct service *service, uint64_t now_ns);
/* Tells it, and counts anew. */
void service_tally(struct sim *sim, struct place *place, const struct command *command);
/* A call by one who holds a slot: how long the answer takes. service_leave() when it is there. */
uint64_t service_work(struct service *service, uint64_t now_ns, bool *ok);
void service_leave(struct service *service);
void service_print(const struct service *service, const char *path);
void retry_start(struct sim *sim, struct place *place, const struct command *command);
void retry_print(const struct sim *sim);
void retry_free(struct sim *sim);

#endif
