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
	struct host_record record;
	int64_t changed_ms; /* its last transaction, by the coordinator's clock */
};

/* A partition as it was seen; @hid is "" if that is no host's. */
struct seen_lease {
	bool leased;
	char hid[HID_TEXT];
};

/* The part; the session is gone, and no answer comes any more. */
bool surveys_new(struct fleet *fleet);
void surveys_free(struct fleet *fleet);
void surveys_forget(struct fleet *fleet);

/* Gives @holding the part of it that is survey's; frees that. */
bool survey_attach(struct holding *holding);
void survey_detach(struct holding *holding);

/* Begins to look at the leases of @holding (may be NULL) and the hosts, unless it is being done. */
void survey_begin(struct fleet *fleet, struct holding *holding);

/*
 * Whether what was asked for at @asked_ns is there, or will not come: without a connection what is
 * known is all that there is.
 */
bool survey_is_done(const struct fleet *fleet, const struct holding *holding, uint64_t asked_ns);

/* The hosts that were seen, NULL: none. */
const struct seen_host *survey_hosts(const struct fleet *fleet);

/* By the coordinator's clock, as far as it is known; 0 if it is not. */
int64_t survey_now_ms(const struct fleet *fleet);

/* Whether somebody was seen to lease it, known or not. */
bool survey_is_leased(const struct holding *holding, uint32_t index);

/* The host with partition @index of @holding (count and above: the reserve's); NULL: not known. */
const struct seen_host *survey_holder(const struct fleet *fleet, const struct holding *holding,
				      uint32_t index);

#endif
