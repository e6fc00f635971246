/*
 * znode - THE TABLE of the coordinator's nodes, as paths and as names; see NODES in fleet.h.
 *
 * Every path of a fleet is printed here, and every path that comes back is parsed here.
 */
#ifndef RATEFS_CORE_ZNODE_H
#define RATEFS_CORE_ZNODE_H

#include "core/fleet/record.h"
#include "core/fleet/share.h"

enum { ZNODE_TEXT = 448 }; /* for any path, with the zero at its end */

enum znode_kind {
	ZNODE_LAYOUT,	   /* the layout's version */
	ZNODE_GLOBALS,	   /* the fleet's constants, the last changes */
	ZNODE_RECORDS,	   /* folder of the limiters' records */
	ZNODE_RECORD,	   /* ... a limiter's */
	ZNODE_HOSTS,	   /* folder of the hosts */
	ZNODE_HOST,	   /* ... a host; @name is its HID */
	ZNODE_CLAIMS_OF,   /* folder of the limiters' claims */
	ZNODE_CLAIMS,	   /* ... folder of a limiter's claims */
	ZNODE_CLAIM,	   /* ... a claim; @name as znode_claim_print() has it, or its begin */
	ZNODE_TILES_OF,	   /* folder of the limiters' tiles */
	ZNODE_TILES,	   /* ... folder of a limiter's tiles */
	ZNODE_TILE,	   /* ... a tile; @name as tile_print() has it */
	ZNODE_RESERVES_OF, /* the same of the reserve: a leaf is the part of one host */
	ZNODE_RESERVES,
	ZNODE_RESERVE,
	ZNODE_ENDS_OF, /* folder of the ends of hosts */
	ZNODE_END,     /* ... the right of a host is over; @name as znode_end_print() has it */
	ZNODE_AGREED_RATES_OF, /* folder of what limiters have learnt */
	ZNODE_AGREED_RATE,     /* ... a limiter's: the agreed rate */
	ZNODE_KEYS_OF,	       /* folder of the limiters' leased keys; its data: see key_leases.h */
	ZNODE_KEYS,	       /* ... folder of a limiter's leased keys */
	ZNODE_KEY,	       /* ... folder of a key's tiles and claims; @name: its hash */
	ZNODE_KIND_COUNT
};

/* A path, parsed. */
struct znode {
	enum znode_kind kind;
	uint64_t id;	  /* LID, of a limiter's nodes */
	uint64_t cut;	  /* of its tiles: the generation since which leaves are numbered so */
	const char *name; /* of all that have a name below their folder; lies in the path */
};

/*
 * Prints the path of a node of @kind: that has no name below its folder; that has name @name. @id:
 * LID, 0 where the kind has none.
 */
void znode_path(enum znode_kind kind, uint64_t id, char path[ZNODE_TEXT]);
void znode_path_named(enum znode_kind kind, uint64_t id, const char *name, char path[ZNODE_TEXT]);

/*
 * The same of tiles, which lie in a folder of their own for each @cut: of it with @name NULL, else
 * of the tile of that name; of the reserve's with @reserve.
 */
void znode_path_tile(uint64_t id, uint64_t cut, bool reserve, const char *name,
		     char path[ZNODE_TEXT]);

/*
 * Of ZNODE_KEY of the key whose name has hash @hash, or with @name of a tile or a claim in it.
 * Reads @name, that of a ZNODE_KEY. False: it is none.
 */
void znode_path_key(uint64_t id, uint64_t cut, uint64_t hash, const char *name,
		    char path[ZNODE_TEXT]);
bool znode_key_parse(const char *name, uint64_t *hash);

/* Reads a child of ZNODE_TILES_OF or ZNODE_RESERVES_OF: LID-CUT. False: it is none. */
bool znode_cut_parse(const char *name, uint64_t *id, uint64_t *cut);

/* Reads @path, which an event or an answer names. False: it is none of the table's. */
bool znode_parse(const char *path, struct znode *znode);

/*
 * Bytes of a path of @kind at most, below that of the fleet; @id: LID, where the kind has one. Of a
 * tile: of one that is leased. Of a claim: without parts.
 */
uint32_t znode_bytes(enum znode_kind kind, uint64_t id);

/* Reads a child of ZNODE_RECORDS: LID. False: it is none. */
bool znode_id_parse(const char *name, uint64_t *id);

/* Makes a HID of 128 random bits; tells whether @name has the form of one. */
void znode_hid_print(uint64_t high, uint64_t low, char hid[HID_TEXT]);
bool znode_is_hid(const char *name);

/*
 * Prints the name HID+E of the end of a host: its right is over since epoch @epoch at the latest.
 * Reads a child of ZNODE_ENDS_OF back. False: it is none.
 */
void znode_end_print(const char *hid, uint32_t epoch, char name[ZNODE_TEXT]);
bool znode_end_parse(const char *name, char hid[HID_TEXT], uint32_t *epoch);

/*
 * Prints the begin of a claim's name, HID-N-W[+PART...]-; the coordinator adds SEQ, its place in
 * line. A part is LID.N, what that child of the limiter wants (0: its own queue), in the order of
 * the ids; then pP.N.W is what children of priority P want that have no such part, the highest
 * first, with the sum of their weights. @parts are so many, in that order.
 */
void znode_claim_print(const char *hid, uint32_t wanted, uint32_t weight, const struct part *parts,
		       uint32_t part_count, char name[ZNODE_TEXT]);

/*
 * Reads a child of ZNODE_CLAIMS, HID-N-W[+PART...]-SEQ; @claim's name is @name. Its parts are put
 * into @parts, room for PARTS_MAX, where only the rest has a weight and a priority yet; with NULL
 * it may have none. False: it is no claim.
 */
bool znode_claim_parse(const char *name, struct claim *claim, struct part *parts);

/* Returns the bytes of the parts in @claim, a claim's name or the begin of it. */
uint32_t znode_claim_parts_bytes(const char *claim);

/* Tells whether @claim, a name that was parsed, is that of host @hid. */
bool znode_claim_is_of(const char *claim, const char *hid);

#endif
