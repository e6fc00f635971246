/* settings_file - the limiters of `-o config=FILE`, see settings_file.h. */
#include "fs/settings_file.h"
#include "fs/daemon.h"
#include "fs/log.h"
#include "fs/loop.h"
#include "fs/handle.h"
#include "fs/node.h"
#include "fs/store.h"

#include "core/ini.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACCESS_DEFAULT = 0755 };

/* How long a source may take, and between two looks. */
static const uint64_t PATIENCE_NS = 10 * NSEC_PER_SEC;
static const struct timespec STEP = {.tv_nsec = 2000000};

/* Runs the engine until @writer's change is done. 0, or -ETIMEDOUT: then it is freed when it is. */
static int await(struct daemon *daemon, struct writer *writer)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	bool done, late;

	for (;;) {
		daemon_lock(daemon);
		done = writer->done;
		late = !done && (clock_ns() >= until_ns || loop_is_ending());
		if (late)
			writer->awaited = false;
		daemon_unlock(daemon);
		if (done || late)
			return late ? -ETIMEDOUT : 0;
		nanosleep(&STEP, NULL);
		daemon_run(daemon);
	}
}

/* Makes limiter @name below @parent, with the settings in @text or none. */
static int make(struct daemon *daemon, struct limiter *parent, const char *name, const char *text,
		struct limiter **made, char error[ERROR_TEXT])
{
	struct writer *writer;
	struct change *change;
	int err;

	if (node_name_is_taken(name)) {
		snprintf(error, ERROR_TEXT, "'%.200s' is the name of a control file", name);
		return -EEXIST;
	}
	writer = writer_new(text, text ? strlen(text) : 0);
	if (!writer)
		return -ENOMEM;
	writer->awaited = true;
	change = &writer->change;
	change->kind = CHANGE_MAKE;
	change->limiter = parent;
	change->owner = (struct owner){getuid(), getgid(), ACCESS_DEFAULT};
	strcpy(change->name, name);
	daemon_lock(daemon);
	engine_change(&daemon->engine, change, clock_ns());
	daemon_unlock(daemon);
	err = await(daemon, writer);
	if (err) {
		snprintf(error, ERROR_TEXT, "the source does not answer");
		return err;
	}
	err = change->outcome;
	*made = change->made;
	memcpy(error, change->error, ERROR_TEXT);
	free(writer);
	return err;
}

/* Makes a section's limiter, and those above it that are missing. */
static int make_path(struct daemon *daemon, const struct ini_section *section, const char *text,
		     char error[ERROR_TEXT])
{
	struct engine *engine = &daemon->engine;
	struct limiter *limiter = engine->tree.root;
	char path[PATH_TEXT], *rest = path, *name;

	memcpy(path, section->path, sizeof(path));
	while ((name = strsep(&rest, "/"))) {
		struct limiter *child = tree_find(&engine->tree, limiter, name);
		int err;

		if (!child) {
			err = make(daemon, limiter, name, rest ? NULL : text, &child, error);
			if (err)
				return err;
		} else if (!rest) {
			log_info("limiter '%s' is there already: it stays as it is", section->path);
		}
		limiter = child;
	}
	return 0;
}

static int load_section(const char *file, struct daemon *daemon, const struct ini_section *section)
{
	char *text = section->empty ? NULL : strndup(section->body, section->length);
	char error[ERROR_TEXT] = "no memory";
	int err = section->empty || text ? make_path(daemon, section, text, error) : -ENOMEM;

	if (err)
		log_error("%s: section [%s] from line %u on: %s", file, section->path,
			  section->line, error);
	free(text);
	return err;
}

/* Tells whether the coordinator could not make a limiter now, or in time, with nothing wrong. */
static bool may_come_later(int err)
{
	return err == -EHOSTUNREACH || err == -EBUSY || err == -ETIMEDOUT;
}

int settings_file_load(const char *file, struct daemon *daemon)
{
	char *text = malloc(SETTINGS_FILE_BYTES), error[ERROR_TEXT];
	struct ini ini = {.at = text};
	struct ini_section section;
	int err = text ? store_read(AT_FDCWD, file, text, SETTINGS_FILE_BYTES) : -ENOMEM;

	if (err) {
		log_error("%s: %s", file, strerror(-err));
		goto out;
	}
	while ((err = ini_next(&ini, &section, error)) > 0) {
		/* The error of a section names the line within it. */
		err = load_section(file, daemon, &section);
		if (daemon->options->no_wait && may_come_later(err)) {
			log_warning("%s: mounted without the limiters from [%s] on", file,
				    section.path);
			err = 0;
			break;
		}
		if (err)
			goto out;
	}
	if (err)
		log_error("%s: %s", file, error);
out:
	free(text);
	return err;
}
