/* release - giving back: rules 6, 9, 15, 18 and 21 of fleet.h. */
#ifndef RATEFS_CORE_RELEASE_H
#define RATEFS_CORE_RELEASE_H

#include "core/fleet/parts.h"

/* Returns how many leaves of @holding may go back for rule 21; UINT32_MAX: all. */
uint32_t release_spare(struct fleet *fleet, const struct holding *holding);

/*
 * @lease of @holding, if it is held, is not used any more, and goes back; likewise @amount leaves,
 * which are chosen here; likewise all that is held. Leaves that have to stay by rule 21 do, and a
 * host that leaves lets them be. Moves leases.
 */
void release_lease(struct fleet *fleet, struct holding *holding, struct lease *lease);
void release_leaves(struct fleet *fleet, struct holding *holding, uint32_t amount);
void release_all(struct fleet *fleet, struct holding *holding);

/* Gives back all that is held where nothing needs to be held any more, by the settings. */
void release_unfit(struct fleet *fleet, struct holding *holding);

/* Tells whether something is to be given back now; sends that, and tells whether it could. */
bool release_is_due(const struct fleet *fleet, const struct holding *holding);
bool release_send(struct fleet *fleet, struct holding *holding);
void release_answered(struct fleet *fleet, const struct request *request);

#endif
