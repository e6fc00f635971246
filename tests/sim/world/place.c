/* place - limiters and partitions as the simulator knows them, see place.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/books/common.h"
#include "tests/sim/world/sim.h"

#include "core/limiter/partition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So that a limiter's place is found at once. */
static void remember(struct place *place)
{
	struct host *host = place->host;
	uint32_t id = place->limiter->id;

	if (id >= host->id_room) {
		uint32_t room = id * 2 + 16;
		struct place **larger = memory_get(room * sizeof(*larger));

		if (host->id_room)
			memcpy(larger, host->by_id, host->id_room * sizeof(*larger));
		free(host->by_id);
		host->by_id = larger;
		host->id_room = room;
	}
	host->by_id[id] = place;
}

struct place *place_add(struct host *host, struct place *parent, struct limiter *limiter,
			const char *path)
{
	struct place *place = memory_get(sizeof(*place));

	place->host = host;
	place->parent = parent;
	place->top = parent ? parent->top : place;
	place->limiter = limiter;
	place->partition = limiter->partition;
	place->path = memory_text(path, strlen(path));
	place->keeps = UINT32_MAX;
	limiter_hold(limiter);
	place->settings = overriding_copy(limiter_settings(limiter));
	place->rate.calendar.ahead_ns = &host->wall_ahead_ns;
	rate_check_tune(&place->rate, &place->settings, host->sim->now_ns);
	if (host->last_place)
		host->last_place->next = place;
	else
		host->places = place;
	host->last_place = place;
	if (!place->partition)
		remember(place);
	return place;
}

struct place *place_at(const struct host *host, const char *path)
{
	for (struct place *place = host->places; place; place = place->next) {
		if (place->limiter && !place->partition && !place->is_key &&
		    !strcmp(place->path, path))
			return place;
	}
	return NULL;
}

struct place *place_partition(struct place *place, uint32_t index)
{
	uint32_t shares, number = partition_at(place->limiter, index);
	bool reserved = number >= PARTITIONS_MAX;
	struct host *host = place->host;
	struct limiter *partition;
	struct memory *before;
	char path[PATH_TEXT + QUANTITY_TEXT];

	for (struct place *p = host->places; p; p = p->next) {
		if (p->limiter && p->parent == place && p->partition == number + 1)
			return p;
	}
	if (index >= partition_count(place->limiter, &shares) ||
	    !partition_is_there(place->limiter, number))
		return NULL;
	before = host_enter(host);
	partition = partition_get(&host->engine.schedule, place->limiter, number, 0);
	host_leave(before);
	if (!partition)
		return NULL;
	snprintf(path, sizeof(path), "%s/partitions/%s%u", place->path, reserved ? "r" : "",
		 reserved ? number - PARTITIONS_MAX : number);
	return place_add(host, place, partition, path);
}

void place_forget_removed(struct host *host)
{
	for (struct place *place = host->places; place; place = place->next) {
		if (place->is_key || !place->limiter || !place->limiter->removed)
			continue;
		if (place->limiter->turns.queue.length || slots_waiting(place->limiter))
			sim_fail(host->sim, INVARIANT_QUEUE, place,
				 "readers wait in a limiter that is removed");
		limiter_drop(place->limiter);
		place->limiter = NULL;
	}
}

void place_forget_all(struct host *host)
{
	for (struct place *place = host->places; place; place = place->next) {
		if (place->limiter && !place->is_key)
			limiter_drop(place->limiter);
		place->limiter = NULL;
	}
}

static void set_path(struct place *place, const char *path)
{
	free(place->path);
	place->path = memory_text(path, strlen(path));
	if (place->common)
		common_rejoin(place);
}

void place_follow_name(struct place *place)
{
	size_t length = strlen(place->path);
	char path[PATH_TEXT], longer[PATH_TEXT + KEY_TEXT + QUANTITY_TEXT];

	tree_path(place->limiter, path);
	if (!strcmp(path, place->path))
		return;
	set_path(place, path);
	for (struct place *p = place->host->places; p; p = p->next) {
		if (p->parent != place)
			continue;
		if (p->is_key || p->partition) {
			snprintf(longer, sizeof(longer), "%s%s", path, p->path + length);
			set_path(p, longer);
		} else if (p->limiter) {
			place_follow_name(p);
		}
	}
}

/* Limiters below @limiter, those above first. */
static void follow(struct host *host, struct place *parent, const struct limiter *limiter)
{
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling) {
		struct place *place = l->id < host->id_room ? host->by_id[l->id] : NULL;

		if (!place || place->limiter != l) {
			char path[PATH_TEXT];

			tree_path(l, path);
			place = place_add(host, parent, l, path);
		} else {
			place_follow_name(place);
		}
		place->settings = overriding_copy(limiter_settings(l));
		common_join(place);
		follow(host, place, l);
	}
}

void place_follow(struct host *host)
{
	place_forget_removed(host);
	follow(host, NULL, host->engine.tree.root);
}

struct service *place_service(const struct place *place)
{
	return place->common ? place->common->first->service : place->service;
}

void place_free(struct place *place)
{
	while (place->unit_quotas) {
		struct unit_quota_check *next = place->unit_quotas->next;

		free(place->unit_quotas);
		place->unit_quotas = next;
	}
	windows_free(&place->windows);
	rate_check_free(&place->rate);
	order_check_free(&place->order.siblings);
	order_check_free(&place->slot_order.siblings);
	free(place->service);
	free(place->path);
	free(place);
}
