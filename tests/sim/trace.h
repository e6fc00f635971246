/*
 * trace - the simulator's language: text to commands.
 *
 * One command a line: `TIME [HOST:] COMMAND ...`, see COMMANDS in trace.c. A whole trace is read and
 * checked before anything is run. What a trace speaks of but is not there when it runs (a limiter,
 * a setting's value) is not the parser's: the run answers with an errno as the mount would.
 */
#ifndef RATEFS_SIM_TRACE_H
#define RATEFS_SIM_TRACE_H

#include "core/settings.h"

enum { PROBLEM_TEXT = 256 };

/* What a file of a limiter is. */
enum file_kind {
	FILE_TOKEN,
	FILE_TRY,
	FILE_STREAM,
	FILE_TAKE,
	FILE_ETA,
	FILE_STAT,
	FILE_CHARGE,
	FILE_CONFIG,
	FILE_SETTING,
	FILE_HELD,
	FILE_PARTITION_TOKEN,
	FILE_PARTITION_RATE,
};

struct file {
	enum file_kind kind;
	enum setting_id setting; /* FILE_SETTING */
	uint64_t tokens;	 /* FILE_TAKE, FILE_ETA */
	uint64_t within_ns;	 /* FILE_TAKE: NEVER_NS for no end */
	uint32_t index;		 /* FILE_PARTITION_... */
};

enum command_kind {
	COMMAND_MKDIR,
	COMMAND_RMDIR,
	COMMAND_WRITE,
	COMMAND_READ,
	COMMAND_CANCEL,
	COMMAND_LOAD,
	COMMAND_WORKERS,
	COMMAND_SERVICE,
	COMMAND_RETRY,
	COMMAND_END,
};

struct command {
	struct command *next;
	uint64_t at_ns;
	unsigned int line;
	enum command_kind kind;
	char *path; /* owned: of the limiter, or NULL */
	char *text; /* owned: what is written, or NAME, or NULL */
	struct file file;
	struct rate rate; /* load, service */
	uint64_t count;	  /* workers, retry: how many */
	uint64_t tokens; /* load, retry: each takes; service: its burst, 0 for one second's worth */
	uint64_t until_ns;
	uint64_t span_ns; /* workers: work; service: latency */
	bool gated;
};

struct trace {
	struct command *first, *last; /* owned */
	char problem[PROBLEM_TEXT];   /* why it was refused: starts with the number of the line */
};

/* 0, or -1 with @trace->problem. Either way trace_free() is called in the end. */
int trace_parse(struct trace *trace, const char *text);

void trace_free(struct trace *trace);

/* What of @text is the path of a limiter, and which of its files the rest names. 0 or -1. */
int file_parse(const char *text, size_t *path_length, struct file *file);

/* Whether a directory cannot have this name, because a control file has. */
bool file_has_name(const char *name);

#endif
