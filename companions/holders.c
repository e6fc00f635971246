/* holders - the partitions or pieces of a limiter, by host, see holders.h. */
#include "companions/holders.h"
#include "companions/sample.h"

#include "core/values/quantity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 256, AT_ONCE = 64, FILE_BYTES = 16, TEXT_BYTES = 1024 };

/* One partition or piece. */
struct share {
	char holder[NAME_BYTES];
	unsigned int first, last;
	bool reserve;
	double rate; /* as in struct holder */
};

struct shares {
	struct share *all; /* owned */
	size_t count;
};

/* Parses the number that *@text begins with, and moves *@text behind it. */
static bool parse_number(const char **text, unsigned int *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = (unsigned int)strtoul(*text, &end, 10);
	*text = end;
	return true;
}

/* Parses the name of a partition, `7` or `r7`, or of a piece, `7` or `7-12`. */
static bool parse_name(const char *name, struct share *share)
{
	share->reserve = *name == 'r';
	name += share->reserve;
	if (!parse_number(&name, &share->first))
		return false;
	share->last = share->first;
	if (*name == '-' && !share->reserve) {
		name++;
		if (!parse_number(&name, &share->last) || share->last < share->first)
			return false;
	}
	return !*name;
}

/* Reads the first line of @file of the partition called @name. */
static int read_line(int directory, const char *name, const char *file, char line[TEXT_BYTES])
{
	char path[NAME_BYTES + FILE_BYTES];
	ssize_t got;
	int descriptor;

	snprintf(path, sizeof(path), "%.*s/%s", NAME_BYTES - 1, name, file);
	descriptor = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return -errno;
	got = read(descriptor, line, TEXT_BYTES - 1);
	close(descriptor);
	if (got < 0)
		return -errno;
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return 0;
}

/* Returns the least of the rates in @text, which are written as in `rate`. */
static double least_rate(char *text)
{
	double least = (double)NAN;
	char *rest = NULL;

	for (char *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		struct rate rate;

		word[strcspn(word, ":")] = '\0';
		if (!strcmp(word, "max"))
			least = (double)INFINITY;
		else if (!rate_parse_limit(word, &rate))
			least = fmin(least, rate_per_second(&rate));
	}
	return least;
}

/* Reads the files of the partition called @name. */
static int read_share(int directory, const char *name, struct share *share)
{
	char line[TEXT_BYTES];
	int err = read_line(directory, name, "holder", line);

	if (err)
		return err;
	snprintf(share->holder, sizeof(share->holder), "%.*s", NAME_BYTES - 1, line);
	if (!*line && !read_line(directory, name, "state", line) && !strcmp(line, "gone"))
		strcpy(share->holder, HOLDER_GONE);
	share->rate = read_line(directory, name, "rate", line) ? (double)NAN : least_rate(line);
	return 0;
}

static int add_share(struct shares *shares, const struct share *share)
{
	struct share *more;

	if (shares->count % AT_ONCE == 0) {
		more = reallocarray(shares->all, shares->count + AT_ONCE, sizeof(*more));
		if (!more)
			return -ENOMEM;
		shares->all = more;
	}
	shares->all[shares->count++] = *share;
	return 0;
}

/* The limiter may change meanwhile: a missing part is left out. */
static int read_shares(const char *path, struct shares *shares)
{
	DIR *directory = opendir(path);
	struct dirent *entry;
	int err = 0;

	if (!directory)
		return -errno;
	while (!err && (entry = readdir(directory))) {
		struct share share = {0};

		if (parse_name(entry->d_name, &share) &&
		    !read_share(dirfd(directory), entry->d_name, &share))
			err = add_share(shares, &share);
	}
	closedir(directory);
	return err;
}

static int compare(const void *a, const void *b)
{
	const struct share *first = a, *second = b;
	int order = strcmp(first->holder, second->holder);

	if (!order)
		order = first->reserve - second->reserve;
	return order ? order : (first->first > second->first) - (first->first < second->first);
}

/* Tells whether the second comes right after the first, with the same holder. */
static bool follows(const struct share *first, const struct share *second)
{
	return first->reserve == second->reserve && first->last + 1 == second->first &&
	       !strcmp(first->holder, second->holder);
}

/* Prints leaves @first to @last: `4`, `4 5` or `4-6`. */
static void print_run(FILE *out, bool reserve, unsigned int first, unsigned int last)
{
	const char *sign = reserve ? "r" : "";

	fprintf(out, "%s%u", sign, first);
	if (last > first + 1)
		fprintf(out, "-%u", last);
	else if (last > first)
		fprintf(out, " %s%u", sign, last);
}

/* Prints the partitions of one holder, from the first of @share on. Returns how many. */
static size_t print_runs(const struct share *share, size_t left, FILE *out)
{
	size_t count = 0, run;

	while (count < left && !strcmp(share[count].holder, share[0].holder)) {
		const struct share *first = &share[count];

		for (run = 1; count + run < left && follows(&first[run - 1], &first[run]); run++)
			;
		fputs(count ? " " : "", out);
		print_run(out, first->reserve, first->first, first[run - 1].last);
		count += run;
	}
	return count;
}

/* Adds up what @count of @share are worth, and their leaves, without those of the reserve. */
static void add_up(const struct share *share, size_t count, double *rate, double *leaves)
{
	*rate = 0;
	*leaves = 0;
	for (size_t i = 0; i < count; i++) {
		*rate += share[i].rate;
		if (!share[i].reserve)
			*leaves += share[i].last - share[i].first + 1;
	}
}

/* Draws which of @all leaves the @count of @share are, a sign for some of them. */
static void draw_map(const struct share *share, size_t count, unsigned int all,
		     char map[HOLDERS_SIGNS + 1])
{
	unsigned int signs = all < HOLDERS_SIGNS ? all : HOLDERS_SIGNS;

	for (unsigned int sign = 0; sign < signs; sign++) {
		uint64_t first = (uint64_t)sign * all / signs;
		uint64_t end = (uint64_t)(sign + 1) * all / signs, held = 0;

		for (size_t i = 0; i < count; i++) {
			uint64_t from = share[i].first > first ? share[i].first : first;
			uint64_t to = share[i].last < end ? share[i].last + 1ULL : end;

			held += !share[i].reserve && to > from ? to - from : 0;
		}
		map[sign] = held == end - first ? '#' : held ? '+' : '.';
	}
	map[signs] = '\0';
}

static int group(const struct shares *shares, struct holders *holders)
{
	double all_rate, all_leaves, leaves;
	unsigned int end = 0;

	for (size_t i = 0; i < shares->count; i++) {
		if (!shares->all[i].reserve && shares->all[i].last >= end)
			end = shares->all[i].last + 1;
	}
	add_up(shares->all, shares->count, &all_rate, &all_leaves);
	for (size_t i = 0; i < shares->count;) {
		struct holder *holder = &holders->all[holders->count];
		size_t length;
		FILE *out;

		holder->name = strdup(shares->all[i].holder);
		out = open_memstream(&holder->partitions, &length);
		if (!holder->name || !out)
			return -ENOMEM;
		holders->count++;
		holder->count = print_runs(&shares->all[i], shares->count - i, out);
		add_up(&shares->all[i], holder->count, &holder->rate, &leaves);
		draw_map(&shares->all[i], holder->count, end, holder->map);
		holder->share = isfinite(all_rate) && all_rate > 0 ? holder->rate / all_rate
								   : leaves / all_leaves;
		i += holder->count;
		if (fclose(out))
			return -ENOMEM;
	}
	return 0;
}

int holders_read(const char *mountpoint, const char *path, struct holders *holders)
{
	struct shares shares = {0};
	char directory[PATH_MAX];
	int err = -ENAMETOOLONG;

	*holders = (struct holders){0};
	if (sample_path(mountpoint, path, "partitions", directory))
		err = read_shares(directory, &shares);
	if (!err && shares.count) {
		qsort(shares.all, shares.count, sizeof(*shares.all), compare);
		holders->all = calloc(shares.count, sizeof(*holders->all));
		err = holders->all ? group(&shares, holders) : -ENOMEM;
	}
	free(shares.all);
	if (err)
		holders_free(holders);
	return err;
}

void holders_free(struct holders *holders)
{
	for (size_t i = 0; i < holders->count; i++) {
		free(holders->all[i].name);
		free(holders->all[i].partitions);
	}
	free(holders->all);
	*holders = (struct holders){0};
}
