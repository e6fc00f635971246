/*
 * plain - names from outside as one word of a line: of keys, and of commands.
 */
#ifndef RATEFS_FS_MOUNT_PLAIN_H
#define RATEFS_FS_MOUNT_PLAIN_H

#include "core/fleet/record.h"

#include <stdint.h>
#include <stdio.h>

struct limiter;

/* Writes @name, with `?` for blanks and control characters; `-` if it is empty. */
void plain_word(FILE *out, const char *name);

/* Finds the name of the command that thread @pid runs: "" as below. */
void plain_find_command(uint32_t pid, char command[COMMAND_TEXT]);

/*
 * Writes the name of the command that thread @pid runs, as a word; `-` if there is no such thread
 * any more, or if /proc does not show it to the daemon.
 */
void plain_command(FILE *out, uint32_t pid);

/* Writes the path of @limiter; of a key or partition, with its name behind that of its limiter. */
void plain_limiter(FILE *out, const struct limiter *limiter);

#endif
