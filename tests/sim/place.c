/* place - limiters and partitions as the simulator knows them, see sim.h. */
#include "memory.h"
#include "sim.h"

#include "core/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct place *place_add(struct sim *sim, struct place *parent, struct limiter *limiter,
			const char *path)
{
	struct place *place = memory_get(sizeof(*place));

	place->parent = parent;
	place->top = parent ? parent->top : place;
	place->limiter = limiter;
	place->partition = limiter->partition;
	place->path = memory_text(path, strlen(path));
	limiter_hold(limiter);
	limiter_settings(limiter, &place->settings);
	rate_check_tune(&place->rate, &place->settings, sim->now_ns);
	if (sim->last_place)
		sim->last_place->next = place;
	else
		sim->places = place;
	sim->last_place = place;
	return place;
}

struct place *place_at(const struct sim *sim, const char *path)
{
	for (struct place *place = sim->places; place; place = place->next) {
		if (place->limiter && !place->partition && !strcmp(place->path, path))
			return place;
	}
	return NULL;
}

struct place *place_partition(struct sim *sim, struct place *place, uint32_t index)
{
	struct limiter *partition;
	uint32_t shares;
	char path[PATH_TEXT];

	for (struct place *p = sim->places; p; p = p->next) {
		if (p->limiter && p->parent == place && p->partition == index + 1)
			return p;
	}
	if (index >= partition_count(place->limiter, &shares))
		return NULL;
	partition = partition_get(&sim->engine.schedule, place->limiter, index);
	if (!partition)
		return NULL;
	snprintf(path, sizeof(path), "%s/partitions/%u", place->path, index);
	return place_add(sim, place, partition, path);
}

void place_forget_removed(struct sim *sim)
{
	for (struct place *place = sim->places; place; place = place->next) {
		if (!place->limiter || !place->limiter->removed)
			continue;
		limiter_drop(place->limiter);
		place->limiter = NULL;
	}
}

void place_free(struct place *place)
{
	windows_free(&place->windows);
	free(place->service);
	free(place->path);
	free(place);
}
