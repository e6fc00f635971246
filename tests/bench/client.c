/*
 * client - what the programs behind a rate limiter do, timed.
 *
 *	client COMMAND ARGUMENT...	a row of the table at the end; prints `name value` lines
 *
 * Times are microseconds of CLOCK_MONOTONIC, seen from the reader.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "sample.h"

enum {
	WARM_UP = 300,
	BURST = 100, /* what a paced limiter has saved up and must lose first */
	READERS_MAX = 1024,
	TEXT_MAX = 64,
};

_Noreturn void fail(const char *what)
{
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

int open_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		fail(path);
	return fd;
}

/* Reads a token file from its start and gives the number it says. */
static long read_number(int fd, const char *path)
{
	char text[TEXT_MAX];
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

	if (size <= 0)
		fail(path);
	text[size] = '\0';
	return atol(text);
}

/* held FILE COUNT: reads of one descriptor. */
static void command_held(char **argv)
{
	struct sample sample = sample_make(atol(argv[1]));
	int fd = open_file(argv[0]);

	for (int i = 0; i < WARM_UP; i++)
		read_number(fd, argv[0]);
	while (sample.count < sample.max) {
		int64_t start_ns = now_ns();

		read_number(fd, argv[0]);
		sample_add(&sample, now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

/* open FILE COUNT: open, read, close. */
static void command_open(char **argv)
{
	struct sample sample = sample_make(atol(argv[1]));

	for (long i = -WARM_UP; i < sample.max; i++) {
		int64_t start_ns = now_ns();
		int fd = open_file(argv[0]);

		read_number(fd, argv[0]);
		close(fd);
		if (i >= 0)
			sample_add(&sample, now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

struct reader {
	pthread_t thread;
	const char *path;
	int64_t start_ns, end_ns;
	long tokens;
	struct sample sample; /* when each token came, if there is room */
};

static void *read_until_end(void *argument)
{
	struct reader *reader = argument;
	int fd = open_file(reader->path);

	while (now_ns() < reader->end_ns) {
		long tokens = read_number(fd, reader->path);
		int64_t now = now_ns();

		if (now < reader->start_ns || now >= reader->end_ns)
			continue;
		reader->tokens += tokens;
		if (reader->sample.count < reader->sample.max)
			sample_add(&reader->sample, now);
	}
	close(fd);
	return NULL;
}

/* Runs @count readers for @seconds, after a tenth of a second to settle; gives their tokens. */
static long run_readers(struct reader *readers, int count, const char *path, double seconds,
			long samples)
{
	int64_t start_ns = now_ns() + NS_PER_S / 10;
	long tokens = 0;

	for (int i = 0; i < count; i++) {
		readers[i] = (struct reader){
			.path = path,
			.start_ns = start_ns,
			.end_ns = start_ns + (int64_t)(seconds * NS_PER_S),
			.sample = sample_make(samples),
		};
		if (pthread_create(&readers[i].thread, NULL, read_until_end, &readers[i]))
			fail("pthread_create");
	}
	for (int i = 0; i < count; i++) {
		pthread_join(readers[i].thread, NULL);
		tokens += readers[i].tokens;
	}
	return tokens;
}

static int reader_count(const char *text)
{
	int count = atoi(text);

	if (count < 1 || count > READERS_MAX) {
		errno = ERANGE;
		fail(text);
	}
	return count;
}

/* readers FILE READERS SECONDS: tokens a second that many readers get. */
static void command_readers(char **argv)
{
	static struct reader readers[READERS_MAX];
	double seconds = atof(argv[2]);
	long tokens = run_readers(readers, reader_count(argv[1]), argv[0], seconds, 0);

	printf("tokens_per_s %.1f\n", (double)tokens / seconds);
}

/*
 * ideal FILE READERS SECONDS RATE: tokens granted against RATE x time, and by how many tokens any
 * window of 10 ms or more holds more than RATE x its length.
 */
static void command_ideal(char **argv)
{
	static struct reader readers[READERS_MAX];
	int count = reader_count(argv[1]);
	double seconds = atof(argv[2]), rate = atof(argv[3]);
	long tokens = run_readers(readers, count, argv[0], seconds, (long)(seconds * rate * 2));
	struct sample all = sample_make((long)(seconds * rate * 2) * count);
	double excess = 0, least = 0;
	long from = 0;

	for (int i = 0; i < count; i++)
		sample_join(&all, &readers[i].sample);
	sample_sort(&all);
	/* Token i came at t_i: the windows that end there hold i - j + 1, for each earlier j. */
	for (long i = 0; i < all.count; i++) {
		const double window_ns = 1e7;
		double end = (double)(all.ns[i] - all.ns[0]);

		for (; (double)(all.ns[from] - all.ns[0]) <= end - window_ns; from++) {
			double owed = (double)from -
				      rate * (double)(all.ns[from] - all.ns[0]) / NS_PER_S;

			if (from == 0 || owed < least)
				least = owed;
		}
		if (from > 0 && (double)i + 1 - rate * end / NS_PER_S - least > excess)
			excess = (double)i + 1 - rate * end / NS_PER_S - least;
	}
	printf("granted %ld\nfraction %.6f\nexcess %.3f\n", tokens,
	       (double)tokens / (rate * seconds), excess);
}

/*
 * paced FILE RATE COUNT: how late each token of a steady rate reaches its reader. When they were
 * due is not known here, only that they are evenly spaced: the most punctual one counts as 0. The
 * null file system says when, so there it is also known (due_).
 */
static void command_paced(char **argv)
{
	double period_ns = NS_PER_S / atof(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));
	struct sample known = sample_make(sample.max);
	int fd = open_file(argv[0]);

	for (int i = 0; i < BURST; i++)
		read_number(fd, argv[0]);
	for (long i = 0; i < sample.max; i++) {
		long due_ns = read_number(fd, argv[0]);
		int64_t now = now_ns();

		sample_add(&sample, now - (int64_t)((double)i * period_ns));
		if (due_ns > 1)
			sample_add(&known, now - due_ns);
	}
	sample_from_least(&sample);
	sample_print(&sample, "");
	sample_print(&known, "due_");
}

/* sleep RATE COUNT: how late a program is that paces itself, and that from its most punctual. */
static void command_sleep(char **argv)
{
	double period_ns = NS_PER_S / atof(argv[0]);
	struct sample sample = sample_make(atol(argv[1]));
	int64_t start_ns = now_ns();

	for (long i = 0; i < sample.max; i++) {
		int64_t due_ns = start_ns + (int64_t)((double)(i + 1) * period_ns);
		struct timespec due = {.tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		sample_add(&sample, now_ns() - due_ns);
	}
	sample_print(&sample, "");
	sample_from_least(&sample);
	sample_print(&sample, "relative_");
}

/* mkdir DIR FIRST COUNT: makes DIR/nFIRST and on; rmdir DIR FIRST COUNT removes them. */
static void each_name(char **argv, int (*make)(const char *path))
{
	long first = atol(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));
	char path[4096];

	for (long i = 0; i < sample.max; i++) {
		int64_t start_ns = now_ns();

		snprintf(path, sizeof(path), "%s/n%ld", argv[0], first + i);
		if (make(path) < 0)
			fail(path);
		sample_add(&sample, now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

static int make_directory(const char *path)
{
	return mkdir(path, 0755);
}

static void command_mkdir(char **argv)
{
	each_name(argv, make_directory);
}

static void command_rmdir(char **argv)
{
	each_name(argv, rmdir);
}

/*
 * find DIR COUNT SAMPLES: finds SAMPLES of the directories made, each by one LOOKUP, since the
 * kernel's own entries have expired; none is asked for twice.
 */
static void command_find(char **argv)
{
	long count = atol(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));
	int dir_fd = open(argv[0], O_PATH | O_DIRECTORY | O_CLOEXEC);
	char name[TEXT_MAX];

	if (dir_fd < 0)
		fail(argv[0]);
	for (long i = 0; i < sample.max; i++) {
		int64_t start_ns;
		int fd;

		snprintf(name, sizeof(name), "n%ld", i * (count / sample.max));
		start_ns = now_ns();
		fd = openat(dir_fd, name, O_PATH | O_CLOEXEC);
		sample_add(&sample, now_ns() - start_ns);
		if (fd < 0)
			fail(name);
		close(fd);
	}
	sample_print(&sample, "");
}

/* keys DIR FIRST COUNT: a token of each of so many keys, by open, read and close. */
static void command_keys(char **argv)
{
	long first = atol(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));
	char path[PATH_MAX];

	for (long i = 0; i < sample.max; i++) {
		int64_t start_ns = now_ns();
		int fd;

		snprintf(path, sizeof(path), "%s/%08ld/token", argv[0], first + i);
		fd = open_file(path);
		read_number(fd, path);
		close(fd);
		sample_add(&sample, now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

static const struct command {
	const char *name, *arguments;
	int count;
	void (*run)(char **argv);
} commands[] = {
	{"held", "FILE COUNT", 2, command_held},
	{"open", "FILE COUNT", 2, command_open},
	{"readers", "FILE READERS SECONDS", 3, command_readers},
	{"ideal", "FILE READERS SECONDS RATE", 4, command_ideal},
	{"paced", "FILE RATE COUNT", 3, command_paced},
	{"sleep", "RATE COUNT", 2, command_sleep},
	{"mkdir", "DIR FIRST COUNT", 3, command_mkdir},
	{"rmdir", "DIR FIRST COUNT", 3, command_rmdir},
	{"find", "DIR COUNT SAMPLES", 3, command_find},
	{"keys", "DIR FIRST COUNT", 3, command_keys},
	{"crowd", "FILE READERS", 2, command_crowd},
	{"slot", "FILE COUNT", 2, command_slot},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc == commands[i].count + 2 && strcmp(argv[1], commands[i].name) == 0) {
			commands[i].run(argv + 2);
			return EXIT_SUCCESS;
		}
	}
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		fprintf(stderr, "usage: client %s %s\n", commands[i].name, commands[i].arguments);
	return 2;
}
