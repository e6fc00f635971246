/*
 * driver - runs a fuzz target without libFuzzer, so that any compiler and any sanitizer will do.
 *
 *	fuzz_NAME [-t SECONDS] [-s SEED] FILE...
 *
 * Tries each file, then random mutations of them for SECONDS (default 0). It does so in a child,
 * with the input in shared memory: however the child ends, the parent can tell which input it was.
 * Exit status: 0, 1 when an input crashed or hung (its bytes are printed in hex), 2 for usage.
 */
#include "fuzz.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	INPUT_MAX = 4096,
	FILES_MAX = 1024,
	MUTATIONS_MAX = 8,
	RUNS_PER_CLOCK = 256, /* how often the time is looked at */
	HANG_S = 10,
};

struct input {
	size_t size;
	uint8_t bytes[INPUT_MAX];
};

/* Shared by parent and child. */
struct attempt {
	struct input input;
	uint64_t runs;
	bool done;
};

static struct input *files[FILES_MAX];
static size_t files_count;
static uint64_t random_state;

/* xorshift64*: Marsaglia (2003), Vigna (2016). */
static size_t draw(size_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (size_t)((random_state * UINT64_C(2685821657736338717) >> 11) % below);
}

static bool read_file(const char *path)
{
	struct input *input = malloc(sizeof(*input));
	FILE *file = fopen(path, "rb");

	if (!input || !file || files_count == FILES_MAX) {
		fprintf(stderr, "%s: cannot be read\n", path);
		if (file)
			fclose(file);
		free(input);
		return false;
	}
	input->size = fread(input->bytes, 1, INPUT_MAX, file);
	fclose(file);
	files[files_count++] = input;
	return true;
}

/* Replaces @gone bytes at @at by @size bytes; what no longer fits falls off the end. */
static void splice(struct input *input, size_t at, size_t gone, const uint8_t *bytes, size_t size)
{
	size_t tail = input->size - at - gone;

	if (size > INPUT_MAX - at)
		size = INPUT_MAX - at;
	if (tail > INPUT_MAX - at - size)
		tail = INPUT_MAX - at - size;
	memmove(input->bytes + at + size, input->bytes + at + gone, tail);
	memcpy(input->bytes + at, bytes, size);
	input->size = at + size + tail;
}

static void mutate(struct input *input)
{
	static const char *const words[] = {
		"0",
		"9",
		"18446744073709551616",
		"999999999999999999",
		".",
		"0.000000001",
		"-",
		"/",
		"s",
		"=",
		":",
		" ",
		"\n",
		"\r\n",
		"\t",
		"#",
	};
	const struct input *other = files[draw(files_count)];
	size_t at = draw(input->size + 1), room = input->size - at;
	size_t gone = room ? draw(room < 16 ? room + 1 : 16) : 0;
	uint8_t byte = (uint8_t)draw(256);

	switch (draw(7)) {
	case 0:
		splice(input, at, 0, &byte, 1);
		break;
	case 1:
		splice(input, at, gone, &byte, 0);
		break;
	case 2:
		if (room)
			input->bytes[at] ^= (uint8_t)(1U << draw(8));
		break;
	case 3:
		byte = (uint8_t)('0' + draw(10));
		splice(input, at, room ? 1 : 0, &byte, 1);
		break;
	case 4: {
		const char *word = words[draw(sizeof(words) / sizeof(words[0]))];

		splice(input, at, gone, (const uint8_t *)word, strlen(word));
		break;
	}
	default:
		/* Most of what is interesting is in the other files. */
		if (other->size) {
			size_t from = draw(other->size);

			splice(input, at, gone, other->bytes + from, draw(other->size - from) + 1);
		}
	}
}

static void try_input(struct attempt *attempt)
{
	/* A copy of exact size, so that a byte read behind it is seen. */
	size_t size = attempt->input.size;
	uint8_t *exact = malloc(size ? size : 1);

	if (!exact)
		abort();
	memcpy(exact, attempt->input.bytes, size);
	alarm(HANG_S);
	LLVMFuzzerTestOneInput(exact, size);
	attempt->runs++;
	free(exact);
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void run(struct attempt *attempt, double seconds)
{
	double end = seconds_now() + seconds;

	for (size_t i = 0; i < files_count; i++) {
		attempt->input = *files[i];
		try_input(attempt);
	}
	while (seconds > 0 && (attempt->runs % RUNS_PER_CLOCK || seconds_now() < end)) {
		const struct input *base = files[draw(files_count)];

		attempt->input.size = base->size;
		memcpy(attempt->input.bytes, base->bytes, base->size);
		for (size_t i = draw(MUTATIONS_MAX) + 1; i; i--)
			mutate(&attempt->input);
		try_input(attempt);
	}
	alarm(0);
	attempt->done = true;
}

static int report(const struct attempt *attempt, int status, uint64_t seed)
{
	if (attempt->done && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		printf("%" PRIu64 " inputs, seed %" PRIu64 "\n", attempt->runs, seed);
		return 0;
	}
	if (attempt->done)
		printf("after the last input, seed %" PRIu64 "\n", seed);
	else if (WIFSIGNALED(status))
		printf("signal %d, input: ", WTERMSIG(status));
	else
		printf("exit status %d, input: ", WEXITSTATUS(status));
	for (size_t i = 0; !attempt->done && i < attempt->input.size; i++)
		printf("%02x", attempt->input.bytes[i]);
	printf("\n");
	return 1;
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = {0, 0};
	struct attempt *attempt;
	uint64_t seed = (uint64_t)time(NULL);
	double seconds = 0;
	int option, status = 0;
	pid_t child;

	while ((option = getopt(argc, argv, "t:s:")) != -1) {
		if (option == 't')
			seconds = strtod(optarg, NULL);
		else if (option == 's')
			seed = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	for (int i = optind; i < argc; i++) {
		if (!read_file(argv[i]))
			return 2;
	}
	if (!files_count) {
		fprintf(stderr, "usage: %s [-t SECONDS] [-s SEED] FILE...\n", argv[0]);
		return 2;
	}
	random_state = seed ? seed : 1;
	attempt = mmap(NULL, sizeof(*attempt), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (attempt == MAP_FAILED)
		return 2;
	setrlimit(RLIMIT_CORE, &no_core);
	child = fork();
	if (child == 0) {
		run(attempt, seconds);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	status = report(attempt, status, seed);
	while (files_count)
		free(files[--files_count]);
	munmap(attempt, sizeof(*attempt));
	return status;
}
