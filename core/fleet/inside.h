/*
 * inside - what the parts of the fleet share with one another, and nobody else may look at.
 *
 *	fleet.c		time, and the engine's source
 *	session.c	the session, from opening to leaving
 *	term.c		until when what is held may be used
 *	transaction.c	one transaction at a time
 *	outcome.c	what follows from its answer
 *	guard.c		own leases are watched
 *	barrier.c		the barrier after an unknown outcome
 *	handover.c		what a successor has to know, and going on with it
 *	layout.c	the nodes that must be there before the host joins
 *	replicate.c	settings as other hosts made them
 *	apply.c		... take effect
 *	publish.c	changes of this host's
 *	before.c	settings that other hosts may still be under
 *	names.c		names that were given up a moment ago
 *	demand.c	how many partitions are wanted
 *	rebalance.c	which ones are given back, and when it is time to look for more
 *	acquire.c	which ones could be taken
 *	claim.c		how much others want, and what this host tells them of that
 *	take.c		which ones are taken
 *	release.c		giving back
 *	learnt.c	what was learnt of services, for all hosts
 *	survey.c	what is known of the others
 *	status.c	what it says of itself
 *	garbage.c		nodes of limiters that are gone
 *	room.c		how many nodes and watches this host may have
 */
#ifndef RATEFS_CORE_INSIDE_H
#define RATEFS_CORE_INSIDE_H

#include "core/base/chain.h"
#include "core/fleet/before.h"
#include "core/fleet/fleet.h"
#include "core/fleet/share.h"
#include "core/fleet/znode.h"

enum {
	ITEMS_MAX = 32,	     /* partitions in one transaction: each has up to three operations */
	FLEET_CHAINS = 4096, /* hash chains of holdings by id */
};

/* Of every transaction but the first: rule 2. */
enum { OPERATION_GLOBALS, OPERATION_HOST, HEAD_LENGTH };

enum transaction_kind {
	TRANSACTION_NONE,
	TRANSACTION_JOIN,
	TRANSACTION_RENEW,
	TRANSACTION_BARRIER,
	TRANSACTION_TAKE,
	TRANSACTION_GIVE,
	TRANSACTION_CLAIM,
	TRANSACTION_CHANGE,
	TRANSACTION_SWEEP,
};

/* A partition that a transaction is about. */
struct item {
	struct holding *holding; /* its limiter is held by us while the item is there */
	uint32_t index;		 /* of a partition; count and above are not used for the reserve */
	bool reserve;
	bool clean;
	uint64_t made_zxid; /* of the marker ... */
	struct marker marker;
	bool old;	    /* ... which was read too long ago to say what is left */
	uint32_t operation; /* its first in the transaction */
};

/* The one under way; or what is in doubt after it. */
struct transaction {
	enum transaction_kind kind;
	struct item items[ITEMS_MAX];
	uint32_t item_count;
	struct holding *holding; /* CLAIM; held */
	uint32_t claimed;	 /* CLAIM: N */
	uint32_t left;		 /* doubts that are not resolved yet */
};

/* A search for partitions of one limiter: see rebalance.c. */
struct search {
	struct holding *holding; /* held */
	uint64_t began_ns;
	uint32_t pending; /* answers to come */
	bool failed;
	bool *marked, *leased; /* owned, by index: as listed; @count of them */
	uint32_t count;
	uint32_t *clean; /* owned: free ones with a marker, in random order; tried from the end */
	uint32_t clean_count;
	uint32_t *unclean; /* owned: those that have neither */
	uint32_t unclean_count;
	uint32_t batch; /* items in one transaction, at most */
	uint32_t refusals;
	bool *reserve_leased, *reserve_clean; /* owned, by index */
	uint32_t reserve_count;
	struct claim *claims; /* owned */
	uint32_t claim_count;
	uint64_t own_claim;	      /* its sequence; UINT64_MAX: not in the list */
	struct item items[ITEMS_MAX]; /* to be taken next */
	uint32_t item_count;
	bool again;	   /* something was given back meanwhile */
	bool ready;	   /* their markers are read ... */
	uint64_t ready_ns; /* ... since then */
};

/* A limiter that is gone, whose nodes are to go too. */
struct swept {
	struct chain_link link; /* by id */
	struct swept *next;
	uint64_t id;
	uint64_t not_before_ns; /* by the waiter's clock */
	uint32_t tries;
	char **names; /* owned, one block: of its markers */
	uint32_t name_count;
	bool ready;
	bool partly; /* more than fit one transaction */
	bool named;  /* its record is there, and says that it is gone */
	bool bare;   /* ... and nothing else is */
};

/* A node that was read while following. */
struct found {
	uint64_t id;
	bool there;
	bool bad; /* not understood */
	int32_t version;
	uint64_t made_zxid, changed_zxid; /* of its node, as in struct holding */
	struct record record;
};

struct fleet {
	struct source source; /* first */
	struct engine *engine;
	struct coordinator *coordinator;
	const struct fleet_options *options;
	struct fleet_listener *listener;
	struct fleet_counters counters;
	struct fleet_kept *kept; /* borrowed; NULL: nothing is kept */
	uint32_t kept_next;	 /* where a free place is looked for */

	enum fleet_state state;
	struct fleet_constants constants;
	bool constants_known;
	uint64_t random_state;
	struct clocks clocks; /* as of the last step */
	uint64_t now_ns;      /* likewise the engine's */
	uint64_t next_ns;     /* when fleet_after() has something to do */

	/* The session. */
	bool connected;
	uint64_t session;
	char hid[HID_TEXT];	/* "" until it has joined */
	int32_t host_version;	/* of /h/HID */
	uint64_t vain_since_ns; /* nothing is acknowledged since then; NEVER_NS: no trouble */
	uint32_t fruitless;	/* sessions in a row in which the host never joined */
	uint64_t open_ns;	/* when the next session is opened; NEVER_NS: it is */
	/* How long answers take: rule 13. */
	struct pace {
		uint64_t slow_ns; /* of late */
		uint32_t vain;	  /* connections that were given up since the last answer */
	} reads, writes;
	uint64_t
		trouble_ns; /* by the holder's clock: since when nothing is acknowledged; NEVER_NS */
	uint64_t retry_ns;  /* when to look at the layout again; NEVER_NS */
	bool hung_up;
	struct requests *requests;

	/* The right. */
	bool right;	       /* in force */
	bool degraded;	       /* out of reach for longer than D */
	uint64_t right_end_ns; /* by the holder's clock */
	uint64_t next_renewal_ns;
	uint64_t denied_until_ns; /* until then nothing is taken, given back or claimed */

	struct transaction transaction;
	enum transaction_kind doubted; /* while the barrier is under way */
	uint64_t doubt_ns;	       /* when it begins anew; NEVER_NS */
	bool resuming;		       /* the barrier goes first: see handover.h */
	bool resumed;		       /* and no right of its own since */
	bool stale;		       /* /g has another version than the one applied */

	/* Settings. */
	struct globals globals;
	int32_t root_version; /* of /c/0, which says who owns the top; -1: there is none */
	uint64_t root_generation;
	int32_t applied;       /* version of /g; -1: none */
	uint64_t applied_zxid; /* of the write that made that version */
	bool following;
	bool follow_again;
	uint32_t follow_pending;
	bool follow_failed;
	int32_t follow_version;
	uint64_t follow_zxid;
	struct globals follow_globals;
	bool follow_all;
	uint64_t follow_ns;	/* not before */
	uint64_t globals_zxid;	/* of the write that made /g */
	uint32_t follow_behind; /* reads in which /g was older than the one applied */
	uint32_t layout_pending, layout_tries;
	uint64_t opened_ns;   /* timeout that the session was opened with */
	uint64_t *follow_ids; /* owned: what is still to be read */
	uint32_t follow_count, follow_sent;
	struct found *found; /* owned */
	uint32_t found_count;

	/* A change of ours. */
	struct change *change; /* the engine's first, NULL */
	uint64_t change_since_ns;
	uint64_t change_id;
	uint64_t change_given; /* the id that it gives to a limiter, or to a name that is left; 0 */
	uint32_t change_tries; /* in which others were first */
	uint64_t change_next_ns;	   /* not before */
	const struct change *change_tried; /* the one that the tries are of */
	uint64_t used_id;		   /* the largest that some limiter had */
	bool change_sent;
	bool change_again; /* to be checked anew when the settings of others are applied */
	struct record *change_record; /* owned */

	struct holding *holdings; /* all */
	struct holding *by_id[FLEET_CHAINS];
	struct holding *active;
	struct holding *work, *work_last;
	uint64_t next_tick_ns; /* of demand; NEVER_NS: nobody is active */
	uint32_t leases;       /* in any state but NONE */

	/* Bytes that have to fit a request of the coordinator: see room.c. */
	uint32_t own_bytes;	 /* of the paths of leases and claims */
	uint32_t learnt_bytes;	 /* of those of /f/LID that are watched */
	bool full;		 /* that there is no room for more was told */
	uint64_t claims_from_ns; /* after there was no room for one: not before */

	/* Whether there are other hosts. */
	bool alone;
	bool hosts_watched;
	bool hosts_asked;
	bool hosts_known;
	uint32_t host_count; /* as of the last look, at least 1 */
	uint64_t hosts_ns;   /* when to look again */

	struct swept *swept;
	struct chains swept_by_id; /* the same */
	struct swept *sweeping;
	struct left_name *left_names; /* the first: see names.c */
	struct left_name *last_left;
	uint64_t names_known_ns; /* by the waiter's clock: until then some may not be there */

	/* What was seen of the fleet: see survey.h. */
	struct survey *surveys;
	struct seen_host *seen_hosts; /* owned */
	uint64_t hosts_seen_ns;
	int64_t clock_ms;     /* of the coordinator, when our last transaction was executed ... */
	uint64_t clock_ns;    /* ... which was about this time of the engine's */
	uint64_t last_ack_ns; /* when the last one was acknowledged */

	bool running; /* inside fleet_after() */
	bool leaving;
	uint64_t leave_until_ns;
	bool left;
};

/* parts.c */
/* Tells the listener of @event, in words. */
void fleet_tell(struct fleet *fleet, enum fleet_event event, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Lets there be a step at @at_ns at the latest; 0: at once. */
void fleet_wake_at(struct fleet *fleet, uint64_t at_ns);

/* Draws a number: for choices, which need to differ between hosts but not to be secret. */
uint64_t fleet_random(struct fleet *fleet);

/* Returns @ns, give or take a quarter. */
uint64_t fleet_jitter(struct fleet *fleet, uint64_t ns);

/* fleet.c */
void fleet_lease_becomes(struct fleet *fleet, struct holding *holding, struct lease *lease,
			 enum lease_state to);
struct lease *item_lease(const struct item *item);
/* From PARTITIONS_MAX on: of the reserve. */
uint32_t item_index(const struct item *item);
/* The path of its node of @kind: its lease or its marker. */
void item_path(const struct item *item, enum znode_kind kind, char path[ZNODE_TEXT]);
void holding_keep(struct holding *holding);
void holding_let_go(struct holding *holding);

/* session.c */
void fleet_drop_session(struct fleet *fleet, const char *why);
/* Rule 13: connections that do not answer, sessions that come to nothing. */
void fleet_watch_connection(struct fleet *fleet);
/* Notes the answer to @request: how long it took, and which trouble it ends. */
void fleet_note_answer(struct fleet *fleet, const struct request *request);
void fleet_watch_leaving(struct fleet *fleet);

/* term.c */
void fleet_extend_right(struct fleet *fleet, uint64_t sent_ns);
/* Before anything is granted in a step. */
void fleet_check_right(struct fleet *fleet);
/* Whether it is time to do without the coordinator. */
void fleet_watch_reach(struct fleet *fleet);
/* What may be used has changed. */
void fleet_reshare(struct fleet *fleet, struct holding *holding);
/* What was saved up is not used: rule 12. */
void fleet_empty(struct fleet *fleet, struct holding *holding);
/*
 * Likewise empties all that is usable, before any of it is reshared: the first limiter that is
 * reshared may serve readers of limiters above or below it.
 */
void fleet_empty_usable(struct fleet *fleet);

/* transaction.c */
/* Sends the next transaction, if none is under way. */
void fleet_pump(struct fleet *fleet);
void fleet_add_work(struct fleet *fleet, struct holding *holding);
/* Begins a transaction of @kind with rule 2's head; NULL without memory. */
struct request *transaction_begin(struct fleet *fleet, enum transaction_kind kind);
void transaction_send(struct fleet *fleet, struct request *request);
void transaction_end(struct fleet *fleet);
void fleet_join(struct fleet *fleet);

/* outcome.c */
void transaction_answered(struct fleet *fleet, struct request *request);

/* guard.c */
void fleet_watch_lease(struct fleet *fleet, const struct holding *holding, uint32_t index,
		       bool reserve);
/* Watches the nodes of leases that are not watched yet. */
void fleet_watch_leases(struct fleet *fleet);
void fleet_lease_changed(struct fleet *fleet, const struct znode *znode);

/* barrier.c */
void doubt_begin(struct fleet *fleet);
/* Begins anew when it is time to. */
void doubt_watch(struct fleet *fleet);
void doubt_barrier_answered(struct fleet *fleet, const struct request *request);

/* handover.c */
/* What is known of the session. */
void fleet_keep(struct fleet *fleet);
/* The state of @lease, of partition @index of @holding (from PARTITIONS_MAX on: of the reserve). */
void fleet_keep_lease(struct fleet *fleet, const struct holding *holding, struct lease *lease,
		      uint32_t index);
/* Whether there may be a claim. */
void fleet_keep_claim(struct fleet *fleet, struct holding *holding, bool claim);
/* The session is gone. */
void fleet_keep_nothing(struct fleet *fleet);

/* layout.c */
void layout_look(struct fleet *fleet);

/* replicate.c */
void follow_begin(struct fleet *fleet);
void follow_forget(struct fleet *fleet);

/* apply.c: fleet->found; follow_failed if there is no memory for some. */
void apply_found(struct fleet *fleet);

/* publish.c */
void publish_store(struct source *source, struct change *change);
/* The transaction for fleet->change; NULL: it was refused, or there is no memory. */
bool publish_send(struct fleet *fleet);
void publish_answered(struct fleet *fleet, const struct request *request);
/* The record of fleet->change's limiter as read after a barrier; NULL: there is none. */
void publish_resolved(struct fleet *fleet, const struct record *record, int32_t version,
		      uint64_t zxid);
/* Ends the change with -ETIMEDOUT: its record was read and is not understood. */
void publish_unresolved(struct fleet *fleet);
void publish_expire(struct fleet *fleet);
void publish_finish(struct fleet *fleet, int err);
struct holding *holding_of_id(const struct fleet *fleet, uint64_t id);
/*
 * Enters @holding in @fleet: from here on its limiter is limiter @id of the fleet. A limiter that
 * is still being made may be freed at any time, and is in no list.
 */
void holding_enter(struct fleet *fleet, struct holding *holding, uint64_t id);
void holding_unname(struct fleet *fleet, struct holding *holding);
void holding_gone(struct fleet *fleet, struct holding *holding);

/* names.c */
/* @path was that of limiter @id until now. */
void names_leave(struct fleet *fleet, uint64_t id, const char *path);
/* Other names may have been left in the last Q that are not known here. */
void names_lose(struct fleet *fleet);
/* The path that limiter @id had; NULL: not known. */
const char *names_of(const struct fleet *fleet, uint64_t id);
/*
 * Tells whether no host can still know a limiter other than @id (0: any) by @path, or one above it.
 */
bool names_are_free(struct fleet *fleet, const char *path, uint64_t id);
void names_free(struct fleet *fleet);

/* demand.c */
/* Something may have to be done for @holding; @asked: somebody asked for tokens. */
void demand_rouse(struct fleet *fleet, struct holding *holding, bool asked);
void demand_update(struct fleet *fleet, struct holding *holding);
void demand_tick(struct fleet *fleet);
/* What a predecessor held was wanted until now. */
void demand_resume(struct fleet *fleet, struct holding *holding);
void demand_forget(struct fleet *fleet);
void demand_look_for_hosts(struct fleet *fleet);

/* release.c, rebalance.c */
void choose(struct fleet *fleet, struct holding *holding);
bool choose_has_work(const struct fleet *fleet, const struct holding *holding);
void choose_next_search(struct fleet *fleet, struct holding *holding);
/* How many partitions should be held: what is wanted, or our share under contention. */
uint32_t choose_limit(const struct holding *holding);
/* Partitions whose own tokens are read and that are not held. */
bool holding_misses(const struct holding *holding, uint32_t index);
uint32_t holding_missing(const struct holding *holding);
/* Tells whether it has fewer partitions than it could use now. */
bool holding_lacks(const struct holding *holding);
bool holding_wants_reserve(const struct holding *holding);
bool choose_send(struct fleet *fleet, struct holding *holding);
void drain(struct fleet *fleet, struct holding *holding, struct lease *lease);
void drain_all(struct fleet *fleet, struct holding *holding);
/* Wakes who waits for what was given up, when it is known who that is. */
void drain_wake(struct fleet *fleet, struct holding *holding);
bool drain_is_due(const struct fleet *fleet, const struct holding *holding);
bool drain_send(struct fleet *fleet, struct holding *holding);
/* Leases that are not on their way back. */
uint32_t holding_kept(const struct holding *holding);

/* learnt.c */
/* A look at whether there is something to tell or to ask. */
void learnt_tick(struct fleet *fleet, struct holding *holding);
void learnt_changed(struct fleet *fleet, uint64_t id);
/* What the hosts have learnt counts no more: another `adapt` was set. */
void learnt_void(struct fleet *fleet, const struct holding *holding);
/* The session is gone, and what was asked in it is not answered. */
void learnt_forget(struct holding *holding);

/* acquire.c */
void search_begin(struct fleet *fleet, struct holding *holding);
void search_free(struct search *search);
/* The round is over. */
void search_end(struct fleet *fleet, struct search *search);

/* claim.c */
void claims_parse(struct fleet *fleet, struct search *search, const struct request *request);
/* What the claims come to: our share, if all together want more than there is. */
void claims_weigh(struct search *search);
/* Finds out who waits for partitions of @holding, and then wakes them. */
void claims_look(struct fleet *fleet, struct holding *holding);
/* Who leaves claims nothing any more, from before anything that is sent later. */
void claim_withdraw(struct fleet *fleet, struct holding *holding);
/* Whether our own should be made, changed or deleted; does it. */
bool claim_is_due(const struct fleet *fleet, const struct holding *holding);
bool claim_send(struct fleet *fleet, struct holding *holding);
/* Watches our own, so that who gives something back can wake us. */
void claim_watch(struct fleet *fleet, const char *claim);
/* Somebody has: what was given back is looked for at once. */
void claim_woken(struct fleet *fleet, const struct znode *znode);

/* take.c */
/* The next ones to be taken, or the end of the round. */
void search_next(struct fleet *fleet, struct search *search);
bool search_send(struct fleet *fleet, struct search *search);
/* The transaction was answered; @refused: the item that was, or UINT32_MAX. */
void search_taken(struct fleet *fleet, struct search *search, enum answer answer, uint32_t refused);

/* survey.c */
void survey_forget(struct fleet *fleet);
void survey_free(struct fleet *fleet);

/* room.c */
uint32_t room_own_bytes(const struct fleet *fleet);
/* Returns how many more leases of @holding there may be; tells whether it may have a claim. */
uint32_t room_for_leases(const struct fleet *fleet, const struct holding *holding);
bool room_for_claim(const struct fleet *fleet, const struct holding *holding);
/* Tells whether half of the room is used: then nothing is kept that is not wanted. */
bool room_is_scarce(const struct fleet *fleet);
/* Counts a take or a claim that was left out for want of room, and tells of it the first time. */
void room_was_missing(struct fleet *fleet);
/* There is a lease or a claim now, as far as it is known, or there is none any more. */
void room_count_lease(struct fleet *fleet, const struct holding *holding, bool there);
void room_count_claim(struct fleet *fleet, struct holding *holding, bool there);
/* A predecessor left a lease or a claim of limiter @id, which is gone: it goes with the session. */
void room_count_left(struct fleet *fleet, uint64_t id, bool claim);
/* Gives /f/LID room to be watched. False: there is none. Then: takes the room back. */
bool room_watch_learnt(struct fleet *fleet, struct holding *holding);
void room_unwatch_learnt(struct fleet *fleet, struct holding *holding);

/* garbage.c */
void sweep_add(struct fleet *fleet, uint64_t id);
/* Looks for nodes of limiters that are gone, which nobody swept. */
void sweep_look(struct fleet *fleet);
bool sweep_send(struct fleet *fleet);
void sweep_answered(struct fleet *fleet, const struct request *request);
void sweep_forget(struct fleet *fleet);
void sweep_free(struct fleet *fleet);

#endif
