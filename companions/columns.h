/*
 * columns - those columns of a table for which a screen has room.
 */
#ifndef RATEFS_COMPANIONS_COLUMNS_H
#define RATEFS_COMPANIONS_COLUMNS_H

#include <stddef.h>

enum { COLUMNS_MAX = 12 };

struct column {
	const char *title;
	unsigned int width;  /* in cells */
	unsigned int least;  /* of a text, where there is little room */
	unsigned int leaves; /* in which order columns go where there is no room; 0: it stays */
};

/* Before these leave, the texts shrink to the least. */
enum { LEAVES_SHRUNK = 5, LEAVES_MAX = 12 };

/* A table. Its texts begin at the left, and the last one is cut at its end. */
struct columns {
	const struct column *all;
	size_t count, texts, path;	  /* columns, the first with a text, that with paths */
	unsigned int widths[COLUMNS_MAX]; /* 0: it is left out */
};

/*
 * Finds the widths for a screen of @width cells and paths of at most @widest: column @kept stays,
 * @hidden is left out. COLUMNS_MAX: none.
 */
void columns_fit(struct columns *columns, unsigned int width, unsigned int widest, size_t kept,
		 size_t hidden);

/* Writes the titles to @line, of @size bytes, with @mark before that of column @marked. */
void columns_title(const struct columns *columns, size_t marked, char mark, char *line,
		   size_t size);

/* Writes a row with these @cells to @line, of @size bytes. */
void columns_write(const struct columns *columns, const char *const cells[], char *line,
		   size_t size);

#endif
