/* local - settings of one host, see local.h. */
#include "fs/local/local.h"
#include "fs/base/log.h"
#include "fs/base/privilege.h"
#include "fs/base/thread.h"
#include "fs/local/levels.h"
#include "fs/local/quota.h"
#include "fs/local/store.h"
#include "fs/mount/daemon.h"
#include "fs/state/key_ledger.h"
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
	pthread_mutex_t
		mutex; /* of what is after work; never held while the daemon's is asked for */
	pthread_cond_t work;
	struct levels *levels;	 /* owned while it loads */
	struct quota *quota;	 /* owned: of windows of the calendar; NULL until it has loaded */
	struct key_ledger *keys; /* owned: of those of keys; likewise */
	struct timespec sync_at; /* both, at the latest; in the thread */
	bool keys_change;	 /* in the thread: there is more to be synced of keys */
	bool hurries;		 /* under the daemon's lock: sync_soon is set */
	struct change *change;	 /* to be stored */
	bool sync_soon;		 /* windows, before the second is over */
	bool stop;
};

static int perform_change(struct local *local, struct change *change)
{
	struct limiter *limiter = change->limiter;
	struct owner owner = {limiter->uid, limiter->gid, limiter->access};
	int err = 0;

	switch (change->kind) {
	case CHANGE_MAKE:
		err = store_make(local->root, change->path, change->name, &change->settings,
				 &change->owner);
		if (err == -EEXIST)
			snprintf(change->error, sizeof(change->error),
				 "'%.200s' has damaged settings, kept aside in %.200s: "
				 "look there first",
				 change->name, local->directory);
		break;
	case CHANGE_REMOVE:
		err = store_remove(local->root, change->path);
		break;
	case CHANGE_RENAME:
		err = store_rename(local->root, change->path, change->name);
		break;
	case CHANGE_SETTINGS:
		err = store_write(local->root, change->path, &change->settings, &owner);
		break;
	case CHANGE_OWNER:
		err = store_write(local->root, change->path, &change->settings, &change->owner);
		break;
	}
	return err;
}

/* Has the windows of limiters and keys follow @change, which is done. */
static void follow_windows(struct local *local, const struct change *change)
{
	if (change->kind == CHANGE_RENAME && !change->outcome && local->keys)
		key_ledger_follow(local->keys, change->limiter);
	if (!local->quota || change->outcome)
		return;
	if (change->kind == CHANGE_MAKE)
		quota_follow(local->quota, change->made);
	else if (change->kind == CHANGE_REMOVE)
		quota_forget(local->quota, change->limiter->id);
	else if (change->kind == CHANGE_SETTINGS)
		quota_follow(local->quota, change->limiter);
	else if (change->kind == CHANGE_RENAME && quota_is_kept(local->quota))
		quota_follow_all(local->quota, change->limiter);
}

static void note_used(struct source *interface, struct limiter *limiter)
{
	struct local *local = (struct local *)interface;

	if (!local->quota ||
	    !(limiter->is_key ? key_ledger_hurries(local->keys)
			      : quota_used(local->quota, limiter)) ||
	    local->hurries)
		return;
	local->hurries = true;
	pthread_mutex_lock(&local->mutex);
	local->sync_soon = true;
	pthread_cond_signal(&local->work);
	pthread_mutex_unlock(&local->mutex);
}

static void store_change(struct source *interface, struct change *change)
{
	struct local *local = (struct local *)interface;
	int err;

	if (!local->directory) {
		change_stored(&local->daemon->engine, change, 0);
		follow_windows(local, change);
		return;
	}
	if (!local->started) {
		/* Before privileges are dropped; later the files have to be the user's. */
		privilege_files(true);
		err = perform_change(local, change);
		privilege_files(false);
		change_stored(&local->daemon->engine, change, err);
		follow_windows(local, change);
		return;
	}
	pthread_mutex_lock(&local->mutex);
	local->change = change;
	pthread_cond_signal(&local->work);
	pthread_mutex_unlock(&local->mutex);
}

/* Syncs what was used of windows, if something was; @early: before the second is over. */
static void sync_windows(struct local *local, bool early)
{
	struct key_batch batch;
	bool dirty;
	int err, keys_err;

	daemon_lock(local->daemon);
	local->hurries = false;
	dirty = quota_foresee(local->quota, early);
	keys_err = key_ledger_collect(local->keys, early, &batch);
	daemon_unlock(local->daemon);
	err = dirty ? quota_sync(local->quota) : 0;
	if (!keys_err) {
		keys_err = key_ledger_write(local->keys, &batch);
		daemon_lock(local->daemon);
		key_ledger_written(local->keys, &batch, keys_err);
		local->keys_change = key_ledger_is_kept(local->keys);
		daemon_unlock(local->daemon);
	}
	err = err ? err : keys_err;
	if (err)
		log_error("what is used of windows is not synced: %s", strerror(-err));
}

static bool is_ahead(const struct timespec *at)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < at->tv_sec || (now.tv_sec == at->tv_sec && now.tv_nsec < at->tv_nsec);
}

/*
 * Waits for work; while there are windows, for so long at most that they are synced in time. Where
 * those of keys are at rest, note_used() tells of the next token, and store_changes() of a change.
 */
static void await_work(struct local *local)
{
	bool early;

	if (!quota_is_kept(local->quota) && !local->keys_change && !local->sync_soon) {
		pthread_cond_wait(&local->work, &local->mutex);
		return;
	}
	if (!local->sync_soon)
		pthread_cond_timedwait(&local->work, &local->mutex, &local->sync_at);
	early = is_ahead(&local->sync_at);
	if (early && !local->sync_soon)
		return;
	local->sync_soon = false;
	pthread_mutex_unlock(&local->mutex);
	sync_windows(local, early);
	if (!early) {
		clock_gettime(CLOCK_MONOTONIC, &local->sync_at);
		local->sync_at.tv_sec += QUOTA_SYNC_S;
	}
	pthread_mutex_lock(&local->mutex);
}

/* Stores one change after the other, in the thread. */
static void *store_changes(void *argument)
{
	struct local *local = argument;

	pthread_mutex_lock(&local->mutex);
	for (;;) {
		struct change *change = local->change;
		bool soon;
		int err;

		if (!change && local->stop)
			break;
		if (!change) {
			await_work(local);
			continue;
		}
		local->change = NULL;
		pthread_mutex_unlock(&local->mutex);
		err = perform_change(local, change);
		daemon_lock(local->daemon);
		engine_run(&local->daemon->engine, clock_ns());
		change_stored(&local->daemon->engine, change, err);
		follow_windows(local, change);
		soon = key_ledger_hurries(local->keys);
		local->keys_change = key_ledger_is_kept(local->keys);
		daemon_unlock(local->daemon);
		pthread_mutex_lock(&local->mutex);
		local->sync_soon |= soon;
	}
	pthread_mutex_unlock(&local->mutex);
	return NULL;
}

/* Locks @file. A daemon whose keeper was killed just now may still hold it for a while. 0 or -1. */
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

/* Opens the directory that @named names, and makes sure that no other daemon uses it. */
static int open_directory(struct local *local, int named)
{
	const char *directory = local->directory;

	local->root = openat(named, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (local->root < 0) {
		log_error("cannot open %s: %s", directory, strerror(errno));
		return -1;
	}
	local->lock = openat(local->root, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			     0600);
	if (local->lock < 0) {
		if (errno == ENOENT)
			log_error("cannot open %s: it was removed", directory);
		else
			log_error("cannot write to %s: %s", directory, strerror(errno));
		return -1;
	}
	if (lock_file(local->lock)) {
		log_error("%s is in use by another ratefs", directory);
		return -1;
	}
	return 0;
}

static void close_directory(struct local *local)
{
	if (local->lock >= 0)
		close(local->lock);
	if (local->root >= 0)
		close(local->root);
}

struct local *local_open(const char *directory, int named)
{
	struct local *local = calloc(1, sizeof(*local));
	pthread_condattr_t attributes;

	if (!local) {
		log_error("no memory");
		return NULL;
	}
	local->interface.store = store_change;
	local->interface.used = note_used;
	local->directory = directory;
	local->root = -1;
	local->lock = -1;
	if (directory && open_directory(local, named)) {
		close_directory(local);
		free(local);
		return NULL;
	}
	pthread_mutex_init(&local->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&local->work, &attributes);
	pthread_condattr_destroy(&attributes);
	return local;
}

struct source *local_source(struct local *local)
{
	return &local->interface;
}

static bool is_there(int directory, const char *name)
{
	struct stat about;

	return !fstatat(directory, name, &about, AT_SYMLINK_NOFOLLOW) || errno != ENOENT;
}

/*
 * Keeps a damaged file where nothing overwrites it: the directory is locked, so a name that is free
 * stays so. Not all file systems have a rename that looks for itself, or links.
 */
static void keep_aside(struct local *local, int directory, const char *path, const char *why)
{
	char kept[64] = ".config.damaged";
	int err = 0;

	for (int i = 1; is_there(directory, kept) && i < DAMAGED_COPIES_MAX; i++)
		snprintf(kept, sizeof(kept), ".config.damaged.%d", i);
	if (is_there(directory, kept))
		err = -EEXIST;
	else if (renameat(directory, SETTINGS_NAME, directory, kept))
		err = -errno;
	fsync(directory);
	local->daemon->damaged++;
	if (err)
		log_error("damaged settings of '%s' in %s/%s/%s (%s): limiter refused", path,
			  local->directory, path, SETTINGS_NAME, why);
	else
		log_error("damaged settings of '%s' (%s): limiter refused, file kept as %s/%s/%s",
			  path, why, local->directory, path, kept);
}

/*
 * Reads the settings of the limiter in @directory. 0; -ENOENT: it is none of ours; -EINVAL:
 * damaged, now or before; another error: could not be read now.
 */
static int read_settings(struct local *local, int directory, const char *path,
			 struct settings *settings, struct owner *owner)
{
	char *text = malloc(STORE_TEXT_MAX), error[ERROR_TEXT];
	int err = text ? store_read(directory, SETTINGS_NAME, text, STORE_TEXT_MAX) : -ENOMEM;

	*settings = SETTINGS_DEFAULT;
	if (err == -ENOENT && !faccessat(directory, ".config.damaged", F_OK, 0)) {
		log_error("limiter '%s' refused: its settings were damaged, see %s/%s", path,
			  local->directory, path);
		local->daemon->damaged++;
		free(text);
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
	free(text);
	if (err != -EFBIG && err != -EINVAL && err != -ERANGE && err != -ENOSPC && err != -ELOOP)
		return err;
	keep_aside(local, directory, path, error);
	return -EINVAL;
}

static int load_children(struct local *local, int directory, struct limiter *parent);

/* Puts a limiter back into the tree with what was left in its buckets. */
static int restore_limiter(struct local *local, struct limiter *parent, const char *name,
			   const char *path, const struct settings *settings,
			   const struct owner *owner)
{
	struct level levels[LIMITS_MAX];
	struct limiter *limiter;
	uint32_t count = levels_find(local->levels, path, settings, levels);

	int err = change_restore(&local->daemon->engine, parent, name, settings, owner, levels,
				 count, &limiter);

	if (!err)
		quota_restore(local->quota, limiter, local->daemon->engine.schedule.now_ns);
	return err;
}

/* Restores limiter @name of @parent, and all below it. */
static int load_limiter(struct local *local, int parent_directory, struct limiter *parent,
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
	limiter = tree_find(&local->daemon->engine.tree, parent, name);
	if (limiter) { /* of a predecessor */
		store_clean(directory);
		err = load_children(local, directory, limiter);
		close(directory);
		return err;
	}
	err = read_settings(local, directory, path, &settings, &owner);
	if (err == -ENOENT || err == -EINVAL) {
		if (err == -ENOENT)
			log_info("%s/%s has no settings: left alone", local->directory, path);
		close(directory);
		return 0;
	}
	store_clean(directory);
	if (!err)
		err = restore_limiter(local, parent, name, path, &settings, &owner);
	settings_drop(&settings);
	if (err)
		log_error("cannot restore '%s': %s", path, strerror(-err));
	limiter = tree_find(&local->daemon->engine.tree, parent, name);
	if (!err && limiter)
		err = load_children(local, directory, limiter);
	close(directory);
	return err;
}

static int load_children(struct local *local, int directory, struct limiter *parent)
{
	struct dirent **entries;
	int count = scandirat(directory, ".", &entries, NULL, alphasort), err = 0;

	if (count < 0)
		return -errno;
	for (int i = 0; i < count; i++) {
		if (!err && entries[i]->d_name[0] != '.')
			err = load_limiter(local, directory, parent, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return err;
}

/* Restores the owner of the top directory, which is kept like a limiter's. */
static int load_root(struct local *local)
{
	struct limiter *root = local->daemon->engine.tree.root;
	struct settings settings;
	struct owner owner;
	int err;

	store_clean(local->root);
	err = read_settings(local, local->root, "", &settings, &owner);
	settings_drop(&settings);
	if (err == -ENOENT || err == -EINVAL)
		return 0;
	if (err) {
		log_error("cannot read %s: %s", local->directory, strerror(-err));
		return err;
	}
	root->uid = owner.uid;
	root->gid = owner.gid;
	root->access = owner.access;
	return 0;
}

/*
 * Finds the settings of a predecessor's limiter, in the directory or in its state. As
 * read_settings().
 */
static int former_settings(struct local *local, const char *path,
			   const struct state_limiter *former, struct settings *settings,
			   struct owner *owner)
{
	char error[ERROR_TEXT];
	int directory, err;

	if (!local->directory) {
		*settings = SETTINGS_DEFAULT;
		*owner = former->owner;
		err = settings_parse(former->settings, settings, error);
		if (err)
			log_error("settings of '%s' are lost: %s", path, error);
		return err;
	}
	directory = store_open(local->root, path);
	if (directory < 0)
		return directory;
	err = read_settings(local, directory, path, settings, owner);
	close(directory);
	return err;
}

/* Puts a limiter of a predecessor back into the tree under its number. */
static int restore_former(void *argument, const struct state_limiter *former)
{
	struct local *local = argument;
	struct tree *tree = &local->daemon->engine.tree;
	struct limiter *parent = tree_find_id(tree, former->parent), *limiter = tree->root;
	char path[PATH_TEXT + NAME_BYTES_MAX + 2];
	struct settings settings;
	struct owner owner;
	int err;

	if (!former->id) {
		change_apply_owner(&local->daemon->engine, limiter, &former->owner);
		return 0;
	}
	if (!parent)
		return 0; /* gone, as far as the directory knows */
	tree_path(parent, path);
	snprintf(path + strlen(path), NAME_BYTES_MAX + 2, "%s%s", *path ? "/" : "", former->name);
	err = former_settings(local, path, former, &settings, &owner);
	if (err)
		return err == -ENOENT || err == -EINVAL || err == -ENOTDIR ? 0 : err;
	tree->last_id = former->id - 1;
	err = change_restore(&local->daemon->engine, parent, former->name, &settings, &owner, NULL,
			     0, &limiter);
	settings_drop(&settings);
	if (err)
		return err;
	return limiter_set_times(limiter, former->made_s, former->changed_s);
}

/* Restores a predecessor's limiters, which keep their numbers. */
static int load_former(struct local *local, struct daemon *daemon)
{
	int err = state_limiters(daemon->state, restore_former, local);

	if (err) {
		log_error("cannot go on with the limiters there were: %s", strerror(-err));
		return err;
	}
	state_restoring(daemon->state, STATE_LEVELS);
	state_restore(daemon->state);
	return 0;
}

/* Fills windows below @parent of which the predecessor left no levels: they were given up. */
static void restore_windows(struct local *local, struct limiter *parent)
{
	uint64_t now_ns = local->daemon->engine.schedule.now_ns;

	for (struct limiter *l = parent->first_child; l; l = l->next_sibling) {
		if (!l->unit)
			quota_restore(local->quota, l, now_ns);
		restore_windows(local, l);
	}
}

/* Begins to keep the use of windows by keys, with what is known. 0 or -errno after a message. */
static int begin_keys(struct local *local, struct daemon *daemon)
{
	struct schedule *schedule = &daemon->engine.schedule;
	int err = 0;

	local->keys = key_ledger_new(state_key_ledger(daemon->state), &schedule->pool.wall,
				     state_is_there(daemon->state));
	if (!local->keys) {
		log_error("no memory");
		return -ENOMEM;
	}
	schedule->ledger = key_ledger_interface(local->keys);
	if (local->directory)
		err = key_ledger_load(local->keys, local->root);
	if (err == -EBADMSG) {
		log_error("DIR/.keys is damaged: windows of keys that are not found there "
			  "begin empty");
		return 0;
	}
	if (err)
		log_error("cannot keep what is used of windows of keys: %s", strerror(-err));
	return err;
}

static int load_limiters(struct local *local, struct daemon *daemon)
{
	int err = 0;

	if (state_is_there(daemon->state))
		err = load_former(local, daemon);
	if (!local->directory || err)
		return err;
	err = load_root(local);
	if (err)
		return err;
	local->quota = quota_open(local->root);
	if (!local->quota)
		return -EIO;
	restore_windows(local, daemon->engine.tree.root);
	local->levels = levels_read(local->root);
	err = load_children(local, local->root, daemon->engine.tree.root);
	levels_free(local->levels);
	local->levels = NULL;
	quota_begin(local->quota, &daemon->engine);
	return err;
}

int local_load(struct local *local, struct daemon *daemon)
{
	int err;

	local->daemon = daemon;
	err = begin_keys(local, daemon);
	if (!err)
		err = load_limiters(local, daemon);
	if (!err)
		key_ledger_begin(local->keys);
	return err;
}

int local_start(struct local *local)
{
	int err;

	if (!local->directory)
		return 0;
	local->keys_change = true;
	err = thread_start(&local->thread, store_changes, local);
	local->started = !err;
	/* From here on the levels are written at the end. */
	if (!err)
		err = levels_use_up(local->root);
	if (err)
		log_error("cannot begin to use %s: %s", local->directory, strerror(-err));
	return err;
}

void local_stop(struct local *local)
{
	if (!local->started)
		return;
	pthread_mutex_lock(&local->mutex);
	local->stop = true;
	pthread_cond_signal(&local->work);
	pthread_mutex_unlock(&local->mutex);
	pthread_join(local->thread, NULL);
}

void local_close(struct local *local)
{
	int err;

	if (local->started) {
		err = levels_write(local->root, &local->daemon->engine);
		if (err)
			log_error("what is left in the buckets is lost: %s", strerror(-err));
	}
	quota_close(local->quota, local->started);
	key_ledger_close(local->keys, local->started);
	close_directory(local);
	pthread_cond_destroy(&local->work);
	pthread_mutex_destroy(&local->mutex);
	free(local);
}
