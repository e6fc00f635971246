/* tally - how many tokens each user was granted, see tally.h. */
#include "core/limiter/tally.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_LINES = 2 };

static struct tally_line *find_line(const struct tally *tally, const struct tally_line *line)
{
	for (uint32_t i = 0; i < tally->count; i++) {
		if (tally->lines[i].uid == line->uid && tally->lines[i].key == line->key)
			return &tally->lines[i];
	}
	return NULL;
}

static struct tally_line *find_least(const struct tally *tally)
{
	struct tally_line *least = tally->lines;

	for (uint32_t i = 1; i < tally->count; i++) {
		if (tally->lines[i].granted < least->granted)
			least = &tally->lines[i];
	}
	return least;
}

/* Returns a line for @line, which has none, with the count that it begins with; NULL: no memory. */
static struct tally_line *begin_line(struct tally *tally, const struct tally_line *line)
{
	struct tally_line *lines, *place;
	uint32_t room;

	if (tally->count == TALLY_MAX) {
		place = find_least(tally);
		place->over = place->granted;
		place->uid = line->uid;
		place->key = line->key;
		return place;
	}
	if (tally->count == tally->room) {
		room = tally->room ? 2 * tally->room : FIRST_LINES;
		lines = realloc(tally->lines, room * sizeof(*lines));
		if (!lines)
			return NULL;
		tally->lines = lines;
		tally->room = room;
	}
	place = &tally->lines[tally->count++];
	*place = (struct tally_line){.uid = line->uid, .key = line->key};
	return place;
}

int tally_add(struct tally *tally, const struct tally_line *line)
{
	struct tally_line *place = find_line(tally, line);

	if (!place)
		place = begin_line(tally, line);
	if (!place)
		return -ENOMEM;
	place->granted += line->granted;
	place->pid = line->pid;
	return 0;
}

static int by_granted(const void *a, const void *b)
{
	const struct tally_line *one = a, *other = b;

	if (one->granted != other->granted)
		return one->granted > other->granted ? -1 : 1;
	if (one->uid != other->uid)
		return one->uid < other->uid ? -1 : 1;
	return one->key < other->key ? -1 : one->key > other->key;
}

void tally_sort(struct tally *tally)
{
	if (tally->count)
		qsort(tally->lines, tally->count, sizeof(*tally->lines), by_granted);
}

int tally_copy(const struct tally *tally, struct tally *copy)
{
	*copy = (struct tally){0};
	if (!tally->count)
		return 0;
	copy->lines = malloc(tally->room * sizeof(*copy->lines));
	if (!copy->lines)
		return -ENOMEM;
	memcpy(copy->lines, tally->lines, tally->count * sizeof(*copy->lines));
	copy->count = tally->count;
	copy->room = tally->room;
	return 0;
}

void tally_free(struct tally *tally)
{
	free(tally->lines);
	*tally = (struct tally){0};
}
