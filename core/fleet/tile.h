/*
 * tile - a run of a limiter's leaves, as a node whose name is its state.
 *
 *	A-B+E+L		free and clean: given back by a host that had stopped using it. E is the
 *			epoch of that host's transactions, 0: none is known. L is what is left in
 *			its buckets, or was used of windows of the calendar (rest.h).
 *	A-B.HID		leased by that host
 *
 * A tile of one leaf has A instead of A-B. At every moment a limiter's tiles cover all of its
 * leaves, none twice. A tile changes only in a transaction that deletes nodes by their exact names
 * and creates nodes for the same leaves. So a list of names may be old: the transaction that was
 * planned by it is then refused as a whole.
 */
#ifndef RATEFS_CORE_TILE_H
#define RATEFS_CORE_TILE_H

#include "core/fleet/rest.h"
#include "core/fleet/record.h"

enum {
	TILE_LEAVES_MAX = PARTITIONS_MAX, /* leaves of a limiter */
	TILE_TEXT = 24 + REST_TEXT,	  /* for any name, with the zero at its end */
};

struct tile {
	uint32_t first, last; /* leaves */
	char hid[HID_TEXT];   /* the host that leases it; "": it is clean */
	uint32_t epoch;	      /* of a clean one */
	struct rest rest;     /* likewise */
	bool gone;	      /* the host that leases it is known to be gone; no part of the name */
	bool fixed;	      /* leased by this host, and not to be changed now; likewise */
};

uint32_t tile_size(const struct tile *tile);
bool tile_is_clean(const struct tile *tile);
bool tile_is_of(const struct tile *tile, const char *hid);

/* Prints the name; reads @name, exactly as it would be printed. False: it is none. */
void tile_print(const struct tile *tile, char name[TILE_TEXT]);
bool tile_parse(const char *name, struct tile *tile);

enum { TILES_GONE_MAX = 16 }; /* hosts whose tiles one transaction takes: two operations each */

/* The tiles of a limiter, in the order of their leaves, none of which is in two of them. */
struct tiles {
	struct tile *list; /* owned */
	uint32_t count, room;
	uint32_t leaves; /* of the limiter */
	bool whole;	 /* all leaves are in them */
};

/*
 * Reads a list of @names, in any order, as tiles of @leaves leaves. Names that are none of these
 * are left out, and so is a tile with a leaf of one before it: the list was read while it changed,
 * or a foreign hand made it. False: there is no memory. Frees what the tiles own.
 */
bool tiles_read(struct tiles *tiles, char *const *names, uint32_t name_count, uint32_t leaves);
bool tiles_copy(struct tiles *tiles, const struct tiles *from);
void tiles_free(struct tiles *tiles);

/* Returns the first leaf that is in no tile; the number of leaves, if there is none. */
uint32_t tiles_hole(const struct tiles *tiles);

/* Returns the place of the tile with @leaf; that of the next one, or the count, if none has it. */
uint32_t tiles_find(const struct tiles *tiles, uint32_t leaf);

/* A host that leases tiles, and how many leaves they have together. */
struct tile_holder {
	const char *hid; /* borrowed from a tile */
	uint32_t leaves;
};

/* Puts each host that leases tiles into @holders, with room for all tiles. Returns how many. */
uint32_t tiles_holders(const struct tiles *tiles, struct tile_holder *holders);

/*
 * Splits the tile that has @leaf and the leaf before it, and its rest, so that a tile begins
 * at @leaf. False: there is no memory.
 */
bool tiles_cut(struct tiles *tiles, uint32_t leaf);

/* Lets the tiles of TILES_GONE_MAX hosts that are gone be, and unmarks those of more. */
void tiles_limit_gone(struct tiles *tiles);

/* Marks all tiles of host @hid; then removes those for which no other one was put. */
void tiles_doubt(struct tiles *tiles, const char *hid);
void tiles_remove_doubtful(struct tiles *tiles, const char *hid);

/* Puts in @tile, in place of all that have one of its leaves. False: there is no memory. */
bool tiles_put(struct tiles *tiles, const struct tile *tile);

/*
 * Tells whether the tile at @at and the one behind it can be one tile: side by side, both clean, or
 * both of one host, neither fixed. Merges them. The older epoch goes on, and the rests add up: as
 * what they are now that @full is all that there is.
 */
bool tiles_can_merge(const struct tiles *tiles, uint32_t at);
void tiles_merge(struct tiles *tiles, uint32_t at, const struct rest *full);

#endif
