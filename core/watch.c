/* watch - pollers, which are told when tokens could be had; see limiter.h. */
#include "limiter.h"

#include <assert.h>

/*
 * Counts a watcher of @tokens in @limiter and in those above it: they know which children to look
 * at, and how many tokens are wanted at once.
 */
static void count_watched(struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
		struct limiter *parent = limiter->parent;

		if (!limiter->watched || tokens > limiter->polled)
			limiter->polled = tokens;
		if (limiter->watched++ || !parent)
			continue;
		limiter->previous_watched = NULL;
		limiter->next_watched = parent->first_watched;
		if (limiter->next_watched)
			limiter->next_watched->previous_watched = limiter;
		parent->first_watched = limiter;
	}
}

static void uncount_watched(struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		struct limiter *parent = limiter->parent;

		if (--limiter->watched || !parent)
			continue;
		if (limiter->previous_watched)
			limiter->previous_watched->next_watched = limiter->next_watched;
		else
			parent->first_watched = limiter->next_watched;
		if (limiter->next_watched)
			limiter->next_watched->previous_watched = limiter->previous_watched;
	}
}

static void fire(struct schedule *schedule, struct watcher *watcher)
{
	limiter_unwatch(watcher);
	watcher->fired = true;
	watcher->next = schedule->fired;
	schedule->fired = watcher;
}

void limiter_fire(struct schedule *schedule, struct limiter *limiter)
{
	while (limiter->watchers)
		fire(schedule, limiter->watchers);
}

/*
 * Tells whether buckets of this burst, those above included, ever have @tokens while no reader
 * waits.
 */
static bool comes_at_all(const struct limiter *limiter, uint64_t tokens)
{
	for (; limiter; limiter = limiter->parent) {
		if (limiter->enforcement != ENFORCEMENT_ENFORCE)
			continue;
		for (uint32_t i = 0; i < limiter->bucket_count; i++) {
			if (tokens > bucket_capacity(&limiter->buckets[i]))
				return false;
		}
	}
	return true;
}

uint64_t limiter_fire_due(struct schedule *schedule, struct limiter *limiter)
{
	uint64_t could = 0, at_ns;

	while (limiter->watchers) {
		struct watcher *least = limiter->watchers;

		if (least->tokens > could && limiter_can_hold(limiter, least->tokens)) {
			at_ns = limiter_when(schedule, limiter, least->tokens);
			/* More partitions have larger buckets; limiter_wake() is called then. */
			if (at_ns > schedule->now_ns)
				return comes_at_all(limiter, least->tokens) ? at_ns : NEVER_NS;
			could = least->tokens;
		}
		fire(schedule, least);
	}
	return NEVER_NS;
}

void limiter_fire_hopeless(struct schedule *schedule, struct limiter *limiter)
{
	struct watcher *next;

	if (!limiter->watched)
		return;
	for (struct watcher *w = limiter->watchers; w; w = next) {
		next = w->next;
		if (!limiter_can_hold(limiter, w->tokens))
			fire(schedule, w);
	}
	for (struct limiter *l = limiter->first_watched; l; l = l->next_watched)
		limiter_fire_hopeless(schedule, l);
}

/* Puts @watcher before those of @limiter that want as many tokens, or more. */
static void line_up(struct limiter *limiter, struct watcher *watcher)
{
	struct watcher **at = &limiter->watchers;

	watcher->previous = NULL;
	for (; *at && (*at)->tokens < watcher->tokens; at = &(*at)->next)
		watcher->previous = *at;
	watcher->next = *at;
	if (watcher->next)
		watcher->next->previous = watcher;
	*at = watcher;
}

void limiter_watch(struct schedule *schedule, struct limiter *limiter, struct watcher *watcher)
{
	assert(!watcher->limiter);
	if (watcher->fired)
		return;
	watcher->limiter = limiter;
	line_up(limiter, watcher);
	count_watched(limiter, watcher->tokens);
	limiter_settle(schedule, limiter);
}

void limiter_unwatch(struct watcher *watcher)
{
	if (!watcher->limiter)
		return;
	if (watcher->previous)
		watcher->previous->next = watcher->next;
	else
		watcher->limiter->watchers = watcher->next;
	if (watcher->next)
		watcher->next->previous = watcher->previous;
	uncount_watched(watcher->limiter);
	watcher->limiter = NULL;
}
