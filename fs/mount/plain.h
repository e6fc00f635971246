/*
 * plain - names from outside as one word of a line: of keys, partitions and commands.
 */
#ifndef RATEFS_FS_MOUNT_PLAIN_H
#define RATEFS_FS_MOUNT_PLAIN_H

#include "core/fleet/record.h"

#include <stdint.h>
#include <stdio.h>

enum { PARTITION_TEXT = 12 };

struct limiter;

/* Writes @name, with `?` for blanks and control characters; `-` if it is empty. */
void plain_word(FILE *out, const char *name);

/* Prints the name of the partition with @number (partition.h): `3`, or `r3` of the reserve. */
void plain_partition(uint32_t number, char name[PARTITION_TEXT]);

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
