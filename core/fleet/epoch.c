/* epoch - when tiles that were taken may be used, see epoch.h. */
#include "core/fleet/epoch.h"

#include <string.h>

void epoch_note(struct epochs *epochs, uint64_t zxid, uint64_t now_ns)
{
	uint32_t epoch = (uint32_t)(zxid >> 32) + 1;

	if (epoch == epochs->newest)
		return;
	epochs->newest = epoch;
	epochs->known_ns = now_ns;
}

/* Returns what is known of @hid; NULL: nothing. */
static const struct gone *find(const struct epochs *epochs, const char *hid)
{
	for (uint32_t i = 0; i < EPOCH_GONE_MAX && i < epochs->gone_count; i++) {
		if (!strcmp(epochs->gone[i].hid, hid))
			return &epochs->gone[i];
	}
	return NULL;
}

void epoch_note_gone(struct epochs *epochs, const char *hid, uint64_t now_ns)
{
	const struct gone *known = find(epochs, hid);
	struct gone *gone;

	if (known && known->epoch == epochs->newest)
		return;
	gone = known ? &epochs->gone[known - epochs->gone]
		     : &epochs->gone[epochs->gone_count++ % EPOCH_GONE_MAX];
	memcpy(gone->hid, hid, HID_TEXT);
	gone->epoch = epochs->newest;
	gone->since_ns = now_ns;
}

void epoch_note_there(struct epochs *epochs, const char *hid)
{
	const struct gone *known = find(epochs, hid);

	if (known)
		epochs->gone[known - epochs->gone] = (struct gone){0};
}

bool epoch_is_gone(const struct epochs *epochs, const char *hid)
{
	return *hid && find(epochs, hid);
}

/* Tells whether @gain was given back, or its host ended, in the newest epoch. */
static bool is_of_newest(const struct epochs *epochs, const struct tile *gain)
{
	return gain->epoch && gain->epoch == epochs->newest;
}

bool epoch_rest_counts(const struct epochs *epochs, const struct tile *gain)
{
	return tile_is_clean(gain) && is_of_newest(epochs, gain);
}

/* Returns since when it is known that @gain is free, in the newest epoch. */
static uint64_t known_ns(const struct epochs *epochs, const struct tile *gain, uint64_t now_ns)
{
	const struct gone *gone = gain->epoch || tile_is_clean(gain) ? NULL
								     : find(epochs, gain->hid);

	if (gone && gone->epoch == epochs->newest)
		return gone->since_ns;
	return gain->epoch ? epochs->known_ns : now_ns;
}

uint64_t epoch_usable_ns(const struct epochs *epochs, const struct tile *gain, uint64_t now_ns,
			 uint64_t quarantine_ns)
{
	uint64_t usable_ns = known_ns(epochs, gain, now_ns) + quarantine_ns;

	return is_of_newest(epochs, gain) || usable_ns < now_ns ? now_ns : usable_ns;
}
