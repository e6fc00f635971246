/* settings_file - the limiters of `-o config=FILE`, see settings_file.h. */
#include "fs/settings_file.h"
#include "fs/daemon.h"
#include "fs/log.h"
#include "fs/node.h"
#include "fs/store.h"

#include "core/ini.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 16 << 20, ACCESS_DEFAULT = 0755 };

/* Makes limiter @name below @parent, with the settings in @text or none. The source stores at once. */
static int make(struct engine *engine, struct limiter *parent, const char *name, const char *text,
		struct limiter **made, char error[ERROR_TEXT])
{
	struct change *change = calloc(1, sizeof(*change));
	int err;

	if (!change)
		return -ENOMEM;
	if (node_name_is_taken(name)) {
		snprintf(error, ERROR_TEXT, "'%.200s' is the name of a control file", name);
		free(change);
		return -EEXIST;
	}
	change->kind = CHANGE_MAKE;
	change->limiter = parent;
	change->text = text;
	change->owner = (struct owner){getuid(), getgid(), ACCESS_DEFAULT};
	strcpy(change->name, name);
	engine_change(engine, change, clock_ns());
	while (engine_changed(engine) != change)
		;
	err = change->outcome;
	*made = change->made;
	memcpy(error, change->error, ERROR_TEXT);
	free(change);
	return err;
}

/* Makes a section's limiter, and those above it that are missing. */
static int make_path(struct engine *engine, const struct ini_section *section, const char *text,
		     char error[ERROR_TEXT])
{
	struct limiter *limiter = engine->tree.root;
	char path[PATH_TEXT], *rest = path, *name;

	memcpy(path, section->path, sizeof(path));
	while ((name = strsep(&rest, "/"))) {
		struct limiter *child = tree_find(&engine->tree, limiter, name);
		int err;

		if (!child) {
			err = make(engine, limiter, name, rest ? NULL : text, &child, error);
			if (err)
				return err;
		} else if (!rest) {
			log_info("limiter '%s' is there already: it stays as it is", section->path);
		}
		limiter = child;
	}
	return 0;
}

static int load_section(const char *file, struct engine *engine, const struct ini_section *section)
{
	char *text = section->empty ? NULL : strndup(section->body, section->length);
	char error[ERROR_TEXT] = "no memory";
	int err = section->empty || text ? make_path(engine, section, text, error) : -ENOMEM;

	if (err)
		log_error("%s: section [%s] from line %u on: %s", file, section->path,
			  section->line, error);
	free(text);
	return err;
}

int settings_file_load(const char *file, struct engine *engine)
{
	char *text = malloc(FILE_BYTES_MAX), error[ERROR_TEXT];
	struct ini ini = {.at = text};
	struct ini_section section;
	int err = text ? store_read(AT_FDCWD, file, text, FILE_BYTES_MAX) : -ENOMEM;

	if (err) {
		log_error("%s: %s", file, strerror(-err));
		goto out;
	}
	while ((err = ini_next(&ini, &section, error)) > 0) {
		/* The error of a section names the line within it. */
		err = load_section(file, engine, &section);
		if (err)
			goto out;
	}
	if (err)
		log_error("%s: %s", file, error);
out:
	free(text);
	return err;
}
