/* key_windows - windows of the calendar of a key, see key_windows.h. */
#include "core/limiter/key_windows.h"
#include "core/limiter/window.h"

int64_t key_use_now(const struct key_use *use, const struct wall *wall, uint64_t now_ns)
{
	return calendar_wall_s(wall, now_ns) < use->end_s ? use->used : 0;
}

void key_window_begin(const struct limit *limit, const struct key_use *use, const struct wall *wall,
		      uint64_t now_ns, struct key_window *room, struct bucket *bucket)
{
	const struct window_share share = {.tokens = limit->burst, .whole = 1};
	int64_t begin_s, used = key_use_now(use, wall, now_ns);

	if (used >= (int64_t)TOKENS_MAX)
		used = (int64_t)limit->burst;
	room->rate = limit->rate;
	room->window = (struct window){.rate = &room->rate, .wall = wall};
	window_init(bucket, &room->window, &share, now_ns);
	begin_s = window_begin_s(bucket);
	/* The wall clock may have been put back, or the use be of other windows. */
	if (calendar_wall_s(wall, now_ns) < use->end_s && use->begin_s > begin_s)
		begin_s = use->begin_s;
	window_restore(bucket, begin_s, used, 0, 0, now_ns);
}

struct key_use key_window_use(const struct bucket *bucket)
{
	int64_t begin_s = window_begin_s(bucket), used = window_used(bucket);

	return (struct key_use){.begin_s = begin_s,
				.end_s = calendar_end_s(bucket->window->rate, begin_s),
				.used = used > 0 ? used : 0};
}

struct key_use key_window_all(const struct rate *rate, const struct wall *wall, uint64_t now_ns)
{
	int64_t wall_s = calendar_wall_s(wall, now_ns);

	return (struct key_use){.begin_s = calendar_begin_s(rate, wall_s),
				.end_s = calendar_end_s(rate, wall_s),
				.used = (int64_t)TOKENS_MAX};
}

void key_use_join(struct key_use *unknown, const struct key_use *use, const struct wall *wall,
		  uint64_t now_ns)
{
	int64_t used = key_use_now(use, wall, now_ns);

	if (!used)
		return;
	if (!key_use_now(unknown, wall, now_ns))
		*unknown = (struct key_use){0};
	unknown->begin_s = use->begin_s > unknown->begin_s ? use->begin_s : unknown->begin_s;
	unknown->end_s = use->end_s > unknown->end_s ? use->end_s : unknown->end_s;
	unknown->used = used > unknown->used ? used : unknown->used;
}

void key_windows_move(struct bucket *before, uint32_t count, struct key_window *former)
{
	for (uint32_t i = 0; i < count; i++) {
		if (!bucket_is_window(&before[i]))
			continue;
		former[i].rate = *before[i].window->rate;
		former[i].window = *before[i].window;
		former[i].window.rate = &former[i].rate;
		before[i].window = &former[i].window;
	}
}
