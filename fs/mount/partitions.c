/* partitions - the members of partitions/, see partitions.h. */
#include "fs/mount/partitions.h"
#include "fs/mount/plain.h"
#include "fs/mount/until.h"

#include "core/fleet/survey.h"
#include "core/limiter/partition.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_TEXT = 16 };

static_assert(RESERVE_HOSTS_MAX <= PARTITIONS_MAX, "numbers in names have one bound");

uint32_t partitions_piece(uint32_t first, uint32_t last)
{
	return first * LEAVES_MOST + last;
}

void partitions_leaves(uint32_t piece, uint32_t *first, uint32_t *last)
{
	*first = piece / LEAVES_MOST;
	*last = piece % LEAVES_MOST;
}

bool partitions_is_of_piece(const struct node_row *row)
{
	return row == &NODES[NODE_PIECE] || row->place == NODE_PIECE;
}

/* Tells whether @piece is a tile of @limiter as it was seen last. */
static bool is_piece(const struct limiter *limiter, uint32_t piece)
{
	const struct seen_tile *tile;
	uint32_t first, last;

	if (!partition_is_in_pieces(limiter))
		return false;
	partitions_leaves(piece, &first, &last);
	tile = survey_tile(limiter->holding, first, false);
	return tile && tile->first == first && tile->last == last;
}

bool partitions_has(const struct node_row *row, const struct limiter *limiter, uint32_t partition)
{
	if (!partition)
		return true;
	if (partitions_is_of_piece(row))
		return is_piece(limiter, partition - 1);
	return partition_is_there(limiter, partition - 1);
}

static void print_piece(const struct seen_tile *tile, char name[PIECE_TEXT])
{
	if (tile->first == tile->last)
		snprintf(name, PIECE_TEXT, "%u", (unsigned int)tile->first);
	else
		snprintf(name, PIECE_TEXT, "%u-%u", (unsigned int)tile->first,
			 (unsigned int)tile->last);
}

static int find_piece(const struct node *parent, const char *name, struct node *node)
{
	const struct seen_tile *tile;
	char canonical[PIECE_TEXT];

	tile = survey_tile(parent->limiter->holding, (uint32_t)strtoul(name, NULL, 10), false);
	if (!tile)
		return -ENOENT;
	print_piece(tile, canonical);
	if (strcmp(canonical, name) != 0)
		return -ENOENT;
	*node = node_of(&NODES[NODE_PIECE], parent->limiter,
			partitions_piece(tile->first, tile->last) + 1);
	return 0;
}

static int find_partition(struct daemon *daemon, const struct node *parent,
			  const struct node_row *row, const char *name, uint32_t uid,
			  struct node *node)
{
	bool reserved = *name == 'r';
	uint64_t index;
	char canonical[PARTITION_TEXT];

	(void)daemon;
	(void)row;
	(void)uid;
	if (!reserved && partition_is_in_pieces(parent->limiter))
		return find_piece(parent, name, node);
	if (count_parse(name + reserved, &index) || index >= PARTITIONS_MAX)
		return -ENOENT;
	index += reserved ? PARTITIONS_MAX : 0;
	plain_partition((uint32_t)index, canonical);
	if (strcmp(canonical, name) != 0 || !partition_is_there(parent->limiter, (uint32_t)index))
		return -ENOENT;
	*node = node_of(&NODES[NODE_PARTITION], parent->limiter, (uint32_t)index + 1);
	return 0;
}

/*
 * Lists the pieces from leaf @first on. They may be others in the next part of a long listing, but
 * no leaf is shown twice. False: there is no more room.
 */
static bool list_pieces(struct daemon *daemon, const struct node *node, uint64_t first,
			struct node_listing *listing)
{
	const struct seen_tiles *tiles = survey_tiles(node->limiter->holding, false);
	char name[PIECE_TEXT];

	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct seen_tile *tile = &tiles->list[i];
		struct node member = node_of(&NODES[NODE_PIECE], node->limiter,
					     partitions_piece(tile->first, tile->last) + 1);

		print_piece(tile, name);
		if (tile->first >= first &&
		    !node_add_member(listing, daemon, name, &member, tile->last))
			return false;
	}
	return true;
}

/* Positions are numbers of partitions or of leaves. */
static void list_partitions(struct daemon *daemon, const struct node *node, uint64_t first,
			    struct node_listing *listing)
{
	uint32_t shares, count = partition_count(node->limiter, &shares);
	bool pieces = partition_is_in_pieces(node->limiter);
	char name[PARTITION_TEXT];

	if (pieces && !list_pieces(daemon, node, first, listing))
		return;
	for (uint32_t i = pieces ? shares : 0; i < count; i++) {
		uint32_t number = partition_at(node->limiter, i);
		struct node member = node_of(&NODES[NODE_PARTITION], node->limiter, number + 1);

		if (number < first)
			continue;
		plain_partition(number, name);
		if (!node_add_member(listing, daemon, name, &member, number))
			return;
	}
}

/* Pieces come and go: the coordinator knows them. */
static uint64_t until_listed(struct daemon *daemon, const struct limiter *limiter, const char *name,
			     uint64_t asked_ns)
{
	if (!partition_is_in_pieces(limiter) || (name && (*name < '0' || *name > '9')))
		return 0;
	return until_seen(daemon, limiter->holding, asked_ns);
}

const struct node_kind PARTITIONS_DIRECTORY = {
	.find = find_partition, .list = list_partitions, .until = until_listed};
