/*
 * membership - which other hosts there are.
 *
 * A host that is alone takes all it can get, and is told when another comes, or the other one
 * leaves. Where there are more they do not watch, so that nobody's coming wakes many.
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

/* Looks when it is time to. */
void membership_watch(struct fleet *fleet);

/* Lets the next look be at once; also: the list of hosts changed. */
void membership_look_soon(struct fleet *fleet);
void membership_changed(struct fleet *fleet);

/* The session is gone: nothing is watched or asked any more. */
void membership_forget(struct fleet *fleet);

/* Tell once of the last looks: a host has gone; another one has come, or none is left. */
bool membership_has_shrunk(struct fleet *fleet);
bool membership_has_turned(struct fleet *fleet);

#endif
