/*
 * keeper - the small process that mounts, and outlives the server.
 *
 * The process that was started becomes the keeper. It holds all that must not end with a server:
 * the descriptors of the FUSE device (the kernel ends the requests that were read from one when its
 * last holder closes it), the kernel's first message (FUSE_INIT), and the memory of state.h. No
 * request goes through it. The server is a child: the same program with `--server=N` as first
 * argument, N being a socket on which the two talk:
 *
 *	keeper	HELLO	first: its pid, absolute paths, the memory, the directory of settings
 *	server	LOADED	its source is there, it could serve
 *	keeper	MOUNT	the mount (made for the first server at this point): descriptors, FUSE_INIT
 *	server	READY	it answers
 *	server	ALIVE	then, and whenever it is asked: it goes on
 *
 * A server that dies is started again, from the same program file, at once if it had served for a
 * while, else after a pause that doubles; a server that cannot stay up ends the mount. The
 * successor restores the state, has the kernel send requests without an answer again
 * (FUSE_NOTIFY_RESEND, Linux 6.9), and goes on.
 *
 * No state that a server left keeps every successor from starting. Each notes the part that it
 * restores (state.h), and a part that KEEPER_DEATHS of them in a row die of is given up: open files
 * first, then levels, then all.
 *
 * A server that goes on says so when the keeper asks by SIGURG, every KEEPER_ASK_NS; one that does
 * not after KEEPER_QUESTIONS of them hangs, and is killed, unless a debugger has it.
 *
 * On SIGHUP the keeper opens the program that is now on disk, and has the server end without a
 * message; a program that cannot start is replaced by the one that ran before. If the keeper dies,
 * the kernel sends the server SIGTERM, and the server unmounts.
 *
 * Where the kernel cannot resend, the mount ends with its server.
 */
#ifndef RATEFS_FS_KEEPER_KEEPER_H
#define RATEFS_FS_KEEPER_KEEPER_H

#include "fs/base/options.h"
#include "fs/mount/mounts.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	KEEPER_VERSION = 2,
	KEEPER_DEVICES = 16, /* descriptors of the FUSE device, at most */
	KEEPER_INIT_MAX = 240,
	KEEPER_FILES = 2,     /* of a greeting, at most: state, directory */
	KEEPER_FAILURES = 10, /* starts in a row that came to nothing */
	KEEPER_DEATHS = 2,    /* deaths for each part of the state that is given up */
	KEEPER_QUESTIONS = 3, /* in a row that a server which hangs has not answered */
	EXIT_REPLACE = 75,    /* of a server: another one is to be started */
	EXIT_LOST = 78,	      /* of a server: no other could serve the mount, either */
};

/* A server that has served so long is started again at once. */
#define KEEPER_LIFE_NS UINT64_C(100000000)
/* The first pause; each is twice as long as the one before. */
#define KEEPER_PAUSE_NS UINT64_C(10000000)

/* A server is asked so often whether it goes on. */
#define KEEPER_ASK_NS (UINT64_C(10) * NSEC_PER_SEC)

/*
 * A server that is to end has so long: a fleet takes 3 s of it at most, a disk the rest. systemd
 * gives both processes 15 s.
 */
#define KEEPER_END_NS (UINT64_C(10) * NSEC_PER_SEC)

enum keeper_message { KEEPER_HELLO = 1, KEEPER_LOADED, KEEPER_MOUNT, KEEPER_READY, KEEPER_ALIVE };

struct keeper_hello {
	uint32_t kind; /* enum keeper_message, here and in the others */
	uint32_t version;
	int32_t pid;	 /* the keeper's */
	uint32_t starts; /* servers before this one */
	/* Servers in a row that died before KEEPER_LIFE_NS, not by SIGKILL, or hung at once. */
	uint32_t deaths;
	uint32_t uid, gid; /* of the mount */
	bool background;   /* messages go to syslog */
	bool may_refuse;   /* if it cannot read the state, another program can */
	char mountpoint[PATH_MAX];
	char directory[PATH_MAX];   /* as it was at the start; empty: none */
	char credentials[PATH_MAX]; /* as well */
};

struct keeper_mount {
	uint32_t kind;
	uint32_t init_bytes;
	bool outlives;
	_Alignas(8) char init[KEEPER_INIT_MAX];
	struct mount_id id; /* zeros from a keeper of 0.2.0 */
};

/* It goes between programs of different age, which take no message of another size. */
_Static_assert(sizeof(struct keeper_mount) == 272, "as in 0.2.0");

/*
 * Mounts, and keeps servers running until the end of the mount. @argv is the command line that they
 * get. @ready is a pipe to tell on that the mount answers, or -1. Returns the exit status.
 */
int keeper_run(struct options *options, int argc, char *argv[], int ready);

/* Has the keeper of the mount at argv[2] start another server. Returns the exit status. */
int keeper_reload(int argc, char *argv[]);

/* Freezes the mount at argv[2], or thaws it, see tracer.h. Returns the exit status. */
int keeper_freeze(int argc, char *argv[]);
int keeper_thaw(int argc, char *argv[]);

#endif
