/*
 * status - whether something is wrong with a mounted tree, and what: for a person, or as JSON.
 */
#include "companions/cells.h"
#include "companions/companion.h"
#include "companions/health.h"
#include "companions/json.h"
#include "companions/mounted.h"

#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LINES_MAX = 20, /* limiters that a person is shown */
	NAME_COLUMNS = 40,
	WHYS_MAX = 1000, /* limiters whose reasons JSON has */
	SHOWN_TEXT = 16384,
	STATUS_WRONG = 1,
};

static const char OK[] = "ok";

/* The lines of the file status in JSON. */
static const struct {
	const char *name, *key;
	bool is_text;
} LINES[] = {
	{"version", "version", true},
	{"host", "host", true},
	{"source", "source", true},
	{"coordinator", "coordinator", true},
	{"uptime_seconds", "uptime_seconds", false},
	{"servers_before", "servers_before", false},
	{"damaged_settings", "damaged_settings", false},
	{"limiters", "limiter_count", false},
	{"waiters", "waiters", false},
};

/* Prints @text in at most @columns, with a question mark for what a terminal might act on. */
static void put(const char *text, unsigned int columns)
{
	char shown[SHOWN_TEXT];

	cells_slice(text, 0, columns, shown, sizeof(shown));
	fputs(shown, stdout);
}

/* Prints @text in exactly @columns. */
static void put_padded(const char *text, unsigned int columns)
{
	char shown[SHOWN_TEXT];

	cells_fit(text, columns, shown, sizeof(shown));
	fputs(shown, stdout);
}

static void put_line(const char *title, const char *value, size_t length)
{
	char *text = strndup(value, length);

	printf("%-10s", title);
	put(text ? text : "", UINT_MAX);
	putchar('\n');
	free(text);
}

static void put_number(double value)
{
	char text[CELL_BYTES];

	cells_print_number(value, text);
	printf("%10s  ", text);
}

/* Prints since when the server is there. */
static void put_uptime(const struct health *health)
{
	uint64_t before = health_number(health, "servers_before");
	char span[CELL_BYTES];

	cells_print_span((double)health_number(health, "uptime_seconds"), span);
	printf("%-10s%s", "up", span);
	if (before)
		printf(", servers before it: %" PRIu64, before);
	putchar('\n');
}

static void put_hosts(const struct health *health)
{
	const char *sign = ": ";

	if (!health->host_count)
		return;
	printf("%-10s%zu, %zu silent", "hosts", health->host_count, health->silent_count);
	for (size_t i = 0, told = 0; i < health->host_count && told < LINES_MAX; i++) {
		if (!health->hosts[i].is_silent)
			continue;
		fputs(sign, stdout);
		put(health->hosts[i].name, UINT_MAX);
		sign = ", ";
		told++;
	}
	putchar('\n');
}

/* Prints the line of a limiter, whose path has @columns. 0 or -errno. */
static int put_limiter(const struct health *health, const struct health_limiter *limiter,
		       size_t columns)
{
	const struct sample *sample = limiter->sample;
	char *why = health_why(health, limiter);

	if (!why)
		return -errno;
	put_number(sample->values[STAT_WAITING]);
	put_number(sample->values[STAT_RATE]);
	put_number(sample->values[STAT_GRANTED]);
	put_padded(sample->path, (unsigned int)columns);
	fputs("  ", stdout);
	put(*why ? why : "-", UINT_MAX);
	putchar('\n');
	free(why);
	return 0;
}

/* Prints some of the limiters. 0 or -errno. */
static int put_limiters(const struct health *health)
{
	size_t shown = health->limiter_count < LINES_MAX ? health->limiter_count : LINES_MAX;
	size_t columns = strlen("LIMITER");
	int err = 0;

	for (size_t i = 0; i < shown; i++) {
		size_t cells = cells_count(health->limiters[i].sample->path);

		columns = cells > columns ? cells : columns;
	}
	columns = columns < NAME_COLUMNS ? columns : NAME_COLUMNS;
	if (shown)
		printf("\n%10s  %10s  %10s  %-*s  WHY\n", "WAITING", "RATE/s", "GRANTED",
		       (int)columns, "LIMITER");
	for (size_t i = 0; !err && i < shown; i++)
		err = put_limiter(health, &health->limiters[i], columns);
	if (!err && health->limiter_count > shown)
		printf("and %zu more\n", health->limiter_count - shown);
	return err;
}

/* 0 or -errno. */
static int print_text(const struct health *health)
{
	static const char *const lines[] = {"version",	   "host",     "source",
					    "coordinator", "limiters", "waiters"};
	const char *value;

	if (!health->wrong_count)
		puts(OK);
	for (size_t i = 0; i < health->wrong_count; i++) {
		put(health->wrong[i], UINT_MAX);
		putchar('\n');
	}
	putchar('\n');
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		size_t length = health_status(health, lines[i], &value);

		if (length && (health->host_count || strcmp(lines[i], "coordinator") != 0))
			put_line(strcmp(lines[i], "coordinator") != 0 ? lines[i] : "fleet", value,
				 length);
	}
	put_uptime(health);
	put_hosts(health);
	return put_limiters(health);
}

static void json_key(const char *sign, const char *key)
{
	printf("%s\"%s\":", sign, key);
}

static void json_value(const char *sign, const char *key, const char *text, size_t length)
{
	json_key(sign, key);
	json_text(stdout, text, length);
}

/* Prints null for a number that is not told, and for no limit. */
static void json_number(const char *key, double value)
{
	json_key(",", key);
	if (isfinite(value))
		printf("%.15g", value);
	else
		fputs("null", stdout);
}

static void json_hosts(const struct health *health)
{
	json_key(",\n ", "hosts");
	putchar('[');
	for (size_t i = 0; i < health->host_count; i++) {
		const struct health_host *host = &health->hosts[i];

		json_value(i ? ",\n  {" : "\n  {", "name", host->name, strlen(host->name));
		json_number("weight", host->weight);
		json_number("held", host->held);
		json_number("silent_seconds", (double)host->silent_s);
		printf(",\"silent\":%s}", host->is_silent ? "true" : "false");
	}
	putchar(']');
}

/* Prints the limiters. 0 or -errno. */
static int json_limiters(const struct health *health)
{
	json_key(",\n ", "limiters");
	putchar('[');
	for (size_t i = 0; i < health->limiter_count; i++) {
		const struct health_limiter *limiter = &health->limiters[i];
		const struct sample *sample = limiter->sample;
		char *why = i < WHYS_MAX ? health_why(health, limiter) : strdup("");

		if (!why)
			return -errno;
		json_value(i ? ",\n  {" : "\n  {", "path", sample->path, strlen(sample->path));
		printf(",\"stuck\":%s", limiter->closed ? "true" : "false");
		json_number("waiting", sample->values[STAT_WAITING]);
		json_number("rate", sample->values[STAT_RATE]);
		json_number("granted", sample->values[STAT_GRANTED]);
		json_number("share", sample->values[STAT_SHARE]);
		json_value(",", "why", why, strlen(why));
		putchar('}');
		free(why);
	}
	putchar(']');
	return 0;
}

/* 0 or -errno. */
static int print_json(const struct health *health)
{
	const char *verdict = health->wrong_count ? health->wrong[0] : OK, *value;
	int err;

	json_value("{", "verdict", verdict, strlen(verdict));
	json_key(",\n ", "wrong");
	putchar('[');
	for (size_t i = 0; i < health->wrong_count; i++) {
		fputs(i ? "," : "", stdout);
		json_text(stdout, health->wrong[i], strlen(health->wrong[i]));
	}
	putchar(']');
	for (size_t i = 0; i < sizeof(LINES) / sizeof(LINES[0]); i++) {
		size_t length = health_status(health, LINES[i].name, &value);

		if (LINES[i].is_text)
			json_value(",\n ", LINES[i].key, length ? value : "", length);
		else
			json_number(LINES[i].key, (double)health_number(health, LINES[i].name));
	}
	json_hosts(health);
	err = json_limiters(health);
	fputs("}\n", stdout);
	return err;
}

static int show(const char *mountpoint, bool json)
{
	struct health health;
	int status, err;

	if (health_take(mountpoint, &health))
		return STATUS_TROUBLE;
	err = json ? print_json(&health) : print_text(&health);
	status = health.wrong_count ? STATUS_WRONG : EXIT_SUCCESS;
	health_free(&health);
	if (err) {
		warnx("%s: %s", mountpoint, strerror(-err));
		return STATUS_TROUBLE;
	}
	if (fflush(stdout) || ferror(stdout)) {
		warn("standard output");
		return STATUS_TROUBLE;
	}
	return status;
}

static void print_usage(void)
{
	printf("usage: ratefs status [options] [MOUNTPOINT]\n"
	       "\n"
	       "Says in its first line what is wrong with a mounted tree, or ok; without\n"
	       "MOUNTPOINT, with the only one. The exit status is 0 for ok, 1 if something is\n"
	       "wrong, and 2 for trouble, as without a mount.\n"
	       "\n"
	       "options:\n"
	       "    --json              the same as an object of JSON\n"
	       "    -h, --help          print this\n");
}

int status_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	const char *mountpoint;
	char only[PATH_MAX];
	bool json = false;
	int option;

	while ((option = getopt_long(argc, argv, "h", options, NULL)) >= 0) {
		switch (option) {
		case 'j':
			json = true;
			break;
		case 'h':
			print_usage();
			return EXIT_SUCCESS;
		default:
			return companion_usage();
		}
	}
	if (argc - optind > 1) {
		warnx("an argument too many: '%s'", argv[optind + 1]);
		return companion_usage();
	}
	setlocale(LC_CTYPE, "");
	mountpoint = optind < argc ? argv[optind] : mounted_find(only);
	return mountpoint ? show(mountpoint, json) : STATUS_TROUBLE;
}
