/* refusal - why something was refused last, see refusal.h. */
#include "fs/mount/refusal.h"

#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void refusals_add(struct refusals *refusals, uint32_t uid, const char *text)
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
	place->text = strdup(text);
	/* Quoted words are the user's, and the text is one line. */
	for (char *c = place->text; c && *c; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '?';
	}
	place->uid = uid;
	place->number = ++refusals->count;
}

const char *refusals_last(const struct refusals *refusals, uint32_t uid)
{
	for (int i = 0; i < REFUSALS_MAX; i++) {
		if (refusals->of[i].text && refusals->of[i].uid == uid)
			return refusals->of[i].text;
	}
	return NULL;
}

void refusals_free(struct refusals *refusals)
{
	for (int i = 0; i < REFUSALS_MAX; i++)
		free(refusals->of[i].text);
}
