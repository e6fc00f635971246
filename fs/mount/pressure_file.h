/*
 * pressure_file - the file `pressure` of a limiter: its text, and thresholds to be polled for, one
 * for each open file, as those of PSI.
 *
 * A threshold outlives the server: the record of the open file has it in `granted` (there is one),
 * `tokens` (its time of waiting) and `within_ns` (its window), both in nanoseconds. Waits of
 * its window, and an event that was not taken, do not outlive it.
 */
#ifndef RATEFS_FS_MOUNT_PRESSURE_FILE_H
#define RATEFS_FS_MOUNT_PRESSURE_FILE_H

#include "fs/mount/handle.h"

extern const struct node_kind PRESSURE_FILE;

/* Writes the pressure on the limiter, a line as PSI has it: `show` of its row. */
void pressure_file_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid);

#endif
