/*
 * state - what a successor of this server has to know, in memory that the keeper holds.
 *
 * It is written by plain stores, so that it costs no system call and is there when the server is
 * killed between any two of them. A fact is written before it is told to the kernel:
 *
 * - the limiters, each with its number, name, owner and settings, as records one after the other.
 *   The last of a limiter counts; settings are written once for all limiters that have them. A log
 *   that has become too long is written anew in the other of two places.
 * - the levels of their buckets as of the last token, exact: the successor adds the flow since. A
 *   token that was taken and not delivered is spent.
 * - what keys have used of windows of the calendar (key_ledger.h).
 * - places of readers that were interrupted (parking.h).
 * - open files by their handles' numbers (handle.h): whose they are, and what was read.
 * - in a fleet, what core/fleet/handover.h and zookeeper_handover.h say.
 *
 * Rows of the table of files are known by the numbers that the first server of a mount gave them,
 * so that the numbers of files mean the same to a successor with another table. Numbers, sizes and
 * the order of fields here are a format: a change of them changes STATE_VERSION.
 *
 * All under the daemon's lock.
 */
#ifndef RATEFS_FS_STATE_STATE_H
#define RATEFS_FS_STATE_STATE_H

#include "fs/state/zookeeper_handover.h"

#include <time.h>

#include "core/fleet/handover.h"
#include "core/limiter/change.h"

struct state;

enum {
	STATE_VERSION = 12,
	STATE_ROWS_MAX = 256,
	STATE_ROW_TEXT = 64, /* of a row's path */
	STATE_HANDLE_TEXT = NAME_BYTES_MAX + 1,
	STATE_FIRST_ROW = 1, /* row 0 of the table of files is none */
	STATE_PIECES_MAX = LEAVES_MOST * LEAVES_MOST,
};

/* The server whose state it is; all of it is borrowed until state_close(). */
struct state_server {
	struct engine *engine;
	struct timespec *began; /* wall clock at the start */
	unsigned int row_count; /* of the table of files */
	void (*row_path)(unsigned int row, char path[STATE_ROW_TEXT]);
};

/* A handle, at the index that is its number. */
struct state_handle {
	/* generation << 2 | whether it is used and open; 0: never used */
	_Atomic uint64_t life;
	uint64_t opener; /* unique number of the open */
	uint64_t poll;	 /* the kernel's number of the poller */
	uint64_t tokens, most;
	uint64_t given; /* if @granted: tokens of the last grant */
	uint64_t within_ns;
	uint64_t slot_ns; /* when its slot was opened; 0: it has none */
	uint32_t limiter; /* id */
	/* index + 1, of a piece its leaves + 1 (fs/mount/partitions.h), or 0 */
	uint32_t partition;
	uint16_t row;
	bool granted;
	bool half;
	bool polls;
	uint8_t units;		      /* so many amounts of units are in state_handle_amounts() */
	uint32_t uid, gid;	      /* of the process that opened it */
	uint32_t key_uid;	      /* for whom its key was made */
	uint32_t pid;		      /* of the thread that opened it; 0: not known */
	uint64_t key;		      /* id; 0: of none. Its name is in state_handle_text() */
	_Atomic uint32_t slot_number; /* its slot's number + 1; 0: it was not asked for one; ... */
	uint16_t slot_above;	      /* ... so far above its limiter */
	bool slot_lost;
};

enum { LIFE_USED = 1, LIFE_OPEN = 2, LIFE_BITS = 2 };

/*
 * Maps the memory behind @descriptor, taken over. Where nothing is left of @servers before, numbers
 * that are told to the kernel from now on differ from theirs. NULL after a message.
 */
struct state *state_open(int descriptor, uint32_t servers);
void state_close(struct state *state);

/* Says whose state it is, before it is begun, continued or restored. */
void state_attach(struct state *state, const struct state_server *server);

/* Tell whether a predecessor left a state, and whether that is of another format, or damaged. */
bool state_is_there(const struct state *state);
bool state_is_strange(const struct state *state);

/*
 * Moves what cannot be restored out of the way, in the same memory behind what this server will
 * write. Credentials stay if they can be found. 0 or -errno.
 */
int state_set_aside(struct state *state);

/*
 * The parts that a successor restores, in the order in which they are given up. A server that
 * serves still restores STATE_HANDLES: it may die a moment later of what it has restored.
 */
enum state_part {
	STATE_NOTHING,
	STATE_HANDLES, /* open files, and the places of interrupted readers */
	STATE_LEVELS,  /* buckets, counters, what was learnt; session and leases of a fleet */
	STATE_ALL,     /* with the limiters */
};

/*
 * Notes that this server restores @part from now on; nothing if there is no state of this
 * version.
 */
void state_restoring(struct state *state, enum state_part part);

/* Returns the part that the server before noted last. */
enum state_part state_restored_last(const struct state *state);

/* Gives up @part (not STATE_ALL, see state_set_aside()): a successor does not find it any more. */
void state_give_up(struct state *state, enum state_part part);

/* Base of the numbers told to the kernel, so that none repeats one it may still know. */
uint32_t state_base(const struct state *state);

/* Begins anew with what the server has. 0 or -ENOMEM. */
int state_begin(struct state *state);

/* As state_begin(), in a successor once everything is restored: the log is replaced. */
int state_continue(struct state *state);

/* In a fleet: members as in the limiter's struct holding, in a record of four-byte words. */
struct __attribute__((packed, aligned(4))) state_holding {
	uint64_t lid, generation, saved, cut, used_ns;
	int32_t version;
	uint32_t maker;
};

/*
 * Calls @restore for each limiter that was there, parents first, until it returns other than 0, and
 * returns that. @settings is text as of settings_print().
 */
struct state_limiter {
	uint32_t id, parent;
	struct owner owner;
	uint32_t made_s;
	/* SETTING_COUNT of them; NULL: as it was made, or it is another table of settings. */
	const uint32_t *changed_s;
	const char *name;
	const char *settings;
	struct state_holding holding;
};
int state_limiters(struct state *state,
		   int (*restore)(void *argument, const struct state_limiter *limiter),
		   void *argument);

/* Restores what was in the buckets of every limiter of the tree, numbers, and times. */
void state_restore(struct state *state);

/* @limiter was made or changed. Without memory it is as it was, after a message. */
void state_limiter_changed(struct state *state, struct limiter *limiter);
void state_limiter_removed(struct state *state, uint32_t id);

/* Something was taken from @limiter, or put back, here and above. */
void state_taken(struct state *state, struct limiter *limiter);

/* Keys were made. */
void state_keys(struct state *state);

/* Number of a row of the table, and back (0: there is none). */
uint8_t state_row_number(const struct state *state, unsigned int row);
uint8_t state_row(const struct state *state, uint8_t number);

/* Servers of this mount before this one. */
uint32_t state_generation(const struct state *state);

/*
 * A request that would count twice if it were done again: notes that @unique is done, before it is
 * answered, and tells whether a predecessor noted that of @unique.
 */
void state_done(struct state *state, uint64_t unique);
bool state_was_done(const struct state *state, uint64_t unique);

/* Places of a table of parameters (parameter.h), their amounts, and how many were ever used. */
struct parameter *state_parameters(struct state *state, struct amounts **amounts, uint32_t **used);

/*
 * Returns memory for PARKING_PLACES_MAX places of interrupted readers (parking.h), and in *@used
 * how many of them were ever used.
 */
struct parked_place *state_places(struct state *state, uint32_t **used);

/* The memory of key_ledger_new(). */
struct key_ledger_memory;
struct key_ledger_memory *state_key_ledger(struct state *state);

/* The parts that the fleet and its connection write themselves. */
struct state_fleet {
	struct zookeeper_handover zookeeper;
	struct handover_memory fleet;
};
struct state_fleet *state_fleet(struct state *state);

/* Handles: @index below STATE_HANDLES_MAX. From state_handle_count() on they were never used. */
enum { STATE_HANDLES_MAX = 1 << 22 };
struct state_handle *state_handle(struct state *state, uint32_t index);
uint32_t state_handle_count(const struct state *state);
void state_handle_used(struct state *state, uint32_t index);
/* The name of its key; of feedback, if @half, the line that goes on in the next write. */
char *state_handle_text(struct state *state, uint32_t index);
struct amounts *state_handle_amounts(struct state *state, uint32_t index);

#endif
