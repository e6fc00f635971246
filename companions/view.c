/* view - the tables of top, see view.h. */
#include "companions/view.h"
#include "companions/holders.h"
#include "companions/terminal.h"

#include "core/values/quantity.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_BYTES = 3 * PATH_MAX, CELL_BYTES = 32, HEAD_LINES = 4, NUMBER_COLUMNS = 8 };

/* A limiter's line: the values of its columns. */
struct row {
	const struct sample *now;
	const struct sample *before; /* NULL: it was not there */
	double values[STAT_COUNT];
};

static double gauge(const struct row *row, enum stat_id id, double seconds)
{
	(void)seconds;
	return row->now->values[id];
}

static double per_cent(const struct row *row, enum stat_id id, double seconds)
{
	return 100 * gauge(row, id, seconds);
}

/* Computes a rate. A limiter that is new since counts from 0; it may also have been made anew. */
static double per_second(const struct row *row, enum stat_id id, double seconds)
{
	double since = row->before ? row->before->values[id] : 0, now = row->now->values[id];

	return now >= since ? (now - since) / seconds : now / seconds;
}

/* The table: one row a column; the last one is the limiter's path. */
static const struct {
	const char *title;
	char key;
	enum stat_id id;
	double (*value)(const struct row *row, enum stat_id id, double seconds);
} COLUMNS[] = {
	{"GRANTED/s", 'g', STAT_GRANTED, per_second},
	{"RATE/s", 'r', STAT_RATE, gauge},
	{"WAITING", 'w', STAT_WAITING, gauge},
	{"THROTTLED/s", 't', STAT_THROTTLED, per_second},
	{"SHARE/%", 's', STAT_SHARE, per_cent},
	{"MIN/s", 'm', STAT_MIN, per_second},
	{"REFUSED/s", 'f', STAT_REFUSED, per_second},
	{"BELOW", 'b', STAT_BELOW, gauge},
	{"LIMITER", 'n', STAT_COUNT, NULL},
};

enum { COLUMN_COUNT = sizeof(COLUMNS) / sizeof(COLUMNS[0]), NUMBERS = COLUMN_COUNT - 1 };

int view_column_of_key(int key)
{
	for (int i = 0; i < COLUMN_COUNT; i++) {
		if (COLUMNS[i].key == key)
			return i;
	}
	return -1;
}

int view_column_of_name(const char *name)
{
	for (int i = 0; *name && i < COLUMN_COUNT; i++) {
		if (!strncasecmp(COLUMNS[i].title, name, strlen(name)))
			return i;
	}
	return -1;
}

static void put_line(const struct view *view, FILE *out, const char *text)
{
	char cut[LINE_BYTES];

	terminal_cut(text, view->plain ? UINT_MAX : view->columns, cut, sizeof(cut));
	fprintf(out, view->plain ? "%s\n" : "%s\033[K\n", cut);
}

static void put_title(const struct view *view, FILE *out, const char *text)
{
	char cut[LINE_BYTES];

	if (view->plain) {
		put_line(view, out, text);
		return;
	}
	terminal_cut(text, view->columns, cut, sizeof(cut));
	fprintf(out, "\033[7m%-*s\033[0m\n", (int)view->columns, cut);
}

/* Prints the daemon's own figures, in a line. */
static void put_status(const struct view *view, FILE *out)
{
	static const char *const wanted[] = {"version",	 "host",     "source",	"coordinator",
					     "degraded", "limiters", "waiters", "uptime_seconds"};
	char path[PATH_MAX], line[LINE_MAX], text[LINE_BYTES] = "ratefs";
	FILE *file;

	snprintf(path, sizeof(path), "%s/status", view->mountpoint);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		size_t length = strcspn(line, " "), used = strlen(text);

		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
			if (strlen(wanted[i]) == length && !strncmp(line, wanted[i], length))
				snprintf(text + used, sizeof(text) - used, "  %s", line);
		}
	}
	if (file)
		fclose(file);
	put_line(view, out, text);
}

/* Prints at most eight characters, unless it is no number that a limiter has. */
static void print_number(double value, char text[CELL_BYTES])
{
	static const char units[] = {' ', 'k', 'M', 'G', 'T'};
	size_t unit = 0;

	if (isnan(value)) {
		strcpy(text, "-");
	} else if (isinf(value)) {
		strcpy(text, "max");
	} else if (fabs(value) < 1e5) {
		snprintf(text, CELL_BYTES, value == floor(value) ? "%.0f" : "%.1f", value);
	} else {
		for (; fabs(value) >= 1e4 && unit < sizeof(units) - 1; unit++)
			value /= 1000;
		snprintf(text, CELL_BYTES, "%.1f%c", value, units[unit]);
	}
}

static const struct view *sorted_by; /* qsort has no room for it */

static int compare(const void *a, const void *b)
{
	const struct row *first = a, *second = b;
	size_t column = sorted_by->sort;
	int order = 0;

	if (column < NUMBERS) {
		double x = first->values[column], y = second->values[column];

		x = isnan(x) ? -(double)INFINITY : x;
		y = isnan(y) ? -(double)INFINITY : y;
		order = (x < y) - (x > y);
	}
	if (sorted_by->reversed)
		order = -order;
	if (order)
		return order;
	order = strcmp(first->now->path, second->now->path);
	return sorted_by->reversed && column == NUMBERS ? -order : order;
}

/*
 * Makes a row for each limiter, sorted; owned by the caller. NULL without memory, or without
 * limiters.
 */
static struct row *make_rows(const struct view *view)
{
	uint64_t between_ns = view->now.at_ns - view->before.at_ns;
	bool first = !view->before.at_ns;
	struct row *rows = calloc(view->now.count, sizeof(*rows));

	for (size_t i = 0; rows && i < view->now.count; i++) {
		struct row *row = &rows[i];

		row->now = &view->now.all[i];
		row->before = sample_page_find(&view->before, row->now->path);
		for (size_t c = 0; c < NUMBERS; c++) {
			row->values[c] = COLUMNS[c].value(row, COLUMNS[c].id,
							  (double)between_ns / NSEC_PER_SEC);
			if (first && COLUMNS[c].value == per_second)
				row->values[c] = (double)NAN;
		}
	}
	sorted_by = view;
	if (rows)
		qsort(rows, view->now.count, sizeof(*rows), compare);
	return rows;
}

static int width_of(size_t column)
{
	int length = (int)strlen(COLUMNS[column].title);

	return length > NUMBER_COLUMNS ? length : NUMBER_COLUMNS;
}

static void put_limiter(const struct view *view, FILE *out, const struct row *row)
{
	char line[LINE_BYTES], cell[CELL_BYTES];
	size_t used = 0;

	for (size_t c = 0; c < NUMBERS; c++) {
		print_number(row->values[c], cell);
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%*s ", width_of(c),
					 cell);
	}
	snprintf(line + used, sizeof(line) - used, " %s", row->now->path);
	put_line(view, out, line);
}

static void put_column_titles(const struct view *view, FILE *out)
{
	char line[LINE_BYTES];
	size_t used = 0;

	for (size_t c = 0; c < NUMBERS; c++)
		used += (size_t)snprintf(line + used, sizeof(line) - used, "%*s ", width_of(c),
					 COLUMNS[c].title);
	snprintf(line + used, sizeof(line) - used, " %s", COLUMNS[NUMBERS].title);
	put_title(view, out, line);
}

/* Prints the holders of a limiter, a line each. Returns how many lines. */
static unsigned int put_holders(const struct view *view, FILE *out, const char *path,
				unsigned int room)
{
	struct holders holders;
	unsigned int count = 0;

	if (holders_read(view->mountpoint, path, &holders))
		return 0;
	for (size_t i = 0; i < holders.count && count < room; i++, count++) {
		const struct holder *holder = &holders.all[i];
		char line[LINE_BYTES], share[CELL_BYTES], rate[CELL_BYTES];

		print_number(100 * holder->share, share);
		print_number(holder->rate, rate);
		snprintf(line, sizeof(line), "%7s  %10s  %6zu  %-16s  %-24s  %s", share, rate,
			 holder->count, *holder->name ? holder->name : "-", path,
			 holder->partitions);
		put_line(view, out, line);
	}
	holders_free(&holders);
	return count;
}

void view_print(const struct view *view, FILE *out)
{
	unsigned int room = view->rows > HEAD_LINES ? view->rows - HEAD_LINES : 1;
	struct row *rows = view->now.count ? make_rows(view) : NULL;
	char titles[LINE_BYTES];

	put_status(view, out);
	if (!view->plain) {
		put_line(view, out,
			 view->holders
				 ? "q quit  TAB limiters  arrows scroll"
				 : "q quit  TAB holders  arrows scroll  sort by g granted  "
				   "r rate  w waiting  t throttled  s share  m min  f refused  "
				   "b below  n name");
		put_line(view, out, "");
	}
	if (view->holders) {
		snprintf(titles, sizeof(titles), "%7s  %10s  %6s  %-16s  %-24s  %s", "SHARE/%",
			 "RATE/s", "PIECES", "HOLDER", "LIMITER", "WHICH");
		put_title(view, out, titles);
	} else {
		put_column_titles(view, out);
	}
	for (size_t i = view->top; rows && i < view->now.count && (view->plain || room); i++) {
		if (view->holders) {
			room -= put_holders(view, out, rows[i].now->path,
					    view->plain ? UINT_MAX : room);
		} else {
			put_limiter(view, out, &rows[i]);
			room--;
		}
	}
	free(rows);
}

void view_free(struct view *view)
{
	sample_page_free(&view->now);
	sample_page_free(&view->before);
}
