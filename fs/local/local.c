/* local - settings of one host, see local.h. */
#include "fs/base/log.h"
#include "fs/base/thread.h"
#include "fs/local/inside.h"
#include "fs/local/levels.h"
#include "fs/local/store.h"

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

static int perform(struct source_local *source, struct change *change)
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

static void store(struct source *interface, struct change *change)
{
	struct source_local *source = (struct source_local *)interface;

	if (!source->directory) {
		change_stored(&source->daemon->engine, change, 0);
		return;
	}
	if (!source->started) {
		change_stored(&source->daemon->engine, change, perform(source, change));
		return;
	}
	pthread_mutex_lock(&source->mutex);
	source->change = change;
	pthread_cond_signal(&source->work);
	pthread_mutex_unlock(&source->mutex);
}

/* The thread: stores one change after the other. */
static void *work(void *argument)
{
	struct source_local *source = argument;

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
		err = perform(source, change);
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
static int lock(int file)
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
static int open_directory(struct source_local *source)
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
	if (lock(source->lock)) {
		log_error("%s is in use by another ratefs", directory);
		return -1;
	}
	return 0;
}

static void close_directory(struct source_local *source)
{
	if (source->lock >= 0)
		close(source->lock);
	if (source->root >= 0)
		close(source->root);
}

struct source_local *source_local_open(const char *directory)
{
	struct source_local *source = calloc(1, sizeof(*source));

	if (!source) {
		log_error("no memory");
		return NULL;
	}
	source->interface.store = store;
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

struct source *source_local_interface(struct source_local *source)
{
	return &source->interface;
}

int source_local_start(struct source_local *source)
{
	int err;

	if (!source->directory)
		return 0;
	err = thread_start(&source->thread, work, source);
	source->started = !err;
	return err;
}

void source_local_stop(struct source_local *source)
{
	if (!source->started)
		return;
	pthread_mutex_lock(&source->mutex);
	source->stop = true;
	pthread_cond_signal(&source->work);
	pthread_mutex_unlock(&source->mutex);
	pthread_join(source->thread, NULL);
}

void source_local_close(struct source_local *source)
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
