/* former - limiters for a successor, see former.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/world/former.h"
#include "tests/sim/world/sim.h"

#include "core/limiter/learning.h"
#include "core/limiter/window.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct former_limiter {
	char name[NAME_BYTES_MAX + 1];
	size_t parent; /* its index and 1; 0: the root */
	struct settings settings;
	struct owner owner;
	struct former_holding holding;
	struct bucket buckets[LIMITS_MAX];
	uint32_t bucket_count;
	struct allowances allowances;
	struct unit_quotas units;
	uint64_t granted;
	struct limiter *restored;
};

static struct former_limiter *add(struct former *former)
{
	if (former->count == former->room) {
		size_t room = former->room * 2 + 16;
		struct former_limiter *larger = memory_get(room * sizeof(*larger));

		if (former->count)
			memcpy(larger, former->limiters, former->count * sizeof(*larger));
		free(former->limiters);
		former->limiters = larger;
		former->room = room;
	}
	return &former->limiters[former->count++];
}

static void keep(struct former *former, const struct limiter *limiter, size_t parent)
{
	const struct holding *holding = limiter->holding;
	struct former_limiter *kept = add(former);
	size_t index = former->count;

	*kept = (struct former_limiter){
		.parent = parent,
		.owner = {limiter->uid, limiter->gid, limiter->access},
		.holding = {holding->id, holding->generation, holding->saved, holding->cut,
			    holding->version, holding->used_ns},
		.bucket_count = limiter->bucket_count,
		.granted = limiter->counters[COUNTER_GRANTED],
	};
	snprintf(kept->name, sizeof(kept->name), "%s", limiter->name);
	kept->settings = overriding_copy(limiter_settings(limiter));
	if (limiter->bucket_count)
		memcpy(kept->buckets, limiter->buckets,
		       limiter->bucket_count * sizeof(*limiter->buckets));
	if (limiter->learning)
		kept->allowances = limiter->learning->allowances;
	if (limiter->learning && limiter->learning->units)
		kept->units = *limiter->learning->units;
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		keep(former, l, index);
}

void former_keep(struct host *host)
{
	const struct limiter *root = host->engine.tree.root;
	struct memory *before = memory_enter(NULL);

	host->former.count = 0;
	for (const struct limiter *l = root->first_child; l; l = l->next_sibling)
		keep(&host->former, l, 0);
	memory_enter(before);
}

void former_restore(struct host *host)
{
	struct former *former = &host->former;

	for (size_t i = 0; i < former->count; i++) {
		struct former_limiter *kept = &former->limiters[i];
		struct limiter *parent = kept->parent ? former->limiters[kept->parent - 1].restored
						      : host->engine.tree.root;

		struct settings settings = kept->settings;
		char error[ERROR_TEXT];
		int err = 0;

		/* In memory of the process. */
		settings.overrides = NULL;
		if (kept->settings.overrides)
			err = settings_parse(overrides_text(kept->settings.overrides), &settings,
					     error);
		if (!err)
			err = change_restore(&host->engine, parent, kept->name, &settings,
					     &kept->owner, NULL, 0, &kept->restored);
		if (err) {
			fprintf(stderr, "simulate: a limiter is not restored\n");
			exit(2);
		}
		settings_drop(&settings);
		fleet_restored(host->fleet, kept->restored, &kept->holding);
	}
}

static void fill(struct bucket *bucket, const struct bucket *kept, uint64_t now_ns)
{
	if (bucket_is_window(bucket) && bucket_is_window(kept)) {
		window_restore(bucket, window_begin_s(kept), window_used(kept), kept->unknown,
			       kept->next_used, now_ns);
		return;
	}
	if (bucket->flow.num != kept->flow.num || bucket->flow.den != kept->flow.den) {
		bucket->level = kept->level < 0 ? kept->level : bucket->level;
		return;
	}
	if (bucket_is_strict(bucket)) {
		bucket_restore(bucket, kept->level, 0);
		return;
	}
	bucket->level = kept->level;
	bucket->part = kept->part;
	bucket->released = kept->released;
	bucket->grid_ns = kept->grid_ns;
	bucket->filled_ns = kept->filled_ns;
	bucket_await(bucket, 0);
}

/* Restores the quotas that a service told of. */
static void fill_quotas(struct limiter *limiter, const struct former_limiter *kept)
{
	if (!kept->allowances.count && !kept->units.count)
		return;
	if (!limiter->learning)
		limiter->learning = learning_new(limiter->id);
	if (!limiter->learning || !learning_get_units(limiter->learning))
		exit(2);
	limiter->learning->allowances = kept->allowances;
	*limiter->learning->units = kept->units;
	learning_share(limiter);
}

void former_fill(struct host *host)
{
	for (size_t i = 0; i < host->former.count; i++) {
		const struct former_limiter *kept = &host->former.limiters[i];
		struct limiter *limiter = kept->restored;

		for (uint32_t j = 0; j < kept->bucket_count && j < limiter->bucket_count; j++)
			fill(&limiter->buckets[j], &kept->buckets[j], host_now(host));
		fill_quotas(limiter, kept);
		limiter->counters[COUNTER_GRANTED] = kept->granted;
	}
}

void former_free(struct former *former)
{
	free(former->limiters);
	*former = (struct former){0};
}
