/* allowance - what a service says that it still allows, see allowance.h. */
#include "core/limiter/allowance.h"
#include "core/values/quantity.h"

#include <string.h>

static const int64_t LEAST_LEFT = INT64_MIN / 2;

/*
 * Of a fleet: reports whose ends are no further from each other than this part of the time until
 * then are taken for reports of one window. Services tell whole seconds, and hosts hear late.
 */
enum { CLOSE_PART = 32 };

static uint64_t least_of(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Returns what @leaves of @whole come to of @tokens, rounded down; up. */
static int64_t worth(uint64_t tokens, uint32_t leaves, uint32_t whole)
{
	return whole ? (int64_t)((u128)tokens * leaves / whole) : 0;
}

static int64_t price(uint64_t tokens, uint32_t leaves, uint32_t whole)
{
	return whole ? (int64_t)(((u128)tokens * leaves + whole - 1) / whole) : 0;
}

/* Returns this host's share of @at. */
static int64_t share_of(const struct allowances *allowances, const struct allowance *at)
{
	return allowances->whole ? worth(at->most, at->part, allowances->whole) : (int64_t)at->most;
}

static void remove_at(struct allowances *allowances, uint32_t i)
{
	struct allowance *at = &allowances->list[i];

	allowances->count--;
	memmove(at, at + 1, (allowances->count - i) * sizeof(*at));
}

/*
 * Tells whether @report says nothing that @other does not, whatever tokens come back, and whatever
 * leaves come and go. The end of a report that another host told is not known exactly, and it may
 * be over before that; and a report that is to be told has to stay.
 */
static bool is_implied(const struct allowances *allowances, const struct allowance *report,
		       const struct allowance *other)
{
	if (other->most > report->most || other->until_ns < report->until_ns)
		return false;
	if (!allowances->whole)
		return other->left <= report->left;
	if (other->id != ALLOWANCE_UNTOLD &&
	    (other->id != ALLOWANCE_JOINED || report->id == ALLOWANCE_UNTOLD))
		return false;
	return other->part <= report->part && !report->joined &&
	       report->left == share_of(allowances, report);
}

/* Puts @second, which ends no sooner, into @first: both hold afterwards. */
static void join(struct allowance *first, const struct allowance *second)
{
	bool untold = first->id == ALLOWANCE_UNTOLD || second->id == ALLOWANCE_UNTOLD;
	uint64_t cost = first->joined ? first->cost : first->most;

	first->cost = most_of(cost, second->joined ? second->cost : second->most);
	first->cost_before = most_of(first->joined ? first->cost_before : 0,
				     second->joined ? second->cost_before : 0);
	first->turned_ns = most_of(first->joined ? first->turned_ns : 0,
				   second->joined ? second->turned_ns : 0);
	if (second->left < first->left)
		first->left = second->left;
	first->most = least_of(first->most, second->most);
	if (second->part < first->part)
		first->part = second->part;
	first->until_ns = second->until_ns;
	first->id = untold ? ALLOWANCE_UNTOLD : ALLOWANCE_JOINED;
	first->joined = true;
}

/* Makes one of the two whose ends are closest to each other, if that is no more than @within_ns. */
static void join_closest(struct allowances *allowances, uint64_t within_ns)
{
	struct allowance *list = allowances->list;
	uint32_t closest = 0;

	for (uint32_t i = 1; i + 1 < allowances->count; i++) {
		if (list[i + 1].until_ns - list[i].until_ns <
		    list[closest + 1].until_ns - list[closest].until_ns)
			closest = i;
	}
	if (allowances->count < 2 ||
	    list[closest + 1].until_ns - list[closest].until_ns > within_ns)
		return;
	join(&list[closest], &list[closest + 1]);
	remove_at(allowances, closest + 1);
}

/* Puts @report into its place among the others, for which there is room. */
static void insert(struct allowances *allowances, const struct allowance *report)
{
	struct allowance *list = allowances->list;
	uint32_t at = 0;

	while (at < allowances->count && list[at].until_ns <= report->until_ns)
		at++;
	memmove(&list[at + 1], &list[at], (allowances->count - at) * sizeof(*list));
	list[at] = *report;
	allowances->count++;
}

/* Joins @report to one of about the same end, if there is one. */
static bool join_to_close(struct allowances *allowances, const struct allowance *report)
{
	uint64_t now_ns = allowances->now_ns, until_ns = report->until_ns, apart_ns;
	uint64_t within_ns = until_ns > now_ns ? (until_ns - now_ns) / CLOSE_PART : 0;
	struct allowance joined;

	for (uint32_t i = 0; allowances->whole && i < allowances->count; i++) {
		const struct allowance *at = &allowances->list[i];
		bool is_before = at->until_ns <= until_ns;

		apart_ns = is_before ? until_ns - at->until_ns : at->until_ns - until_ns;
		if (apart_ns > within_ns)
			continue;
		joined = is_before ? *at : *report;
		join(&joined, is_before ? report : at);
		remove_at(allowances, i);
		insert(allowances, &joined);
		return true;
	}
	return false;
}

void allowances_add(struct allowances *allowances, uint64_t tokens, uint64_t until_ns,
		    uint32_t part, uint64_t id)
{
	struct allowance report = {.most = tokens, .until_ns = until_ns, .id = id, .part = part};

	report.left = share_of(allowances, &report);
	for (uint32_t i = 0; i < allowances->count; i++) {
		if (is_implied(allowances, &report, &allowances->list[i]))
			return;
	}
	for (uint32_t i = allowances->count; i--;) {
		if (is_implied(allowances, &allowances->list[i], &report))
			remove_at(allowances, i);
	}
	if (join_to_close(allowances, &report))
		return;
	if (allowances->count == ALLOWANCES_MAX)
		join_closest(allowances, UINT64_MAX);
	insert(allowances, &report);
}

void allowances_set_whole(struct allowances *allowances, uint32_t whole)
{
	const struct allowances before = *allowances;

	allowances->whole = whole;
	for (uint32_t i = 0; i < allowances->count; i++) {
		struct allowance *at = &allowances->list[i];

		at->left += share_of(allowances, at) - share_of(&before, &before.list[i]);
		/* One that was joined may have more left than the share it has by now. */
		if (!whole && at->left > (int64_t)at->most)
			at->left = (int64_t)at->most;
	}
}

void allowances_gain(struct allowances *allowances, uint32_t leaves)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		struct allowance *at = &allowances->list[i];
		int64_t before = share_of(allowances, at);

		at->part += leaves;
		at->left += at->joined ? worth(at->most, leaves, allowances->whole)
				       : share_of(allowances, at) - before;
	}
}

/* Returns the tokens of which a leaf of @at, which was joined, takes its part as it goes. */
static uint64_t cost_of(const struct allowance *at)
{
	return most_of(at->cost, at->cost_before);
}

void allowances_lose(struct allowances *allowances, uint32_t leaves)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		struct allowance *at = &allowances->list[i];
		uint32_t lost = leaves < at->part ? leaves : at->part;
		int64_t before = share_of(allowances, at);

		at->part -= lost;
		at->left -= at->joined ? price(cost_of(at), lost, allowances->whole)
				       : before - share_of(allowances, at);
	}
}

/* Has @at, which no other host knows, be told without what leaves that are lost have granted. */
static void reduce_untold(const struct allowances *allowances, struct allowance *at)
{
	int64_t granted = share_of(allowances, at) - at->left;

	if (at->id == ALLOWANCE_UNTOLD && granted > 0)
		at->most -= least_of((uint64_t)granted, at->most);
}

void allowances_bound(struct allowances *allowances, uint32_t leaves)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		struct allowance *at = &allowances->list[i];
		int64_t share;

		if (at->part > leaves) {
			reduce_untold(allowances, at);
			at->part = leaves;
		}
		share = share_of(allowances, at);
		if (at->left > share)
			at->left = share;
	}
}

/* Returns how many leaves may go for @at: tokens that were granted are of those that stay. */
static uint32_t spare_of(const struct allowances *allowances, const struct allowance *at)
{
	uint64_t tokens = at->joined ? cost_of(at) : at->most;
	u128 leaves;

	if (at->left < 0)
		return 0;
	if (!tokens)
		return UINT32_MAX;
	if (at->joined) {
		leaves = (u128)at->left * allowances->whole / tokens;
	} else {
		u128 granted = (u128)(share_of(allowances, at) - at->left);
		u128 stay = (granted * allowances->whole + tokens - 1) / tokens;

		leaves = at->part > stay ? at->part - stay : 0;
	}
	return leaves < at->part ? (uint32_t)leaves : at->part;
}

uint32_t allowances_spare(const struct allowances *allowances)
{
	uint32_t spare = UINT32_MAX;

	for (uint32_t i = 0; allowances->whole && i < allowances->count; i++) {
		uint32_t of = spare_of(allowances, &allowances->list[i]);

		spare = of < spare ? of : spare;
	}
	return spare;
}

void allowances_rename(struct allowances *allowances, uint64_t id, uint64_t other)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		if (allowances->list[i].id == id)
			allowances->list[i].id = other;
	}
}

void allowances_end(struct allowances *allowances, uint64_t id)
{
	for (uint32_t i = allowances->count; i--;) {
		if (allowances->list[i].id == id)
			remove_at(allowances, i);
	}
}

void allowances_end_told(struct allowances *allowances)
{
	for (uint32_t i = allowances->count; i--;) {
		if (allowances->list[i].id != ALLOWANCE_UNTOLD)
			remove_at(allowances, i);
	}
}

void allowances_settle(struct allowances *allowances, uint64_t settle_ns)
{
	/* A report that was not told may have been joined to others: those go on counting. */
	if (allowances_have_untold(allowances))
		return;
	for (uint32_t i = 0; i < allowances->count; i++) {
		struct allowance *at = &allowances->list[i];

		if (!at->joined || allowances->now_ns - at->turned_ns < settle_ns)
			continue;
		at->cost_before = at->turned_ns ? at->cost : cost_of(at);
		at->cost = at->most;
		at->turned_ns = allowances->now_ns;
	}
}

bool allowances_have_untold(const struct allowances *allowances)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		if (allowances->list[i].id == ALLOWANCE_UNTOLD)
			return true;
	}
	return false;
}

void allowances_run(struct allowances *allowances, uint64_t now_ns)
{
	allowances->now_ns = now_ns;
	while (allowances->count && allowances->list[0].until_ns <= now_ns)
		remove_at(allowances, 0);
}

void allowances_take(struct allowances *allowances, uint64_t tokens)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		int64_t *left = &allowances->list[i].left;

		*left = *left - LEAST_LEFT < (int64_t)tokens ? LEAST_LEFT : *left - (int64_t)tokens;
	}
}

void allowances_put(struct allowances *allowances, uint64_t tokens)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		struct allowance *at = &allowances->list[i];
		int64_t room = share_of(allowances, at) - at->left;

		at->left += room < (int64_t)tokens ? room : (int64_t)tokens;
	}
}

const struct allowance *allowances_least(const struct allowances *allowances)
{
	const struct allowance *least = NULL;

	for (uint32_t i = 0; i < allowances->count; i++) {
		if (!least || allowances->list[i].left < least->left)
			least = &allowances->list[i];
	}
	return least;
}

bool allowances_have(const struct allowances *allowances, uint64_t tokens)
{
	const struct allowance *least = allowances_least(allowances);

	return !least || (least->left >= 0 && (uint64_t)least->left >= tokens);
}

uint64_t allowances_when(const struct allowances *allowances, uint64_t tokens)
{
	uint64_t at_ns = 0;

	for (uint32_t i = 0; i < allowances->count; i++) {
		const struct allowance *at = &allowances->list[i];

		if (at->left < 0 || (uint64_t)at->left < tokens)
			at_ns = at->until_ns;
	}
	return at_ns;
}

uint64_t allowances_until(const struct allowances *allowances, uint64_t at_ns, uint64_t most)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		const struct allowance *at = &allowances->list[i];
		uint64_t left = at->left < 0 ? 0 : (uint64_t)at->left;

		if (at->until_ns > at_ns && left < most)
			most = left;
	}
	return most;
}
