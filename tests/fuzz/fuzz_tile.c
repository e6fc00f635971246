/*
 * fuzz_tile - any lines as the names of a limiter's tiles: each is read exactly as it is printed,
 * or not at all, and what a plan makes of a list covers the same leaves.
 */
#include "fuzz.h"

#include "core/fleet/plan.h"

#include <string.h>

enum { NAMES_MAX = 64 };

static void try_name(const char *name)
{
	struct tile tile;
	char printed[TILE_TEXT];

	if (!tile_parse(name, &tile))
		return;
	FUZZ_CHECK(tile.first <= tile.last && tile.last < TILE_LEAVES_MAX);
	FUZZ_CHECK(tile.rest.count <= LIMITS_MAX);
	tile_print(&tile, printed);
	FUZZ_CHECK(!strcmp(printed, name));
}

static uint32_t covered(const struct tiles *tiles)
{
	uint32_t sum = 0, next = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		FUZZ_CHECK(tiles->list[i].first >= next);
		next = tiles->list[i].last + 1;
		sum += tile_size(&tiles->list[i]);
	}
	FUZZ_CHECK(next <= tiles->leaves);
	FUZZ_CHECK(!tiles->whole || sum == tiles->leaves);
	return sum;
}

static void try_list(char **names, uint32_t count, uint8_t choice)
{
	struct plan_rules rules = {.hid = "aaaaaaaaaaaaa",
				   .single = choice & 1,
				   .full = {.saved = 1, .count = 1, .nano = {NSEC_PER_SEC}},
				   .seed = choice};
	const struct rest none = {.saved = 1, .count = 1};
	struct tiles tiles;
	struct plan plan;

	if (!tiles_read(&tiles, names, count, choice & 2 ? TILE_LEAVES_MAX : 20))
		return;
	if (!plan_begin(&plan, &rules, &tiles)) {
		(void)plan_take(&plan, choice, choice & 4);
		(void)plan_give(&plan, choice / 2, 1, &none);
		plan_tidy(&plan);
		FUZZ_CHECK(covered(&plan.after) == covered(&plan.before));
		FUZZ_CHECK(plan_change_count(&plan) <= PLAN_CHANGES_MAX);
		plan_end(&plan);
	}
	tiles_free(&tiles);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	char *text = malloc(size + 1), *names[NAMES_MAX], *rest = text, *name;
	uint32_t count = 0;

	if (!text)
		return 0;
	if (size)
		memcpy(text, input, size);
	text[size] = '\0';
	while (count < NAMES_MAX && (name = strsep(&rest, "\n"))) {
		try_name(name);
		names[count++] = name;
	}
	try_list(names, count, size ? input[size - 1] : 0);
	free(text);
	return 0;
}
