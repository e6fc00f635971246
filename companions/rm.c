/*
 * rm - removes limiters, and with -r those below them first; nothing else has rmdir(2) done to it.
 */
#include "companions/companion.h"
#include "companions/home.h"
#include "companions/mounted.h"

#include "fs/mount/mounts.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An argument's limiter, and where in it the work is. */
struct removal {
	const char *given;
	int given_bytes;      /* without slashes at its end */
	char path[PATH_TEXT]; /* of a limiter below @given; "": that one */
	bool recursive;
	bool lenient; /* one that is not there is no failure */
	bool failed;  /* something stays */
	bool lost;    /* no more can be done to the tree */
};

static void complain(struct removal *removal, const char *why)
{
	warnx("%.*s%s%s: %s", removal->given_bytes, removal->given, *removal->path ? "/" : "",
	      removal->path, why);
	removal->failed = true;
}

/* Says why @err refused the limiter @name in @directory. */
static void explain(struct removal *removal, int directory, const char *name, int err)
{
	char path[PATH_MAX + PATH_TEXT], reason[ERROR_TEXT];
	struct mounted_names below = {.count = 0};
	const char *why = reason;
	int limiter;

	/* Before anything else, which may be refused, too. */
	snprintf(path, sizeof(path), "%s/%s", removal->given, removal->path);
	home_explain(path, -err, reason);
	limiter = err == -EBUSY ? mounted_enter(directory, name) : -1;
	if (limiter >= 0) {
		(void)mounted_list(limiter, &below);
		close(limiter);
	}
	if (below.count)
		why = removal->recursive ? "it has limiters in it again"
					 : "it has limiters in it; -r removes them";
	complain(removal, why);
	mounted_names_free(&below);
	removal->lost = err == -EHOSTUNREACH || err == -ETIMEDOUT || err == -ENOTCONN ||
			err == -ECONNABORTED;
}

/* Tells whether @name still is the limiter whose directory @limiter is; true if it is none. */
static bool is_still(int directory, const char *name, int limiter)
{
	struct stat named, entered;

	return fstatat(directory, name, &named, AT_SYMLINK_NOFOLLOW) || fstat(limiter, &entered) ||
	       (named.st_ino == entered.st_ino && named.st_dev == entered.st_dev);
}

/*
 * Opens @name in @directory, if that is a limiter: keys, partitions and the top have no settings. A
 * descriptor or -errno; -ENOTDIR: it is none.
 */
static int open_limiter(int directory, const char *name)
{
	int opened = mounted_enter(directory, name), err;
	struct stat config;
	uid_t user;

	if (opened == -ELOOP || opened == -EXDEV)
		return -ENOTDIR;
	if (opened < 0)
		return opened;
	err = mounts_find_user(opened, &user);
	if (!err && fstatat(opened, "config", &config, AT_SYMLINK_NOFOLLOW))
		err = -errno;
	if (!err && S_ISREG(config.st_mode))
		return opened;
	close(opened);
	return !err || err == -EINVAL || err == -ENOENT ? -ENOTDIR : err;
}

static bool remove_below(struct removal *removal, int limiter);

/* Removes @name, whose directory @limiter is, from @directory. False after a message. */
static bool remove_limiter(struct removal *removal, int directory, const char *name, int limiter)
{
	if (removal->recursive && !remove_below(removal, limiter))
		return false;
	if (!is_still(directory, name, limiter)) {
		complain(removal, "another limiter has this name now");
		return false;
	}
	/* One that was removed meanwhile is what was wanted. */
	if (!unlinkat(directory, name, AT_REMOVEDIR) || mounted_is_gone(-errno))
		return true;
	explain(removal, directory, name, -errno);
	return false;
}

static bool remove_child(struct removal *removal, int directory, const char *name)
{
	int length = mounted_append(removal->path, name), child;
	bool done = false;

	if (length < 0) {
		complain(removal, strerror(-length));
		return false;
	}
	child = mounted_enter(directory, name);
	if (child >= 0) {
		done = remove_limiter(removal, directory, name, child);
		close(child);
	} else if (mounted_is_gone(child)) {
		done = true;
	} else {
		complain(removal,
			 child == -EXDEV ? "something is mounted on it" : strerror(-child));
	}
	removal->path[length] = '\0';
	return done;
}

/* Removes all limiters in @limiter that can be; false: some cannot. DEPTH_MAX deep at most. */
static bool remove_below(struct removal *removal, int limiter)
{
	struct mounted_names names;
	int err = mounted_list(limiter, &names);
	bool all = !err || mounted_is_gone(err);

	if (!all)
		complain(removal, strerror(-err));
	for (size_t i = 0; i < names.count && !removal->lost; i++)
		all = remove_child(removal, limiter, names.all[i]) && all;
	mounted_names_free(&names);
	return all;
}

/*
 * Opens the directory in which the last name of @path is, and cuts that off as @name. A descriptor
 * or -errno.
 */
static int open_above(char *path, const char **name)
{
	char *slash = strrchr(path, '/');
	const char *above = path;
	int opened;

	*name = slash ? slash + 1 : path;
	if (!slash)
		above = ".";
	else if (slash == path)
		above = "/";
	else
		*slash = '\0';
	opened = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return opened < 0 ? -errno : opened;
}

/* Removes the limiter @given in the way of @how. False after a message. */
static bool remove_given(const char *given, const struct removal *how)
{
	struct removal removal = *how;
	size_t length = strlen(given);
	char *path;
	const char *name = "";
	int directory, limiter;

	while (length > 1 && given[length - 1] == '/')
		length--;
	removal.given = given;
	removal.given_bytes = (int)length;
	path = strndup(given, length);
	directory = path ? open_above(path, &name) : -ENOMEM;
	limiter = directory;
	if (directory >= 0)
		limiter = *name ? open_limiter(directory, name) : -ENOTDIR;
	if (!strcmp(name, ".") || !strcmp(name, ".."))
		complain(&removal, "a limiter is removed by its name");
	else if (limiter == -ENOTDIR)
		complain(&removal, "not a limiter of a mounted tree");
	else if (limiter < 0 && !(limiter == -ENOENT && removal.lenient))
		complain(&removal, strerror(-limiter));
	else if (limiter >= 0)
		(void)remove_limiter(&removal, directory, name, limiter);
	if (directory >= 0 && limiter >= 0)
		close(limiter);
	if (directory >= 0)
		close(directory);
	free(path);
	return !removal.failed;
}

static void print_usage(void)
{
	printf("usage: ratefs rm [options] LIMITER...\n"
	       "\n"
	       "Removes limiters: such as have no limiters in them, or with -r those, too.\n"
	       "The exit status is 1 if one stays.\n"
	       "\n"
	       "options:\n"
	       "    -r                  with all limiters below it, the deepest first\n"
	       "    -f                  one that is not there is no failure\n"
	       "    -h, --help          print this\n");
}

int rm_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct removal how = {.recursive = false};
	int option, status = EXIT_SUCCESS;

	while ((option = getopt_long(argc, argv, "rfh", options, NULL)) >= 0) {
		switch (option) {
		case 'r':
			how.recursive = true;
			break;
		case 'f':
			how.lenient = true;
			break;
		case 'h':
			print_usage();
			return EXIT_SUCCESS;
		default:
			return companion_usage();
		}
	}
	if (optind == argc) {
		warnx("no limiter given");
		return companion_usage();
	}
	for (int i = optind; i < argc; i++) {
		if (!remove_given(argv[i], &how))
			status = EXIT_FAILURE;
	}
	return status;
}
