/*
 * round - leaves of a limiter are looked for, and taken: those that are free and clean, at random;
 * then those that wait. take.h has the transaction.
 *
 * A round lists tiles and claims, and which hosts there are if tiles of others are in the way. Then
 * it takes what is lacking, in one transaction or several. Where another host was first it lists
 * anew up to FLEET_HERD_NS later, and takes fewer partitions with numbers at once.
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

/* Goes on with a round that waited, when it is time. */
void round_go_on(struct fleet *fleet, struct holding *holding);

/* Ends a round whose transaction has an unknown outcome; the session is gone. */
void round_stop(struct fleet *fleet, struct holding *holding);
void round_forget(struct holding *holding);

/* The result of a round, told once. */
struct round_result {
	uint32_t left_free; /* leaves that no host has */
	bool reserves_gone; /* all of the reserve are leased */
	bool again;	    /* something was given back meanwhile */
};
bool round_is_over(struct holding *holding, struct round_result *result);

#endif
