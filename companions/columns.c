/* columns - those columns of a table for which a screen has room, see columns.h. */
#include "companions/columns.h"
#include "companions/cells.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { PATH_LEAST = 7 };

/* Returns how many cells the columns have beyond @width; negative: how many are left. */
static int lack(const struct columns *columns, unsigned int width)
{
	int lacking = -(int)width;

	for (size_t c = 0; c < columns->count; c++)
		lacking += columns->widths[c] ? (int)columns->widths[c] + 1 : 0;
	return lacking;
}

/* Adds what column @c lacks of @wanted cells, as far as there is room. */
static void widen(struct columns *columns, unsigned int width, size_t c, unsigned int wanted)
{
	int left = -lack(columns, width), more = (int)wanted - (int)columns->widths[c];

	more = more < left ? more : left;
	columns->widths[c] += more > 0 ? (unsigned int)more : 0;
}

/* Takes what the columns lack from column @c, which keeps @least. */
static void narrow(struct columns *columns, unsigned int width, size_t c, unsigned int least)
{
	int lacking = lack(columns, width), less = (int)columns->widths[c] - (int)least;

	less = less < lacking ? less : lacking;
	columns->widths[c] -= less > 0 ? (unsigned int)less : 0;
}

void columns_fit(struct columns *columns, unsigned int width, unsigned int widest, size_t kept,
		 size_t hidden)
{
	unsigned int *widths = columns->widths;
	size_t path = columns->path, last = columns->count - 1;

	for (size_t c = 0; c < columns->count; c++)
		widths[c] = c == hidden ? 0 : columns->all[c].width;
	if (widths[path] > widest)
		widths[path] = widest > PATH_LEAST ? widest : PATH_LEAST;
	for (unsigned int leaves = 1; leaves <= LEAVES_MAX; leaves++) {
		for (size_t c = columns->count; c-- > 0 && lack(columns, width) > 0;) {
			const struct column *column = &columns->all[c];

			if (leaves == LEAVES_SHRUNK)
				narrow(columns, width, c, column->least);
			if (leaves == column->leaves && c != kept)
				widths[c] = 0;
		}
	}
	narrow(columns, width, path, 1);
	widen(columns, width, path, widest);
	if (widths[last])
		widen(columns, width, last, width);
}

void columns_title(const struct columns *columns, size_t marked, char mark, char *line, size_t size)
{
	size_t used = 0;

	for (size_t c = 0; c < columns->count; c++) {
		const char *title = columns->all[c].title;
		int blanks = (int)columns->widths[c] - (int)strlen(title);
		bool text = c >= columns->texts;

		if (columns->widths[c])
			used += (size_t)snprintf(line + used, size - used, "%*s%c%s%*s",
						 text ? 0 : blanks, "", c == marked ? mark : ' ',
						 title, text ? blanks : 0, "");
	}
}

void columns_write(const struct columns *columns, const char *const cells[], char *line,
		   size_t size)
{
	size_t used = 0, last = columns->count - 1;

	for (size_t c = 0; c < columns->count; c++) {
		unsigned int width = columns->widths[c];
		char *to = line + used + 1;

		if (!width)
			continue;
		line[used] = ' ';
		if (c < columns->texts)
			snprintf(to, size - used - 1, "%*s", (int)width, cells[c]);
		else if (c == last)
			cells_slice(cells[c], 0, width, to, size - used - 1);
		else
			cells_fit(cells[c], width, to, size - used - 1);
		used += 1 + strlen(to);
	}
}
