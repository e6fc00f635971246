/* companion - the table of companions, and what they share; see companion.h. */
#include "companions/companion.h"

#include "core/values/quantity.h"
#include "fs/base/options.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_LETTERS = 16 }; /* a longer word is near no name */

static char HELP[] = "--help";

static int help_main(int argc, char *argv[]);
static int version_main(int argc, char *argv[]);

struct companion {
	const char *name;
	char *title; /* the beginning of messages */
	int (*main)(int argc, char *argv[]);
};

/* The table: one row a companion. */
static const struct companion COMPANIONS[] = {
	{"apply", (char[]){"ratefs apply"}, apply_main},
	{"check", (char[]){"ratefs check"}, check_main},
	{"help", (char[]){"ratefs help"}, help_main},
	{"pipe", (char[]){"ratefs pipe"}, pipe_main},
	{"plot", (char[]){"ratefs plot"}, plot_main},
	{"rm", (char[]){"ratefs rm"}, rm_main},
	{"run", (char[]){"ratefs run"}, run_main},
	{"save", (char[]){"ratefs save"}, save_main},
	{"serve", (char[]){"ratefs serve"}, serve_main},
	{"simulate", (char[]){"ratefs simulate"}, simulate_main},
	{"status", (char[]){"ratefs status"}, status_main},
	{"top", (char[]){"ratefs top"}, top_main},
	{"version", (char[]){"ratefs version"}, version_main},
};

/* Words that are taken for commands, and what to write for them. */
static const char *const OTHERS[][2] = {
	{"freeze", "ratefs --freeze"},	 {"list", "ls MOUNTPOINT"},
	{"ls", "ls MOUNTPOINT"},	 {"mount", "ratefs SOURCE MOUNTPOINT"},
	{"reload", "ratefs --reload"},	 {"thaw", "ratefs --thaw"},
	{"umount", "umount MOUNTPOINT"}, {"unmount", "umount MOUNTPOINT"},
};

enum { COMPANION_COUNT = sizeof(COMPANIONS) / sizeof(COMPANIONS[0]) };

static unsigned int smaller(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

/* Returns how many letters have to be put in, left out, changed or swapped to make @b of @a. */
static unsigned int count_slips(const char *a, const char *b)
{
	unsigned int slips[NAME_LETTERS + 1][NAME_LETTERS + 1];
	size_t rows = strlen(a), columns = strlen(b);

	if (rows > NAME_LETTERS || columns > NAME_LETTERS)
		return NAME_LETTERS;
	for (size_t i = 0; i <= rows; i++) {
		for (size_t j = 0; j <= columns; j++) {
			unsigned int *here = &slips[i][j];

			if (!i || !j) {
				*here = (unsigned int)(i + j);
				continue;
			}
			*here = smaller(slips[i - 1][j], slips[i][j - 1]) + 1;
			*here = smaller(*here, slips[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				*here = smaller(*here, slips[i - 2][j - 2] + 1);
		}
	}
	return slips[rows][columns];
}

static const struct companion *find_companion(const char *name)
{
	for (size_t i = 0; i < COMPANION_COUNT; i++) {
		if (!strcmp(name, COMPANIONS[i].name))
			return &COMPANIONS[i];
	}
	return NULL;
}

/* Returns the companion whose name is most like @word: at most a third of it is wrong; or NULL. */
static const struct companion *find_near(const char *word)
{
	const struct companion *near = NULL;
	unsigned int least = NAME_LETTERS;

	for (size_t i = 0; i < COMPANION_COUNT; i++) {
		unsigned int slips = count_slips(word, COMPANIONS[i].name);

		if (slips >= least || 3 * slips > strlen(COMPANIONS[i].name))
			continue;
		near = &COMPANIONS[i];
		least = slips;
	}
	return near;
}

/* Returns what to write for @word, which is no command; NULL: it is nearly none. */
static const char *find_meant(const char *word)
{
	const struct companion *companion = find_near(word);

	for (size_t i = 0; i < sizeof(OTHERS) / sizeof(OTHERS[0]); i++) {
		if (!strcmp(word, OTHERS[i][0]))
			return OTHERS[i][1];
	}
	return companion ? companion->title : NULL;
}

static int run_companion(const struct companion *companion, int argc, char *argv[])
{
	program_invocation_short_name = companion->title;
	argv[0] = companion->title;
	return companion->main(argc, argv);
}

/* Of the companions here the help is that of ratefs. */
static bool asks_for_help(int argc, char *argv[])
{
	return argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], HELP));
}

static int version_main(int argc, char *argv[])
{
	if (asks_for_help(argc, argv)) {
		options_usage("ratefs");
	} else if (argc > 1) {
		warnx("an argument too many: '%s'", argv[1]);
		return companion_usage();
	} else {
		options_version();
	}
	return EXIT_SUCCESS;
}

static int help_main(int argc, char *argv[])
{
	char *ask[] = {NULL, HELP, NULL};
	const struct companion *companion;
	const char *meant;

	if (argc == 1 || asks_for_help(argc, argv)) {
		options_usage("ratefs");
		return EXIT_SUCCESS;
	}
	if (argc > 2) {
		warnx("an argument too many: '%s'", argv[2]);
		return companion_usage();
	}
	companion = find_companion(argv[1]);
	if (companion)
		return run_companion(companion, 2, ask);
	meant = find_meant(argv[1]);
	warnx(meant ? "not a command: '%s'; did you mean '%s'?" : "not a command: '%s'", argv[1],
	      meant);
	return companion_usage();
}

bool companion_run(int argc, char *argv[], int *status)
{
	const struct companion *companion;
	const char *meant;

	/* mount(8) calls mount.fuse.ratefs with a source. */
	if (argc < 2 || !strncmp(basename(argv[0]), "mount.", 6))
		return false;
	companion = find_companion(argv[1]);
	if (companion) {
		*status = run_companion(companion, argc - 1, argv + 1);
		return true;
	}
	meant = *argv[1] != '-' ? find_meant(argv[1]) : NULL;
	if (!meant)
		return false;
	warnx("not a source or command: '%s'; did you mean '%s'?", argv[1], meant);
	*status = companion_usage();
	return true;
}

int companion_usage(void)
{
	fprintf(stderr, "Try '%s --help'.\n", program_invocation_short_name);
	return STATUS_USAGE;
}

int companion_duration(const char *text, uint64_t min_ns, uint64_t max_ns, uint64_t *ns)
{
	uint64_t value;
	int err = duration_parse(text, &value);

	if (!err && (value < min_ns || value > max_ns))
		err = -ERANGE;
	if (!err)
		*ns = value;
	return err;
}

uint64_t companion_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}
