/*
 * settings - what a limiter is told to do, and the table of settings.
 *
 * A setting has a name in `config` and, for most, a control file of the same name. A new one is:
 *
 * - its row: a member and an id here, a default and a row of the table in setting_table.c, and a
 *   row of the table of files in fs/mount/table.c if it has one;
 * - its use: settings are read at `limiter->settings`; settings_of_host() and
 *   settings_of_partition() say which part of it a host has, settings_check() what contradicts it;
 * - its documents: fs/ratefs.5 and README.md.
 *
 * The rest follows from the row: `config`, its texts in files, in a fleet and for a successor, the
 * sharing of settings (pool.h), and `ratefs check`, `save` and `apply`.
 */
#ifndef RATEFS_CORE_SETTINGS_H
#define RATEFS_CORE_SETTINGS_H

#include "core/values/adapt_setting.h"
#include "core/values/amounts.h"
#include "core/values/backoff_setting.h"
#include "core/values/concurrency_setting.h"
#include "core/values/limit.h"
#include "core/values/overrides.h"
#include "core/values/quantity.h"
#include "core/values/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	PARTITIONS_MAX = 4096,	  /* partitions.count */
	KEYS_MAX_MOST = 10000000, /* keys_max */
	PARTITIONS_AUTO = 20,	  /* most that partitions.count=auto makes */
	LEAVES_MOST = PARTITIONS_MAX,
	QUOTA_SMALL = 256, /* below it each token of a window of the calendar is a leaf */
	RESERVE_HOSTS_MAX = 4096,
	KEYS_MAX_DEFAULT = 1000000,
	CONFIG_TEXT = 65536, /* longest `config` that is written at once */
	CONFIG_TEXT_MAX = CONFIG_TEXT + OVERRIDES_TEXT_MAX, /* ... and that is read */
	SIBLING_WEIGHT_MAX = 10000,
	SIBLING_WEIGHT_DEFAULT = 100,
	PRIORITIES = 10, /* classes of siblings: `priority` 0 to 9 */
	QUEUE_MAX_MOST = 1000000000,
};

_Static_assert(SETTING_TEXT >= LIMITS_MAX * 2 * QUANTITY_TEXT, "all limits of a rate fit");

enum enforcement {
	ENFORCEMENT_ENFORCE,
	ENFORCEMENT_SHADOW,
	ENFORCEMENT_OPEN,
	ENFORCEMENT_CLOSED,
	ENFORCEMENT_COUNT
};

/* How the hosts of a fleet share each key's rate and burst. */
enum key_share {
	KEY_SHARE_PROPORTIONAL, /* as they share the limiter */
	KEY_SHARE_LEASED,	/* a tenth so; the rest is leased, key by key */
	KEY_SHARE_COUNT
};

/* A leased key's leaves; and all parts of it, each as large as a leaf. */
enum { KEY_LEAVES = 90, KEY_PARTS = 100 };

/* The part of each key's rate and burst that a host has: @parts of @of equal ones. */
struct key_part {
	uint32_t parts, of;
};

static inline bool key_part_equal(const struct key_part *a, const struct key_part *b)
{
	return (u128)a->parts * b->of == (u128)b->parts * a->of;
}

struct settings {
	/* Those without a unit first; at the end, settings_key_units(). */
	struct limit limits[LIMITS_MAX];
	uint32_t limit_count; /* 0 is `max` */
	uint32_t partitions;  /* 0 is auto */
	uint64_t burst;
	uint64_t release_interval_ns;
	uint64_t lease_ns;
	struct rate reserve_rate;
	uint32_t reserve_hosts; /* 0 is none */
	enum enforcement enforcement;
	struct slot_limit slots;
	struct rate key_rate; /* of each key, no unit and no window: see settings_key_units() */
	uint64_t key_burst;
	uint32_t keys_max;
	uint32_t offline; /* OFFLINE_BLOCK, OFFLINE_OPEN, or N: the rate divided by N */
	struct adapt adapt;
	struct backoff backoff;
	enum key_share key_share;

	/* Its place among its siblings, see core/limiter/order.h. */
	uint32_t weight;	  /* 1 to SIBLING_WEIGHT_MAX */
	struct rate min;	  /* 0: none */
	uint32_t priority;	  /* below PRIORITIES */
	uint32_t queue_max;	  /* readers that may wait; UINT32_MAX: any number */
	uint64_t wait_max_ns;	  /* NEVER_NS: any time */
	uint32_t key_concurrency; /* slots of each key at a time; UINT32_MAX: any number */
	uint8_t key_unit_count;	  /* limits of `key_rate` beside that */

	/* Of single keys; NULL: none. settings_parse() and settings_hold() make it with a hold. */
	struct overrides *overrides;
};

/* `offline`, of a host whose right has run out while the coordinator is out of reach. */
enum { OFFLINE_BLOCK = 0, OFFLINE_HOSTS_MAX = 1000000 };
#define OFFLINE_OPEN UINT32_MAX

enum setting_id {
	SETTING_RATE,
	SETTING_BURST,
	SETTING_RELEASE_INTERVAL,
	SETTING_ENFORCEMENT,
	SETTING_PARTITIONS_COUNT,
	SETTING_PARTITIONS_LEASE,
	SETTING_PARTITIONS_RESERVE,
	SETTING_OFFLINE,
	SETTING_ADAPT,
	SETTING_BACKOFF,
	SETTING_CONCURRENCY,
	SETTING_KEY_RATE,
	SETTING_KEY_BURST,
	SETTING_KEYS_MAX,
	SETTING_KEY_SHARE,
	SETTING_WEIGHT,
	SETTING_MIN,
	SETTING_PRIORITY,
	SETTING_QUEUE_MAX,
	SETTING_WAIT_MAX,
	SETTING_KEY_CONCURRENCY,
	SETTING_COUNT
};

extern const struct settings SETTINGS_DEFAULT;

/* setting_table.c: each by itself. */

const char *setting_name(enum setting_id id);

/* Returns the setting that the @length bytes of @name name, or SETTING_COUNT. */
enum setting_id setting_find(const char *name, size_t length);

/*
 * Parses @text (white space at either end is ignored) as setting @id into @settings.
 * 0, -EINVAL or -ERANGE; then nothing changed and @error says why.
 */
int setting_parse(enum setting_id id, const char *text, struct settings *settings,
		  char error[ERROR_TEXT]);

/* The setting's value, without a newline. */
void setting_print(enum setting_id id, const struct settings *settings, char text[SETTING_TEXT]);

/* Whether two settings have the same value of @id. */
bool setting_equal(enum setting_id id, const struct settings *a, const struct settings *b);

/* settings.c: all together. */

/* Whether @a and @b have the same text. Their bytes may differ where that says nothing. */
bool settings_equal(const struct settings *a, const struct settings *b);

/* Checks what concerns several settings at once: 0, or -ERANGE with a reason. */
int settings_check(const struct settings *settings, char error[ERROR_TEXT]);

/* Returns a copy with a hold on the overrides of its own, and gives that back. */
struct settings settings_hold(const struct settings *settings);
void settings_drop(struct settings *settings);

/*
 * Parses `name=value` lines; blank lines and lines that start with # or ; are skipped. Settings
 * that are not given keep their values. All or nothing, and settings_check() at the end. The error
 * names the line. @settings has a hold on its overrides, and settings_drop() has to follow if a
 * line may be of those.
 */
int settings_parse(const char *text, struct settings *settings, char error[ERROR_TEXT]);

/*
 * Every setting as `name=value` lines, each ended by a newline, and then the overrides; returns the
 * length. The room that is enough for them.
 */
size_t settings_print(const struct settings *settings, char *text, size_t size);
size_t settings_room(const struct settings *settings);

/* Whether there is a limit of any kind, on the whole, on each key or on a single one. */
bool settings_limit(const struct settings *settings);

/* Whether a limit is of windows of the calendar. */
bool settings_have_windows(const struct settings *settings);

/* Whether keys have strict windows, all of them or single ones. */
bool settings_have_strict_keys(const struct settings *settings);

/* Whether keys have windows of the calendar, all of them or single ones. */
bool settings_have_key_windows(const struct settings *settings);

/*
 * Returns the limits of `key_rate` that are windows of the calendar or have a unit,
 * settings->key_unit_count of them: those without a unit first.
 */
static inline const struct limit *settings_key_units(const struct settings *settings)
{
	return &settings->limits[LIMITS_MAX - settings->key_unit_count];
}

/*
 * Makes @settings, of a limiter that is limited by nothing else, have the rates and the burst of a
 * key with @override in place of those of all keys.
 */
void settings_override_all(const struct override *override, struct settings *settings);

/* Returns how many limits have no unit: they are the first ones. */
uint32_t settings_plain_count(const struct settings *settings);

/* Whether there is a limit of @unit; not for "". */
bool settings_have_unit(const struct settings *settings, const char unit[UNIT_TEXT]);

/* The burst of limit @i: its own, or the limiter's; of windows, the tokens of each. */
uint64_t settings_burst(const struct settings *settings, uint32_t i);

/* Returns the number of partitions: the one that is set, or the one that `auto` comes to. */
uint32_t settings_partition_count(const struct settings *settings);

/*
 * Returns the number of leaves that capacity is cut into where hosts share it: as many as there are
 * partitions with numbers, as slots or tokens in a strict window if these are few, as tokens in a
 * window of the calendar if these are fewer than QUOTA_SMALL, or LEAVES_MOST.
 * The fewest that are worth having: pieces of so many bring a token in a `lease`, and as many of
 * them fit as there are tokens; so each lacks less than a leaf of a token. Of a limiter that limits
 * its keys alone each leaf is worth having: it brings something to all of them. The slots of leaves
 * @first to @last; the leaf with slot @number, which is below the number of slots: slots are
 * numbered in the order of the leaves.
 */
uint32_t settings_leaf_count(const struct settings *settings);
uint32_t settings_least_leaves(const struct settings *settings);
uint32_t settings_slots_of_leaves(const struct settings *settings, uint32_t first, uint32_t last);
uint32_t settings_leaf_of_slot(const struct settings *settings, uint32_t number);

/*
 * Returns the slots of partition @index (below the count), of settings with SLOTS_COUNT. Over all
 * partitions they are the count of slots.
 */
uint32_t settings_slots_of_partition(const struct settings *settings, uint32_t index);

/*
 * Computes the @share of a host that has @leaves of the leaves of @settings, and if @reserve one
 * part of the reserve: the sum of the rates, rounded down where it is no rate that can be
 * written, and the share of each burst, at least one token. With nothing held a burst is 0, a key's
 * one token.
 */
void settings_of_host(const struct settings *settings, uint32_t leaves, bool reserve,
		      struct settings *share);

/* Returns @part of @all equal parts of the `min`. */
struct rate settings_part_of_min(const struct settings *settings, uint32_t all, uint32_t part);

/*
 * Computes the rate and the burst of a key on a host that has @held leaves of @settings and @leaves
 * of the key: rounded and at least one token as above.
 */
void settings_key_share(const struct settings *settings, uint32_t held, uint32_t leaves,
			struct rate *rate, uint64_t *burst);

/*
 * Returns the part that settings_key_share() computes with. Overrides *@rate and *@burst of a key
 * by those that @override has, with @part of them, rounded likewise.
 */
struct key_part settings_key_part(const struct settings *settings, uint32_t held, uint32_t leaves);
void settings_override(const struct override *override, const struct key_part *part,
		       struct rate *rate, uint64_t *burst);

/* Leaves @part of @limit of a key, rounded likewise; without a burst it stays so. */
void settings_key_limit(const struct key_part *part, struct limit *limit);

/*
 * Applies `offline`, unless it is block, to rates, bursts, slots, and enforcement.
 */
void settings_apply_offline(struct settings *settings);

/*
 * The settings of partition @index: its share of each limit and of each burst. Partitions 0 to
 * count-1 share what the reserve leaves, rounded down as above; PARTITIONS_MAX and above are the
 * reserve's, one a host, whatever the count is.
 */
struct settings settings_of_partition(const struct settings *settings, uint32_t index);

#endif
