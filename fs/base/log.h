/*
 * log - messages to the operator: to standard error until the daemon goes into the background, to
 * syslog from then on. No newline at the end. If standard error is systemd's journal, lines begin
 * with their level, as of sd-daemon(3).
 */
#ifndef RATEFS_FS_BASE_LOG_H
#define RATEFS_FS_BASE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };

void log_set_level(enum log_level level);
void log_to_syslog(void);
void log_look_for_journal(void);

/* Cuts the process off from the terminal, once nothing is left to be said on it. */
void log_leave_terminal(void);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
