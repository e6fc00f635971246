/* quotas_check - windows of the calendar of all hosts together, see quotas_check.h. */
#include "tests/sim/invariants/quotas_check.h"
#include "tests/sim/base/memory.h"

#include <stdlib.h>
#include <string.h>

static bool is_of(const struct quotas_window *window, const struct calendar_limit *limit)
{
	const struct rate *a = &window->rate, *b = &limit->rate;

	return a->kind == b->kind && a->month == b->month && a->at == b->at && a->zone == b->zone &&
	       !strcmp(window->unit, limit->unit);
}

/* Returns window @number of @limit. */
static struct quotas_window *find(struct quotas_check *check, const struct calendar_limit *limit,
				  int64_t number, uint64_t since)
{
	struct quotas_window *window = check->windows;

	while (window &&
	       (window->window != number || window->since != since || !is_of(window, limit)))
		window = window->next;
	if (window)
		return window;
	window = memory_get(sizeof(*window));
	*window = (struct quotas_window){
		.next = check->windows, .rate = limit->rate, .window = number, .since = since};
	memcpy(window->unit, limit->unit, sizeof(window->unit));
	check->windows = window;
	return window;
}

const struct quotas_window *quotas_check_grant(struct quotas_check *check,
					       struct calendar_check *host, const char *unit,
					       uint64_t tokens, uint64_t since, uint64_t now_ns)
{
	const struct quotas_window *broken = NULL;

	for (int i = 0; i < LIMITS_MAX && host->any; i++) {
		const struct calendar_limit *limit = &host->limits[i];
		struct quotas_window *window;

		if (!limit->in_force || strcmp(limit->unit, unit) != 0)
			continue;
		window = find(check, limit, calendar_check_window(host, i, now_ns), since);
		window->most = limit->most > window->most ? limit->most : window->most;
		window->granted += tokens;
		if (tokens && window->granted > window->most)
			broken = window;
	}
	return broken;
}

void quotas_check_return(struct quotas_check *check, struct calendar_check *host, const char *unit,
			 uint64_t tokens, uint64_t since, uint64_t now_ns)
{
	for (int i = 0; i < LIMITS_MAX && host->any; i++) {
		const struct calendar_limit *limit = &host->limits[i];
		struct quotas_window *window;

		if (!limit->in_force || strcmp(limit->unit, unit) != 0)
			continue;
		window = find(check, limit, calendar_check_window(host, i, now_ns), since);
		window->granted -= tokens < window->granted ? tokens : window->granted;
	}
}

void quotas_check_free(struct quotas_check *check)
{
	while (check->windows) {
		struct quotas_window *next = check->windows->next;

		free(check->windows);
		check->windows = next;
	}
}
