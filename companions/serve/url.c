/* url - what a request for tokens asks for, see url.h. */
#include "companions/serve/url.h"

#include "core/values/amounts.h"
#include "fs/mount/node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { VALUE_TEXT = 1024 };

/* Returns the value of a hexadecimal digit, or -1. */
static int digit_value(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	digit |= 'a' ^ 'A';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/*
 * Copies @length bytes of @text with `%XX` decoded. 0; -EINVAL for a `%` that is none, or for a
 * zero byte; -ERANGE when it does not fit.
 */
static int decode(const char *text, size_t length, char *copy, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < length; i++) {
		char byte = text[i];

		if (byte == '%') {
			int high = length - i > 2 ? digit_value(text[i + 1]) : -1;
			int low = high >= 0 ? digit_value(text[i + 2]) : -1;

			if (low < 0 || !(high + low))
				return -EINVAL;
			byte = (char)(high * 16 + low);
			i += 2;
		}
		if (used + 1 >= size)
			return -ERANGE;
		copy[used++] = byte;
	}
	copy[used] = '\0';
	return 0;
}

int url_key(const char *text, char key[NAME_BYTES_MAX + 1])
{
	static const char digits[] = "0123456789ABCDEF";
	size_t used = 0;

	if (!*text)
		return -EINVAL;
	for (size_t i = 0; text[i]; i++) {
		unsigned char byte = (unsigned char)text[i];
		bool plain = byte >= ' ' && byte != 0x7f && byte != '/' && byte != '%' &&
			     (byte != '.' || i);

		if (used + (plain ? 1 : 3) > NAME_BYTES_MAX)
			return -ERANGE;
		key[used] = (char)byte;
		if (!plain) {
			key[used++] = '%';
			key[used++] = digits[byte >> 4];
			key[used] = digits[byte & 15];
		}
		used++;
	}
	key[used] = '\0';
	return 0;
}

static int refuse(int err, char error[ERROR_TEXT], const char *text, const char *why)
{
	snprintf(error, ERROR_TEXT, "'%.200s': %s", text, why);
	return err;
}

/* Parses the path of the limiter, of @length bytes. */
static int parse_limiter(const char *text, size_t length, struct url *url, char error[ERROR_TEXT])
{
	char copy[PATH_TEXT], *rest = copy, *name;
	unsigned int depth = 0;
	int err = decode(text, length, url->limiter, sizeof(url->limiter));

	if (err)
		return refuse(err, error, "the path", "too long, or a % without two digits");
	strcpy(copy, url->limiter);
	while ((name = strsep(&rest, "/"))) {
		if (++depth > DEPTH_MAX)
			return refuse(-ERANGE, error, url->limiter, "too many levels");
		if (name_check(name, error))
			return -EINVAL;
		if (node_name_is_taken(name))
			return refuse(-EINVAL, error, name, "a file of limiters, and no limiter");
	}
	return 0;
}

static int parse_tokens(const char *value, struct url *url)
{
	struct amounts amounts;
	int err = amounts_parse_take(value, &url->tokens, &url->most, &amounts);
	size_t used = 0;

	if (err || !url->tokens)
		return err ? err : -ERANGE;
	for (uint64_t i = 0; i < amounts.count && used < sizeof(url->units); i++)
		used += (size_t)snprintf(url->units + used, sizeof(url->units) - used,
					 ",%s=%" PRIu64, amounts.of[i].unit, amounts.of[i].tokens);
	return used < sizeof(url->units) ? 0 : -ERANGE;
}

static int parse_key(const char *value, struct url *url)
{
	return *url->key_from ? -EINVAL : url_key(value, url->key);
}

static int parse_key_from(const char *value, struct url *url)
{
	size_t length = strlen(value);

	if (*url->key || !length ||
	    strspn(value, "-_0123456789abcdefghijklmnopqrstuvwxyz"
			  "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != length)
		return -EINVAL;
	if (length >= sizeof(url->key_from))
		return -ERANGE;
	strcpy(url->key_from, value);
	return 0;
}

static int parse_within(const char *value, struct url *url)
{
	uint64_t ns;
	int err = url->within_ns ? -EINVAL : duration_parse(value, &ns);

	if (!err && (ns < URL_WITHIN_MIN_NS || ns > URL_WITHIN_MAX_NS))
		err = -ERANGE;
	if (!err)
		url->within_ns = ns;
	return err;
}

static int parse_wait(const char *value, struct url *url)
{
	if (url->within_ns || (strcmp(value, "yes") != 0 && strcmp(value, "no") != 0))
		return -EINVAL;
	url->within_ns = *value == 'y' ? NEVER_NS : 0;
	return 0;
}

static int parse_refuse(const char *value, struct url *url)
{
	static const unsigned int statuses[] = {401, 403, 429, 503};
	uint64_t status;
	int err = count_parse(value, &status);

	for (size_t i = 0; !err && i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		if (status != statuses[i])
			continue;
		url->refusal = statuses[i];
		return 0;
	}
	return err ? err : -ERANGE;
}

/* The table of parameters. */
static const struct {
	const char *name;
	int (*parse)(const char *value, struct url *url);
	const char *why;
} PARAMETERS[] = {
	{"n", parse_tokens, "not a number of tokens, such as 1, 64Ki or 1-250"},
	{"key", parse_key, "not a key: it has 1 to 255 bytes, and comes without key_from"},
	{"key_from", parse_key_from, "not the name of a header field, or there is a key already"},
	{"within", parse_within, "not a duration from 1ms to 1h, or there is wait already"},
	{"wait", parse_wait, "neither yes nor no, or there is within already"},
	{"refuse", parse_refuse, "not one of 401, 403, 429 and 503"},
};

/* Parses one parameter of @length bytes; @seen has a bit for each that was there before. */
static int parse_parameter(const char *text, size_t length, struct url *url, unsigned int *seen,
			   char error[ERROR_TEXT])
{
	const char *sign = memchr(text, '=', length);
	size_t name = sign ? (size_t)(sign - text) : length;
	char value[VALUE_TEXT];

	for (unsigned int i = 0; i < sizeof(PARAMETERS) / sizeof(PARAMETERS[0]); i++) {
		int err;

		if (name != strlen(PARAMETERS[i].name) ||
		    memcmp(text, PARAMETERS[i].name, name) != 0)
			continue;
		if (*seen & 1U << i)
			return refuse(-EINVAL, error, PARAMETERS[i].name, "given twice");
		*seen |= 1U << i;
		err = decode(text + name + !!sign, length - name - !!sign, value, sizeof(value));
		if (err)
			return refuse(err, error, PARAMETERS[i].name,
				      "too long, or a % without two digits");
		err = PARAMETERS[i].parse(value, url);
		return err ? refuse(err, error, value, PARAMETERS[i].why) : 0;
	}
	snprintf(error, ERROR_TEXT,
		 "'%.*s': not a parameter (n, key, key_from, within, wait, "
		 "refuse or rest)",
		 (int)(name < 100 ? name : 100), text);
	return -EINVAL;
}

int url_parse(const char *text, struct url *url, char error[ERROR_TEXT])
{
	static const char rest[] = "rest=";
	size_t length = strcspn(text, "?");
	unsigned int seen = 0;
	int err;

	/* Not the arrays: they are large. */
	url->key[0] = '\0';
	url->key_from[0] = '\0';
	url->units[0] = '\0';
	url->tokens = 1;
	url->most = 1;
	url->within_ns = 0;
	url->refusal = 429;
	error[0] = '\0';
	err = parse_limiter(text, length, url, error);
	text += length;
	while (!err && *text && text++ && strncmp(text, rest, strlen(rest)) != 0) {
		length = strcspn(text, "&");
		if (length)
			err = parse_parameter(text, length, url, &seen, error);
		text += length;
	}
	return err;
}

size_t url_file(const struct url *url, const char *name, char path[URL_FILE_TEXT])
{
	return (size_t)snprintf(path, URL_FILE_TEXT, "%s%s%s/%s", url->limiter,
				*url->key ? "/keys/" : "", url->key, name);
}

/* Returns @ns cut to its first two digits. */
static uint64_t two_digits(uint64_t ns)
{
	uint64_t unit = 1;

	while (ns / unit >= 100)
		unit *= 10;
	return ns / unit * unit;
}

void url_take(const struct url *url, bool waits, char name[NAME_BYTES_MAX])
{
	char within[QUANTITY_TEXT];
	bool limited = waits && url->within_ns != NEVER_NS;
	int length;

	if (url->most == 1 && !*url->units && !limited) {
		strcpy(name, "token");
		return;
	}
	length = snprintf(name, NAME_BYTES_MAX, "take/%" PRIu64, url->tokens);
	if (url->most != url->tokens)
		length += snprintf(name + length, NAME_BYTES_MAX - (size_t)length, "-%" PRIu64,
				   url->most);
	length += snprintf(name + length, NAME_BYTES_MAX - (size_t)length, "%s", url->units);
	if (!limited)
		return;
	duration_print(two_digits(url->within_ns), within);
	snprintf(name + length, NAME_BYTES_MAX - (size_t)length, ",within=%s", within);
}
