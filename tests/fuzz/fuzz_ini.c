/* fuzz_ini - any text as a file of limiters, and what must hold for its sections. */
#include "fuzz.h"

#include "core/values/ini.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* Number of lines that begin before @end, or end there. */
static unsigned int lines_until(const char *text, const char *end)
{
	unsigned int count = 0;

	for (const char *c = text; c < end; c++)
		count += *c == '\n' || !c[1];
	return count;
}

/* Each name of the path can be a limiter's; or it is the top. */
static void check_path(const char *path)
{
	char copy[PATH_TEXT], error[ERROR_TEXT], *rest = copy, *name;
	unsigned int depth = 0;

	FUZZ_CHECK(memchr(path, '\0', PATH_TEXT));
	if (!*path)
		return;
	memcpy(copy, path, strlen(path) + 1);
	while ((name = strsep(&rest, "/"))) {
		FUZZ_CHECK(name_check(name, error) == 0);
		depth++;
	}
	FUZZ_CHECK(depth >= 1 && depth <= DEPTH_MAX);
}

/* The body is a piece of the text behind the header's line; the text behind it is read next. */
static void check_body(const char *text, const struct ini *ini, const struct ini_section *section)
{
	const char *end = section->body + section->length;

	FUZZ_CHECK(section->body > text && end == ini->at);
	FUZZ_CHECK(end <= text + strlen(text));
	FUZZ_CHECK(lines_until(text, section->body) == section->line);
	FUZZ_CHECK(lines_until(text, end) == ini->line);
	FUZZ_CHECK(!section->length || section->body[-1] == '\n');
	FUZZ_CHECK(!*end || end[-1] == '\n');
}

/* Checks that the text taken out is gone, and no line with it. */
static void check_settings(const struct ini_section *section)
{
	char *body = strndup(section->body, section->length), error[ERROR_TEXT];
	struct settings settings = SETTINGS_DEFAULT;
	struct ini_owner owner, none;
	int err;

	if (!body)
		return;
	err = ini_parse(body, &settings, &owner, error);
	FUZZ_CHECK(err == 0 || err == -EINVAL || err == -ERANGE);
	FUZZ_CHECK(strlen(body) == section->length);
	if (!err) {
		FUZZ_CHECK(memchr(owner.user, '\0', sizeof(owner.user)));
		FUZZ_CHECK(memchr(owner.group, '\0', sizeof(owner.group)));
		FUZZ_CHECK(owner.access <= ACCESS_BITS && (owner.has_access || !owner.access));
		FUZZ_CHECK(!ini_take_owner(body, &none, error));
		FUZZ_CHECK(!*none.user && !*none.group && !none.has_access);
	}
	free(body);
}

static void check_refusal(const struct ini *ini, int err, const char error[ERROR_TEXT])
{
	char line[32];

	FUZZ_CHECK(err == -EINVAL);
	FUZZ_CHECK(memchr(error, '\0', ERROR_TEXT));
	snprintf(line, sizeof(line), "line %u: ", ini->line);
	FUZZ_CHECK(strncmp(error, line, strlen(line)) == 0 && error[strlen(line)]);
}

static void try_text(const char *text)
{
	struct ini ini = {.at = text};
	struct ini_section section = {.line = 0};
	unsigned int line = 0;
	char error[ERROR_TEXT] = "";
	int result;

	while ((result = ini_next(&ini, &section, error)) > 0) {
		FUZZ_CHECK(result == 1 && section.line > line);
		line = section.line;
		check_path(section.path);
		check_body(text, &ini, &section);
		check_settings(&section);
	}
	FUZZ_CHECK(ini.line <= lines_until(text, text + strlen(text)));
	if (result) {
		FUZZ_CHECK(ini.line > line);
		check_refusal(&ini, result, error);
	} else {
		FUZZ_CHECK(!*ini.at);
		FUZZ_CHECK(ini_next(&ini, &section, error) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	try_text(text);
	free(text);
	return 0;
}
