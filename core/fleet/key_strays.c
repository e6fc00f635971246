/* key_strays - folders of keys without a host that lives, see key_strays.h. */
#include "core/fleet/key_strays.h"
#include "core/fleet/holdings.h"
#include "core/fleet/key_lease.h"
#include "core/fleet/key_leases.h"
#include "core/fleet/request.h"

#include <stdlib.h>
#include <string.h>

struct key_strays {
	uint64_t look_ns; /* no list before; 0: it is not known yet */
	uint64_t next_ns; /* no key before */
	uint64_t id, cut; /* the limiter whose keys were listed */
	uint64_t hashes[KEY_STRAYS_LISTED];
	uint32_t count; /* of them, those that are to be looked at */
};

bool key_strays_new(struct fleet *fleet)
{
	fleet->key_strays = calloc(1, sizeof(*fleet->key_strays));
	return fleet->key_strays;
}

void key_strays_free(struct fleet *fleet)
{
	free(fleet->key_strays);
}

void key_strays_forget(struct fleet *fleet)
{
	fleet->key_strays->count = 0;
}

/* Begins somewhere in the list: so hosts look at different parts of a long one. */
static void keys_listed(struct fleet *fleet, struct request *request)
{
	struct key_strays *strays = fleet->key_strays;
	uint32_t count = request->answer == ANSWER_OK ? request->name_count : 0;
	uint64_t first = count ? fleet_random(fleet) % count : 0;

	strays->count = 0;
	for (uint32_t i = 0; i < count && strays->count < KEY_STRAYS_LISTED; i++) {
		if (znode_key_parse(request->names[(first + i) % count],
				    &strays->hashes[strays->count]))
			strays->count++;
	}
}

/* Returns one of the limiters whose keys are leased, at random; NULL: there is none. */
static const struct holding *choose(struct fleet *fleet)
{
	const struct holding *chosen = NULL;
	uint64_t count = 0;

	for (struct holding *h = holdings_first(fleet); h; h = h->next) {
		if (key_leases_are_of(fleet, h) && !(fleet_random(fleet) % ++count))
			chosen = h;
	}
	return chosen;
}

/* False: no limiter of which this host uses leaves leases keys now. */
static bool list_keys(struct fleet *fleet)
{
	const struct holding *holding = choose(fleet);
	struct request *request;
	char path[ZNODE_TEXT];

	if (!holding)
		return false;
	znode_path_key(holding->id, holding->cut, 0, NULL, path);
	*strrchr(path, '/') = '\0';
	request = request_new(REQUEST_LIST, path, keys_listed);
	if (!request)
		return false;
	fleet->key_strays->id = holding->id;
	fleet->key_strays->cut = holding->cut;
	request_send(fleet, request);
	return true;
}

/* Begins to lease the next key that was listed: its folder tells whether it is a stray. */
static void look_at_next(struct fleet *fleet)
{
	struct key_strays *strays = fleet->key_strays;
	struct key_leases *leases = fleet->key_leases;
	struct holding *holding = holdings_find(fleet, strays->id);
	struct key_lease *lease;
	uint64_t hash;

	if (!key_leases_are_of(fleet, holding) || holding->cut != strays->cut) {
		strays->count = 0;
		return;
	}
	if (leases->nameless >= KEY_STRAYS_MAX || leases->count >= KEY_LEASES_MAX)
		return;
	hash = strays->hashes[--strays->count];
	if (key_lease_find(fleet, holding, hash))
		return;
	lease = key_lease_begin(fleet, holding, hash);
	if (lease)
		key_lease_look_later(fleet, lease, 0);
}

void key_strays_look(struct fleet *fleet)
{
	struct key_strays *strays = fleet->key_strays;

	/* The state of chance is another for each host. */
	if (!strays->look_ns)
		strays->look_ns = fleet->now_ns + 1 + fleet->random_state % KEY_STRAYS_NS;
	if (fleet->now_ns >= strays->look_ns) {
		strays->look_ns = fleet->now_ns + KEY_STRAYS_RETRY_NS;
		if (list_keys(fleet))
			strays->look_ns = fleet->now_ns + fleet_jitter(fleet, KEY_STRAYS_NS);
	}
	if (strays->count && fleet->now_ns >= strays->next_ns) {
		strays->next_ns = fleet->now_ns + KEY_SPACING_NS;
		look_at_next(fleet);
	}
	fleet_wake_at(fleet, strays->count ? strays->next_ns : strays->look_ns);
}
