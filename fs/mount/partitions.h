/*
 * partitions - the members of a limiter's directory partitions/: partitions with numbers, those of
 * the reserve, and pieces.
 *
 * A piece is a tile (core/fleet/tile.h) as the last survey saw it. Look-ups and listings wait for a
 * survey, so what they find is at most FLEET_SURVEY_FRESH_NS old; as long as the coordinator does
 * not answer it is what was seen last. A file that is open in a piece that is no more gives ENODEV.
 */
#ifndef RATEFS_FS_MOUNT_PARTITIONS_H
#define RATEFS_FS_MOUNT_PARTITIONS_H

#include "fs/mount/node.h"

/* All of these under the lock. */

/* Returns leaves @first to @last of a piece as a number below STATE_PIECES_MAX; gives them back. */
uint32_t partitions_piece(uint32_t first, uint32_t last);
void partitions_leaves(uint32_t piece, uint32_t *first, uint32_t *last);

/* Tells whether @row is that of a piece, or of a file in one. */
bool partitions_is_of_piece(const struct node_row *row);

/*
 * Tells whether @limiter has the partition or piece @partition, as in struct node, of which a file
 * or directory is of @row. It has 0, which is neither.
 */
bool partitions_has(const struct node_row *row, const struct limiter *limiter, uint32_t partition);

#endif
