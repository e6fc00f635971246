/* cells - text in the columns of a terminal, see cells.h. */
#include "companions/cells.h"

#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <wchar.h>

enum { ROWS_DEFAULT = 24, COLUMNS_DEFAULT = 80, LINE_BYTES = 1024 };

/* They have what stands behind them shown in another order. */
static const wchar_t TURNING[] = L"\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
				 L"\u2066\u2067\u2068\u2069";

void cells_of_terminal(int fd, unsigned int *rows, unsigned int *columns)
{
	struct winsize size;
	bool known = !ioctl(fd, TIOCGWINSZ, &size) && size.ws_row && size.ws_col;

	*rows = known ? size.ws_row : ROWS_DEFAULT;
	*columns = known ? size.ws_col : COLUMNS_DEFAULT;
}

unsigned int cells_slice(const char *text, unsigned int from, unsigned int cells, char *to,
			 size_t size)
{
	unsigned int at = 0, taken = 0;
	mbstate_t state = {0};
	size_t used = 0;

	while (*text) {
		wchar_t letter;
		size_t length = mbrtowc(&letter, text, strnlen(text, MB_LEN_MAX), &state);
		bool known = length <= MB_LEN_MAX;
		int width = known && !wcschr(TURNING, letter) ? wcwidth(letter) : -1;
		size_t bytes = width < 0 ? 1 : length;
		unsigned int step = width < 0 ? 1 : (unsigned int)width;

		if (!known) {
			state = (mbstate_t){0};
			length = 1;
		}
		if (at >= from) {
			if (taken + step > cells || used + bytes >= size)
				break;
			memcpy(to + used, width < 0 ? "?" : text, bytes);
			used += bytes;
			taken += step;
		}
		at += step;
		text += length;
	}
	to[used] = '\0';
	return taken;
}

unsigned int cells_count(const char *text)
{
	char shown[4 * PATH_MAX];

	return cells_slice(text, 0, UINT_MAX, shown, sizeof(shown));
}

void cells_fit(const char *text, unsigned int cells, char *to, size_t size)
{
	unsigned int count = cells_count(text), used, left;
	size_t length;

	if (count > cells && cells) {
		/* Names below one limiter differ at their ends. */
		used = cells_slice(text, 0, (cells - 1) / 3, to, size) + 1;
		left = cells - used;
		length = strlen(to);
		snprintf(to + length, size - length, "~");
		length = strlen(to);
		used += cells_slice(text, count - left, left, to + length, size - length);
	} else {
		used = cells_slice(text, 0, cells, to, size);
	}
	length = strlen(to);
	snprintf(to + length, size - length, "%*s", (int)(cells - used), "");
}

void cells_print_number(double value, char text[CELL_BYTES])
{
	static const char units[] = {' ', 'k', 'M', 'G', 'T'};
	size_t unit = 0;

	if (isnan(value)) {
		strcpy(text, "-");
	} else if (isinf(value)) {
		strcpy(text, "max");
	} else if (value && fabs(value) < 0.95) {
		snprintf(text, CELL_BYTES, "%.2g", value);
	} else if (fabs(value) < 99999.95) {
		snprintf(text, CELL_BYTES, value == floor(value) ? "%.0f" : "%.1f", value);
	} else {
		for (; fabs(value) >= 9999.95 && unit < sizeof(units) - 1; unit++)
			value /= 1000;
		snprintf(text, CELL_BYTES, "%.1f%c", value, units[unit]);
	}
}

void cells_print_span(double seconds, char text[CELL_BYTES])
{
	static const struct {
		double seconds;
		const char *name;
	} units[] = {{24 * 3600, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
	const size_t last = sizeof(units) / sizeof(units[0]) - 1;
	double count, rest;
	size_t i = 0;

	while (i < last && seconds < units[i].seconds)
		i++;
	count = floor(seconds / units[i].seconds);
	rest = i < last ? floor(fmod(seconds, units[i].seconds) / units[i + 1].seconds) : 0;
	if (isnan(seconds))
		strcpy(text, "-");
	else if (seconds > 0 && seconds < 0.9995)
		snprintf(text, CELL_BYTES, "%.0fms", 1000 * seconds);
	else if (i == last)
		snprintf(text, CELL_BYTES, "%.*fs", seconds < 10 && seconds != count, seconds);
	else if (count < 1000)
		snprintf(text, CELL_BYTES, "%.0f%s%02.0f%s", count, units[i].name, rest,
			 units[i + 1].name);
	else
		snprintf(text, CELL_BYTES, count < 1e5 ? "%.0fd" : "never", count);
}

void cells_renew(int fd, const char *text, char *to, size_t size)
{
	char line[LINE_BYTES];
	unsigned int rows, columns;

	cells_of_terminal(fd, &rows, &columns);
	cells_slice(text, 0, columns > 3 ? columns - 3 : 0, line, sizeof(line));
	snprintf(to, size, "\r%*s\r%s", (int)columns - 1, "", line);
}
