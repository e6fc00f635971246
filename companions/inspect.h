/*
 * inspect - what is wrong in a file of limiters, and which limiters it names.
 */
#ifndef RATEFS_COMPANIONS_INSPECT_H
#define RATEFS_COMPANIONS_INSPECT_H

#include "core/values/quantity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

/* A limiter that the file names. */
struct named {
	unsigned int line;  /* of the section that does */
	bool itself;	    /* by a section of its own, not on the way to one below */
	const char *path;   /* "" is the top; behind the struct */
	struct rate room;   /* for the min of limiters in it, see minima.h */
	u128 minima;	    /* of limiters in it, together */
	struct named *next; /* that has minima */
	/* For apply: */
	bool told;	     /* in a dry run */
	mode_t access;	     /* that it is to have at last */
	struct named *later; /* another that is to have its mode at last, and was made before */
};

struct inspection {
	const char *file;	       /* "-": standard input; then as messages call it */
	FILE *out;		       /* where they go */
	unsigned int wrong;	       /* how many there were */
	void *named;		       /* owned: tree of struct named, by path */
	struct named *parents, **last; /* of limiters with a min; of the last of them, its `next` */
};

/*
 * Reads the file of @inspection, which has its first two members set, and says what is wrong in it,
 * with file and line. The limiters that it names stay there until inspect_free(). The text, from
 * malloc, whatever is wrong; NULL after a message: it cannot be read.
 */
char *inspect_file(struct inspection *inspection);

/* Says one more thing; with line 0 of the file as a whole. */
void inspect_complain(struct inspection *inspection, unsigned int line, const char *why);

/* Finds the limiter @path. NULL: it is not named. */
struct named *inspect_find(const struct inspection *inspection, const char *path);

void inspect_free(struct inspection *inspection);

#endif
