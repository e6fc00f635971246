/*
 * record - what the nodes of a fleet hold, as text: see fleet.h for which node is for what.
 *
 * Lines of NAME=VALUE, so that an operator can read them. Text that is read comes from outside and
 * is checked: a record is taken whole or refused.
 */
#ifndef RATEFS_CORE_RECORD_H
#define RATEFS_CORE_RECORD_H

#include "core/limiter/adapt.h"
#include "core/limiter/allowance.h"
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

enum { COMMAND_TEXT = 16 }; /* a command's name as Linux has it, with the zero at the end */

enum {
	RECENT_MAX = 32, /* changes that are remembered */
	HID_TEXT = 14,	 /* 13 base32 characters and the zero at the end */
	RECORD_TEXT = 2 * NAME_BYTES_MAX + (SETTING_COUNT + 12) * 2 * SETTING_TEXT,
	RECORD_OVERRIDES_MAX = 700000, /* bytes of the lines of overrides */
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

/* The use that a host makes of limiter @id. */
struct host_use {
	uint64_t id;
	double granted; /* tokens a second, of late */
	uint32_t waiting;
};

enum {
	HOST_USES_MAX = 16,
	HOST_USES_TEXT = HOST_USES_MAX * 44, /* in fact about a third of that */
};

/* A slot that is open on a host. */
struct host_slot {
	uint64_t id;	   /* of the limiter in which it was opened */
	uint32_t pid, uid; /* of the thread that opened it; pid 0: the daemon does not see it */
	uint32_t held_s;   /* since then, as the record is written */
	char command
		[COMMAND_TEXT]; /* that the thread runs; `-`: there is no such thread any more */
};

enum {
	HOST_SLOTS_MAX = 32,		/* of a host */
	HOST_SLOTS_OF_LIMITER_MAX = 16, /* of these, of one limiter */
	HOST_SLOTS_TEXT = HOST_SLOTS_MAX * (19 + 3 * 11 + 1 + COMMAND_TEXT) + 1,
};

/*
 * A cap on what a host uses of a window of the calendar, by all leaves of a limiter that it has:
 * rule 20 of fleet.h.
 */
struct host_cap {
	uint64_t id, cut, saved; /* of the limiter, as in its record */
	uint32_t limit;		 /* which of its limits: from 0 */
	uint32_t leaves;	 /* from 1 */
	int64_t begin_s;	 /* when the window began: seconds since 1970 */
	uint64_t tokens;	 /* used of it, at most */
	uint32_t epoch; /* of the host's last acknowledged transaction before it was told */
};

enum {
	HOST_CAPS_MAX = 16,
	HOST_CAPS_TEXT = 8 + HOST_CAPS_MAX * (4 * 20 + 4 * 11 + 8),
};

struct host_caps {
	uint32_t count;
	struct host_cap list[HOST_CAPS_MAX];
};

/* /h/HID */
struct host_record {
	char name[256];
	uint32_t weight;
	uint32_t held;
	bool renews;			     /* its right: the host before it counts on that */
	bool has_uses;			     /* it says what it uses: an older version does not */
	uint32_t use_count;		     /* below the most, there are no others */
	struct host_use uses[HOST_USES_MAX]; /* the largest first */
	uint32_t slot_count;
	struct host_slot slots[HOST_SLOTS_MAX]; /* those that were opened first */
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

/* Returns the text of @record, from malloc; NULL: no memory. */
char *record_text(const struct record *record);
/*
 * 0, or -EINVAL with a reason. The settings have a hold: record_drop() has to follow.
 */
int record_parse(const char *text, struct record *record, char error[ERROR_TEXT]);
void record_drop(struct record *record);

/*
 * The uses and slots are for those who look alone: a record counts also if they are not understood.
 * A command is printed and read as one word of letters that a terminal may have: others are `?`.
 */
void record_print_host(const struct host_record *host, char text[RECORD_TEXT]);
int record_parse_host(const char *text, struct host_record *host);

/*
 * The caps are a line of /h/HID, and that of a host that was ended is all of /d/HID+E. Nothing is
 * printed where there are none. Text without such a line, or with one that is not understood to its
 * end, has none.
 */
void record_print_caps(const struct host_caps *caps, char text[HOST_CAPS_TEXT]);
void record_parse_caps(const char *text, struct host_caps *caps);

/* Returns what the host of @host uses of limiter @id. NULL: its record does not say. */
const struct host_use *record_use(const struct host_record *host, uint64_t id);

/*
 * The agreed rate of a limiter's service, for `adapt` of @kind. 0 or -EINVAL, also when it is of
 * another kind; then @state is untouched. Only the part of it that adapt_adopt() takes is there.
 */
enum { AGREED_RATE_TEXT = 256 };
void record_print_agreed_rate(const struct adapt_state *state, enum adapt_kind kind,
			      char text[AGREED_RATE_TEXT]);
int record_parse_agreed_rate(const char *text, enum adapt_kind kind, struct adapt_state *state);

/*
 * Quotas that services told of: the data of /w/LID. A unit may be one that the settings do not
 * have. Text that is not understood to its end is refused: -EINVAL, so is that of no quotas ever.
 */
enum {
	TOLD_QUOTAS_MAX = (LIMITS_MAX + 1) * ALLOWANCES_MAX,
	TOLD_TEXT = 16 + TOLD_QUOTAS_MAX * (16 + 14 + 12 + UNIT_TEXT + 4),
	TOLD_MARKS = 1024,
	TOLD_MARKS_TEXT = 6 + TOLD_MARKS / 4 + 2,
};

struct told_quota {
	uint64_t id;	   /* above ALLOWANCE_JOINED */
	uint64_t tokens;   /* 0 to TOKENS_MAX */
	uint64_t rest_ms;  /* from the writing on, rounded up: 1 to DURATION_MAX_NS */
	uint64_t until_ns; /* for the reader: not in the text */
	char unit[UNIT_TEXT];
};

struct told_quotas {
	uint32_t count;
	struct told_quota list[TOLD_QUOTAS_MAX];
};

void record_print_told(const struct told_quotas *quotas, char text[TOLD_TEXT]);
int record_parse_told(const char *text, struct told_quotas *quotas);

/*
 * The data of /w: of which limiters such quotas were ever told, a bit for LID modulo TOLD_MARKS.
 * Text that is not understood stands for all; none for no limiter.
 */
struct told_marks {
	uint64_t bits[TOLD_MARKS / 64];
};

void record_mark_told(struct told_marks *marks, uint64_t id);
bool record_is_marked(const struct told_marks *marks, uint64_t id);
void record_print_told_marks(const struct told_marks *marks, char text[TOLD_MARKS_TEXT]);
void record_parse_told_marks(const char *text, struct told_marks *marks);

#endif
