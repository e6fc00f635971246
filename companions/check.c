/*
 * check - says what is wrong in a file of limiters, as of the daemon's option config=FILE: every
 * line and not only the first, and sections that would have no effect; see inspect.h.
 */
#include "companions/companion.h"
#include "companions/inspect.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int check_file(const char *file)
{
	struct inspection inspection = {.file = file, .out = stdout};
	char *text = inspect_file(&inspection);
	bool wrong = !text || inspection.wrong;

	inspect_free(&inspection);
	free(text);
	return wrong ? EXIT_FAILURE : EXIT_SUCCESS;
}

int check_main(int argc, char *argv[])
{
	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		printf("usage: ratefs check FILE\n"
		       "\n"
		       "Says what is wrong in FILE, limiters for ratefs -o config=FILE. Nothing "
		       "is mounted.\n"
		       "With - for FILE it reads standard input.\n"
		       "\n"
		       "options:\n"
		       "    -h, --help          print this\n");
		return EXIT_SUCCESS;
	}
	if (argc == 2 && *argv[1] && (*argv[1] != '-' || !argv[1][1]))
		return check_file(argv[1]);
	if (argc > 2)
		warnx("an argument too many: '%s'", argv[2]);
	else
		warnx(argc == 2 ? "not an option or file: '%s'" : "no file given: '%s'",
		      argc == 2 ? argv[1] : "FILE");
	return companion_usage();
}
