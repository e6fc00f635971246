/*
 * holdings - what this host holds of limiters: all of it, by id; which of it was roused, is in use,
 * or has something to send.
 */
#ifndef RATEFS_CORE_HOLDINGS_H
#define RATEFS_CORE_HOLDINGS_H

#include "core/fleet/parts.h"

bool holdings_new(struct fleet *fleet);
void holdings_free(struct fleet *fleet);

/* The first of all, the newest; more by their `next`. */
struct holding *holdings_first(const struct fleet *fleet);

/* The first of those in use; more by their `next_active`. */
struct holding *holdings_first_active(const struct fleet *fleet);

/* The holding of limiter @id; NULL: there is none. */
struct holding *holdings_find(const struct fleet *fleet, uint64_t id);

/*
 * Enters @holding: from here on its limiter is limiter @id of the fleet. A limiter that is still
 * being made may be freed at any time, and is in no list. Then: the limiter @id is gone.
 */
void holdings_enter(struct fleet *fleet, struct holding *holding, uint64_t id);
void holdings_unname(struct fleet *fleet, struct holding *holding);

/* Whether no other host is there, for all that are or will be entered. */
void holdings_set_alone(struct fleet *fleet, bool alone);

/* Keeps the limiter of @holding from being freed; lets it go. */
void holdings_keep(struct holding *holding);
void holdings_let_go(struct holding *holding);

/*
 * Notes that something may have to be done for @holding, which is in use from here on; @asked:
 * tokens or slots were asked for. The next one of those, in their order; NULL.
 */
void holdings_rouse(struct fleet *fleet, struct holding *holding, bool asked);
struct holding *holdings_next_roused(struct fleet *fleet);

/* Rouses @holding at @at_ns, the last that was said; those for which it is time. */
void holdings_rouse_at(struct fleet *fleet, struct holding *holding, uint64_t at_ns);
void holdings_rouse_due(struct fleet *fleet);

/* Likewise, and that another host gave something back. Both are told once: in use since; woken. */
void holdings_wake(struct fleet *fleet, struct holding *holding);
bool holdings_begins(struct holding *holding);
bool holdings_is_woken(struct holding *holding);
bool holdings_is_active(const struct holding *holding);

/*
 * Looks at the holdings in use, every DEMAND_PERIOD_NS: calls @look for each, which tells
 * whether it still is. When they are due; NEVER_NS: there are none.
 */
void holdings_look(struct fleet *fleet, bool (*look)(struct fleet *fleet, struct holding *holding));
uint64_t holdings_look_ns(const struct fleet *fleet);

/* Notes that @holding has something to send; the next one of those, in their order; NULL. */
void holdings_add_work(struct fleet *fleet, struct holding *holding);
struct holding *holdings_next_work(struct fleet *fleet);

/* The first of them, which stays one of them; more by their `next_work`. */
struct holding *holdings_first_work(const struct fleet *fleet);
struct holding *holdings_last_work(const struct fleet *fleet);
bool holdings_has_work(const struct holding *holding);

/* The host leaves: there is nothing more to look at or to send. */
void holdings_forget(struct fleet *fleet);

#endif
