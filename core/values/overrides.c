/* overrides - rates and bursts of single keys, see overrides.h. */
#include "core/values/overrides.h"
#include "core/values/calendar.h"
#include "core/values/settings.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(RATE_KIND_COUNT <= 8, "windows are bits of a byte");

struct overrides {
	uint32_t references;
	uint32_t count; /* of names */
	bool limits;
	bool has_units;
	uint8_t windows; /* overrides_windows() */
	size_t length;
	char text[];
};

static const char PREFIX[] = "key.";
enum { PREFIX_BYTES = sizeof(PREFIX) - 1 };

static const struct {
	const char *name;
	enum setting_id setting; /* the one that it stands for */
} VALUES[OVERRIDE_VALUES] = {
	[OVERRIDE_BURST] = {"burst", SETTING_KEY_BURST},
	[OVERRIDE_RATE] = {"rate", SETTING_KEY_RATE},
};

/* A line of a table, or of edits. */
struct line {
	const char *name; /* as it is written */
	size_t name_length;
	enum override_value value;
	const char *text;
	size_t text_length;
	const char *end; /* where the next line begins */
};

struct overrides *overrides_hold(const struct overrides *overrides)
{
	struct overrides *held = (struct overrides *)overrides;

	if (held)
		held->references++;
	return held;
}

void overrides_drop(const struct overrides *overrides)
{
	struct overrides *held = (struct overrides *)overrides;

	if (!held)
		return;
	assert(held->references);
	if (!--held->references)
		free(held);
}

uint32_t overrides_count(const struct overrides *overrides)
{
	return overrides ? overrides->count : 0;
}

const char *overrides_text(const struct overrides *overrides)
{
	return overrides ? overrides->text : "";
}

size_t overrides_length(const struct overrides *overrides)
{
	return overrides ? overrides->length : 0;
}

bool overrides_equal(const struct overrides *a, const struct overrides *b)
{
	return a == b || (overrides_length(a) == overrides_length(b) &&
			  !memcmp(overrides_text(a), overrides_text(b), overrides_length(a)));
}

bool overrides_limit(const struct overrides *overrides)
{
	return overrides && overrides->limits;
}

/* Names. */

static bool is_plain(char c)
{
	return (unsigned char)c > ' ' && c != 0x7f && c != '=' && c != '%';
}

/* Writes @name as lines have it. Returns its length then. */
static size_t print_name(const char *name, size_t length, char text[OVERRIDE_NAME_TEXT])
{
	static const char digits[] = "0123456789ABCDEF";
	char *to = text;

	assert(length <= NAME_BYTES_MAX);
	for (size_t i = 0; i < length; i++) {
		if (is_plain(name[i])) {
			*to++ = name[i];
			continue;
		}
		*to++ = '%';
		*to++ = digits[(unsigned char)name[i] >> 4];
		*to++ = digits[name[i] & 15];
	}
	*to = '\0';
	return (size_t)(to - text);
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads the @length bytes of @text, a name as it is written. False: it is no key's. */
static bool parse_name(const char *text, size_t length, char name[NAME_BYTES_MAX + 1])
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		int byte = (unsigned char)text[i];

		if (text[i] == '%') {
			int high = i + 2 < length ? digit_of(text[i + 1]) : -1;
			int low = high >= 0 ? digit_of(text[i + 2]) : -1;

			if (low < 0)
				return false;
			byte = high << 4 | low;
			i += 2;
		}
		if (!byte || byte == '/' || used == NAME_BYTES_MAX)
			return false;
		name[used++] = (char)byte;
	}
	name[used] = '\0';
	return used && *name != '.';
}

static int compare_names(const char *a, size_t a_length, const char *b, size_t b_length)
{
	int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

	return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Lines. */

static struct line read_line(const char *at)
{
	struct line line = {.name = at + PREFIX_BYTES};
	const char *equals = strchr(line.name, '=');
	const char *dot = memrchr(line.name, '.', (size_t)(equals - line.name));

	line.name_length = (size_t)(dot - line.name);
	line.value = dot[1] == *VALUES[OVERRIDE_RATE].name ? OVERRIDE_RATE : OVERRIDE_BURST;
	line.text = equals + 1;
	line.text_length = strcspn(line.text, "\n");
	line.end = line.text + line.text_length + 1;
	return line;
}

static int compare_lines(const struct line *a, const struct line *b)
{
	int order = compare_names(a->name, a->name_length, b->name, b->name_length);

	return order ? order : (int)a->value - (int)b->value;
}

/* Returns the first line whose name is not before @name, as it is written; or the end. */
static const char *find_line(const struct overrides *overrides, const char *name, size_t length)
{
	const char *low = overrides->text, *high = low + overrides->length;

	while (low < high) {
		const char *middle = low + (high - low) / 2, *start;
		struct line line;

		start = middle > low ? memrchr(low, '\n', (size_t)(middle - low)) : NULL;
		start = start ? start + 1 : low;
		line = read_line(start);
		if (compare_names(line.name, line.name_length, name, length) < 0)
			low = line.end;
		else
			high = start;
	}
	return low;
}

bool overrides_are_strict(const struct overrides *overrides)
{
	/* Names have no end of a line. */
	return overrides && strstr(overrides_text(overrides), ",strict\n");
}

/* Reads the value of @line, which was checked when it was written. */
static void read_value(const struct line *line, struct override *override)
{
	struct settings settings = SETTINGS_DEFAULT;
	char text[SETTING_TEXT], error[ERROR_TEXT];

	memcpy(text, line->text, line->text_length);
	text[line->text_length] = '\0';
	(void)setting_parse(VALUES[line->value].setting, text, &settings, error);
	if (line->value == OVERRIDE_BURST) {
		override->burst = settings.key_burst;
		return;
	}
	override->has_rate = true;
	override->rate = settings.key_rate;
	override->unit_count = settings.key_unit_count;
	memcpy(override->units, settings_key_units(&settings),
	       settings.key_unit_count * sizeof(*override->units));
}

/* Tells whether one of @units has the first @length bytes of @name as its unit, and @kind. */
static bool is_unit_of(const char *name, size_t length, uint8_t kind, const struct limit *units,
		       uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if (rate_window_kind(&units[i].rate) == kind && strlen(units[i].unit) == length &&
		    !memcmp(units[i].unit, name, length))
			return true;
	}
	return false;
}

uint32_t overrides_windows(const struct overrides *overrides)
{
	return overrides ? overrides->windows : 0;
}

/* Returns overrides_windows() of @line alone. A rate is not read for that: there may be many. */
static uint8_t windows_in(const struct line *line)
{
	const char *end = line->text + line->text_length, *word = line->text;
	uint8_t windows = 0;

	while (word < end) {
		size_t length = strcspn(word, " \n");

		if (!memchr(word, '=', length))
			windows |= (uint8_t)(1u << calendar_kind(word, length));
		word += length + 1;
	}
	return windows & (uint8_t)~1u;
}

/*
 * Returns the first unit in @line that is none of @units, or of other windows, and its length;
 * NULL: there is none. A rate is not read for that: there may be many.
 */
static const char *foreign_unit(const struct line *line, const struct limit *units, uint32_t count,
				size_t *length)
{
	const char *end = line->text + line->text_length, *word = line->text, *equals;

	while ((equals = memchr(word, '=', (size_t)(end - word)))) {
		const char *blank = memrchr(word, ' ', (size_t)(equals - word));

		word = blank ? blank + 1 : word;
		*length = (size_t)(equals - word);
		if (!is_unit_of(word, *length,
				calendar_kind(equals + 1, strcspn(equals + 1, " \n")), units,
				count))
			return word;
		word = equals + 1;
	}
	return NULL;
}

int overrides_check_units(const struct overrides *overrides, const struct limit *units,
			  uint32_t count, char error[ERROR_TEXT])
{
	struct line line;
	const char *unit;
	size_t length;
	uint32_t windows = overrides_windows(overrides);

	for (uint32_t i = 0; i < count; i++) {
		if (!*units[i].unit)
			windows &= ~(1u << rate_window_kind(&units[i].rate));
	}
	if (windows && count + (uint32_t)__builtin_popcount(windows) > LIMITS_MAX) {
		snprintf(error, ERROR_TEXT,
			 "more than 8 limits: units and windows of key_rate, and windows of keys");
		return -ERANGE;
	}
	if (!overrides || !overrides->has_units)
		return 0;
	for (const char *at = overrides->text; *at; at = line.end) {
		line = read_line(at);
		unit = foreign_unit(&line, units, count, &length);
		if (!unit)
			continue;
		snprintf(error, ERROR_TEXT,
			 "%s%.*s.rate has the unit %.*s: it can have units of key_rate alone",
			 PREFIX, (int)(line.name_length < 80 ? line.name_length : 80), line.name,
			 (int)length, unit);
		return -ERANGE;
	}
	return 0;
}

bool overrides_find(const struct overrides *overrides, const char *name, size_t length,
		    struct override *override)
{
	char text[OVERRIDE_NAME_TEXT];
	size_t text_length;
	const char *at;
	bool found = false;

	if (!overrides)
		return false;
	*override = (struct override){.burst = 0};
	text_length = print_name(name, length, text);
	for (at = find_line(overrides, text, text_length); *at;) {
		struct line line = read_line(at);

		if (compare_names(line.name, line.name_length, text, text_length) != 0)
			break;
		read_value(&line, override);
		found = true;
		at = line.end;
	}
	return found;
}

/* Returns where the lines of the name end that *@line, at @at, is of. */
static const char *end_of_name(const char *at, struct line *line)
{
	const char *end;

	*line = read_line(at);
	for (end = line->end; *end;) {
		struct line next = read_line(end);

		if (compare_names(line->name, line->name_length, next.name, next.name_length) != 0)
			break;
		end = next.end;
	}
	return end;
}

void overrides_compare(const struct overrides *a, const struct overrides *b,
		       bool (*each)(void *argument, const char *name), void *argument)
{
	const char *of_a = overrides_text(a), *of_b = overrides_text(b);
	bool more = true;

	while (more && (*of_a || *of_b)) {
		struct line line_a, line_b;
		const char *end_a = *of_a ? end_of_name(of_a, &line_a) : of_a;
		const char *end_b = *of_b ? end_of_name(of_b, &line_b) : of_b;
		char name[NAME_BYTES_MAX + 1];
		int order = !*of_a   ? 1
			    : !*of_b ? -1
				     : compare_names(line_a.name, line_a.name_length, line_b.name,
						     line_b.name_length);
		const struct line *line = order <= 0 ? &line_a : &line_b;

		if (order || end_a - of_a != end_b - of_b ||
		    memcmp(of_a, of_b, (size_t)(end_a - of_a)) != 0)
			more = parse_name(line->name, line->name_length, name) &&
			       each(argument, name);
		of_a = order <= 0 ? end_a : of_a;
		of_b = order >= 0 ? end_b : of_b;
	}
}

/* Copies the value of the line at @at, or `default` if there is none, to @text. */
static void copy_value(const struct line *line, char text[SETTING_TEXT])
{
	if (line)
		snprintf(text, SETTING_TEXT, "%.*s", (int)line->text_length, line->text);
	else
		snprintf(text, SETTING_TEXT, "default");
}

void overrides_changes(const struct overrides *before, const struct overrides *now,
		       void (*each)(void *argument, const char *what, const char *value,
				    const char *was),
		       void *argument)
{
	const char *old = overrides_text(before), *new = overrides_text(now);

	while (*old || *new) {
		struct line of_old, of_new;
		const struct line *line;
		char what[OVERRIDE_TEXT], value[SETTING_TEXT], was[SETTING_TEXT];
		int order;

		if (*old)
			of_old = read_line(old);
		if (*new)
			of_new = read_line(new);
		order = !*old ? 1 : !*new ? -1 : compare_lines(&of_old, &of_new);
		line = order <= 0 ? &of_old : &of_new;
		copy_value(order >= 0 ? &of_new : NULL, value);
		copy_value(order <= 0 ? &of_old : NULL, was);
		snprintf(what, sizeof(what), "%s%.*s.%s", PREFIX, (int)line->name_length,
			 line->name, VALUES[line->value].name);
		if (strcmp(value, was) != 0)
			each(argument, what, value, was);
		old = order <= 0 ? of_old.end : old;
		new = order >= 0 ? of_new.end : new;
	}
}

/* Edits. */

const char *overrides_line(const char *line)
{
	return strncmp(line, PREFIX, PREFIX_BYTES) != 0 ? NULL : line + PREFIX_BYTES;
}

static bool make_room(struct override_edits *edits, size_t length)
{
	size_t room = edits->room ? edits->room : OVERRIDE_TEXT;
	char *text;

	while (room < edits->length + length + 1)
		room *= 2;
	if (room == edits->room)
		return true;
	text = realloc(edits->text, room);
	if (!text)
		return false;
	edits->text = text;
	edits->room = room;
	return true;
}

int overrides_edit(struct override_edits *edits, const char *name, enum override_value value,
		   const char *text, char error[ERROR_TEXT])
{
	struct settings settings = SETTINGS_DEFAULT;
	char printed[SETTING_TEXT], line[OVERRIDE_TEXT], written[OVERRIDE_NAME_TEXT];
	size_t length;
	int err;

	if (text_copy(text, strlen(text), printed, sizeof(printed)))
		return text_refuse(-EINVAL, error, text, "too long");
	if (!strcmp(printed, "default")) {
		*printed = '\0';
	} else {
		err = setting_parse(VALUES[value].setting, printed, &settings, error);
		if (err)
			return err;
		setting_print(VALUES[value].setting, &settings, printed);
	}
	print_name(name, strlen(name), written);
	length = (size_t)snprintf(line, sizeof(line), "%s%s.%s=%s\n", PREFIX, written,
				  VALUES[value].name, printed);
	assert(length < sizeof(line));
	if (!make_room(edits, length)) {
		snprintf(error, ERROR_TEXT, "no memory for overrides");
		return -ENOMEM;
	}
	memcpy(edits->text + edits->length, line, length + 1);
	edits->length += length;
	edits->count++;
	return 0;
}

int overrides_edit_line(struct override_edits *edits, const char *line, char error[ERROR_TEXT])
{
	static const char grammar[] = "not a value of a key: key.KEY.rate or key.KEY.burst";
	const char *equals = strchr(line, '=');
	const char *end = equals, *dot;
	char name[NAME_BYTES_MAX + 1];

	while (end && end > line && strchr(TEXT_SPACE, end[-1]))
		end--;
	dot = end ? memrchr(line, '.', (size_t)(end - line)) : NULL;
	if (!dot)
		return text_refuse(-EINVAL, error, line, grammar);
	if (!parse_name(line, (size_t)(dot - line), name))
		return text_refuse(-EINVAL, error, line,
				   "not the name of a key: 1 to 255 bytes, no slash, no dot at "
				   "its beginning; % with two hexadecimal digits for any byte");
	for (int i = 0; i < OVERRIDE_VALUES; i++) {
		const char *value = VALUES[i].name;

		if ((size_t)(end - dot - 1) == strlen(value) &&
		    !strncmp(dot + 1, value, strlen(value)))
			return overrides_edit(edits, name, (enum override_value)i, equals + 1,
					      error);
	}
	return text_refuse(-EINVAL, error, line, grammar);
}

/* By name and value, and as they were added. */
static int compare_edits(const void *a, const void *b)
{
	const char *one = *(const char *const *)a, *other = *(const char *const *)b;
	struct line line_a = read_line(one), line_b = read_line(other);
	int order = compare_lines(&line_a, &line_b);

	return order ? order : (one > other) - (one < other);
}

/* Returns the lines of @edits in their order, and NULL; of one value the last. NULL: no memory. */
static const char **sort_edits(const struct override_edits *edits)
{
	const char **sorted = calloc(edits->count + 1, sizeof(*sorted)), *at = edits->text;
	uint32_t kept = 0;

	if (!sorted)
		return NULL;
	for (uint32_t i = 0; i < edits->count; i++) {
		sorted[i] = at;
		at = read_line(at).end;
	}
	if (edits->count)
		qsort(sorted, edits->count, sizeof(*sorted), compare_edits);
	for (uint32_t i = 0; i < edits->count; i++) {
		struct line line = read_line(sorted[i]), before;

		before = kept ? read_line(sorted[kept - 1]) : line;
		if (kept && !compare_lines(&line, &before))
			kept--;
		sorted[kept++] = sorted[i];
	}
	sorted[kept] = NULL;
	return sorted;
}

/* Adds the line from @at on to @made, whose last one is *@last, unless it takes a value away. */
static void append_line(struct overrides *made, const struct line *line, const char *at,
			struct line *last)
{
	size_t bytes = (size_t)(line->end - at);

	if (!line->text_length)
		return;
	if (!made->length ||
	    compare_names(line->name, line->name_length, last->name, last->name_length) != 0)
		made->count++;
	made->limits |= line->value == OVERRIDE_RATE && strncmp(line->text, "max\n", 4) != 0;
	made->has_units |= memchr(line->text, '=', line->text_length) != NULL;
	if (memchr(line->text, '@', line->text_length))
		made->windows |= windows_in(line);
	memcpy(made->text + made->length, at, bytes);
	made->length += bytes;
	*last = *line;
}

/* Fills @made with the lines of @old and those of @sorted, which count where both have one. */
static void merge(struct overrides *made, const struct overrides *old, const char **sorted)
{
	const char *at = overrides_text(old);
	struct line last = {.name = NULL};

	while (*at || *sorted) {
		struct line of_old, of_edit;
		int order;

		if (*at)
			of_old = read_line(at);
		if (*sorted)
			of_edit = read_line(*sorted);
		order = !*at ? 1 : !*sorted ? -1 : compare_lines(&of_old, &of_edit);
		if (order < 0)
			append_line(made, &of_old, at, &last);
		else
			append_line(made, &of_edit, *sorted++, &last);
		at = order <= 0 ? of_old.end : at;
	}
	made->text[made->length] = '\0';
}

static int check_bounds(const struct overrides *made, char error[ERROR_TEXT])
{
	if (made->count > OVERRIDES_MAX)
		snprintf(error, ERROR_TEXT,
			 "there are %d keys with overrides, the most there can be", OVERRIDES_MAX);
	else if (made->length > OVERRIDES_TEXT_MAX)
		snprintf(error, ERROR_TEXT, "the lines of overrides have more than %d bytes",
			 OVERRIDES_TEXT_MAX);
	else
		return 0;
	return -ENOSPC;
}

int overrides_apply(struct override_edits *edits, struct overrides **overrides,
		    char error[ERROR_TEXT])
{
	size_t most = overrides_length(*overrides) + edits->length + 1;
	const char **sorted = sort_edits(edits);
	struct overrides *made = sorted ? calloc(1, sizeof(*made) + most) : NULL, *fitting;
	int err = made ? 0 : -ENOMEM;

	if (made) {
		made->references = 1;
		merge(made, *overrides, sorted);
		err = check_bounds(made, error);
	} else {
		snprintf(error, ERROR_TEXT, "no memory for overrides");
	}
	free(sorted);
	if (err || !made->length) {
		free(made);
		made = NULL;
	}
	if (err)
		return err;
	fitting = made ? realloc(made, sizeof(*made) + made->length + 1) : NULL;
	overrides_drop(*overrides);
	*overrides = fitting ? fitting : made;
	return 0;
}

void overrides_end_edits(struct override_edits *edits)
{
	free(edits->text);
	*edits = (struct override_edits){.text = NULL};
}
