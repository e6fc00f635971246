/* order_check - minima, classes and weights among siblings, see order_check.h. */
#include "tests/sim/invariants/order_check.h"
#include "tests/sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>

/* Tags are compared in whole units, of which a token of a sibling of weight 1 has so many. */
enum { TAGS_PER_TOKEN = 10000 };

/* More units than any minimum brings. */
#define SAVED_MAX ((i128)1 << 100)

typedef unsigned long long ull;

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static i128 lesser(i128 a, i128 b)
{
	return a < b ? a : b;
}

/* Returns the pair of siblings @first and @second, in ascending order of their slots. */
static struct sibling_pair *pair_of(const struct order_check *check,
				    const struct sibling_check *first,
				    const struct sibling_check *second)
{
	return &check->pairs[second->slot * (second->slot - 1) / 2 + first->slot];
}

/* Begins to count anew how much of its minimum is owed. */
static void forgive(struct sibling_check *sibling)
{
	sibling->owed = 0;
	sibling->paid = sibling->ahead;
}

void order_check_interrupt(struct sibling_check *sibling)
{
	const struct order_check *check = sibling->check;

	sibling->ready = false;
	sibling->slack = 0;
	forgive(sibling);
	for (unsigned int i = 0; check && check->pairs && i < check->slots; i++) {
		struct sibling_check *other = check->siblings[i];

		if (other && i < sibling->slot)
			pair_of(check, other, sibling)->is_open = false;
		else if (other && i > sibling->slot)
			pair_of(check, sibling, other)->is_open = false;
	}
}

/* Lets flow in what @sibling is to have at least, and may have though it is of a lower class. */
static void flow_in(struct sibling_check *sibling, uint64_t now_ns)
{
	i128 came = (i128)sibling->terms.min.num * (i128)(now_ns - sibling->at_ns);

	sibling->at_ns = now_ns;
	if (sibling->ready)
		sibling->owed += came;
	sibling->saved += came;
	sibling->ahead = sibling->ahead > came ? sibling->ahead - came : 0;
}

/*
 * Saved up is at most a second of the minimum, and the largest take of each sibling with a minimum:
 * of those that wait, and of this one also the next and the last.
 */
static void spill(struct sibling_check *sibling, uint64_t tokens)
{
	const struct fraction *min = &sibling->terms.min;
	uint64_t takes = larger(larger(tokens, sibling->most),
				larger(sibling->last, sibling->largest));
	i128 most;

	for (unsigned int i = 0; sibling->check && i < sibling->check->slots; i++) {
		const struct sibling_check *other = sibling->check->siblings[i];

		if (other && other != sibling && other->terms.min.num)
			takes += larger(larger(other->largest, other->most), other->last);
	}
	most = (i128)min->num * (i128)NSEC_PER_SEC + (i128)takes * (i128)min->den;
	sibling->saved = sibling->saved < most ? sibling->saved : most;
}

/*
 * @sibling begins among those of @check (NULL: it is not among them yet). It has saved up nothing,
 * so one take, of whatever size, is due; but it may be as far behind as others with a minimum are.
 */
static void begin_saving(const struct order_check *check, struct sibling_check *sibling)
{
	for (unsigned int i = 0; check && i < check->slots; i++) {
		const struct sibling_check *other = check->siblings[i];

		if (other && other != sibling && other->terms.min.num) {
			/* That is spilled to the most it may be when it is granted a take. */
			sibling->saved = SAVED_MAX;
			return;
		}
	}
	sibling->saved = sibling->saved > 0 ? 0 : sibling->saved;
}

void order_check_tune(struct sibling_check *sibling, const struct order_terms *terms,
		      uint64_t now_ns)
{
	const struct order_terms *old = &sibling->terms;

	if (old->weight == terms->weight && old->class == terms->class &&
	    old->min.num == terms->min.num && old->min.den == terms->min.den)
		return;
	order_check_interrupt(sibling);
	sibling->terms = *terms;
	sibling->at_ns = now_ns;
	sibling->ever = 0;
	sibling->saved = 0;
	begin_saving(sibling->check, sibling);
	sibling->ahead = 0;
}

void order_check_join(struct order_check *check, struct sibling_check *sibling, uint64_t now_ns)
{
	bool is_granted_now = sibling->recent && sibling->recent_ns == now_ns;

	if (sibling->saved >= 0 && !is_granted_now)
		begin_saving(check, sibling);
	for (unsigned int i = 0; i < ORDER_SIBLINGS_MAX; i++) {
		if (check->siblings[i])
			continue;
		if (i && !check->pairs)
			check->pairs = memory_get(ORDER_PAIRS * sizeof(*check->pairs));
		check->siblings[i] = sibling;
		sibling->check = check;
		sibling->slot = i;
		if (i >= check->slots)
			check->slots = i + 1;
		order_check_interrupt(sibling);
		return;
	}
}

/* Counts the tokens that @sibling got beyond its part towards its minimum. */
static void pay(struct sibling_check *sibling)
{
	sibling->saved -= (i128)sibling->beyond * (i128)sibling->terms.min.den;
	sibling->paid_now += sibling->beyond;
	sibling->beyond = 0;
}

static void end_step(struct sibling_check *sibling)
{
	/* That is of the whole step, of which some was counted at once. */
	sibling->beyond = larger(sibling->beyond, sibling->paid_now) - sibling->paid_now;
	pay(sibling);
	sibling->paid_now = 0;
	sibling->has_min = false;
	sibling->altered = false;
	sibling->got = 0;
	sibling->last = sibling->most ? sibling->most : sibling->last;
	sibling->most = 0;
	sibling->now_ready = false;
}

void order_check_leave(struct sibling_check *sibling)
{
	struct order_check *check = sibling->check;

	if (!check)
		return;
	order_check_interrupt(sibling);
	end_step(sibling);
	check->siblings[sibling->slot] = NULL;
	while (check->slots && !check->siblings[check->slots - 1])
		check->slots--;
	sibling->check = NULL;
}

void order_check_lose(const struct order_check *below, struct sibling_check *sibling)
{
	for (unsigned int i = 0; i < below->slots; i++) {
		const struct sibling_check *other = below->siblings[i];

		if (other && other->ready && !other->altered)
			return;
	}
	sibling->altered = true;
}

/*
 * Returns how far @sibling, if it lives by its minimum, may be ahead by weight, in tokens. A small
 * take does not lessen what a large one may leave.
 */
static i128 lead_of(const struct sibling_check *sibling)
{
	const struct fraction *min = &sibling->terms.min;
	i128 second = (i128)min->num * (i128)NSEC_PER_SEC / min->den;

	return min->num ? second + 2 * (i128)sibling->ever : 0;
}

/*
 * Sibling @i of @pair is beyond its bound by @over tokens * @weight of the other. Where it got them
 * for its minimum it is excused; else it may have at most @room. False: it must not be.
 */
static bool excuse(struct sibling_pair *pair, int i, struct sibling_check *sibling, i128 over,
		   i128 room, uint64_t weight)
{
	uint64_t tokens = (uint64_t)((over + weight - 1) / weight);

	if (over <= 0)
		return true;
	if (!sibling->has_min)
		return sibling->terms.min.num && over <= room;
	pair->excused[i] += tokens;
	sibling->beyond = larger(sibling->beyond, tokens < sibling->got ? tokens : sibling->got);
	return true;
}

/*
 * Returns by how much sibling @i of @pair is ahead of the other, in tokens * both weights. Tokens
 * that it is excused for are no lead, but they keep the other from having one: they move its tag.
 */
static i128 lead_in(const struct sibling_pair *pair, struct sibling_check *const two[2], int i)
{
	uint64_t its = two[i]->served - pair->served[i] - pair->excused[i];
	uint64_t others = two[!i]->served - pair->served[!i];

	return (i128)its * two[!i]->terms.weight - (i128)others * two[i]->terms.weight;
}

static bool check_pair(struct sibling_pair *pair, struct sibling_check *const two[2],
		       char why[WHY_TEXT])
{
	uint64_t weights[2] = {two[0]->terms.weight, two[1]->terms.weight};
	i128 by_weight = (i128)weights[0] * weights[1] / TAGS_PER_TOKEN, by_min[2];
	bool keeps = true;

	for (int i = 0; i < 2; i++) {
		pair->most[i] = larger(pair->most[i], two[i]->most);
		by_weight += (i128)pair->most[i] * weights[!i];
		by_min[i] = lead_of(two[i]) * weights[!i];
	}
	for (int i = 0; i < 2; i++) {
		i128 allowed = by_weight + by_min[!i];
		i128 over = lead_in(pair, two, i) - pair->least[i] - allowed;

		keeps &= excuse(pair, i, two[i], over, allowed - by_min[i], weights[!i]);
		pair->least[i] = lesser(pair->least[i], lead_in(pair, two, i));
	}
	if (!keeps)
		snprintf(
			why, WHY_TEXT,
			"two siblings of weights %llu and %llu got %llu and %llu tokens since both "
			"are ready, with takes of at most %llu and %llu",
			(ull)weights[0], (ull)weights[1], (ull)(two[0]->served - pair->served[0]),
			(ull)(two[1]->served - pair->served[1]), (ull)pair->most[0],
			(ull)pair->most[1]);
	return keeps;
}

/*
 * Compares @sibling with the others; in the middle of a step with those that were not altered in
 * it: they are as ready as they were.
 */
static bool check_weights(struct order_check *check, struct sibling_check *sibling, bool is_rest,
			  char why[WHY_TEXT])
{
	for (unsigned int i = 0; check->pairs && i < check->slots; i++) {
		struct sibling_check *other = check->siblings[i];
		bool comes_first = i < sibling->slot;
		struct sibling_check *two[2] = {comes_first ? other : sibling,
						comes_first ? sibling : other};
		struct sibling_pair *pair;

		if (!other || other == sibling || (!is_rest && other->altered))
			continue;
		pair = pair_of(check, two[0], two[1]);
		if (pair->is_open && !check_pair(pair, two, why))
			return false;
	}
	return true;
}

/* Looks for a lower class that was granted in this step while @sibling was ready. */
static bool check_classes(const struct order_check *check, const struct sibling_check *sibling,
			  uint64_t since, char why[WHY_TEXT])
{
	for (uint32_t class = 0; class < sibling->terms.class; class ++) {
		if (check->granted[class] <= check->step || check->granted[class] <= since)
			continue;
		snprintf(why, WHY_TEXT, "class %u is served while a sibling of class %u is ready",
			 class, sibling->terms.class);
		return false;
	}
	return true;
}

static bool check_min(const struct sibling_check *sibling, char why[WHY_TEXT])
{
	/* Deadlines are whole nanoseconds. */
	i128 slack = (i128)sibling->slack * sibling->terms.min.den + sibling->terms.min.num +
		     sibling->paid;

	if (!sibling->check || !sibling->check->is_sure || !sibling->terms.min.num ||
	    sibling->owed <= slack)
		return true;
	snprintf(why, WHY_TEXT,
		 "%.9g tokens of its minimum are owed to a sibling, at most %.9g may",
		 (double)sibling->owed / (double)sibling->terms.min.den,
		 (double)slack / (double)sibling->terms.min.den);
	return false;
}

/*
 * Tells whether a sibling of a higher class is ready: then a grant to @sibling is for its minimum.
 * Tokens that it gets beside its minimum are not held against it.
 */
static bool is_preceded(const struct order_check *check, const struct sibling_check *sibling)
{
	for (unsigned int i = 0; i < check->slots; i++) {
		const struct sibling_check *other = check->siblings[i];

		if (other && other->ready && !other->altered &&
		    other->terms.class > sibling->terms.class)
			return true;
	}
	return false;
}

/* Notes a grant, and whether it was for its minimum; else no higher class may be ready. */
static void note_grant(struct order_check *check, struct sibling_check *sibling,
		       const struct order_grant *grant)
{
	i128 units = (i128)grant->tokens * (i128)sibling->terms.min.den;

	spill(sibling, grant->tokens);
	sibling->has_min = sibling->terms.min.num && sibling->saved >= 0;
	sibling->beyond = 0;
	if (!sibling->has_min)
		check->granted[sibling->terms.class] = grant->number;
	else if (!grant->returned && is_preceded(check, sibling))
		sibling->beyond = grant->tokens;
	sibling->owed = sibling->owed > units ? sibling->owed - units : 0;
	sibling->ahead = sibling->ahead > units ? sibling->ahead : units;
	if (!sibling->owed) {
		sibling->slack = 0;
		sibling->paid = sibling->ahead;
	}
	check->changed = true;
	sibling->served += grant->tokens;
	sibling->most = larger(sibling->most, grant->tokens);
	sibling->ever = larger(sibling->ever, grant->tokens);
	if (sibling->recent_ns != grant->now_ns)
		sibling->recent = 0;
	sibling->recent = larger(sibling->recent, grant->tokens);
	sibling->recent_ns = grant->now_ns;
	sibling->got += grant->tokens;
	sibling->altered = true;
	if (!sibling->check)
		end_step(sibling);
}

/*
 * Tells whether @sibling, if it is ready now, was so all along this step: if nothing came back,
 * which it may have lacked before, and else if it was ready before and was not altered.
 */
static bool is_known(const struct sibling_check *sibling, bool returned)
{
	return !returned || (sibling->ready && !sibling->altered);
}

bool order_check_grant(struct order_check *check, struct sibling_check *sibling,
		       const struct order_grant *grant, char why[WHY_TEXT])
{
	bool keeps;

	flow_in(sibling, grant->now_ns);
	keeps = check_min(sibling, why) && (!is_known(sibling, grant->returned) ||
					    check_classes(check, sibling, grant->since, why));

	note_grant(check, sibling, grant);
	keeps = keeps && (!sibling->check || check_weights(check, sibling, false, why));
	pay(sibling);
	return keeps;
}

void order_check_ready(struct sibling_check *sibling, uint64_t since)
{
	if (!sibling->now_ready || since < sibling->since)
		sibling->since = since;
	sibling->now_ready = true;
}

void order_check_charge(struct order_check *check)
{
	for (unsigned int i = 0; i < check->slots; i++) {
		if (check->siblings[i])
			forgive(check->siblings[i]);
	}
}

/* Begins the windows of @sibling and all others that are ready. */
static void open_pairs(const struct order_check *check, struct sibling_check *sibling)
{
	for (unsigned int i = 0; i < check->slots && sibling->ready; i++) {
		struct sibling_check *other = check->siblings[i];
		bool comes_first = i < sibling->slot;
		struct sibling_check *two[2] = {comes_first ? other : sibling,
						comes_first ? sibling : other};
		struct sibling_pair *pair;

		if (!other || other == sibling || !other->ready ||
		    other->terms.class != sibling->terms.class)
			continue;
		pair = pair_of(check, two[0], two[1]);
		if (pair->is_open)
			continue;
		*pair = (struct sibling_pair){.is_open = true};
		for (int n = 0; n < 2; n++) {
			pair->served[n] = two[n]->served;
			pair->most[n] = two[n]->recent;
		}
	}
}

/*
 * Returns the tokens that may be owed of the minimum of @sibling: a take of its own, one of each
 * sibling with a minimum, which may be due before, and one of another.
 */
static uint64_t slack_of(const struct order_check *check, const struct sibling_check *sibling)
{
	uint64_t slack = sibling->largest, other = 0;

	for (unsigned int i = 0; i < check->slots; i++) {
		const struct sibling_check *s = check->siblings[i];

		if (!s || s == sibling)
			continue;
		if (s->terms.min.num)
			slack += larger(s->largest, s->most);
		else
			other = larger(other, larger(s->largest, s->most));
	}
	return slack + other;
}

/*
 * Notes whether the minima of all siblings together are within the rate that the limiter is sure
 * of. After a time in which they were not, siblings may be due for as long as a second and a take:
 * the rate has to make up for that first, by as much as it is above the minima.
 */
static void note_sure(struct order_check *check, const struct order_rest *rest)
{
	double sum = 0, late = 0, rate = rest->sure.num ? fraction_per_second(&rest->sure) : 0;

	for (unsigned int i = 0; i < check->slots; i++) {
		const struct sibling_check *sibling = check->siblings[i];

		if (!sibling || !sibling->terms.min.num)
			continue;
		sum += fraction_per_second(&sibling->terms.min);
		late += (double)larger(sibling->largest, sibling->last);
	}
	if (rate > 0 && sum <= rate * (1 - 1e-9))
		check->late -= (rate - sum) * (double)(rest->now_ns - check->rest_ns) / 1e9;
	else
		check->late = sum + late;
	check->late = check->late > 0 ? check->late : 0;
	check->rest_ns = rest->now_ns;
	check->is_sure = rate > 0 && check->late <= 0;
}

/* Ends the windows of siblings that are not ready, or were not all the time. */
static void end_windows(struct order_check *check, const struct order_rest *rest)
{
	for (unsigned int i = 0; i < check->slots; i++) {
		struct sibling_check *sibling = check->siblings[i];
		bool goes_on;

		if (!sibling)
			continue;
		goes_on = sibling->ready && sibling->now_ready && sibling->since <= check->step;
		flow_in(sibling, rest->now_ns);
		if (!goes_on)
			order_check_interrupt(sibling);
		if (!check->is_sure) {
			sibling->slack = 0;
			forgive(sibling);
		}
		sibling->slack = larger(sibling->slack, slack_of(check, sibling));
		check->changed |= !goes_on && sibling->now_ready;
	}
}

static bool check_sibling(struct order_check *check, struct sibling_check *sibling,
			  const struct order_rest *rest, char why[WHY_TEXT])
{
	if (sibling->now_ready && is_known(sibling, rest->returned) &&
	    !check_classes(check, sibling, sibling->since, why))
		return false;
	if (sibling->ready && sibling->most && !check_weights(check, sibling, true, why))
		return false;
	return check_min(sibling, why);
}

/* Begins windows of all that are ready now. */
static void begin_windows(struct order_check *check)
{
	for (unsigned int i = 0; i < check->slots; i++) {
		struct sibling_check *sibling = check->siblings[i];

		if (sibling) {
			sibling->ready = sibling->now_ready;
			end_step(sibling);
		}
	}
	for (unsigned int i = 0; i < check->slots && check->changed; i++) {
		if (check->siblings[i])
			open_pairs(check, check->siblings[i]);
	}
}

bool order_check_rest(struct order_check *check, const struct order_rest *rest, char why[WHY_TEXT])
{
	end_windows(check, rest);
	for (unsigned int i = 0; i < check->slots; i++) {
		if (check->siblings[i] && !check_sibling(check, check->siblings[i], rest, why))
			return false;
	}
	begin_windows(check);
	note_sure(check, rest);
	check->changed = false;
	check->step = rest->event;
	return true;
}

void order_check_free(struct order_check *check)
{
	free(check->pairs);
	check->pairs = NULL;
}
