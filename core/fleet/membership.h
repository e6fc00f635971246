/*
 * membership - which other hosts there are.
 *
 * A host that is alone takes all it can get. Each host is told when another comes or goes, and then
 * looks, after a time at random that grows with their number: so all of a fleet's hosts together
 * look no more often than one every FLEET_HOSTS_SPREAD_NS.
 */
#ifndef RATEFS_CORE_MEMBERSHIP_H
#define RATEFS_CORE_MEMBERSHIP_H

#include "core/fleet/parts.h"

bool membership_new(struct fleet *fleet);
void membership_free(struct fleet *fleet);

/* Tells whether no other host is there. */
bool membership_is_alone(const struct fleet *fleet);

/* Tells whether it is known if there are other hosts: the first look has been. */
bool membership_is_known(const struct fleet *fleet);

/* Hosts as of the last look, at least 1. */
uint32_t membership_count(const struct fleet *fleet);

/*
 * The names of all hosts as of the last look of this session, in their order; how many looks there
 * were. A host that was seen in an earlier session need not have joined yet by what this one sees.
 */
char (*membership_hids(const struct fleet *fleet, uint32_t *count))[HID_TEXT];
uint32_t membership_looks(const struct fleet *fleet);
/* Returns how many of all looks showed other names than the look before. */
uint32_t membership_changes(const struct fleet *fleet);

/* Tells whether no change was told since the last look; whether that showed host @hid. */
bool membership_is_fresh(const struct fleet *fleet);
bool membership_has(const struct fleet *fleet, const char *hid);

/* Looks when it is time to: a change of the list was told. */
void membership_watch(struct fleet *fleet);

/* Lets the look that is due be at once; the list of hosts has changed. */
void membership_look_soon(struct fleet *fleet);
void membership_changed(struct fleet *fleet);

/* The session is gone: nothing is watched or asked any more. */
void membership_forget(struct fleet *fleet);

/* Tell once of the last looks: a host has gone; another one has come, or none is left. */
bool membership_has_shrunk(struct fleet *fleet);
bool membership_has_turned(struct fleet *fleet);

#endif
