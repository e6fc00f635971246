/* text - pieces of text, and refusals in words, see text.h. */
#include "core/values/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int text_copy(const char *text, size_t length, char *copy, size_t size)
{
	while (length && strchr(TEXT_SPACE, *text)) {
		text++;
		length--;
	}
	while (length && strchr(TEXT_SPACE, text[length - 1]))
		length--;
	if (length >= size)
		return -EINVAL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return 0;
}

int text_refuse(int err, char error[ERROR_TEXT], const char *text, const char *why)
{
	snprintf(error, ERROR_TEXT, "'%.200s': %s", text, why);
	return err;
}
