/* view - the tables of top, see view.h. */
#include "companions/view.h"
#include "companions/cells.h"
#include "companions/columns.h"
#include "companions/holders.h"

#include "core/values/quantity.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { LINE_BYTES = 3 * PATH_MAX, HOT_PER_CENT = 90 };
enum { BAR_CELLS = 5, SOURCE_CELLS = 4, WORD_CELLS = 9 };

const char VIEW_KEYS_TEXT[] = "    q            quit\n"
			      "    TAB          who holds which share\n"
			      "    Enter        waiters of the limiter\n"
			      "    /            limiters with this text\n"
			      "    Esc          back; all limiters\n"
			      "    arrows, j, k, page up, page down,\n"
			      "    Home, End    move\n"
			      "    ?            these keys\n"
			      "  sort by, and again the other way:\n"
			      "    g granted    r rate      u use\n"
			      "    w waiting    s share     b below\n"
			      "    t throttled  f refused   m min\n"
			      "    n name\n";

/* A limiter's line, with the values that sort it. */
struct row {
	const struct sample *now;
	const struct sample *before; /* NULL: it was not there */
	double values[COLUMNS_MAX];
	const char *name; /* as it is called in a table, of the view's */
	double wait;	  /* seconds */
	char *why;	  /* owned; NULL: neither was asked for */
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

	if (!(seconds > 0))
		return (double)NAN;
	return now >= since ? (now - since) / seconds : now / seconds;
}

/* Computes how much of the rate or of the slots is used, whichever is the scarcer one. */
static double use(const struct row *row, enum stat_id id, double seconds)
{
	const double *now = row->now->values;
	double rate = per_second(row, id, seconds) / now[STAT_RATE];
	double slots = now[STAT_OPEN] / now[STAT_SLOTS];

	rate = isfinite(rate) && isfinite(now[STAT_RATE]) ? rate : (double)NAN;
	slots = isfinite(slots) && isfinite(now[STAT_SLOTS]) ? slots : (double)NAN;
	return 100 * fmax(rate, slots);
}

enum { USE = 2, WAIT = 4, SHARE = 5, LIMITER = 10, WHY = 11, LIMITER_COLUMNS = 12 };
enum { HOLDER = 3, HOLDER_LIMITER, HOLDER_COLUMNS = 7 };

static const struct column LIMITERS[LIMITER_COLUMNS] = {
	{"GRANTED/s", 9, 9, 11},
	{"RATE/s", 7, 7, 9},
	[USE] = {"USE/%", 9, 9, 8},
	{"WAITING", 7, 7, 12},
	[WAIT] = {"WAIT", 7, 7, 10},
	[SHARE] = {"SHARE/%", 7, 7, 7},
	{"BELOW", 7, 7, 4},
	{"THROTTLED", 9, 9, 3},
	{"REFUSED/s", 9, 9, 2},
	{"MIN/s", 7, 7, 1},
	[LIMITER] = {"LIMITER", 24, 16, 0},
	[WHY] = {"WHY", 20, 10, 6},
};

static const struct column HOLDERS[HOLDER_COLUMNS] = {
	{"SHARE/%", 7, 7, 0},
	{"RATE/s", 7, 7, 6},
	{"PIECES", 6, 6, 2},
	[HOLDER] = {"HOLDER", 14, 10, 0},
	[HOLDER_LIMITER] = {"LIMITER", 24, 14, 0},
	{"MAP", HOLDERS_SIGNS, HOLDERS_SIGNS, 7},
	{"WHICH", 8, 8, 1},
};

/* The values by which columns of limiters sort. */
static const struct {
	const char *name;
	char key;
	enum stat_id id;
	double (*value)(const struct row *row, enum stat_id id, double seconds);
} SORTS[LIMITER_COLUMNS] = {
	{"granted", 'g', STAT_GRANTED, per_second},
	{"rate", 'r', STAT_RATE, gauge},
	[USE] = {"use", 'u', STAT_GRANTED, use},
	{"waiting", 'w', STAT_WAITING, gauge},
	[SHARE] = {"share", 's', STAT_SHARE, per_cent},
	{"below", 'b', STAT_BELOW, gauge},
	{"throttled", 't', STAT_THROTTLED, per_second},
	{"refused", 'f', STAT_REFUSED, per_second},
	{"min", 'm', STAT_MIN, per_second},
	[LIMITER] = {.name = "limiter", .key = 'n'},
};

int view_column_of_key(int key)
{
	for (int i = 0; i < LIMITER_COLUMNS; i++) {
		if (SORTS[i].name && SORTS[i].key == key)
			return i;
	}
	return -1;
}

int view_column_of_name(const char *name)
{
	for (int i = 0; *name && i < LIMITER_COLUMNS; i++) {
		if (SORTS[i].name && !strncasecmp(SORTS[i].name, name, strlen(name)))
			return i;
	}
	return -1;
}

/* Shows @text as @line says, without blanks at its end. */
static void show(const struct view *view, char *text, struct view_line *line)
{
	char cut[LINE_BYTES];
	size_t length = strlen(text);

	while (length && text[length - 1] == ' ')
		text[--length] = '\0';
	cells_slice(text, 0, view->width, cut, sizeof(cut));
	line->text = cut;
	view->put(line);
}

static void put_line(const struct view *view, char *text, enum view_look look)
{
	show(view, text, &(struct view_line){.look = look});
}

/* Prints the daemon's own figures, in a line, and notes whether it is in a fleet. */
static void put_status(struct view *view)
{
	enum { HOST, SOURCE, COORDINATOR, DEGRADED, COUNT, WAITERS, UPTIME, VALUES };
	static const char *const names[] = {"host",	"source",  "coordinator",   "degraded",
					    "limiters", "waiters", "uptime_seconds"};
	char values[VALUES][LINE_MAX] = {"", "", "none", "no"};
	char path[PATH_MAX], line[LINE_MAX], text[LINE_BYTES], rest[2 * LINE_MAX], up[CELL_BYTES];
	unsigned int used;
	FILE *file;

	snprintf(path, sizeof(path), "%s/status", view->mountpoint);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file)) {
		size_t length = strcspn(line, " ");

		line[strcspn(line, "\n")] = '\0';
		for (size_t i = 0; i < VALUES && line[length]; i++) {
			if (strlen(names[i]) == length && !strncmp(line, names[i], length))
				strcpy(values[i], line + length + 1);
		}
	}
	if (file)
		fclose(file);
	view->fleet = strcmp(values[COORDINATOR], "none") != 0;
	cells_print_span(*values[UPTIME] ? floor(strtod(values[UPTIME], NULL)) : (double)NAN, up);
	snprintf(rest, sizeof(rest), "  %s%s%s%.16s limiters  %.16s wait  up %s",
		 strcmp(values[DEGRADED], "yes") ? "" : "degraded  ",
		 !view->fleet || !strcmp(values[COORDINATOR], "ready") ? "" : values[COORDINATOR],
		 !view->fleet || !strcmp(values[COORDINATOR], "ready") ? "" : "  ", values[COUNT],
		 values[WAITERS], up);
	used = cells_count(values[HOST]) + 2 + cells_count(rest);
	snprintf(text, sizeof(text), "%s  ", values[HOST]);
	used = view->width > used + SOURCE_CELLS ? view->width - used : SOURCE_CELLS;
	if (cells_count(values[SOURCE]) < used)
		used = cells_count(values[SOURCE]);
	cells_fit(values[SOURCE], used, text + strlen(text), sizeof(text) - strlen(text));
	strcat(text, rest);
	put_line(view, text, LOOK_PLAIN);
}

static const struct view *sorted_by; /* qsort has no room for it */

static int compare(const void *a, const void *b)
{
	const struct row *first = *(struct row *const *)a, *second = *(struct row *const *)b;
	size_t column = sorted_by->sort;
	double x = first->values[column], y = second->values[column];
	int order;

	x = isnan(x) ? -(double)INFINITY : x;
	y = isnan(y) ? -(double)INFINITY : y;
	order = (x < y) - (x > y);
	if (order)
		return sorted_by->reversed ? -order : order;
	order = strcmp(first->now->path, second->now->path);
	return sorted_by->reversed && column == LIMITER ? -order : order;
}

void view_arrange(struct view *view)
{
	view->count = view->widest = 0;
	for (size_t i = 0; i < view->now.count; i++) {
		const char *path = view->now.all[i].path;
		unsigned int cells;

		if (*view->filter && !strcasestr(path, view->filter))
			continue;
		cells = cells_count(path);
		view->widest = cells > view->widest ? cells : view->widest;
		view->order[view->count++] = &view->rows[i];
	}
	sorted_by = view;
	qsort(view->order, view->count, sizeof(*view->order), compare);
	for (size_t i = 0; view->followed && i < view->count; i++) {
		if (!strcmp(view->order[i]->now->path, view->followed))
			view->selected = i;
	}
	if (view->selected >= view->count)
		view->selected = view->count ? view->count - 1 : 0;
}

static void forget_names(struct view *view)
{
	tdestroy(view->names, free);
	view->names = NULL;
	view->named = 0;
}

static void free_rows(struct view *view)
{
	for (size_t i = 0; view->rows && i < view->now.count; i++)
		free(view->rows[i].why);
	free(view->rows);
	free(view->order);
	forget_names(view);
}

int view_refresh(struct view *view)
{
	struct page now;
	int err = sample_page_read(view->mountpoint, &now);
	double seconds;

	if (err)
		return err;
	free_rows(view);
	sample_page_free(&view->before);
	view->before = view->now;
	view->now = now;
	view->rows = calloc(now.count + 1, sizeof(*view->rows));
	view->order = calloc(now.count + 1, sizeof(*view->order));
	if (!view->rows || !view->order)
		return -ENOMEM;
	seconds = view->before.at_ns ? (double)(now.at_ns - view->before.at_ns) / NSEC_PER_SEC : 0;
	for (size_t i = 0; i < now.count; i++) {
		struct row *row = &view->rows[i];

		row->now = &now.all[i];
		row->before = sample_page_find(&view->before, row->now->path);
		for (size_t c = 0; c < LIMITER_COLUMNS; c++) {
			if (SORTS[c].value)
				row->values[c] = SORTS[c].value(row, SORTS[c].id, seconds);
		}
	}
	view_arrange(view);
	return 0;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns the last line of @count that may be the first on a screen which has @room for some. */
static size_t last_first(size_t count, size_t room)
{
	return count > room ? count - room : 0;
}

/* Moves @at by @by, to @last at most. */
static size_t moved(size_t at, long by, size_t last)
{
	if (by < 0)
		return at > (size_t)-by ? at - (size_t)-by : 0;
	return last > at && last - at > (size_t)by ? at + (size_t)by : last;
}

void view_move(struct view *view, long by)
{
	if (view->table == VIEW_HOLDERS || view->table == VIEW_WAITERS) {
		view->line = moved(view->line, by, LONG_MAX);
	} else if (view->count) {
		view->selected = moved(view->selected, by, view->count - 1);
	}
	if (view->count && view->table != VIEW_WAITERS) {
		free(view->followed);
		view->followed = strdup(view->order[view->selected]->now->path);
	}
}

/* Calls a limiter @name; false: another one is called so. */
static bool add_name(struct view *view, struct row *row, const char *name)
{
	char *copy = strdup(name);
	char **node = copy ? tsearch(copy, &view->names, (comparison_fn_t)strcmp) : NULL;
	bool is_new = node && *node == copy;

	row->name = is_new ? copy : row->now->path;
	if (!is_new)
		free(copy);
	return is_new;
}

/* Names all limiters, so that no two look the same: with a number, where they are cut. */
static void name_limiters(struct view *view, unsigned int width)
{
	if (view->named == width)
		return;
	forget_names(view);
	view->named = width;
	for (size_t i = 0; i < view->now.count; i++) {
		const char *path = view->now.all[i].path;
		char name[LINE_BYTES], number[CELL_BYTES];
		unsigned int length;

		cells_fit(path, width, name, sizeof(name));
		if (add_name(view, &view->rows[i], name))
			continue;
		length = (unsigned int)snprintf(number, sizeof(number), "~%zu", i + 1);
		cells_fit(path, width > length ? width - length : 0, name, sizeof(name));
		strcat(name, number);
		add_name(view, &view->rows[i], name);
	}
}

/* Opens a file of a limiter, or NULL with errno. */
static FILE *open_file(const struct view *view, const char *limiter, const char *file)
{
	char path[PATH_MAX];

	errno = ENAMETOOLONG;
	return sample_path(view->mountpoint, limiter, file, path) ? fopen(path, "re") : NULL;
}

/* Reads the first line of a file of a limiter; "" without one. */
static void read_line(const struct view *view, const char *limiter, const char *file,
		      char line[LINE_MAX])
{
	FILE *stream = open_file(view, limiter, file);

	if (!stream || !fgets(line, LINE_MAX, stream))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	if (stream)
		fclose(stream);
}

/* Asks how long a reader would wait, and why; of limiters where readers wait. */
static void ask_wait(const struct view *view, struct row *row)
{
	const double *now = row->now->values;
	size_t length = strlen(row->now->path);
	char line[LINE_MAX] = "";
	bool own;

	row->wait = (double)NAN;
	if (now[STAT_WAITING] > 0 || now[STAT_BELOW] > 0) {
		read_line(view, row->now->path, "eta/1", line);
		row->wait = *line ? strtod(line, NULL) : (double)NAN;
		read_line(view, row->now->path, "why", line);
	}
	/* Its own path stands beside it. */
	own = !strncmp(line, row->now->path, length) && line[length] == ' ';
	row->why = strdup(own ? line + length + 1 : line);
}

static void put_limiter(const struct view *view, const struct columns *columns, size_t index)
{
	struct row *row = view->order[index];
	char numbers[LIMITER_COLUMNS][CELL_BYTES];
	const char *cells[LIMITER_COLUMNS];
	char text[LINE_BYTES];
	struct view_line line = {.look = !view->plain && index == view->selected ? LOOK_SELECTED
										 : LOOK_PLAIN};

	if (!row->why && (columns->widths[WAIT] || columns->widths[WHY]))
		ask_wait(view, row);
	for (size_t c = 0; c < LIMITER_COLUMNS; c++) {
		cells_print_number(row->values[c], numbers[c]);
		cells[c] = numbers[c];
		if (c < USE)
			line.hot += columns->widths[c] ? columns->widths[c] + 1 : 0;
	}
	if (!view->plain && row->values[USE] >= 0) {
		int bar = (int)fmin(row->values[USE] * BAR_CELLS / 100 + 0.5, BAR_CELLS);

		snprintf(numbers[USE], CELL_BYTES, "%3.0f %-*.*s", fmin(row->values[USE], 999),
			 BAR_CELLS, bar, "|||||");
		line.hot_cells = row->values[USE] >= HOT_PER_CENT && columns->widths[USE]
					 ? columns->widths[USE] + 1
					 : 0;
	}
	cells_print_span(row->wait, numbers[WAIT]);
	cells[LIMITER] = row->name;
	cells[WHY] = row->why ? row->why : "";
	columns_write(columns, cells, text, sizeof(text));
	show(view, text, &line);
}

static void put_holder(const struct view *view, const struct columns *columns,
		       const struct row *row, const struct holder *holder)
{
	char text[LINE_BYTES], share[CELL_BYTES], rate[CELL_BYTES], count[CELL_BYTES];
	const char *cells[] = {share,
			       rate,
			       count,
			       *holder->name ? holder->name : "-",
			       row->name,
			       holder->map,
			       holder->partitions};

	cells_print_number(100 * holder->share, share);
	cells_print_number(holder->rate, rate);
	snprintf(count, sizeof(count), "%zu", holder->count);
	columns_write(columns, cells, text, sizeof(text));
	put_line(view, text, LOOK_PLAIN);
}

/* Prints the holders of limiters, from the selected one on, a line each. */
static void put_holders(struct view *view, const struct columns *columns, size_t room)
{
	size_t from = view->selected, count = 0, lines = 0, line = 0;
	struct holders *all = calloc(view->count + 1, sizeof(*all));

	if (!all)
		return;
	for (; from + count < view->count && (view->plain || lines < view->line + room); count++) {
		(void)holders_read(view->mountpoint, view->order[from + count]->now->path,
				   &all[count]);
		lines += all[count].count;
	}
	view->line = smaller(view->line, last_first(lines, room));
	for (size_t i = 0; i < count; i++) {
		for (size_t h = 0; h < all[i].count; h++, line++) {
			if (line >= view->line && line - view->line < room)
				put_holder(view, columns, view->order[from + i], &all[i].all[h]);
		}
		holders_free(&all[i]);
	}
	free(all);
}

/* Prints a line of words in columns. */
static void put_words(const struct view *view, char *line, enum view_look look)
{
	char text[LINE_BYTES], *rest = NULL;
	size_t used = 0;

	text[0] = '\0';
	for (char *word = strtok_r(line, " \n", &rest); word && used < sizeof(text) / 2;
	     word = strtok_r(NULL, " \n", &rest))
		used += (size_t)snprintf(text + used, sizeof(text) - used, " %*s", WORD_CELLS,
					 word);
	put_line(view, text, look);
}

/* Prints the waiters of the selected limiter, below the headings of their file. */
static void put_waiters(struct view *view, size_t room)
{
	const char *limiter = view->followed ? view->followed : "";
	FILE *file = open_file(view, limiter, "waiters");
	size_t count = 0, first;
	char line[LINE_MAX];

	snprintf(line, sizeof(line), " %s: %s", limiter, file ? "waiters" : strerror(errno));
	put_line(view, line, LOOK_PLAIN);
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		count += *line != '#';
	first = view->line = smaller(view->line, last_first(count, room));
	rewind(file);
	for (size_t i = 0; i < first + room && fgets(line, sizeof(line), file);) {
		if (*line == '#')
			put_words(view, line + 1, LOOK_TITLE);
		else if (i++ >= first)
			put_words(view, line, LOOK_PLAIN);
	}
	fclose(file);
}

static void put_keys(const struct view *view)
{
	char line[LINE_MAX];

	for (const char *at = VIEW_KEYS_TEXT; *at; at += strlen(line) + 1) {
		snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
		put_line(view, line, LOOK_PLAIN);
	}
}

static void put_hints(const struct view *view)
{
	char text[LINE_MAX];

	if (view->typing || *view->filter)
		snprintf(text, sizeof(text), "/%s%s  %zu of %zu", view->filter,
			 view->typing ? "_" : "", view->count, view->now.count);
	else
		strcpy(text, "q quit  ? keys  / filter  Enter waiters  TAB holders");
	put_line(view, text, LOOK_PLAIN);
}

/* Prints the first table. */
static void put_limiters(struct view *view, const struct columns *columns, size_t room)
{
	view->first = smaller(view->first, last_first(view->count, room));
	view->first = smaller(view->first, view->selected);
	if (view->selected - view->first >= room)
		view->first = view->selected - room + 1;
	for (size_t i = view->first; i < view->count && i - view->first < room; i++)
		put_limiter(view, columns, i);
}

/* Prints one of the tables with columns. */
static void put_table(struct view *view, size_t room)
{
	bool holders = view->table == VIEW_HOLDERS;
	size_t sort = holders ? COLUMNS_MAX : view->sort;
	bool shares = holders || view->fleet || view->sort == SHARE;
	struct columns columns = {LIMITERS, LIMITER_COLUMNS, LIMITER, LIMITER, {0}};
	char text[LINE_BYTES];

	if (holders)
		columns = (struct columns){HOLDERS, HOLDER_COLUMNS, HOLDER, HOLDER_LIMITER, {0}};
	columns_fit(&columns, view->width, view->widest, sort, shares ? COLUMNS_MAX : SHARE);
	columns_title(&columns, view->plain ? COLUMNS_MAX : sort, view->reversed ? '<' : '>', text,
		      sizeof(text));
	put_line(view, text, LOOK_TITLE);
	name_limiters(view, columns.widths[columns.path]);
	if (holders)
		put_holders(view, &columns, room);
	else
		put_limiters(view, &columns, room);
}

void view_draw(struct view *view)
{
	size_t heads = view->plain ? 2 : 3;
	size_t room = view->plain ? SIZE_MAX : view->height > heads ? view->height - heads : 1;

	put_status(view);
	if (view->table == VIEW_KEYS) {
		put_keys(view);
	} else if (view->table == VIEW_WAITERS) {
		put_waiters(view, room);
	} else {
		if (!view->plain)
			put_hints(view);
		put_table(view, room);
	}
}

void view_free(struct view *view)
{
	free_rows(view);
	sample_page_free(&view->now);
	sample_page_free(&view->before);
	free(view->followed);
}
