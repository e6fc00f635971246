/* refusal - why something was refused last, see refusal.h. */
#include "fs/mount/refusal.h"
#include "fs/base/clock.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Returns a copy of @text as one line: its words may be the user's. NULL: no memory. */
static char *copy_line(const char *text)
{
	char *line = strdup(text);

	for (char *c = line; c && *c; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '?';
	}
	return line;
}

void refusals_add(struct refusals *refusals, uint32_t uid, const char *file, const char *text)
{
	struct refusal *place = &refusals->of[0];

	for (int i = 0; i < REFUSALS_MAX; i++) {
		struct refusal *refusal = &refusals->of[i];

		if (refusal->text && refusal->uid == uid) {
			place = refusal;
			break;
		}
		if (refusal->number < place->number)
			place = refusal;
	}
	free(place->text);
	free(place->file);
	place->text = copy_line(text);
	place->file = copy_line(file);
	clock_gettime(CLOCK_REALTIME, &place->at);
	place->at_ns = clock_ns();
	place->uid = uid;
	place->number = ++refusals->count;
}

const struct refusal *refusals_last(const struct refusals *refusals, uint32_t uid)
{
	for (int i = 0; i < REFUSALS_MAX; i++) {
		if (refusals->of[i].text && refusals->of[i].uid == uid)
			return &refusals->of[i];
	}
	return NULL;
}

void refusals_free(struct refusals *refusals)
{
	for (int i = 0; i < REFUSALS_MAX; i++) {
		free(refusals->of[i].text);
		free(refusals->of[i].file);
	}
}
