/* windows - tokens granted in windows of time, see windows.h. */
#include "tests/sim/base/windows.h"
#include "tests/sim/base/memory.h"

#include <stdlib.h>

enum { FIRST_SIZE = 16 };

const struct window_length WINDOWS[WINDOW_COUNT] = {
	{UINT64_C(10000000), "10ms"},
	{UINT64_C(100000000), "100ms"},
	{UINT64_C(1000000000), "1s"},
	{UINT64_C(10000000000), "10s"},
};

static struct window_entry *entry(const struct windows *windows, size_t number)
{
	return &windows->entries[number & (windows->size - 1)];
}

void windows_free(struct windows *windows)
{
	free(windows->entries);
	*windows = (struct windows){0};
}

static void grow(struct windows *windows)
{
	struct windows larger = *windows;

	larger.size = windows->size ? windows->size * 2 : FIRST_SIZE;
	larger.entries = memory_get(larger.size * sizeof(*larger.entries));
	for (size_t i = windows->starts[WINDOW_COUNT - 1]; i < windows->end; i++)
		*entry(&larger, i) = *entry(windows, i);
	free(windows->entries);
	*windows = larger;
}

void windows_add(struct windows *windows, uint64_t at_ns, uint64_t tokens)
{
	if (windows->end && entry(windows, windows->end - 1)->at_ns == at_ns) {
		entry(windows, windows->end - 1)->tokens += tokens;
	} else {
		for (size_t w = 0; w < WINDOW_COUNT; w++) {
			size_t *start = &windows->starts[w];

			while (*start < windows->end &&
			       at_ns - entry(windows, *start)->at_ns >= WINDOWS[w].ns)
				windows->sums[w] -= entry(windows, (*start)++)->tokens;
		}
		if (windows->end - windows->starts[WINDOW_COUNT - 1] == windows->size)
			grow(windows);
		*entry(windows, windows->end++) = (struct window_entry){at_ns, tokens};
	}
	for (size_t w = 0; w < WINDOW_COUNT; w++) {
		windows->sums[w] += tokens;
		if (windows->sums[w] > windows->most[w])
			windows->most[w] = windows->sums[w];
	}
}

void windows_count(struct windows *windows)
{
	for (size_t w = 0; w < WINDOW_COUNT; w++)
		windows->most[w] = 0;
}
