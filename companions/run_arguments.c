/* run_arguments - the arguments of run, see run.h. */
#include "companions/companion.h"
#include "companions/run.h"

#include "core/values/amounts.h"

#include <err.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_MOST = 255 };

void run_usage(void)
{
	printf("usage: ratefs run LIMITER [options] [--] COMMAND [ARGUMENT...]\n"
	       "\n"
	       "Waits for a token of LIMITER, a directory of a mounted tree, and runs COMMAND.\n"
	       "\n"
	       "options:\n"
	       "    -n N                N tokens, taken together (1)\n"
	       "    --within DURATION   exit status 124 if tokens, and the slot, cannot be had in "
	       "that time; 0: now\n"
	       "    --slot              hold one of the limiter's slots while COMMAND runs\n"
	       "    --retry N           when it was throttled, run it again with new tokens, N "
	       "times at most (0)\n"
	       "    --throttled STATUS  the exit status that says so (75)\n"
	       "    --throttled-if REGEX\n"
	       "                        ... or a line that it prints before it fails, as "
	       "'ThrottlingException'\n"
	       "    --output            the first line of the output says how it went, such as an "
	       "HTTP status\n"
	       "    --headers FILE      the header fields that COMMAND leaves in FILE say so, as "
	       "of curl -D FILE\n"
	       "    --unit HEADER=UNIT  the unit HEADER in those fields is the limiter's UNIT, as "
	       "tokens=tpm\n"
	       "    -v                  say how long the wait for tokens is going to be, as "
	       "on a terminal\n"
	       "                        from 5 s on\n"
	       "    --tell DURATION     say how long it waited, if that was so long (10s)\n"
	       "    --report            do not run without telling the limiter's feedback how it "
	       "went\n"
	       "    -h, --help          print this\n");
}

static int wrong(const char *what, const char *argument)
{
	warnx("%s: '%s'", what, argument);
	return companion_usage();
}

/* Takes the words that say throttled. 0, or an exit status after a message. */
static int take_words(struct job *job, const char *words)
{
	char reason[ERROR_TEXT];
	int err;

	if (job->has_words)
		return wrong("given twice", "--throttled-if");
	if (!*words)
		return wrong("an empty expression matches everything", "--throttled-if");
	err = regcomp(&job->words, words, REG_EXTENDED | REG_NOSUB);
	job->has_words = !err;
	if (!err)
		return 0;
	regerror(err, &job->words, reason, sizeof(reason));
	return wrong(reason, words);
}

/* 0, or an exit status after a message. */
static int take_option(struct job *job, int option)
{
	struct amounts amounts;
	uint64_t value;

	switch (option) {
	case 'n':
		job->tokens = optarg;
		if (amounts_parse(optarg, &job->count, &amounts) || (!job->count && !amounts.count))
			return wrong("not a number of tokens (1 to 10T), nor 1,tpm=250 of units",
				     optarg);
		job->has_units = amounts.count;
		return 0;
	case 'w':
		job->within = optarg;
		if (duration_parse(optarg, &job->within_ns))
			return wrong(DURATION_WHY, optarg);
		return 0;
	case 'r':
		if (count_parse(optarg, &job->retries) || job->retries > RETRIES_MAX)
			return wrong("not a number of retries (0 to 1000000)", optarg);
		return 0;
	case 't':
		if (count_parse(optarg, &value) || !value || value > STATUS_MOST)
			return wrong("not an exit status that says no (1 to 255)", optarg);
		job->throttled = (int)value;
		return 0;
	case 'i':
		return take_words(job, optarg);
	case 'e':
		if (duration_parse(optarg, &job->tell_ns))
			return wrong(DURATION_WHY, optarg);
		return 0;
	case 'o':
		job->by_output = true;
		return 0;
	case 'd':
		job->headers = optarg;
		return 0;
	case 'u':
		if (!headers_add_name(&job->names, optarg))
			return wrong(UNIT_NAME_WHY, optarg);
		return 0;
	case 'v':
		job->is_verbose = true;
		return 0;
	case 'p':
		job->must_report = true;
		return 0;
	case 's':
		job->with_slot = true;
		return 0;
	default:
		return companion_usage();
	}
}

/* Takes the options up to another argument, or `--`. 0, or an exit status after a message. */
static int take_options(struct job *job, int argc, char *argv[], bool *help)
{
	static const struct option options[] = {
		{"within", required_argument, NULL, 'w'},
		{"retry", required_argument, NULL, 'r'},
		{"throttled", required_argument, NULL, 't'},
		{"throttled-if", required_argument, NULL, 'i'},
		{"tell", required_argument, NULL, 'e'},
		{"output", no_argument, NULL, 'o'},
		{"headers", required_argument, NULL, 'd'},
		{"unit", required_argument, NULL, 'u'},
		{"report", no_argument, NULL, 'p'},
		{"slot", no_argument, NULL, 's'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option, status = 0;

	while (!status && !*help && optind < argc && strcmp(argv[optind], "--") != 0) {
		option = getopt_long(argc, argv, "+n:vh", options, NULL);
		if (option < 0)
			break;
		*help = option == 'h';
		if (optarg && !strcmp(optarg, "--"))
			return wrong("an option without its value is before it", optarg);
		status = *help ? 0 : take_option(job, option);
	}
	return status;
}

static int check_together(const struct job *job)
{
	if (job->by_output && job->headers)
		return wrong("not with --output, which says how it went", "--headers");
	if (job->has_words && (job->by_output || job->headers))
		return wrong("not with --output or --headers, which say it", "--throttled-if");
	if (job->names.count && !job->headers)
		return wrong("only with --headers", "--unit");
	return 0;
}

int run_parse(struct job *job, int argc, char *argv[], bool *help)
{
	int status = take_options(job, argc, argv, help);

	if (status || *help)
		return status;
	if (optind == argc || !strcmp(argv[optind], "--"))
		return wrong("no limiter given", "LIMITER");
	job->limiter = argv[optind++];
	if (strlen(job->limiter) > PATH_MAX - 2 * (size_t)QUANTITY_TEXT)
		return wrong("the path is too long", job->limiter);
	status = take_options(job, argc, argv, help);
	if (!status && !*help)
		status = check_together(job);
	if (status || *help)
		return status;
	if (optind < argc && !strcmp(argv[optind], "--"))
		optind++;
	if (optind == argc)
		return wrong("no command given", "COMMAND");
	job->command = argv + optind;
	return 0;
}
