/*
 * draw - a recording as a script for gnuplot(1), see draw.h.
 *
 * Panels stand one below the other, over one axis of time. A panel that has nothing to show, such
 * as pauses where there were none, is left out.
 */
#include "companions/draw.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 960, PANEL = 170, TITLE = 30, FOOT = 48, LEGEND_ROW = 20 }; /* pixels */
enum { LEFT = 64, RIGHT = 16, LETTER = 7, SWATCH = 52, GAP = 8 };	   /* pixels, too */
enum { LINES_MAX = 64, STACK_MAX = 9 };
enum { FEW = 6 }; /* whole things: less have an axis with a mark for each */

#define HEADROOM 1.08 /* above the largest value */

/* Colours that also those with a colour vision deficiency tell apart, on white. */
static const char *const COLOURS[] = {"#2563eb", "#d97706", "#059669", "#db2777", "#7c3aed",
				      "#0891b2", "#65a30d", "#dc2626", "#92400e"};
static const char INK[] = "#1f2937", FAINT[] = "#5b6472", GRID[] = "#e2e5ea";
static const char OWN[] = "#9aa3b2", OTHERS[] = "#cbd1da", TINT[] = "#dbe7fd";

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

static const struct {
	enum column column;
	const char *title;
	double scale;  /* of the values */
	bool whole;    /* of whole things */
	double unless; /* the panel is left out if every value is that; not a number: never */
} PANELS[] = {
	{COLUMN_GRANTED, "granted/s, tokens", 1, false, (double)NAN},
	{COLUMN_WAITING, "waiting, readers", 1, true, (double)NAN},
	{COLUMN_RATE, "effective rate/s, tokens", 1, false, (double)INFINITY},
	{COLUMN_THROTTLED, "throttled/s, pieces of work", 1, false, 0},
	{COLUMN_DELAY, "delay of back-off, seconds", 1, false, 0},
	{COLUMN_PAUSED, "pauses of back-off, % of the time", 100, false, 0},
	{COLUMN_SHARE, "share of the limit, %", 100, false, 1},
};

enum { PANEL_COUNT = sizeof(PANELS) / sizeof(PANELS[0]) };

struct drawing {
	const struct recording *of;
	FILE *out;
	bool stacked;
	size_t lines[LINES_MAX]; /* limiters that have a line, @count of them */
	size_t count;
	unsigned int height, legend; /* pixels */
};

/* Returns what limiter @i did from @round on, until the next one; from the last one: before it. */
static double value_of(const struct drawing *drawing, size_t i, size_t round, size_t panel)
{
	if (round + 1 < drawing->of->rounds)
		round++;
	return recording_value(drawing->of, i, round, PANELS[panel].column);
}

/* Returns the largest value of limiter @i in a panel that can be drawn; -1: there is none. */
static double largest(const struct drawing *drawing, size_t i, size_t panel)
{
	double most = -1;

	for (size_t round = 0; round < drawing->of->rounds; round++) {
		double value = value_of(drawing, i, round, panel);

		if (isfinite(value))
			most = fmax(most, value);
	}
	return most;
}

/* Returns whether a panel has something to show. */
static bool is_shown(const struct drawing *drawing, size_t panel)
{
	bool shown = isnan(PANELS[panel].unless);

	for (size_t l = 0; l < drawing->count && !shown; l++) {
		for (size_t round = 0; round < drawing->of->rounds && !shown; round++) {
			double value = value_of(drawing, drawing->lines[l], round, panel);

			shown = !isnan(value) && value != PANELS[panel].unless;
		}
	}
	return shown;
}

static double tokens_of(const struct recording *recording, size_t i)
{
	double sum = 0;

	for (size_t round = 1; round < recording->rounds; round++)
		sum += recording_value(recording, i, round, COLUMN_GRANTED) *
		       (recording->seconds[round] - recording->seconds[round - 1]);
	return sum;
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
		tokens[i] = tokens_of(of, i);
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

static const char *name_of(const struct drawing *drawing, size_t line)
{
	const char *path = drawing->of->limiters[drawing->lines[line]];
	const char *slash = drawing->stacked && line ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path;
}

/* Prints the style of a line: colours, and dashes where they do not suffice. */
static void print_style(const struct drawing *drawing, size_t line)
{
	const char *colour = COLOURS[line % COLOUR_COUNT];

	if (drawing->stacked)
		colour = line ? COLOURS[line - 1] : INK;
	fprintf(drawing->out, "lw 1.8 dt %zu lc rgb '%s'",
		drawing->stacked ? 1 : 1 + line / COLOUR_COUNT, colour);
}

/* Prints the data of a line, a column for each panel. */
static void print_block(const struct drawing *drawing, size_t line)
{
	fprintf(drawing->out, "$line%zu << END\n", line);
	for (size_t round = 0; round < drawing->of->rounds; round++) {
		fprintf(drawing->out, "%.3f", drawing->of->seconds[round]);
		for (size_t p = 0; p < PANEL_COUNT; p++) {
			double value = value_of(drawing, drawing->lines[line], round, p);

			if (isfinite(value))
				fprintf(drawing->out, "\t%.10g", value * PANELS[p].scale);
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
		double sum = 0, all = 0;

		fprintf(drawing->out, "%.3f", drawing->of->seconds[round]);
		for (size_t line = 1; line < drawing->count; line++) {
			sum += value_of(drawing, drawing->lines[line], round, 0);
			fprintf(drawing->out, "\t%.10g", sum);
		}
		for (size_t i = 1; i < drawing->of->count; i++)
			all += value_of(drawing, i, round, 0);
		fprintf(drawing->out, "\t%.10g\t%.10g\n", all,
			fmax(all, value_of(drawing, 0, round, 0)));
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
		fputs(", keyentry with lines ", drawing->out);
		print_style(drawing, line);
		fputs(" title ", drawing->out);
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

/* Draws the line of a limiter in panel @p, over a filled area if it is the only one. */
static void draw_line(const struct drawing *drawing, size_t line, size_t p, double scale)
{
	if (largest(drawing, drawing->lines[line], p) < 0)
		return; /* gnuplot warns of a line without points */
	if (drawing->count == 1)
		fprintf(drawing->out,
			", $line0 using 1:($%zu*%g) with fillsteps fs solid lc rgb '%s' notitle",
			p + 2, scale, TINT);
	fprintf(drawing->out, ", $line%zu using 1:($%zu*%g) with steps notitle ", line, p + 2,
		scale);
	print_style(drawing, line);
}

/* Draws panel @p as the one in row @row, from the top. */
static void draw_panel(const struct drawing *drawing, size_t p, unsigned int row)
{
	unsigned int above = drawing->legend + row * PANEL;
	bool stack = drawing->stacked && PANELS[p].column == COLUMN_GRANTED, small;
	FILE *out = drawing->out;
	double most = 0, scale;

	for (size_t line = 0; line < drawing->count; line++)
		most = fmax(most, largest(drawing, drawing->lines[line], p));
	small = PANELS[p].column == COLUMN_DELAY && most < 1; /* in milliseconds */
	scale = small ? 1000 : 1;
	fprintf(out, "set tmargin at screen %.5f\nset bmargin at screen %.5f\n",
		1 - (double)(above + TITLE) / drawing->height,
		1 - (double)(above + PANEL) / drawing->height);
	fprintf(out, "set label 1 '%s' at graph 0,1 left offset 0,0.8\nset yrange [0:%.10g]\n",
		small ? "delay of back-off, milliseconds" : PANELS[p].title,
		most > 0 ? most * PANELS[p].scale * scale * HEADROOM : 1);
	fprintf(out, "set ytics %s\n", PANELS[p].whole && most < FEW ? "1" : "autofreq");
	/* An invisible point, so that there is one, also where all rates are max. */
	fputs("plot $line0 using (0):(0) with dots lc bgnd notitle", out);
	if (stack)
		draw_stack(drawing);
	for (size_t line = 0; line < (stack ? 1 : drawing->count); line++)
		draw_line(drawing, line, p, scale);
	if (!row)
		draw_legend(drawing);
	fputs("\nunset key\n", out);
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
	fprintf(drawing->out,
		"set key at screen %.5f,%.5f left top horizontal Left reverse noenhanced "
		"maxcols %u samplen 1.5 textcolor rgb '%s'\n",
		(double)LEFT / WIDTH, 1 - 6.0 / drawing->height, columns, INK);
	fprintf(drawing->out,
		"set lmargin at screen %.5f\nset rmargin at screen %.5f\nset xrange [0:%.3f]\n"
		"set format x ''\n",
		(double)LEFT / WIDTH, 1 - (double)RIGHT / WIDTH,
		drawing->of->seconds[drawing->of->rounds - 1]);
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

void draw_script(const struct recording *recording, const char *file, bool stacked, FILE *out)
{
	struct drawing drawing = {.of = recording, .out = out, .stacked = stacked};
	unsigned int columns, panels = 0, row = 0;

	choose_lines(&drawing);
	for (size_t p = 0; p < PANEL_COUNT; p++)
		panels += is_shown(&drawing, p);
	columns = legend_columns(&drawing);
	drawing.legend =
		GAP + LEGEND_ROW * (((unsigned int)drawing.count + 2 * stacked - 1) / columns + 1);
	drawing.height = drawing.legend + panels * PANEL + FOOT;
	print_head(&drawing, file, columns);
	fputs("set multiplot\n", out);
	for (size_t p = 0; p < PANEL_COUNT; p++) {
		if (!is_shown(&drawing, p))
			continue;
		if (row + 1 == panels)
			fprintf(out,
				"set format x '%%g'\nset xlabel 'seconds' textcolor rgb '%s'\n",
				FAINT);
		draw_panel(&drawing, p, row++);
	}
	fputs("unset multiplot\n", out);
}
