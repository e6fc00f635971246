/* key_folder - the folder of a leased key, as a list of its names has it: its tiles and claims. */
#ifndef RATEFS_CORE_KEY_FOLDER_H
#define RATEFS_CORE_KEY_FOLDER_H

#include "core/fleet/epoch.h"
#include "core/fleet/key_portion.h"
#include "core/fleet/znode.h"

struct key_folder {
	struct tiles tiles;   /* owned; those of hosts that are known to be gone are `gone` */
	struct claim *others; /* owned: as key_facts.others, with room for one more */
	uint32_t other_count;
	bool claims;		/* some of them have claims */
	char claim[ZNODE_TEXT]; /* the name of this host's, "" */
	uint32_t claimed;
};

/* Reads @names, as host @hid sees them. False: there is no memory. Frees what it owns. */
bool key_folder_read(struct key_folder *folder, char *const *names, uint32_t name_count,
		     const char *hid, const struct epochs *epochs);
void key_folder_free(struct key_folder *folder);

/* Returns how many leaves host @hid has; how many none that lives has. */
uint32_t key_folder_own(const struct key_folder *folder, const char *hid);
uint32_t key_folder_unused(const struct key_folder *folder);

/* Tells whether no other host that lives has leaves before the first of host @hid's. */
bool key_folder_is_first(const struct key_folder *folder, const char *hid);

#endif
