/*
 * random_order - a trace about the order among siblings, made up from a seed, see random.h.
 *
 * Limiters three levels deep, with weights, minima and classes, have more readers than tokens most
 * of the time: some that ask again at once, some that come at random, with keys and partitions and
 * takes of all sizes. Readers give up, settings change, tokens are charged. Now and then no new
 * readers come for a while. Workers open slots beside them, more than there are.
 */
#include "tests/sim/base/random.h"
#include "core/values/quantity.h"
#include "tests/sim/generator/lines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

enum { PHASES = 12, STEPS = 1000 /* in a phase */ };

static const char *const PATHS[] = {
	"a",	   "a/x",   "a/y",     "a/z", "a/w", "a/x/p", "a/x/q",
	"a/x/p/m", "a/y/r", "a/x/p/n", "b",   "b/u", "b/v",   "b/u/s",
};

enum { PATH_COUNT = sizeof(PATHS) / sizeof(PATHS[0]) };

static const char *const RATES[] = {"10/s", "20/s", "50/s",	     "100/s",
				    "7/s",  "3/s",  "100/s 900/min", "600/min"};
static const char *const CHILD_RATES[] = {"max", "max", "max", "10/s", "5/s", "100/s", "1/s", "0"};
static const char *const BURSTS[] = {"1", "1", "2", "5", "20"};
static const char *const WEIGHTS[] = {"100", "100", "100", "200", "300", "50", "1", "10000", "333"};
static const char *const MINIMA[] = {"0", "0", "0", "1/s", "2/s", "5/s", "30/min", "1/3s", "20/s"};
static const char *const CLASSES[] = {"0", "0", "0", "1", "1", "5", "9"};
static const char *const QUEUES[] = {"max", "max", "max", "0", "1", "3", "50"};
static const char *const WAITS[] = {"max", "max", "max", "1s", "10s", "0s", "300ms"};
static const char *const INTERVALS[] = {"0s", "0s", "0s", "100ms", "1s"};
static const char *const ENFORCEMENTS[] = {"enforce", "enforce", "enforce", "enforce",
					   "shadow",  "open",	 "closed"};
static const char *const SLOTS[] = {"max", "max", "1", "1", "2", "3", "5", "0"};
static const uint64_t TAKES[] = {1, 1, 1, 1, 1, 2, 3, 7, 30};

#define PICK(maker, texts) ((texts)[below(maker, sizeof(texts) / sizeof((texts)[0]))])

struct maker {
	struct random random, slots; /* that of slots leaves the other traces as they were */
	uint64_t now_ns, for_ns;
	unsigned int names;
	bool uniform; /* each take is of one token */
	bool there[PATH_COUNT];
	struct lines lines;
};

static uint64_t below(struct maker *maker, uint64_t most)
{
	return random_below(&maker->random, most);
}

__attribute__((format(printf, 2, 3))) static void add(struct maker *maker, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	lines_add(&maker->lines, maker->now_ns, format, arguments);
	va_end(arguments);
}

/* Returns a limiter that is there. */
static const char *any_path(struct maker *maker)
{
	uint64_t i;

	do {
		i = below(maker, PATH_COUNT);
	} while (!maker->there[i]);
	return PATHS[i];
}

static uint64_t any_take(struct maker *maker)
{
	uint64_t take = PICK(maker, TAKES);

	return maker->uniform ? 1 : take;
}

/* Settings about its place among its siblings. */
static void make_terms(struct maker *maker, const char *path)
{
	switch (below(maker, 5)) {
	case 0:
	case 1:
		add(maker, "write %s/weight %s", path, PICK(maker, WEIGHTS));
		break;
	case 2:
	case 3:
		add(maker, "write %s/priority %s", path, PICK(maker, CLASSES));
		break;
	default:
		add(maker, "write %s/min %s", path, PICK(maker, MINIMA));
		break;
	}
}

static void make_limiter(struct maker *maker, size_t i)
{
	const char *path = PATHS[i];
	bool is_top = !strchr(path, '/');

	maker->there[i] = true;
	add(maker, "mkdir %s", path);
	add(maker, "write %s/rate %s", path,
	    is_top ? PICK(maker, RATES) : PICK(maker, CHILD_RATES));
	if (below(maker, 2))
		add(maker, "write %s/burst %s", path, PICK(maker, BURSTS));
	for (uint64_t n = below(maker, 3); n && !is_top; n--)
		make_terms(maker, path);
	if (!below(maker, 8))
		add(maker, "write %s/release_interval %s", path, PICK(maker, INTERVALS));
}

/* A limiter is made after the one that it is in; `a`, `a/x`, `a/y` and `b` are always there. */
static void make_limiters(struct maker *maker)
{
	for (size_t i = 0; i < PATH_COUNT; i++) {
		bool there = strlen(PATHS[i]) == 1;

		for (size_t p = 0; p < i && !there; p++)
			there = maker->there[p] &&
				strrchr(PATHS[i], '/') - PATHS[i] == (long)strlen(PATHS[p]) &&
				!strncmp(PATHS[i], PATHS[p], strlen(PATHS[p]));
		if (there && (i < 3 || PATHS[i][1] == '\0' || below(maker, 3)))
			make_limiter(maker, i);
	}
}

/* Readers that go on for @span_ns. */
static void make_crowd(struct maker *maker, uint64_t span_ns)
{
	uint64_t until_ns = maker->now_ns + span_ns, take = any_take(maker);
	const char *path = any_path(maker);

	switch (below(maker, 6)) {
	case 0:
	case 1:
	case 2:
		add(maker, "workers %s %" PRIu64 " take %" PRIu64 " work 1ms until %" PRIu64 "ns",
		    path, 1 + below(maker, 6), take, until_ns);
		break;
	case 3:
		add(maker,
		    "workers %s %" PRIu64 " take %" PRIu64 " work %" PRIu64 "ms until %" PRIu64
		    "ns",
		    path, 1 + below(maker, 20), take, 1 + below(maker, 1000), until_ns);
		break;
	case 4:
		add(maker,
		    "load %s keys %" PRIu64 " %" PRIu64 "/s take %" PRIu64 " until %" PRIu64 "ns",
		    path, 1 + below(maker, 6), 1 + below(maker, 40), take, until_ns);
		break;
	default:
		add(maker, "load %s %" PRIu64 "/s take %" PRIu64 " until %" PRIu64 "ns", path,
		    1 + below(maker, 50), take, until_ns);
		break;
	}
}

static void make_read(struct maker *maker)
{
	const char *path = any_path(maker);
	unsigned int name = ++maker->names;
	uint64_t take = any_take(maker);

	switch (below(maker, 9)) {
	case 0:
		add(maker, "read %s/try as n%u", path, name);
		break;
	case 1:
		add(maker, "read %s/take/%" PRIu64 ",within=%" PRIu64 "ms as n%u", path, take,
		    below(maker, 5000), name);
		break;
	case 2:
		add(maker, "poll %s/token as n%u after %" PRIu64 "ms", path, name,
		    below(maker, 2) * below(maker, 1500));
		break;
	case 3:
		add(maker, "read %s/partitions/%" PRIu64 "/token as n%u", path, below(maker, 4),
		    name);
		break;
	case 4:
		add(maker, "read %s/keys/k%" PRIu64 "/take/%" PRIu64 " as n%u", path,
		    1 + below(maker, 4), take, name);
		break;
	case 5:
		add(maker, "read %s/eta/%" PRIu64 " as n%u", path, take, name);
		break;
	case 6:
		add(maker, "read %s/take/0 as n%u", path, name);
		break;
	default:
		add(maker, "read %s/take/%" PRIu64 " as n%u", path, take, name);
		break;
	}
}

static void make_setting(struct maker *maker)
{
	const char *path = any_path(maker);
	bool is_top = !strchr(path, '/');

	switch (below(maker, 12)) {
	case 0:
		add(maker, "write %s/rate %s", path,
		    is_top ? PICK(maker, RATES) : PICK(maker, CHILD_RATES));
		break;
	case 1:
		add(maker, "write %s/burst %s", path, PICK(maker, BURSTS));
		break;
	case 2:
		add(maker, "write %s/queue_max %s", path, PICK(maker, QUEUES));
		break;
	case 3:
		add(maker, "write %s/wait_max %s", path, PICK(maker, WAITS));
		break;
	case 4:
		add(maker, "write %s/enforcement %s", path, PICK(maker, ENFORCEMENTS));
		break;
	case 5:
		add(maker, "write %s/key_rate %s", path, below(maker, 2) ? "max" : "2/s");
		break;
	default:
		make_terms(maker, path);
		break;
	}
}

static void make_leave(struct maker *maker)
{
	char kind = "nlw"[below(maker, 3)];
	uint64_t most = kind == 'n' ? maker->names : 60, number = 1 + below(maker, most + 1);

	if (kind == 'n' && number > maker->names)
		return;
	if (below(maker, 2))
		add(maker, "cancel %c%" PRIu64, kind, number);
	else
		add(maker, "interrupt %c%" PRIu64 " for %" PRIu64 "ms", kind, number,
		    below(maker, 1500));
}

static void make_one(struct maker *maker)
{
	switch (below(maker, 8)) {
	case 0:
	case 1:
		make_setting(maker);
		break;
	case 2:
		make_leave(maker);
		break;
	case 3:
		if (!below(maker, 4))
			add(maker, "write %s/charge %s%" PRIu64, any_path(maker),
			    below(maker, 2) ? "-" : "", 1 + below(maker, 40));
		break;
	default:
		make_read(maker);
		break;
	}
}

static uint64_t slots_below(struct maker *maker, uint64_t most)
{
	return random_below(&maker->slots, most);
}

/* Returns a limiter that is there; a top one where @is_top. */
static const char *slots_path(struct maker *maker, bool is_top)
{
	uint64_t i;

	do {
		i = slots_below(maker, PATH_COUNT);
	} while (!maker->there[i] || (is_top && strchr(PATHS[i], '/')));
	return PATHS[i];
}

/* Settings and workers of slots for the next @span_ns. */
static void make_slots(struct maker *maker, uint64_t span_ns)
{
	const size_t count = sizeof(SLOTS) / sizeof(SLOTS[0]);

	if (!slots_below(maker, 3))
		return;
	add(maker, "write %s/concurrency %" PRIu64, slots_path(maker, true),
	    1 + slots_below(maker, 4));
	if (slots_below(maker, 2))
		add(maker, "write %s/concurrency %s", slots_path(maker, false),
		    SLOTS[slots_below(maker, count)]);
	for (uint64_t n = 1 + slots_below(maker, 5); n; n--)
		add(maker, "workers %s %" PRIu64 " slot work %" PRIu64 "ms until %" PRIu64 "ns",
		    slots_path(maker, false), 1 + slots_below(maker, 8),
		    10 + slots_below(maker, slots_below(maker, 2) ? 1000 : 100),
		    maker->now_ns + slots_below(maker, span_ns));
}

/* Many readers for a while, and then often none that are new. */
static void make_phase(struct maker *maker)
{
	uint64_t span_ns = maker->for_ns / PHASES, begun_ns = maker->now_ns;
	uint64_t quiet_ns = below(maker, 2) ? span_ns / 3 : 0;
	uint64_t step_ns = 1 + below(maker, span_ns / 4);

	/* Steps without a least length would make a trace of any size. */
	if (step_ns < span_ns / STEPS)
		step_ns = span_ns / STEPS;
	make_slots(maker, span_ns);
	for (uint64_t n = 1 + below(maker, 5); n; n--)
		make_crowd(maker, 1 + below(maker, span_ns - quiet_ns));
	while (maker->now_ns + step_ns < begun_ns + span_ns - quiet_ns) {
		maker->now_ns += below(maker, 3) ? below(maker, step_ns) : 0;
		make_one(maker);
	}
	maker->now_ns = begun_ns + span_ns;
}

char *random_order(uint64_t seed, uint64_t for_ns)
{
	struct maker maker = {.random = {seed}, .slots = {~seed}, .for_ns = for_ns};

	maker.uniform = below(&maker, 2);
	make_limiters(&maker);
	for (int i = 0; i < PHASES; i++)
		make_phase(&maker);
	maker.now_ns = for_ns;
	add(&maker, "end");
	return maker.lines.text;
}
