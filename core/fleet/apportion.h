/*
 * apportion - this host's portion of each limiter whose partitions have no numbers: the facts are
 * gathered, and the policy decides on them (portion.h).
 */
#ifndef RATEFS_CORE_APPORTION_H
#define RATEFS_CORE_APPORTION_H

#include "core/fleet/parts.h"
#include "core/fleet/portion.h"
#include "core/fleet/tile.h"

/* Gives @holding the part of it that is the policy's; frees that. */
bool apportion_attach(struct holding *holding);
void apportion_detach(struct holding *holding);

/* Decides for @holding; @is_looking: a round is under way. */
void apportion_decide(struct fleet *fleet, struct holding *holding, bool is_looking,
		      struct portion_decision *decision);

/* Notes what was listed: @tiles, and the claims of @line. */
void apportion_note_listed(struct fleet *fleet, struct holding *holding, const struct tiles *tiles,
			   const struct claim_line *line);

/* Returns how many leaves should be taken, of those that were listed. */
uint32_t apportion_lack(struct fleet *fleet, struct holding *holding);

/* Notes that a look is over; @reserves_gone: all of the reserve are leased. */
void apportion_looked(struct fleet *fleet, struct holding *holding, bool reserves_gone);

/* Lets one of the reserve be looked for at once: a host has gone. */
void apportion_seek_reserve(struct holding *holding);

/* Another host gave something back; one has come to a host that was alone. */
void apportion_note_woken(struct holding *holding);
void apportion_end_spare(struct holding *holding);

/* Leaves that are wanted, as of the last decision; whether the last look did not find enough. */
uint32_t apportion_wanted(const struct holding *holding);
bool apportion_is_unmet(const struct holding *holding);

/* Tells whether a look could bring more, and none has been in vain of late. */
bool apportion_may_come(const struct fleet *fleet, const struct holding *holding);

/* Tells whether the claim should be made, changed or deleted now: @claim is then the amount. */
bool apportion_claims(const struct fleet *fleet, const struct holding *holding, uint32_t *claim);
void apportion_note_claimed(struct holding *holding);

/* The session is gone. */
void apportion_forget(struct holding *holding);

#endif
