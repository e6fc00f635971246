/* feedback - how work went, see feedback.h. */
#include "core/limiter/feedback.h"

#include <errno.h>
#include <string.h>

enum { LINE_TEXT = 256, STATUS_DIGITS = 3 };

static const char BLANKS[] = " \t\r\v\f";
static const char DIGITS[] = "0123456789";
static const char RETRY_AFTER[] = "retry-after=";

static const char GRAMMAR[] = "not an outcome: ok [N], throttled [N] [retry-after=DURATION], error "
			      "[N], or a HTTP status such as 200 or 429 [retry-after=DURATION]";

static const char *const KINDS[OUTCOME_COUNT] = {
	[OUTCOME_OK] = "ok",
	[OUTCOME_THROTTLED] = "throttled",
	[OUTCOME_ERROR] = "error",
};

static enum outcome_kind kind_of_status(const char *status)
{
	if (*status == '2' || *status == '3')
		return OUTCOME_OK;
	return !strcmp(status, "429") || !strcmp(status, "503") ? OUTCOME_THROTTLED : OUTCOME_ERROR;
}

/* Returns the next word of *@rest, terminated; NULL when there is none. */
static char *next_word(char **rest)
{
	char *word = *rest + strspn(*rest, BLANKS);

	*rest = word + strcspn(word, BLANKS);
	if (**rest)
		*(*rest)++ = '\0';
	return *word ? word : NULL;
}

static int parse_retry_after(const char *value, uint64_t *ns)
{
	*ns = 0;
	return *value ? duration_parse(value, ns) : 0;
}

/* Tells whether it begins as `retry-after=Wed, 21 Oct ...`. */
static bool is_date(const char *word)
{
	return !strncmp(word, RETRY_AFTER, strlen(RETRY_AFTER)) &&
	       strlen(word) == strlen(RETRY_AFTER) + strlen("Wed,") &&
	       word[strlen(word) - 1] == ',';
}

static int parse_line(char *line, struct outcome *outcome, char error[ERROR_TEXT])
{
	char *rest = line, *word = next_word(&rest);
	bool is_status = strlen(word) == STATUS_DIGITS && strspn(word, DIGITS) == STATUS_DIGITS;
	unsigned int kind = 0;
	int err;

	*outcome = (struct outcome){.count = 1};
	if (is_status) {
		kind = kind_of_status(word);
	} else {
		while (kind < OUTCOME_COUNT && strcmp(word, KINDS[kind]) != 0)
			kind++;
		if (kind == OUTCOME_COUNT)
			return text_refuse(-EINVAL, error, word, GRAMMAR);
	}
	outcome->kind = (enum outcome_kind)kind;
	word = next_word(&rest);
	if (word && !is_status && strspn(word, DIGITS)) {
		err = count_parse(word, &outcome->count);
		if (err == -EINVAL)
			return text_refuse(err, error, word, GRAMMAR);
		if (err || !outcome->count || outcome->count > OUTCOMES_MAX)
			return text_refuse(-ERANGE, error, word, "out of bounds: 1 to 1e9");
		word = next_word(&rest);
	}
	/* The other form that HTTP has for it is a date, and the engine has no calendar. */
	if (is_status && word && is_date(word))
		return 0;
	if (word && (is_status || kind == OUTCOME_THROTTLED) &&
	    !strncmp(word, RETRY_AFTER, strlen(RETRY_AFTER))) {
		err = parse_retry_after(word + strlen(RETRY_AFTER), &outcome->retry_after_ns);
		if (err)
			return text_refuse(err, error, word,
					   "not a duration up to ten years, such as 30s");
		word = next_word(&rest);
	}
	return word ? text_refuse(-EINVAL, error, word, GRAMMAR) : 0;
}

int feedback_parse(const char **text, struct outcome *outcome, char error[ERROR_TEXT])
{
	char line[LINE_TEXT];
	size_t length;

	*text += strspn(*text, " \t\n\r\v\f");
	if (!**text)
		return -ENOENT;
	length = strcspn(*text, "\n");
	if (text_copy(*text, length, line, sizeof(line)))
		return text_refuse(-EINVAL, error, *text, "the line is too long");
	*text += length;
	return parse_line(line, outcome, error);
}
