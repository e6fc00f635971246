/*
 * round - partitions of a limiter are looked for, and taken: those that are free and clean, at
 * random; then those that no host gave back. Rules 6, 7, 11 and 12 of fleet.h.
 *
 * A round lists markers, leases and claims, and then takes partitions, several in a transaction;
 * those that others took meanwhile are left out, and the rest is tried again.
 */
#ifndef RATEFS_CORE_ROUND_H
#define RATEFS_CORE_ROUND_H

#include "core/fleet/parts.h"

/* Gives @holding the part of it that is the round's; frees that. */
bool round_attach(struct holding *holding);
void round_detach(struct holding *holding);

/* Begins a round. One is under way from then until round_is_over() has told of its end. */
void round_begin(struct fleet *fleet, struct holding *holding);
bool round_is_under_way(const struct holding *holding);

/* Lets another round follow the one that is under way. */
void round_again(struct holding *holding);

/* Tells whether there is something to be taken now; sends that, and tells whether it could. */
bool round_is_ready(const struct holding *holding);
bool round_send(struct fleet *fleet, struct holding *holding);
void round_answered(struct fleet *fleet, const struct request *request);

/* Ends a round whose transaction has an unknown outcome; the session is gone. */
void round_stop(struct fleet *fleet, struct holding *holding);
void round_forget(struct holding *holding);

/* The result of a round, told once. */
struct round_result {
	uint32_t left_free; /* partitions that no host has */
	bool reserves_gone; /* all of the reserve are leased */
	bool again;	    /* a partition was given back meanwhile */
};
bool round_is_over(struct holding *holding, struct round_result *result);

#endif
