/*
 * options - the command line.
 */
#ifndef RATEFS_FS_BASE_OPTIONS_H
#define RATEFS_FS_BASE_OPTIONS_H

#include "core/limiter/users.h"
#include "fs/base/log.h"

#include <fuse_opt.h>
#include <stdbool.h>
#include <stdint.h>

enum { EXIT_USAGE = 2 };

enum { WEIGHT_MAX = 1000 };

struct options {
	const char *source;   /* as given */
	char *directory;      /* owned; of `local:DIR`, absolute, else NULL */
	char *mountpoint;     /* owned, absolute */
	char *host;	      /* owned */
	char *config;	      /* owned; file, or NULL */
	char *log_level_name; /* owned, or NULL */
	enum log_level log_level;
	char *servers;	   /* owned; of `zk://HOST:PORT,.../PATH`, see addresses.h, else NULL */
	char *path;	   /* owned; likewise, empty or `/PATH` */
	char *credentials; /* owned; fleets: file, or NULL */
	char *weight_text; /* owned, or NULL; like the next two */
	char *right_text;
	char *session_text;
	uint32_t weight;		   /* fleets: 1 to WEIGHT_MAX */
	uint64_t right_ns;		   /* fleets: D of leases, 2 s to 10 min */
	uint64_t session_ns;		   /* fleets: 2 s to 5 min */
	int no_wait;			   /* fleets: mount without a coordinator, too */
	char *bound_texts[BOUND_COUNT][2]; /* owned, or NULL: of all users, and of each */
	struct bound bounds[BOUND_COUNT];
	char *user;    /* owned, or NULL: the user it becomes once it has mounted */
	int keeps_out; /* noallow_other */
	bool lets_in;  /* allow_other or allow_root is among the arguments for libfuse */
	int foreground;
	int help;
	int version;
	int fake;	       /* mount -f: everything but the mount */
	struct fuse_args fuse; /* owned; the arguments for libfuse */
};

/*
 * Parses the command line. 0, or the exit status after a message on stderr; options_free() either
 * way. Called as mount.fuse.ratefs the conventions of mount helpers hold: see mount(8).
 */
int options_parse(struct options *options, int argc, char *argv[]);
void options_free(struct options *options);

void options_usage(const char *program);
void options_version(void);

#endif
