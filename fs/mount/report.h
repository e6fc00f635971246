/*
 * report - what is written to `feedback`: outcomes, a line for each.
 *
 * A program that buffers its output writes when its buffer is full, which is within a line, and the
 * kernel makes parts of a long write. So once 512 bytes or more were written at once through an
 * open file, its lines go on from one write to the next until a newline ends them, or the close.
 */
#ifndef RATEFS_FS_MOUNT_REPORT_H
#define RATEFS_FS_MOUNT_REPORT_H

#include "fs/mount/node.h"

extern const struct node_kind FEEDBACK_FILE;

#endif
