/*
 * transaction - one transaction at a time: rule 2 of fleet.h. The one under way stays known until
 * it is ended; after an unknown outcome it says what is in doubt.
 */
#ifndef RATEFS_CORE_TRANSACTION_H
#define RATEFS_CORE_TRANSACTION_H

#include "core/fleet/item.h"
#include "core/fleet/parts.h"

/* The first operations of every transaction but that of joining. */
enum { OPERATION_GLOBALS, OPERATION_HOST, HEAD_LENGTH };

enum transaction_kind {
	TRANSACTION_NONE,
	TRANSACTION_JOIN,
	TRANSACTION_RENEW,
	TRANSACTION_BARRIER,
	TRANSACTION_TAKE,
	TRANSACTION_GIVE,
	TRANSACTION_CLAIM,
	TRANSACTION_CHANGE,
	TRANSACTION_SWEEP,
	TRANSACTION_KEY,
	TRANSACTION_RELAY,
	TRANSACTION_END,
};

bool transaction_new(struct fleet *fleet);
void transaction_free(struct fleet *fleet);

/* The kind of the one under way, or in doubt. */
enum transaction_kind transaction_kind(const struct fleet *fleet);

/* The tiles that it is about; adds some, and owns their plan from then on. */
uint32_t transaction_count(const struct fleet *fleet);
struct item *transaction_item(const struct fleet *fleet, uint32_t at);
struct item *transaction_add(struct fleet *fleet, const struct item *item);

/* Leaves out the items from the one at @count on. */
void transaction_drop(struct fleet *fleet, uint32_t count);

/* Adds the operations of the plan of @item to @request. False: there is no memory. */
bool transaction_add_plan(struct request *request, struct item *item);

/* The holding of the item or the claim whose operation was refused; NULL: one of the head was. */
struct holding *transaction_refused(const struct fleet *fleet, const struct request *request);

/* A claim of TRANSACTION_CLAIM, one of a limiter. */
struct claimed {
	struct holding *holding; /* its limiter is held by us while the transaction is there */
	uint32_t wanted;	 /* N; 0: it is deleted */
	uint32_t end; /* of its operations in the request: those from here on are others' */
};

/* The claims; adds one, whose operations were the last of @request. */
uint32_t transaction_claim_count(const struct fleet *fleet);
const struct claimed *transaction_claim(const struct fleet *fleet, uint32_t at);
void transaction_add_claim(struct fleet *fleet, const struct request *request,
			   struct holding *holding, uint32_t wanted);

/* Begins one of @kind with rule 2's head; NULL without memory. Then sends it, or gives it up. */
struct request *transaction_begin(struct fleet *fleet, enum transaction_kind kind);
void transaction_send(struct fleet *fleet, struct request *request);
void transaction_give_up(struct fleet *fleet, struct request *request);

/* Takes note of a predecessor's, which is in doubt. */
void transaction_resume(struct fleet *fleet);

/* The answer of what is under way, once: NULL, or it is to be acted on. */
const struct request *transaction_answer(struct fleet *fleet);

/*
 * It was acknowledged; tells whether this host's node says that its right is renewed, as of the
 * last one that was.
 */
void transaction_acknowledge(struct fleet *fleet);
bool transaction_says_used(const struct fleet *fleet);

/* Nothing is under way any more. */
void transaction_end(struct fleet *fleet);

/* Begins a barrier, NULL without memory; then what was in doubt before it is so again. */
struct request *transaction_begin_barrier(struct fleet *fleet);
void transaction_end_barrier(struct fleet *fleet);

/* The coordinator denied access: nothing is taken, given back or claimed until then. */
void transaction_deny(struct fleet *fleet);
uint64_t transaction_denied_ns(const struct fleet *fleet);

#endif
