/*
 * held - open files of limiters, kept for the requests that ask for the same again.
 *
 * A file is opened anew HELD_NS after it was opened: meanwhile its limiter may have been renamed,
 * or closed to this user. A key cannot be forgotten while a file of it is open: where there is no
 * room for another one, no thread keeps files of keys for HELD_NS. One thread uses a struct
 * held_files.
 */
#ifndef RATEFS_COMPANIONS_SERVE_HELD_H
#define RATEFS_COMPANIONS_SERVE_HELD_H

#include "companions/serve/policy.h"

#include "core/base/chain.h"
#include "core/base/list.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#define HELD_NS UINT64_C(1000000000)

enum {
	HELD_MAX = 512, /* files */
	HELD_TEXT = 24, /* room for a number of tokens */
};

/* An open file from which requests of one kind read tokens. */
struct held {
	struct chain_link link;
	struct list_link age;
	uint64_t hash;
	uint64_t opened_ns;
	bool is_of_key;
	int take;	       /* O_NONBLOCK */
	int eta;	       /* -1: not open yet */
	struct policy *policy; /* owned; NULL: not read yet */
	char path[];	       /* of @take, from the mount point on */
};

/* Tells all threads whether there is room for keys. */
struct held_room {
	atomic_uint_least64_t scarce_ns; /* until then files of keys are not kept */
	int scarce;			 /* an eventfd(2): EPOLLET tells all that it is so now */
};

struct held_files {
	const char *mountpoint; /* borrowed */
	struct held_room *room; /* borrowed */
	uint64_t patient_ns;	/* from then on it may wait for the other threads again */
	struct chains chains;
	struct list ages; /* the longest open first */
	uint64_t seed[2];
};

/*
 * Reads as many tokens as @url asks for, if they are there now. 0 with @tokens; -EAGAIN: they are
 * not; another -errno. @held is the open file, or NULL if there is none; it is there until the next
 * call.
 */
int held_take(struct held_files *files, const struct url *url, uint64_t now_ns, uint64_t *tokens,
	      struct held **held);

/* Finds the open file of held_take() for @url. NULL: there is none. */
struct held *held_find(const struct held_files *files, const struct url *url);

/* Reads tokens from @file. 0 with @tokens, or -errno. */
int held_read(int file, uint64_t *tokens);

/*
 * Opens @path, a file from which tokens of @url are read, with O_NONBLOCK. Where there is no room
 * for its key, has the other threads close their files first, and waits a little for them, once in
 * HELD_NS. A descriptor or -errno.
 */
int held_open_take(struct held_files *files, const struct url *url, const char *path,
		   uint64_t now_ns);

/* Opens @path from the mount point on. A descriptor or -errno. */
int held_open(const struct held_files *files, const char *path, int flags);

/* Reads the file @path into @text, NUL-terminated, without the newline. 0 or -errno. */
int held_text(const struct held_files *files, const char *path, char *text, size_t size);

/* Finds how long a request like @url would wait, in nanoseconds; NEVER_NS: not known. */
uint64_t held_eta_ns(struct held_files *files, struct held *held, const struct url *url);

/* Closes all files that were opened HELD_NS before @now_ns, and those of keys if room is scarce. */
void held_close_old(struct held_files *files, uint64_t now_ns);

#endif
