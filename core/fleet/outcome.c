/* outcome - what follows from the answer to a transaction, see outcome.h. */
#include "core/fleet/outcome.h"
#include "core/fleet/barrier.h"
#include "core/fleet/baseline.h"
#include "core/fleet/caps.h"
#include "core/fleet/claim.h"
#include "core/fleet/garbage.h"
#include "core/fleet/handover.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/holdings.h"
#include "core/fleet/leases.h"
#include "core/fleet/membership.h"
#include "core/fleet/neighbour.h"
#include "core/fleet/publish.h"
#include "core/fleet/relay.h"
#include "core/fleet/release.h"
#include "core/fleet/round.h"
#include "core/fleet/session.h"
#include "core/fleet/term.h"
#include "core/fleet/transaction.h"

#include <stdlib.h>
#include <string.h>

/* A node of this host's is gone, or has another version than it gave it: rule 12. */
static bool is_foreign(const struct fleet *fleet, const struct request *request)
{
	const struct operation *refused;

	if (request->answer == ANSWER_DENIED || request->answer == ANSWER_REFUSED)
		return false;
	if (transaction_kind(fleet) != TRANSACTION_JOIN && request->failed == OPERATION_HOST)
		return true;
	refused = &request->operations[request->failed];
	return request->answer == ANSWER_NO_NODE && request->failed >= HEAD_LENGTH &&
	       ((transaction_kind(fleet) == TRANSACTION_GIVE &&
		 refused->kind == OPERATION_DELETE) ||
		transaction_kind(fleet) == TRANSACTION_RENEW);
}

/* Why the session is dropped. A node that is gone may be that of a host that was ended. */
static const char *reason_of(const struct request *request)
{
	return request->answer == ANSWER_NO_NODE && request->failed == OPERATION_HOST
		       ? "the host's node is gone"
		       : "lost history, or a foreign hand";
}

static void joined(struct fleet *fleet, const struct request *request)
{
	transaction_end(fleet);
	if (request->answer != ANSWER_OK) {
		bool others = request->answer != ANSWER_DENIED &&
			      request->failed == OPERATION_GLOBALS;

		session_unname(fleet);
		session_retry_at(fleet, fleet->now_ns + (others ? 0 : FLEET_JOIN_RETRY_NS));
		return;
	}
	session_joined(fleet);
	transaction_acknowledge(fleet);
	epoch_note(&fleet->epochs, request->zxid, fleet->clocks.waiter_ns);
	membership_look_soon(fleet);
	fleet_tell(fleet, FLEET_JOINED, "joined as %s (%s)", fleet->options->host,
		   session_hid(fleet));
	garbage_look(fleet);
	(void)leases_extend_term(fleet, request->sent_ns);
	caps_acknowledge(fleet);
	handover_keep(fleet);
	for (struct holding *h = holdings_first(fleet); h; h = h->next)
		holdings_rouse(fleet, h, false);
}

/* Rule 11: its items are in doubt. */
static void unknown(struct fleet *fleet)
{
	enum transaction_kind kind = transaction_kind(fleet);

	fleet->counters.unknown++;
	if (kind == TRANSACTION_JOIN) {
		session_drop(fleet, "it is not known whether the host has joined");
		return;
	}
	for (uint32_t i = 0; i < transaction_count(fleet); i++) {
		leases_doubt(fleet, transaction_item(fleet, i));
		if (kind == TRANSACTION_TAKE)
			round_stop(fleet, transaction_item(fleet, i)->holding);
	}
	if (kind == TRANSACTION_SWEEP)
		garbage_forget(fleet);
	if (kind == TRANSACTION_KEY)
		key_leases_doubt(fleet);
	if (kind == TRANSACTION_RELAY)
		relay_forget(fleet);
	if (kind == TRANSACTION_END)
		neighbour_doubt(fleet);
	session_enter(fleet, FLEET_IN_DOUBT);
	if (session_is_connected(fleet))
		barrier_begin(fleet);
}

/* One that was refused for a change of settings is tried again as soon as that is applied. */
static void renewed(struct fleet *fleet, const struct request *request)
{
	uint64_t spread_ns = fleet->constants.renewal_ns / FLEET_AGAIN_PARTS + 1;

	if (request->answer != ANSWER_OK && request->answer != ANSWER_DENIED &&
	    request->failed == OPERATION_GLOBALS)
		term_renew_at(fleet, fleet->now_ns + fleet_random(fleet) % spread_ns);
}

/* Tells its part. */
static void finish(struct fleet *fleet, const struct request *request)
{
	switch (transaction_kind(fleet)) {
	case TRANSACTION_TAKE:
		round_answered(fleet, request);
		break;
	case TRANSACTION_GIVE:
		release_answered(fleet, request);
		break;
	case TRANSACTION_CLAIM:
		claim_answered(fleet, request);
		break;
	case TRANSACTION_SWEEP:
		garbage_answered(fleet, request);
		break;
	case TRANSACTION_KEY:
		key_leases_answered(fleet, request);
		break;
	case TRANSACTION_RELAY:
		transaction_end(fleet);
		relay_answered(fleet, request);
		return;
	case TRANSACTION_END:
		neighbour_answered(fleet, request);
		break;
	case TRANSACTION_CHANGE:
		transaction_end(fleet);
		publish_answered(fleet, request);
		return;
	case TRANSACTION_RENEW:
		renewed(fleet, request);
		break;
	case TRANSACTION_NONE:
	case TRANSACTION_JOIN:
	case TRANSACTION_BARRIER:
		break;
	}
	transaction_end(fleet);
}

static void note_refusal(struct fleet *fleet, const struct request *request)
{
	if (request->failed == OPERATION_GLOBALS && request->answer != ANSWER_DENIED)
		baseline_note_stale(fleet);
	if (request->answer != ANSWER_DENIED)
		caps_refuse(fleet);
	if (request->answer == ANSWER_DENIED) {
		fleet_tell(fleet, FLEET_DENIED, "access denied by the coordinator");
		transaction_deny(fleet);
	}
}

void outcome_settle(struct fleet *fleet)
{
	const struct request *request = transaction_answer(fleet);
	enum transaction_kind kind = transaction_kind(fleet);

	if (!request)
		return;
	if (request->answer == ANSWER_OK && kind != TRANSACTION_JOIN) {
		session_acknowledge(fleet);
		transaction_acknowledge(fleet);
		epoch_note(&fleet->epochs, request->zxid, fleet->clocks.waiter_ns);
		/* A barrier does not look at /g: it proves nothing of the settings. */
		if (kind != TRANSACTION_BARRIER) {
			if (leases_extend_term(fleet, request->sent_ns))
				key_leases_revive(fleet);
		}
		caps_acknowledge(fleet);
		handover_keep(fleet);
	}
	if (kind == TRANSACTION_BARRIER) {
		barrier_answered(fleet, request);
	} else if (request->answer == ANSWER_UNKNOWN) {
		unknown(fleet);
	} else if (kind == TRANSACTION_JOIN) {
		joined(fleet, request);
	} else if (request->answer != ANSWER_OK && is_foreign(fleet, request)) {
		session_drop(fleet, reason_of(request));
	} else {
		if (request->answer != ANSWER_OK)
			note_refusal(fleet, request);
		finish(fleet, request);
	}
}
