/* rate_guess - the rate that was meant with a text that is none, see rate_guess.h. */
#include "core/values/rate_guess.h"

#include <stdio.h>
#include <string.h>

/* A text that is written, in small letters, and the one that is meant. */
struct spelling {
	const char *written, *meant;
};

static const struct spelling WORDS[] = {
	{"max", "max"}, {"unlimited", "max"}, {"infinite", "max"},
	{"inf", "max"}, {"infinity", "max"},  {NULL, NULL},
};

/* After a number without a slash. */
static const struct spelling ENDINGS[] = {
	{"rps", "/s"},	 {"qps", "/s"}, {"tps", "/s"}, {"rpm", "/min"}, {"qpm", "/min"},
	{"tpm", "/min"}, {"rph", "/h"}, {"rpd", "/d"}, {NULL, NULL},
};

/* After the number before the slash. */
static const struct spelling SUFFIXES[] = {
	{"", ""},     {"b", "B"},     {"k", "k"},   {"kb", "kB"},   {"m", "M"},	   {"mb", "MB"},
	{"g", "G"},   {"gb", "GB"},   {"t", "T"},   {"tb", "TB"},   {"ki", "Ki"},  {"kib", "KiB"},
	{"mi", "Mi"}, {"mib", "MiB"}, {"gi", "Gi"}, {"gib", "GiB"}, {"ti", "Ti"},  {"tib", "TiB"},
	{"e1", "0"},  {"e2", "00"},   {"e3", "k"},  {"e4", "0k"},   {"e5", "00k"}, {"e6", "M"},
	{"e7", "0M"}, {"e8", "00M"},  {"e9", "G"},  {NULL, NULL},
};

/* After the slash, and a number if there is one. */
static const struct spelling PERIODS[] = {
	{"ns", "ns"},	{"us", "us"},	 {"ms", "ms"},	    {"msec", "ms"},	{"s", "s"},
	{"sec", "s"},	{"secs", "s"},	 {"second", "s"},   {"seconds", "s"},	{"m", "min"},
	{"min", "min"}, {"mins", "min"}, {"minute", "min"}, {"minutes", "min"}, {"h", "h"},
	{"hr", "h"},	{"hrs", "h"},	 {"hour", "h"},	    {"hours", "h"},	{"d", "d"},
	{"day", "d"},	{"days", "d"},	 {"w", "7d"},	    {"week", "7d"},	{"weeks", "7d"},
	{NULL, NULL},
};

/* Returns what is meant, or NULL. */
static const char *meant(const struct spelling *list, const char *written)
{
	while (list->written && strcmp(list->written, written) != 0)
		list++;
	return list->meant;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * Tells whether what stands at @text separates thousands of @number, which is before it: three
 * digits follow, and no fourth, on a whole number that begins with one to three.
 */
static bool separates_thousands(const char *text, const char *number, size_t used, bool first)
{
	if (!used || (first && used > 3) || *number == '0' || memchr(number, '.', used))
		return false;
	return strchr(",_'", *text) && strspn(text + 1, "0123456789") == 3;
}

/*
 * Copies the number that @text begins with, without what separates its thousands. Returns what
 * comes after it.
 */
static const char *copy_number(const char *text, char number[QUANTITY_TEXT])
{
	size_t used = 0;
	bool first = true;

	for (; used < QUANTITY_TEXT - 1 && *text; text++) {
		if (is_digit(*text) || *text == '.')
			number[used++] = *text;
		else if (separates_thousands(text, number, used, first))
			first = false;
		else
			break;
	}
	number[used] = '\0';
	return text;
}

/* Appends @number and @is. False: there is no room. */
static bool append(char guess[QUANTITY_TEXT], const char *number, const char *is)
{
	size_t used = strlen(guess), room = QUANTITY_TEXT - used;

	return (size_t)snprintf(guess + used, room, "%s%s", number, is) < room;
}

/* NUMBER[SUFFIX], or a number and an ending that stands for a period, too. */
static bool guess_amount(const char *text, const struct spelling *list, char guess[QUANTITY_TEXT])
{
	char number[QUANTITY_TEXT];
	const char *is = meant(list, copy_number(text, number));

	/* Zeros go on a whole number. */
	return is && !(is_digit(*is) && strchr(number, '.')) && append(guess, number, is);
}

static bool guess_period(const char *text, char guess[QUANTITY_TEXT])
{
	char number[QUANTITY_TEXT];
	const char *is = meant(PERIODS, copy_number(text, number));

	return is && !(is_digit(*is) && *number) && append(guess, "/", number) &&
	       append(guess, "", is);
}

/* Copies @text in small letters. False: there is no room. */
static bool copy_small(const char *text, char copy[QUANTITY_TEXT])
{
	size_t used = 0;

	for (; text[used] && used < QUANTITY_TEXT - 1; used++)
		copy[used] = (char)(text[used] >= 'A' && text[used] <= 'Z' ? text[used] + 'a' - 'A'
									   : text[used]);
	copy[used] = '\0';
	return !text[used];
}

bool rate_guess(const char *text, char guess[QUANTITY_TEXT])
{
	static const char strict[] = ",strict";
	char written[QUANTITY_TEXT], *tail, *slash;
	struct rate rate;

	guess[0] = '\0';
	if (!copy_small(text, written))
		return false;
	if (meant(WORDS, written))
		return append(guess, "", meant(WORDS, written));
	tail = strstr(written, strict);
	if (tail && strcmp(tail, strict) != 0)
		return false;
	if (tail)
		*tail = '\0';
	slash = strchr(written, '/');
	if (slash)
		*slash = '\0';
	/* It may stand for bits. */
	if (memchr(text, 'b', strlen(written)))
		return false;
	return ((!slash && guess_amount(written, ENDINGS, guess)) ||
		guess_amount(written, SUFFIXES, guess)) &&
	       (!slash || guess_period(slash + 1, guess)) &&
	       append(guess, "", tail ? strict : "") && !rate_parse_limit(guess, &rate);
}
