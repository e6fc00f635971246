/*
 * claim - how much others want, and what this host tells them of that: the /w nodes of a limiter.
 */
#ifndef RATEFS_CORE_CLAIM_H
#define RATEFS_CORE_CLAIM_H

#include "core/fleet/balance.h"
#include "core/fleet/parts.h"
#include "core/fleet/portion.h"
#include "core/fleet/znode.h"

/* Gives @holding the part of it that is claims'; frees that. */
bool claim_attach(struct holding *holding);
void claim_detach(struct holding *holding);

/*
 * Lets @request, which is to list the claims of @holding, watch them from then on, if there is
 * room. Notes that it was refused.
 */
void claim_watch(struct fleet *fleet, struct holding *holding, struct request *request);
void claim_note_unread(struct fleet *fleet, struct holding *holding);

/* Fills in again the places of the children that @line of @holding names; frees its memory. */
void claim_settle(struct fleet *fleet, const struct holding *holding, struct claim_line *line);
void claim_free_line(struct claim_line *line);

/* Tells whether the children's wants differ from this host's claim so that it matters. */
bool claim_parts_differ(struct fleet *fleet, const struct holding *holding);

/* The folder of claims @znode changed, which was watched. */
void claim_changed(struct fleet *fleet, const struct znode *znode);

/* Reads the claims that @request lists. False: there is no memory. */
bool claim_parse_all(struct fleet *fleet, struct holding *holding, const struct request *request,
		     struct claim_line *line);

/* Tells the policy's facts of claims; likewise where partitions have no numbers. */
void claim_tell(const struct holding *holding, struct facts *facts);
void claim_tell_portion(const struct fleet *fleet, const struct holding *holding,
			struct portion_facts *facts);

/* Its turn is over: this host goes to the end of the line, its claim is made anew. */
void claim_anew(struct holding *holding);

/* The name of this host's claim, NULL; whether there may be one. */
const char *claim_name(const struct holding *holding);
bool claim_may_be(const struct holding *holding);

/* Returns since when this host has a claim, by the engine's clock; 0: it has none. */
uint64_t claim_since_ns(const struct holding *holding);

/*
 * A predecessor may have left one, with parts of so many bytes, which has place @place, less 1, in
 * struct handover_memory.
 */
void claim_resume(struct fleet *fleet, struct holding *holding, uint32_t place,
		  uint32_t parts_bytes);

/* Asks who waits for partitions of @holding, and then wakes them; wakes those that are known. */
void claim_look(struct fleet *fleet, struct holding *holding);
void claim_wake_others(struct fleet *fleet, struct holding *holding);

/*
 * @given were given back: the hosts that wait for them are woken. They are about to be, on leaving.
 */
void claim_given_back(struct fleet *fleet, struct holding *holding, uint32_t given);
void claim_note_given(struct holding *holding, uint32_t given);

/* A host that leaves claims nothing any more, from before anything that it sends later. */
void claim_withdraw(struct fleet *fleet, struct holding *holding);

/*
 * Adds to @request, a TRANSACTION_CLAIM that was begun, the claim of @wanted, which replaces the
 * one that there is; 0: deletes that. False: nothing is added, since there is no room or no memory.
 */
bool claim_add(struct fleet *fleet, struct request *request, struct holding *holding,
	       uint32_t wanted);
void claim_answered(struct fleet *fleet, const struct request *request);

/* The claim @znode was set: another host gave something back. */
void claim_woken(struct fleet *fleet, const struct znode *znode);

/* After a barrier @request lists the claims of @holding, whose own was in doubt. */
void claim_resolved(struct fleet *fleet, struct holding *holding, const struct request *request);

/* The session is gone, and the claim. */
void claim_forget(struct fleet *fleet, struct holding *holding);

#endif
