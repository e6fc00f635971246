/*
 * fuzz_levels - any text as the file of what is left in the buckets: limiters begin with no more
 * than they can hold, and what is written is read back.
 */
#include "fuzz.h"

#include "fs/local/levels.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char FILE_NAME[] = ".levels";

enum { LINES_MAX = 16 }; /* of an input that are limiters of their own */

static char directory_path[] = "/tmp/fuzz_levels.XXXXXX";
static int directory = -1;
static uint64_t now_ns;

/* The daemon's clock. Hidden from libraries: the driver ends by the real one. */
__attribute__((visibility("hidden"))) int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(now_ns % NSEC_PER_SEC)};
	return 0;
}

/* Nothing here has to outlive a power loss, and there is no time to wait for a disk. */
int fsync(int file)
{
	return file < 0;
}

static void remove_directory(void)
{
	unlinkat(directory, FILE_NAME, 0);
	close(directory);
	rmdir(directory_path);
}

static void open_directory(void)
{
	if (directory >= 0)
		return;
	FUZZ_CHECK(mkdtemp(directory_path));
	directory = open(directory_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(directory >= 0);
	FUZZ_CHECK(atexit(remove_directory) == 0);
}

static void write_file(const uint8_t *bytes, size_t size)
{
	int file = openat(directory, FILE_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(file >= 0);
	FUZZ_CHECK(write(file, bytes, size) == (ssize_t)size);
	FUZZ_CHECK(close(file) == 0);
}

static bool file_is_there(void)
{
	return faccessat(directory, FILE_NAME, F_OK, 0) == 0;
}

/* The source of an engine that only restores. */
static void store(struct source *source, struct change *change)
{
	(void)source;
	(void)change;
	abort();
}

static void check_bucket(const struct bucket *bucket)
{
	FUZZ_CHECK(bucket->level <= (int64_t)bucket_capacity(bucket));
	FUZZ_CHECK(bucket->level >= -(INT64_C(1) << 62));
	FUZZ_CHECK(bucket->part < bucket->flow.den);
	FUZZ_CHECK(bucket->released <= bucket->level);
}

/* Reads `try` at @at_ns. */
static int try_token(struct engine *engine, struct limiter *limiter, uint64_t at_ns)
{
	struct token_read read = {
		.limiter = limiter, .tokens = 1, .manner = READ_TRYING, .within_ns = NEVER_NS};
	struct read_wait wait;

	return engine_read(engine, &read, &wait, at_ns);
}

/* Time that passes fills a bucket to the brim at most; a waiter for the rest is granted. */
static void check_use(struct engine *engine, struct limiter *limiter)
{
	uint64_t wait_ns;

	for (uint32_t i = 0; i < limiter->bucket_count; i++)
		check_bucket(&limiter->buckets[i]);
	engine_refresh(engine, limiter, ++now_ns);
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		const struct bucket *bucket = &limiter->buckets[i];

		check_bucket(bucket);
		FUZZ_CHECK(!bucket->part || bucket->level < (int64_t)bucket_capacity(bucket));
	}
	wait_ns = engine_eta(engine, limiter, 1, NULL, now_ns);
	if (wait_ns > DURATION_MAX_NS)
		return;
	if (wait_ns)
		FUZZ_CHECK(try_token(engine, limiter, now_ns + wait_ns - 1) == -EBUSY);
	now_ns += wait_ns;
	FUZZ_CHECK(try_token(engine, limiter, now_ns) == 0);
}

static struct limiter *restore(struct engine *engine, const char *name,
			       const struct settings *settings, const struct level *found,
			       uint32_t count)
{
	static const struct owner owner = {.access = 0755};
	struct limiter *limiter = NULL;
	int err = change_restore(engine, engine->tree.root, name, settings, &owner, found, count,
				 &limiter);

	FUZZ_CHECK(err == 0 || err == -EEXIST || err == -EINVAL);
	FUZZ_CHECK((err == 0) == (limiter != NULL));
	return limiter;
}

/* Some line of the file ends with the limits of @settings and @path. */
static bool is_said(const char *file, const char *path, const struct settings *settings)
{
	char limits[SETTING_TEXT], *end = NULL;
	bool said = false;

	setting_print(SETTING_RATE, settings, limits);
	FUZZ_CHECK(asprintf(&end, "\t%s\t%s", limits, path) > 0);
	for (const char *at = file; !said && (at = strstr(at, end)); at++)
		said = !at[strlen(end)] || at[strlen(end)] == '\n';
	free(end);
	return said;
}

/* The levels known of @path are in its limiter, or none are. */
static void try_path(struct engine *engine, const struct levels *levels, const char *file,
		     const char *path, const struct settings *settings)
{
	struct level found[LIMITS_MAX];
	uint32_t count = levels_find(levels, path, settings, found);
	struct limiter *limiter = restore(engine, path, settings, found, count);

	FUZZ_CHECK(count <= settings->limit_count);
	FUZZ_CHECK(!count || is_said(file, path, settings));
	if (!limiter)
		return;
	for (uint32_t i = count; i < limiter->bucket_count; i++)
		FUZZ_CHECK(!limiter->buckets[i].level && !limiter->buckets[i].part);
	check_use(engine, limiter);
}

/* Limiters as the input's own lines have them: LEVELS, a tab, the limits, a tab, the path. */
static void try_lines(struct engine *engine, const struct levels *levels, const char *file)
{
	char *copy = strdup(file), *rest = copy, *line, error[ERROR_TEXT];

	for (unsigned int i = 0; i < LINES_MAX && (line = strsep(&rest, "\n")); i++) {
		struct settings settings = SETTINGS_DEFAULT;
		char *limits = strchr(line, '\t'), *path = limits ? strchr(limits + 1, '\t') : NULL;

		if (!path)
			continue;
		*path = '\0';
		settings.burst = i % 2 ? 1 : 50;
		settings.release_interval_ns = i % 3 ? 0 : NSEC_PER_SEC;
		if (setting_parse(SETTING_RATE, limits + 1, &settings, error) == 0 &&
		    settings_check(&settings, error) == 0)
			try_path(engine, levels, file, path + 1, &settings);
	}
	free(copy);
}

static void try_known(struct engine *engine, const struct levels *levels, const char *file)
{
	static const struct {
		const char *path;
		const char *config;
	} known[] = {
		{"orders", "rate=500/s\nburst=20"},
		{"batch", "rate=10/s 5000/h:100\nrelease_interval=200ms"},
		{"third", "rate=1/3s"},
		{"none", "rate=0"},
		{"free", "rate=max"},
		{"large", "rate=1000000000000/s\nburst=10000000000000"},
		/* The same as a seed's, but for the limits. */
		{"a", "rate=3/s"},
	};
	char error[ERROR_TEXT];

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct settings settings = SETTINGS_DEFAULT;

		FUZZ_CHECK(settings_parse(known[i].config, &settings, error) == 0);
		try_path(engine, levels, file, known[i].path, &settings);
	}
}

/* An engine writes what is left, and its limiters find it again. */
static void check_written(struct engine *engine)
{
	struct levels *levels;

	FUZZ_CHECK(levels_write(directory, engine) == 0);
	levels = levels_read(directory);
	FUZZ_CHECK(levels);
	for (struct limiter *l = engine->tree.root->first_child; l; l = l->next_sibling) {
		struct level found[LIMITS_MAX];
		struct settings settings;

		settings = *limiter_settings(l);
		FUZZ_CHECK(levels_find(levels, l->name, &settings, found) == l->bucket_count);
		for (uint32_t i = 0; i < l->bucket_count; i++) {
			FUZZ_CHECK(found[i].tokens == l->buckets[i].level);
			FUZZ_CHECK(found[i].part == l->buckets[i].part);
		}
	}
	levels_free(levels);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static const struct owner root = {.access = 0755};
	struct source source = {.store = store};
	struct engine engine;
	struct levels *levels;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	now_ns = NSEC_PER_SEC;
	open_directory();
	write_file(input, size);
	levels = levels_read(directory);
	FUZZ_CHECK(file_is_there());
	FUZZ_CHECK(levels_use_up(directory) == 0 && !file_is_there());
	FUZZ_CHECK(levels_use_up(directory) == 0);
	FUZZ_CHECK((levels == NULL) == (strlen(text) != size));
	FUZZ_CHECK(engine_init(&engine, &source, &root, now_ns) == 0);
	try_known(&engine, levels, text);
	try_lines(&engine, levels, text);
	levels_free(levels);
	check_written(&engine);
	engine_free(&engine);
	free(text);
	return 0;
}
