/*
 * claim - how much others want, and what this host tells them of that: the /w nodes of a limiter.
 */
#ifndef RATEFS_CORE_CLAIM_H
#define RATEFS_CORE_CLAIM_H

#include "core/fleet/parts.h"
#include "core/fleet/share.h"
#include "core/fleet/znode.h"

/* Gives @holding the part of it that is claims'; frees that. */
bool claim_attach(struct holding *holding);
void claim_detach(struct holding *holding);

/* All claims of a limiter. */
struct claim_line {
	struct claim *claims; /* owned by the caller; their names by the request that listed them */
	uint32_t count;
	uint64_t own; /* sequence of this host's; UINT64_MAX: there is none */
};

/* Reads the claims that @request lists. False: there is no memory. */
bool claim_parse_all(struct fleet *fleet, struct holding *holding, const struct request *request,
		     struct claim_line *line);

/* Computes what the claims come to: this host's share, if all together want more than there is. */
void claim_weigh(struct holding *holding, struct claim_line *line);

/* Nothing is wanted: there is no share to compute. */
void claim_end_contention(struct holding *holding);

/* Results of claim_weigh(): all want more than there is; the share then, UINT32_MAX: none. */
bool claim_is_contended(const struct holding *holding);
uint32_t claim_target(const struct holding *holding);

/*
 * Tells whether there are more hosts than partitions, and a host that went to the end of the line
 * would have to give up one of the @kept. It goes there: its claim is made anew.
 */
bool claim_takes_turns(const struct holding *holding, uint32_t kept);
void claim_anew(struct holding *holding);

/* Tells whether other hosts claim partitions, as far as is known. */
bool claim_has_claimants(const struct holding *holding);

/* The name of this host's claim, NULL; whether there may be one; that is a predecessor's. */
const char *claim_name(const struct holding *holding);
bool claim_may_be(const struct holding *holding);
bool claim_is_unknown(const struct holding *holding);

/* A predecessor may have left one, which has place @place, less 1, in struct handover_memory. */
void claim_resume(struct fleet *fleet, struct holding *holding, uint32_t place);

/* How many partitions should be held: those wanted, or the share under contention. */
uint32_t claim_limit(const struct holding *holding);

/* Asks who waits for partitions of @holding, and then wakes them; wakes those that are known. */
void claim_look(struct fleet *fleet, struct holding *holding);
void claim_wake_others(struct fleet *fleet, struct holding *holding);

/*
 * @given were given back: the hosts that wait for them are woken. One is about to be, on leaving.
 */
void claim_given_back(struct fleet *fleet, struct holding *holding, uint32_t given);
void claim_note_given(struct holding *holding);

/* A host that leaves claims nothing any more, from before anything that it sends later. */
void claim_withdraw(struct fleet *fleet, struct holding *holding);

/* Tells whether the own claim should be made, changed or deleted; sends that. */
bool claim_is_due(const struct fleet *fleet, const struct holding *holding);
bool claim_send(struct fleet *fleet, struct holding *holding);
void claim_answered(struct fleet *fleet, const struct request *request);

/* The claim @znode was set: another host gave something back. */
void claim_woken(struct fleet *fleet, const struct znode *znode);

/* After a barrier @request lists the claims of @holding, whose own was in doubt. */
void claim_resolved(struct fleet *fleet, struct holding *holding, const struct request *request);

/* The session is gone, and the claim. */
void claim_forget(struct fleet *fleet, struct holding *holding);

#endif
