/*
 * zookeeper - a simulated coordinator with ZooKeeper's guarantees, and ZooKeeper's traps.
 *
 * The servers keep one tree (znodes.h) to which all writes are made in one order. A session lives
 * while its host is heard of; closing it deletes all that is its own in one write. A host talks to
 * one server at a time, over a link (link.c) with two pipes. Each pipe keeps its order, and has a
 * latency with jitter. Faults:
 *
 *  - A server may lag: its answers, and the events it sends, are as of a while ago. A session
 *    never goes back in time: a server that knows less than the session saw turns it away.
 *  - A list may be torn: the server reads it while it writes, and so it has some of the changes of
 *    a transaction and lacks the others (torn.c).
 *  - A pipe that is cut holds what is in it until it is healed, or the connection is given up.
 *  - When a connection is given up, what is on its way may be lost, may arrive in time, or may
 *    arrive much later, when the host long has another connection.
 *  - A session ends when the servers say so: `hasty` ones end any session that they do not hear of
 *    at any moment, and zookeeper_expire() ends one that they do hear of. Safety does not rest on
 *    the session's timeout.
 *  - An ambush befalls a host at one point of a transaction: when it is sent, executed, or
 *    answered.
 *  - An election: no server answers; connections close, or are silent; a new epoch begins, in which
 *    sessions have their whole time again. The last writes may be lost in it (a broken disk).
 */
#ifndef RATEFS_SIM_ZOOKEEPER_H
#define RATEFS_SIM_ZOOKEEPER_H

#include "core/fleet/coordinator.h"
#include "tests/sim/invariants/calm_check.h"
#include "tests/sim/base/random.h"
#include "tests/sim/coordinator/znodes.h"

/* Sessions end at whole multiples of this, as a server's do. */
#define ZOOKEEPER_TICK_NS UINT64_C(1000000000)

/* So much of the past is kept: no server lags more. */
#define ZOOKEEPER_PAST_NS UINT64_C(10000000000)

#define ZOOKEEPER_LATENCY_NS UINT64_C(1000000)

/* Operations, by kind. */
enum count {
	COUNT_TRANSACTIONS,
	COUNT_REFUSED, /* transactions */
	COUNT_CHECKS,
	COUNT_SETS,
	COUNT_CREATES,
	COUNT_DELETES,
	COUNT_GETS,
	COUNT_LISTS,
	COUNT_EVENTS,
	COUNT_SESSIONS,
	COUNT_EXPIRED,
	COUNT_STRAYS,	/* transactions of connections that had been given up */
	COUNT_GIVEN_UP, /* connections, by hosts that waited in vain */
	COUNT_KINDS
};

/* How far, how unsteady; and how much farther for answers. */
struct latency {
	uint64_t delay_ns;
	uint64_t jitter_ns;
	uint64_t answers_ns;
};

/* An ambush waits for a host at a point of a transaction of a kind, and does a deed. */
enum ambush_point { AMBUSH_SENDS, AMBUSH_COMMITS, AMBUSH_HEARS };
enum ambush_what {
	AMBUSH_ANY,
	AMBUSH_TAKE,
	AMBUSH_GIVE,
	AMBUSH_CHANGE,
	AMBUSH_CLAIM,
	AMBUSH_KEY,  /* makes or deletes what is leased or claimed of a key */
	AMBUSH_LIST, /* no transaction: a look for what is free, or is claimed */
};
enum ambush_deed {
	AMBUSH_CUT,
	AMBUSH_CUT_ANSWERS,
	AMBUSH_EXPIRE,
	AMBUSH_STRIKE, /* cut, and the session expires at once */
	AMBUSH_KILL,   /* the process */
	AMBUSH_PAUSE,
	AMBUSH_LOSE,   /* cut, and an election loses the last writes */
	AMBUSH_ORPHAN, /* the session expires, and the server of its host does not know */
	AMBUSH_ELECT,  /* servers elect, and lose nothing */
};

enum { AMBUSH_LOSES = 3 }; /* writes */
#define AMBUSH_ELECTS_NS UINT64_C(300000000)

struct ambush {
	bool armed;
	enum ambush_point point;
	enum ambush_what what;
	enum ambush_deed deed;
};

struct zookeeper {
	struct znodes znodes;
	struct random random;
	struct heap moments;
	uint64_t now_ns;
	uint64_t epoch;
	uint64_t counter;
	uint64_t last_session;
	bool electing;
	struct moment elected;
	uint32_t lose;		  /* commits, at the next election */
	struct session *sessions; /* owned */
	struct link *links;	  /* all of them */
	struct latency latency;	  /* of links to be made */
	uint64_t lag_ns;	  /* the most that a server lags */
	bool hasty;		  /* a session that is not heard of ends at any moment */
	bool torn;		  /* lists may be */
	/* No write is allowed to paths that begin so; "": all is allowed. */
	char denied[NODE_PATH_MAX];
	/* Told of each commit when it was made; of NULL when some were lost. May be NULL. */
	void (*observe)(struct zookeeper *zookeeper, const struct commit *commit);
	uint64_t counts[COUNT_KINDS];
};

/* Whom a link tells what comes; never from within a call of it. */
struct client {
	void (*connected)(struct client *client, uint64_t session);
	void (*disconnected)(struct client *client);
	void (*expired)(struct client *client);
	void (*changed)(struct client *client, const char *path);
	void (*answered)(struct client *client, struct request *request);
	void (*clocks)(struct client *client, struct clocks *clocks);
	/* The process is to be killed or paused: at the end of its @step, or now. */
	void (*ambushed)(struct client *client, enum ambush_deed deed, bool step);
};

enum link_state { LINK_CLOSED, LINK_CONNECTING, LINK_CONNECTED };

/* A host's way to the servers, with its client library. */
struct link {
	struct coordinator coordinator; /* first */
	struct zookeeper *zookeeper;
	struct link *next;
	struct client *client; /* borrowed */
	struct memory *memory; /* the host's: its answers are its own; may be NULL */
	struct latency latency;
	enum link_state state;
	uint64_t timeout_ns;
	uint64_t seen_ns; /* its session saw what was at this time */
	bool cut_up, cut_down;
	bool paused;
	uint64_t paused_ns;
	bool dead;		      /* its host is gone */
	struct session *session;      /* NULL: to be opened */
	struct traffic sent;	      /* requests, ever */
	struct session *last_session; /* also when the library has forgotten it */
	struct ambush ambush;
	struct moment springs;
	struct connection *connection;	    /* current, NULL */
	struct connection *connections;	    /* all of them, those that were given up too */
	struct watch *watches;		    /* that await another connection */
	struct message *local, *last_local; /* messages of the library itself */
	struct moment saying;
	struct moment attempt;
	struct moment silence; /* when it notices that no server answers */
	unsigned int attempts; /* since it was connected last */
	unsigned int tries;    /* of those, that reached a server */
};

void zookeeper_open(struct zookeeper *zookeeper, uint64_t seed);
void zookeeper_close(struct zookeeper *zookeeper);

/* When something happens next, or NEVER_NS; makes happen what is due. */
uint64_t zookeeper_next_ns(const struct zookeeper *zookeeper);
void zookeeper_run(struct zookeeper *zookeeper, uint64_t now_ns);
/* The first of them alone, at zookeeper->now_ns. */
void zookeeper_run_one(struct zookeeper *zookeeper);

/* The servers answer no host for @for_ns, and then begin a new epoch. */
void zookeeper_elect(struct zookeeper *zookeeper, uint64_t for_ns);

/* Servers lag @most_ns at most from now on; those that lag more catch up. */
void zookeeper_lag(struct zookeeper *zookeeper, uint64_t most_ns);

/* The next election will lose the last @commits writes. */
void zookeeper_lose(struct zookeeper *zookeeper, uint32_t commits);

/* An operator's transaction, executed at once. */
enum answer zookeeper_operate(struct zookeeper *zookeeper, enum operation_kind kind,
			      const char *path, const char *data);

struct link *link_new(struct zookeeper *zookeeper, struct client *client);

/* Its pipes, or the one of answers alone. */
void link_cut(struct link *link, bool answers_only);
void link_cut_requests(struct link *link);
void link_heal(struct link *link);

/* Its process is stopped, and goes on. */
void link_pause(struct link *link);
void link_resume(struct link *link);

/* Its process is gone, with all its memory; messages on their way to the servers may arrive. */
void link_kill(struct link *link);

/* The servers end its session now, whether it was heard of or not. */
void zookeeper_expire(struct link *link);

/*
 * Likewise, and its server is cut off from the others: the host hears what is on its way, and
 * nothing more.
 */
void zookeeper_orphan(struct link *link);

/* @ambush waits for its host, until it came to pass or ambush.armed is cleared. */
void ambush_set(struct link *link, const struct ambush *ambush);

/* Whether the library holds no request. */
bool link_is_idle(const struct link *link);

#endif
