/*
 * trace - the simulator's language: text to commands.
 *
 * One command a line: `TIME [HOST:] COMMAND ...`, see COMMANDS in trace.c. `all:` is each host, a
 * line for each; and `{2..9}` is each of these numbers, a line for each, as in a shell:
 *
 *	5s h{2..9}: load a{1..3} 1/s until 60s
 *
 * A whole trace is read and checked before anything is run. A limiter or a value of a setting that
 * a trace names but is not there when it runs is not the parser's: the run answers with an errno as
 * the mount would.
 */
#ifndef RATEFS_SIM_TRACE_H
#define RATEFS_SIM_TRACE_H

#include "core/base/chain.h"
#include "core/fleet/coordinator.h"
#include "core/fleet/record.h"
#include "core/values/settings.h"
#include "tests/sim/coordinator/zookeeper.h"

enum { PROBLEM_TEXT = 256, FLEET_HOSTS_MAX = 10000, FLEET_WEIGHTS_MAX = 64 };

/* A file of a limiter. */
enum file_kind {
	FILE_TOKEN,
	FILE_TRY,
	FILE_STREAM,
	FILE_TAKE,
	FILE_ETA,
	FILE_STAT,
	FILE_SLOT,
	FILE_CHARGE,
	FILE_FEEDBACK,
	FILE_CONFIG,
	FILE_SETTING,
	FILE_HELD,
	FILE_PARTITION_TOKEN,
	FILE_PARTITION_RATE,
};

enum { KEY_TEXT = 64 };

struct file {
	enum file_kind kind;
	char key[KEY_TEXT];	 /* whose it is, or "": the limiter's */
	enum setting_id setting; /* FILE_SETTING */
	uint64_t tokens;	 /* FILE_TAKE, FILE_ETA */
	uint64_t most;		 /* FILE_TAKE: of A-B, or @tokens */
	struct amounts amounts;	 /* FILE_TAKE, FILE_ETA: of units, beside these */
	uint64_t within_ns;	 /* FILE_TAKE: NEVER_NS for no end */
	uint32_t index;		 /* FILE_PARTITION_... */
};

enum command_kind {
	COMMAND_MKDIR,
	COMMAND_RMDIR,
	COMMAND_MV,
	COMMAND_WRITE,
	COMMAND_READ,
	COMMAND_POLL,
	COMMAND_OPEN,
	COMMAND_CLOSE,
	COMMAND_NUMBER,
	COMMAND_SLOTS,
	COMMAND_CANCEL,
	COMMAND_INTERRUPT,
	COMMAND_LOAD,
	COMMAND_WORKERS,
	COMMAND_SERVICE,
	COMMAND_RETRY,
	COMMAND_TALLY,
	COMMAND_CLOCK,
	COMMAND_EXPECT,
	COMMAND_COUNT,
	COMMAND_END,
	/* In a fleet. */
	COMMAND_CUT,
	COMMAND_HEAL,
	COMMAND_PAUSE,
	COMMAND_STALL,
	COMMAND_RESUME,
	COMMAND_KILL,
	COMMAND_SUCCEED,
	COMMAND_START,
	COMMAND_STOP,
	COMMAND_DRIFT,
	COMMAND_ELECT,
	COMMAND_LOSE,
	COMMAND_LATENCY,
	COMMAND_LAG,
	COMMAND_ZNODE,
	COMMAND_EXPIRE,
	COMMAND_WHEN,
	COMMAND_HASTY,
	COMMAND_TORN,
	COMMAND_DENY,
	COMMAND_MEDDLE,
};

/*
 * `fleet N [weights W,W...] [renewal D] [right D] [session D] [prefix BYTES]`, the line before all
 * others.
 */
struct fleet_command {
	unsigned int hosts;		     /* 0: one host on a local source */
	uint32_t weights[FLEET_WEIGHTS_MAX]; /* of the hosts, over and over */
	uint32_t weight_count;
	struct fleet_constants constants;
	uint32_t prefix_bytes; /* of PATH, before the path of each node */
};

/* `expect`, see expect.h. */
enum expected {
	EXPECT_GRANTED,
	EXPECT_USED,
	EXPECT_WAIT,
	EXPECT_LONGEST,
	EXPECT_TILES,
	EXPECT_SHARE,
	EXPECT_SLOTS,
	EXPECT_TOLD,
	EXPECT_COORDINATOR,
	EXPECT_NODES,
	EXPECT_SERVICE,
	EXPECT_REFUSED,
	EXPECT_STAT,
	EXPECT_SETTING, /* the command's file; its text is what was written */
	EXPECT_ANSWER,	/* likewise */
};

enum { FIELD_TEXT = 32 };

struct expectation {
	enum expected expected;
	char field[FIELD_TEXT]; /* of `stat`, of the coordinator's counts; NAME of an answer */
	uint64_t span_ns;	/* of the window; 0: all */
	double least, most;
};

struct command {
	struct command *next;
	struct chain_link by_name; /* read, poll, open: in trace.names */
	uint64_t at_ns;
	unsigned int line;
	enum command_kind kind;
	const char *name;  /* of the command, borrowed from its table */
	unsigned int host; /* by its number, from 0 */
	bool has_host;	   /* it was named */
	char *path;	   /* owned: of the limiter, or NULL */
	char *text;	   /* owned: the text to write, or NAME, also of `mv`, or NULL */
	struct file file;
	struct rate rate;	/* load, service */
	int64_t wall_ns;	/* clock */
	uint64_t count;		/* workers, retry: how many; load: keys, or 0 */
	uint64_t tokens;	/* that each takes; service: its burst, 0 for one second's worth */
	struct amounts amounts; /* of units, that each takes beside them */
	uint64_t until_ns;
	uint64_t span_ns;	 /* workers: work; service: latency; poll: until the read */
	uint64_t knee;		 /* service: 0 for none */
	uint64_t jitter_percent; /* service, load */
	bool slot;		 /* workers: they hold a slot while they work ... */
	bool numbered;		 /* ... and ask for its number before and after */
	bool pipes;		 /* workers: they take as `ratefs pipe` does */
	bool gated;
	bool poisson;			/* load: at random */
	bool answers;			/* cut */
	int32_t ppm;			/* drift */
	int32_t waiter_ppm;		/* drift, of the waiter's clock */
	uint64_t jitter_ns;		/* latency */
	uint64_t answers_ns;		/* latency */
	struct ambush ambush;		/* when */
	bool on;			/* hasty, torn */
	enum operation_kind operation;	/* znode; the path is @text */
	char *written;			/* owned: znode, expect, or NULL */
	struct expectation expectation; /* expect */
};

struct trace {
	struct fleet_command fleet;
	struct command *first, *last; /* owned */
	struct chains names;	      /* commands that name a reader, by @text */
	bool expects;		      /* something */
	char problem[PROBLEM_TEXT];   /* why it was refused: starts with the number of the line */
};

/*
 * 0, or -1 with @trace->problem. Either way trace_free() is called in the end. @hosts is for a
 * trace that does not say itself that it is of a fleet; 0 for one host alone.
 */
int trace_parse(struct trace *trace, const char *text, unsigned int hosts);

void trace_free(struct trace *trace);

/* One line being read: for trace.c and trace_fleet.c. */
struct line {
	struct trace *trace;
	struct command *command;
	char *rest; /* the rest of it */
};

int line_refuse(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *line_word(struct line *line);
/* @word may be NULL: missing. */
int line_duration(struct line *line, const char *word, uint64_t *ns);
int line_tokens(struct line *line, const char *word, uint64_t *tokens);
int line_amounts(struct line *line, const char *word, uint64_t *tokens, struct amounts *amounts);

/* trace_fleet.c: the line `fleet ...`, and commands of a fleet. */
int trace_parse_fleet(struct line *line, struct fleet_command *fleet);
/* 0, -1, or 1 when @word is none of them. */
int trace_parse_fleet_command(struct line *line, const char *word);
/* trace.c: whether @name is told anything: it is a reader's, or that of a command. */
bool trace_has_name(const struct trace *trace, const char *name);
/* `h3`. */
int trace_parse_host(struct line *line, const char *word, unsigned int *host);

/* Splits @text into the path of a limiter and the name of one of its files. 0 or -1. */
int file_parse(const char *text, size_t *path_length, struct file *file);

/* Whether a directory cannot have this name, because a control file has. */
bool file_has_name(const char *name);

#endif
