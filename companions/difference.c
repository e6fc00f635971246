/* difference - what differs between two settings, see difference.h. */
#include "companions/difference.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The lines that are to be written, and the outcome of those that were. */
struct writing {
	int directory;
	int err;
	size_t length;
	char lines[CONFIG_TEXT];
};

static_assert(CONFIG_TEXT > SETTING_COUNT * 2 * SETTING_TEXT + OVERRIDE_TEXT, "all settings fit");

/* Calls @each for every value in which @now and @wanted differ. */
static void for_each_change(const struct settings *now, const struct settings *wanted,
			    void (*each)(void *argument, const char *what, const char *value,
					 const char *was),
			    void *argument)
{
	char value[SETTING_TEXT], was[SETTING_TEXT];

	for (int id = 0; id < SETTING_COUNT; id++) {
		if (setting_equal((enum setting_id)id, now, wanted))
			continue;
		setting_print((enum setting_id)id, wanted, value);
		setting_print((enum setting_id)id, now, was);
		each(argument, setting_name((enum setting_id)id), value, was);
	}
	overrides_changes(now->overrides, wanted->overrides, each, argument);
}

/* Writes the lines so far, of which all hold or none. */
static void flush_lines(struct writing *writing)
{
	int file;
	ssize_t put;

	if (!writing->length || writing->err)
		return;
	file = openat(writing->directory, "config", O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	if (file < 0) {
		writing->err = -errno;
		return;
	}
	put = write(file, writing->lines, writing->length);
	writing->err = put < 0 ? -errno : (size_t)put < writing->length ? -EIO : 0;
	close(file);
	writing->length = 0;
}

static void add_line(void *argument, const char *what, const char *value, const char *was)
{
	struct writing *writing = argument;

	(void)was;
	if (writing->length + OVERRIDE_TEXT > sizeof(writing->lines))
		flush_lines(writing);
	if (writing->err)
		return;
	writing->length += (size_t)snprintf(writing->lines + writing->length,
					    sizeof(writing->lines) - writing->length, "%s=%s\n",
					    what, value);
}

int difference_write(int directory, const struct settings *now, const struct settings *wanted)
{
	struct writing *writing = calloc(1, sizeof(*writing));
	int err;

	if (!writing)
		return -ENOMEM;
	writing->directory = directory;
	for_each_change(now, wanted, add_line, writing);
	flush_lines(writing);
	err = writing->err;
	free(writing);
	return err;
}

struct telling {
	bool is_new;
	void (*tell)(void *argument, const char *line);
	void *argument;
};

static void tell_change(void *argument, const char *what, const char *value, const char *was)
{
	const struct telling *telling = argument;
	char line[OVERRIDE_TEXT + 2 * SETTING_TEXT];

	if (telling->is_new)
		snprintf(line, sizeof(line), "%s=%s", what, value);
	else
		snprintf(line, sizeof(line), "%s=%s, was %s", what, value, was);
	telling->tell(telling->argument, line);
}

void difference_tell(const struct settings *now, const struct settings *wanted, bool is_new,
		     void (*tell)(void *argument, const char *line), void *argument)
{
	struct telling telling = {is_new, tell, argument};

	for_each_change(now, wanted, tell_change, &telling);
}
