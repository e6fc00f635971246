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

char *record_text(const struct record *record)
{
	size_t size = RECORD_TEXT + overrides_length(record->settings.overrides);
	char *text = malloc(size);

	if (!text)
		return NULL;
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
	settings_print(&record->settings, text + strlen(text), size - strlen(text));
	return text;
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

void record_drop(struct record *record)
{
	settings_drop(&record->settings);
}

/* Above that there is no rate. */
static const double RATE_MOST = 1e12;

/* Makes @command one word that a terminal may have. */
static void clean_command(char command[COMMAND_TEXT])
{
	if (!*command)
		strcpy(command, "-");
	for (char *c = command; *c; c++) {
		if (*c <= ' ' || *c >= 0x7f)
			*c = '?';
	}
}

static void print_slots(const struct host_record *host, char text[RECORD_TEXT])
{
	append(text, "slots=");
	for (uint32_t i = 0; i < host->slot_count; i++) {
		struct host_slot slot = host->slots[i];

		clean_command(slot.command);
		append(text, "%s%" PRIu64 ":%" PRIu32 ":%" PRIu32 ":%" PRIu32 ":%s", i ? " " : "",
		       slot.id, slot.pid, slot.uid, slot.held_s, slot.command);
	}
	append(text, "\n");
}

static void print_uses(const struct host_record *host, char text[RECORD_TEXT])
{
	append(text, "uses=");
	for (uint32_t i = 0; i < host->use_count; i++) {
		const struct host_use *use = &host->uses[i];

		append(text, "%s%" PRIu64 ":%.4g:%" PRIu32, i ? " " : "", use->id,
		       fmin(use->granted, RATE_MOST), use->waiting);
	}
	append(text, "\n");
}

void record_print_host(const struct host_record *host, char text[RECORD_TEXT])
{
	text[0] = '\0';
	append(text, "name=%s\nweight=%" PRIu32 "\nheld=%" PRIu32 "\nrenews=%d\n", host->name,
	       host->weight, host->held, host->renews);
	if (host->has_uses)
		print_uses(host, text);
	if (host->slot_count)
		print_slots(host, text);
}

void record_print_caps(const struct host_caps *caps, char text[HOST_CAPS_TEXT])
{
	size_t used = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < caps->count; i++) {
		const struct host_cap *cap = &caps->list[i];

		used += (size_t)snprintf(text + used, HOST_CAPS_TEXT - used,
					 "%s%" PRIu64 ":%" PRIu64 ":%" PRIu64 ":%" PRIu32
					 ":%" PRIu32 ":%" PRId64 ":%" PRIu64 ":%" PRIu32,
					 i ? " " : "caps=", cap->id, cap->cut, cap->saved,
					 cap->limit, cap->leaves, cap->begin_s, cap->tokens,
					 cap->epoch);
	}
	if (used)
		snprintf(text + used, HOST_CAPS_TEXT - used, "\n");
}

/* Reads a cap, whose numbers have colons between them. */
static bool parse_cap(const char **text, struct host_cap *cap)
{
	static const uint64_t most[] = {INT64_MAX,	INT64_MAX, INT64_MAX,  LIMITS_MAX - 1,
					PARTITIONS_MAX, INT64_MAX, TOKENS_MAX, UINT32_MAX};
	uint64_t numbers[sizeof(most) / sizeof(most[0])];

	for (size_t i = 0; i < sizeof(most) / sizeof(most[0]); i++) {
		if ((i && !scan_mark(text, ':')) ||
		    !record_parse_digits(text, most[i], &numbers[i]))
			return false;
	}
	*cap = (struct host_cap){
		.id = numbers[0],
		.cut = numbers[1],
		.saved = numbers[2],
		.limit = (uint32_t)numbers[3],
		.leaves = (uint32_t)numbers[4],
		.begin_s = (int64_t)numbers[5],
		.tokens = numbers[6],
		.epoch = (uint32_t)numbers[7],
	};
	return cap->leaves;
}

void record_parse_caps(const char *text, struct host_caps *caps)
{
	char value[HOST_CAPS_TEXT];
	const char *at = value;

	caps->count = 0;
	if (!find_line(text, "caps", value, sizeof(value)))
		return;
	while (*at) {
		if (caps->count == HOST_CAPS_MAX || (caps->count && !scan_mark(&at, ' ')) ||
		    !parse_cap(&at, &caps->list[caps->count])) {
			caps->count = 0;
			return;
		}
		caps->count++;
	}
}

/* The rate that *@text begins with, at most RATE_MOST; moves *@text behind it. */
static bool parse_rate(const char **text, double *rate)
{
	size_t length = strspn(*text, "0123456789.e+-");
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*rate = strtod(*text, &end);
	if (end != *text + length || !(*rate <= RATE_MOST))
		return false;
	*text = end;
	return true;
}

/* All of the line, or nothing. */
static void parse_uses(const char *text, struct host_record *host)
{
	uint64_t waiting;

	while (*text) {
		struct host_use *use = &host->uses[host->use_count];

		if (host->use_count == HOST_USES_MAX ||
		    !record_parse_digits(&text, INT64_MAX, &use->id) || !scan_mark(&text, ':') ||
		    !parse_rate(&text, &use->granted) || !scan_mark(&text, ':') ||
		    !record_parse_digits(&text, UINT32_MAX, &waiting) ||
		    (*text && !scan_mark(&text, ' '))) {
			host->use_count = 0;
			return;
		}
		use->waiting = (uint32_t)waiting;
		host->use_count++;
	}
	host->has_uses = true;
}

/* Parses the slot that *@text begins with, and moves *@text behind it. */
static bool parse_slot(const char **text, struct host_slot *slot)
{
	uint64_t pid, uid, held_s;
	size_t length;

	if (!record_parse_digits(text, INT64_MAX, &slot->id) || !scan_mark(text, ':') ||
	    !record_parse_digits(text, UINT32_MAX, &pid) || !scan_mark(text, ':') ||
	    !record_parse_digits(text, UINT32_MAX, &uid) || !scan_mark(text, ':') ||
	    !record_parse_digits(text, UINT32_MAX, &held_s) || !scan_mark(text, ':'))
		return false;
	length = strcspn(*text, " ");
	if (!length || length >= COMMAND_TEXT)
		return false;
	memcpy(slot->command, *text, length);
	slot->command[length] = '\0';
	clean_command(slot->command);
	slot->pid = (uint32_t)pid;
	slot->uid = (uint32_t)uid;
	slot->held_s = (uint32_t)held_s;
	*text += length;
	return true;
}

/* All of the line, or nothing. */
static void parse_slots(const char *text, struct host_record *host)
{
	while (*text) {
		if (host->slot_count == HOST_SLOTS_MAX ||
		    !parse_slot(&text, &host->slots[host->slot_count]) ||
		    (*text && !scan_mark(&text, ' '))) {
			host->slot_count = 0;
			return;
		}
		host->slot_count++;
	}
}

const struct host_use *record_use(const struct host_record *host, uint64_t id)
{
	static const struct host_use none;

	for (uint32_t i = 0; i < host->use_count; i++) {
		if (host->uses[i].id == id)
			return &host->uses[i];
	}
	return host->has_uses && host->use_count < HOST_USES_MAX ? &none : NULL;
}

int record_parse_host(const char *text, struct host_record *host)
{
	char uses[HOST_USES_TEXT], slots[HOST_SLOTS_TEXT];
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
	if (find_line(text, "uses", uses, sizeof(uses)))
		parse_uses(uses, host);
	if (find_line(text, "slots", slots, sizeof(slots)))
		parse_slots(slots, host);
	return 0;
}

enum { AGREED_RATE_PERIODS_MAX = 1000000 };

static void print_real(double value, char text[QUANTITY_TEXT])
{
	if (value < RATE_MOST)
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
	return *value && !*end && *real >= 0 && *real < RATE_MOST;
}

void record_print_agreed_rate(const struct adapt_state *state, enum adapt_kind kind,
			      char text[AGREED_RATE_TEXT])
{
	char rate[QUANTITY_TEXT], ceiling[QUANTITY_TEXT];

	print_real(state->rate, rate);
	print_real(state->ceiling, ceiling);
	snprintf(text, AGREED_RATE_TEXT,
		 "kind=%d\nrate=%s\nceiling=%s\nheld=%u\nhold=%u\ngrown=%.6f\n", kind, rate,
		 ceiling, state->held, state->hold, fmin(state->grown_s, RATE_MOST / 2));
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

enum { HEX_DIGITS = 16, BITS_OF_WORD = 64 };

static const uint64_t REST_MAX_MS = DURATION_MAX_NS / 1000000;

void record_print_told(const struct told_quotas *quotas, char text[TOLD_TEXT])
{
	size_t used = (size_t)snprintf(text, TOLD_TEXT, "quotas=%" PRIu32 "\n", quotas->count);

	for (uint32_t i = 0; i < quotas->count; i++) {
		const struct told_quota *quota = &quotas->list[i];
		uint64_t rest_ms = quota->rest_ms < REST_MAX_MS ? quota->rest_ms : REST_MAX_MS;

		used += (size_t)snprintf(text + used, TOLD_TEXT - used,
					 "%016" PRIx64 ",%" PRIu64 ",%" PRIu64 ",%s\n", quota->id,
					 quota->tokens, rest_ms, quota->unit);
	}
}

/* Reads so many hexadecimal digits as a number has, and moves *@text behind them. */
static bool parse_hex(const char **text, uint64_t *number)
{
	char digits[HEX_DIGITS + 1] = "";

	strncpy(digits, *text, HEX_DIGITS);
	if (strspn(digits, "0123456789abcdef") != HEX_DIGITS)
		return false;
	*number = strtoull(digits, NULL, HEX_DIGITS);
	*text += HEX_DIGITS;
	return true;
}

static bool parse_comma(const char **text)
{
	return *(*text)++ == ',';
}

/* Reads a line, and moves *@text behind it. */
static bool parse_told(const char **text, struct told_quota *quota)
{
	size_t length;

	if (!parse_hex(text, &quota->id) || quota->id <= ALLOWANCE_JOINED || !parse_comma(text) ||
	    !record_parse_digits(text, TOKENS_MAX, &quota->tokens) || !parse_comma(text) ||
	    !record_parse_digits(text, REST_MAX_MS, &quota->rest_ms) || !quota->rest_ms ||
	    !parse_comma(text))
		return false;
	length = strcspn(*text, "\n");
	if ((*text)[length] != '\n' || (length && !amount_read_unit(*text, length, quota->unit)))
		return false;
	*text += length + 1;
	return true;
}

int record_parse_told(const char *text, struct told_quotas *quotas)
{
	static const char BEGIN[] = "quotas=";
	uint64_t count;

	*quotas = (struct told_quotas){0};
	if (strncmp(text, BEGIN, sizeof(BEGIN) - 1) != 0)
		return -EINVAL;
	text += sizeof(BEGIN) - 1;
	if (!record_parse_digits(&text, TOLD_QUOTAS_MAX, &count) || *text++ != '\n')
		return -EINVAL;
	for (; quotas->count < count; quotas->count++) {
		if (!parse_told(&text, &quotas->list[quotas->count]))
			return -EINVAL;
	}
	return *text ? -EINVAL : 0;
}

void record_mark_told(struct told_marks *marks, uint64_t id)
{
	marks->bits[id % TOLD_MARKS / BITS_OF_WORD] |= UINT64_C(1) << id % BITS_OF_WORD;
}

bool record_is_marked(const struct told_marks *marks, uint64_t id)
{
	return marks->bits[id % TOLD_MARKS / BITS_OF_WORD] >> id % BITS_OF_WORD & 1;
}

void record_print_told_marks(const struct told_marks *marks, char text[TOLD_MARKS_TEXT])
{
	size_t used = (size_t)snprintf(text, TOLD_MARKS_TEXT, "told=");

	for (size_t i = 0; i < TOLD_MARKS / BITS_OF_WORD; i++)
		used += (size_t)snprintf(text + used, TOLD_MARKS_TEXT - used, "%016" PRIx64,
					 marks->bits[i]);
	snprintf(text + used, TOLD_MARKS_TEXT - used, "\n");
}

void record_parse_told_marks(const char *text, struct told_marks *marks)
{
	static const char BEGIN[] = "told=";
	bool all = *text && strncmp(text, BEGIN, sizeof(BEGIN) - 1) != 0;

	*marks = (struct told_marks){{0}};
	if (!*text)
		return;
	if (!all)
		text += sizeof(BEGIN) - 1;
	for (size_t i = 0; i < TOLD_MARKS / BITS_OF_WORD && !all; i++)
		all = !parse_hex(&text, &marks->bits[i]);
	if (all || strcmp(text, "\n") != 0)
		memset(marks, 0xff, sizeof(*marks));
}
