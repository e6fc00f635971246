/* feedback - how work went, see feedback.h. */
#include "core/limiter/feedback.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	LINE_TEXT = 256,
	STATUS_DIGITS = 3,
	EPOCH_DIGITS = 10,
	EPOCH_MS_DIGITS = 13,
	DATE_WORDS = 5
};

static const uint64_t EPOCH_LEAST_S = UINT64_C(1000000000); /* 2001; no duration is so long */

static const char BLANKS[] = " \t\r\v\f";
static const char DIGITS[] = "0123456789";
#define RETRY_AFTER "retry-after="

static const char GRAMMAR[] =
	"not an outcome: ok [N], throttled [N] [retry-after=DURATION], error [N], or a HTTP status "
	"such as 200 or 429 [retry-after=DURATION]; behind it, or behind quota, remaining=N "
	"reset=DURATION limit=N window=DURATION unit=NAME";

static const char *const KINDS[OUTCOME_COUNT] = {
	[OUTCOME_OK] = "ok",
	[OUTCOME_THROTTLED] = "throttled",
	[OUTCOME_ERROR] = "error",
	[OUTCOME_NONE] = "quota",
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

/* Returns the value of @word if it begins with @name; NULL: it does not. */
static const char *value_of(const char *word, const char *name)
{
	size_t length = strlen(name);

	return strncmp(word, name, length) ? NULL : word + length;
}

/* Tells whether it begins as `retry-after=Wed, 21 Oct ...`. */
static bool is_date(const char *word)
{
	return value_of(word, RETRY_AFTER) &&
	       strlen(word) == strlen(RETRY_AFTER) + strlen("Wed,") &&
	       word[strlen(word) - 1] == ',';
}

/* The words behind an outcome. */
enum said_word {
	SAID_RETRY_AFTER,
	SAID_REMAINING,
	SAID_RESET,
	SAID_LIMIT,
	SAID_WINDOW,
	SAID_UNIT,
	SAID_COUNT
};

static const char *const SAID_NAMES[SAID_COUNT] = {
	[SAID_RETRY_AFTER] = RETRY_AFTER, [SAID_REMAINING] = "remaining=", [SAID_RESET] = "reset=",
	[SAID_LIMIT] = "limit=",	  [SAID_WINDOW] = "window=",	   [SAID_UNIT] = "unit=",
};

/* Their values: tokens, or ns; or times. */
struct said {
	uint64_t values[SAID_COUNT];
	int64_t at_s[SAID_COUNT]; /* of those that may be a time: since 1970; 0: it is none */
	bool has[SAID_COUNT];
	char unit[UNIT_TEXT];
};

/*
 * Reads a duration, or several one after the other as Go prints one: 6m0s. These have units, and
 * `m` among them is min.
 */
static int parse_time(const char *value, uint64_t *ns)
{
	char part[QUANTITY_TEXT];
	uint64_t sum_ns = 0, part_ns;
	int err = duration_parse(value, ns);

	while (err == -EINVAL && *value) {
		size_t number = strspn(value, "0123456789.");
		size_t unit = strcspn(value + number, "0123456789.");

		if (!number || !unit || text_copy(value, number + unit, part, sizeof(part)))
			return -EINVAL;
		if (unit == 1 && value[number] == 'm')
			snprintf(part + number, sizeof(part) - number, "min");
		value += number + unit;
		err = duration_parse(part, &part_ns);
		if (err)
			return err;
		sum_ns += part_ns;
		if (sum_ns > DURATION_MAX_NS)
			return -ERANGE;
		*ns = sum_ns;
		err = *value ? -EINVAL : 0;
	}
	return err;
}

/*
 * Reads a time since 1970, in seconds, with decimals that do not count, or in milliseconds: no
 * duration has so many digits.
 */
static bool parse_epoch(const char *value, int64_t *at_s)
{
	size_t whole = strspn(value, DIGITS);
	size_t rest = value[whole] == '.' ? 1 + strspn(value + whole + 1, DIGITS) : 0;
	char digits[QUANTITY_TEXT];
	uint64_t number, s;

	if (value[whole + rest] || (whole != EPOCH_DIGITS && whole != EPOCH_MS_DIGITS) ||
	    text_copy(value, whole, digits, sizeof(digits)) || count_parse(digits, &number))
		return false;
	s = whole == EPOCH_DIGITS ? number : number / 1000;
	if (s < EPOCH_LEAST_S)
		return false;
	*at_s = (int64_t)s;
	return true;
}

/* Reads @value of @which, which is not empty. */
static int parse_value(enum said_word which, const char *value, uint64_t *number,
		       const char **grammar)
{
	int err;

	if (which == SAID_REMAINING && !strcmp(value, "max")) {
		*number = UINT64_MAX;
		return 0;
	}
	if (which == SAID_REMAINING || which == SAID_LIMIT) {
		*grammar = "not a number of tokens from 0 to 1e13";
		return tokens_parse(value, number);
	}
	*grammar = "not a duration up to ten years, such as 30s";
	err = parse_time(value, number);
	if (!err && which == SAID_WINDOW && !*number) {
		*grammar = "a window is longer than 0";
		err = -ERANGE;
	}
	return err;
}

/* Reads one word of `name=value`; one without a value says nothing. */
static int parse_word(const char *word, bool may_retry, struct said *said, char error[ERROR_TEXT])
{
	unsigned int which = may_retry ? SAID_RETRY_AFTER : SAID_REMAINING;
	const char *value = NULL, *grammar = GRAMMAR;
	int err;

	for (; which < SAID_COUNT && !(value = value_of(word, SAID_NAMES[which]));)
		which++;
	if (!value || said->has[which])
		return text_refuse(-EINVAL, error, word, GRAMMAR);
	if (!*value)
		return 0;
	if (which == SAID_UNIT) {
		if (!amount_read_unit(value, strlen(value), said->unit))
			return text_refuse(-EINVAL, error, value, UNIT_WHY);
		said->has[which] = true;
		return 0;
	}
	if ((which == SAID_RETRY_AFTER || which == SAID_RESET) &&
	    parse_epoch(value, &said->at_s[which])) {
		said->has[which] = true;
		return 0;
	}
	err = parse_value((enum said_word)which, value, &said->values[which], &grammar);
	said->has[which] = !err;
	if (!err)
		return 0;
	said->values[which] = 0;
	return text_refuse(err, error, word, grammar);
}

/* Has @outcome say what @said does. */
static int note_said(const struct said *said, struct outcome *outcome, char error[ERROR_TEXT])
{
	const bool *has = said->has;
	const uint64_t *values = said->values;

	if (has[SAID_REMAINING] && values[SAID_REMAINING] != UINT64_MAX && !has[SAID_RESET] &&
	    !has[SAID_WINDOW])
		return text_refuse(-EINVAL, error, "remaining",
				   "needs reset=DURATION or window=DURATION");
	if (has[SAID_LIMIT] && !has[SAID_WINDOW])
		return text_refuse(-EINVAL, error, "limit", "needs window=DURATION");
	outcome->retry_after_ns = values[SAID_RETRY_AFTER];
	outcome->retry_at_s = said->at_s[SAID_RETRY_AFTER];
	outcome->reset_at_s = said->at_s[SAID_RESET];
	outcome->has_remaining = has[SAID_REMAINING];
	outcome->remaining = values[SAID_REMAINING];
	outcome->reset_ns = values[has[SAID_RESET] ? SAID_RESET : SAID_WINDOW];
	outcome->has_limit = has[SAID_LIMIT];
	outcome->limit = values[SAID_LIMIT];
	outcome->window_ns = values[SAID_WINDOW];
	memcpy(outcome->unit, said->unit, UNIT_TEXT);
	return 0;
}

/* Reads the words behind an outcome, which @word is the first of; it may be NULL. */
static int parse_words(char *word, char *rest, struct outcome *outcome, char error[ERROR_TEXT])
{
	bool may_retry = outcome->kind == OUTCOME_THROTTLED;
	struct said said = {0};
	int err = 0;

	while (word && !err) {
		err = parse_word(word, may_retry, &said, error);
		word = next_word(&rest);
	}
	return err ? err : note_said(&said, outcome, error);
}

/* Skips what may follow `Wed,` in a date. Returns the next word, or NULL. */
static char *skip_date(char **rest)
{
	char *word = next_word(rest);

	for (int i = 0; i < DATE_WORDS && word && !strchr(word, '='); i++)
		word = next_word(rest);
	return word;
}

/*
 * Reads those behind a status, which count as far as they are understood: @error is of the first
 * that is not. Of a line that is not understood in part no quota counts: it may be of something
 * else.
 */
static void parse_status_words(char *word, char *rest, struct outcome *outcome,
			       char error[ERROR_TEXT])
{
	struct said said = {0};
	char wrong[ERROR_TEXT];

	while (word) {
		/* A date is the other form that HTTP has, and the engine has no calendar. */
		if (is_date(word)) {
			word = skip_date(&rest);
			continue;
		}
		if (parse_word(word, true, &said, wrong) && !*error)
			strcpy(error, wrong);
		word = next_word(&rest);
	}
	if (said.has[SAID_LIMIT] && !said.has[SAID_WINDOW]) {
		said.has[SAID_LIMIT] = false;
		said.values[SAID_LIMIT] = 0;
	}
	if (!*error && !note_said(&said, outcome, error))
		return;
	outcome->retry_after_ns = said.values[SAID_RETRY_AFTER];
	outcome->retry_at_s = said.at_s[SAID_RETRY_AFTER];
}

/* Tells whether @word is a HTTP status, of three digits. */
static bool is_status(const char *word)
{
	return strspn(word, DIGITS) == STATUS_DIGITS && !word[STATUS_DIGITS];
}

static int parse_line(char *line, struct outcome *outcome, char error[ERROR_TEXT])
{
	char *rest = line, *word = next_word(&rest);
	unsigned int kind = 0;
	int err;

	*outcome = (struct outcome){.count = 1, .is_status = is_status(word)};
	if (outcome->is_status) {
		outcome->kind = kind_of_status(word);
		word = next_word(&rest);
		parse_status_words(word, rest, outcome, error);
		return 0;
	}
	while (kind < OUTCOME_COUNT && strcmp(word, KINDS[kind]) != 0)
		kind++;
	if (kind == OUTCOME_COUNT)
		return text_refuse(-EINVAL, error, word, GRAMMAR);
	outcome->kind = (enum outcome_kind)kind;
	word = next_word(&rest);
	if (kind == OUTCOME_NONE)
		outcome->count = 0;
	else if (word && strspn(word, DIGITS)) {
		err = count_parse(word, &outcome->count);
		if (err == -EINVAL)
			return text_refuse(err, error, word, GRAMMAR);
		if (err || !outcome->count || outcome->count > OUTCOMES_MAX)
			return text_refuse(-ERANGE, error, word, "out of bounds: 1 to 1e9");
		word = next_word(&rest);
	}
	return parse_words(word, rest, outcome, error);
}

/*
 * Copies the line at @text, of @length bytes. Of one that is too long, and begins with a status,
 * the words for which there is room count. False: it is too long.
 */
static bool copy_line(const char *text, size_t length, char line[LINE_TEXT], char error[ERROR_TEXT])
{
	char first[STATUS_DIGITS + 1];

	if (!text_copy(text, length, line, LINE_TEXT))
		return true;
	(void)text_refuse(-EINVAL, error, text, "the line is too long");
	if (text_copy(text, strcspn(text, " \t\r\v\f"), first, sizeof(first)) || !is_status(first))
		return false;
	snprintf(line, LINE_TEXT, "%.*s", LINE_TEXT - 1, text);
	/* The last word may be cut. */
	for (size_t end = strlen(line); !strchr(BLANKS, line[end - 1]); end--)
		line[end - 1] = '\0';
	return true;
}

int feedback_parse(const char **text, struct outcome *outcome, char error[ERROR_TEXT])
{
	char line[LINE_TEXT];
	size_t length;

	*text += strspn(*text, " \t\n\r\v\f");
	if (!**text)
		return -ENOENT;
	*error = '\0';
	length = strcspn(*text, "\n");
	if (!copy_line(*text, length, line, error))
		return -EINVAL;
	*text += length;
	return parse_line(line, outcome, error);
}

/* Returns the time from @wall_s to @at_s; 0: that is over, or so far away that a clock is wrong. */
static uint64_t until(int64_t at_s, int64_t wall_s)
{
	uint64_t left_s = at_s > wall_s ? (uint64_t)(at_s - wall_s) : 0;

	return left_s <= DURATION_MAX_NS / NSEC_PER_SEC ? left_s * NSEC_PER_SEC : 0;
}

void feedback_void_quota(struct outcome *outcome)
{
	outcome->has_remaining = outcome->has_limit = false;
	memset(outcome->unit, 0, sizeof(outcome->unit));
}

void feedback_at(struct outcome *outcome, int64_t wall_s)
{
	if (outcome->retry_at_s)
		outcome->retry_after_ns = until(outcome->retry_at_s, wall_s);
	if (outcome->reset_at_s)
		outcome->reset_ns = until(outcome->reset_at_s, wall_s);
	if (outcome->reset_at_s && !outcome->reset_ns && outcome->remaining != UINT64_MAX)
		outcome->has_remaining = false;
	outcome->retry_at_s = outcome->reset_at_s = 0;
}
