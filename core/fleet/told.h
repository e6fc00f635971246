/*
 * told - what the service behind a limiter said of its quota on one host, as the others hear of it:
 * rule 21 of fleet.h. core/limiter/allowance.h has what a host makes of it.
 *
 * The reports that hold are the data of node /w/LID: at most one write a second and limiter over
 * all hosts. A host that writes has seen the node unchanged for that long, and names the version
 * that it has seen. It leaves out what is over, and what another report of no more tokens and no
 * sooner end says anyway. A report that is not there any more is over, unless one of no more tokens
 * is: that may stand for it.
 *
 * Clocks differ, so a report says how long it holds yet, by the clock of the host that writes. A
 * host that reads it counts 1 % more, from the reading on; and where it knows the report it stays
 * with its own end, so that none moves on from host to host.
 *
 * The data of /w tell of which limiters reports were ever told, by a bit for all those with the
 * same remainder of LID. So a host reads and watches /w alone where no service tells anything.
 */
#ifndef RATEFS_CORE_TOLD_H
#define RATEFS_CORE_TOLD_H

#include "core/fleet/parts.h"

bool told_new(struct fleet *fleet);
void told_free(struct fleet *fleet);

/* For each holding. */
bool told_attach(struct holding *holding);
void told_detach(struct holding *holding);

/* Reads /w, unless that was done in this session. */
void told_step(struct fleet *fleet);

/* Ends reports of @holding that are over, and looks whether there is one to tell or to ask. */
void told_tick(struct fleet *fleet, struct holding *holding);

/* Tells whether other hosts are to be told of something of @holding. */
bool told_has_news(const struct fleet *fleet, const struct holding *holding);

/* The node of limiter @id changed, or the folder of them. */
void told_changed(struct fleet *fleet, uint64_t id);
void told_folder_changed(struct fleet *fleet);

/* The session is gone, and what was asked in it is not answered; before leases are forgotten. */
void told_forget(struct fleet *fleet, struct holding *holding);
void told_forget_folder(struct fleet *fleet);

#endif
