/*
 * log - messages to the operator. No newline at the end. If standard error is systemd's journal,
 * lines begin with their level, as of sd-daemon(3).
 *
 * A command waits until standard error has been read, and loses nothing. A daemon waits for no
 * reader of its messages, from log_stop_waiting() on: one that cannot be taken at once is lost, and
 * the next that can comes behind a line with the number of those that were. Then a line has 4096
 * bytes at most, what is longer is cut, and control characters in it are question marks.
 */
#ifndef RATEFS_FS_BASE_LOG_H
#define RATEFS_FS_BASE_LOG_H

#include <stdbool.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };

void log_set_level(enum log_level level);
void log_look_for_journal(void);

/*
 * Opens standard error once more, if it is a pipe or a terminal, for log_stop_waiting(): before
 * privileges are given up, with which it can be opened.
 */
void log_prepare(void);

/*
 * Begins to lose messages rather than to wait. Those of a daemon in the @background go to syslog
 * from now on: to /dev/log, a socket for datagrams.
 */
void log_stop_waiting(bool background);

/* Cuts the process off from the terminal, once nothing is left to be said on it. */
void log_leave_terminal(void);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
