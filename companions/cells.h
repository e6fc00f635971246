/*
 * cells - text in the columns of a terminal, where a letter takes none, one or two of them. Bytes
 * that no terminal shows, and those that move its cursor, are a question mark of one cell each.
 */
#ifndef RATEFS_COMPANIONS_CELLS_H
#define RATEFS_COMPANIONS_CELLS_H

#include <stddef.h>

enum { CELL_BYTES = 32 }; /* of a number or a time in a table */

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

/*
 * Prints a count or a rate: at most seven characters of it, unless it is no number that a limiter
 * has; `max` for infinity, `-` for no number.
 */
void cells_print_number(double value, char text[CELL_BYTES]);

/* Prints a time in its two largest units, at most seven characters of it; `-` for no number. */
void cells_print_span(double seconds, char text[CELL_BYTES]);

/*
 * Writes to @to, of @size bytes, what shows @text on the terminal that @fd is, in place of the line
 * before: as much as fits with the `^C` that the terminal adds when it is typed.
 */
void cells_renew(int fd, const char *text, char *to, size_t size);

#endif
