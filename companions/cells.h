/*
 * cells - text in the columns of a terminal, where a letter takes none, one or two of them. Bytes
 * that no terminal shows, and those that move its cursor, are a question mark of one cell each.
 */
#ifndef RATEFS_COMPANIONS_CELLS_H
#define RATEFS_COMPANIONS_CELLS_H

#include <stddef.h>

/* Finds the size of the terminal that @fd is; 24 rows of 80 when it tells none. */
void cells_of_terminal(int fd, unsigned int *rows, unsigned int *columns);

/* Counts the cells of @text. */
unsigned int cells_count(const char *text);

/*
 * Writes to @to, of @size bytes, at most @cells cells of @text, without those before cell @from.
 * Returns how many.
 */
unsigned int cells_slice(const char *text, unsigned int from, unsigned int cells, char *to,
			 size_t size);

/* Writes @text as @cells cells to @to: with blanks behind it, or with a `~` for its middle. */
void cells_fit(const char *text, unsigned int cells, char *to, size_t size);

#endif
