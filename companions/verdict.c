/* verdict - how a piece of work went, see verdict.h. */
#include "companions/verdict.h"
#include "companions/companion.h"

#include "core/quantity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { HTTP_DIGITS = 3, HTTP_TOO_MANY = 429, HTTP_UNAVAILABLE = 503, LINE_MOST = 511 };

static const char SPACE[] = " \t\r\n\v\f";
static const char RETRY_AFTER[] = "retry-after=";

static const char *const WORDS[] = {
	[VERDICT_OK] = "ok",
	[VERDICT_THROTTLED] = "throttled",
	[VERDICT_ERROR] = "error",
};

static bool parse_http(const char *word, enum verdict_kind *kind)
{
	unsigned int status = 0;

	if (strlen(word) != HTTP_DIGITS || strspn(word, "0123456789") != HTTP_DIGITS)
		return false;
	for (const char *c = word; *c; c++)
		status = status * 10 + (unsigned int)(*c - '0');
	if (status / 100 == 2 || status / 100 == 3)
		*kind = VERDICT_OK;
	else if (status == HTTP_TOO_MANY || status == HTTP_UNAVAILABLE)
		*kind = VERDICT_THROTTLED;
	else
		*kind = VERDICT_ERROR;
	return true;
}

static bool parse_kind(const char *word, enum verdict_kind *kind)
{
	for (unsigned int i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++) {
		if (!strcmp(word, WORDS[i])) {
			*kind = (enum verdict_kind)i;
			return true;
		}
	}
	return parse_http(word, kind);
}

bool verdict_parse(const char *line, struct verdict *verdict)
{
	char copy[LINE_MOST + 1], *rest = NULL, *word;
	struct verdict parsed = {0};
	bool from_http;

	snprintf(copy, sizeof(copy), "%.*s", (int)strcspn(line, "\n"), line);
	word = strtok_r(copy, SPACE, &rest);
	if (word && !strncmp(word, "HTTP/", 5))
		word = strtok_r(NULL, SPACE, &rest);
	if (!word || !parse_kind(word, &parsed.kind))
		return false;
	from_http = isdigit((unsigned char)*word);
	while ((word = strtok_r(NULL, SPACE, &rest))) {
		if (!strncmp(word, RETRY_AFTER, strlen(RETRY_AFTER)))
			(void)companion_duration(word + strlen(RETRY_AFTER), 0, DURATION_MAX_NS,
						 &parsed.retry_after_ns);
		else if (!from_http && isdigit((unsigned char)*word))
			(void)count_parse(word, &parsed.count);
	}
	*verdict = parsed;
	return true;
}

void verdict_print(const struct verdict *verdict, char text[VERDICT_TEXT])
{
	int used = snprintf(text, VERDICT_TEXT, "%s", WORDS[verdict->kind]);
	char duration[QUANTITY_TEXT];

	if (verdict->count > 1)
		used += snprintf(text + used, VERDICT_TEXT - (size_t)used, " %llu",
				 (unsigned long long)verdict->count);
	if (verdict->kind == VERDICT_THROTTLED && verdict->retry_after_ns) {
		duration_print(verdict->retry_after_ns, duration);
		used += snprintf(text + used, VERDICT_TEXT - (size_t)used, " %s%s", RETRY_AFTER,
				 duration);
	}
	snprintf(text + used, VERDICT_TEXT - (size_t)used, "\n");
}
