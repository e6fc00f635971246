/*
 * survey - what is known of who has what in the fleet, for those who look.
 *
 * It is read from the coordinator when somebody asks, and kept until somebody asks again.
 */
#ifndef RATEFS_CORE_SURVEY_H
#define RATEFS_CORE_SURVEY_H

#include "core/fleet/fleet.h"

/* A host as it was seen. */
struct seen_host {
	struct seen_host *next;
	char hid[HID_TEXT];
	struct host_record record; /* without a name: it is not understood */
	int64_t changed_ms;	   /* its last transaction, by the coordinator's clock */
};

/* A tile as it was seen; @hid is "" if it is free. */
struct seen_tile {
	uint32_t first, last; /* leaves */
	char hid[HID_TEXT];
};

/* Those of a limiter, in the order of their leaves. */
struct seen_tiles {
	struct seen_tile *list;
	uint32_t count;
};

/* The part; the session is gone, and no answer comes any more. */
bool surveys_new(struct fleet *fleet);
void surveys_free(struct fleet *fleet);
void surveys_forget(struct fleet *fleet);

/* Gives @holding the part of it that is survey's; frees that. */
bool survey_attach(struct holding *holding);
void survey_detach(struct holding *holding);

/* Begins to look at the tiles of @holding (may be NULL) and the hosts, unless it is being done. */
void survey_begin(struct fleet *fleet, struct holding *holding);

/*
 * Whether what was asked for at @asked_ns is there, or will not come: without a connection what is
 * known is all that there is.
 */
bool survey_is_done(const struct fleet *fleet, const struct holding *holding, uint64_t asked_ns);

/* The hosts that were seen, NULL: none. */
const struct seen_host *survey_hosts(const struct fleet *fleet);

/*
 * Tells whether the coordinator has not answered of the hosts, or of the tiles of @holding (may be
 * NULL), so that what is known is old; then *@age_ns is its age, NEVER_NS: a part was never seen.
 */
bool survey_is_old(const struct fleet *fleet, const struct holding *holding, uint64_t *age_ns);

/*
 * Returns the seconds since the last transaction of @host, of this host the last one that was
 * acknowledged; 0: none, or they are not known.
 */
int64_t survey_silent_s(const struct fleet *fleet, const struct seen_host *host);

/* Returns the limiter in which @slot of a host is open. NULL: this host does not know it. */
const struct limiter *survey_limiter(const struct fleet *fleet, const struct host_slot *slot);

/*
 * Returns the tiles of @holding, with @reserve those of the reserve, as they were seen last: none,
 * if they were not, or if leaves were numbered otherwise then. Finds the one that has @leaf, NULL:
 * none was seen. Valid until the next step.
 */
const struct seen_tiles *survey_tiles(const struct holding *holding, bool reserve);
const struct seen_tile *survey_tile(const struct holding *holding, uint32_t leaf, bool reserve);

/* Returns the host that leases @tile. NULL: the tile is free, or that host is gone. */
const struct seen_host *survey_holder(const struct fleet *fleet, const struct seen_tile *tile);

#endif
