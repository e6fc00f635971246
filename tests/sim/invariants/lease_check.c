/* lease_check - one leaf, one host: see lease_check.h. */
#include "tests/sim/invariants/lease_check.h"
#include "tests/sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_SEC;
}

static bool is_same_kind(const struct run *a, const struct run *b)
{
	return a->cut == b->cut && a->reserve == b->reserve;
}

static bool overlaps(const struct run *a, const struct run *b)
{
	return is_same_kind(a, b) && a->first <= b->last && b->first <= a->last;
}

/* The first of those that begin at @leaf or behind it. */
static uint32_t place_of(const struct lease_check *check, uint32_t leaf)
{
	uint32_t low = 0, high = check->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (check->held[middle]->run.first < leaf)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first of those that may have a leaf of @run, which end where one begins behind it. */
static uint32_t first_about(const struct lease_check *check, const struct run *run)
{
	return place_of(check, run->first < check->longest ? 0 : run->first - check->longest + 1);
}

static bool is_about(const struct lease_check *check, uint32_t at, const struct run *run)
{
	return at < check->count && check->held[at]->run.first <= run->last;
}

static void add(struct lease_check *check, struct held *held)
{
	uint32_t size = held->run.last - held->run.first + 1;
	uint32_t at = place_of(check, held->run.first);

	if (check->count == check->room) {
		uint32_t room = check->room * 2 + 16;
		struct held **larger = memory_get(room * sizeof(*larger));

		if (check->count)
			memcpy(larger, check->held, check->count * sizeof(*larger));
		free(check->held);
		check->held = larger;
		check->room = room;
	}
	memmove(check->held + at + 1, check->held + at,
		(check->count - at) * sizeof(struct held *));
	check->held[at] = held;
	check->count++;
	if (held->run.cut > check->cut)
		check->newest = 0;
	check->cut = held->run.cut > check->cut ? held->run.cut : check->cut;
	check->newest += held->run.cut == check->cut;
	check->longest = size > check->longest ? size : check->longest;
}

static void remove_held(struct held *held)
{
	struct lease_check *check = held->check;
	uint32_t at = place_of(check, held->run.first);

	while (check->held[at] != held)
		at++;
	memmove(check->held + at, check->held + at + 1,
		(--check->count - at) * sizeof(struct held *));
	check->newest -= held->run.cut == check->cut;
	*held->back = held->next;
	if (held->next)
		held->next->back = held->back;
	free(held);
}

static void count_rivals(const struct held *held, int change)
{
	struct lease_check *check = held->check;
	uint32_t at = first_about(check, &held->run);

	for (; is_about(check, at, &held->run); at++) {
		if (check->held[at]->holder != held->holder &&
		    overlaps(&check->held[at]->run, &held->run))
			check->held[at]->rivals += (uint32_t)change;
	}
}

static uint32_t rivals_of(const struct held *held)
{
	const struct lease_check *check = held->check;
	uint32_t at = first_about(check, &held->run), rivals = 0;

	for (; is_about(check, at, &held->run); at++)
		rivals += check->held[at]->holder != held->holder &&
			  overlaps(&check->held[at]->run, &held->run);
	return rivals;
}

static void print_run(const struct run *run, char text[WHY_TEXT])
{
	snprintf(text, WHY_TEXT, "%s %u to %u of cut %llu", run->reserve ? "reserve" : "leaves",
		 run->first, run->last, (unsigned long long)run->cut);
}

/* Tells whether only the holder of @held may use it, and others by no other cut. */
static bool is_alone(const struct held *held, uint64_t now_ns, char why[WHY_TEXT])
{
	const struct lease_check *check = held->check;
	char mine[WHY_TEXT], others[WHY_TEXT];
	bool is_one_cut = check->newest == check->count;
	uint32_t at = is_one_cut ? first_about(check, &held->run) : 0;

	for (; at < check->count && (!is_one_cut || is_about(check, at, &held->run)); at++) {
		const struct held *h = check->held[at];

		if (h->holder == held->holder || h->holder->end_ns <= now_ns ||
		    (h->run.cut == held->run.cut && !overlaps(&h->run, &held->run)))
			continue;
		print_run(&held->run, mine);
		print_run(&h->run, others);
		snprintf(why, WHY_TEXT, "%s may use %.100s, and %s %.100s, for another %.9f s",
			 held->holder->name, mine, h->holder->name, others,
			 seconds(h->holder->end_ns - now_ns));
		return false;
	}
	return true;
}

/* Holds @run as @like is held, with its uses; NULL: from now on. */
static struct held *hold(struct lease_check *check, struct holder *holder, const struct run *run,
			 const struct held *like)
{
	struct held *held = memory_get(sizeof(*held));

	if (like)
		*held = *like;
	held->holder = holder;
	held->check = check;
	held->run = *run;
	held->next = holder->first;
	held->back = &holder->first;
	if (held->next)
		held->next->back = &held->next;
	holder->first = held;
	add(check, held);
	held->rivals = rivals_of(held);
	count_rivals(held, 1);
	return held;
}

/* Notes the last use of @held, which ends, with the other runs that have used a leaf of it. */
static void leave_word(const struct held *held)
{
	struct lease_check *check = held->check;
	uint32_t at = first_about(check, &held->run);

	for (; held->is_used && is_about(check, at, &held->run); at++) {
		struct held *h = check->held[at];

		if (h->holder != held->holder && h->is_used &&
		    h->first_use_ns < held->last_use_ns && overlaps(&h->run, &held->run)) {
			h->user = held->holder;
			h->user_ns = held->last_use_ns;
		}
	}
}

/* @held ends but for what is left of it on both sides of leaves @first to @last. */
static void cut_out(struct held *held, uint32_t first, uint32_t last)
{
	struct run before = held->run, behind = held->run;

	before.last = first - 1;
	behind.first = last + 1;
	count_rivals(held, -1);
	leave_word(held);
	if (held->run.first < first)
		hold(held->check, held->holder, &before, held);
	if (held->run.last > last)
		hold(held->check, held->holder, &behind, held);
	remove_held(held);
}

bool lease_check_begins(struct lease_check *check, struct holder *holder, const struct run *run,
			uint64_t now_ns, char why[WHY_TEXT])
{
	const struct held *held;

	for (const struct held *h = holder->first; h; h = h->next) {
		struct run rest = *run;

		if (h->check != check || !overlaps(&h->run, run))
			continue;
		/* It has some of them, and goes on with those. */
		rest.last = h->run.first - 1;
		if (run->first < h->run.first &&
		    !lease_check_begins(check, holder, &rest, now_ns, why))
			return false;
		rest = *run;
		rest.first = h->run.last + 1;
		return run->last <= h->run.last ||
		       lease_check_begins(check, holder, &rest, now_ns, why);
	}
	held = hold(check, holder, run, NULL);
	return holder->end_ns <= now_ns || is_alone(held, now_ns, why);
}

void lease_check_ends(struct lease_check *check, struct holder *holder, const struct run *run)
{
	struct held *held = holder->first, *next;

	for (; held; held = next) {
		next = held->next;
		if (held->check == check && held->run.reserve == run->reserve &&
		    held->run.first <= run->last && run->first <= held->run.last)
			cut_out(held, run->first, run->last);
	}
}

void lease_check_ends_all(struct holder *holder)
{
	while (holder->first)
		cut_out(holder->first, holder->first->run.first, holder->first->run.last);
}

bool lease_check_has(const struct lease_check *check, const struct holder *holder,
		     const struct run *run, uint32_t leaf)
{
	struct run one = *run;

	one.first = leaf;
	one.last = leaf;
	for (const struct held *h = holder->first; h; h = h->next) {
		if (h->check == check && overlaps(&h->run, &one))
			return true;
	}
	return false;
}

static bool refuse_use(const struct held *held, const struct holder *other, uint64_t other_ns,
		       uint64_t now_ns, char why[WHY_TEXT])
{
	char run[WHY_TEXT];

	print_run(&held->run, run);
	snprintf(why, WHY_TEXT,
		 "%.100s: %s granted from them %.9f s ago, and %s does, by the lease that it used "
		 "%.9f s ago",
		 run, other->name, seconds(now_ns - other_ns), held->holder->name,
		 seconds(now_ns - held->first_use_ns));
	return false;
}

/* Tells whether no other host has used a leaf of it since @held was used first. */
static bool uses(struct held *held, uint64_t now_ns, char why[WHY_TEXT])
{
	const struct lease_check *check = held->check;
	uint32_t at = first_about(check, &held->run);

	if (!held->is_used)
		held->first_use_ns = now_ns;
	held->is_used = true;
	held->last_use_ns = now_ns;
	if (held->user)
		return refuse_use(held, held->user, held->user_ns, now_ns, why);
	for (; held->rivals && is_about(check, at, &held->run); at++) {
		const struct held *h = check->held[at];

		if (h->holder != held->holder && h->is_used &&
		    h->last_use_ns > held->first_use_ns && overlaps(&h->run, &held->run))
			return refuse_use(held, h->holder, h->last_use_ns, now_ns, why);
	}
	return true;
}

bool lease_check_grants(const struct lease_check *check, struct holder *holder, uint64_t now_ns,
			char why[WHY_TEXT])
{
	for (struct held *h = holder->first; h; h = h->next) {
		if (h->check == check && !uses(h, now_ns, why))
			return false;
	}
	return true;
}

bool lease_check_right(struct holder *holder, uint64_t end_ns, uint64_t now_ns, char why[WHY_TEXT])
{
	bool begins = holder->end_ns <= now_ns && end_ns > now_ns;

	holder->end_ns = end_ns;
	for (const struct held *h = holder->first; begins && h; h = h->next) {
		if (!is_alone(h, now_ns, why))
			return false;
	}
	return true;
}

void lease_check_free(struct lease_check *check)
{
	free(check->held);
	*check = (struct lease_check){0};
}
