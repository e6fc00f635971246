/* pending - requests of the kernel that are not answered yet, see pending.h. */
#include "fs/mount/pending.h"
#include "fs/mount/channel.h"

#include "core/limiter/limiter.h"

#include <errno.h>
#include <stdlib.h>

enum { FIRST_CHAINS = 1024 };

int pending_init(struct pending_table *table, struct users *users)
{
	*table = (struct pending_table){.size = FIRST_CHAINS, .users = users};
	table->chains = calloc(table->size, sizeof(struct pending *));
	return table->chains ? 0 : -ENOMEM;
}

void pending_free(struct pending_table *table)
{
	free(table->chains);
}

static struct pending **chain_of(const struct pending_table *table, uint64_t unique)
{
	return &table->chains[unique / 2 & (table->size - 1)];
}

/* Doubles the chains. Without memory they just grow longer. */
static void grow_chains(struct pending_table *table)
{
	struct pending **old = table->chains;
	uint32_t old_size = table->size;
	struct pending **chains = calloc((size_t)old_size * 2, sizeof(struct pending *));

	if (!chains)
		return;
	table->chains = chains;
	table->size = old_size * 2;
	for (uint32_t i = 0; i < old_size; i++) {
		while (old[i]) {
			struct pending *pending = old[i];
			struct pending **chain = chain_of(table, pending->unique);

			old[i] = pending->next;
			pending->next = *chain;
			*chain = pending;
		}
	}
	free(old);
}

void pending_insert(struct pending_table *table, struct pending *pending,
		    const struct caller *caller, enum pending_kind kind)
{
	struct pending **chain;

	if (table->count >= table->size)
		grow_chains(table);
	pending->unique = caller->unique;
	pending->request = caller->request;
	pending->kind = (uint8_t)kind;
	pending->channel = channel_current();
	pending->uid = caller->uid;
	pending->pid = caller->pid;
	users_add(table->users, pending->uid, BOUND_READERS);
	chain = chain_of(table, pending->unique);
	pending->next = *chain;
	*chain = pending;
	table->count++;
	table->asked++;
	if (PENDING_ROWS[kind].queued)
		list_append(&table->queues[kind], &((struct queued *)pending)->link);
}

void pending_remove(struct pending_table *table, struct pending *pending)
{
	struct pending **at = chain_of(table, pending->unique);

	while (*at != pending)
		at = &(*at)->next;
	*at = pending->next;
	pending->next = NULL;
	users_drop(table->users, pending->uid, BOUND_READERS);
	table->count--;
	if (PENDING_ROWS[pending->kind].queued)
		list_remove(&table->queues[pending->kind], &((struct queued *)pending)->link);
}

void pending_decide(struct pending_table *table, struct pending *pending, struct outbox *outbox)
{
	pending_remove(table, pending);
	*outbox->last = pending;
	outbox->last = &pending->next;
}

struct pending *pending_find(const struct pending_table *table, uint64_t unique)
{
	struct pending *pending = *chain_of(table, unique);

	while (pending && pending->unique != unique)
		pending = pending->next;
	return pending;
}

uint64_t pending_due_ns(const struct pending_table *table)
{
	uint64_t at_ns = NEVER_NS;

	for (int kind = 0; kind < PENDING_KIND_COUNT; kind++) {
		const struct queued *first = pending_first(table, (enum pending_kind)kind);

		if (first && first->until_ns < at_ns)
			at_ns = first->until_ns;
	}
	return at_ns;
}
