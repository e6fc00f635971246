/* main - from the command line to the mount, into the background, and to the end. */
#include "companions/companion.h"
#include "fs/daemon.h"
#include "fs/log.h"
#include "fs/loop.h"
#include "fs/member.h"
#include "fs/metrics.h"
#include "fs/notify.h"
#include "fs/privilege.h"
#include "fs/session.h"
#include "fs/settings_file.h"
#include "fs/source_local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Absolute, since the daemon's working directory will be `/`. 0 or -1 after a message. */
static int make_absolute(char **path, const char *what)
{
	char *absolute = realpath(*path, NULL);

	if (!absolute) {
		log_error("%s '%s': %s", what, *path, strerror(errno));
		return -1;
	}
	free(*path);
	*path = absolute;
	return 0;
}

/* Cuts the daemon off from the terminal, once nothing is left to be said on it. */
static void leave_terminal(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	log_to_syslog();
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

/* Where settings live: one of the two. */
struct sources {
	struct source_local *local;
	struct member *member; /* of a fleet */
};

/* Serves the mount until its end. @ready is a pipe to tell on that it answers, or -1. */
static int serve(struct daemon *daemon, struct sources *sources, int ready)
{
	int err = session_greet(daemon);

	if (err) {
		log_error("the mount ended before it began");
		goto out;
	}
	err = privilege_drop(daemon->options);
	if (err)
		goto out;
	err = sources->local ? source_local_start(sources->local) : 0;
	if (err) {
		log_error("cannot start: %s", strerror(-err));
		goto out;
	}
	if (ready >= 0)
		leave_terminal();
	log_info("%s serves %s", daemon->options->source, daemon->options->mountpoint);
	if (ready >= 0) {
		if (write(ready, "", 1) != 1)
			log_warning("nobody waits for the mount");
		close(ready);
	}
	notify_ready();
	loop_run(daemon);
	notify_stopping();
	/* Nobody may answer once the session is gone. */
	daemon_stop(daemon);
	if (sources->local)
		source_local_stop(sources->local);
	metrics_finish(daemon);
out:
	session_unmount(daemon);
	return err;
}

static int open_source(struct sources *sources, struct options *options, struct daemon *daemon)
{
	if (options->servers) {
		sources->member = member_open(options, daemon);
	} else {
		privilege_files(true);
		sources->local = source_local_open(options->directory);
		privilege_files(false);
	}
	return sources->member || sources->local ? 0 : -1;
}

/* Settings as they are kept. 0, or an error after a message. */
static int load(struct sources *sources, struct daemon *daemon)
{
	int err;

	if (sources->member)
		return member_join(sources->member);
	privilege_files(true);
	err = source_local_load(sources->local, daemon);
	privilege_files(false);
	return err;
}

static void close_source(struct sources *sources)
{
	if (sources->member)
		member_leave(sources->member);
	else
		source_local_close(sources->local);
}

/* Everything from the source to the end of the mount; the exit status. */
static int run(struct options *options, int ready)
{
	struct owner root = {getuid(), getgid(), 0755};
	struct sources sources = {0};
	struct daemon daemon;
	struct source *source;
	int status = EXIT_FAILURE, err;

	if (open_source(&sources, options, &daemon))
		return EXIT_FAILURE;
	source = sources.member ? member_source(sources.member)
				: source_local_interface(sources.local);
	err = loop_init();
	if (!err)
		err = daemon_init(&daemon, options, source, &root);
	if (err) {
		log_error("cannot start: %s", strerror(-err));
		goto no_daemon;
	}
	err = load(&sources, &daemon);
	if (!err && options->config)
		err = settings_file_load(options->config, &daemon);
	if (err)
		goto no_mount;
	status = session_mount(&daemon);
	if (!status && chdir("/"))
		log_warning("cannot leave the working directory: %s", strerror(errno));
	if (!status && serve(&daemon, &sources, ready))
		status = EXIT_FAILURE;
no_mount:
	close_source(&sources);
	daemon_free(&daemon);
	if (sources.member)
		member_free(sources.member);
	return status;

no_daemon:
	if (sources.member)
		member_free(sources.member);
	else
		source_local_close(sources.local);
	return status;
}

/* The front: waits until the mount answers, or says that it never will. */
static int wait_for_mount(const struct options *options, pid_t child, int ready)
{
	struct stat root;
	char byte;
	int status;

	if (read(ready, &byte, 1) == 1) {
		if (!stat(options->mountpoint, &root))
			return EXIT_SUCCESS;
		log_error("%s does not answer: %s", options->mountpoint, strerror(errno));
		return EXIT_FAILURE;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

static int run_in_background(struct options *options)
{
	int ready[2];
	pid_t child;

	if (pipe2(ready, O_CLOEXEC)) {
		log_error("no pipe: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	child = fork();
	if (child < 0) {
		log_error("cannot fork: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (!child) {
		close(ready[0]);
		setsid();
		return run(options, ready[1]);
	}
	close(ready[1]);
	return wait_for_mount(options, child, ready[0]);
}

int main(int argc, char *argv[])
{
	struct options options;
	struct stat mountpoint;
	int status;

	if (companion_run(argc, argv, &status))
		return status;
	status = options_parse(&options, argc, argv);
	if (status)
		goto out;
	if (options.help) {
		options_usage("ratefs");
		goto out;
	}
	if (options.version) {
		printf("ratefs %s, libfuse %s\n", RATEFS_VERSION, fuse_pkgversion());
		goto out;
	}
	log_set_level(options.log_level);
	log_look_for_journal();
	status = privilege_choose(&options);
	if (status)
		goto out;
	status = EXIT_FAILURE;
	if (make_absolute(&options.mountpoint, "mount point"))
		goto out;
	if (!stat(options.mountpoint, &mountpoint) && !S_ISDIR(mountpoint.st_mode)) {
		log_error("mount point '%s': not a directory", options.mountpoint);
		goto out;
	}
	if (options.directory && !mkdir(options.directory, 0700)) {
		if (privilege_give(options.directory))
			goto out;
	} else if (options.directory && errno != EEXIST) {
		log_error("cannot make '%s': %s", options.directory, strerror(errno));
		goto out;
	}
	if (options.directory && make_absolute(&options.directory, "directory"))
		goto out;
	if (options.fake)
		status = EXIT_SUCCESS;
	else if (options.foreground)
		status = run(&options, -1);
	else
		status = run_in_background(&options);
out:
	options_free(&options);
	return status;
}
