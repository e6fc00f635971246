/*
 * engine - THE entry: one step per event, and the time of the next one.
 *
 * Every function is one step. It gets the time (ns of a clock that does not go back), first serves
 * the waiters that were due until then, each at the time at which it was due, and then does its
 * work. Its results wait for the caller in two lists, to be collected before the next step:
 * engine_done() waiters, engine_changed() changes.
 *
 * A daemon that was held up serves late readers as of the time they were due, so being woken late
 * costs no capacity. It looks back at most ENGINE_CATCH_UP_NS: a daemon that was stopped for long
 * does not grant at once all the tokens of that time.
 *
 * The engine has no threads: callers hold one lock around each step and its collection.
 */
#ifndef RATEFS_CORE_ENGINE_H
#define RATEFS_CORE_ENGINE_H

#include "core/base/lanes.h"
#include "core/limiter/keys.h"
#include "core/limiter/limiter.h"
#include "core/limiter/parking.h"
#include "core/limiter/slots.h"
#include "core/limiter/source.h"
#include "core/limiter/tree.h"
#include "core/limiter/users.h"

#define ENGINE_CATCH_UP_NS UINT64_C(10000000)

/* The longest that a read which would not wait waits while partitions are looked for (fleets). */
#define ENGINE_PATIENCE_NS UINT64_C(500000000)

/* Limits at the door: -ENOSPC. */
enum {
	ENGINE_LIMITERS_MAX = 1000000,
	ENGINE_WAITERS_MAX = 1000000,
};

/* The manners in which a read meets a limiter that has no tokens for it now. */
enum read_manner {
	READ_BLOCKING,	  /* it waits, as long as it may */
	READ_TRYING,	  /* of `try`: it is refused */
	READ_NONBLOCKING, /* with O_NONBLOCK: its program polls, and reads again */
};

/* A read of an open file that gives tokens: token, try, take/N, take/A-B or stream. */
struct token_read {
	struct limiter *limiter;
	uint64_t tokens; /* 0 to TOKENS_MAX */
	uint64_t most;	 /* as many as are there, up to this, if that is more: up to TOKENS_MAX */
	const struct amounts *amounts; /* of units, beside them; while it waits, too; or NULL */
	enum read_manner manner;
	bool again;	       /* a predecessor let it wait: queue_max and wait_max do not count */
	uint64_t within_ns;    /* so long it waits at most; NEVER_NS: as long as it takes */
	struct poller *poller; /* of the open file; NULL: it was never polled */
	const struct asker *asker; /* the reader, which may have been interrupted; or NULL */
};

/* How a read waits that cannot be answered yet. */
struct read_wait {
	struct waiter
		waiter; /* for engine_ask(), once the caller has copied it to memory that stays */
	uint64_t within_ns; /* for engine_ask(): unless it is NEVER_NS the waiter needs an expiry */
	int refusal;	    /* -errno that the reader gets when that time is up */
};

struct change;
struct owner;

struct engine {
	struct schedule schedule;
	struct tree tree;
	struct users users;
	struct source *source; /* borrowed */
	struct lanes line;     /* changes that wait for their turn, see change.h */
	struct change *change; /* the one whose turn it is, or NULL */
	struct list changed;   /* done, for the caller to collect, in order */
	bool storing;	       /* inside source->store() */
	/*
	 * SETTING_QUEUE_MAX or SETTING_WAIT_MAX, if that refused in the last step: then -EBUSY;
	 * SETTING_COUNT otherwise.
	 */
	enum setting_id refused_by;
	uint64_t began_ns;
	uint64_t thaw_ns; /* frozen: when grants go on at the latest; NEVER_NS: no thaw yet */
	uint32_t waiting; /* readers, in all limiters */
};

/* Makes an engine with a root that @root owns. 0 or -ENOMEM. */
int engine_init(struct engine *engine, struct source *source, const struct owner *root,
		uint64_t now_ns);

/* Frees everything. No waiter may be left, and no change be under way. */
void engine_free(struct engine *engine);

/* Returns the time at which engine_run() must be called next, or NEVER_NS. */
uint64_t engine_next_ns(const struct engine *engine);

/* Serves all waiters that are due. */
void engine_run(struct engine *engine, uint64_t now_ns);

/*
 * Takes the tokens of @read, or tells that it waits, or refuses it.
 *
 * 0: wait->waiter.granted of them are the caller's. -EINPROGRESS: it waits, as @wait says, with
 * engine_ask(); or it gives up, with engine_give_up(). Refusals: -EBUSY, counted: of `try`, of a
 * reader that cannot have its tokens in the time it allows, or whose poll has waited that long, or
 * as engine->refused_by says. -EAGAIN, counted: of READ_NONBLOCKING; a poll tells when to read
 * again. -EINVAL: of READ_NONBLOCKING, which can never have so many at once (limiter_can_hold());
 * or of any that can never have so many (limiter_can_ever()), unless it has had its place before.
 * -ENODEV: the limiter is gone.
 *
 * A read that would not wait waits all the same, a little, while partitions are looked for that
 * would bring more.
 */
int engine_read(struct engine *engine, const struct token_read *read, struct read_wait *wait,
		uint64_t now_ns);

/*
 * Asks for waiter->tokens to waiter->most (up to TOKENS_MAX) of waiter->limiter.
 *
 * 0: waiter->granted of them are granted. -EINPROGRESS: it waits, and engine_done() will return it
 * with its outcome. -EAGAIN: the waiter has an expiry and the tokens cannot be had in @within_ns
 * (which counts for such waiters only). -EBUSY: engine->refused_by. -ENODEV: the limiter is gone.
 * -ENOSPC: too many wait. The time of a waiter with a place counts from its first asking.
 */
int engine_ask(struct engine *engine, struct waiter *waiter, uint64_t within_ns, uint64_t now_ns);

/*
 * Tells whether a read by @poller is answered now: its tokens are kept for it or could be had, or
 * never at once (limiter_can_hold()) or in time, or the limiter is removed. If not, the poller has
 * a place in the queue from now on, and engine_done() returns its waiter when it is to poll again:
 * with outcome 0 it is called, see poller.h. Then it returns the waiter once more, with -ETIMEDOUT,
 * if the tokens go back.
 */
bool engine_poll(struct engine *engine, struct poller *poller, uint64_t now_ns);

/* Ends the place of @poller, if it has one; its memory is the caller's again. */
void engine_unpoll(struct engine *engine, struct poller *poller, uint64_t now_ns);

/*
 * Asks for waiter->slot of waiter->limiter. 0: it is open. -EINPROGRESS: it waits, and
 * engine_done() will return it with its outcome. -EAGAIN, counted as refused, there or here: the
 * waiter has an expiry and there was no slot for it in @within_ns (which counts for such waiters
 * only). It waits for ENGINE_PATIENCE_NS, if that is longer, while leases are looked for or the
 * engine is frozen. -EBUSY: queue_max refuses an opener that would wait. -ENODEV, -ENOSPC,
 * -ENOMEM. The time of a waiter with a place counts from its first asking.
 */
int engine_slot_open(struct engine *engine, struct waiter *waiter, uint64_t within_ns,
		     uint64_t now_ns);

/* Opens @slot now (0), or not: -EAGAIN, counted as refused; -ENODEV, -ENOMEM. */
int engine_slot_try(struct engine *engine, struct limiter *limiter, struct slot *slot,
		    uint64_t now_ns);

/* Closes an open slot; not @used: it never reached its opener. */
void engine_slot_close(struct engine *engine, struct slot *slot, bool used, uint64_t now_ns);

/* Stops all grants: waiters are to be cancelled. */
void engine_stop(struct engine *engine);

/*
 * Freezes: nothing is granted, and waiters keep their places, also those that are interrupted and
 * pollers that are called. Only the times that waiters allow go on. engine_thaw() ends that: from
 * then on engine_go_on(), after each step, has grants go on as soon as no place is parked any more,
 * or PARKING_NS later. So waiters that all ask again, in any order, are served in their old one.
 */
void engine_freeze(struct engine *engine);
void engine_thaw(struct engine *engine, uint64_t now_ns);
void engine_go_on(struct engine *engine, uint64_t now_ns);

/* Tells whether engine_go_on() may have something to do. */
static inline bool engine_is_thawing(const struct engine *engine)
{
	return engine->schedule.frozen && engine->thaw_ns != NEVER_NS;
}

/*
 * Has @waiter, which still waits (its outcome is -EINPROGRESS), leave; it is the caller's again. As
 * of the last step: tokens that came due since must not serve a waiter that leaves.
 */
void engine_cancel(struct engine *engine, struct waiter *waiter);

/*
 * Cancels as engine_cancel() does, for a waiter of @asker that may only have been interrupted: its
 * place is parked, see parking.h, if schedule.parking was given memory.
 */
void engine_interrupt(struct engine *engine, struct waiter *waiter, const struct asker *asker,
		      uint64_t now_ns);

/*
 * Gives @waiter, filled in and about to ask for at most @within_ns (NEVER_NS: for any time), the
 * place that was parked for @asker. False: there is none. With it the waiter is asked with
 * engine_ask() or engine_slot_open(), which frees the place unless the waiter waits; or it gives
 * up.
 */
bool engine_return(struct engine *engine, struct waiter *waiter, const struct asker *asker,
		   uint64_t within_ns, uint64_t now_ns);

/* Frees the place of @waiter, if it has one: it does not ask after all. */
void engine_give_up(struct engine *engine, struct waiter *waiter);

/* Takes back a grant of @tokens, and @amounts (or NULL), that could not be delivered. */
void engine_refund(struct engine *engine, struct limiter *limiter, uint64_t tokens,
		   const struct amounts *amounts, uint64_t now_ns);

/*
 * Charges all of @charge, or nothing. 0; -ENODEV; -ERANGE: more would come back than was taken;
 * -EINVAL: no limiter of the path has such a unit.
 */
int engine_charge(struct engine *engine, struct limiter *limiter, const struct charge *charge,
		  uint64_t now_ns);

/*
 * Reports how work in @limiter went: @count outcomes, all or none. 0; -ENODEV; -ENOMEM; -EINVAL:
 * one is of a unit that the limiter does not have.
 */
int engine_feedback(struct engine *engine, struct limiter *limiter, const struct outcome *outcomes,
		    size_t count, uint64_t now_ns);

/*
 * Returns the ns until @tokens, and @amounts (or NULL), would be granted; NEVER_NS. The limiter is
 * not removed.
 */
uint64_t engine_eta(struct engine *engine, struct limiter *limiter, uint64_t tokens,
		    const struct amounts *amounts, uint64_t now_ns);

/* Brings the gauges of @limiter up to @now_ns. */
void engine_refresh(struct engine *engine, struct limiter *limiter, uint64_t now_ns);

/*
 * Finds the key called @name (1 to 255 bytes) of @limiter, see keys.h, or makes it for @uid. 0,
 * -ENOMEM, -ENODEV, or -ENOSPC: there are keys_max, all in use, or users_check() says why. The key
 * is there until the next step, or as long as it is open.
 */
int engine_key(struct engine *engine, struct limiter *limiter, const char *name, uint32_t uid,
	       uint64_t now_ns, struct key **key);

/* Return the results of the steps so far, one by one; NULL when there are no more. */
struct waiter *engine_done(struct engine *engine);
struct change *engine_changed(struct engine *engine);

/* Tell whether engine_done(), or engine_changed(), has a result. */
static inline bool engine_has_done(const struct engine *engine)
{
	return engine->schedule.done.length;
}

static inline bool engine_has_changed(const struct engine *engine)
{
	return engine->changed.first;
}

#endif
