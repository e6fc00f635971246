/*
 * view - the two tables of top: limiters and what they do, and hosts and their shares.
 */
#ifndef RATEFS_COMPANIONS_VIEW_H
#define RATEFS_COMPANIONS_VIEW_H

#include "companions/sample.h"

#include <stdbool.h>
#include <stdio.h>

struct view {
	const char *mountpoint;
	struct page now;    /* owned */
	struct page before; /* owned; empty: nothing to compare with */
	size_t sort;	    /* a column */
	bool reversed;
	bool holders;	  /* the second table */
	bool plain;	  /* whole, as text, without hints */
	unsigned int top; /* rows that are scrolled away */
	unsigned int rows, columns;
};

/* Find the column that @key sorts by, and the column whose title begins so; -1 if there is none. */
int view_column_of_key(int key);
int view_column_of_name(const char *name);

void view_print(const struct view *view, FILE *out);
void view_free(struct view *view);

#endif
