/*
 * crowd - tens of thousands of blocked readers, to be cancelled, granted or killed.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

enum {
	TEXT_MAX = 64,
	STACK_SIZE = 64 * 1024,
	THREADS_PER_PROCESS = 500,
	POLL_NS = 100000,
	SETTLE_NS = 20000000,
	GRANTED_WAIT_S = 120,
};

/* Memory shared by the blocked readers of all processes. */
struct crowd {
	_Atomic long started, answered, failed;
	_Atomic int64_t cancelled_ns;
	const char *path;
};

static struct crowd *crowd;

static void *read_once(void *argument)
{
	char text[TEXT_MAX];
	int fd = client_open(crowd->path);

	(void)argument;
	atomic_fetch_add(&crowd->started, 1);
	if (pread(fd, text, sizeof(text), 0) > 0)
		atomic_fetch_add(&crowd->answered, 1);
	else
		atomic_fetch_add(&crowd->failed, 1);
	for (;;)
		pause();
	return NULL;
}

static void *read_until_cancelled(void *argument)
{
	char text[TEXT_MAX];
	int fd = client_open(crowd->path);
	ssize_t size;

	(void)argument;
	size = pread(fd, text, sizeof(text), 0);
	if (size < 0 && errno == EINTR)
		crowd->cancelled_ns = sample_now_ns();
	else
		fprintf(stderr, "client: the newest reader was not cancelled\n");
	close(fd);
	return NULL;
}

static void on_signal(int signal)
{
	(void)signal;
}

static pthread_t start_thread(void *(*run)(void *))
{
	pthread_attr_t attributes;
	pthread_t thread;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	errno = pthread_create(&thread, &attributes, run, NULL);
	if (errno)
		client_fail("pthread_create");
	pthread_attr_destroy(&attributes);
	return thread;
}

/* A process of @count readers; it ends with the program that started it. */
static pid_t start_process(long count)
{
	pid_t pid = fork();

	if (pid < 0)
		client_fail("fork");
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (long i = 1; i < count; i++)
		start_thread(read_once);
	read_once(NULL);
	exit(EXIT_FAILURE);
}

static void sleep_ns(long ns)
{
	nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* cancel: a newer reader queues, and is interrupted when it waits. */
static void crowd_cancel(int stat_fd, const char *stat_path)
{
	double waiting = load_stat(stat_fd, stat_path, "waiting");
	pthread_t newest = start_thread(read_until_cancelled);
	int64_t start_ns;

	while (load_stat(stat_fd, stat_path, "waiting") <= waiting)
		sleep_ns(POLL_NS);
	sleep_ns(SETTLE_NS);
	crowd->cancelled_ns = 0;
	start_ns = sample_now_ns();
	pthread_kill(newest, SIGUSR1);
	pthread_join(newest, NULL);
	if (!crowd->cancelled_ns)
		client_fail("the newest reader was not cancelled");
	printf("cancel_us %.1f\n", (double)(crowd->cancelled_ns - start_ns) / NS_PER_US);
}

/* grant FILE TEXT: writes TEXT to FILE; how fast the readers are answered from then on. */
static void crowd_grant(const char *path, const char *text)
{
	int64_t start_ns = sample_now_ns(),
		wait_until_ns = start_ns + (int64_t)GRANTED_WAIT_S * NS_PER_S;
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		client_fail(path);
	close(fd);
	while (crowd->answered < crowd->started && sample_now_ns() < wait_until_ns)
		sleep_ns(POLL_NS);
	printf("answered %ld grant_per_s %.0f\n", crowd->answered,
	       (double)crowd->answered * NS_PER_S / (double)(sample_now_ns() - start_ns));
}

static void crowd_kill(const pid_t *pids, long count)
{
	int64_t start_ns = sample_now_ns();

	for (long i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (long i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
	printf("kill_s %.4f\n", (double)(sample_now_ns() - start_ns) / NS_PER_S);
}

void crowd_run(char **argv)
{
	struct sigaction action = {.sa_handler = on_signal};
	long readers = atol(argv[2]);
	int stat_fd = client_open(argv[1]);
	long processes = (readers + THREADS_PER_PROCESS - 1) / THREADS_PER_PROCESS;
	pid_t *pids = calloc((size_t)processes, sizeof(*pids));
	char line[4096], file[2048], text[1024];

	crowd = mmap(NULL, sizeof(*crowd), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (!pids || crowd == MAP_FAILED)
		client_fail("memory");
	crowd->path = argv[0];
	sigaction(SIGUSR1, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (long i = 0, left = readers; i < processes; i++, left -= THREADS_PER_PROCESS)
		pids[i] = start_process(left < THREADS_PER_PROCESS ? left : THREADS_PER_PROCESS);
	while (crowd->started < readers) {
		if (waitpid(-1, NULL, WNOHANG) > 0) {
			errno = EAGAIN;
			client_fail("a process of readers ended early");
		}
		sleep_ns(POLL_NS);
	}
	printf("started %ld\n", crowd->started);
	while (fgets(line, sizeof(line), stdin)) {
		if (strcmp(line, "cancel\n") == 0)
			crowd_cancel(stat_fd, argv[1]);
		else if (sscanf(line, "grant %2047s %1023s", file, text) == 2)
			crowd_grant(file, text);
		else if (strcmp(line, "count\n") == 0)
			printf("answered %ld failed %ld\n", crowd->answered, crowd->failed);
		else if (strcmp(line, "kill\n") == 0)
			crowd_kill(pids, processes);
	}
	free(pids);
}
