/* terminal_none - top on a terminal, in a build without ncurses. */
#include "companions/terminal.h"

#include <errno.h>

int terminal_watch(struct view *view, uint64_t interval_ns, uint64_t count)
{
	(void)view;
	(void)interval_ns;
	(void)count;
	return -ENOSYS;
}
