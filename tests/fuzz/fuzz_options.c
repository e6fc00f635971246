/*
 * fuzz_options - any command line, a word a line: it is refused with a status, or the options it
 * sets are within bounds and can be freed. The first word chooses between ratefs and the mount
 * helper.
 */
#include "fuzz.h"

#include "fs/base/options.h"

#include <stdbool.h>
#include <string.h>

enum { WORDS_MAX = 32, STATUS_MOST = 255 };

static void check(const struct options *options)
{
	if (options->help || options->version)
		return;
	FUZZ_CHECK(options->source && options->mountpoint && options->host && *options->host);
	FUZZ_CHECK(!options->servers == !options->path);
	FUZZ_CHECK(!(options->servers && options->directory));
	FUZZ_CHECK(options->weight >= 1 && options->weight <= WEIGHT_MAX);
	FUZZ_CHECK(options->right_ns >= 2 * NSEC_PER_SEC &&
		   options->right_ns <= 600 * NSEC_PER_SEC);
	FUZZ_CHECK(options->session_ns >= 2 * NSEC_PER_SEC &&
		   options->session_ns <= 300 * NSEC_PER_SEC);
	for (int i = 0; i < BOUND_COUNT; i++)
		FUZZ_CHECK(options->bounds[i].all && options->bounds[i].each);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = strndup((const char *)input, size), *rest = text;
	char *words[WORDS_MAX + 1] = {NULL};
	struct options options;
	int count = 0, status;

	FUZZ_CHECK(text);
	while (rest && count < WORDS_MAX)
		words[count++] = strsep(&rest, "\n");
	status = options_parse(&options, count, words);
	FUZZ_CHECK(status >= 0 && status <= STATUS_MOST);
	if (!status)
		check(&options);
	options_free(&options);
	free(text);
	return 0;
}
