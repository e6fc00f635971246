/* window_check - the tokens in any window of a strict limit, see window_check.h. */
#include "tests/sim/invariants/window_check.h"
#include "tests/sim/base/memory.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 16 };

void window_check_free(struct window_check *check)
{
	free(check->grants);
	check->grants = NULL;
	check->count = check->room = 0;
}

static void tune_limit(const struct window_check *check, struct window_limit *limit,
		       const struct rate *rate, uint64_t now_ns)
{
	struct window_limit before = *limit;

	*limit = (struct window_limit){0};
	if (!rate)
		return;
	limit->window_ns = rate->period_ns;
	limit->most = rate_window(rate);
	if (!check->of_fleet || before.window_ns != limit->window_ns)
		return;
	limit->former = before.until_ns > now_ns ? before.former : 0;
	limit->until_ns = before.until_ns;
	if (before.most > limit->most) {
		limit->former = before.most > limit->former ? before.most : limit->former;
		limit->until_ns = now_ns + limit->window_ns;
	}
}

void window_check_tune(struct window_check *check, const struct settings *settings, bool in_force,
		       uint64_t now_ns)
{
	bool was_any = check->any, is_same = true;

	check->any = false;
	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		const struct rate *rate = &settings->limits[i].rate;
		uint64_t before_ns = check->limits[i].window_ns;

		if (!in_force || i >= settings->limit_count || !rate_is_strict(rate) ||
		    *settings->limits[i].unit)
			rate = NULL;
		tune_limit(check, &check->limits[i], rate, now_ns);
		check->any = check->any || rate;
		is_same = is_same && check->limits[i].window_ns == before_ns;
	}
	if (!was_any || (check->of_fleet && !is_same))
		check->since_ns = now_ns;
	if (!check->any)
		window_check_free(check);
}

/* Forgets grants that no window can have any more. */
static void forget(struct window_check *check, uint64_t now_ns)
{
	uint64_t longest_ns = 0;
	size_t gone = 0;

	for (int i = 0; i < LIMITS_MAX; i++) {
		if (check->limits[i].window_ns > longest_ns)
			longest_ns = check->limits[i].window_ns;
	}
	while (gone < check->count && check->grants[gone].at_ns + longest_ns <= now_ns)
		gone++;
	/* Seldom, so that it costs little. */
	if (!gone || gone < check->count / 2)
		return;
	memmove(check->grants, check->grants + gone,
		(check->count - gone) * sizeof(*check->grants));
	check->count -= gone;
}

void window_check_take(struct window_check *check, uint64_t tokens, uint64_t now_ns)
{
	if (!check->any || !tokens)
		return;
	forget(check, now_ns);
	if (check->count && check->grants[check->count - 1].at_ns == now_ns) {
		check->grants[check->count - 1].tokens += tokens;
		return;
	}
	if (check->count == check->room) {
		size_t room = check->room ? 2 * check->room : FIRST_ROOM;
		struct window_grant *larger = memory_get(room * sizeof(*larger));

		if (check->count)
			memcpy(larger, check->grants, check->count * sizeof(*larger));
		free(check->grants);
		check->grants = larger;
		check->room = room;
	}
	check->grants[check->count++] = (struct window_grant){now_ns, tokens};
}

void window_check_return(struct window_check *check, uint64_t tokens)
{
	while (tokens && check->count) {
		struct window_grant *newest = &check->grants[check->count - 1];
		uint64_t some = newest->tokens < tokens ? newest->tokens : tokens;

		newest->tokens -= some;
		tokens -= some;
		if (!newest->tokens)
			check->count--;
	}
}

int window_check_over(struct window_check *check, uint64_t now_ns, uint64_t *sum)
{
	for (int i = 0; check->any && i < LIMITS_MAX; i++) {
		const struct window_limit *limit = &check->limits[i];
		uint64_t window_ns = limit->window_ns, most = limit->most;

		if (!window_ns)
			continue;
		window_ns -= window_ns > check->slack_ns ? check->slack_ns : 0;
		if (limit->until_ns > now_ns && limit->former > most)
			most = limit->former;
		*sum = 0;
		for (size_t j = check->count; j--;) {
			const struct window_grant *grant = &check->grants[j];

			if (grant->at_ns + window_ns <= now_ns || grant->at_ns < check->since_ns)
				break;
			*sum += grant->tokens;
		}
		if (*sum > most)
			return i;
	}
	return -1;
}
