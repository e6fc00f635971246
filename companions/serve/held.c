/* held - open files of limiters, see held.h. */
#include "companions/serve/held.h"

#include "core/base/siphash.h"
#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	/* How long a thread waits for the others to close their files: naps, and each of them. */
	NAPS = 20,
	NAP_NS = 1000000,
	KEY_TRIES = 16, /* to open a file of a key */
};

static struct held *held_of(struct chain_link *link)
{
	return container_of(link, struct held, link);
}

static uint64_t hash_of(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return ((const struct held *)link)->hash;
}

static void close_held(struct held_files *files, struct held *held)
{
	chains_remove(&files->chains, &held->link);
	list_remove(&files->ages, &held->age);
	close(held->take);
	if (held->eta >= 0)
		close(held->eta);
	free(held->policy);
	free(held);
}

static void close_keys(struct held_files *files)
{
	struct held *held = list_first(&files->ages, struct held, age), *next;

	for (; held; held = next) {
		next = list_next(held, age);
		if (held->is_of_key)
			close_held(files, held);
	}
}

void held_close_old(struct held_files *files, uint64_t now_ns)
{
	struct held *held;

	if (now_ns < atomic_load(&files->room->scarce_ns))
		close_keys(files);
	while ((held = list_first(&files->ages, struct held, age)) &&
	       now_ns - held->opened_ns >= HELD_NS)
		close_held(files, held);
}

int held_open(const struct held_files *files, const char *path, int flags)
{
	char full[PATH_MAX + URL_FILE_TEXT];
	int file;

	snprintf(full, sizeof(full), "%s/%s", files->mountpoint, path);
	file = open(full, flags | O_CLOEXEC | O_NOFOLLOW);
	return file < 0 ? -errno : file;
}

/*
 * Opens a file from which tokens are read. A key that was looked up and has no open file yet is the
 * first to be forgotten: -ESTALE where another one takes its place meanwhile.
 */
static int open_take(const struct held_files *files, const char *path)
{
	int file = -ESTALE;

	for (int i = 0; i < KEY_TRIES && file == -ESTALE; i++)
		file = held_open(files, path, O_RDONLY | O_NONBLOCK);
	return file;
}

int held_open_take(struct held_files *files, const struct url *url, const char *path,
		   uint64_t now_ns)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	static const uint64_t one = 1;
	int file = open_take(files, path), naps;

	if (file != -ENOSPC || !*url->key)
		return file;
	atomic_store(&files->room->scarce_ns, now_ns + HELD_NS);
	if (write(files->room->scarce, &one, sizeof(one)) < 0)
		warn("no thread is told that room for keys is scarce");
	close_keys(files);
	naps = now_ns < files->patient_ns ? 0 : NAPS;
	files->patient_ns = naps ? now_ns + HELD_NS : files->patient_ns;
	for (;;) {
		file = open_take(files, path);
		if (file != -ENOSPC || !naps--)
			return file;
		nanosleep(&nap, NULL);
	}
}

int held_text(const struct held_files *files, const char *path, char *text, size_t size)
{
	int file = held_open(files, path, O_RDONLY | O_NONBLOCK);
	ssize_t got;
	int err;

	if (file < 0)
		return file;
	got = read(file, text, size - 1);
	err = got < 0 ? -errno : 0;
	close(file);
	text[got < 0 ? 0 : got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return err;
}

int held_read(int file, uint64_t *tokens)
{
	char text[HELD_TEXT];
	ssize_t got = pread(file, text, sizeof(text) - 1, 0);

	if (got < 0)
		return -errno;
	text[got] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return tokens_parse(text, tokens) || !*tokens ? -EPROTO : 0;
}

static struct held *find_path(const struct held_files *files, const char *path, uint64_t hash)
{
	struct chain_link *link = chains_find(&files->chains, hash);

	while (link && (held_of(link)->hash != hash || strcmp(held_of(link)->path, path) != 0))
		link = link->next;
	return link ? held_of(link) : NULL;
}

/* Opens @path of @length bytes, for @url. 0 or -errno. */
static int add(struct held_files *files, const struct url *url, const char *path, size_t length,
	       uint64_t hash, uint64_t now_ns, struct held **added)
{
	struct held *held = malloc(sizeof(*held) + length + 1);
	int err = -ENOMEM;

	if (!held)
		return err;
	if (files->chains.count >= HELD_MAX)
		close_held(files, list_first(&files->ages, struct held, age));
	*held = (struct held){.hash = hash, .opened_ns = now_ns, .is_of_key = *url->key, .eta = -1};
	memcpy(held->path, path, length + 1);
	held->take = held_open_take(files, url, path, now_ns);
	if (held->take < 0) {
		err = held->take;
	} else if (!chains_insert(&files->chains, &held->link)) {
		list_append(&files->ages, &held->age);
		*added = held;
		return 0;
	} else {
		close(held->take);
	}
	free(held);
	return err;
}

/* Tells whether an open file fails so when its limiter, its key or its mount is no more. */
static bool is_gone(int err)
{
	return err == -ENODEV || err == -ENOTCONN || err == -ECONNABORTED || err == -ESTALE ||
	       err == -ESHUTDOWN;
}

int held_take(struct held_files *files, const struct url *url, uint64_t now_ns, uint64_t *tokens,
	      struct held **held)
{
	char name[NAME_BYTES_MAX], path[URL_FILE_TEXT];
	size_t length;
	uint64_t hash;
	bool opened = false;
	int err;

	url_take(url, false, name);
	length = url_file(url, name, path);
	hash = siphash(path, length, files->seed);
	held_close_old(files, now_ns);
	files->chains.hash = hash_of;
	*held = find_path(files, path, hash);
	for (;;) {
		if (!*held) {
			opened = true;
			err = add(files, url, path, length, hash, now_ns, held);
			if (err)
				return err;
		}
		err = held_read((*held)->take, tokens);
		if (!is_gone(err) || opened)
			break;
		close_held(files, *held);
		*held = NULL;
	}
	return err;
}

struct held *held_find(const struct held_files *files, const struct url *url)
{
	char name[NAME_BYTES_MAX], path[URL_FILE_TEXT];
	size_t length;

	url_take(url, false, name);
	length = url_file(url, name, path);
	return find_path(files, path, siphash(path, length, files->seed));
}

uint64_t held_eta_ns(struct held_files *files, struct held *held, const struct url *url)
{
	char name[NAME_BYTES_MAX], path[URL_FILE_TEXT], text[QUANTITY_TEXT];
	int file = held ? held->eta : -1;
	uint64_t ns = NEVER_NS;
	ssize_t got;

	if (file < 0) {
		snprintf(name, sizeof(name), "eta/%" PRIu64 "%s", url->tokens, url->units);
		url_file(url, name, path);
		file = held_open(files, path, O_RDONLY);
		if (file < 0)
			return ns;
	}
	got = pread(file, text, sizeof(text) - 1, 0);
	text[got > 0 ? got : 0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (held)
		held->eta = file;
	else
		close(file);
	return duration_parse(text, &ns) ? NEVER_NS : ns;
}
