/* numbers - a set of small numbers, such as those of slots that are open: a bitmap that grows. */
#ifndef RATEFS_CORE_NUMBERS_H
#define RATEFS_CORE_NUMBERS_H

#include <stdint.h>

enum { NUMBERS_END = 1 << 23 }; /* numbers are below */

/* At first all 0: none is in the set. */
struct numbers {
	uint64_t *words; /* owned */
	uint32_t word_count;
};

/* Returns the first number from @first on that is not in the set, below @end; @end: all are. */
uint32_t numbers_free_from(const struct numbers *numbers, uint32_t first, uint32_t end);

/* Returns the first number from @first on that is in the set, below @end; @end: none is. */
uint32_t numbers_next(const struct numbers *numbers, uint32_t first, uint32_t end);

/* Adds @number. 0; -EEXIST: it is there; -ERANGE: it is not below NUMBERS_END; -ENOMEM. */
int numbers_add(struct numbers *numbers, uint32_t number);

/* Takes @number out, which is there. */
void numbers_remove(struct numbers *numbers, uint32_t number);

/* Frees what it owns. */
void numbers_end(struct numbers *numbers);

#endif
