/*
 * load - clients that go on until they are told to end, and a look at what is granted meanwhile.
 */
#include "client.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sample.h"

enum {
	LINE_MAX_BYTES = 64,
	STAT_BYTES = 8192,
	LOOK_NS = 1000000,
	SETTLE_NS = NS_PER_S / 10,
};

static void sleep_until_ns(int64_t at_ns)
{
	struct timespec at = {.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

struct worker {
	pthread_t thread;
	const char *path;
	int64_t work_ns, start_ns, end_ns;
	long tokens;
};

static int64_t thread_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

static void *take_and_compute(void *argument)
{
	struct worker *worker = argument;
	int fd = client_open(worker->path);

	while (sample_now_ns() < worker->end_ns) {
		int64_t until_ns;

		client_number(fd, worker->path);
		if (sample_now_ns() >= worker->start_ns)
			worker->tokens++;
		until_ns = thread_cpu_ns() + worker->work_ns;
		while (thread_cpu_ns() < until_ns)
			;
	}
	close(fd);
	return NULL;
}

void load_work(char **argv)
{
	static struct worker workers[READERS_MAX];
	int count = client_readers(argv[1]);
	double seconds = atof(argv[3]);
	int64_t start_ns = sample_now_ns() + SETTLE_NS;
	long tokens = 0;

	for (int i = 0; i < count; i++) {
		workers[i] = (struct worker){
			.path = argv[0],
			.work_ns = atol(argv[2]) * NS_PER_US,
			.start_ns = start_ns,
			.end_ns = start_ns + (int64_t)(seconds * NS_PER_S),
		};
		errno = pthread_create(&workers[i].thread, NULL, take_and_compute, &workers[i]);
		if (errno)
			client_fail("pthread_create");
	}
	for (int i = 0; i < count; i++) {
		pthread_join(workers[i].thread, NULL);
		tokens += workers[i].tokens;
	}
	printf("tokens_per_s %.1f\n", (double)tokens / seconds);
}

void load_trickle(char **argv)
{
	int64_t period_ns = (int64_t)(NS_PER_S / atof(argv[1])), next_ns = sample_now_ns();
	int fd = client_open(argv[0]);

	for (;;) {
		client_number(fd, argv[0]);
		next_ns += period_ns;
		if (next_ns < sample_now_ns())
			next_ns = sample_now_ns();
		sleep_until_ns(next_ns);
	}
}

/* Shared by the readers of `gaps`. */
static struct {
	pthread_mutex_t lock;
	const char *path;
	int64_t last_ns, gap_ns, read_ns;
	long tokens;
} gaps = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *take_and_tell(void *argument)
{
	int fd = client_open(gaps.path);

	(void)argument;
	for (;;) {
		int64_t start_ns = sample_now_ns(), end_ns;

		client_number(fd, gaps.path);
		end_ns = sample_now_ns();
		pthread_mutex_lock(&gaps.lock);
		if (gaps.last_ns && end_ns - gaps.last_ns > gaps.gap_ns)
			gaps.gap_ns = end_ns - gaps.last_ns;
		if (end_ns > gaps.last_ns)
			gaps.last_ns = end_ns;
		if (end_ns - start_ns > gaps.read_ns)
			gaps.read_ns = end_ns - start_ns;
		gaps.tokens++;
		pthread_mutex_unlock(&gaps.lock);
	}
	return NULL;
}

void load_gaps(char **argv)
{
	char line[LINE_MAX_BYTES];
	pthread_t thread;

	gaps.path = argv[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0, count = client_readers(argv[1]); i < count; i++) {
		errno = pthread_create(&thread, NULL, take_and_tell, NULL);
		if (errno)
			client_fail("pthread_create");
	}
	while (fgets(line, sizeof(line), stdin)) {
		pthread_mutex_lock(&gaps.lock);
		printf("tokens %ld gap_us %.1f read_us %.1f\n", gaps.tokens,
		       (double)gaps.gap_ns / NS_PER_US, (double)gaps.read_ns / NS_PER_US);
		gaps.tokens = 0;
		gaps.gap_ns = gaps.read_ns = 0;
		pthread_mutex_unlock(&gaps.lock);
	}
	exit(EXIT_SUCCESS);
}

double load_stat(int fd, const char *path, const char *name)
{
	char text[STAT_BYTES], key[LINE_MAX_BYTES], *line;
	ssize_t size = pread(fd, text + 1, sizeof(text) - 2, 0);

	if (size <= 0)
		client_fail(path);
	text[0] = '\n';
	text[size + 1] = '\0';
	snprintf(key, sizeof(key), "\n%s ", name);
	line = strstr(text, key);
	if (!line)
		client_fail(name);
	return atof(line + strlen(key));
}

/*
 * A look that began at b and ended at a saw the grants of some moment between. So a window from
 * look i to look j certainly holds g_j - g_i tokens, and is certainly no longer than a_j - b_i.
 */
void load_watch(char **argv)
{
	int fd = client_open(argv[0]);
	double rate = atof(argv[2]) / NS_PER_S, least = 0, excess = 0;
	int64_t start_ns = sample_now_ns(), end_ns = start_ns + (int64_t)(atof(argv[1]) * NS_PER_S);
	int64_t longest_ns = 0;
	long looks = 0;

	for (int64_t at_ns = start_ns; sample_now_ns() < end_ns; at_ns += LOOK_NS) {
		int64_t before_ns = sample_now_ns(), after_ns;
		double tokens = load_stat(fd, argv[0], "granted"), begin;

		after_ns = sample_now_ns();
		if (after_ns - before_ns > longest_ns)
			longest_ns = after_ns - before_ns;
		begin = tokens - rate * (double)(before_ns - start_ns);
		if (looks && tokens - rate * (double)(after_ns - start_ns) - least > excess)
			excess = tokens - rate * (double)(after_ns - start_ns) - least;
		if (!looks++ || begin < least)
			least = begin;
		sleep_until_ns(at_ns + LOOK_NS);
	}
	printf("excess %.3f\nlooks %ld\nlongest_look_us %.1f\n", excess, looks,
	       (double)longest_ns / NS_PER_US);
}
