/* key_folder - the folder of a leased key, see key_folder.h. */
#include "core/fleet/key_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void key_folder_free(struct key_folder *folder)
{
	tiles_free(&folder->tiles);
	free(folder->others);
	*folder = (struct key_folder){0};
}

/* Puts what host @hid wants into the others, once for each. */
static void note_other(struct key_folder *folder, const char *hid, uint32_t wanted)
{
	for (uint32_t i = 0; i < folder->other_count; i++) {
		if (!memcmp(folder->others[i].name, hid, HID_TEXT - 1)) {
			folder->others[i].wanted = wanted;
			return;
		}
	}
	folder->others[folder->other_count] = (struct claim){
		.wanted = wanted,
		.weight = 1,
		.sequence = folder->other_count,
		.name = hid,
	};
	folder->other_count++;
}

static void note_claim(struct key_folder *folder, const char *name, const char *hid,
		       const struct epochs *epochs)
{
	char claimant[HID_TEXT];
	struct claim claim;

	if (!znode_claim_parse(name, &claim, NULL) || claim.wanted > KEY_LEAVES)
		return;
	snprintf(claimant, sizeof(claimant), "%s", name);
	if (!strcmp(claimant, hid)) {
		snprintf(folder->claim, sizeof(folder->claim), "%s", name);
		folder->claimed = claim.wanted;
	} else if (!epoch_is_gone(epochs, claimant)) {
		note_other(folder, name, claim.wanted);
		folder->claims = true;
	}
}

static bool note_holders(struct key_folder *folder, const char *hid, const struct epochs *epochs)
{
	struct tile_holder *holders = calloc(folder->tiles.count + 1, sizeof(*holders));
	uint32_t count;

	if (!holders)
		return false;
	count = tiles_holders(&folder->tiles, holders);
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(holders[i].hid, hid) != 0 && !epoch_is_gone(epochs, holders[i].hid))
			note_other(folder, holders[i].hid, holders[i].leaves);
	}
	free(holders);
	return true;
}

bool key_folder_read(struct key_folder *folder, char *const *names, uint32_t name_count,
		     const char *hid, const struct epochs *epochs)
{
	*folder = (struct key_folder){0};
	if (!tiles_read(&folder->tiles, names, name_count, KEY_LEAVES))
		return false;
	for (uint32_t i = 0; i < folder->tiles.count; i++) {
		struct tile *tile = &folder->tiles.list[i];

		tile->gone = strcmp(tile->hid, hid) != 0 && epoch_is_gone(epochs, tile->hid);
	}
	tiles_limit_gone(&folder->tiles);
	folder->others = calloc(name_count + 1, sizeof(*folder->others));
	if (!folder->others || !note_holders(folder, hid, epochs)) {
		key_folder_free(folder);
		return false;
	}
	for (uint32_t i = 0; i < name_count; i++)
		note_claim(folder, names[i], hid, epochs);
	/* The names are the list's, and go with it. */
	for (uint32_t i = 0; i < folder->other_count; i++)
		folder->others[i].name = NULL;
	return true;
}

uint32_t key_folder_own(const struct key_folder *folder, const char *hid)
{
	uint32_t leaves = 0;

	for (uint32_t i = 0; i < folder->tiles.count; i++) {
		if (tile_is_of(&folder->tiles.list[i], hid))
			leaves += tile_size(&folder->tiles.list[i]);
	}
	return leaves;
}

uint32_t key_folder_unused(const struct key_folder *folder)
{
	uint32_t leaves = 0;

	for (uint32_t i = 0; i < folder->tiles.count; i++) {
		const struct tile *tile = &folder->tiles.list[i];

		if (tile_is_clean(tile) || tile->gone)
			leaves += tile_size(tile);
	}
	return leaves;
}

bool key_folder_is_first(const struct key_folder *folder, const char *hid)
{
	for (uint32_t i = 0; i < folder->tiles.count; i++) {
		const struct tile *tile = &folder->tiles.list[i];

		if (!tile_is_clean(tile) && !tile->gone)
			return tile_is_of(tile, hid);
	}
	return true;
}
