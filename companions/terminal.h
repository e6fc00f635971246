/*
 * terminal - the screen and the keys, in plain ANSI; as it was before at the end, whatever ends it.
 */
#ifndef RATEFS_COMPANIONS_TERMINAL_H
#define RATEFS_COMPANIONS_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys that are no character; a character is its own key. */
enum { KEY_NONE, KEY_END = 256, KEY_RESIZE, KEY_UP, KEY_DOWN, KEY_PAGE_UP, KEY_PAGE_DOWN };

/* Opens standard input and output, which are terminals. 0 or -errno. */
int terminal_open(void);
void terminal_close(void);

void terminal_size(unsigned int *rows, unsigned int *columns);

/*
 * Waits until companion_now_ns() is @until_ns for a key. KEY_NONE when none came;
 * KEY_END after a signal that ends a program, or when the terminal has gone. Stops and goes on as
 * job control says.
 */
int terminal_key(uint64_t until_ns);

/* Returns the signal that KEY_END stood for, 0 for none. */
int terminal_signal(void);

/* Shows @text from the top left corner on, and nothing below. */
void terminal_show(const char *text, size_t length);

/*
 * Writes @text to @to, cut to @columns cells, with a question mark for what cannot be shown. @size
 * is the room in @to.
 */
void terminal_cut(const char *text, unsigned int columns, char *to, size_t size);

#endif
