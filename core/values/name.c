/* Checks names of limiters. */
#include "core/values/name.h"

#include <errno.h>
#include <stdbool.h>
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
	for (const unsigned char *c = (const unsigned char *)name; *c && !why; c++) {
		bool is_c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0; /* in UTF-8 */

		if (*c < ' ' || *c == 0x7f || is_c1)
			why = "a name has no control characters";
	}
	if (!why)
		return 0;
	snprintf(error, ERROR_TEXT, "'%.200s': %s", name, why);
	return -EINVAL;
}
