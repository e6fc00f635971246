/* settings_file - the limiters of `-o config=FILE`, see settings_file.h. */
#include "fs/local/settings_file.h"
#include "fs/base/account.h"
#include "fs/base/log.h"
#include "fs/local/store.h"
#include "fs/mount/daemon.h"
#include "fs/mount/wake.h"
#include "fs/mount/write.h"
#include "fs/mount/node.h"

#include "core/values/ini.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACCESS_DEFAULT = 0755 };

/* How long a source may take, and between two looks. */
static const uint64_t PATIENCE_NS = 10 * NSEC_PER_SEC;
static const struct timespec STEP = {.tv_nsec = 2000000};

/* Runs the engine until @writer's change is done. 0, or -ETIMEDOUT: then it is freed when it is. */
static int await_change(struct daemon *daemon, struct writer *writer)
{
	uint64_t until_ns = clock_ns() + PATIENCE_NS;
	bool done, late;

	for (;;) {
		daemon_lock(daemon);
		done = writer->done;
		late = !done && (clock_ns() >= until_ns || wake_is_ending());
		if (late)
			writer->awaited = false;
		daemon_unlock(daemon);
		if (done || late)
			return late ? -ETIMEDOUT : 0;
		nanosleep(&STEP, NULL);
		daemon_run(daemon);
	}
}

/* Returns the owner of limiters and of the top, unless a section says otherwise. */
static struct owner default_owner(void)
{
	return (struct owner){getuid(), getgid(), ACCESS_DEFAULT};
}

/* Has the change of @writer made, and frees it; *@made, if it is not NULL, is what was made. */
static int submit_change(struct daemon *daemon, struct writer *writer, struct limiter **made,
			 char error[ERROR_TEXT])
{
	struct change *change = &writer->change;
	uint64_t now_ns;
	int err;

	writer->awaited = true;
	daemon_lock(daemon);
	now_ns = clock_ns();
	daemon_tell_wall(daemon, now_ns);
	change_begin(&daemon->engine, change, now_ns);
	daemon_unlock(daemon);
	err = await_change(daemon, writer);
	if (err) {
		snprintf(error, ERROR_TEXT, "the source does not answer");
		return err;
	}
	err = change->outcome;
	if (made)
		*made = change->made;
	memcpy(error, change->error, ERROR_TEXT);
	free(writer);
	return err;
}

/* Makes limiter @name below @parent, with the settings in @text or none. */
static int make_limiter(struct daemon *daemon, struct limiter *parent, const char *name,
			const char *text, const struct owner *owner, struct limiter **made,
			char error[ERROR_TEXT])
{
	struct writer *writer;

	if (node_name_is_taken(name)) {
		snprintf(error, ERROR_TEXT, "'%.200s' is the name of a control file", name);
		return -EEXIST;
	}
	writer = write_new(text, text ? strlen(text) : 0);
	if (!writer)
		return -ENOMEM;
	writer->change.kind = CHANGE_MAKE;
	writer->change.limiter = parent;
	writer->change.owner = *owner;
	strcpy(writer->change.name, name);
	return submit_change(daemon, writer, made, error);
}

/* Gives @limiter away. */
static int give_limiter(struct daemon *daemon, struct limiter *limiter, const struct owner *owner,
			char error[ERROR_TEXT])
{
	struct writer *writer = write_new(NULL, 0);

	if (!writer)
		return -ENOMEM;
	writer->change.kind = CHANGE_OWNER;
	writer->change.limiter = limiter;
	writer->change.owner = *owner;
	return submit_change(daemon, writer, NULL, error);
}

static bool is_owner(const struct limiter *limiter, const struct owner *owner)
{
	return limiter->uid == owner->uid && limiter->gid == owner->gid &&
	       limiter->access == owner->access;
}

/* Applies the section [/] to a top that is as a mount makes it. */
static int give_top(struct daemon *daemon, const struct owner *owner, char error[ERROR_TEXT])
{
	struct owner untouched = default_owner();
	struct limiter *top = daemon->engine.tree.root;

	if (is_owner(top, owner))
		return 0;
	if (is_owner(top, &untouched))
		return give_limiter(daemon, top, owner, error);
	log_info("the top has an owner already: it stays as it is");
	return 0;
}

/* Gives @limiter, just made, the owner that is @given: a setgid parent gave it its own group. */
static int give_made(struct daemon *daemon, struct limiter *limiter, const struct ini_owner *given,
		     char error[ERROR_TEXT])
{
	struct owner owner = {limiter->uid, limiter->gid, limiter->access};
	int err = account_find(given, &owner, error);

	return err || is_owner(limiter, &owner) ? err
						: give_limiter(daemon, limiter, &owner, error);
}

/* Makes a section's limiter, and those above it that are missing. */
static int make_path(struct daemon *daemon, const struct ini_section *section, const char *text,
		     const struct ini_owner *given, char error[ERROR_TEXT])
{
	struct owner implied = default_owner(), owner = implied;
	struct engine *engine = &daemon->engine;
	struct limiter *limiter = engine->tree.root;
	char path[PATH_TEXT], *rest = path, *name;
	int err;

	err = account_find(given, &owner, error);
	if (err)
		return err;
	memcpy(path, section->path, sizeof(path));
	while ((name = strsep(&rest, "/"))) {
		struct limiter *child = tree_find(&engine->tree, limiter, name);

		if (!child) {
			err = make_limiter(daemon, limiter, name, rest ? NULL : text,
					   rest ? &implied : &owner, &child, error);
			if (!err && !rest)
				err = give_made(daemon, child, given, error);
			if (err)
				return err;
		} else if (!rest) {
			log_info("limiter '%s' is there already: it stays as it is", section->path);
		}
		limiter = child;
	}
	return 0;
}

/* Loads @text, the body of @section, and spoils it. */
static int load_text(struct daemon *daemon, const struct ini_section *section, char *text,
		     char error[ERROR_TEXT])
{
	struct owner owner = default_owner();
	struct ini_owner given;
	int err = ini_take_owner(text, &given, error);

	if (err)
		return err;
	if (*section->path)
		return make_path(daemon, section, ini_is_blank(text) ? NULL : text, &given, error);
	if (!ini_is_blank(text)) {
		snprintf(error, ERROR_TEXT, "%s", INI_TOP_HAS_NO_SETTINGS);
		return -EINVAL;
	}
	err = account_find(&given, &owner, error);
	return err ? err : give_top(daemon, &owner, error);
}

/*
 * Tells that @file is wrong, as compilers do: FILE:LINE: WHY. @error may name a line, counted from
 * the line @before on.
 */
static void tell_wrong(const char *file, unsigned int before, const char *error)
{
	unsigned int line = 0;
	int named = 0;

	if (sscanf(error, "line %u: %n", &line, &named) != 1 || !named)
		line = 0;
	log_error("%s:%u: %s", file, before + line, line ? error + named : error);
}

static int load_section(const char *file, struct daemon *daemon, const struct ini_section *section)
{
	char *text = strndup(section->body, section->length), error[ERROR_TEXT] = "no memory";
	int err = text ? load_text(daemon, section, text, error) : -ENOMEM;

	if (err)
		tell_wrong(file, section->line, error);
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
	int err = text ? store_read_given(file, text, SETTINGS_FILE_BYTES) : -ENOMEM;

	if (err) {
		log_error("%s: %s", file, strerror(-err));
		goto out;
	}
	while ((err = ini_next(&ini, &section, error)) > 0) {
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
		tell_wrong(file, 0, error);
out:
	free(text);
	return err;
}
