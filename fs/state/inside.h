/*
 * inside - the memory's layout, and functions that the parts of state.h share: memory.c (the
 * mapping), rows.c, limiters.c, buckets.c, check.c and, above them, begin.c.
 */
#ifndef RATEFS_FS_STATE_INSIDE_H
#define RATEFS_FS_STATE_INSIDE_H

#include "fs/state/key_ledger.h"
#include "fs/state/state.h"

#include "core/limiter/learning.h"
#include "core/limiter/usage.h"

/* The memory is sparse: a page that was never written costs nothing. */
#define STATE_HEADER_BYTES (UINT64_C(64) << 10)
#ifndef STATE_LOG_BYTES /* a test has less */
#define STATE_LOG_BYTES (UINT64_C(1) << 30)
#endif

enum {
	BASE_BITS = 16,
	STATE_SETTINGS_MAX = 1024, /* in a table that another server had */
	UNITS_MAX = 1 << 22,
	FIRST_UNITS = 4096,
	STATE_COUNTERS = 14
};

/* In the place of the version: the log had no room, so that the kept limiters are old. */
#define STATE_LOST UINT32_MAX

/* A level, as of @filled_ns; fields as in struct bucket. */
struct level_copy {
	int64_t level;
	uint64_t part;
	int64_t released;
	uint64_t grid_ns, filled_ns, awaited;
};

/* The level that is being written, so that a unit has all of it or nothing. */
struct journal {
	_Atomic uint32_t unit; /* 0: none is */
	struct fraction flow;
	struct level_copy level;
};

struct header {
	char magic[8];
	_Atomic uint32_t version;   /* written last, so that all the rest is there */
	uint32_t generation;	    /* servers before this one */
	uint32_t setting_count[2];  /* in the records of each log */
	_Atomic uint32_t log;	    /* which of the two counts */
	_Atomic uint32_t restoring; /* enum state_part: the last that the last server restored */
	_Atomic uint64_t log_end[2];
	uint64_t done;
	int64_t began_s;
	uint64_t engine_began_ns;
	uint64_t last_key;
	uint32_t last_id;
	uint32_t base;
	uint32_t unit_count; /* that were ever used; the first is not */
	uint32_t handle_count;
	uint32_t parameter_count;
	uint32_t place_count;
	uint32_t row_count;
	struct journal journal;
	char rows[STATE_ROWS_MAX][STATE_ROW_TEXT]; /* their paths, by number */
};

enum record_kind { RECORD_LIMITER, RECORD_REMOVED, RECORD_SETTINGS, RECORD_KINDS };

/* Parts of a limiter's record, in the order in which they follow it. The name follows them. */
enum record_part {
	RECORD_HOLDING = 1, /* struct state_holding */
	RECORD_CHANGED = 2, /* changed_s: of as many settings as the log has */
	RECORD_PARTS = RECORD_HOLDING | RECORD_CHANGED,
};

/*
 * A record of the log. Settings are written once for all limiters that have them, before the first
 * of those. Texts end with a NUL.
 */
struct log_record {
	uint64_t sum;	/* of all that follows, see state_sum() */
	uint32_t bytes; /* with what follows; a multiple of 8 */
	uint8_t kind;	/* enum record_kind */
	uint8_t parts;	/* of enum record_part */
	uint16_t access;
	uint32_t id; /* of the limiter; of settings their number, counted from 0 */
	uint32_t parent, uid, gid, made_s;
	uint32_t settings; /* their number */
	char rest[];	   /* the parts, or the text of the settings */
};

/* One bucket of a limiter; that of the first limit has the counters too. */
struct unit {
	uint32_t id;	      /* of the limiter; 0: free */
	uint32_t limit;	      /* index */
	uint32_t next;	      /* of the next limit; 0: none, or free: the next free one */
	struct fraction flow; /* the rate that the level is of */
	struct level_copy level;
	uint64_t counters[STATE_COUNTERS]; /* by enum counter */
};

/* The state of learning of a limiter, at the number of its first unit. */
struct learning_copies {
	_Atomic uint32_t current; /* which of the two counts */
	struct learning_copy {
		uint32_t id; /* of the limiter; 0: nothing was learnt */
		struct adapt_state adapted;
		struct backoff_state pause;
		struct fraction flow;
		struct level_copy level;
		struct allowances allowances;
		double told_limit;
	} copies[2];
};

/* The waits of a limiter, at the number of its first unit. */
struct waited_copy {
	uint32_t id; /* of the limiter; 0: nothing */
	struct waited waited;
};

/* The counts of a limit with a unit by name, at the number of its unit of state. */
struct unit_copy {
	uint64_t granted, charged, returned;
};

/* The quota that a service told of a unit, at the number of the state's unit of a limit of it. */
struct told_copies {
	_Atomic uint32_t current; /* which of the two counts */
	struct told_copy {
		uint32_t id; /* of the limiter; 0: nothing */
		struct allowances allowances;
		double told_limit;
	} copies[2];
};

struct state {
	struct state_server server;
	int descriptor;
	char *bytes; /* mapped */
	struct header *header;
	char *logs[2];
	struct unit *units;
	struct learning_copies *learning;
	struct state_handle *handles;
	char *handle_texts; /* by index */
	struct parameter *parameters;
	struct state_fleet *fleet;
	struct parked_place *places;
	struct waited_copy *waited;
	struct unit_copy *unit_counts;
	struct amounts *parameter_amounts, *handle_amounts; /* by index, where there are units */
	struct told_copies *told;
	struct key_ledger_memory *key_ledger;
	uint64_t live_bytes;	   /* of the log when it was last written anew */
	uint32_t logs_written;	   /* how often that was */
	uint32_t settings_written; /* in the log that was written last */
	uint32_t free_units;	   /* the first */
	uint32_t units_until;	   /* so many are used before those that are free are looked for */
	uint8_t numbers[STATE_ROWS_MAX]; /* of our rows */
	uint8_t rows[STATE_ROWS_MAX];	 /* back */
	uint32_t base;			 /* as in the header, while there is none */
	bool kept;			 /* limiters are kept: from the beginning on */
};

/* Of @record from its length on. */
uint64_t state_sum(const struct log_record *record);

/* Where the name of a limiter begins in its record, in a log of @settings in a table. */
size_t state_name_at(const struct log_record *record, uint32_t settings);

/* Whether all of it can be what a server wrote; if not, after a message. */
bool state_is_sound(const struct state *state);

/* Whether the byte at @flag is one that a bool can have. */
bool state_flag_is_sound(const bool *flag);

/* Gives the rows of the table their numbers. */
void state_number_rows(struct state *state);

/* Writes the log anew in the other place. 0 or -ENOMEM. */
int state_rewrite(struct state *state);

/* Writes the levels of @limiter and of all below it. */
void state_write_levels(struct state *state, struct limiter *limiter);

/* Marks the memory as a state. */
void state_sign(struct state *state);

#endif
