/* lease_check - one partition, one host: see lease_check.h. */
#include "tests/sim/invariants/lease_check.h"
#include "tests/sim/base/memory.h"

#include <stdio.h>
#include <stdlib.h>

static struct held *find(const struct partition_check *partition, const struct holder *holder)
{
	struct held *held = partition->first;

	while (held && held->holder != holder)
		held = held->next_of_partition;
	return held;
}

/* Whether only @holder may use @partition. */
static bool is_alone(const struct partition_check *partition, const struct holder *holder,
		     uint64_t now_ns, char why[WHY_TEXT])
{
	for (const struct held *h = partition->first; h; h = h->next_of_partition) {
		if (h->holder == holder || h->holder->end_ns <= now_ns)
			continue;
		snprintf(why, WHY_TEXT,
			 "partition %u: %s may use it, and %s too, for another %.9f s",
			 partition->index, holder->name, h->holder->name,
			 (double)(h->holder->end_ns - now_ns) / (double)NSEC_PER_SEC);
		return false;
	}
	return true;
}

bool lease_check_begins(struct partition_check *partition, struct holder *holder, uint64_t now_ns,
			char why[WHY_TEXT])
{
	struct held *held;

	if (find(partition, holder))
		return true;
	held = memory_get(sizeof(*held));
	held->holder = holder;
	held->partition = partition;
	held->next = holder->first;
	held->back = &holder->first;
	if (held->next)
		held->next->back = &held->next;
	holder->first = held;
	held->next_of_partition = partition->first;
	held->back_of_partition = &partition->first;
	if (partition->first)
		partition->first->back_of_partition = &held->next_of_partition;
	partition->first = held;
	return holder->end_ns <= now_ns || is_alone(partition, holder, now_ns, why);
}

static void end(struct held *held)
{
	*held->back = held->next;
	if (held->next)
		held->next->back = held->back;
	*held->back_of_partition = held->next_of_partition;
	if (held->next_of_partition)
		held->next_of_partition->back_of_partition = held->back_of_partition;
	free(held);
}

void lease_check_ends(struct partition_check *partition, struct holder *holder)
{
	struct held *held = find(partition, holder);

	if (held)
		end(held);
}

void lease_check_ends_all(struct holder *holder)
{
	while (holder->first)
		end(holder->first);
}

/* Tells whether no other host has used it since @held was used first. */
static bool uses(struct held *held, uint64_t now_ns, char why[WHY_TEXT])
{
	struct partition_check *partition = held->partition;
	const struct use *other;

	if (partition->last.holder != held->holder)
		partition->last_by_another = partition->last;
	partition->last = (struct use){held->holder, now_ns};
	other = &partition->last_by_another;
	if (!held->is_used)
		held->first_use_ns = now_ns;
	held->is_used = true;
	if (!other->holder || other->at_ns <= held->first_use_ns)
		return true;
	snprintf(why, WHY_TEXT,
		 "partition %u: %s granted from it %.9f s ago, and %s does, by the lease "
		 "that it used %.9f s ago",
		 partition->index, other->holder->name,
		 (double)(now_ns - other->at_ns) / (double)NSEC_PER_SEC, held->holder->name,
		 (double)(now_ns - held->first_use_ns) / (double)NSEC_PER_SEC);
	return false;
}

bool lease_check_grants(struct holder *holder, const void *limiter, uint64_t now_ns,
			char why[WHY_TEXT])
{
	for (struct held *h = holder->first; h; h = h->next) {
		if (h->partition->limiter == limiter && !uses(h, now_ns, why))
			return false;
	}
	return true;
}

bool lease_check_right(struct holder *holder, uint64_t end_ns, uint64_t now_ns, char why[WHY_TEXT])
{
	bool begins = holder->end_ns <= now_ns && end_ns > now_ns;

	holder->end_ns = end_ns;
	for (const struct held *h = holder->first; begins && h; h = h->next) {
		if (!is_alone(h->partition, holder, now_ns, why))
			return false;
	}
	return true;
}
