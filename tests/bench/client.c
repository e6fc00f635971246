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
#include <stdbool.h>
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
	TEXT_MAX = 64,
};

_Noreturn void client_fail(const char *what)
{
	fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

int client_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		client_fail(path);
	return fd;
}

long client_number(int fd, const char *path)
{
	char text[TEXT_MAX];
	ssize_t size = pread(fd, text, sizeof(text) - 1, 0);

	if (size <= 0)
		client_fail(path);
	text[size] = '\0';
	return atol(text);
}

/* held FILE COUNT: reads of one descriptor. */
static void command_held(char **argv)
{
	struct sample sample = sample_make(atol(argv[1]));
	int fd = client_open(argv[0]);

	for (int i = 0; i < WARM_UP; i++)
		client_number(fd, argv[0]);
	while (sample.count < sample.max) {
		int64_t start_ns = sample_now_ns();

		client_number(fd, argv[0]);
		sample_add(&sample, sample_now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

/* open FILE COUNT: open, read, close. */
static void command_open(char **argv)
{
	struct sample sample = sample_make(atol(argv[1]));

	for (long i = -WARM_UP; i < sample.max; i++) {
		int64_t start_ns = sample_now_ns();
		int fd = client_open(argv[0]);

		client_number(fd, argv[0]);
		close(fd);
		if (i >= 0)
			sample_add(&sample, sample_now_ns() - start_ns);
	}
	sample_print(&sample, "");
}

struct reader {
	pthread_t thread;
	const char *path;
	int64_t start_ns, end_ns;
	long tokens;
};

static void *read_until_end(void *argument)
{
	struct reader *reader = argument;
	int fd = client_open(reader->path);

	while (sample_now_ns() < reader->end_ns) {
		long tokens = client_number(fd, reader->path);
		int64_t now = sample_now_ns();

		if (now >= reader->start_ns && now < reader->end_ns)
			reader->tokens += tokens;
	}
	close(fd);
	return NULL;
}

/* Runs @count readers for @seconds, after a tenth of a second to settle; gives their tokens. */
static long run_readers(struct reader *readers, int count, const char *path, double seconds)
{
	int64_t start_ns = sample_now_ns() + NS_PER_S / 10;
	long tokens = 0;

	for (int i = 0; i < count; i++) {
		readers[i] = (struct reader){
			.path = path,
			.start_ns = start_ns,
			.end_ns = start_ns + (int64_t)(seconds * NS_PER_S),
		};
		if (pthread_create(&readers[i].thread, NULL, read_until_end, &readers[i]))
			client_fail("pthread_create");
	}
	for (int i = 0; i < count; i++) {
		pthread_join(readers[i].thread, NULL);
		tokens += readers[i].tokens;
	}
	return tokens;
}

int client_readers(const char *text)
{
	int count = atoi(text);

	if (count < 1 || count > READERS_MAX) {
		errno = ERANGE;
		client_fail(text);
	}
	return count;
}

/* readers FILE READERS SECONDS: tokens a second that many readers get. */
static void command_readers(char **argv)
{
	static struct reader readers[READERS_MAX];
	double seconds = atof(argv[2]);
	long tokens = run_readers(readers, client_readers(argv[1]), argv[0], seconds);

	printf("tokens_per_s %.1f\n", (double)tokens / seconds);
}

/* ideal FILE READERS SECONDS RATE: tokens granted against RATE x time. */
static void command_ideal(char **argv)
{
	static struct reader readers[READERS_MAX];
	double seconds = atof(argv[2]), rate = atof(argv[3]);
	long tokens = run_readers(readers, client_readers(argv[1]), argv[0], seconds);

	printf("granted %ld\nfraction %.6f\n", tokens, (double)tokens / (rate * seconds));
}

/*
 * paced FILE FIRST RATE COUNT: how late each token of a steady rate reaches its reader. Reading
 * FIRST empties the bucket, so token i is due i periods after the daemon saw that read. The clock
 * starts when the read is sent, as if the daemon saw it at once: first_us, the time it took, bounds
 * the error that this adds to each lateness.
 */
static void command_paced(char **argv)
{
	double period_ns = NS_PER_S / atof(argv[2]);
	struct sample sample = sample_make(atol(argv[3]));
	int first_fd = client_open(argv[1]), fd = client_open(argv[0]);
	int64_t start_ns = sample_now_ns();

	client_number(first_fd, argv[1]);
	printf("first_us %.3f\n", (double)(sample_now_ns() - start_ns) / NS_PER_US);
	for (long i = 1; i <= sample.max; i++) {
		client_number(fd, argv[0]);
		sample_add(&sample, sample_now_ns() - start_ns - (int64_t)((double)i * period_ns));
	}
	sample_print(&sample, "");
}

/* sleep RATE COUNT: how late a program is that paces itself. */
static void command_sleep(char **argv)
{
	double period_ns = NS_PER_S / atof(argv[0]);
	struct sample sample = sample_make(atol(argv[1]));
	int64_t start_ns = sample_now_ns();

	for (long i = 0; i < sample.max; i++) {
		int64_t due_ns = start_ns + (int64_t)((double)(i + 1) * period_ns);
		struct timespec due = {.tv_sec = due_ns / NS_PER_S, .tv_nsec = due_ns % NS_PER_S};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
		sample_add(&sample, sample_now_ns() - due_ns);
	}
	sample_print(&sample, "");
}

static void write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		client_fail(path);
	close(fd);
}

/*
 * make DIR FIRST COUNT RATE: makes DIR/nFIRST and on, timed, each with RATE unless that is `none`.
 */
static void command_make(char **argv)
{
	long first = atol(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));
	bool is_limiter = strcmp(argv[3], "none") != 0;
	char path[PATH_MAX];

	for (long i = 0; i < sample.max; i++) {
		int64_t start_ns = sample_now_ns();

		snprintf(path, sizeof(path), "%s/n%ld", argv[0], first + i);
		if (mkdir(path, 0755) < 0)
			client_fail(path);
		sample_add(&sample, sample_now_ns() - start_ns);
		snprintf(path, sizeof(path), "%s/n%ld/rate", argv[0], first + i);
		if (is_limiter)
			write_text(path, argv[3]);
	}
	sample_print(&sample, "");
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
		client_fail(argv[0]);
	for (long i = 0; i < sample.max; i++) {
		int64_t start_ns;
		int fd;

		snprintf(name, sizeof(name), "n%ld", i * (count / sample.max));
		start_ns = sample_now_ns();
		fd = openat(dir_fd, name, O_PATH | O_CLOEXEC);
		sample_add(&sample, sample_now_ns() - start_ns);
		if (fd < 0)
			client_fail(name);
		close(fd);
	}
	sample_print(&sample, "");
}

/* Takes a token of key @number of @directory, by open, read and close; how long that takes. */
static int64_t take_of_key(const char *directory, long number)
{
	char path[PATH_MAX];
	int64_t start_ns = sample_now_ns();
	int fd;

	snprintf(path, sizeof(path), "%s/%08ld/token", directory, number);
	fd = client_open(path);
	client_number(fd, path);
	close(fd);
	return sample_now_ns() - start_ns;
}

/* keys DIR FIRST COUNT: a token of each of so many keys. */
static void command_keys(char **argv)
{
	long first = atol(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));

	for (long i = 0; i < sample.max; i++)
		sample_add(&sample, take_of_key(argv[0], first + i));
	sample_print(&sample, "");
}

/* randomkeys DIR KEYS COUNT SEED: tokens of COUNT random ones of so many keys. */
static void command_randomkeys(char **argv)
{
	long keys = atol(argv[1]);
	struct sample sample = sample_make(atol(argv[2]));

	srand48(atol(argv[3]));
	for (long i = 0; i < sample.max; i++)
		sample_add(&sample, take_of_key(argv[0], lrand48() % keys));
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
	{"watch", "STAT SECONDS RATE", 3, load_watch},
	{"paced", "FILE FIRST RATE COUNT", 4, command_paced},
	{"sleep", "RATE COUNT", 2, command_sleep},
	{"make", "DIR FIRST COUNT RATE", 4, command_make},
	{"find", "DIR COUNT SAMPLES", 3, command_find},
	{"keys", "DIR FIRST COUNT", 3, command_keys},
	{"randomkeys", "DIR KEYS COUNT SEED", 4, command_randomkeys},
	{"work", "FILE CLIENTS WORK_US SECONDS", 4, load_work},
	{"trickle", "FILE RATE", 2, load_trickle},
	{"gaps", "FILE READERS", 2, load_gaps},
	{"crowd", "FILE STAT READERS", 3, crowd_run},
	{"slot", "FILE COUNT", 2, slot_run},
	{"hostile", "UID THREADS KIND PATH LINE LINE TIMES", 7, hostile_run},
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
