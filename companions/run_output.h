/*
 * run_output - what a command prints: passed on, and looked through for words that say throttled.
 */
#ifndef RATEFS_COMPANIONS_RUN_OUTPUT_H
#define RATEFS_COMPANIONS_RUN_OUTPUT_H

#include <regex.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

/*
 * Copies what comes from @from[0] to standard output and from @from[1] to standard error, until
 * both have ended, or the command @worker has and @told_to_end is set; then both are closed. A
 * write that fails ends its stream, as it would without us. True: a line matched @words; of a long
 * line the first 4,095 bytes are looked at.
 */
bool run_output_relay(const int from[2], pid_t worker, const volatile sig_atomic_t *told_to_end,
		      const regex_t *words);

/* Writes all of @text, also where that has to be waited for. 0 or -errno. */
int run_output_write(int file, const char *text, size_t length);

#endif
