/* holders - the partitions of a limiter, by host, see holders.h. */
#include "companions/holders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 256, AT_ONCE = 64, NUMBER_BYTES = 16 };

/* One partition. */
struct share {
	char holder[NAME_BYTES];
	unsigned int number;
	bool reserve;
};

struct shares {
	struct share *all; /* owned */
	size_t count;
};

/* Parses the name of a partition: `7` or `r7`. */
static bool parse_name(const char *name, struct share *share)
{
	char *end;

	share->reserve = *name == 'r';
	name += share->reserve;
	if (*name < '0' || *name > '9')
		return false;
	share->number = (unsigned int)strtoul(name, &end, 10);
	return !*end;
}

static int read_holder(int directory, const char *name, char holder[NAME_BYTES])
{
	char path[NAME_BYTES + NUMBER_BYTES];
	ssize_t got;
	int file;

	snprintf(path, sizeof(path), "%.*s/holder", NAME_BYTES - 1, name);
	file = openat(directory, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	got = read(file, holder, NAME_BYTES - 1);
	close(file);
	if (got < 0)
		return -errno;
	holder[got] = '\0';
	holder[strcspn(holder, "\n")] = '\0';
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

/* The limiter may change meanwhile: a partition that has gone is left out. */
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
		    !read_holder(dirfd(directory), entry->d_name, share.holder))
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
	return order ? order : (first->number > second->number) - (first->number < second->number);
}

/* Tells whether the second comes right after the first, with the same holder. */
static bool follows(const struct share *first, const struct share *second)
{
	return first->reserve == second->reserve && first->number + 1 == second->number &&
	       !strcmp(first->holder, second->holder);
}

/* Partitions of one holder, from the first of @share on; how many. */
static size_t print_runs(const struct share *share, size_t left, FILE *out)
{
	size_t count = 0, run;

	while (count < left && !strcmp(share[count].holder, share[0].holder)) {
		const struct share *first = &share[count];

		for (run = 1; count + run < left && follows(&first[run - 1], &first[run]); run++)
			;
		fprintf(out, "%s%s%u", count ? " " : "", first->reserve ? "r" : "", first->number);
		if (run > 1)
			fprintf(out, "%s%u",
				run > 2		 ? "-"
				: first->reserve ? " r"
						 : " ",
				first[run - 1].number);
		count += run;
	}
	return count;
}

static int group(const struct shares *shares, struct holders *holders)
{
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
	if ((size_t)snprintf(directory, sizeof(directory), "%s/%s/partitions", mountpoint, path) <
	    sizeof(directory))
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
