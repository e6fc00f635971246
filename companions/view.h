/*
 * view - the tables of top: limiters and what they do, hosts and their shares, the waiters of a
 * limiter; as lines for whatever shows them.
 */
#ifndef RATEFS_COMPANIONS_VIEW_H
#define RATEFS_COMPANIONS_VIEW_H

#include "companions/sample.h"

#include <stdbool.h>

enum { VIEW_FILTER_BYTES = 256, VIEW_COLUMNS_MAX = 1000, VIEW_COLUMNS_DEFAULT = 80 };

enum view_table { VIEW_LIMITERS, VIEW_HOLDERS, VIEW_WAITERS, VIEW_KEYS };

enum view_look { LOOK_PLAIN, LOOK_TITLE, LOOK_SELECTED };

struct view_line {
	const char *text; /* at most as many cells as there are columns */
	enum view_look look;
	unsigned int hot, hot_cells; /* cells that are to catch the eye, from @hot on */
};

struct view {
	const char *mountpoint;
	void (*put)(const struct view_line *line); /* shows the next line */
	bool plain;				   /* all limiters, as text, without hints */
	unsigned int width, height;		   /* of the screen, in cells */
	size_t sort;				   /* a column, see below */
	bool reversed;
	enum view_table table;
	char filter[VIEW_FILTER_BYTES]; /* part of the paths that are shown */
	bool typing;			/* a filter */
	size_t first, selected;		/* row at the top of the screen, row that keys act on */
	size_t line;			/* of holders or waiters, at the top of the screen */
	/* Of view.c: */
	struct page now, before; /* owned; the second may be empty */
	struct row *rows;	 /* owned: the limiters of `now` */
	struct row **order;	 /* owned: those that pass the filter, in order */
	size_t count;		 /* of them */
	void *names;		 /* owned tree: how limiters are called in a table */
	unsigned int named;	 /* cells of those names; 0: there are none */
	char *followed;		 /* owned: path of the selected limiter, once keys moved there */
	unsigned int widest;	 /* cells of a path */
	bool fleet;
};

/* The keys, a line each. */
extern const char VIEW_KEYS_TEXT[];

/* Find the column that @key sorts by, and the one whose name begins so; -1 if there is none. */
int view_column_of_key(int key);
int view_column_of_name(const char *name);

/* Reads the tree anew; counts that are known so far become those before. 0 or -errno. */
int view_refresh(struct view *view);

/* Follows a change of order or filter. */
void view_arrange(struct view *view);

/* Moves the selection, or what is seen of holders or waiters, as far as there are lines. */
void view_move(struct view *view, long by);

void view_draw(struct view *view);
void view_free(struct view *view);

#endif
