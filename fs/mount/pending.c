/* pending - requests of the kernel that are not answered yet, see pending.h. */
#include "fs/mount/pending.h"
#include "fs/mount/channel.h"

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

/* Without memory the chains just grow longer. */
static void grow(struct pending_table *table)
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
		grow(table);
	pending->unique = caller->unique;
	pending->request = caller->request;
	pending->kind = (uint8_t)kind;
	pending->channel = channel_current();
	pending->uid = caller->uid;
	users_add(table->users, pending->uid, BOUND_READERS);
	chain = chain_of(table, pending->unique);
	pending->next = *chain;
	*chain = pending;
	table->count++;
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
}

struct pending *pending_find(const struct pending_table *table, uint64_t unique)
{
	struct pending *pending = *chain_of(table, unique);

	while (pending && pending->unique != unique)
		pending = pending->next;
	return pending;
}

void follower_append(struct pending_table *table, struct follower *follower)
{
	follower->previous = NULL;
	follower->next = table->followers;
	if (follower->next)
		follower->next->previous = follower;
	table->followers = follower;
}

void follower_leave(struct pending_table *table, struct follower *follower)
{
	if (follower->previous)
		follower->previous->next = follower->next;
	else
		table->followers = follower->next;
	if (follower->next)
		follower->next->previous = follower->previous;
}

void looker_append(struct pending_table *table, struct looker *looker)
{
	looker->next = table->lookers;
	table->lookers = looker;
}

void looker_leave(struct pending_table *table, struct looker *looker)
{
	struct looker **at = &table->lookers;

	while (*at != looker)
		at = &(*at)->next;
	*at = looker->next;
}

void writer_append(struct pending_table *table, struct writer *writer)
{
	writer->next = NULL;
	writer->previous = table->last_writer;
	if (table->last_writer)
		table->last_writer->next = writer;
	else
		table->writers = writer;
	table->last_writer = writer;
}

void writer_leave(struct pending_table *table, struct writer *writer)
{
	if (writer->previous)
		writer->previous->next = writer->next;
	else
		table->writers = writer->next;
	if (writer->next)
		writer->next->previous = writer->previous;
	else
		table->last_writer = writer->previous;
}
