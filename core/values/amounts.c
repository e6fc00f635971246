/* amounts - amounts of several units in one take, or one charge, see amounts.h. */
#include "core/values/amounts.h"
#include "core/values/text.h"

#include <errno.h>
#include <string.h>

enum { PART_TEXT = QUANTITY_TEXT + UNIT_TEXT };

static const char *const RESERVED[] = {"max",	    "none",  "within", "unit",	"limit",
				       "remaining", "reset", "window", "strict"};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_of_name(char c)
{
	return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
}

bool amount_read_unit(const char *text, size_t length, char unit[UNIT_TEXT])
{
	char name[UNIT_TEXT] = "";

	if (!length || length >= UNIT_TEXT || !is_letter(*text))
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!is_of_name(text[i]))
			return false;
		name[i] = text[i];
	}
	for (size_t i = 0; i < sizeof(RESERVED) / sizeof(RESERVED[0]); i++) {
		if (!strcmp(name, RESERVED[i]))
			return false;
	}
	memcpy(unit, name, sizeof(name));
	return true;
}

bool amount_is_of(const char a[UNIT_TEXT], const char b[UNIT_TEXT])
{
	return !memcmp(a, b, UNIT_TEXT);
}

static struct amount *find_amount(const struct amounts *amounts, const char unit[UNIT_TEXT])
{
	for (uint64_t i = 0; i < amounts->count; i++) {
		if (amount_is_of(amounts->of[i].unit, unit))
			return (struct amount *)&amounts->of[i];
	}
	return NULL;
}

bool amounts_name(const struct amounts *amounts, const char unit[UNIT_TEXT])
{
	return amounts && find_amount(amounts, unit);
}

uint64_t amounts_of(const struct amounts *amounts, const char unit[UNIT_TEXT])
{
	const struct amount *amount = amounts ? find_amount(amounts, unit) : NULL;

	return amount ? amount->tokens : 0;
}

/* Adds @tokens of @unit. False: there is no room. */
static bool add_amount(struct amounts *amounts, const char unit[UNIT_TEXT], uint64_t tokens)
{
	if (amounts->count == AMOUNTS_MAX)
		return false;
	amounts->of[amounts->count] = (struct amount){.tokens = tokens};
	memcpy(amounts->of[amounts->count].unit, unit, UNIT_TEXT);
	amounts->count++;
	return true;
}

void amounts_add(struct amounts *sum, const struct amounts *more)
{
	for (uint64_t i = 0; more && i < more->count; i++) {
		struct amount *amount = find_amount(sum, more->of[i].unit);
		uint64_t room = amount ? TOKENS_MAX - amount->tokens : 0;

		if (amount)
			amount->tokens += more->of[i].tokens < room ? more->of[i].tokens : room;
		else
			(void)add_amount(sum, more->of[i].unit, more->of[i].tokens);
	}
}

/* Cuts the text up to one of @ends off @*text. NULL: it is too long. */
static const char *cut_part(const char **text, const char *ends, char part[PART_TEXT])
{
	size_t length = strcspn(*text, ends);

	if (length >= PART_TEXT)
		return NULL;
	memcpy(part, *text, length);
	part[length] = '\0';
	*text += length;
	return part;
}

/*
 * Reads @part, `UNIT=NUMBER`, of which the number is in @*number then. False: it is not that, or
 * @unit is in @others already.
 */
static bool read_unit(const char *part, const struct amounts *others, char unit[UNIT_TEXT],
		      const char **number)
{
	const char *equals = strchr(part, '=');

	if (!equals || !amount_read_unit(part, (size_t)(equals - part), unit) ||
	    find_amount(others, unit))
		return false;
	*number = equals + 1;
	return true;
}

int amounts_parse_take(const char *text, uint64_t *tokens, uint64_t *most, struct amounts *amounts)
{
	struct amounts found = {0};
	uint64_t least = 0, last = 0;
	char part[PART_TEXT], unit[UNIT_TEXT];
	const char *number;
	bool is_first = true;
	int err;

	for (;; is_first = false, text++) {
		uint64_t amount = 0;

		if (!cut_part(&text, ",", part))
			return -EINVAL;
		if (is_first && !strchr(part, '=')) {
			err = tokens_parse_range(part, &least, &last);
		} else {
			err = read_unit(part, &found, unit, &number) ? tokens_parse(number, &amount)
								     : -EINVAL;
			if (!err && !add_amount(&found, unit, amount))
				err = -ERANGE;
		}
		if (err)
			return err;
		if (!*text)
			break;
	}
	if (found.count && last > least)
		return -EINVAL;
	*tokens = least;
	*most = last;
	*amounts = found;
	return 0;
}

int amounts_parse(const char *text, uint64_t *tokens, struct amounts *amounts)
{
	uint64_t least, last;
	struct amounts found;
	int err = amounts_parse_take(text, &least, &last, &found);

	if (err)
		return err;
	if (strcspn(text, "-,") < strcspn(text, ","))
		return -EINVAL;
	*tokens = least;
	*amounts = found;
	return 0;
}

int amounts_parse_charge(const char *text, struct charge *charge)
{
	struct charge parsed = {0};
	struct amounts all = {0};
	char part[PART_TEXT], unit[UNIT_TEXT];
	const char *number;
	bool is_first = true;

	for (text += strspn(text, TEXT_SPACE); *text || is_first;
	     text += strspn(text, TEXT_SPACE), is_first = false) {
		bool has_unit;
		int64_t tokens;
		uint64_t size;
		int err;

		if (!cut_part(&text, TEXT_SPACE, part))
			return -EINVAL;
		has_unit = strchr(part, '=') != NULL;
		number = part;
		if (has_unit ? !read_unit(part, &all, unit, &number) : !is_first)
			return -EINVAL;
		err = charge_parse(number, &tokens);
		if (err)
			return err;
		if (!has_unit) {
			parsed.tokens = tokens;
			continue;
		}
		size = tokens < 0 ? (uint64_t)-tokens : (uint64_t)tokens;
		if (!add_amount(&all, unit, size))
			return -ERANGE;
		(void)add_amount(tokens < 0 ? &parsed.returned : &parsed.taken, unit, size);
	}
	*charge = parsed;
	return 0;
}
