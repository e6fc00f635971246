/* division - the order among a limiter's children over all hosts, see division.h. */
#include "core/fleet/division.h"

#include <stdlib.h>

enum {
	/* Hosts whose children may have more than the host claims are cut down so often. */
	CUTS_MAX = 16,
};

static int by_sequence(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static void swap(struct claim *a, struct claim *b)
{
	struct claim claim = *a;

	*a = *b;
	*b = claim;
}

/*
 * Progressive filling: as long as a host wants no more than its part of the rest, it gets that, and
 * the parts of the others can only grow. The others all get their parts, rounded down.
 *
 * Bertsekas, Gallager: "Data Networks", 6.5.2 (max-min flow control).
 */
void division_plain(struct claim *claims, uint32_t count, uint32_t capacity)
{
	uint64_t weights = 0, left = capacity, rest;
	uint32_t before;

	for (uint32_t i = 0; i < count; i++)
		weights += claims[i].weight;
	do {
		before = count;
		for (uint32_t i = 0; i < count;) {
			if (claims[i].wanted * weights > left * claims[i].weight) {
				i++;
				continue;
			}
			claims[i].gets = claims[i].wanted;
			left -= claims[i].wanted;
			weights -= claims[i].weight;
			swap(&claims[i], &claims[--count]);
		}
	} while (count && count < before);
	rest = left;
	for (uint32_t i = 0; i < count; i++) {
		claims[i].gets = (uint32_t)(left * claims[i].weight / weights);
		rest -= claims[i].gets;
	}
	/* Each of them wants more than its part, so that one more is not too many. */
	if (count && rest)
		qsort(claims, count, sizeof(*claims), by_sequence);
	for (uint32_t i = 0; i < count && rest; i++) {
		if (left * claims[i].weight % weights == 0)
			continue;
		claims[i].gets++;
		rest--;
	}
}

/* The wants of a child on a host. */
struct row {
	struct claim *claim;
	struct part *part; /* of it; NULL: it has none */
	struct part want;  /* a copy: it counts */
};

/* A child, and its rows: those of one child follow each other. */
struct child {
	struct row *rows;
	uint32_t row_count;
	struct part all; /* over all hosts; `least` is granted first */
	bool is_fixed;
};

struct division {
	struct row *rows;
	struct child *children;
	struct claim *heap; /* room for as many as there are rows, for division_plain() */
	uint32_t row_count, child_count;
};

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

/* Puts the rows of a child side by side, in the order of the hosts' claims. */
static int by_child(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	bool x_due = x->claim->is_due, y_due = y->claim->is_due;
	int order = compare(x_due, y_due);

	order = order ? order : compare(x->want.child, y->want.child);
	if (!order && x->want.child != PART_REST)
		return compare(x->claim->sequence, y->claim->sequence);
	order = order ? order : compare(x->claim->sequence, y->claim->sequence);
	return order ? order : compare(x->want.priority, y->want.priority);
}

/* Tells whether two rows are of one child. */
static bool is_same_child(const struct row *a, const struct row *b)
{
	return a->want.child == b->want.child && a->want.child != PART_REST && !a->claim->is_due &&
	       !b->claim->is_due;
}

static void add_row(struct division *division, struct claim *claim, struct part *part)
{
	struct row *row = &division->rows[division->row_count++];

	*row = (struct row){.claim = claim, .part = part};
	row->want = part ? *part
			 : (struct part){
				   .wanted = claim->wanted,
				   .weight = SIBLING_WEIGHT_DEFAULT,
				   .min = claim->is_due ? claim->wanted : 0,
			   };
	if (row->want.wanted > claim->wanted)
		row->want.wanted = claim->wanted;
}

/* Returns the first claim in line that wants some for @child. */
static uint64_t place_of(const struct child *child)
{
	const struct row *row = child->rows, *last = child->rows + child->row_count - 1;

	while (!row->want.wanted && row < last)
		row++;
	return row->claim->sequence;
}

/* Children whose first claims come earlier come first; of those of one claim the lesser id. */
static int by_place(const void *a, const void *b)
{
	const struct child *x = a, *y = b;
	int order = compare(place_of(x), place_of(y));

	return order ? order : compare((uintptr_t)x->rows, (uintptr_t)y->rows);
}

/* Sums up what each child wants, and puts the children into the order of the line. */
static void gather_children(struct division *division)
{
	struct child *child = NULL;

	division->child_count = 0;
	for (uint32_t i = 0; i < division->row_count; i++) {
		struct row *row = &division->rows[i];

		if (!child || !is_same_child(child->rows, row)) {
			child = &division->children[division->child_count++];
			*child = (struct child){.rows = row, .all = row->want};
			child->all.wanted = 0;
		}
		child->row_count++;
		if (UINT32_MAX - child->all.wanted < row->want.wanted)
			child->all.wanted = UINT32_MAX;
		else
			child->all.wanted += row->want.wanted;
	}
	qsort(division->children, division->child_count, sizeof(*division->children), by_place);
}

/* Grants each child its min, or of all of these a part in proportion. Returns what is left. */
static uint32_t grant_minima(struct child *children, uint32_t count, uint32_t capacity,
			     struct claim *heap)
{
	uint32_t asking = 0;

	for (uint32_t i = 0; i < count; i++) {
		struct part *all = &children[i].all;
		uint32_t wanted = all->wanted < all->min ? all->wanted : all->min;

		all->gets = all->least = 0;
		children[i].is_fixed = false;
		if (wanted)
			heap[asking++] =
				(struct claim){.wanted = wanted, .weight = all->min, .sequence = i};
	}
	division_plain(heap, asking, capacity);
	for (uint32_t i = 0; i < asking; i++) {
		struct part *all = &children[heap[i].sequence].all;

		all->gets = all->least = heap[i].gets;
		capacity -= heap[i].gets;
	}
	return capacity;
}

/*
 * Shares @left, and what was granted of minima, among the children of class @priority. Those whose
 * part would be below their min keep that, and the others share the rest. Returns what is left.
 */
static uint32_t share_class(struct child *children, uint32_t count, uint32_t priority,
			    uint32_t left, struct claim *heap)
{
	uint32_t asking;
	bool again;

	for (uint32_t i = 0; i < count; i++) {
		if (children[i].all.priority == priority)
			left += children[i].all.least;
	}
	do {
		asking = 0;
		for (uint32_t i = 0; i < count; i++) {
			const struct child *child = &children[i];

			if (child->all.priority == priority && !child->is_fixed)
				heap[asking++] = (struct claim){.wanted = child->all.wanted,
								.weight = child->all.weight,
								.sequence = i};
		}
		division_plain(heap, asking, left);
		again = false;
		for (uint32_t i = 0; i < asking; i++) {
			struct child *child = &children[heap[i].sequence];

			if (heap[i].gets >= child->all.least)
				continue;
			child->is_fixed = again = true;
			left -= child->all.least;
		}
	} while (again);
	for (uint32_t i = 0; i < asking; i++) {
		children[heap[i].sequence].all.gets = heap[i].gets;
		left -= heap[i].gets;
	}
	return left;
}

/* Divides @capacity among @children by min, class and weight. */
static void divide_children(struct child *children, uint32_t count, uint32_t capacity,
			    struct claim *heap)
{
	uint32_t left = grant_minima(children, count, capacity, heap);

	for (uint32_t priority = PRIORITIES; left && priority-- > 0;)
		left = share_class(children, count, priority, left, heap);
}

/* Divides @amount, what @child gets or what of that is under its min, among its hosts. */
static void divide_hosts(const struct child *child, uint32_t amount, bool least, struct claim *heap)
{
	for (uint32_t i = 0; i < child->row_count; i++)
		heap[i] = (struct claim){.wanted = least ? child->rows[i].want.gets
							 : child->rows[i].want.wanted,
					 .weight = child->rows[i].claim->weight,
					 .sequence = i};
	division_plain(heap, child->row_count, amount);
	for (uint32_t i = 0; i < child->row_count; i++) {
		struct part *want = &child->rows[heap[i].sequence].want;

		*(least ? &want->least : &want->gets) = heap[i].gets;
	}
}

static int by_claim(const void *a, const void *b)
{
	const struct row *const *x = a, *const *y = b;
	int order = compare((*x)->claim->sequence, (*y)->claim->sequence);

	return order ? order : compare((uintptr_t)*x, (uintptr_t)*y);
}

/* Divides what the host of @rows claims among them, so that they want no more than that. */
static void cut_host(struct row **rows, uint32_t count, struct claim *heap)
{
	struct child children[PARTS_MAX];

	for (uint32_t i = 0; i < count; i++) {
		children[i] = (struct child){.all = rows[i]->want};
		children[i].all.wanted = rows[i]->want.gets;
	}
	divide_children(children, count, rows[0]->claim->wanted, heap);
	for (uint32_t i = 0; i < count; i++)
		rows[i]->want.wanted = children[i].all.gets;
}

/* Sums up what each host gets. Tells whether one would get more than it claims, and was cut. */
static bool sum_up(struct division *division, struct row **rows)
{
	bool cut = false;

	for (uint32_t i = 0; i < division->row_count; i++) {
		rows[i] = &division->rows[i];
		rows[i]->claim->gets = 0;
	}
	qsort(rows, division->row_count, sizeof(struct row *), by_claim);
	for (uint32_t i = 0, next; i < division->row_count; i = next) {
		struct claim *claim = rows[i]->claim;
		uint64_t gets = 0;

		for (next = i; next < division->row_count && rows[next]->claim == claim; next++)
			gets += rows[next]->want.gets;
		claim->gets = gets < claim->wanted ? (uint32_t)gets : claim->wanted;
		if (gets > claim->wanted) {
			cut_host(rows + i, next - i, division->heap);
			cut = true;
		}
	}
	return cut;
}

/* Tells whether a host of @child that gets nothing is to have its turn: its class has some. */
static bool is_of_class(const struct child *child, uint32_t last_class)
{
	return child->all.gets || child->all.priority >= last_class;
}

/* Fills in what each part gets, and whether hosts get nothing where their class does. */
static void note_parts(struct division *division)
{
	uint32_t last_class = PRIORITIES;

	for (uint32_t i = 0; i < division->child_count; i++) {
		const struct part *all = &division->children[i].all;

		if (all->gets > all->least && all->priority < last_class)
			last_class = all->priority;
	}
	for (uint32_t i = 0; i < division->child_count; i++) {
		const struct child *child = &division->children[i];

		divide_hosts(child, child->all.least, true, division->heap);
		for (uint32_t j = 0; j < child->row_count; j++) {
			struct row *row = &child->rows[j];

			if (!row->claim->gets)
				row->claim->starves |= is_of_class(child, last_class);
			if (!row->part)
				continue;
			row->part->gets = row->want.gets;
			row->part->least = row->want.least;
		}
	}
}

static void divide(struct division *division, struct row **rows, uint32_t capacity)
{
	uint32_t cuts = 0;

	do {
		gather_children(division);
		divide_children(division->children, division->child_count, capacity,
				division->heap);
		for (uint32_t i = 0; i < division->child_count; i++)
			divide_hosts(&division->children[i], division->children[i].all.gets, false,
				     division->heap);
	} while (sum_up(division, rows) && ++cuts < CUTS_MAX);
	note_parts(division);
}

/* The same where no claim has parts, or there is no memory for more. */
static void divide_plainly(struct claim *claims, uint32_t count, uint32_t capacity)
{
	division_plain(claims, count, capacity);
	for (uint32_t i = 0; i < count; i++)
		claims[i].starves = !claims[i].gets;
}

void division_make(struct claim *claims, uint32_t count, uint32_t capacity)
{
	struct division division = {0};
	uint32_t rows = 0, parts = 0;
	struct row **by_host;

	for (uint32_t i = 0; i < count; i++) {
		rows += claims[i].part_count ? claims[i].part_count : 1;
		parts += claims[i].part_count;
	}
	division.rows = parts ? calloc(rows, sizeof(*division.rows)) : NULL;
	division.children = parts ? calloc(rows, sizeof(*division.children)) : NULL;
	division.heap = parts ? calloc(rows, sizeof(*division.heap)) : NULL;
	by_host = parts ? calloc(rows, sizeof(struct row *)) : NULL;
	if (division.rows && division.children && division.heap && by_host) {
		for (uint32_t i = 0; i < count; i++) {
			claims[i].starves = false;
			for (uint32_t j = 0; j < claims[i].part_count; j++)
				add_row(&division, &claims[i], &claims[i].parts[j]);
			if (!claims[i].part_count)
				add_row(&division, &claims[i], NULL);
		}
		qsort(division.rows, rows, sizeof(*division.rows), by_child);
		divide(&division, by_host, capacity);
	} else {
		divide_plainly(claims, count, capacity);
	}
	free(division.rows);
	free(division.children);
	free(division.heap);
	free(by_host);
}
