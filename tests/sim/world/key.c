/* key - keys of limiters as places, see place.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/books/common.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Its bounds. */
void key_follow(struct place *key, uint64_t now_ns)
{
	const struct settings *whole = &key->parent->settings;

	key->settings = SETTINGS_DEFAULT;
	key->settings.enforcement = whole->enforcement;
	key->settings.burst = whole->key_burst;
	key->settings.limits[0].rate = whole->key_rate;
	overriding_apply(whole, key->path, &key->settings);
	rate_check_tune(&key->rate, &key->settings, now_ns);
}

struct place *key_of(struct place *place, const char *key)
{
	struct host *host = place->host;
	char path[PATH_TEXT + KEY_TEXT];
	struct place *its;

	snprintf(path, sizeof(path), "%s/keys/%s", place->path, key);
	for (its = host->places; its; its = its->next) {
		if (its->is_key && its->parent == place && !strcmp(its->path, path))
			return its;
	}
	its = memory_get(sizeof(*its));
	its->host = host;
	its->parent = place;
	its->top = place->top;
	its->is_key = true;
	its->rate.calendar.of_key = true;
	its->rate.calendar.ahead_ns = &host->wall_ahead_ns;
	its->path = memory_text(path, strlen(path));
	key_follow(its, host->sim->now_ns);
	host->last_place->next = its;
	host->last_place = its;
	return its;
}

int key_enter(struct place *place)
{
	struct host *host = place->host;
	struct limiter *limiter = place->parent->limiter, *inflated = NULL;
	struct memory *before;
	struct key *key;
	int err;

	if (!limiter)
		return -ENOENT;
	before = host_enter(host);
	err = engine_key(&host->engine, limiter, strrchr(place->path, '/') + 1, 0, host_now(host),
			 &key);
	if (!err)
		inflated = keys_open(&host->engine.schedule, limiter, key);
	host_leave(before);
	if (err)
		return err;
	if (!inflated)
		return -ENOMEM;
	place->limiter = inflated;
	if (!place->readers++)
		place->keeps = UINT32_MAX;
	if (host->fleet)
		common_join_key(place);
	return 0;
}

void key_leave(struct place *place)
{
	struct host *host = place->host;
	struct memory *before;

	place->readers--;
	/* With its process it is gone anyway. */
	if (!place->limiter)
		return;
	before = host_enter(host);
	keys_close(&host->engine.schedule, place->limiter);
	host_leave(before);
	if (!place->readers)
		place->limiter = NULL;
}
