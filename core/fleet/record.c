/* record - what the nodes of a fleet hold, as text, see record.h. */
#include "core/fleet/record.h"
#include "core/fleet/times.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Appends to @text, which has room for RECORD_TEXT. */
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text + used, RECORD_TEXT - used, format, arguments);
	va_end(arguments);
}

/*
 * The value of line `NAME=...` of @text, as it stands, in @value. False: there is none, or it is
 * too long.
 */
static bool find_line(const char *text, const char *name, char *value, size_t size)
{
	size_t length = strlen(name), line;

	for (; *text; text += line + (text[line] == '\n')) {
		line = strcspn(text, "\n");
		if (line <= length || strncmp(text, name, length) != 0 || text[length] != '=')
			continue;
		if (line - length > size)
			return false;
		memcpy(value, text + length + 1, line - length - 1);
		value[line - length - 1] = '\0';
		return true;
	}
	return false;
}

bool record_parse_digits(const char **text, uint64_t most, uint64_t *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	*number = strtoull(*text, &end, 10);
	*text = end;
	return !errno && *number <= most;
}

static bool parse_number(const char *text, uint64_t most, uint64_t *number)
{
	return record_parse_digits(&text, most, number) && !*text;
}

/* Moves *@text behind @mark, if it begins with it. */
static bool scan_mark(const char **text, char mark)
{
	if (**text != mark)
		return false;
	++*text;
	return true;
}

static bool find_number(const char *text, const char *name, uint64_t most, uint64_t *number)
{
	char value[QUANTITY_TEXT];

	return find_line(text, name, value, sizeof(value)) && parse_number(value, most, number);
}

static bool find_duration(const char *text, const char *name, uint64_t *ns)
{
	char value[QUANTITY_TEXT];

	return find_line(text, name, value, sizeof(value)) && !duration_parse(value, ns) && *ns;
}

uint64_t record_quarantine_ns(uint64_t right_ns)
{
	return right_ns + right_ns / 100 + NSEC_PER_SEC / 4;
}

void record_print_globals(const struct globals *globals, char text[RECORD_TEXT])
{
	const struct {
		const char *name;
		uint64_t ns;
	} durations[] = {
		{"renewal", globals->constants.renewal_ns},
		{"right", globals->constants.right_ns},
		{"quarantine", globals->constants.quarantine_ns},
		{"session", globals->constants.session_ns},
	};

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
		char value[QUANTITY_TEXT];

		duration_print(durations[i].ns, value);
		append(text, "%s=%s\n", durations[i].name, value);
	}
	append(text, "last=%" PRIu64 "\nrecent=", globals->last_id);
	for (uint32_t i = 0; i < globals->recent_count; i++)
		append(text, "%s%" PRId32 ":%" PRIu64, i ? " " : "", globals->recent[i].version,
		       globals->recent[i].id);
	append(text, "\n");
}

void record_add_change(struct globals *globals, int32_t version, uint64_t id)
{
	if (globals->recent_count == RECENT_MAX)
		memmove(globals->recent, globals->recent + 1,
			--globals->recent_count * sizeof(globals->recent[0]));
	globals->recent[globals->recent_count].version = version + 1;
	globals->recent[globals->recent_count++].id = id;
}

static int parse_recent(const char *text, struct globals *globals)
{
	uint64_t version, id;

	while (*text) {
		if (globals->recent_count == RECENT_MAX ||
		    !record_parse_digits(&text, INT32_MAX, &version) || !scan_mark(&text, ':') ||
		    !record_parse_digits(&text, INT64_MAX, &id))
			return -EINVAL;
		globals->recent[globals->recent_count].version = (int32_t)version;
		globals->recent[globals->recent_count++].id = id;
		text += strspn(text, " ");
	}
	return 0;
}

int record_parse_globals(const char *text, struct globals *globals)
{
	struct fleet_constants *constants = &globals->constants;
	char recent[RECENT_MAX * 34];

	*globals = (struct globals){0};
	if (!find_duration(text, "renewal", &constants->renewal_ns) ||
	    !find_duration(text, "right", &constants->right_ns) ||
	    !find_duration(text, "quarantine", &constants->quarantine_ns) ||
	    !find_duration(text, "session", &constants->session_ns) ||
	    !find_number(text, "last", INT64_MAX, &globals->last_id) ||
	    !find_line(text, "recent", recent, sizeof(recent)))
		return -EINVAL;
	/* Safety rests on these bounds, whichever host wrote the text. */
	if (constants->right_ns > FLEET_CONSTANT_MAX_NS ||
	    constants->session_ns > FLEET_CONSTANT_MAX_NS ||
	    constants->renewal_ns < FLEET_RENEWAL_MIN_NS ||
	    constants->quarantine_ns < record_quarantine_ns(constants->right_ns) ||
	    constants->renewal_ns >= constants->right_ns)
		return -EINVAL;
	return parse_recent(recent, globals);
}

void record_print(const struct record *record, char text[RECORD_TEXT])
{
	text[0] = '\0';
	append(text, "name=%s\nparent=%" PRIu64 "\ngeneration=%" PRIu64 "\nwriter=%s\n",
	       record->name, record->parent, record->generation, record->writer);
	append(text, "owner=%" PRIu32 " %" PRIu32 " %o\nsaved=%" PRIu64 "\ncut=%" PRIu64 "\n",
	       record->owner.uid, record->owner.gid, (unsigned int)record->owner.access,
	       record->saved, record->cut);
	if (record->removed)
		append(text, "removed=%" PRIu64 "\n", record->removed);
	if (record->used)
		append(text, "used=1\n");
	append(text, "settings:\n");
	settings_print(&record->settings, text + strlen(text), RECORD_TEXT - strlen(text));
}

static bool parse_head(const char *text, struct record *record)
{
	char owner[QUANTITY_TEXT];
	const char *text_left = owner;
	uint64_t uid, gid, used;
	unsigned long access;
	char *end;

	if (!find_line(text, "name", record->name, sizeof(record->name)) ||
	    !find_number(text, "parent", INT64_MAX, &record->parent) ||
	    !find_number(text, "generation", INT64_MAX, &record->generation) ||
	    !record->generation ||
	    !find_line(text, "writer", record->writer, sizeof(record->writer)) ||
	    !find_line(text, "owner", owner, sizeof(owner)))
		return false;
	if (!record_parse_digits(&text_left, UINT32_MAX, &uid) || !scan_mark(&text_left, ' ') ||
	    !record_parse_digits(&text_left, UINT32_MAX, &gid) || !scan_mark(&text_left, ' ') ||
	    *text_left < '0' || *text_left > '7')
		return false;
	access = strtoul(text_left, &end, 8);
	if (*end || access > 07777)
		return false;
	record->owner = (struct owner){(uint32_t)uid, (uint32_t)gid, (uint16_t)access};
	if (!find_number(text, "removed", INT64_MAX, &record->removed))
		record->removed = 0;
	record->used = find_number(text, "used", 1, &used) && used;
	/* Where it is not said there are no tiles: the version before had none. */
	record->cut = record->generation;
	if (find_line(text, "cut", owner, sizeof(owner)) &&
	    (!parse_number(owner, record->generation, &record->cut) || !record->cut))
		return false;
	/* Where it is not said, no older rest counts. */
	if (!find_number(text, "saved", INT64_MAX, &record->saved) || !record->saved)
		record->saved = record->generation;
	return true;
}

int record_parse(const char *text, struct record *record, char error[ERROR_TEXT])
{
	static const char divider[] = "\nsettings:\n";
	const char *settings = strstr(text, divider);

	*record = (struct record){.settings = SETTINGS_DEFAULT};
	if (!settings) {
		snprintf(error, ERROR_TEXT, "no settings in it");
		return -EINVAL;
	}
	if (!parse_head(text, record)) {
		snprintf(error, ERROR_TEXT,
			 "name, parent, generation, writer or owner is missing, or cut is none");
		return -EINVAL;
	}
	return settings_parse(settings + strlen(divider), &record->settings, error) ? -EINVAL : 0;
}

void record_print_host(const struct host_record *host, char text[RECORD_TEXT])
{
	text[0] = '\0';
	append(text, "name=%s\nweight=%" PRIu32 "\nheld=%" PRIu32 "\nrenews=%d\n", host->name,
	       host->weight, host->held, host->renews);
}

int record_parse_host(const char *text, struct host_record *host)
{
	uint64_t weight, held, renews;

	*host = (struct host_record){0};
	if (!find_line(text, "name", host->name, sizeof(host->name)) ||
	    !find_number(text, "weight", UINT32_MAX, &weight) ||
	    !find_number(text, "held", UINT32_MAX, &held) ||
	    !find_number(text, "renews", 1, &renews))
		return -EINVAL;
	for (char *c = host->name; *c; c++) {
		if ((unsigned char)*c <= ' ' || *c == 0x7f)
			*c = '?'; /* it is shown in lines of words */
	}
	host->weight = (uint32_t)weight;
	host->held = (uint32_t)held;
	host->renews = renews;
	return 0;
}

/* Above that there is no rate; below, millionths are kept. */
static const double AGREED_RATE_MOST = 1e12;
enum { AGREED_RATE_PERIODS_MAX = 1000000 };

static void print_real(double value, char text[QUANTITY_TEXT])
{
	if (value < AGREED_RATE_MOST)
		snprintf(text, QUANTITY_TEXT, "%.6f", value);
	else
		snprintf(text, QUANTITY_TEXT, "max");
}

static bool find_real(const char *text, const char *name, double *real)
{
	char value[QUANTITY_TEXT], *end;

	if (!find_line(text, name, value, sizeof(value)))
		return false;
	if (!strcmp(value, "max")) {
		*real = (double)INFINITY;
		return true;
	}
	if (value[strspn(value, "0123456789.")])
		return false;
	*real = strtod(value, &end);
	return *value && !*end && *real >= 0 && *real < AGREED_RATE_MOST;
}

void record_print_agreed_rate(const struct adapt_state *state, enum adapt_kind kind,
			      char text[AGREED_RATE_TEXT])
{
	char rate[QUANTITY_TEXT], ceiling[QUANTITY_TEXT];

	print_real(state->rate, rate);
	print_real(state->ceiling, ceiling);
	snprintf(text, AGREED_RATE_TEXT,
		 "kind=%d\nrate=%s\nceiling=%s\nheld=%u\nhold=%u\ngrown=%.6f\n", kind, rate,
		 ceiling, state->held, state->hold, fmin(state->grown_s, AGREED_RATE_MOST / 2));
}

int record_parse_agreed_rate(const char *text, enum adapt_kind kind, struct adapt_state *state)
{
	struct adapt_state found = *state;
	uint64_t number, held, hold;

	if (!find_number(text, "kind", UINT32_MAX, &number) || number != kind ||
	    !find_real(text, "rate", &found.rate) || !find_real(text, "ceiling", &found.ceiling) ||
	    !find_number(text, "held", AGREED_RATE_PERIODS_MAX, &held) ||
	    !find_number(text, "hold", AGREED_RATE_PERIODS_MAX, &hold) ||
	    !find_real(text, "grown", &found.grown_s) || isinf(found.grown_s) || found.rate <= 0)
		return -EINVAL;
	found.held = (unsigned int)held;
	found.hold = (unsigned int)hold;
	*state = found;
	return 0;
}
