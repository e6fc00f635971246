/* companion - the table of companions, and what they share; see companion.h. */
#include "companions/companion.h"

#include "core/values/quantity.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* The table: one row a companion. */
static const struct {
	const char *name;
	char *title; /* the beginning of messages */
	int (*main)(int argc, char *argv[]);
} COMPANIONS[] = {
	{"apply", (char[]){"ratefs apply"}, apply_main},
	{"check", (char[]){"ratefs check"}, check_main},
	{"pipe", (char[]){"ratefs pipe"}, pipe_main},
	{"plot", (char[]){"ratefs plot"}, plot_main},
	{"run", (char[]){"ratefs run"}, run_main},
	{"save", (char[]){"ratefs save"}, save_main},
	{"serve", (char[]){"ratefs serve"}, serve_main},
	{"simulate", (char[]){"ratefs simulate"}, simulate_main},
	{"top", (char[]){"ratefs top"}, top_main},
};

bool companion_run(int argc, char *argv[], int *status)
{
	/* mount(8) calls mount.fuse.ratefs with a source. */
	if (argc < 2 || !strncmp(basename(argv[0]), "mount.", 6))
		return false;
	for (size_t i = 0; i < sizeof(COMPANIONS) / sizeof(COMPANIONS[0]); i++) {
		if (strcmp(argv[1], COMPANIONS[i].name) != 0)
			continue;
		program_invocation_short_name = COMPANIONS[i].title;
		argv[1] = COMPANIONS[i].title;
		*status = COMPANIONS[i].main(argc - 1, argv + 1);
		return true;
	}
	return false;
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
