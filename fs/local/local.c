/* local - settings of one host, see local.h. */
#include "fs/local/local.h"
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/local/levels.h"
#include "fs/local/store.h"
#include "fs/mount/daemon.h"
#include "fs/state/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t LOCK_NS = 2 * NSEC_PER_SEC;
static const struct timespec LOCK_STEP = {.tv_nsec = 20000000};

static const char LOCK_NAME[] = ".lock";

enum { DAMAGED_COPIES_MAX = 100 };

static const char SETTINGS_NAME[] = ".config";

struct local {
	struct source interface;
	struct daemon *daemon; /* borrowed */
	const char *directory; /* borrowed; NULL: nothing is kept */
	int root;	       /* descriptor of the directory */
	int lock;	       /* descriptor of the file that says it is in use */
	bool started;
	pthread_t thread;
	pthread_mutex_t mutex; /* of the two below; never held while the daemon's is asked for */
	pthread_cond_t work;
	struct levels *levels; /* owned while it loads */
	struct change *change; /* to be stored */
	bool stop;
};

static int perform_change(struct local *source, struct change *change)
{
	struct limiter *limiter = change->limiter;
	struct owner owner = {limiter->uid, limiter->gid, limiter->access};
	int err = 0;

	switch (change->kind) {
	case CHANGE_MAKE:
		err = store_make(source->root, change->path, change->name, &change->settings,
				 &change->owner);
		if (err == -EEXIST)
			snprintf(
				change->error, sizeof(change->error),
				"'%.200s' has damaged settings, kept aside in %.200s: look there first",
				change->name, source->directory);
		break;
	case CHANGE_REMOVE:
		err = store_remove(source->root, change->path);
		break;
	case CHANGE_RENAME:
		err = store_rename(source->root, change->path, change->name);
		break;
	case CHANGE_SETTINGS:
		err = store_write(source->root, change->path, &change->settings, &owner);
		break;
	case CHANGE_OWNER:
		err = store_write(source->root, change->path, &change->settings, &change->owner);
		break;
	}
	return err;
}

static void store_change(struct source *interface, struct change *change)
{
	struct local *source = (struct local *)interface;

	if (!source->directory) {
		change_stored(&source->daemon->engine, change, 0);
		return;
	}
	if (!source->started) {
		change_stored(&source->daemon->engine, change, perform_change(source, change));
		return;
	}
	pthread_mutex_lock(&source->mutex);
	source->change = change;
	pthread_cond_signal(&source->work);
	pthread_mutex_unlock(&source->mutex);
}

/* The thread: stores one change after the other. */
static void *store_changes(void *argument)
{
	struct local *source = argument;

	pthread_mutex_lock(&source->mutex);
	for (;;) {
		struct change *change = source->change;
		int err;

		if (!change && source->stop)
			break;
		if (!change) {
			pthread_cond_wait(&source->work, &source->mutex);
			continue;
		}
		source->change = NULL;
		pthread_mutex_unlock(&source->mutex);
		err = perform_change(source, change);
		daemon_lock(source->daemon);
		engine_run(&source->daemon->engine, clock_ns());
		change_stored(&source->daemon->engine, change, err);
		daemon_unlock(source->daemon);
		pthread_mutex_lock(&source->mutex);
	}
	pthread_mutex_unlock(&source->mutex);
	return NULL;
}

/* One whose keeper was killed just now still ends. 0 or -1. */
static int lock_file(int file)
{
	uint64_t until_ns = clock_ns() + LOCK_NS;

	while (flock(file, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK || clock_ns() >= until_ns)
			return -1;
		nanosleep(&LOCK_STEP, NULL);
	}
	return 0;
}

/* Opens the directory and makes sure that nobody else uses it. */
static int open_directory(struct local *source)
{
	const char *directory = source->directory;

	source->root = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (source->root < 0) {
		log_error("cannot open %s: %s", directory, strerror(errno));
		return -1;
	}
	source->lock = openat(source->root, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			      0600);
	if (source->lock < 0) {
		log_error("cannot write to %s: %s", directory, strerror(errno));
		return -1;
	}
	if (lock_file(source->lock)) {
		log_error("%s is in use by another ratefs", directory);
		return -1;
	}
	return 0;
}

static void close_directory(struct local *source)
{
	if (source->lock >= 0)
		close(source->lock);
	if (source->root >= 0)
		close(source->root);
}

struct local *local_open(const char *directory)
{
	struct local *source = calloc(1, sizeof(*source));

	if (!source) {
		log_error("no memory");
		return NULL;
	}
	source->interface.store = store_change;
	source->directory = directory;
	source->root = -1;
	source->lock = -1;
	if (directory && open_directory(source)) {
		close_directory(source);
		free(source);
		return NULL;
	}
	pthread_mutex_init(&source->mutex, NULL);
	pthread_cond_init(&source->work, NULL);
	return source;
}

struct source *local_source(struct local *source)
{
	return &source->interface;
}

/* Keeps a damaged file where nothing overwrites it. */
static void keep_aside(struct local *source, int directory, const char *path, const char *why)
{
	char kept[64] = ".config.damaged";
	int err = -EEXIST;

	for (int i = 1; err == -EEXIST && i < DAMAGED_COPIES_MAX; i++) {
		err = renameat2(directory, SETTINGS_NAME, directory, kept, RENAME_NOREPLACE)
			      ? -errno
			      : 0;
		if (err == -EEXIST)
			snprintf(kept, sizeof(kept), ".config.damaged.%d", i);
	}
	fsync(directory);
	source->daemon->damaged++;
	if (err)
		log_error("damaged settings of '%s' in %s/%s/%s (%s): limiter refused", path,
			  source->directory, path, SETTINGS_NAME, why);
	else
		log_error("damaged settings of '%s' (%s): limiter refused, file kept as %s/%s/%s",
			  path, why, source->directory, path, kept);
}

/*
 * Reads the settings of the limiter in @directory. 0; -ENOENT: it is none of ours; -EINVAL: damaged,
 * now or before; another error: could not be read now.
 */
static int read_settings(struct local *source, int directory, const char *path,
			 struct settings *settings, struct owner *owner)
{
	char text[STORE_TEXT], error[ERROR_TEXT];
	int err = store_read(directory, SETTINGS_NAME, text, sizeof(text));

	if (err == -ENOENT && !faccessat(directory, ".config.damaged", F_OK, 0)) {
		log_error("limiter '%s' refused: its settings were damaged, see %s/%s", path,
			  source->directory, path);
		source->daemon->damaged++;
		return -EINVAL;
	}
	if (!err)
		err = store_parse(text, settings, owner, error);
	else if (err == -EFBIG)
		snprintf(error, sizeof(error), "it is too long");
	else if (err == -EINVAL)
		snprintf(error, sizeof(error), "it has a zero byte in it");
	else if (err == -ELOOP)
		snprintf(error, sizeof(error), "it is a link");
	else
		return err;
	if (!err)
		return 0;
	keep_aside(source, directory, path, error);
	return -EINVAL;
}

static int load_children(struct local *source, int directory, struct limiter *parent);

/* Puts a limiter back into the tree with what was left in its buckets. */
static int restore_limiter(struct local *source, struct limiter *parent, const char *name,
			   const char *path, const struct settings *settings,
			   const struct owner *owner)
{
	struct level levels[LIMITS_MAX];
	struct limiter *limiter;
	uint32_t count = levels_find(source->levels, path, settings, levels);

	return change_restore(&source->daemon->engine, parent, name, settings, owner, levels, count,
			      &limiter);
}

/* Restores limiter @name of @parent, and all below it. */
static int load_limiter(struct local *source, int parent_directory, struct limiter *parent,
			const char *name)
{
	int directory = store_open(parent_directory, name), err;
	struct settings settings;
	struct owner owner;
	struct limiter *limiter;
	char path[PATH_TEXT + NAME_BYTES_MAX + 2];

	if (directory < 0)
		return directory == -ENOTDIR || directory == -ELOOP ? 0 : directory;
	tree_path(parent, path);
	snprintf(path + strlen(path), NAME_BYTES_MAX + 2, "%s%s", *path ? "/" : "", name);
	limiter = tree_find(&source->daemon->engine.tree, parent, name);
	if (limiter) { /* of a predecessor */
		store_clean(directory);
		err = load_children(source, directory, limiter);
		close(directory);
		return err;
	}
	err = read_settings(source, directory, path, &settings, &owner);
	if (err == -ENOENT || err == -EINVAL) {
		if (err == -ENOENT)
			log_info("%s/%s has no settings: left alone", source->directory, path);
		close(directory);
		return 0;
	}
	store_clean(directory);
	if (!err)
		err = restore_limiter(source, parent, name, path, &settings, &owner);
	if (err)
		log_error("cannot restore '%s': %s", path, strerror(-err));
	limiter = tree_find(&source->daemon->engine.tree, parent, name);
	if (!err && limiter)
		err = load_children(source, directory, limiter);
	close(directory);
	return err;
}

static int load_children(struct local *source, int directory, struct limiter *parent)
{
	struct dirent **entries;
	int count = scandirat(directory, ".", &entries, NULL, alphasort), err = 0;

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		if (!err && entries[i]->d_name[0] != '.')
			err = load_limiter(source, directory, parent, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* The owner of the top directory is kept like a limiter's. */
static int load_root(struct local *source)
{
	struct limiter *root = source->daemon->engine.tree.root;
	struct settings settings;
	struct owner owner;
	int err;

	store_clean(source->root);
	err = read_settings(source, source->root, "", &settings, &owner);
	if (err == -ENOENT || err == -EINVAL)
		return 0;
	if (err) {
		log_error("cannot read %s: %s", source->directory, strerror(-err));
		return err;
	}
	root->uid = owner.uid;
	root->gid = owner.gid;
	root->access = owner.access;
	return 0;
}

/* Settings of a limiter of a predecessor: kept in the directory, or by it. As read_settings(). */
static int former_settings(struct local *source, const char *path,
			   const struct state_limiter *former, struct settings *settings,
			   struct owner *owner)
{
	char error[ERROR_TEXT];
	int directory, err;

	if (!source->directory) {
		*settings = SETTINGS_DEFAULT;
		*owner = former->owner;
		err = settings_parse(former->settings, settings, error);
		if (err)
			log_error("settings of '%s' are lost: %s", path, error);
		return err;
	}
	directory = store_open(source->root, path);
	if (directory < 0)
		return directory;
	err = read_settings(source, directory, path, settings, owner);
	close(directory);
	return err;
}

/* Puts a limiter of a predecessor back into the tree under its number. */
static int restore_former(void *argument, const struct state_limiter *former)
{
	struct local *source = argument;
	struct tree *tree = &source->daemon->engine.tree;
	struct limiter *parent = tree_find_id(tree, former->parent), *limiter = tree->root;
	char path[PATH_TEXT + NAME_BYTES_MAX + 2];
	struct settings settings;
	struct owner owner;
	int err;

	if (!former->id) {
		change_apply_owner(&source->daemon->engine, limiter, &former->owner);
		return 0;
	}
	if (!parent)
		return 0; /* gone, as far as the directory knows */
	tree_path(parent, path);
	snprintf(path + strlen(path), NAME_BYTES_MAX + 2, "%s%s", *path ? "/" : "", former->name);
	err = former_settings(source, path, former, &settings, &owner);
	if (err)
		return err == -ENOENT || err == -EINVAL || err == -ENOTDIR ? 0 : err;
	tree->last_id = former->id - 1;
	err = change_restore(&source->daemon->engine, parent, former->name, &settings, &owner, NULL,
			     0, &limiter);
	if (err)
		return err;
	return limiter_set_times(limiter, former->made_s, former->changed_s);
}

/* Limiters keep the numbers that they had. */
static int load_former(struct local *source, struct daemon *daemon)
{
	int err = state_limiters(daemon->state, restore_former, source);

	if (err) {
		log_error("cannot go on with the limiters there were: %s", strerror(-err));
		return err;
	}
	state_restoring(daemon->state, STATE_LEVELS);
	state_restore(daemon->state);
	return 0;
}

int local_load(struct local *source, struct daemon *daemon)
{
	int err = 0;

	source->daemon = daemon;
	if (state_is_there(daemon->state))
		err = load_former(source, daemon);
	if (!source->directory || err)
		return err;
	err = load_root(source);
	if (err)
		return err;
	source->levels = levels_read(source->root);
	err = load_children(source, source->root, daemon->engine.tree.root);
	levels_free(source->levels);
	source->levels = NULL;
	return err;
}

int local_start(struct local *source)
{
	int err;

	if (!source->directory)
		return 0;
	err = thread_start(&source->thread, store_changes, source);
	source->started = !err;
	return err;
}

void local_stop(struct local *source)
{
	if (!source->started)
		return;
	pthread_mutex_lock(&source->mutex);
	source->stop = true;
	pthread_cond_signal(&source->work);
	pthread_mutex_unlock(&source->mutex);
	pthread_join(source->thread, NULL);
}

void local_close(struct local *source)
{
	int err;

	if (source->started) {
		err = levels_write(source->root, &source->daemon->engine);
		if (err)
			log_error("what is left in the buckets is lost: %s", strerror(-err));
	}
	close_directory(source);
	pthread_cond_destroy(&source->work);
	pthread_mutex_destroy(&source->mutex);
	free(source);
}
