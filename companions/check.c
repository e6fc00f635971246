/*
 * check - says what is wrong in a file of limiters, as of the daemon's option config=FILE: every line
 * and not only the first, and sections that would have no effect.
 */
#include "companions/companion.h"

#include "core/ini.h"
#include "core/settings.h"
#include "fs/node.h"
#include "fs/settings_file.h"
#include "fs/store.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct check {
	const char *file;
	unsigned int wrong; /* how many messages */
	void *made;	    /* tree of struct made, by path */
};

/* A limiter that the file makes. */
struct made {
	unsigned int line; /* of the section that does */
	bool named;	   /* by a section of its own, not on the way to one below */
	char path[];
};

static void complain(struct check *check, unsigned int line, const char *why)
{
	check->wrong++;
	if (line)
		printf("%s:%u: %s\n", check->file, line, why);
	else
		printf("%s: %s\n", check->file, why);
}

/*
 * The settings in @text, the lines after line @line. Each line is parsed by itself, so that a mistake
 * hides none after it; then those that are right are parsed together. @text is spoilt.
 */
static void check_settings(struct check *check, unsigned int line, char *text)
{
	struct settings settings = SETTINGS_DEFAULT;
	unsigned int number = line, right = 0;
	char why[ERROR_TEXT], *next;

	for (char *at = text; at; at = next) {
		static const char first[] = "line 1: ";
		bool wrong;

		next = strchr(at, '\n');
		if (next)
			*next = '\0';
		number++;
		settings = SETTINGS_DEFAULT;
		/* Without the number of a line it is no setting, or of several together. */
		wrong = settings_parse(at, &settings, why) && !strncmp(why, first, strlen(first));
		if (wrong) {
			complain(check, number, why + strlen(first));
			memset(at, ' ', strlen(at));
		}
		at += strspn(at, " \t\r\v\f");
		right += *at && *at != '#' && *at != ';';
		if (next)
			*next++ = '\n';
	}
	settings = SETTINGS_DEFAULT;
	if (right && settings_parse(text, &settings, why))
		complain(check, line, why);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct made *)a)->path, ((const struct made *)b)->path);
}

/* The limiter @path, made now unless an earlier section made it; NULL without memory. */
static struct made *make(struct check *check, const char *path, size_t length, unsigned int line)
{
	struct made *made = malloc(sizeof(*made) + length + 1), **found;

	if (!made)
		return NULL;
	*made = (struct made){.line = line};
	memcpy(made->path, path, length);
	made->path[length] = '\0';
	found = tsearch(made, &check->made, compare);
	if (!found || *found != made)
		free(made);
	return found ? *found : NULL;
}

/* The limiters on the way to the section's, and its own, which must not be there yet. */
static int check_path(struct check *check, const struct ini_section *section)
{
	const char *at = section->path;
	char name[NAME_BYTES_MAX + 1], why[ERROR_TEXT];

	for (;;) {
		size_t length = strcspn(at, "/"), whole = (size_t)(at - section->path) + length;
		struct made *made = make(check, section->path, whole, section->line);

		if (!made)
			return -ENOMEM;
		memcpy(name, at, length);
		name[length] = '\0';
		if (node_name_is_taken(name)) {
			snprintf(why, sizeof(why), "'%.200s' is the name of a control file", name);
			complain(check, section->line, why);
			return 0;
		}
		if (at[length]) {
			at += length + 1;
			continue;
		}
		if (made->line != section->line) {
			snprintf(why, sizeof(why), "no effect: '%.200s' is made by %s, line %u",
				 section->path,
				 made->named ? "an earlier section" : "a section below it",
				 made->line);
			complain(check, section->line, why);
		}
		made->named = true;
		return 0;
	}
}

/* The settings after a header that is no path: up to the next header. */
static char *lines_of_bad_section(struct ini *ini)
{
	const char *body = ini->at;

	while (*ini->at) {
		const char *start = ini->at + strspn(ini->at, " \t\r\v\f");

		if (*start == '[')
			break;
		ini->at += strcspn(ini->at, "\n");
		ini->at += *ini->at == '\n';
		ini->line++;
	}
	return strndup(body, (size_t)(ini->at - body));
}

/* One section, or what cannot be one. 1, 0 at the end, -ENOMEM. */
static int check_next(struct check *check, struct ini *ini)
{
	struct ini_section section;
	char why[ERROR_TEXT], *text;
	unsigned int line;
	int found = ini_next(ini, &section, why), err = 0;

	if (!found)
		return 0;
	line = found < 0 ? ini->line : section.line;
	if (found > 0)
		err = check_path(check, &section);
	else
		complain(check, line, strchr(why, ':') + 2); /* "line N: WHY" */
	if (err)
		return err;
	text = found > 0 ? strndup(section.body, section.length) : lines_of_bad_section(ini);
	if (!text)
		return -ENOMEM;
	check_settings(check, line, text);
	free(text);
	return 1;
}

static int check_text(struct check *check, const char *text)
{
	struct ini ini = {.at = text};
	int more;

	do {
		more = check_next(check, &ini);
	} while (more > 0);
	tdestroy(check->made, free);
	return more;
}

static int check_file(const char *file)
{
	struct check check = {.file = file};
	char *text = malloc(SETTINGS_FILE_BYTES);
	int err = text ? store_read(AT_FDCWD, file, text, SETTINGS_FILE_BYTES) : -ENOMEM;

	if (err == -EINVAL) {
		complain(&check, 0, "not a text: it has a zero byte");
		err = 0;
	} else if (!err) {
		err = check_text(&check, text);
	}
	free(text);
	if (err)
		warnx("%s: %s", file, strerror(-err));
	return err || check.wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int check_main(int argc, char *argv[])
{
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		printf("usage: ratefs check FILE\n"
		       "\n"
		       "Says what is wrong in FILE, limiters for ratefs -o config=FILE. Nothing is mounted.\n"
		       "\n"
		       "options:\n"
		       "    -h, --help          print this\n");
		return EXIT_SUCCESS;
	}
	if (argc == 2 && *argv[1] && *argv[1] != '-')
		return check_file(argv[1]);
	if (argc > 2)
		warnx("an argument too many: '%s'", argv[2]);
	else
		warnx(argc == 2 ? "not an option or file: '%s'" : "no file given: '%s'",
		      argc == 2 ? argv[1] : "FILE");
	return companion_usage();
}
