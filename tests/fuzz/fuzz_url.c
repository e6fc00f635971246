/* fuzz_url - the URL of a request to `ratefs serve`: no text of it leads out of the limiter. */
#include "fuzz.h"

#include "companions/serve/url.h"
#include "core/values/quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Checks that each name in @path is one of a limiter, a key or a file in them. */
static void check_path(char *path)
{
	char error[ERROR_TEXT], *rest = path, *name;

	FUZZ_CHECK(strlen(path) < URL_FILE_TEXT);
	while ((name = strsep(&rest, "/")))
		FUZZ_CHECK(!name_check(name, error));
}

static void check_url(const struct url *url)
{
	char name[NAME_BYTES_MAX], path[URL_FILE_TEXT];

	FUZZ_CHECK(url->tokens >= 1 && url->most >= url->tokens && url->most <= TOKENS_MAX);
	FUZZ_CHECK(!url->within_ns || url->within_ns == NEVER_NS ||
		   (url->within_ns >= URL_WITHIN_MIN_NS && url->within_ns <= URL_WITHIN_MAX_NS));
	FUZZ_CHECK(!*url->key || !*url->key_from);
	for (int waits = 0; waits < 2; waits++) {
		url_take(url, waits, name);
		FUZZ_CHECK(!waits || !url->within_ns || url->within_ns == NEVER_NS ||
			   strstr(name, ",within="));
		FUZZ_CHECK(url_file(url, name, path) == strlen(path));
		check_path(path);
	}
}

/* Makes a key of the text, which is all printable and leads to no other directory. */
static void try_key(const char *text)
{
	char key[NAME_BYTES_MAX + 1], error[ERROR_TEXT];
	int err = url_key(text, key);

	FUZZ_CHECK(!err || err == -EINVAL || err == -ERANGE);
	FUZZ_CHECK((err == -EINVAL) == !*text);
	if (!err)
		FUZZ_CHECK(!name_check(key, error) && strlen(key) >= strlen(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char error[ERROR_TEXT], *text = malloc(size + 1);
	struct url url;
	int err;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	err = url_parse(text, &url, error);
	FUZZ_CHECK(!err || ((err == -EINVAL || err == -ERANGE) && *error));
	if (!err)
		check_url(&url);
	try_key(text);
	free(text);
	return 0;
}
