/* Checks names of limiters. */
#include "core/values/name.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int name_check(const char *name, char error[ERROR_TEXT])
{
	const char *why = NULL;

	if (!*name)
		why = "a name has at least one byte";
	else if (strlen(name) > NAME_BYTES_MAX)
		why = "a name has at most 255 bytes";
	else if (*name == '.')
		why = "a name does not start with a dot";
	else if (strchr(name, '/'))
		why = "a name has no slash";
	for (const char *c = name; *c && !why; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			why = "a name has no control characters";
	}
	if (!why)
		return 0;
	snprintf(error, ERROR_TEXT, "'%.200s': %s", name, why);
	return -EINVAL;
}
