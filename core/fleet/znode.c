/* znode - the coordinator's nodes, as paths and as names, see znode.h. */
#include "core/fleet/znode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A path is its folder's, and then at most a limiter's id and one name more. */
static const struct {
	const char *folder;
	enum { OF_FLEET, OF_LIMITER, OF_CUT } of;
	enum { NAME_NONE, NAME_HID, NAME_CLAIM, NAME_TILE, NAME_END, NAME_KEY } name;
} ZNODES[ZNODE_KIND_COUNT] = {
	[ZNODE_LAYOUT] = {"/v", OF_FLEET, NAME_NONE},
	[ZNODE_GLOBALS] = {"/g", OF_FLEET, NAME_NONE},
	[ZNODE_RECORDS] = {"/c", OF_FLEET, NAME_NONE},
	[ZNODE_RECORD] = {"/c", OF_LIMITER, NAME_NONE},
	[ZNODE_HOSTS] = {"/h", OF_FLEET, NAME_NONE},
	[ZNODE_HOST] = {"/h", OF_FLEET, NAME_HID},
	[ZNODE_CLAIMS_OF] = {"/w", OF_FLEET, NAME_NONE},
	[ZNODE_CLAIMS] = {"/w", OF_LIMITER, NAME_NONE},
	[ZNODE_CLAIM] = {"/w", OF_LIMITER, NAME_CLAIM},
	[ZNODE_TILES_OF] = {"/t", OF_FLEET, NAME_NONE},
	[ZNODE_TILES] = {"/t", OF_CUT, NAME_NONE},
	[ZNODE_TILE] = {"/t", OF_CUT, NAME_TILE},
	[ZNODE_RESERVES_OF] = {"/r", OF_FLEET, NAME_NONE},
	[ZNODE_RESERVES] = {"/r", OF_CUT, NAME_NONE},
	[ZNODE_RESERVE] = {"/r", OF_CUT, NAME_TILE},
	[ZNODE_ENDS_OF] = {"/d", OF_FLEET, NAME_NONE},
	[ZNODE_END] = {"/d", OF_FLEET, NAME_END},
	[ZNODE_AGREED_RATES_OF] = {"/a", OF_FLEET, NAME_NONE},
	[ZNODE_AGREED_RATE] = {"/a", OF_LIMITER, NAME_NONE},
	[ZNODE_KEYS_OF] = {"/k", OF_FLEET, NAME_NONE},
	[ZNODE_KEYS] = {"/k", OF_CUT, NAME_NONE},
	[ZNODE_KEY] = {"/k", OF_CUT, NAME_KEY},
};

enum {
	FOLDER_LENGTH = 2,
	ID_DIGITS_MAX = 18,
	CUT_DIGITS_MAX = 19,
	NAME_MAX_BYTES = 400, /* of a name that was listed */
	/* Bytes of names at most, with the slash before them. */
	HID_BYTES = 1 + HID_TEXT - 1,
	CLAIM_BYTES = HID_BYTES + 5 + 5 + 11,	/* -N, -W and -SEQ */
	TILE_BYTES = 1 + 4 + 1 + 4 + HID_BYTES, /* A-B.HID */
	END_BYTES = HID_BYTES + 1 + 10,		/* +E */
	KEY_BYTES = 1 + 16,
	CLAIM_WEIGHT_MAX = 1000,
	PART_BYTES = 1 + ID_DIGITS_MAX + 5, /* +LID.N */
	REST_BYTES = 1 + 2 + 5 + 1 + 6,	    /* +pP.N.W */
	PARTS_BYTES = PARTS_OF_CHILDREN * PART_BYTES + PRIORITIES * REST_BYTES,
};

_Static_assert(CLAIM_BYTES + PARTS_BYTES <= NAME_MAX_BYTES, "a claim is read whole");
_Static_assert(NAME_MAX_BYTES + 24 < ZNODE_TEXT, "a path has room for /w, LID and any name");

static const uint64_t SEQUENCE_MAX = UINT64_C(9999999999999999);
static const char HID_LETTERS[] = "abcdefghijklmnopqrstuvwxyz234567";

void znode_path(enum znode_kind kind, uint64_t id, char path[ZNODE_TEXT])
{
	if (ZNODES[kind].of == OF_LIMITER)
		snprintf(path, ZNODE_TEXT, "%s/%" PRIu64, ZNODES[kind].folder, id);
	else
		snprintf(path, ZNODE_TEXT, "%s", ZNODES[kind].folder);
}

void znode_path_named(enum znode_kind kind, uint64_t id, const char *name, char path[ZNODE_TEXT])
{
	size_t used;

	znode_path(kind, id, path);
	used = strlen(path);
	snprintf(path + used, ZNODE_TEXT - used, "/%.*s", NAME_MAX_BYTES, name);
}

/* Reads LID-CUT, and moves *@text behind it. */
static bool scan_cut(const char **text, uint64_t *id, uint64_t *cut)
{
	if (!record_parse_digits(text, UINT64_MAX, id) || **text != '-')
		return false;
	++*text;
	return record_parse_digits(text, INT64_MAX, cut);
}

/* Reads the rest of @path behind the folder: kinds are told apart by how much of it there is. */
static bool parse_rest(const char *rest, struct znode *znode)
{
	if (ZNODES[znode->kind].of != OF_FLEET && *rest++ != '/')
		return false;
	if (ZNODES[znode->kind].of == OF_LIMITER &&
	    !record_parse_digits(&rest, UINT64_MAX, &znode->id))
		return false;
	if (ZNODES[znode->kind].of == OF_CUT && !scan_cut(&rest, &znode->id, &znode->cut))
		return false;
	if (ZNODES[znode->kind].name == NAME_NONE)
		return !*rest;
	if (*rest++ != '/' || !*rest || strchr(rest, '/'))
		return false;
	znode->name = rest;
	return true;
}

void znode_path_tile(uint64_t id, uint64_t cut, bool reserve, const char *name,
		     char path[ZNODE_TEXT])
{
	snprintf(path, ZNODE_TEXT, "%s/%" PRIu64 "-%" PRIu64 "%s%s",
		 ZNODES[reserve ? ZNODE_RESERVE : ZNODE_TILE].folder, id, cut, name ? "/" : "",
		 name ? name : "");
}

void znode_path_key(uint64_t id, uint64_t cut, uint64_t hash, const char *name,
		    char path[ZNODE_TEXT])
{
	snprintf(path, ZNODE_TEXT, "%s/%" PRIu64 "-%" PRIu64 "/%016" PRIx64 "%s%s",
		 ZNODES[ZNODE_KEY].folder, id, cut, hash, name ? "/" : "", name ? name : "");
}

bool znode_key_parse(const char *name, uint64_t *hash)
{
	if (strspn(name, "0123456789abcdef") != KEY_BYTES - 1 || name[KEY_BYTES - 1])
		return false;
	*hash = strtoull(name, NULL, 16);
	return true;
}

bool znode_cut_parse(const char *name, uint64_t *id, uint64_t *cut)
{
	return scan_cut(&name, id, cut) && !*name;
}

bool znode_parse(const char *path, struct znode *znode)
{
	for (int kind = 0; kind < ZNODE_KIND_COUNT; kind++) {
		*znode = (struct znode){.kind = (enum znode_kind)kind};
		if (!strncmp(path, ZNODES[kind].folder, FOLDER_LENGTH) &&
		    parse_rest(path + FOLDER_LENGTH, znode))
			return true;
	}
	return false;
}

static uint32_t digits_of(uint64_t id)
{
	uint32_t digits = 1;

	for (; id >= 10; id /= 10)
		digits++;
	return digits;
}

uint32_t znode_bytes(enum znode_kind kind, uint64_t id)
{
	static const uint32_t names[] = {
		[NAME_NONE] = 0,	  [NAME_HID] = HID_BYTES, [NAME_CLAIM] = CLAIM_BYTES,
		[NAME_TILE] = TILE_BYTES, [NAME_END] = END_BYTES, [NAME_KEY] = KEY_BYTES};
	uint32_t of = ZNODES[kind].of == OF_FLEET ? 0 : 1 + digits_of(id);

	if (ZNODES[kind].of == OF_CUT)
		of += 1 + CUT_DIGITS_MAX;
	return FOLDER_LENGTH + of + names[ZNODES[kind].name];
}

bool znode_id_parse(const char *name, uint64_t *id)
{
	return strlen(name) <= ID_DIGITS_MAX && record_parse_digits(&name, UINT64_MAX, id) &&
	       !*name;
}

void znode_hid_print(uint64_t high, uint64_t low, char hid[HID_TEXT])
{
	for (int i = 0; i < HID_TEXT - 1; i++) {
		uint64_t *bits = i < 6 ? &high : &low;

		hid[i] = HID_LETTERS[*bits & 31];
		*bits >>= 5;
	}
	hid[HID_TEXT - 1] = '\0';
}

bool znode_is_hid(const char *name)
{
	return strlen(name) == HID_TEXT - 1 && strspn(name, HID_LETTERS) == HID_TEXT - 1;
}

void znode_end_print(const char *hid, uint32_t epoch, char name[ZNODE_TEXT])
{
	snprintf(name, ZNODE_TEXT, "%s+%" PRIu32, hid, epoch);
}

bool znode_end_parse(const char *name, char hid[HID_TEXT], uint32_t *epoch)
{
	uint64_t number;

	if (strlen(name) <= HID_TEXT || name[HID_TEXT - 1] != '+')
		return false;
	memcpy(hid, name, HID_TEXT - 1);
	hid[HID_TEXT - 1] = '\0';
	name += HID_TEXT;
	if (!znode_is_hid(hid) || (*name == '0' && name[1]) ||
	    !record_parse_digits(&name, UINT32_MAX, &number) || *name)
		return false;
	*epoch = (uint32_t)number;
	return true;
}

static int print_part(const struct part *part, char *text, size_t size)
{
	uint32_t weight = part->weight < REST_WEIGHT_MAX ? part->weight : REST_WEIGHT_MAX;

	if (part->child != PART_REST)
		return snprintf(text, size, "+%" PRIu64 ".%" PRIu32, part->child, part->wanted);
	return snprintf(text, size, "+p%" PRIu32 ".%" PRIu32 ".%" PRIu32, part->priority,
			part->wanted, weight);
}

void znode_claim_print(const char *hid, uint32_t wanted, uint32_t weight, const struct part *parts,
		       uint32_t part_count, char name[ZNODE_TEXT])
{
	int used = snprintf(name, ZNODE_TEXT, "%s-%" PRIu32 "-%" PRIu32, hid, wanted, weight);

	for (uint32_t i = 0; i < part_count; i++)
		used += print_part(&parts[i], name + used, ZNODE_TEXT - (size_t)used);
	snprintf(name + used, ZNODE_TEXT - (size_t)used, "-");
}

/* Reads `.` and a number from 1 to @most behind it, and moves *@text behind both. */
static bool scan_amount(const char **text, uint64_t most, uint32_t *amount)
{
	uint64_t value;

	if (**text != '.')
		return false;
	++*text;
	if (!record_parse_digits(text, most, &value) || !value)
		return false;
	*amount = (uint32_t)value;
	return true;
}

/* Reads a part behind its plus, and moves *@text behind it. False: it is none. */
static bool scan_part(const char **text, struct part *part)
{
	uint64_t priority;

	*part = (struct part){.weight = SIBLING_WEIGHT_DEFAULT};
	if (**text != 'p')
		return strspn(*text, "0123456789") <= ID_DIGITS_MAX &&
		       record_parse_digits(text, UINT64_MAX, &part->child) &&
		       scan_amount(text, PARTITIONS_MAX, &part->wanted);
	++*text;
	part->child = PART_REST;
	if (!record_parse_digits(text, PRIORITIES - 1, &priority) ||
	    !scan_amount(text, PARTITIONS_MAX, &part->wanted) ||
	    !scan_amount(text, REST_WEIGHT_MAX, &part->weight))
		return false;
	part->priority = (uint32_t)priority;
	return true;
}

/* Tells whether @part may follow @before: so no child, and no class, has two. */
static bool may_follow(const struct part *part, const struct part *before)
{
	if (before->child == PART_REST)
		return part->child == PART_REST && part->priority < before->priority;
	return part->child > before->child;
}

/* Reads all parts of @claim, and moves *@text behind them. False: one is wrong. */
static bool scan_parts(const char **text, struct claim *claim, struct part *parts)
{
	uint32_t children = 0;

	while (**text == '+') {
		struct part *part = &parts[claim->part_count];

		++*text;
		if (claim->part_count == PARTS_MAX || !scan_part(text, part) ||
		    part->wanted > claim->wanted ||
		    (claim->part_count && !may_follow(part, part - 1)))
			return false;
		children += part->child != PART_REST;
		claim->part_count++;
	}
	return children <= PARTS_OF_CHILDREN;
}

bool znode_claim_parse(const char *name, struct claim *claim, struct part *parts)
{
	uint64_t wanted, weight;

	*claim = (struct claim){.name = name, .parts = parts};
	if (strspn(name, HID_LETTERS) != HID_TEXT - 1)
		return false;
	name += HID_TEXT - 1;
	if (*name++ != '-' || !record_parse_digits(&name, PARTITIONS_MAX, &wanted) || !wanted ||
	    *name++ != '-' || !record_parse_digits(&name, CLAIM_WEIGHT_MAX, &weight) || !weight)
		return false;
	claim->wanted = (uint32_t)wanted;
	claim->weight = (uint32_t)weight;
	if (parts && !scan_parts(&name, claim, parts))
		return false;
	return *name++ == '-' && record_parse_digits(&name, SEQUENCE_MAX, &claim->sequence) &&
	       !*name;
}

uint32_t znode_claim_parts_bytes(const char *claim)
{
	const char *parts = strchr(claim, '+'), *end = strrchr(claim, '-');

	return parts ? (uint32_t)(end - parts) : 0;
}

bool znode_claim_is_of(const char *claim, const char *hid)
{
	return !memcmp(claim, hid, HID_TEXT - 1);
}
