/*
 * record - what the nodes of a fleet hold, as text: see fleet.h for which node is for what.
 *
 * Lines of NAME=VALUE, so that an operator can read them. Text that is read comes from outside and
 * is checked: a record is taken whole or refused.
 */
#ifndef RATEFS_CORE_RECORD_H
#define RATEFS_CORE_RECORD_H

#include "core/limiter/adapt.h"
#include "core/limiter/bucket.h"
#include "core/limiter/change.h"
#include "core/limiter/holding.h"
#include "core/values/settings.h"

/* The same for all hosts of a fleet. */
struct fleet_constants {
	uint64_t renewal_ns;	/* R: a right is renewed so often */
	uint64_t right_ns;	/* D: so long it lasts */
	uint64_t quarantine_ns; /* Q: a partition that was not given back rests so long */
	uint64_t session_ns;	/* T: the coordinator gives up a host after that */
};

enum {
	RECENT_MAX = 32, /* changes that are remembered */
	HID_TEXT = 14,	 /* 13 base32 characters and the zero at the end */
	RECORD_TEXT = 2 * NAME_BYTES_MAX + (SETTING_COUNT + 12) * 2 * SETTING_TEXT,
};

/* /g */
struct globals {
	struct fleet_constants constants;
	uint64_t last_id; /* the last that was given to a limiter */
	struct {
		int32_t version; /* of /g, that the change made */
		uint64_t id;	 /* of the limiter that was changed */
	} recent[RECENT_MAX];
	uint32_t recent_count;
};

/* /c/LID */
struct record {
	char name[NAME_BYTES_MAX + 1];
	uint64_t parent;
	uint64_t generation;
	uint64_t saved; /* rests count that were written since this generation: rule 18 */
	uint64_t cut;	/* since this generation the leaves are numbered as they are */
	char writer[HID_TEXT];
	uint64_t
		removed; /* id of the limiter that had this name and has it no more; 0: it has it */
	struct owner owner;
	struct settings settings;
	bool used; /* the settings use no leaves, but hosts may that do not know of them yet */
};

/* /h/HID */
struct host_record {
	char name[256];
	uint32_t weight;
	uint32_t held;
	bool renews; /* its right: the host before it counts on that */
};

/* The number that *@text begins with, digits alone, at most @most; moves *@text behind it. */
bool record_parse_digits(const char **text, uint64_t most, uint64_t *number);

/* The shortest D that a Q is long enough for: with clocks that differ by 0.5 % each. */
uint64_t record_quarantine_ns(uint64_t right_ns);

void record_print_globals(const struct globals *globals, char text[RECORD_TEXT]);
/* Remembers that the version of /g after @version changed limiter @id. */
void record_add_change(struct globals *globals, int32_t version, uint64_t id);
/* 0 or -EINVAL. */
int record_parse_globals(const char *text, struct globals *globals);

void record_print(const struct record *record, char text[RECORD_TEXT]);
/* 0, or -EINVAL with a reason. */
int record_parse(const char *text, struct record *record, char error[ERROR_TEXT]);

void record_print_host(const struct host_record *host, char text[RECORD_TEXT]);
int record_parse_host(const char *text, struct host_record *host);

/*
 * The agreed rate of a limiter's service, for `adapt` of @kind. 0 or -EINVAL, also when it is of
 * another kind; then @state is untouched. Only the part of it that adapt_adopt() takes is there.
 */
enum { AGREED_RATE_TEXT = 256 };
void record_print_agreed_rate(const struct adapt_state *state, enum adapt_kind kind,
			      char text[AGREED_RATE_TEXT]);
int record_parse_agreed_rate(const char *text, enum adapt_kind kind, struct adapt_state *state);

#endif
