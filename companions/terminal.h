/*
 * terminal - top on a terminal: keys, colours, a screen that is as before at the end, whatever ends
 * it.
 */
#ifndef RATEFS_COMPANIONS_TERMINAL_H
#define RATEFS_COMPANIONS_TERMINAL_H

#include "companions/view.h"

#include <stdint.h>

/*
 * Shows @view, which was refreshed once, on the terminal that is standard input and output; anew
 * each @interval_ns, @count times (0: no end) or until a key ends it. A signal that ends programs
 * ends this one, too. 0, -ENOSYS in a build without ncurses, -ENOTTY when this terminal has no
 * cursor to move, or the error of a refresh.
 */
int terminal_watch(struct view *view, uint64_t interval_ns, uint64_t count);

#endif
