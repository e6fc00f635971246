/*
 * key_leases - the keys that this host leases: the rules of keys.md.
 *
 * A key that ran out is opened, and stays so while it is leased. All that is done for it begins
 * with a list of its folder, with a watch, and is then one transaction at a time.
 */
#ifndef RATEFS_CORE_KEY_LEASES_H
#define RATEFS_CORE_KEY_LEASES_H

#include "core/fleet/parts.h"

enum {
	KEY_LEASES_MAX = HANDOVER_KEYS, /* keys that a host leases */
	KEY_SEED_TEXT = 40,		/* the key of the hash of names, with the zero at its end */
};

/* Between two transactions, and between a conflict or another's change and the next look. */
#define KEY_SPACING_NS	(NSEC_PER_SEC / 10)
#define KEY_JITTER_NS	(NSEC_PER_SEC / 20)
#define KEY_CONFLICT_NS (NSEC_PER_SEC / 5)
/* Grants are looked at so often; a key without any for so long is idle. */
#define KEY_PERIOD_NS NSEC_PER_SEC
#define KEY_IDLE_NS   (10 * NSEC_PER_SEC)

struct znode;

bool key_leases_new(struct fleet *fleet);
void key_leases_free(struct fleet *fleet);

/* Makes the key of the hash of names, for a fleet that is made now. */
void key_leases_print_seed(const struct fleet *fleet, char seed[KEY_SEED_TEXT]);

/* Tells whether keys of @holding, which may be NULL, are leased. */
bool key_leases_are_of(const struct fleet *fleet, const struct holding *holding);

/* Notes that the tokens of the open @key did not suffice. */
void key_leases_miss(struct fleet *fleet, struct limiter *key);

/* Tells whether leaves of @key, which is open, may be there soon for the first time. */
bool key_leases_may_come(const struct limiter *key);

/*
 * Rule 3: everything held is usable Q after the new epoch was known. Rule 4 needs nothing here: leaves
 * of a key count while leaves of its limiter are usable, see holding_key_share().
 */
void key_leases_revive(struct fleet *fleet);

/* Looks at what is due; lets leaves be used whose time has come. */
void key_leases_step(struct fleet *fleet);

/* Sends the next transaction for a key. False: there is none. */
bool key_leases_send(struct fleet *fleet);
/* The answer to it, which is known; which is not. */
void key_leases_answered(struct fleet *fleet, const struct request *request);
void key_leases_doubt(struct fleet *fleet);

/* The folder of a key changed. */
void key_leases_changed(struct fleet *fleet, const struct znode *znode);

/* The host leaves: it is to give back all leaves of keys that are usable. */
void key_leases_leave(struct fleet *fleet);

/* @holding is about to go; the session is gone. */
void key_leases_drop(struct fleet *fleet, const struct holding *holding);
void key_leases_forget(struct fleet *fleet);

/* Goes on with those of a predecessor. 0 or -ENOMEM. */
int key_leases_resume(struct fleet *fleet);

/* Returns how many keys this host leases. */
uint32_t key_leases_count(const struct fleet *fleet);

#endif
