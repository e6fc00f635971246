/*
 * change - limiters are made, removed, renamed, set and given other owners.
 *
 * Changes stand in line, those of each user in a lane of its own (lanes.h). One at a time is
 * checked against things as they are, and handed to the source; it is applied when the source has
 * stored it, and engine_changed() returns it. All memory is got
 * before the source is asked, so a change that is stored can be applied.
 */
#ifndef RATEFS_CORE_CHANGE_H
#define RATEFS_CORE_CHANGE_H

#include "core/limiter/engine.h"

enum change_kind { CHANGE_MAKE, CHANGE_REMOVE, CHANGE_RENAME, CHANGE_SETTINGS, CHANGE_OWNER };

/* SETTING_COUNT and above are not settings: the whole `config`, and what is overridden of a key. */
enum { CHANGE_CONFIG = SETTING_COUNT, CHANGE_KEY_RATE, CHANGE_KEY_BURST };

/* Of @altered: some overrides differ. */
#define ALTERED_OVERRIDES (UINT32_C(1) << 31)
_Static_assert(SETTING_COUNT < 31, "a bit for each setting, and that one");

/* Parts of an owner that a change may leave alone. */
enum { OWNER_UID = 1, OWNER_GID = 2, OWNER_ACCESS = 4 };

/*
 * Owner and permissions of a limiter: they say which users may use it and which may tune it. A
 * limiter that is made in one with ACCESS_SETGID gets its group and that bit, whatever the change
 * says.
 */
struct owner {
	uint32_t uid;
	uint32_t gid;
	uint16_t access; /* of ACCESS_BITS */
};

/*
 * A change of a limiter. The memory is the caller's until engine_changed() gives it back; the
 * caller fills in the first part.
 */
struct change {
	enum change_kind kind;
	uint32_t asker;		       /* the user that asks for it */
	struct limiter *limiter;       /* the one to be changed; the parent of one to be made */
	char name[NAME_BYTES_MAX + 1]; /* MAKE and RENAME: the new name; SETTINGS: the key's */
	unsigned int setting;	       /* SETTINGS: enum setting_id, or CHANGE_CONFIG ... */
	const char *text;	       /* SETTINGS, and MAKE (may be NULL): borrowed */
	uint32_t denied;	       /* SETTINGS: bits of those that it may not alter (EPERM) */
	unsigned int unchanged;	       /* OWNER: OWNER_UID | ...: these stay as they are */
	struct owner owner;	       /* MAKE and OWNER: as it shall be */

	/* Filled in by the engine, read by the source. */
	struct settings settings; /* as they shall be; until it is done with a hold */
	char path[PATH_TEXT];	  /* of the limiter (or parent), before the change */
	uint32_t altered;	  /* bit for each setting that differs; ALTERED_OVERRIDES */
	uint32_t overrides;	  /* once it is done: how many keys have some */
	int outcome;		  /* likewise: 0 or -errno */
	char error[ERROR_TEXT];	  /* why it was refused, a sentence */

	/* The engine's own. */
	struct limiter *made;	       /* MAKE: the limiter; given back as a result */
	struct bucket *buckets;	       /* owned */
	struct learning *learning;     /* owned */
	const struct settings *pooled; /* owned: a reference of the pool's */
	uint32_t *changed_s;	       /* owned: for a limiter that has none yet */
	char *renamed;		       /* owned */
	bool waits;		       /* in engine.line */
	bool started;		       /* the source has it */
	struct list_link line;	       /* in engine.line, and once it is done in engine.changed */
};

/* The level of one bucket of a limiter that is restored. */
struct level {
	int64_t tokens;
	uint64_t part; /* numerator over the denominator of the limit's rate */
};

/* Begins a change; engine_changed() returns it when it is done or refused. */
void change_begin(struct engine *engine, struct change *change, uint64_t now_ns);

/* Takes back @change if it has not started. False: it is under way. */
bool change_withdraw(struct engine *engine, struct change *change);

/*
 * Takes the source's answer, 0 or -errno, to @change, which it was given last. An answer that comes
 * late is given after an engine_run().
 */
void change_stored(struct engine *engine, struct change *change, int err);

/*
 * Has @change checked again, and stored again unless it is refused now: its source found that
 * things have changed since it was prepared, and has done nothing.
 */
void change_restart(struct engine *engine, struct change *change);

/*
 * Apply a change that another host has made. Each takes effect at once, whatever changes are under
 * way here; 0, -ENOMEM, or the errno with which the change would be refused here. @altered gets a
 * bit for each setting that differs, and ALTERED_OVERRIDES.
 */
int change_apply_settings(struct engine *engine, struct limiter *limiter,
			  const struct settings *settings, uint32_t *altered);
void change_apply_owner(struct engine *engine, struct limiter *limiter, const struct owner *owner);
int change_apply_name(struct engine *engine, struct limiter *limiter, const char *name);
void change_apply_removal(struct engine *engine, struct limiter *limiter);

/*
 * Makes a limiter that the source had at the start. Its buckets hold @levels (@level_count of them,
 * as far as they make sense), and are empty without. 0, -EEXIST, -EINVAL, -ENOMEM, -ENOSPC.
 */
int change_restore(struct engine *engine, struct limiter *parent, const char *name,
		   const struct settings *settings, const struct owner *owner,
		   const struct level *levels, uint32_t level_count, struct limiter **restored);

#endif
