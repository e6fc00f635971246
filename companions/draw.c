/*
 * draw - a recording as a script for gnuplot(1), see draw.h.
 *
 * Panels stand one below the other, over one axis of time. A panel that has nothing to show, such
 * as pauses where there were none, is left out.
 */
#include "companions/draw.h"
#include "companions/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
	WIDTH = 960,
	PANEL = 176,
	TALLER = 64,
	TITLE = 36,
	FOOT = 48,
	HEAD = 52,
	LEGEND_ROW = 15,
	GAP = 6
};								    /* pixels */
enum { LEFT = 64, RIGHT = 20, LETTER = 7, SWATCH = 52, INSET = 8 }; /* pixels, too */
enum { SIGN_ROWS_MIN = 9, SIGN_ROWS_MAX = 20, COLUMNS_MIN = 20 };   /* of a panel in signs */
enum { LINES_MAX = 64, STACK_MAX = 9, FILLED_MAX = 4, TITLE_NAMES = 3, TITLE_LETTERS = 100 };
#define YEAR_9999 253370764800.0 /* seconds since 1970 */
#define LEAST	  1e-300	 /* of an axis that gnuplot takes */
#define MOST	  1e300

enum { STEPS = 4 }; /* of an axis, or some more */

/* Colours that also those with a colour vision deficiency tell apart, on white. */
static const char *const COLOURS[] = {"#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed",
				      "#0891b2", "#65a30d", "#dc2626", "#92400e"};
static const char INK[] = "#1f2937", FAINT[] = "#5b6472", GRID[] = "#e2e5ea";
static const char OWN[] = "#9aa3b2", OTHERS[] = "#cbd1da";

enum { COLOUR_COUNT = sizeof(COLOURS) / sizeof(COLOURS[0]) };

/* Of an image: its terminal in gnuplot, by the end of the file's name. */
static const struct {
	const char *suffix;
	const char *terminal;
} IMAGES[] = {
	{".svg", "svg font 'sans-serif,12' background 'white'"},
	{".png", "pngcairo font 'sans,9.5' background 'white'"},
};

static const char *terminal_of(const char *file)
{
	size_t length = strlen(file);

	for (size_t i = 0; i < sizeof(IMAGES) / sizeof(IMAGES[0]); i++) {
		size_t suffix = strlen(IMAGES[i].suffix);

		if (length > suffix && !strcmp(file + length - suffix, IMAGES[i].suffix))
			return IMAGES[i].terminal;
	}
	return NULL;
}

bool draw_can(const char *file)
{
	return terminal_of(file);
}

/* A value of no interest: a limiter that has no other has no line. Not a number: it has one. */
static const double IDLE[COLUMN_COUNT] = {
	[COLUMN_GRANTED] = (double)NAN,
	[COLUMN_WAITING] = (double)NAN,
	[COLUMN_RATE] = (double)INFINITY,
	[COLUMN_SHARE] = 1,
};

static const struct {
	enum column column, dashed; /* drawn above it in the same colours; the same one: none */
	const char *title, *of_dashed;
	double scale; /* of the values */
	bool whole;   /* of whole things */
} PANELS[] = {
	{COLUMN_GRANTED, COLUMN_RATE, "tokens granted a second", "the rate", 1, false},
	{COLUMN_RATE, COLUMN_RATE, "effective rate, tokens a second", "", 1, false},
	{COLUMN_WAITING, COLUMN_BELOW, "readers that wait", "in limiters below", 1, true},
	{COLUMN_THROTTLED, COLUMN_THROTTLED, "work throttled a second", "", 1, false},
	{COLUMN_DELAY, COLUMN_DELAY, "delay of back-off, seconds", "", 1, false},
	{COLUMN_PAUSED, COLUMN_PAUSED, "pauses of back-off, % of the time", "", 100, false},
	{COLUMN_SHARE, COLUMN_SHARE, "share of the limit, %", "", 100, false},
};

enum { PANEL_COUNT = sizeof(PANELS) / sizeof(PANELS[0]) };

static const struct {
	const char *name;
	double seconds, from; /* of one, and of recordings that are drawn in it */
} UNITS[] = {{"hours", 3600, 4 * 3600.0}, {"minutes", 60, 300}, {"seconds", 1, 0}};

struct drawing {
	const struct recording *of;
	FILE *out;
	bool stacked;
	bool signs;		 /* for a terminal, not an image */
	size_t lines[LINES_MAX]; /* limiters that have a line, @count of them */
	size_t count;
	/* Of each line and column: the largest value that can be drawn, and whether it is drawn. */
	double most[LINES_MAX][COLUMN_COUNT];
	bool shown[LINES_MAX][COLUMN_COUNT];
	size_t directory;	     /* letters that all paths begin with, up to a slash */
	size_t unit;		     /* of time, in UNITS */
	unsigned int height, legend; /* pixels */
};

/* Returns what limiter @i did from @round on, until the next one; from the last one: before it. */
static double value_of(const struct drawing *drawing, size_t i, size_t round, enum column column)
{
	if (round + 1 < drawing->of->rounds)
		round++;
	return recording_value(drawing->of, i, round, column);
}

/* Finds out what a line has to show in a column: gnuplot warns of one without points. */
static void measure(struct drawing *drawing, size_t line, enum column column)
{
	bool shown = isnan(IDLE[column]);
	double most = -1;

	for (size_t round = 0; round < drawing->of->rounds; round++) {
		double value = value_of(drawing, drawing->lines[line], round, column);

		shown |= !isnan(value) && (value < IDLE[column] || value > IDLE[column]);
		if (isfinite(value))
			most = fmax(most, value);
	}
	drawing->most[line][column] = most;
	drawing->shown[line][column] = shown && most >= 0;
}

/* Returns whether a panel has a stack: in an image, that of the tokens. */
static bool is_stack(const struct drawing *drawing, size_t panel)
{
	return drawing->stacked && !drawing->signs && PANELS[panel].column == COLUMN_GRANTED;
}

/* Returns whether no line has a dashed one: there are too many, or its signs would be those. */
static bool is_undashed(const struct drawing *drawing)
{
	return drawing->signs ? drawing->count > 1
			      : !drawing->stacked && drawing->count > COLOUR_COUNT;
}

/* Returns whether a line has a dashed one in a panel: not over a stack of others. */
static bool has_dashed(const struct drawing *drawing, size_t line, size_t panel)
{
	return PANELS[panel].dashed != PANELS[panel].column && !is_undashed(drawing) &&
	       (!drawing->stacked || !line || PANELS[panel].column != COLUMN_GRANTED) &&
	       drawing->shown[line][PANELS[panel].dashed];
}

/* Returns whether a panel is drawn: that of rates if the first has not all of them. */
static bool is_shown(const struct drawing *drawing, size_t panel)
{
	enum column column = PANELS[panel].column;
	bool rates = column == COLUMN_RATE, shown = isnan(IDLE[column]);

	if (rates && !drawing->stacked && !is_undashed(drawing))
		return false;
	for (size_t line = rates && !is_undashed(drawing); line < drawing->count && !shown; line++)
		shown = drawing->shown[line][column];
	return shown;
}

/* Returns the tokens a second that limiter @i was granted from @round on; 0 if it is not told. */
static double granted_of(const struct drawing *drawing, size_t i, size_t round)
{
	double granted = value_of(drawing, i, round, COLUMN_GRANTED);

	return isfinite(granted) ? granted : 0;
}

static double tokens_of(const struct drawing *drawing, size_t i)
{
	const double *seconds = drawing->of->seconds;
	double sum = 0;

	for (size_t round = 0; round + 1 < drawing->of->rounds; round++)
		sum += granted_of(drawing, i, round) * (seconds[round + 1] - seconds[round]);
	return sum;
}

/* Returns the top of a stack of all children, and of it with readers of the limiter itself. */
static double children_top(const struct drawing *drawing, size_t round)
{
	double sum = 0;

	for (size_t i = 1; i < drawing->of->count; i++)
		sum += granted_of(drawing, i, round);
	return sum;
}

static double stack_top(const struct drawing *drawing, size_t round)
{
	return fmax(children_top(drawing, round), granted_of(drawing, 0, round));
}

/*
 * Chooses the limiters that have a line: all, or with a stack the first and those of its children
 * that were granted most, in the order in which they are.
 */
static void choose_lines(struct drawing *drawing)
{
	const struct recording *of = drawing->of;
	size_t count = of->count < LINES_MAX ? of->count : LINES_MAX;
	double tokens[LINES_MAX];

	for (size_t i = 0; i < count; i++)
		tokens[i] = tokens_of(drawing, i);
	for (size_t i = 0; i < count; i++) {
		size_t before = 0;

		for (size_t other = 1; drawing->stacked && i && other < count; other++)
			before += tokens[other] > tokens[i] ||
				  (other < i && tokens[other] >= tokens[i]);
		if (before < STACK_MAX)
			drawing->lines[drawing->count++] = i;
	}
}

/*
 * Prints a name between quotes, for gnuplot; it cannot have a newline, which ends a line of the
 * script.
 */
static void print_quoted(FILE *out, const char *name)
{
	fputc('\'', out);
	for (; *name; name++)
		fputs(*name == '\'' ? "''" : (char[]){*name == '\n' ? ' ' : *name, '\0'}, out);
	fputc('\'', out);
}

/* Returns the length of the directory that all limiters are in, the first one if it is stacked. */
static size_t directory_of(const struct recording *of)
{
	const char *slash = strrchr(of->limiters[0], '/');
	size_t length = slash ? (size_t)(slash - of->limiters[0]) + 1 : 0;

	for (size_t i = 1; i < of->count; i++) {
		while (length && (strncmp(of->limiters[i], of->limiters[0], length) ||
				  of->limiters[0][length - 1] != '/'))
			length--;
	}
	return length;
}

static const char *name_of(const struct drawing *drawing, size_t line)
{
	const char *path = drawing->of->limiters[drawing->lines[line]], *parent;
	size_t skipped = drawing->directory;

	if (drawing->stacked && line) {
		parent = drawing->of->limiters[0];
		if (!strncmp(path, parent, strlen(parent)) && path[strlen(parent)] == '/')
			skipped = strlen(parent) + 1;
	}
	return path[skipped] ? path + skipped : path;
}

static const char *colour_of(const struct drawing *drawing, size_t line)
{
	if (drawing->stacked)
		return line ? COLOURS[line - 1] : INK;
	return COLOURS[line % COLOUR_COUNT];
}

/* Returns the kind of dashes that tells a line from others of that colour; 1: none. */
static size_t dashes_of(const struct drawing *drawing, size_t line)
{
	return drawing->stacked ? 1 : 1 + line / COLOUR_COUNT;
}

/* Prints the data of a line, a column for each of the recording. */
static void print_block(const struct drawing *drawing, size_t line)
{
	fprintf(drawing->out, "$line%zu << END\n", line);
	for (size_t round = 0; round < drawing->of->rounds; round++) {
		fprintf(drawing->out, "%.10g",
			drawing->of->seconds[round] / UNITS[drawing->unit].seconds);
		for (enum column c = 0; c < COLUMN_COUNT; c++) {
			double value = value_of(drawing, drawing->lines[line], round, c);

			if (isfinite(value))
				fprintf(drawing->out, "\t%.10g", value);
			else
				fputs("\t-", drawing->out);
		}
		fputc('\n', drawing->out);
	}
	fputs("END\n", drawing->out);
}

/*
 * Prints the tops of the layers of a stack: children that have a line from below, then those that
 * have none, then readers of the limiter itself.
 */
static void print_stack(const struct drawing *drawing)
{
	fputs("$stack << END\n", drawing->out);
	for (size_t round = 0; round < drawing->of->rounds; round++) {
		double sum = 0;

		fprintf(drawing->out, "%.10g",
			drawing->of->seconds[round] / UNITS[drawing->unit].seconds);
		for (size_t line = 1; line < drawing->count; line++) {
			sum += granted_of(drawing, drawing->lines[line], round);
			fprintf(drawing->out, "\t%.10g", sum);
		}
		fprintf(drawing->out, "\t%.10g\t%.10g\n", children_top(drawing, round),
			stack_top(drawing, round));
	}
	fputs("END\n", drawing->out);
}

static void print_layer(const struct drawing *drawing, size_t column, const char *colour)
{
	fprintf(drawing->out, ", $stack using 1:%zu with fillsteps fs solid lc rgb '%s' notitle",
		column, colour);
}

/* Draws the layers, each over those that are higher. */
static void draw_stack(const struct drawing *drawing)
{
	size_t children = drawing->count - 1;

	print_layer(drawing, children + 3, OWN);
	print_layer(drawing, children + 2, OTHERS);
	for (size_t line = children; line; line--)
		print_layer(drawing, line + 1, COLOURS[line - 1]);
}

static void draw_legend(const struct drawing *drawing)
{
	for (size_t line = 0; line < drawing->count; line++) {
		size_t dashes = dashes_of(drawing, line);

		fprintf(drawing->out, ", keyentry with lines lw %d dt %zu lc rgb '%s' title ",
			dashes == 1 ? 6 : 2, dashes, colour_of(drawing, line));
		print_quoted(drawing->out, name_of(drawing, line));
	}
	if (!drawing->stacked)
		return;
	if (drawing->count < drawing->of->count)
		fprintf(drawing->out, ", keyentry with lines lw 6 lc rgb '%s' title '%zu others'",
			OTHERS, drawing->of->count - drawing->count);
	fprintf(drawing->out, ", keyentry with lines lw 6 lc rgb '%s' title 'its own readers'",
		OWN);
}

/* Begins a line of a limiter, without its style. */
static void begin_line(const struct drawing *drawing, size_t line, enum column column, double scale)
{
	fprintf(drawing->out, ", $line%zu using 1:($%d*%g) with ", line, (int)column + 2, scale);
}

/* Draws the lines of panel @p, each over a filled area if they are few. */
static void draw_lines(const struct drawing *drawing, size_t p, double scale)
{
	bool stack = is_stack(drawing, p);
	bool filled = drawing->count <= FILLED_MAX && !drawing->stacked;

	for (size_t line = 0; line < drawing->count; line++) {
		if (!filled || !drawing->shown[line][PANELS[p].column])
			continue;
		begin_line(drawing, line, PANELS[p].column, scale);
		fprintf(drawing->out,
			"fillsteps fs transparent solid 0.2 noborder lc rgb '%s' notitle",
			colour_of(drawing, line));
	}
	for (size_t line = 0; line < (stack ? 1 : drawing->count); line++) {
		if (drawing->shown[line][PANELS[p].column]) {
			begin_line(drawing, line, PANELS[p].column, scale);
			fprintf(drawing->out, "steps lw 1.8 dt %zu lc rgb '%s' notitle",
				dashes_of(drawing, line), colour_of(drawing, line));
		}
		if (has_dashed(drawing, line, p)) {
			begin_line(drawing, line, PANELS[p].dashed, scale);
			fprintf(drawing->out, "steps lw 1.8 dt (9,6) lc rgb '%s' notitle",
				colour_of(drawing, line));
		}
	}
}

/* Sets an axis from 0 to @most, above 0, or more: whole steps of 1, 2 or 5 times a power of 10. */
static void set_axis(FILE *out, double most, bool whole)
{
	double least = most / STEPS, power = pow(10, floor(log10(least)));
	double step = 10 * power;

	if (least <= power * (1 + 1e-9))
		step = power;
	else if (least <= 2 * power)
		step = 2 * power;
	else if (least <= 5 * power)
		step = 5 * power;
	step = whole ? fmax(step, 1) : step;
	fprintf(out, "set yrange [0:%.10g]\nset ytics %.10g\n",
		step * ceil(most / step * (1 - 1e-9)), step);
}

/* Sets the axis of panel @p, and its title in quotes behind @set. Returns its values' scale. */
static double begin_panel(const struct drawing *drawing, size_t p, const char *set)
{
	bool small, dashed = false;
	double most = 0, scale;

	for (size_t line = 0; line < drawing->count; line++) {
		most = fmax(most, drawing->most[line][PANELS[p].column]);
		if (has_dashed(drawing, line, p)) {
			most = fmax(most, drawing->most[line][PANELS[p].dashed]);
			dashed = true;
		}
	}
	for (size_t round = 0; is_stack(drawing, p) && round < drawing->of->rounds; round++)
		most = fmax(most, stack_top(drawing, round));
	small = PANELS[p].column == COLUMN_DELAY && most < 1; /* in milliseconds */
	scale = small ? 1000 : PANELS[p].scale;
	most *= scale;
	set_axis(drawing->out, most > LEAST ? fmin(most, MOST) : 1, PANELS[p].whole);
	fprintf(drawing->out, "set %s '%s", set,
		small ? "delay of back-off, milliseconds" : PANELS[p].title);
	if (dashed)
		fprintf(drawing->out, "; %s: %s", drawing->signs ? "dotted" : "dashed",
			PANELS[p].of_dashed);
	fputc('\'', drawing->out);
	return scale;
}

/* Draws panel @p as the one in row @row, from the top. */
static void draw_panel(const struct drawing *drawing, size_t p, unsigned int row)
{
	unsigned int above = HEAD + drawing->legend + row * PANEL + (row ? TALLER : 0);
	FILE *out = drawing->out;
	double scale = begin_panel(drawing, p, "label 1");

	fputs(" at graph 0,1 left offset 0,1\n", out);
	fprintf(out, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
		1 - (double)(above + TITLE) / drawing->height,
		1 - (double)(above + PANEL + (row ? 0 : TALLER)) / drawing->height);
	/* An invisible point, so that there is one, also where no line is. */
	fputs("plot $line0 using (0):(0) with dots lc bgnd notitle", out);
	if (is_stack(drawing, p))
		draw_stack(drawing);
	draw_lines(drawing, p, scale);
	if (!row && drawing->legend)
		draw_legend(drawing);
	fputs("\nunset key\nunset label 2\nunset label 3\n", out);
}

/* Prints a title: limiters, and below it the host and the times of day. */
static void print_title(const struct drawing *drawing)
{
	const struct recording *of = drawing->of;
	size_t named = drawing->stacked ? 1 : of->count < TITLE_NAMES ? of->count : TITLE_NAMES;
	double over = of->began + of->seconds[of->rounds - 1];
	char from[64] = "", to[64] = "";
	time_t began, ended;
	FILE *out = drawing->out;
	size_t letters = 0;

	if (of->began >= 0 && over < YEAR_9999) {
		began = (time_t)of->began;
		ended = (time_t)over;
		strftime(from, sizeof(from), "%F, %T", localtime(&began));
		strftime(to, sizeof(to), " to %F, %T %Z", localtime(&ended));
		if (!strncmp(from, to + strlen(" to "), strlen("2000-01-01")))
			strftime(to, sizeof(to), " to %T %Z", localtime(&ended));
	}
	fputs("set label 2 ", out);
	for (size_t line = 0; line < named; line++) {
		const char *name = name_of(drawing, line);

		letters += strlen(name);
		if (line && letters > TITLE_LETTERS) {
			named = line;
			break;
		}
		fputs(line ? ".', '." : "", out);
		print_quoted(out, name);
	}
	if (drawing->stacked)
		fputs(".' and its children'", out);
	else if (named < of->count)
		fprintf(out, ".' and %zu more'", of->count - named);
	fprintf(out, " at screen %.5f,%.5f left font ',14' textcolor rgb '%s' noenhanced\n",
		(double)LEFT / WIDTH, 1 - 20.0 / drawing->height, INK);
	fputs("set label 3 ", out);
	print_quoted(out, of->host);
	fprintf(out, ".'%s%s%s' at screen %.5f,%.5f left textcolor rgb '%s' noenhanced\n",
		*of->host && *from ? ", " : "", from, to, (double)LEFT / WIDTH,
		1 - 40.0 / drawing->height, FAINT);
}

static double length_of(const struct drawing *drawing)
{
	return drawing->of->seconds[drawing->of->rounds - 1] / UNITS[drawing->unit].seconds;
}

static void print_head(const struct drawing *drawing, const char *file, unsigned int columns)
{
	fprintf(drawing->out,
		"set terminal %s size %d,%u\nset datafile missing '-'\nset datafile separator "
		"tab\n",
		terminal_of(file), WIDTH, drawing->height);
	for (size_t line = 0; line < drawing->count; line++)
		print_block(drawing, line);
	if (drawing->stacked)
		print_stack(drawing);
	fprintf(drawing->out,
		"set border 1 lc rgb '%s'\nset tics nomirror scale 0.5,0 textcolor rgb '%s'\n"
		"set ytics scale 0\nset grid ytics lt 1 lw 0.6 lc rgb '%s'\n"
		"set label 1 textcolor rgb '%s' noenhanced\n",
		OTHERS, FAINT, GRID, INK);
	print_title(drawing);
	fprintf(drawing->out,
		"set key at screen %.5f,%.5f left top horizontal Left reverse noenhanced "
		"maxcols %u samplen 1.5 textcolor rgb '%s'\n",
		(double)(LEFT - INSET) / WIDTH, 1 - (double)HEAD / drawing->height, columns, INK);
	fprintf(drawing->out,
		"set lmargin at screen %.5f\nset rmargin at screen %.5f\nset xrange [0:%.10g]\n"
		"set format x ''\n",
		(double)LEFT / WIDTH, 1 - (double)RIGHT / WIDTH, length_of(drawing));
}

/* Returns how many names of the legend stand side by side. */
static unsigned int legend_columns(const struct drawing *drawing)
{
	size_t longest = drawing->stacked ? strlen("its own readers") : 0;

	for (size_t line = 0; line < drawing->count; line++) {
		size_t length = strlen(name_of(drawing, line));

		longest = length > longest ? length : longest;
	}
	longest = (WIDTH - LEFT - RIGHT) / (longest * LETTER + SWATCH);
	return longest ? (unsigned int)longest : 1;
}

/* The signs of which gnuplot's terminal dumb draws lines of the types from 1 on. */
static const char SIGNS[] = "*#$%@&=";
enum { SIGN_COUNT = sizeof(SIGNS) - 1 };

/* Prints the names, each in a line of @columns with its sign before it. */
static void print_signs(const struct drawing *drawing, unsigned int columns)
{
	char cut[PATH_MAX];

	fputs("set print '-'\n", drawing->out);
	for (size_t line = 0; line < drawing->count; line++) {
		cells_slice(name_of(drawing, line), 0, columns - 2, cut, sizeof(cut));
		fprintf(drawing->out, "print '%c '.", SIGNS[line % SIGN_COUNT]);
		print_quoted(drawing->out, cut);
		fputc('\n', drawing->out);
	}
}

/* Draws panel @p in signs, below the one before. */
static void draw_signs(const struct drawing *drawing, size_t p, bool last)
{
	FILE *out = drawing->out;
	double scale = begin_panel(drawing, p, "title");

	fprintf(out, "\nset xlabel '%s'\nset bmargin %d\n", last ? UNITS[drawing->unit].name : "",
		last ? 3 : 2);
	/* A point below the axis, as in an image. */
	fputs("plot $line0 using (0):(-1) with dots", out);
	for (size_t line = 0; line < drawing->count; line++) {
		if (has_dashed(drawing, line, p)) {
			begin_line(drawing, line, PANELS[p].dashed, scale);
			fputs("steps lt 0", out);
		}
		if (drawing->shown[line][PANELS[p].column]) {
			begin_line(drawing, line, PANELS[p].column, scale);
			fprintf(out, "steps lt %zu", 1 + line % SIGN_COUNT);
		}
	}
	fputc('\n', out);
}

/* Draws for the terminal that standard output is. */
static void draw_on_terminal(const struct drawing *drawing, unsigned int panels)
{
	unsigned int rows, columns, row = 0, each;

	cells_of_terminal(STDOUT_FILENO, &rows, &columns);
	columns = columns < COLUMNS_MIN ? COLUMNS_MIN : columns;
	each = rows / panels;
	each = each < SIGN_ROWS_MIN ? SIGN_ROWS_MIN : each > SIGN_ROWS_MAX ? SIGN_ROWS_MAX : each;
	fprintf(drawing->out,
		"set terminal dumb size %u,%u\nset datafile missing '-'\n"
		"set datafile separator tab\nset border 3\nset tics nomirror\n"
		"unset key\nset tmargin 1\nset xrange [0:%.10g]\n",
		columns - 1, each, length_of(drawing));
	for (size_t line = 0; line < drawing->count; line++)
		print_block(drawing, line);
	print_signs(drawing, columns - 1);
	for (size_t p = 0; p < PANEL_COUNT; p++) {
		if (is_shown(drawing, p))
			draw_signs(drawing, p, ++row == panels);
	}
}

/* Draws the image that the end of @file names. */
static void draw_image(struct drawing *drawing, const char *file, unsigned int panels)
{
	unsigned int columns = legend_columns(drawing), row = 0;
	unsigned int names = (unsigned int)drawing->count;

	names += 2 * drawing->stacked; /* others, and its own readers */
	if (drawing->of->count > 1)
		drawing->legend = GAP + LEGEND_ROW * ((names - 1) / columns + 1);
	drawing->height = HEAD + drawing->legend + panels * PANEL + TALLER + FOOT;
	print_head(drawing, file, columns);
	fputs("set multiplot\n", drawing->out);
	for (size_t p = 0; p < PANEL_COUNT; p++) {
		if (!is_shown(drawing, p))
			continue;
		if (row + 1 == panels)
			fprintf(drawing->out,
				"set format x '%%g'\nset xlabel '%s' textcolor rgb '%s'\n",
				UNITS[drawing->unit].name, FAINT);
		draw_panel(drawing, p, row++);
	}
	fputs("unset multiplot\n", drawing->out);
}

void draw_script(const struct recording *recording, const char *file, bool stacked, FILE *out)
{
	struct drawing drawing = {.of = recording,
				  .out = out,
				  .stacked = stacked && recording->count > 1,
				  .signs = !file};
	unsigned int panels = 0;

	drawing.directory = directory_of(recording);
	while (recording->seconds[recording->rounds - 1] < UNITS[drawing.unit].from)
		drawing.unit++;
	choose_lines(&drawing);
	for (size_t line = 0; line < drawing.count; line++) {
		for (enum column c = 0; c < COLUMN_COUNT; c++)
			measure(&drawing, line, c);
	}
	for (size_t p = 0; p < PANEL_COUNT; p++)
		panels += is_shown(&drawing, p);
	if (file)
		draw_image(&drawing, file, panels);
	else
		draw_on_terminal(&drawing, panels);
}
