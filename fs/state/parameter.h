/*
 * parameter - nodes with a number in their name (take/N, eta/N, slot,within=D): a number of the
 * kernel cannot hold all that is in such a name, so these are remembered as long as the kernel
 * knows them and the node that they belong to exists.
 *
 * The kernel keeps what it knows while memory is free, and the count of its references is too high
 * after a server was killed: it never comes to 0 then. So where a user has as many names as it may
 * have, the one that it used longest ago goes, of those of which no file is open.
 */
#ifndef RATEFS_FS_STATE_PARAMETER_H
#define RATEFS_FS_STATE_PARAMETER_H

#include "core/limiter/users.h"
#include "core/values/amounts.h"

#include <stdbool.h>
#include <stdint.h>

enum { PARAMETERS_MAX = 1 << 20 };

struct parameter_table;

/* A node, and what is in its name. All of it is hashed: it has no padding. */
struct parameter_name {
	uint64_t node; /* number of the node without what is remembered here */
	uint64_t tokens, most;
	uint64_t within_ns;
	uint64_t units; /* so many amounts of units beside that, see parameter_amounts() */
};

struct parameter {
	struct parameter_name name;
	uint64_t lookups; /* references that the kernel holds; 0: a free place */
	uint32_t next;	  /* in its chain, or of the free places: index + 1 */
	uint32_t generation;
	uint32_t uid; /* of the process that asked for it first */
};

/*
 * Makes a table in @places, room for PARAMETERS_MAX, of which a predecessor used the first *@used,
 * whose numbers stay. @amounts is room for as many, which is written where names have units.
 * @generation is that of places that are used first. Each counts for the user that asks for it
 * first, in @users, borrowed, whose lists of names are of this table. Without the random @seed
 * strangers cannot choose names of one chain. NULL: no memory.
 */
struct parameter_table *parameter_table_new(struct parameter *places, struct amounts *amounts,
					    uint32_t *used, uint32_t generation,
					    struct users *users, const uint64_t seed[2]);
void parameter_table_free(struct parameter_table *table);

/* Whether @number is one of this table's. */
bool parameter_is(uint64_t number);

/* NULL when there is none. */
const struct parameter *parameter_find(const struct parameter_table *table, uint64_t number);

/* Returns the amounts of units in the name of @parameter; NULL: it has none. */
const struct amounts *parameter_amounts(const struct parameter_table *table,
					const struct parameter *parameter);

/* The number of what is remembered, of @name with its name->units of @amounts; or 0. */
uint64_t parameter_known(const struct parameter_table *table, const struct parameter_name *name,
			 const struct amounts *amounts);

/*
 * Makes room for one more name of @uid: if it has as many as each user may have, or there is none
 * for all, the names that it used longest ago are forgotten, and their numbers are stale. False: it
 * may have no more, and each of its names has an open file.
 */
bool parameter_make_room(struct parameter_table *table, uint32_t uid);

/* One reference more, of @uid's. 0, -ENOSPC (PARAMETERS_MAX are known) or -ENOMEM. */
int parameter_get(struct parameter_table *table, const struct parameter_name *name,
		  const struct amounts *amounts, uint32_t uid);
void parameter_put(struct parameter_table *table, uint64_t number, uint64_t lookups);

/* Count open files of the name with @number, if there is one. */
void parameter_open(struct parameter_table *table, uint64_t number);
void parameter_close(struct parameter_table *table, uint64_t number);

/* Looks at the next @most places, in turn, and forgets those whose node is gone. */
void parameter_sweep(struct parameter_table *table, unsigned int most,
		     bool (*is_gone)(void *context, uint64_t node), void *context);

#endif
