/*
 * inherited - what a process has from the one that started it, made as programs expect it.
 */
#ifndef RATEFS_FS_BASE_INHERITED_H
#define RATEFS_FS_BASE_INHERITED_H

/*
 * The first act of the program: a file at each of the descriptors 0 to 2 that is closed, so that no
 * later file gets that number, and the default action for the end of a child, whose exit status is
 * lost where that signal is ignored. Reads at 0, and writes at 1 and 2, fail as before. 0 or
 * -errno.
 */
int inherited_mend(void);

/*
 * Closes all descriptors above 2, since a daemon that keeps those of its caller keeps its locks,
 * pipes and mounts from ending, but for one that is named by @path (/dev/fd/N; NULL: none). From
 * Linux 5.9 on.
 */
void inherited_close(const char *path);

/* Closes that one, too, in the process that has called inherited_close(). */
void inherited_finish(void);

/* Closes the one that @path names so, in a program that has just read it. */
void inherited_was_read(const char *path);

#endif
