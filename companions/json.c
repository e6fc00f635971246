/* json - texts in JSON, see json.h. */
#include "companions/json.h"

/*
 * Returns how many of @left bytes at @at are a character of UTF-8, 0 if they are none: as the
 * Unicode Standard has it in table 3-7.
 */
static size_t character_bytes(const unsigned char *at, size_t left)
{
	static const struct {
		unsigned char first, last; /* of the first byte */
		unsigned char low, high;   /* of the second one */
		size_t bytes;
	} shapes[] = {
		{0x00, 0x7f, 0, 0, 1},	     {0xc2, 0xdf, 0x80, 0xbf, 2},
		{0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
		{0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
		{0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
		{0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	size_t i = 0, count = sizeof(shapes) / sizeof(shapes[0]);

	while (i < count && (*at < shapes[i].first || *at > shapes[i].last))
		i++;
	if (i == count || shapes[i].bytes > left)
		return 0;
	if (shapes[i].bytes > 1 && (at[1] < shapes[i].low || at[1] > shapes[i].high))
		return 0;
	for (size_t n = 2; n < shapes[i].bytes; n++) {
		if ((at[n] & 0xc0) != 0x80)
			return 0;
	}
	return shapes[i].bytes;
}

void json_text(FILE *out, const char *text, size_t length)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + length;

	fputc('"', out);
	while (at < end) {
		size_t bytes = character_bytes(at, (size_t)(end - at));

		if (!bytes)
			fputs("\xef\xbf\xbd", out);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at < ' ' || *at == 0x7f)
			fprintf(out, "\\u%04x", *at);
		else if (*at == 0xc2 && at[1] < 0xa0)
			fprintf(out, "\\u%04x", at[1]);
		else
			fwrite(at, 1, bytes, out);
		at += bytes ? bytes : 1;
	}
	fputc('"', out);
}
