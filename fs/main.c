/* main - from the command line to the mount, into the background, and to the end. */
#include "companions/companion.h"
#include "fs/base/inherited.h"
#include "fs/base/log.h"
#include "fs/base/privilege.h"
#include "fs/base/zone_file.h"
#include "fs/keeper/keeper.h"
#include "fs/keeper/mountpoint.h"
#include "fs/keeper/server.h"
#include "fs/keeper/takeover.h"
#include "fs/local/local.h"
#include "fs/local/settings_file.h"
#include "fs/mount/daemon.h"
#include "fs/mount/loop.h"
#include "fs/mount/mount.h"
#include "fs/mount/wake.h"
#include "fs/state/state.h"
#include "fs/zookeeper/member.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The place where settings live: one of the two. */
struct sources {
	struct local *local;
	struct member *member; /* of a fleet */
};

/* A server: the orders of its keeper, and the parts that it is made of. */
struct server {
	int control;   /* socket to the keeper */
	int directory; /* descriptor that names the directory of settings; -1 */
	struct keeper_hello hello;
	struct state *state;
	struct sources sources;
	struct daemon daemon;
};

/* Takes the mount, and goes on where a predecessor ended. 0 or -1. */
static int begin_service(struct server *server)
{
	struct daemon *daemon = &server->daemon;
	struct keeper_mount mount;
	struct parked_place *places;
	uint32_t *used;
	int devices[KEEPER_DEVICES];
	int count, err;

	if (privilege_drop(daemon->options, server->directory))
		return -1;
	server_follow(&server->hello);
	count = server_ask_mount(server->control, &mount, devices);
	if (count < 0)
		return -1;
	if (chdir("/"))
		log_warning("cannot leave the working directory: %s", strerror(errno));
	daemon->outlives = mount.outlives;
	daemon->mount = mount.id;
	if (mount_adopt(daemon, mount.init, mount.init_bytes, devices, (unsigned int)count))
		return -1;
	state_restoring(server->state, STATE_HANDLES);
	err = server->sources.local ? local_start(server->sources.local) : 0;
	places = state_places(server->state, &used);
	if (!server->hello.starts)
		parking_init(&daemon->engine.schedule.parking, places, PARKING_PLACES_MAX, used);
	else if (!err)
		err = takeover(daemon);
	if (!err)
		return 0;
	log_error("cannot start: %s", strerror(-err));
	if (server->sources.local)
		local_stop(server->sources.local);
	mount_end(daemon);
	return -1;
}

/* The server @what goes on. */
static void answer_keeper(void *what)
{
	(void)server_tell(((struct server *)what)->control, KEEPER_ALIVE);
}

/* Serves the mount until its end. 0 or -1. */
static int serve_mount(struct server *server)
{
	struct daemon *daemon = &server->daemon;

	if (begin_service(server))
		return -1;
	mount_stop_waiting(server->hello.background);
	if (server->hello.background)
		log_leave_terminal();
	log_info("%s serves %s", daemon->options->source, daemon->options->mountpoint);
	(void)server_tell(server->control, KEEPER_READY);
	answer_keeper(server); /* so that the keeper knows that this one does */
	loop_run(daemon, answer_keeper, server);
	/* A successor takes over, and no reader notices. */
	if (wake_is_replaced())
		_exit(EXIT_REPLACE);
	close(server->control); /* no question is answered any more */
	/* An answer needs the session: all are given before it goes. */
	daemon_stop(daemon);
	if (server->sources.local)
		local_stop(server->sources.local);
	pages_finish(daemon);
	mount_end(daemon);
	return 0;
}

static int open_source(struct server *server, struct options *options)
{
	struct sources *sources = &server->sources;

	if (options->servers) {
		sources->member = member_open(options, &server->daemon, server->state);
		return sources->member ? 0 : -1;
	}
	/* A keeper of 0.2.0 has sent the path only. */
	if (options->directory && server->directory < 0)
		server->directory = privilege_open(options->directory);
	if (options->directory && server->directory < 0)
		return -1;
	privilege_files(true);
	sources->local = local_open(options->directory, server->directory);
	privilege_files(false);
	return sources->local ? 0 : -1;
}

/* Begins the state of the first server; the coordinator may be at work already. */
static int begin_state(struct server *server, const struct options *options)
{
	struct daemon *daemon = &server->daemon;
	int err;

	daemon_lock(daemon);
	err = state_begin(server->state);
	daemon_unlock(daemon);
	if (!err && options->config)
		err = settings_file_load(options->config, daemon);
	if (!err)
		inherited_was_read(options->config);
	return err;
}

/* Restores the knowledge of a predecessor before the coordinator tells its news. */
static int load_member(struct server *server, const struct options *options)
{
	struct member *member = server->sources.member;
	bool succeeds = state_is_there(server->state);
	int err = 0;

	member_attach(member);
	if (succeeds)
		err = member_resume(member);
	if (!err && succeeds)
		err = state_continue(server->state);
	if (!err)
		err = member_join(member);
	return err || succeeds ? err : begin_state(server, options);
}

/* Loads settings as they are kept, or as a predecessor had them. 0, or an error after a message. */
static int load_limiters(struct server *server, const struct options *options)
{
	struct daemon *daemon = &server->daemon;
	int err;

	/* No number repeats one that a limiter had before. */
	daemon->engine.tree.last_id = state_base(server->state);
	if (server->sources.member)
		return load_member(server, options);
	privilege_files(true);
	err = local_load(server->sources.local, daemon);
	privilege_files(false);
	if (err)
		return err;
	return state_is_there(server->state) ? state_continue(server->state)
					     : begin_state(server, options);
}

static void close_source(struct sources *sources)
{
	if (sources->member)
		member_leave(sources->member);
	else
		local_close(sources->local);
}

/* Tells whether the directory with the settings was removed: no other server can have it back. */
static bool is_removed(int directory)
{
	struct stat status;

	return directory >= 0 && !fstat(directory, &status) && !status.st_nlink;
}

/* Does everything from the source to the end of the mount. Returns the exit status. */
static int run_service(struct server *server, struct options *options)
{
	struct owner root = {server->hello.uid, server->hello.gid, 0755};
	struct sources *sources = &server->sources;
	struct daemon *daemon = &server->daemon;
	struct source *source;
	int status = EXIT_FAILURE, err;

	/* A failure here says nothing of the state. */
	state_restoring(server->state, STATE_NOTHING);
	if (open_source(server, options))
		return is_removed(server->directory) ? EXIT_LOST : EXIT_FAILURE;
	state_restoring(server->state, STATE_ALL);
	source = sources->member ? member_source(sources->member) : local_source(sources->local);
	err = wake_init();
	if (!err)
		err = mount_init(daemon, options, source, server->state, &root);
	if (err) {
		log_error("cannot start: %s", strerror(-err));
		goto no_daemon;
	}
	daemon->keeper = server->hello.pid;
	/* A server that is asked to end before it has a mount gets none. */
	if (!load_limiters(server, options) && (!serve_mount(server) || wake_is_ending()))
		status = EXIT_SUCCESS;
	else if (server->hello.starts && wake_is_ending())
		status =
			EXIT_SUCCESS; /* the mount is to end: no matter that it was not there yet */
	close_source(sources);
	mount_free(daemon);
	if (sources->member)
		member_free(sources->member);
	return status;

no_daemon:
	if (sources->member)
		member_free(sources->member);
	else
		local_close(sources->local);
	return status;
}

/* Replaces a path that is relative to the working directory of the keeper. */
static int replace_path(char **path, const char *told)
{
	free(*path);
	*path = strdup(told);
	return *path ? 0 : -1;
}

/*
 * Tells which part of the state has to be given up: the part that the last of several servers was
 * restoring when it died, or a later part if giving up an earlier one was not enough.
 */
static enum state_part part_to_give_up(const struct server *server)
{
	enum state_part last = state_restored_last(server->state);
	uint32_t least = server->hello.deaths / KEEPER_DEATHS;

	if (!last || !least)
		return STATE_NOTHING;
	least = least < STATE_ALL ? least : STATE_ALL;
	return last > least ? last : (enum state_part)least;
}

/* Moves all of the state out of the way, which @why tells. 0 or -1 after a message. */
static int set_aside(struct server *server, const char *why)
{
	int err = state_set_aside(server->state);

	if (err)
		log_error("the state of the server before cannot be set aside: %s", strerror(-err));
	else
		log_error("the state of the server before %s: kept aside, buckets start empty",
			  why);
	return err;
}

/*
 * Makes sure that the state of a predecessor can be read, or is out of the way. 0 or -1 after a
 * message.
 */
static int read_state(struct server *server)
{
	enum state_part part = part_to_give_up(server);

	state_restoring(server->state, STATE_ALL);
	if (part == STATE_ALL)
		return set_aside(server, "could not be restored");
	if (state_is_strange(server->state)) {
		if (!server->hello.may_refuse)
			return set_aside(server, "is of another version or damaged");
		log_error("the state of the server before is of another version or damaged");
		return -1;
	}
	state_give_up(server->state, part);
	if (part == STATE_HANDLES)
		log_error("open files could not be taken over: they are given up, and reads of "
			  "them get ENODEV");
	else if (part == STATE_LEVELS)
		log_error("the levels of the buckets could not be restored: they start empty");
	return 0;
}

/* Runs a server of the keeper at the other end of @control. Returns the exit status. */
static int run_server(int control, int argc, char *argv[])
{
	struct server server = {.control = control};
	struct options options;
	int descriptor, status = EXIT_FAILURE;

	prctl(PR_SET_NAME, "ratefs");
	if (server_hear(control, &server.hello, &descriptor, &server.directory))
		return EXIT_FAILURE;
	if (!server.hello.background)
		log_prepare();
	if (server.hello.starts)
		mount_stop_waiting(server.hello.background);
	status = options_parse(&options, argc, argv);
	if (status)
		goto out;
	log_set_level(options.log_level);
	log_look_for_journal();
	/* Servers that start after the mount are that user already. */
	status = server.hello.starts ? 0 : privilege_choose(&options);
	if (status)
		goto out;
	status = EXIT_FAILURE;
	server.state = state_open(descriptor, server.hello.starts);
	if (!server.state || replace_path(&options.mountpoint, server.hello.mountpoint) ||
	    (options.directory && replace_path(&options.directory, server.hello.directory)) ||
	    (options.credentials && replace_path(&options.credentials, server.hello.credentials)))
		goto out;
	if (!read_state(&server))
		status = run_service(&server, &options);
out:
	state_close(server.state);
	options_free(&options);
	return status;
}

/* Waits, in the front, until the mount answers or it is clear that it never will. */
static int wait_for_mount(const struct options *options, pid_t child, int ready)
{
	struct stat root;
	char byte;
	int status = 0;

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

static int run_in_background(struct options *options, int argc, char *argv[])
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
		return keeper_run(options, argc, argv, ready[1]);
	}
	close(ready[1]);
	return wait_for_mount(options, child, ready[0]);
}

/* Takes out the argument that names a server's socket, see keeper.h. Returns the socket, or -1. */
static int take_server_option(int *argc, char *argv[])
{
	static const char option[] = "--server=";
	int control;

	if (*argc < 2 || strncmp(argv[1], option, strlen(option)) != 0)
		return -1;
	control = atoi(argv[1] + strlen(option));
	for (int i = 1; i < *argc; i++)
		argv[i] = argv[i + 1];
	--*argc;
	return control;
}

/* Makes the mount point absolute, and refuses what is none. 0, or -1 after a message. */
static int look_at_mountpoint(struct options *options)
{
	char *absolute = realpath(options->mountpoint, NULL);
	struct stat mountpoint;

	if (!absolute) {
		log_error("mount point '%s': %s", options->mountpoint, strerror(errno));
		return -1;
	}
	free(options->mountpoint);
	options->mountpoint = absolute;
	/* First of all: a tree that hangs would not answer the stat(2). */
	if (!options->fake && mountpoint_check(options->mountpoint))
		return -1;
	if (!stat(options->mountpoint, &mountpoint) && !S_ISDIR(mountpoint.st_mode)) {
		log_error("mount point '%s': not a directory", options->mountpoint);
		return -1;
	}
	if (!options->fake)
		mountpoint_warn(options->mountpoint);
	return 0;
}

/* Returns the absolute path of a file that is not there, which the caller frees, or NULL. */
static char *absolute_path(const char *path)
{
	char *copies[] = {strdup(path), strdup(path)}, *above = NULL, *absolute = NULL;

	if (copies[0] && copies[1])
		above = realpath(dirname(copies[0]), NULL);
	if (above &&
	    asprintf(&absolute, "%s/%s", strcmp(above, "/") ? above : "", basename(copies[1])) < 0)
		absolute = NULL;
	free(above);
	free(copies[0]);
	free(copies[1]);
	return absolute;
}

/* Makes the directory of settings if it is not there, and may be. 0, or -1 after a message. */
static int prepare_directory(struct options *options)
{
	char *absolute = realpath(options->directory, NULL);

	if (!absolute && errno == ENOENT)
		absolute = absolute_path(options->directory);
	if (!absolute) {
		log_error("directory '%s': %s", options->directory, strerror(errno));
		return -1;
	}
	free(options->directory);
	options->directory = absolute;
	if (mountpoint_check_settings(options->mountpoint, absolute))
		return -1;
	return privilege_make(absolute);
}

int main(int argc, char *argv[])
{
	struct options options;
	int status, control;

	if (inherited_mend()) {
		perror("ratefs: /dev/null");
		return EXIT_FAILURE;
	}
	control = take_server_option(&argc, argv);
	zone_use(&ZONE_FILES);
	if (control >= 0)
		return run_server(control, argc, argv);
	if (companion_run(argc, argv, &status))
		return status;
	if (argc > 1 && !strcmp(argv[1], "--reload"))
		return keeper_reload(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "--freeze")) {
		inherited_close(NULL); /* it leaves a process behind */
		return keeper_freeze(argc, argv);
	}
	if (argc > 1 && !strcmp(argv[1], "--thaw"))
		return keeper_thaw(argc, argv);
	status = options_parse(&options, argc, argv);
	if (status)
		goto out;
	if (options.help) {
		options_usage("ratefs");
		goto out;
	}
	if (options.version) {
		options_version();
		goto out;
	}
	/* The first server reads it, which the shell may have opened: config=<(COMMAND). */
	inherited_close(options.config);
	log_set_level(options.log_level);
	log_look_for_journal();
	status = privilege_choose(&options);
	if (status)
		goto out;
	status = EXIT_FAILURE;
	if (look_at_mountpoint(&options))
		goto out;
	if (options.directory && !options.fake && prepare_directory(&options))
		goto out;
	if (options.fake)
		status = EXIT_SUCCESS;
	else if (options.foreground)
		status = keeper_run(&options, argc, argv, -1);
	else
		status = run_in_background(&options, argc, argv);
out:
	options_free(&options);
	return status;
}
