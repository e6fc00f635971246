/* keeper - the small process that mounts, and outlives the server, see keeper.h. */
#include "fs/keeper/keeper.h"
#include "fs/base/clock.h"
#include "fs/base/inherited.h"
#include "fs/base/log.h"
#include "fs/base/privilege.h"
#include "fs/keeper/mountpoint.h"
#include "fs/keeper/notify.h"
#include "fs/keeper/socket.h"
#include "fs/mount/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Linux 6.9 says so in its first message: bit 39 of both words of flags. */
enum { HAS_RESEND = 1 << 7 };

struct keeper {
	struct options *options;
	char **argv;	     /* owned; of servers */
	char path[PATH_MAX]; /* of the program on disk */
	char server_option[32];
	struct fuse_session *fuse; /* NULL: not mounted yet */
	struct keeper_mount mount;
	int devices[KEEPER_DEVICES];
	unsigned int device_count;
	struct keeper_hello hello;
	int directory; /* descriptor that names the directory of settings; -1 */
	int state;     /* descriptor of the memory */
	int program;   /* descriptor of the file that servers are started from */
	int before;    /* that of the one before, while the next has not answered yet; -1 */
	int signals;   /* descriptor */
	int ready;     /* pipe to who waits for the mount; -1 */
	int control;
	pid_t server;		 /* 0: none now */
	uint64_t ready_ns;	 /* when it was; 0: it is not */
	uint64_t start_ns;	 /* when the next is to be started */
	uint64_t ask_ns;	 /* when the server is asked next whether it goes on */
	unsigned int unanswered; /* questions in a row */
	bool has_answered;	 /* a question */
	bool hangs;		 /* it was killed for that */
	unsigned int failures;
	bool is_told; /* the service manager, that the mount answers */
	bool ending;
	int asked;  /* the signal that asked for the end, or 0 */
	int status; /* at the end */
};

static void end_mount(struct keeper *keeper, int status)
{
	if (keeper->is_told && !keeper->ending)
		notify_stopping();
	keeper->ending = true;
	keeper->status = status;
	keeper->start_ns = NEVER_NS;
	keeper->ask_ns = NEVER_NS;
}

/* Turns this child into the server. Nothing but exec may fail here. */
__attribute__((noreturn)) static void become_server(struct keeper *keeper, int control,
						    pid_t parent)
{
	sigset_t none;

	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_FAILURE);
	privilege_hand_on();
	fcntl(control, F_SETFD, 0);
	snprintf(keeper->server_option, sizeof(keeper->server_option), "--server=%d", control);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fexecve(keeper->program, keeper->argv, environ);
	log_error("cannot start a server: %s", strerror(errno));
	_exit(EXIT_FAILURE);
}

/*
 * Starts a server later, since memory or processes are short: a mount that is there waits for it.
 */
static void start_later(struct keeper *keeper)
{
	log_error("cannot start a server: %s", strerror(errno));
	if (!keeper->fuse || ++keeper->failures > KEEPER_FAILURES)
		end_mount(keeper, EXIT_FAILURE);
	else
		keeper->start_ns = clock_ns() + (KEEPER_PAUSE_NS << keeper->failures);
}

/*
 * Greets the server. It opens the directory of settings by the descriptor: a path leads to another
 * one once that was moved.
 */
static void greet_server(struct keeper *keeper)
{
	const int descriptors[KEEPER_FILES] = {keeper->state, keeper->directory};

	keeper->hello.may_refuse = keeper->before >= 0;
	(void)keeper_socket_send(keeper->control, &keeper->hello, sizeof(keeper->hello),
				 descriptors, keeper->directory < 0 ? 1 : KEEPER_FILES);
	keeper->hello.starts++;
}

static void start_server(struct keeper *keeper)
{
	int sockets[2];
	pid_t parent = getpid();

	keeper->start_ns = NEVER_NS;
	keeper->ask_ns = NEVER_NS;
	keeper->ready_ns = 0;
	keeper->unanswered = 0;
	keeper->has_answered = keeper->hangs = false;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets)) {
		start_later(keeper);
		return;
	}
	keeper->server = fork();
	if (!keeper->server)
		become_server(keeper, sockets[1], parent);
	if (keeper->server < 0) {
		start_later(keeper);
		keeper->server = 0;
		close(sockets[0]);
		close(sockets[1]);
		return;
	}
	close(sockets[1]);
	keeper->control = sockets[0];
	greet_server(keeper);
	inherited_finish(); /* only the first server needs it */
}

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 14)

/* Opens one more descriptor of the connection of @descriptor, or -1. */
static int clone_device(int descriptor)
{
	uint32_t source = (uint32_t)descriptor;
	int clone = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	if (clone >= 0 && ioctl(clone, FUSE_DEV_IOC_CLONE, &source)) {
		close(clone);
		clone = -1;
	}
	return clone;
}

#else

/* A server reads from one descriptor only. */
static int clone_device(int descriptor)
{
	(void)descriptor;
	return -1;
}

#endif

/* Notes the descriptor of the mount and clones of it, see channel.h. */
static void clone_devices(struct keeper *keeper)
{
	unsigned int count = 1;

	keeper->devices[0] = fuse_session_fd(keeper->fuse);
	while (count < KEEPER_DEVICES &&
	       (keeper->devices[count] = clone_device(keeper->devices[0])) >= 0)
		count++;
	keeper->device_count = count;
}

/* Tells whether this process may start @program once more, with the privileges that it has now. */
static bool may_execute(int program)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", program);
	return !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

/* Mounts, and takes the kernel's first message. 0, or the exit status after a message. */
static int make_mount(struct keeper *keeper)
{
	struct keeper_mount *mount = &keeper->mount;
	const struct fuse_init_in *init =
		(const struct fuse_init_in *)(mount->init + sizeof(struct fuse_in_header));
	char buffer[FUSE_MIN_READ_BUFFER];
	ssize_t got;
	int status, err;

	/* Another one may have mounted while the first server was loading. */
	if (mountpoint_check(keeper->options->mountpoint))
		return EXIT_FAILURE;
	/* Hosts of a fleet share; settings in a directory have one daemon. */
	if (!keeper->options->servers && !keeper->options->directory) {
		mountpoint_claim(keeper->options->mountpoint);
		if (mountpoint_check(keeper->options->mountpoint))
			return EXIT_FAILURE;
	}
	status = mount_session(&keeper->fuse, keeper->options, NULL);
	if (status)
		return status;
	if (fuse_session_mount(keeper->fuse, keeper->options->mountpoint)) {
		log_error("cannot mount on %s", keeper->options->mountpoint);
		fuse_session_destroy(keeper->fuse);
		keeper->fuse = NULL;
		return EXIT_FAILURE;
	}
	err = mounts_find(keeper->options->mountpoint, &mount->id);
	if (err) {
		log_error("%s does not lead to the mount: %s", keeper->options->mountpoint,
			  strerror(-err));
		if (err != -EINVAL)
			fuse_session_unmount(keeper->fuse);
		return EXIT_FAILURE;
	}
	if (mounts_covers_another(&mount->id)) {
		/* It was made since the check: of two at once the upper one goes. */
		fuse_session_unmount(keeper->fuse);
		(void)mountpoint_check(keeper->options->mountpoint);
		return EXIT_FAILURE;
	}
	clone_devices(keeper);
	do
		got = read(keeper->devices[0], buffer, sizeof(buffer));
	while (got < 0 && errno == EINTR);
	if (got < (ssize_t)sizeof(struct fuse_in_header) || got > KEEPER_INIT_MAX ||
	    ((const struct fuse_in_header *)buffer)->opcode != FUSE_INIT) {
		log_error("the mount ended before it began");
		return EXIT_FAILURE;
	}
	mount->kind = KEEPER_MOUNT;
	mount->init_bytes = (uint32_t)got;
	memcpy(mount->init, buffer, (size_t)got);
	/* The second word of flags is there since 7.36; before that the message is shorter. */
	mount->outlives = (size_t)got >= sizeof(struct fuse_in_header) + 20 &&
			  init->flags2 & HAS_RESEND;
	if (chdir("/"))
		log_warning("cannot leave the working directory: %s", strerror(errno));
	/* Later servers begin with the privileges that the first one ends with. */
	if (privilege_drop(keeper->options, keeper->directory))
		return EXIT_FAILURE;
	if (mount->outlives && !may_execute(keeper->program)) {
		log_warning("%s may not be executed by this user: the mount will end with its "
			    "server",
			    keeper->path);
		mount->outlives = false;
	}
	return 0;
}

/* Gives the mount to the server. At the end there is none any more, and the server ends on that. */
static void give_mount(struct keeper *keeper)
{
	int status = keeper->fuse || keeper->ending ? 0 : make_mount(keeper);

	if (status)
		end_mount(keeper, status);
	if (keeper->ending) {
		close(keeper->control);
		keeper->control = -1;
		return;
	}
	(void)keeper_socket_send(keeper->control, &keeper->mount, sizeof(keeper->mount),
				 keeper->devices, keeper->device_count);
}

static void server_is_ready(struct keeper *keeper)
{
	keeper->ready_ns = clock_ns();
	mount_stop_waiting(keeper->hello.background);
	if (keeper->before >= 0) {
		close(keeper->before);
		keeper->before = -1;
	}
	if (keeper->hello.starts > 1)
		log_info("server %d goes on", (int)keeper->server);
	if (keeper->ready >= 0) {
		log_leave_terminal();
		if (write(keeper->ready, "", 1) != 1)
			return; /* the pipe will tell that its reader is gone */
		close(keeper->ready);
		keeper->ready = -1;
	}
	if (!keeper->is_told)
		notify_ready();
	keeper->is_told = true;
}

/* A server that has said once that it goes on is asked from then on, if another one can follow. */
static void server_is_alive(struct keeper *keeper)
{
	if (keeper->hangs || keeper->ending)
		return; /* too late, or it is to end, not to go on */
	if (keeper->unanswered)
		keeper->has_answered = true;
	keeper->unanswered = 0;
	if (keeper->ask_ns == NEVER_NS && keeper->mount.outlives)
		keeper->ask_ns = clock_ns() + KEEPER_ASK_NS;
}

/* Tells whether a debugger has stopped process @pid, or has it; that of a container is not seen. */
static bool is_traced(pid_t pid)
{
	char path[64], line[256], process_state = 0;
	int tracer = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (fgets(line, sizeof(line), file) && sscanf(line, "TracerPid: %d", &tracer) != 1)
		(void)sscanf(line, "State: %c", &process_state);
	fclose(file);
	return tracer || process_state == 't';
}

/* Tells that the server hangs, and kills it. */
static void kill_server(struct keeper *keeper)
{
	keeper->ask_ns = NEVER_NS;
	keeper->hangs = true;
	kill(keeper->server, SIGKILL);
	if (keeper->ending) {
		keeper->status = EXIT_FAILURE;
		log_error("server %d has not ended for %d s: killed%s", (int)keeper->server,
			  (int)(KEEPER_END_NS / NSEC_PER_SEC),
			  keeper->ready_ns ? ", levels are not written and leases not given back"
					   : " as it started");
	} else {
		log_error("server %d has not answered for %d s", (int)keeper->server,
			  (int)(KEEPER_QUESTIONS * KEEPER_ASK_NS / NSEC_PER_SEC));
	}
}

/*
 * Asks the server whether it goes on. One that did not answer for long hangs, and is killed. One
 * that is to end is asked nothing: the questions count its time, of which a machine that sleeps and
 * a debugger take little.
 */
static void ask_server(struct keeper *keeper)
{
	if (is_traced(keeper->server))
		keeper->unanswered = 0;
	if (keeper->unanswered == KEEPER_QUESTIONS) {
		kill_server(keeper);
		return;
	}
	keeper->unanswered++;
	keeper->ask_ns = clock_ns() +
			 (keeper->ending ? KEEPER_END_NS / KEEPER_QUESTIONS : KEEPER_ASK_NS);
	if (!keeper->ending)
		kill(keeper->server, SIGURG);
}

static void hear_server(struct keeper *keeper)
{
	uint32_t kind;

	if (keeper_socket_receive(keeper->control, &kind, sizeof(kind), NULL, 0) < 0) {
		close(keeper->control);
		keeper->control = -1; /* it ends, or has ended */
		if (!keeper->ending)
			keeper->ask_ns = NEVER_NS;
	} else if (kind == KEEPER_LOADED) {
		give_mount(keeper);
	} else if (kind == KEEPER_READY) {
		server_is_ready(keeper);
	} else if (kind == KEEPER_ALIVE) {
		server_is_alive(keeper);
	}
}

/*
 * Starts the next server after one that died, or gives up. SIGKILL from outside (@killed) is no
 * sign that the server died of what it restored; that it hangs before it has answered once may be.
 */
static void replace_server(struct keeper *keeper, const char *why, bool killed)
{
	bool served = keeper->ready_ns && clock_ns() - keeper->ready_ns >= KEEPER_LIFE_NS &&
		      (!keeper->hangs || keeper->has_answered);

	keeper->failures = served ? 0 : keeper->failures + 1;
	keeper->hello.deaths = served ? 0 : keeper->hello.deaths + (killed ? 0 : 1);
	if (!keeper->mount.outlives) {
		log_error("the server %s, and the mount ends with it", why);
		end_mount(keeper, EXIT_FAILURE);
		return;
	}
	if (keeper->failures > KEEPER_FAILURES) {
		log_error("the server %s, as it did %u times before as soon as it was started: "
			  "the mount ends",
			  why, keeper->failures - 1);
		end_mount(keeper, EXIT_FAILURE);
		return;
	}
	if (keeper->before >= 0 && !keeper->ready_ns) {
		log_error("the new server %s: back to the program that ran before", why);
		close(keeper->program);
		keeper->program = keeper->before;
		keeper->before = -1;
		keeper->hello.deaths = 0;
	} else {
		log_error("the server %s: the next one goes on", why);
	}
	keeper->start_ns = clock_ns();
	if (keeper->failures > 1)
		keeper->start_ns += KEEPER_PAUSE_NS << (keeper->failures - 2);
}

static void bury_server(struct keeper *keeper)
{
	/* A program that is no ratefs may end with 0, too. */
	bool is_strange = keeper->before >= 0 && !keeper->ready_ns &&
			  mount_is_connected(keeper->fuse);
	char why[64];
	bool replaced;
	int status;

	if (!keeper->server || waitpid(keeper->server, &status, WNOHANG) != keeper->server)
		return;
	keeper->server = 0;
	keeper->ask_ns = NEVER_NS;
	if (keeper->control >= 0)
		close(keeper->control);
	keeper->control = -1;
	if (WIFEXITED(status))
		snprintf(why, sizeof(why), "ended with status %d", WEXITSTATUS(status));
	else
		snprintf(why, sizeof(why), "was killed by signal %d", WTERMSIG(status));
	replaced = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_REPLACE && keeper->ready_ns;
	if (keeper->status) {
		end_mount(keeper, keeper->status);
	} else if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_LOST) {
		end_mount(keeper, EXIT_FAILURE); /* it has said why */
	} else if ((!status && !is_strange) || (keeper->ending && replaced) ||
		   (keeper->ending && WIFSIGNALED(status) &&
		    (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == keeper->asked))) {
		/* It may have died before the end was asked for, or was asked as it started. */
		end_mount(keeper, EXIT_SUCCESS);
	} else if (!keeper->fuse || keeper->ending) {
		/* It has said why. */
		if (!WIFEXITED(status))
			log_error("the server %s", why);
		end_mount(keeper, WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE);
	} else if (replaced) {
		keeper->start_ns = 0;
	} else {
		replace_server(keeper, why,
			       WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL &&
				       !keeper->hangs);
	}
}

static void reload_server(struct keeper *keeper)
{
	int program;

	if (!keeper->mount.outlives || !keeper->ready_ns || !keeper->server || keeper->ending) {
		log_warning("no other server now: %s",
			    keeper->mount.outlives ? "this one is not there yet"
						   : "the mount would end with this one");
		return;
	}
	program = open(keeper->path, O_RDONLY | O_CLOEXEC);
	if (program < 0) {
		log_error("cannot open %s: %s", keeper->path, strerror(errno));
		return;
	}
	if (keeper->before >= 0)
		close(keeper->program);
	else
		keeper->before = keeper->program;
	keeper->program = program;
	/* Programs that did not start before this one served well are not in a row. */
	if (clock_ns() - keeper->ready_ns >= KEEPER_LIFE_NS)
		keeper->failures = 0;
	log_info("another server takes over");
	kill(keeper->server, SIGHUP);
}

/*
 * Ends the mount on the signal @number, which the server gets, too. Its time runs from the first
 * such signal.
 */
static void end_by_signal(struct keeper *keeper, int number)
{
	bool was_killed = keeper->ending && keeper->hangs;
	uint64_t ask_ns = keeper->ask_ns;

	bury_server(keeper); /* one that was dead before is not to blame */
	if (!keeper->asked) {
		ask_ns = clock_ns();
		keeper->unanswered = 0;
	}
	keeper->asked = number;
	end_mount(keeper, was_killed ? EXIT_FAILURE : EXIT_SUCCESS);
	if (!keeper->server)
		return;
	kill(keeper->server, number);
	keeper->ask_ns = ask_ns;
}

/* The command that waits for the mount was ended: it is not wanted any more. */
static void leave_with_command(struct keeper *keeper)
{
	close(keeper->ready);
	keeper->ready = -1;
	end_by_signal(keeper, SIGTERM);
}

static void take_signal(struct keeper *keeper)
{
	struct signalfd_siginfo signal;

	if (read(keeper->signals, &signal, sizeof(signal)) != sizeof(signal))
		return;
	switch (signal.ssi_signo) {
	case SIGCHLD:
		bury_server(keeper);
		break;
	case SIGHUP:
		reload_server(keeper);
		break;
	default:
		end_by_signal(keeper, (int)signal.ssi_signo);
		break;
	}
}

static int wait_ms(const struct keeper *keeper)
{
	uint64_t until_ns = keeper->start_ns < keeper->ask_ns ? keeper->start_ns : keeper->ask_ns;
	int64_t left_ns = (int64_t)(until_ns - clock_ns());

	if (until_ns == NEVER_NS)
		return -1;
	return left_ns > 0 ? (int)((left_ns + 999999) / 1000000) : 0;
}

static void keep_mount(struct keeper *keeper)
{
	while (keeper->server || !keeper->ending) {
		/* The pipe tells by itself that its reader is gone. */
		struct pollfd ready[3] = {{.fd = keeper->signals, .events = POLLIN},
					  {.fd = keeper->control, .events = POLLIN},
					  {.fd = keeper->ready}};

		if (!keeper->server && keeper->start_ns <= clock_ns())
			start_server(keeper);
		else if (poll(ready, 3, wait_ms(keeper)) > 0) {
			/* Messages of the server come before signals. */
			if (ready[2].revents)
				leave_with_command(keeper);
			else if (ready[1].revents)
				hear_server(keeper);
			else
				take_signal(keeper);
		} else if (keeper->ask_ns <= clock_ns()) {
			ask_server(keeper);
		}
	}
}

static int prepare_keeper(struct keeper *keeper, int argc, char *argv[])
{
	struct options *options = keeper->options;
	ssize_t length = readlink("/proc/self/exe", keeper->path, sizeof(keeper->path) - 1);
	struct rlimit size;
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < 4; i++)
		sigaddset(&signals, (const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP}[i]);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* The memory of state.h is a file; where that is too large there is a message. */
	signal(SIGXFSZ, SIG_IGN);
	if (!getrlimit(RLIMIT_FSIZE, &size)) {
		size.rlim_cur = size.rlim_max;
		(void)setrlimit(RLIMIT_FSIZE, &size);
	}
	keeper->signals = signalfd(-1, &signals, SFD_CLOEXEC);
	keeper->program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	keeper->state = memfd_create("ratefs-state", MFD_CLOEXEC);
	keeper->argv = calloc((size_t)argc + 2, sizeof(*keeper->argv));
	if (length < 0 || keeper->signals < 0 || keeper->program < 0 || keeper->state < 0 ||
	    !keeper->argv) {
		log_error("cannot start: %s", strerror(errno));
		return -1;
	}
	keeper->argv[0] = argv[0];
	keeper->argv[1] = keeper->server_option;
	for (int i = 1; i < argc; i++)
		keeper->argv[i + 1] = argv[i];
	snprintf(keeper->hello.mountpoint, PATH_MAX, "%s", options->mountpoint);
	if (options->directory) {
		snprintf(keeper->hello.directory, PATH_MAX, "%s", options->directory);
		keeper->directory = privilege_open(options->directory);
		if (keeper->directory < 0)
			return -1;
	}
	if (options->credentials && !realpath(options->credentials, keeper->hello.credentials))
		snprintf(keeper->hello.credentials, PATH_MAX, "%s", options->credentials);
	return 0;
}

/*
 * Unmounts what this process has mounted. libfuse would unmount whatever is at the path by now: a
 * device that says that the mount has ended, as this pipe does, keeps it from that.
 */
static void leave_mount(struct keeper *keeper)
{
	bool is_connected = mount_is_connected(keeper->fuse);
	int ends[2];

	if (!pipe2(ends, O_CLOEXEC)) {
		close(ends[0]);
		if (dup2(ends[1], fuse_session_fd(keeper->fuse)) >= 0)
			fuse_session_unmount(keeper->fuse);
		close(ends[1]);
	}
	fuse_session_destroy(keeper->fuse);
	/* Only now: a path that leads through this tree would wait for an answer. */
	if (is_connected)
		mounts_leave(keeper->options->mountpoint, &keeper->mount.id);
}

int keeper_run(struct options *options, int argc, char *argv[], int ready)
{
	struct keeper keeper = {.options = options,
				.directory = -1,
				.state = -1,
				.program = -1,
				.before = -1,
				.signals = -1,
				.control = -1,
				.ask_ns = NEVER_NS,
				.ready = ready};

	keeper.hello = (struct keeper_hello){.kind = KEEPER_HELLO,
					     .version = KEEPER_VERSION,
					     .pid = getpid(),
					     .uid = getuid(),
					     .gid = getgid(),
					     .background = ready >= 0};
	keeper.status = EXIT_FAILURE;
	if (ready < 0)
		log_prepare();
	if (!prepare_keeper(&keeper, argc, argv)) {
		keeper.status = EXIT_SUCCESS;
		keep_mount(&keeper);
	}
	for (unsigned int i = 1; i < keeper.device_count; i++)
		close(keeper.devices[i]);
	if (keeper.fuse)
		leave_mount(&keeper);
	free(keeper.argv);
	return keeper.status;
}
