/* words - settings of several words, see words.h. */
#include "core/values/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The types that are numbers within bounds. */
static const struct {
	const char *what;
	int (*parse)(const char *text, uint64_t *value);
	void (*print)(uint64_t value, char text[QUANTITY_TEXT]);
} NUMBERS[] = {
	[WORD_COUNT] = {"not a whole number", count_parse, count_print},
	[WORD_DURATION] = {DURATION_WHY, duration_parse, duration_print},
	[WORD_DECIMAL] = {"not a number: such as 0.9", decimal_parse, decimal_print},
};

static int parse_number(const struct word *word, const char *text, const char *shown,
			char error[ERROR_TEXT])
{
	char least[QUANTITY_TEXT], most[QUANTITY_TEXT], why[4 * QUANTITY_TEXT];
	uint64_t value;
	int err = NUMBERS[word->type].parse(text, &value);

	if (err == -EINVAL)
		return text_refuse(err, error, shown, NUMBERS[word->type].what);
	if (err || value < word->least || value > word->most) {
		NUMBERS[word->type].print(word->least, least);
		NUMBERS[word->type].print(word->most, most);
		snprintf(why, sizeof(why), "out of bounds: %s to %s", least, most);
		return text_refuse(-ERANGE, error, shown, why);
	}
	*(uint64_t *)word->value = value;
	return 0;
}

static int parse_choice(const struct word *word, const char *text, const char *shown,
			char error[ERROR_TEXT])
{
	char why[ERROR_TEXT] = "not understood: it is one of";

	for (uint64_t i = 0; word->choices[i]; i++) {
		size_t used = strlen(why);

		if (!strcmp(text, word->choices[i])) {
			*(uint64_t *)word->value = i;
			return 0;
		}
		snprintf(why + used, sizeof(why) - used, " %s", word->choices[i]);
	}
	return text_refuse(-EINVAL, error, shown, why);
}

/* @shown is the whole `name=value`, @text its value. */
static int parse_value(const struct word *word, const char *text, const char *shown,
		       char error[ERROR_TEXT])
{
	int err;

	switch (word->type) {
	case WORD_COUNT:
	case WORD_DURATION:
	case WORD_DECIMAL:
		break;
	case WORD_CHOICE:
		return parse_choice(word, text, shown, error);
	case WORD_OTHER:
		err = word->parse(text, word->value);
		return err ? text_refuse(err, error, shown, word->why) : 0;
	}
	return parse_number(word, text, shown, error);
}

static int refuse_name(const char *shown, const struct word *words, size_t count,
		       char error[ERROR_TEXT])
{
	char why[ERROR_TEXT] = "not understood: name=value with one of";

	for (size_t i = 0; i < count; i++) {
		size_t used = strlen(why);

		snprintf(why + used, sizeof(why) - used, " %s", words[i].name);
	}
	return text_refuse(-EINVAL, error, shown, count ? why : "there is nothing to be said");
}

static int parse_word(const char *shown, struct word *words, size_t count, char error[ERROR_TEXT])
{
	const char *equals = strchr(shown, '=');
	size_t length = equals ? (size_t)(equals - shown) : 0;

	for (size_t i = 0; equals && i < count; i++) {
		struct word *word = &words[i];

		if (strlen(word->name) != length || strncmp(word->name, shown, length) != 0)
			continue;
		if (word->given)
			return text_refuse(-EINVAL, error, shown, "given twice");
		word->given = true;
		return parse_value(word, equals + 1, shown, error);
	}
	return refuse_name(shown, words, count, error);
}

bool words_are(const char *text, const char *kind)
{
	return strcspn(text, TEXT_SPACE) == strlen(kind) && !strncmp(text, kind, strlen(kind));
}

int words_parse(const char *text, struct word *words, size_t count, char error[ERROR_TEXT])
{
	char copy[SETTING_TEXT], *rest = copy;
	int err = 0;

	if (strlen(text) >= sizeof(copy))
		return text_refuse(-EINVAL, error, text, "too long");
	memcpy(copy, text, strlen(text) + 1);
	for (size_t i = 0; i < count; i++)
		words[i].given = false;
	rest += strcspn(rest, TEXT_SPACE);
	while (!err && *(rest += strspn(rest, TEXT_SPACE))) {
		const char *word = rest;

		rest += strcspn(rest, TEXT_SPACE);
		if (*rest)
			*rest++ = '\0';
		err = parse_word(word, words, count, error);
	}
	return err;
}

void words_print(const char *kind, const struct word *words, size_t count, char text[SETTING_TEXT])
{
	size_t used = (size_t)snprintf(text, SETTING_TEXT, "%s", kind);

	for (size_t i = 0; i < count && used < SETTING_TEXT; i++) {
		const struct word *word = &words[i];
		const char *shown;
		char value[QUANTITY_TEXT];

		shown = value;
		if (word->type == WORD_OTHER)
			word->print(word->value, value);
		else if (word->type == WORD_CHOICE)
			shown = word->choices[*(const uint64_t *)word->value];
		else
			NUMBERS[word->type].print(*(const uint64_t *)word->value, value);
		used += (size_t)snprintf(text + used, SETTING_TEXT - used, " %s=%s", word->name,
					 shown);
	}
}
