/* inspect - finds the mistakes in a file of limiters, see inspect.h. */
#include "companions/inspect.h"

#include "core/values/ini.h"
#include "core/values/minima.h"
#include "fs/local/store.h"
#include "fs/mount/node.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char SPACE[] = " \t\r\v\f";

/* The lines of a section beside its settings. */
static const char *const OWNERS[] = {"owner", "group", "mode"};
enum {
	OWNER_COUNT = sizeof(OWNERS) / sizeof(OWNERS[0]),
	KIND_COUNT = SETTING_COUNT + OWNER_COUNT,
};

void inspect_complain(struct inspection *inspection, unsigned int line, const char *why)
{
	inspection->wrong++;
	if (line)
		fprintf(inspection->out, "%s:%u: ", inspection->file, line);
	else
		fprintf(inspection->out, "%s: ", inspection->file);
	/* It has what is wrong, which is not to command a terminal. */
	for (; *why; why++)
		fputc((unsigned char)*why < ' ' || *why == '\177' ? '?' : *why, inspection->out);
	fputc('\n', inspection->out);
}

/*
 * Checks line @number, @line, by itself; a wrong line becomes blank, and so does one that is no
 * setting. Tells whether it is a setting.
 */
static bool check_line(struct inspection *inspection, unsigned int number, char *line, bool top)
{
	static const char first[] = "line 1: ";
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_owner owner;
	char why[ERROR_TEXT];

	/* Without the number of a line it is a matter of several settings. */
	if (ini_parse(line, &settings, &owner, why) && !strncmp(why, first, strlen(first))) {
		inspect_complain(inspection, number, why + strlen(first));
		memset(line, ' ', strlen(line));
	}
	settings_drop(&settings);
	if (ini_is_blank(line))
		return false;
	if (!top)
		return true;
	inspect_complain(inspection, number, INI_TOP_HAS_NO_SETTINGS);
	memset(line, ' ', strlen(line));
	return false;
}

/* Returns what @line is of: a setting, or one of OWNERS behind these; KIND_COUNT: of neither. */
static unsigned int kind_of(const char *line)
{
	const char *name = line + strspn(line, SPACE), *end = strchr(name, '=');
	size_t length;
	unsigned int kind;

	if (!end)
		return KIND_COUNT;
	while (end > name && strchr(SPACE, end[-1]))
		end--;
	length = (size_t)(end - name);
	kind = setting_find(name, length);
	for (unsigned int i = 0; kind == SETTING_COUNT && i < OWNER_COUNT; i++) {
		if (strlen(OWNERS[i]) == length && !strncmp(name, OWNERS[i], length))
			return SETTING_COUNT + i;
	}
	return kind < SETTING_COUNT ? kind : KIND_COUNT;
}

/* Notes that line @number, which is right, is of @kind; complains if an earlier one is, too. */
static void note_kind(struct inspection *inspection, unsigned int number, unsigned int kind,
		      unsigned int lines[KIND_COUNT])
{
	char why[ERROR_TEXT];

	if (kind == KIND_COUNT)
		return;
	if (lines[kind]) {
		snprintf(why, sizeof(why), "'%s' again: line %u has no effect",
			 kind < SETTING_COUNT ? setting_name(kind) : OWNERS[kind - SETTING_COUNT],
			 lines[kind]);
		inspect_complain(inspection, number, why);
	}
	lines[kind] = number;
}

/*
 * Checks the settings in @text, the lines after line @line. Each line is parsed by itself, so that
 * a mistake hides none after it; then those that are right are parsed together, to @settings, which
 * are the defaults. @text is spoilt.
 */
static void check_settings(struct inspection *inspection, unsigned int line, char *text, bool top,
			   struct settings *settings)
{
	unsigned int number = line, right = 0, lines[KIND_COUNT] = {0}, wrong, kind;
	char why[ERROR_TEXT], *next;

	for (char *at = text; at; at = next) {
		next = strchr(at, '\n');
		if (next)
			*next = '\0';
		wrong = inspection->wrong;
		kind = kind_of(at);
		right += check_line(inspection, ++number, at, top);
		if (inspection->wrong == wrong)
			note_kind(inspection, number, kind, lines);
		if (next)
			*next++ = '\n';
	}
	if (right && settings_parse(text, settings, why))
		inspect_complain(inspection, line, why);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct named *)a)->path, ((const struct named *)b)->path);
}

/* Returns limiter @path, named now unless an earlier section did; NULL without memory. */
static struct named *add_named(struct inspection *inspection, const char *path, size_t length,
			       unsigned int line)
{
	struct named *named = malloc(sizeof(*named) + length + 1), **found;
	char *copy = (char *)(named + 1);

	if (!named)
		return NULL;
	memcpy(copy, path, length);
	copy[length] = '\0';
	*named = (struct named){.line = line, .path = copy, .room = RATE_UNLIMITED};
	found = tsearch(named, &inspection->named, compare);
	if (!found || *found != named)
		free(named);
	return found ? *found : NULL;
}

struct named *inspect_find(const struct inspection *inspection, const char *path)
{
	const struct named key = {.path = path};
	struct named **found = tfind(&key, &inspection->named, compare);

	return found ? *found : NULL;
}

void inspect_free(struct inspection *inspection)
{
	tdestroy(inspection->named, free);
	inspection->named = NULL;
}

/* Names the limiters on the way to the section's, and its own, which must not be named yet. */
static int check_path(struct inspection *inspection, const struct ini_section *section)
{
	const char *at = section->path;
	char part[NAME_BYTES_MAX + 1], why[ERROR_TEXT];

	for (;;) {
		size_t length = strcspn(at, "/"), whole = (size_t)(at - section->path) + length;
		struct named *named = add_named(inspection, section->path, whole, section->line);

		if (!named)
			return -ENOMEM;
		memcpy(part, at, length);
		part[length] = '\0';
		if (node_name_is_taken(part)) {
			snprintf(why, sizeof(why), "'%.200s' is the name of a control file", part);
			inspect_complain(inspection, section->line, why);
			return 0;
		}
		if (at[length]) {
			at += length + 1;
			continue;
		}
		if (named->line != section->line) {
			snprintf(why, sizeof(why), "no effect: '%.200s' is made by %s, line %u",
				 *section->path ? section->path : "/",
				 named->itself ? "an earlier section" : "a section below it",
				 named->line);
			inspect_complain(inspection, section->line, why);
		}
		named->itself = true;
		return 0;
	}
}

/* Finds the limiter above @path. NULL: @path is the top. */
static struct named *find_above(const struct inspection *inspection, const char *path)
{
	char above[PATH_TEXT] = "";
	const char *slash = strrchr(path, '/');

	if (!*path)
		return NULL;
	if (slash)
		memcpy(above, path, (size_t)(slash - path));
	return inspect_find(inspection, above);
}

/* Notes what the @settings of @section say of minima, unless the section has no effect. */
static void note_min(struct inspection *inspection, const struct ini_section *section,
		     const struct settings *settings)
{
	struct named *named = inspect_find(inspection, section->path);
	struct named *above = find_above(inspection, section->path);

	if (!named || named->line != section->line)
		return;
	named->room = minima_room(settings);
	if (!above || !settings->min.amount)
		return;
	if (!above->minima) {
		*(inspection->last ? inspection->last : &inspection->parents) = above;
		inspection->last = &above->next;
	}
	above->minima += minima_term(settings);
}

/* Checks that limiters in @parent can have their min, all together. */
static void check_minima(struct inspection *inspection, const struct named *parent)
{
	const struct named *above = parent;
	char why[ERROR_TEXT];

	while (above && minima_fit(parent->minima, &above->room))
		above = find_above(inspection, above->path);
	if (!above)
		return;
	minima_refuse(why, parent->minima, parent->path, above->path, &above->room);
	inspect_complain(inspection, parent->line, why);
}

/* Returns the settings after a header that is no path: up to the next header. */
static char *lines_of_bad_section(struct ini *ini)
{
	const char *body = ini->at;

	while (*ini->at) {
		const char *start = ini->at + strspn(ini->at, SPACE);

		if (*start == '[')
			break;
		ini->at += strcspn(ini->at, "\n");
		ini->at += *ini->at == '\n';
		ini->line++;
	}
	return strndup(body, (size_t)(ini->at - body));
}

/* Checks one section, or a header that cannot be one. 1, 0 at the end, -ENOMEM. */
static int check_next(struct inspection *inspection, struct ini *ini)
{
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_section section;
	char why[ERROR_TEXT], *text;
	unsigned int line;
	int found = ini_next(ini, &section, why), err = 0;

	if (!found)
		return 0;
	line = found < 0 ? ini->line : section.line;
	if (found > 0)
		err = check_path(inspection, &section);
	else
		inspect_complain(inspection, line, strchr(why, ':') + 2); /* "line N: WHY" */
	if (err)
		return err;
	text = found > 0 ? strndup(section.body, section.length) : lines_of_bad_section(ini);
	if (!text)
		return -ENOMEM;
	check_settings(inspection, line, text, found > 0 && !*section.path, &settings);
	free(text);
	if (found > 0)
		note_min(inspection, &section, &settings);
	settings_drop(&settings);
	return 1;
}

/* Says what is wrong in @text. 0 or -ENOMEM. */
static int inspect_text(struct inspection *inspection, const char *text)
{
	struct ini ini = {.at = text};
	int more;

	do {
		more = check_next(inspection, &ini);
	} while (more > 0);
	for (const struct named *named = inspection->parents; named && !more; named = named->next)
		check_minima(inspection, named);
	return more;
}

/* Reads the file of @inspection to @text, which has SETTINGS_FILE_BYTES. 0 or -errno. */
static int read_file(struct inspection *inspection, char *text)
{
	int input;

	if (strcmp(inspection->file, "-") != 0)
		return store_read_given(inspection->file, text, SETTINGS_FILE_BYTES);
	inspection->file = "standard input";
	input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
	return input < 0 ? -errno : store_read_all(input, text, SETTINGS_FILE_BYTES);
}

char *inspect_file(struct inspection *inspection)
{
	char *text = malloc(SETTINGS_FILE_BYTES);
	int err = text ? read_file(inspection, text) : -ENOMEM;

	if (err == -EINVAL) {
		inspect_complain(inspection, 0, "not a text: it has a zero byte");
		err = 0;
	} else if (!err) {
		err = inspect_text(inspection, text);
	}
	if (!err)
		return text;
	warnx("%s: %s", inspection->file, strerror(-err));
	free(text);
	return NULL;
}
