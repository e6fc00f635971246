/* parameter - nodes with a number in their name, see parameter.h. */
#include "fs/state/parameter.h"

#include "core/base/siphash.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PLACES = 256 };

static const uint64_t MARK = UINT64_C(1) << 63;

/* Which of a user's names goes next; a successor makes this anew, by its open files. */
struct parameter_use {
	struct list_link link; /* in user->names while no file is open, by the last use */
	uint32_t opens;
};

struct parameter_table {
	struct parameter *places;   /* borrowed, as the next two */
	struct amounts *amounts;    /* of the place with that index, if its name has units */
	uint32_t *used;		    /* places that were ever used */
	uint32_t generation;	    /* of a place that is used first */
	uint32_t *chains;	    /* owned; index + 1 of the first in each chain */
	struct parameter_use *uses; /* owned; of the places, by index */
	uint32_t size;		    /* of the chains, a power of two */
	uint32_t free;		    /* index + 1 of the first free place among them */
	struct users *users;	    /* borrowed */
	uint64_t seed[2];
	uint32_t next_sweep; /* index of the place to be looked at next */
};

/* The bits above an index in a number tell its generation, so that a stale one finds nothing. */
static uint64_t number_of(const struct parameter_table *table, uint32_t index)
{
	return MARK | (uint64_t)table->places[index].generation << 32 | index;
}

bool parameter_is(uint64_t number)
{
	return number & MARK;
}

static uint32_t *chain_of(const struct parameter_table *table, const struct parameter_name *name,
			  const struct amounts *amounts)
{
	uint64_t hash = siphash(name, sizeof(*name), table->seed);

	if (name->units)
		hash ^= siphash(amounts->of, name->units * sizeof(amounts->of[0]), table->seed);
	return &table->chains[hash & (table->size - 1)];
}

/* Doubles the chains, and puts what is known into them. */
static int grow_chains(struct parameter_table *table)
{
	uint32_t size = table->size ? table->size * 2 : FIRST_PLACES;
	uint32_t *chains = calloc(size, sizeof(*chains));

	if (!chains)
		return -ENOMEM;
	free(table->chains);
	table->chains = chains;
	table->size = size;
	for (uint32_t i = 0; i < *table->used; i++) {
		struct parameter *parameter = &table->places[i];
		uint32_t *chain;

		if (!parameter->lookups)
			continue;
		chain = chain_of(table, &parameter->name, &table->amounts[i]);
		parameter->next = *chain;
		*chain = i + 1;
	}
	return 0;
}

static struct user *user_of(const struct parameter_table *table, uint32_t index)
{
	struct user *user = users_find(table->users, table->places[index].uid);

	assert(user); /* get_user() made it, and it has names */
	return user;
}

/* Makes sure that @uid is counted: users_add() alone would go on without memory. */
static bool get_user(struct parameter_table *table, uint32_t uid)
{
	return users_find(table->users, uid) || users_make(table->users, uid);
}

/* Counts the name at @index as the one that its user used last. */
static void count_name(struct parameter_table *table, uint32_t index)
{
	users_add(table->users, table->places[index].uid, BOUND_NAMES);
	table->uses[index].opens = 0;
	list_append(&user_of(table, index)->names, &table->uses[index].link);
}

/* Notes that the kernel looked the name at @index up again. */
static void touch_name(struct parameter_table *table, uint32_t index)
{
	struct list *names = &user_of(table, index)->names;

	if (table->uses[index].opens)
		return;
	list_remove(names, &table->uses[index].link);
	list_append(names, &table->uses[index].link);
}

/* Counts the names that are there, and lists the free places. False: no memory. */
static bool count_places(struct parameter_table *table)
{
	for (uint32_t i = 0; i < *table->used; i++) {
		struct parameter *parameter = &table->places[i];

		if (!parameter->lookups) {
			parameter->next = table->free;
			table->free = i + 1;
			continue;
		}
		if (!get_user(table, parameter->uid))
			return false;
		count_name(table, i);
	}
	return true;
}

struct parameter_table *parameter_table_new(struct parameter *places, struct amounts *amounts,
					    uint32_t *used, uint32_t generation,
					    struct users *users, const uint64_t seed[2])
{
	struct parameter_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	*table = (struct parameter_table){.places = places,
					  .amounts = amounts,
					  .used = used,
					  .generation = generation & INT32_MAX,
					  .users = users,
					  .seed = {seed[0], seed[1]},
					  .uses = calloc(PARAMETERS_MAX, sizeof(*table->uses))};
	do {
		if (!table->uses || grow_chains(table)) {
			parameter_table_free(table);
			return NULL;
		}
	} while (table->size < *used);
	if (!count_places(table)) {
		parameter_table_free(table);
		return NULL;
	}
	return table;
}

void parameter_table_free(struct parameter_table *table)
{
	if (!table)
		return;
	free(table->uses);
	free(table->chains);
	free(table);
}

const struct parameter *parameter_find(const struct parameter_table *table, uint64_t number)
{
	uint32_t index = (uint32_t)number;

	if (index >= *table->used || !table->places[index].lookups ||
	    number_of(table, index) != number)
		return NULL;
	return &table->places[index];
}

const struct amounts *parameter_amounts(const struct parameter_table *table,
					const struct parameter *parameter)
{
	return parameter->name.units ? &table->amounts[parameter - table->places] : NULL;
}

static bool is_same(const struct parameter_name *a, const struct parameter_name *b)
{
	return a->node == b->node && a->tokens == b->tokens && a->most == b->most &&
	       a->within_ns == b->within_ns && a->units == b->units;
}

static uint32_t find(const struct parameter_table *table, const struct parameter_name *name,
		     const struct amounts *amounts)
{
	size_t bytes = name->units * sizeof(amounts->of[0]);
	uint32_t at = *chain_of(table, name, amounts);

	while (at) {
		const struct parameter *parameter = &table->places[at - 1];

		if (is_same(&parameter->name, name) &&
		    (!bytes || !memcmp(table->amounts[at - 1].of, amounts->of, bytes)))
			break;
		at = parameter->next;
	}
	return at;
}

uint64_t parameter_known(const struct parameter_table *table, const struct parameter_name *name,
			 const struct amounts *amounts)
{
	uint32_t at = find(table, name, amounts);

	return at ? number_of(table, at - 1) : 0;
}

/* @parameter is the next that was never used. */
static void use_place(struct parameter_table *table, struct parameter *parameter)
{
	parameter->lookups = 0;
	parameter->generation = table->generation;
	++*table->used;
}

int parameter_get(struct parameter_table *table, const struct parameter_name *name,
		  const struct amounts *amounts, uint32_t uid)
{
	uint32_t at = find(table, name, amounts);
	struct parameter *parameter;
	uint32_t *chain;

	if (at) {
		table->places[at - 1].lookups++;
		touch_name(table, at - 1);
		return 0;
	}
	if (!table->free && *table->used == table->size) {
		if (table->size >= PARAMETERS_MAX)
			return -ENOSPC;
		if (grow_chains(table))
			return -ENOMEM;
	}
	if (!get_user(table, uid))
		return -ENOMEM;
	at = table->free ? table->free : *table->used + 1;
	parameter = &table->places[at - 1];
	if (table->free)
		table->free = parameter->next;
	else
		use_place(table, parameter);
	chain = chain_of(table, name, amounts);
	parameter->name = *name;
	if (name->units)
		table->amounts[at - 1] = *amounts;
	parameter->uid = uid;
	atomic_signal_fence(memory_order_release); /* a successor takes it for all there */
	parameter->lookups = 1;
	count_name(table, at - 1);
	parameter->next = *chain;
	*chain = at;
	return 0;
}

static void forget_parameter(struct parameter_table *table, uint32_t index)
{
	struct parameter *parameter = &table->places[index];
	uint32_t *at = chain_of(table, &parameter->name, &table->amounts[index]);

	while (*at != index + 1)
		at = &table->places[*at - 1].next;
	*at = parameter->next;
	if (!table->uses[index].opens)
		list_remove(&user_of(table, index)->names, &table->uses[index].link);
	users_drop(table->users, parameter->uid, BOUND_NAMES);
	/* Killed in between, this must not leave a free place with a number the kernel knows. */
	parameter->generation = (parameter->generation + 1) & INT32_MAX;
	atomic_signal_fence(memory_order_release);
	parameter->lookups = 0;
	parameter->next = table->free;
	table->free = index + 1;
}

/* Forgets the name that @uid used longest ago. False: all of its names have open files. */
static bool forget_oldest(struct parameter_table *table, uint32_t uid)
{
	const struct user *user = users_find(table->users, uid);
	struct parameter_use *oldest = user ? list_first(&user->names, struct parameter_use, link)
					    : NULL;

	if (oldest)
		forget_parameter(table, (uint32_t)(oldest - table->uses));
	return oldest;
}

/* Tells whether @uid has as many names as each user may have: whether that binds it or not. */
static bool has_its_names(const struct parameter_table *table, uint32_t uid)
{
	const struct user *user = users_find(table->users, uid);

	return user && user->used[BOUND_NAMES] >= table->users->bounds[BOUND_NAMES].each;
}

bool parameter_make_room(struct parameter_table *table, uint32_t uid)
{
	if (!users_check(table->users, uid, BOUND_NAMES, NULL)) {
		/* Root, too, leaves room for others as long as it can. */
		if (has_its_names(table, uid))
			(void)forget_oldest(table, uid);
		return true;
	}
	if (!forget_oldest(table, uid))
		return false;
	/* Two for one: a user with more than a bound that is lower now comes down to it. */
	if (users_check(table->users, uid, BOUND_NAMES, NULL))
		(void)forget_oldest(table, uid);
	return true;
}

void parameter_put(struct parameter_table *table, uint64_t number, uint64_t lookups)
{
	uint32_t index = (uint32_t)number;

	if (!parameter_find(table, number))
		return;
	if (table->places[index].lookups > lookups)
		table->places[index].lookups -= lookups;
	else
		forget_parameter(table, index);
}

void parameter_open(struct parameter_table *table, uint64_t number)
{
	uint32_t index = (uint32_t)number;

	if (parameter_find(table, number) && !table->uses[index].opens++)
		list_remove(&user_of(table, index)->names, &table->uses[index].link);
}

void parameter_close(struct parameter_table *table, uint64_t number)
{
	uint32_t index = (uint32_t)number;

	if (parameter_find(table, number) && !--table->uses[index].opens)
		list_append(&user_of(table, index)->names, &table->uses[index].link);
}

void parameter_sweep(struct parameter_table *table, unsigned int most,
		     bool (*is_gone)(void *context, uint64_t node), void *context)
{
	for (; most && *table->used; most--) {
		uint32_t index = table->next_sweep < *table->used ? table->next_sweep : 0;

		table->next_sweep = index + 1;
		if (table->places[index].lookups &&
		    is_gone(context, table->places[index].name.node))
			forget_parameter(table, index);
	}
}
