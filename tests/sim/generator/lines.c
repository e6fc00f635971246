/* lines - a trace that is being made up, see lines.h. */
#include "tests/sim/generator/lines.h"
#include "core/values/quantity.h"
#include "tests/sim/base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_ROOM = 512 };

void lines_add(struct lines *lines, uint64_t now_ns, const char *format, va_list arguments)
{
	if (lines->size - lines->used < LINE_ROOM) {
		char *larger = memory_get(lines->size * 2 + LINE_ROOM);

		if (lines->used)
			memcpy(larger, lines->text, lines->used);
		free(lines->text);
		lines->text = larger;
		lines->size = lines->size * 2 + LINE_ROOM;
	}
	if (now_ns != NEVER_NS)
		lines->used += (size_t)sprintf(lines->text + lines->used, "%" PRIu64 "ns ", now_ns);
	lines->used += (size_t)vsnprintf(lines->text + lines->used, LINE_ROOM / 2, format,
					 arguments);
	lines->text[lines->used++] = '\n';
	lines->text[lines->used] = '\0';
}
