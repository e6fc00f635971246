/* claim - how much others want: the /w nodes of a limiter, and what they come to. */
#include "inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What may be in names. */
enum { WEIGHT_MAX = 1000 };
static const uint64_t SEQUENCE_MAX = UINT64_C(9999999999999999);

/* Whom to wake when something is given back. */
static void remember_claimant(struct holding *holding, const char *name)
{
	if (!holding->claimants)
		holding->claimants = calloc(CLAIMANTS_MAX, CLAIM_TEXT);
	if (holding->claimants && holding->claimant_count < CLAIMANTS_MAX)
		snprintf(holding->claimants[holding->claimant_count++], CLAIM_TEXT, "%s", name);
}

/* HID-N-W-SEQ; false: a name that is none of ours. */
static bool parse_claim(const char *name, struct claim *claim)
{
	uint64_t wanted, weight, sequence;

	for (int i = 0; i < HID_TEXT - 1; i++, name++) {
		if ((*name < 'a' || *name > 'z') && (*name < '2' || *name > '7'))
			return false;
	}
	if (*name++ != '-' || !digits_parse(&name, PARTITIONS_MAX, &wanted) || !wanted ||
	    *name++ != '-' || !digits_parse(&name, WEIGHT_MAX, &weight) || !weight ||
	    *name++ != '-' || !digits_parse(&name, SEQUENCE_MAX, &sequence) || *name)
		return false;
	*claim = (struct claim){(uint32_t)wanted, (uint32_t)weight, sequence, 0};
	return true;
}

/* The claim that a predecessor left. */
static void adopt_claim(struct fleet *fleet, struct holding *holding, const char *name,
			uint32_t wanted)
{
	char path[PATH_ROOM];

	holding->claim = strdup(name);
	if (!holding->claim)
		return;
	holding->claimed = wanted;
	snprintf(path, sizeof(path), "/w/%llu/%.60s", (unsigned long long)holding->id, name);
	choose_watch(fleet, path);
}

static void adopt_no_more(struct fleet *fleet, struct holding *holding)
{
	if (!holding->claim_unknown)
		return;
	holding->claim_unknown = false;
	fleet_keep_claim(fleet, holding, holding->claim);
}

void claims_parse(struct fleet *fleet, struct search *search, const struct request *request)
{
	struct holding *holding = search->holding;

	search->own_claim = UINT64_MAX;
	search->claims = calloc(request->name_count + 1, sizeof(*search->claims));
	if (!search->claims) {
		search->failed = true;
		return;
	}
	holding->claimant_count = 0;
	for (uint32_t i = 0; i < request->name_count; i++) {
		struct claim *claim = &search->claims[search->claim_count];
		const char *name = request->names[i];

		if (!parse_claim(name, claim))
			continue;
		search->claim_count++;
		if (memcmp(name, fleet->hid, HID_TEXT - 1) != 0) {
			remember_claimant(holding, name);
			continue;
		}
		search->own_claim = claim->sequence;
		if (holding->claim_unknown && !holding->claim)
			adopt_claim(fleet, holding, name, claim->wanted);
	}
	adopt_no_more(fleet, holding);
}

void claims_weigh(struct search *search)
{
	struct holding *holding = search->holding;
	uint64_t sum = 0;

	for (uint32_t i = 0; i < search->claim_count; i++)
		sum += search->claims[i].wanted;
	holding->target = UINT32_MAX;
	holding->starving = false;
	if (search->own_claim == UINT64_MAX) {
		/* Who holds something that others claim joins the claimants. */
		holding->contended = search->claim_count &&
				     sum + holding->wanted > holding_count(holding);
		return;
	}
	holding->contended = search->claim_count > 1 && sum > holding_count(holding);
	if (!holding->contended)
		return;
	share_divide(search->claims, search->claim_count, holding_count(holding));
	for (uint32_t i = 0; i < search->claim_count; i++) {
		if (search->claims[i].sequence == search->own_claim)
			holding->target = search->claims[i].gets;
		holding->starving |= !search->claims[i].gets;
	}
}
