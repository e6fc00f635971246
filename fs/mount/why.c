/* why - the file `why`, see why.h. */
#include "fs/mount/why.h"
#include "fs/base/clock.h"
#include "fs/mount/frozen.h"
#include "fs/mount/holders.h"
#include "fs/mount/plain.h"
#include "fs/mount/viewer.h"

#include "core/fleet/fleet.h"
#include "core/limiter/keys.h"
#include "core/limiter/learning.h"
#include "core/limiter/limiter.h"
#include "core/limiter/partition.h"
#include "core/limiter/reason.h"
#include "core/limiter/slots.h"

#include <inttypes.h>
#include <string.h>

/* Keys and partitions with readers that are short; no more keys are looked at for them. */
enum { MEMBERS_SHOWN = 8, KEYS_SEEN = 1024 };

/* The text in the making. */
struct telling {
	FILE *out;
	const struct daemon *daemon;
	const struct viewer *viewer;
	struct limiter *limiter; /* of the file */
};

static void tell_seconds(FILE *out, uint64_t ns)
{
	char text[QUANTITY_TEXT];

	seconds_print(ns, 1, text);
	if (ns == NEVER_NS)
		fputs("never", out);
	else
		fprintf(out, "%s s", text);
}

/* Tells a time in the largest unit of which it has one, rounded up. */
static void tell_span(FILE *out, uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *name;
	} units[] = {{24 * 3600 * NSEC_PER_SEC, "d"},
		     {3600 * NSEC_PER_SEC, "h"},
		     {60 * NSEC_PER_SEC, "min"}};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (ns < units[i].ns)
			continue;
		fprintf(out, "%" PRIu64 " %s", (ns + units[i].ns - 1) / units[i].ns, units[i].name);
		return;
	}
	tell_seconds(out, ns);
}

/* Returns the rate of the open key @limiter as it was set, maybe in @override. */
static const struct rate *rate_of_key(const struct limiter *limiter, struct override *override)
{
	const struct settings *settings = limiter_settings(limiter->parent);
	const struct key *key = keys_key(limiter);

	if (overrides_find(settings->overrides, key->name, key->name_bytes, override) &&
	    override->has_rate)
		return &override->rate;
	return &settings->key_rate;
}

/* Tells the limit of a reason, as it was set; in a fleet with the part that this host has. */
static void tell_rate(FILE *out, const struct reason *reason)
{
	const struct limiter *limiter = reason->limiter;
	const struct settings *settings = limiter_settings(limiter);
	const struct holding *holding = limiter->holding;
	const char *unit = settings->limits[reason->limit].unit;
	const struct rate *rate = &settings->limits[reason->limit].rate;
	struct override override;
	char text[CALENDAR_TEXT];

	if (limiter->is_key && !*unit && !rate_is_window(rate))
		rate = rate_of_key(limiter, &override);
	if (rate_is_window(rate)) {
		calendar_print(rate, text);
		fprintf(out, " quota %s%s%s", unit, *unit ? "=" : "", text);
		return;
	}
	rate_print(rate, text);
	fprintf(out, " %s%s%s%s", limiter->is_key ? "" : "rate ", unit, *unit ? "=" : "", text);
	if (holding && holding->usable < holding_leaves(holding->settings))
		fprintf(out, ", %.3g/s of it here",
			fraction_per_second(&limiter->buckets[reason->limit].flow));
}

static void tell_tokens(FILE *out, const struct reason *reason)
{
	fprintf(out, ": %" PRIu64 " token%s to come, ", reason->tokens,
		reason->tokens == 1 ? "" : "s");
	tell_seconds(out, reason->wait_ns);
}

/* Tells what a window of the calendar lacks, and when the next one begins. */
static void tell_window(FILE *out, const struct reason *reason)
{
	fprintf(out, ": %" PRIu64 " token%s to come, resets in ", reason->tokens,
		reason->tokens == 1 ? "" : "s");
	tell_span(out, reason->reset_ns);
}

/* Tells which slot of @limiter has been held for longest, after @before. */
static void tell_oldest(const struct telling *telling, const struct limiter *limiter,
			const char *before)
{
	struct oldest_slot oldest;
	char text[QUANTITY_TEXT];

	if (!holders_oldest(telling->daemon, limiter, &oldest))
		return;
	seconds_print(oldest.held_ns, oldest.is_own ? 1 : 0, text);
	fprintf(telling->out, "%spid %" PRIu32 " on host %s for %s s", before, oldest.pid,
		oldest.host, text);
}

/* Tells that this host of a fleet has nothing of the limiter of @reason, and what it does. */
static void tell_unleased(FILE *out, const struct telling *telling, const struct reason *reason)
{
	const struct fleet *fleet = telling->daemon->fleet;
	const struct holding *holding = reason->limiter->holding;
	uint64_t claimed_ns = fleet_claimed_ns(fleet, holding);
	char text[SETTING_TEXT];
	enum setting_id id = holding_has_numbers(holding->settings) ? SETTING_PARTITIONS_COUNT
								    : SETTING_RATE;

	setting_print(id, holding->settings, text);
	fprintf(out, " no partition: %" PRIu32 " host%s share%s %s, ", fleet_host_count(fleet),
		fleet_host_count(fleet) == 1 ? "" : "s", fleet_host_count(fleet) == 1 ? "s" : "",
		text);
	if (!fleet_is_connected(fleet)) {
		fputs("the coordinator does not answer", out);
	} else if (claimed_ns == NEVER_NS) {
		fputs("not claimed", out);
	} else {
		fputs("claimed since ", out);
		tell_seconds(out, claimed_ns);
	}
	if (holding->settings->slots.kind == SLOTS_COUNT)
		tell_oldest(telling, reason->limiter, "; a slot by ");
}

/* Tells which sibling comes first, and why it does. */
static void tell_order(const struct telling *telling, const struct reason *reason)
{
	const struct settings *first = &SETTINGS_DEFAULT, *behind = &SETTINGS_DEFAULT;
	char text[SETTING_TEXT];
	FILE *out = telling->out;

	if (reason->behind && !reason->behind->is_key && !reason->behind->partition)
		behind = limiter_settings(reason->behind);
	if (reason->first && !reason->first->is_key && !reason->first->partition)
		first = limiter_settings(reason->first);
	fputs(reason->kind == REASON_SLOT_ORDER ? " slot order: " : " order: ", out);
	if (!reason->first)
		fputs("its own readers come", out);
	else if (!reason->first->is_key && !reason->first->partition &&
		 !viewer_sees(telling->viewer, reason->first))
		fputs("another limiter comes", out);
	else {
		plain_limiter(out, reason->first);
		fputs(" comes", out);
	}
	switch (reason->cause) {
	case ORDER_BY_MIN:
		setting_print(SETTING_MIN, first, text);
		fprintf(out, " first, its min is %s", text);
		break;
	case ORDER_BY_PRIORITY:
		fprintf(out, " first, priority %" PRIu32 " over %" PRIu32, first->priority,
			behind->priority);
		break;
	case ORDER_BY_WEIGHT:
		fprintf(out, " first, weight %" PRIu32 " beside %" PRIu32, first->weight,
			behind->weight);
		break;
	}
}

/* Tells of the slots of a limiter, and which has been held for longest. */
static void tell_slots(const struct telling *telling, const struct limiter *limiter)
{
	fprintf(telling->out, " slots %" PRIu32 " of %" PRIu32, slots_used(limiter),
		slots_limit(limiter));
	tell_oldest(telling, limiter, ": ");
}

/*
 * Tells whether the limiter of @reason is one that this host of a fleet has nothing of as nothing
 * was asked for: a reader that comes has it lease some at once.
 */
static bool is_idle(const struct telling *telling, const struct reason *reason)
{
	const struct limiter *limiter = reason->limiter;
	const struct fleet *fleet = telling->daemon->fleet;

	return reason->kind == REASON_UNLEASED && fleet_is_connected(fleet) &&
	       fleet_claimed_ns(fleet, limiter->holding) == NEVER_NS &&
	       !turns_demand(&limiter->turns) &&
	       !(limiter->slots && turns_demand(&limiter->slots->turns));
}

static void tell_reason(const struct telling *telling, const struct reason *reason)
{
	const struct limiter *limiter = reason->limiter;
	FILE *out = telling->out;

	plain_limiter(out, limiter);
	/* The limiter of the file is open to its reader; one above it may not be. */
	if (limiter != telling->limiter && !limiter->is_key && !limiter->partition &&
	    !viewer_sees(telling->viewer, limiter)) {
		fputs(" is short, and closed to this user\n", out);
		return;
	}
	switch (reason->kind) {
	case REASON_CLOSED:
		fputs(" enforcement closed: nothing is granted", out);
		break;
	case REASON_UNLEASED:
		tell_unleased(out, telling, reason);
		break;
	case REASON_PAUSE:
		fputs(" backoff: pause until ", out);
		tell_seconds(out, reason->wait_ns);
		fputs(" from now", out);
		break;
	case REASON_RATE:
		tell_rate(out, reason);
		if (reason->reset_ns == NEVER_NS)
			tell_tokens(out, reason);
		else
			tell_window(out, reason);
		break;
	case REASON_LEARNT:
		fprintf(out, " learnt rate %.3g/s", learning_rate(limiter));
		tell_tokens(out, reason);
		break;
	case REASON_QUOTA:
		fprintf(out, " service: %s%s%" PRIu64 " left until ", reason->unit,
			*reason->unit ? "=" : "", reason->tokens);
		tell_seconds(out, reason->wait_ns);
		fputs(" from now", out);
		break;
	case REASON_ORDER:
	case REASON_SLOT_ORDER:
		tell_order(telling, reason);
		break;
	case REASON_SLOTS:
		tell_slots(telling, limiter);
		break;
	}
	fputc('\n', out);
}

/* Tells whether @reason, of the key or partition @member alone, keeps waiting who waits there. */
static bool keeps_waiting(const struct reason *reason, const struct limiter *member,
			  uint64_t now_ns)
{
	switch (reason->kind) {
	case REASON_CLOSED: /* as all of the limiter is */
		return false;
	case REASON_SLOTS:
	case REASON_SLOT_ORDER:
		return slots_waiting(member);
	case REASON_UNLEASED:
		return true;
	case REASON_PAUSE:
	case REASON_RATE:
	case REASON_LEARNT:
	case REASON_QUOTA:
	case REASON_ORDER:
		break;
	}
	return member->turns.current && limiter_turn_when(member, now_ns) > now_ns;
}

/* Tells the reasons of @member alone, a key or a partition in which a reader waits. */
static bool tell_member(const struct telling *telling, struct limiter *member)
{
	struct reason reasons[REASONS_MAX];
	struct engine *engine = (struct engine *)&telling->daemon->engine;
	bool told = false;
	size_t count;

	if (!member->turns.queue.length && !slots_waiting(member))
		return false;
	engine_refresh(engine, member, engine->schedule.now_ns);
	count = reason_list(&engine->schedule, member, reasons);
	for (size_t i = 0; i < count && reasons[i].limiter == member; i++) {
		if (!keeps_waiting(&reasons[i], member, engine->schedule.now_ns))
			continue;
		tell_reason(telling, &reasons[i]);
		told = true;
	}
	return told;
}

/* Tells of the keys and partitions in which readers wait for what these lack themselves. */
static uint32_t tell_members(const struct telling *telling)
{
	struct limiter *limiter = telling->limiter, *partition;
	uint32_t told = 0, seen = 0;

	for (uint32_t i = 0; told < MEMBERS_SHOWN && (partition = partition_next(limiter, &i));)
		told += tell_member(telling, partition);
	for (struct limiter *key = NULL;
	     told < MEMBERS_SHOWN && seen < KEYS_SEEN && (key = keys_next_waiting(limiter, key));
	     seen++)
		told += tell_member(telling, key);
	return told;
}

/* Returns how long @reason lasts; NEVER_NS: as long as others come first, which is not known. */
static uint64_t lasting_ns(const struct reason *reason)
{
	bool is_order = reason->kind == REASON_ORDER || reason->kind == REASON_SLOT_ORDER;

	if (reason->kind == REASON_UNLEASED || (is_order && reason->cause != ORDER_BY_WEIGHT))
		return NEVER_NS;
	return reason->wait_ns;
}

/* Puts those first that keep readers waiting for longest, of equal ones those of lower limiters. */
static void sort_reasons(struct reason reasons[], size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct reason reason = reasons[i];
		size_t at = i;

		for (; at && lasting_ns(&reasons[at - 1]) < lasting_ns(&reason); at--)
			reasons[at] = reasons[at - 1];
		reasons[at] = reason;
	}
}

void why_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct telling telling = {
		.out = out, .daemon = daemon, .viewer = node->viewer, .limiter = node->limiter};
	struct reason reasons[REASONS_MAX];
	size_t count;
	uint32_t told = 0;

	(void)uid;
	if (daemon->freezer) {
		fprintf(out, "frozen by process %" PRIu32 "\n", frozen_by(daemon));
		told++;
	}
	told += tell_members(&telling);
	engine_refresh(&daemon->engine, node->limiter, clock_ns());
	count = reason_list(&daemon->engine.schedule, node->limiter, reasons);
	sort_reasons(reasons, count);
	for (size_t i = 0; i < count; i++) {
		if (is_idle(&telling, &reasons[i]))
			continue;
		tell_reason(&telling, &reasons[i]);
		told++;
	}
	if (!told)
		fputs("nothing\n", out);
}
