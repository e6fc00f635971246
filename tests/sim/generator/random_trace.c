/*
 * random - a trace made up from a seed, see random.h.
 *
 * A few limiters, some inside others, are made, tuned, loaded, charged, told how it went and
 * removed in no sensible order, some of it refused. Times are often equal or nanoseconds apart,
 * rates span nine decades. In a quarter of the traces limits have units, and so have takes.
 */
#include "tests/sim/base/random.h"
#include "core/values/quantity.h"
#include "tests/sim/generator/lines.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum {
	COMMANDS = 300,	    /* in a trace, about */
	ARRIVALS_MAX = 400, /* of one load */
	TAKE_TEXT = 96,	    /* of a name in take */
	UNITS_EVERY = 4,    /* traces of which one has units */
	WINDOWS_EVERY = 5,  /* traces of which one has windows of the calendar of keys ... */
	WINDOW_ACTS = 4,    /* ... where something is done about them after one act of so many */
};

struct maker {
	struct random random;
	struct random units; /* leaves the other traces as they were */
	struct random clock; /* likewise */
	struct random windows;
	bool has_units;
	bool has_windows; /* of the calendar, of keys */
	uint64_t now_ns;
	unsigned int names;
	struct lines lines;
};

static const char *const PATHS[] = {"a", "b", "a/c", "a/d", "b/e", "a/c/f", "a/c/g", "b/e/h"};
static const char *const RATES[] = {
	"10/s",
	"100/s",
	"1000/s",
	"1/s",
	"1/7s",
	"1000/90s",
	"7/3s",
	"1000000/s",
	"60/min",
	"1/100ms",
	"333/1ms",
	"10/s 50/min",
	"max",
	"0",
	"20/s:5 3/s:40",
	"1G/s",
	"5000/h",
	"1.5/s",
	"2Ki/s",
	"3/s",
	"99999/7min",
	"500/s 400/s 300/s:9",
	"10/60s,strict",
	"20/60s,strict",
	"7/3s,strict",
	"5/s 10/60s,strict",
	"1/7s,strict",
	"100000/s,strict",
	"30/5min,strict",
	"10/100s,strict 3/s,strict",
	"7/min@:00",
	"20/min@:30 1/s",
	"50/h@:00",
	"9/day@00:00,Europe/Paris",
	"30/min@:07 100/h@:15 40/day@12:00",
};
static const char *const UNIT_RATES[] = {
	"10/s x=20/min@:00",
	"7/min@:10 x=50/min@:10 x=9/s",
	"10/s x=100/s:50",
	"100/s:20 x=30/s:30 y=7/s:9",
	"x=20/s:10",
	"1/s:3 x=10/s:40 x=100/min:60",
	"y=5/s:5 x=1000/s:100 3/s",
	"1000/s:50 y=1/s:4",
	"max",
	"7/3s x=0.5/s",
};
static const char *const UNIT_AMOUNTS[] = {
	",x=1", ",x=7", ",x=30", ",y=2", ",x=3,y=1", ",y=9,x=50", ",x=0", ",x=200",
};
static const char *const UNIT_CHARGES[] = {
	"x=5", "x=-5", "3 x=-20", "-2 y=-1", "y=4 x=-1", "x=60", "z=1",
};
static const char *const UNIT_KEY_RATES[] = {
	"key_rate 1/s x=10/s:20",
	"key_rate x=5/s:30 y=1/3s:4",
	"key_rate y=2/s",
	"key_rate 5/s x=30/9s,strict y=100/s:100",
	"key_rate max",
	"keys/k1/rate x=50/s",
	"keys/k1/rate 3/s y=1/s:9",
	"keys/k2/rate default",
	"keys/k2/burst 8",
	"keys/k1/rate default",
};
static const char *const WINDOW_KEY_RATES[] = {
	"key_rate 7/min@:00",
	"key_rate 20/min@:30 1/s",
	"key_rate 50/h@:00 30/min@:07",
	"key_rate 10/s x=20/min@:00",
	"key_rate x=9/min@:10 x=2/s 30/h@:10",
	"key_rate 9/day@00:00,Europe/Paris",
	"key_rate 1/s",
	"key_rate max",
	"keys/k1/rate 11/min@:00",
	"keys/k1/rate 40/h@:20 2/s",
	"keys/k1/rate default",
	"keys/k2/rate 3/min@:15",
	"keys/k2/rate default",
	"config key_rate=12/min@:00\\nkey.k1.rate=30/min@:00\\nkey.k2.rate=default",
	"keys_max 2",
	"keys_max 100",
};
static const char *const WINDOW_AMOUNTS[] = {"1", "1", "3", "7", "0", "1,x=3", "2,x=9", "12"};
static const char *const UNIT_QUOTAS[] = {
	"200 unit=x remaining=12 reset=4s limit=20 window=1s",
	"429 unit=x remaining=0 reset=700ms",
	"quota unit=x remaining=40 reset=1m0s\\nquota unit=y remaining=3 window=1s",
	"200 remaining=5 reset=2s\\nquota unit=x remaining=30 reset=2s",
	"quota unit=x remaining=max",
	"quota unit=z remaining=1 reset=1s",
};
static const char *const BURSTS[] = {"1", "2", "3", "5", "10", "100", "1000"};
static const char *const RELEASE_INTERVALS[] = {"0s", "0s",   "0s",   "200ms",
						"1s", "10ms", "33ms", "7s"};
static const char *const ENFORCEMENTS[] = {"enforce", "enforce", "enforce",
					   "shadow",  "open",	 "closed"};
static const char *const COUNTS[] = {"auto", "1", "3", "4", "20"};
static const char *const RESERVES[] = {"none", "1/s hosts=2", "1/min hosts=1"};
static const char *const ADAPTS[] = {
	"none",
	"aimd",
	"cubic",
	"aimd min=0.5/s increase=10/s period=100ms",
	"aimd min=0.001/s decrease=0.01 increase=100% period=7s",
	"cubic min=1/7s decrease=0.99 scale=1000 period=10ms",
};
static const char *const BACKOFFS[] = {
	"none",
	"exponential",
	"linear",
	"exponential initial=1ns max=1h up=100 down=0 after=1 jitter=1",
	"linear initial=33ms step=1us max=1s after=2 retry-max=3s",
};
static const char *const OUTCOMES[] = {
	"ok",
	"throttled",
	"ok 20",
	"error",
	"429 retry-after=2",
	"200\\n200\\n429\\n000",
	"throttled 1000000000 retry-after=1d",
	"ok 1000000000",
	"200 remaining=12 reset=4s limit=20 window=1s",
	"429 remaining=0 reset=700ms",
	"quota remaining=40 reset=1min\\nquota remaining=3 window=1s",
	"ok limit=5 window=1s remaining=max",
};
static const char *const CONFIGS[] = {
	"rate=50/s\\nburst=5\\nenforcement=enforce",
	"release_interval=100ms\\nrate=30/s",
	"burst=4\\nrate=nonsense",
	"rate=3/s 90/min\\nrelease_interval=0s\\nenforcement=enforce",
};
static const char *const SERVICES[] = {"10/s", "100/s", "1000/s", "1/s", "7/3s"};
static const char *const KEY_SETTINGS[] = {
	"key_rate 2/5s,strict",
	"key_rate 3/60s,strict",
	"key_rate 3/9s,strict",
	"key_rate 1/s",
	"key_rate 3/s",
	"key_rate 100/s",
	"key_rate 0",
	"key_rate 1/7s",
	"key_rate max",
	"key_burst 1",
	"key_burst 5",
	"keys_max 2",
	"keys_max 3",
	"key_concurrency 1",
	"key_concurrency 2",
	"key_concurrency max",
	"keys/k1/rate 5/s",
	"keys/k1/rate 1/3s",
	"keys/k1/rate max",
	"keys/k1/rate default",
	"keys/k2/burst 7",
	"keys/k2/burst default",
	"keys/k2/rate 0",
	"keys/k3/burst 1",
	"config key.k1.rate=50/s\\nkey.k3.rate=2/s\\nkey.k2.rate=default\\nkey.k2.burst=3",
};
static const char *const WRONG[] = {
	"rate fast",
	"rate 5/fortnight",
	"burst 0",
	"enforcement ajar",
	"release_interval 1ns",
	"charge none",
	"partitions/count 5000",
	"adapt aimd min=0",
	"backoff linear up=2",
	"feedback fine",
	"feedback ok\\nok 0",
	"feedback ok remaining=5",
};

#define PICK(maker, texts) pick(maker, texts, sizeof(texts) / sizeof((texts)[0]))

static const char *pick(struct maker *maker, const char *const *texts, size_t count)
{
	return texts[random_below(&maker->random, count)];
}

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

static const char *const CONCURRENCIES[] = {"1", "2", "3", "20", "max", "auto", "auto min=2 max=4"};

static void make_write(struct maker *maker)
{
	const char *path = PICK(maker, PATHS);

	switch (below(maker, 19)) {
	case 12:
	case 13:
		add(maker, "write %s/adapt %s", path, PICK(maker, ADAPTS));
		break;
	case 14:
		add(maker, "write %s/backoff %s", path, PICK(maker, BACKOFFS));
		break;
	case 15:
	case 16:
		add(maker, "write %s/concurrency %s", path, PICK(maker, CONCURRENCIES));
		break;
	case 17:
	case 18:
		add(maker, "write %s/%s", path, PICK(maker, KEY_SETTINGS));
		break;
	case 0:
	case 1:
	case 2:
	case 3:
		add(maker, "write %s/rate %s", path, PICK(maker, RATES));
		break;
	case 4:
	case 5:
		add(maker, "write %s/burst %s", path, PICK(maker, BURSTS));
		break;
	case 6:
		add(maker, "write %s/release_interval %s", path, PICK(maker, RELEASE_INTERVALS));
		break;
	case 7:
	case 8:
		add(maker, "write %s/enforcement %s", path, PICK(maker, ENFORCEMENTS));
		break;
	case 9:
		add(maker, "write %s/partitions/count %s", path, PICK(maker, COUNTS));
		break;
	case 10:
		add(maker, "write %s/partitions/reserve %s", path, PICK(maker, RESERVES));
		break;
	default:
		add(maker, "write %s/config %s", path, PICK(maker, CONFIGS));
		break;
	}
}

static uint64_t below_of_units(struct maker *maker, uint64_t most)
{
	return random_below(&maker->units, most);
}

#define PICK_OF_UNITS(maker, texts) \
	((texts)[below_of_units(maker, sizeof(texts) / sizeof((texts)[0]))])

/* Names a take of @tokens: every third one is of a range, or has units. Returns @name. */
static const char *take_of(struct maker *maker, uint64_t tokens, char name[TAKE_TEXT])
{
	const char *amounts;

	if (maker->has_units && below_of_units(maker, 3)) {
		amounts = PICK_OF_UNITS(maker, UNIT_AMOUNTS);
		if (below_of_units(maker, 6))
			snprintf(name, TAKE_TEXT, "%" PRIu64 "%s", tokens, amounts);
		else
			snprintf(name, TAKE_TEXT, "%s", amounts + 1);
	} else if (tokens % 3 != 1)
		snprintf(name, TAKE_TEXT, "%" PRIu64, tokens);
	else
		snprintf(name, TAKE_TEXT, "%" PRIu64 "-%" PRIu64, 1 + tokens / 6, 1 + tokens);
	return name;
}

/* Does something about units beside the rest. */
static void make_units(struct maker *maker)
{
	const char *path = PICK_OF_UNITS(maker, PATHS);

	switch (below_of_units(maker, 10)) {
	case 6:
		add(maker, "write %s/feedback %s", path, PICK_OF_UNITS(maker, UNIT_QUOTAS));
		break;
	case 7:
		add(maker, "write %s/%s", path, PICK_OF_UNITS(maker, UNIT_KEY_RATES));
		break;
	case 8:
	case 9:
		add(maker, "read %s/keys/k%" PRIu64 "/take/1%s as n%u", path,
		    below_of_units(maker, 4), PICK_OF_UNITS(maker, UNIT_AMOUNTS), ++maker->names);
		break;
	case 0:
		add(maker, "write %s/rate %s", path, PICK_OF_UNITS(maker, UNIT_RATES));
		break;
	case 1:
		add(maker, "write %s/charge %s", path, PICK_OF_UNITS(maker, UNIT_CHARGES));
		break;
	case 2:
		add(maker, "read %s/eta/1%s as n%u", path, PICK_OF_UNITS(maker, UNIT_AMOUNTS),
		    ++maker->names);
		break;
	case 3:
		add(maker, "load %s 1/%" PRIu64 "ms take 1%s until %" PRIu64 "ns", path,
		    1 + below_of_units(maker, 3000), PICK_OF_UNITS(maker, UNIT_AMOUNTS),
		    maker->now_ns + (1 + below_of_units(maker, 60)) * NSEC_PER_SEC);
		break;
	default:
		add(maker, "read %s/take/1%s as n%u", path, PICK_OF_UNITS(maker, UNIT_AMOUNTS),
		    ++maker->names);
		break;
	}
}

#define PICK_OF_WINDOWS(maker, texts) \
	((texts)[random_below(&(maker)->windows, sizeof(texts) / sizeof((texts)[0]))])

/* Does something about windows of keys beside the rest. */
static void make_window(struct maker *maker)
{
	static const char *const keyed[] = {"a", "b", "a/c"};
	const char *path = PICK_OF_WINDOWS(maker, keyed);
	uint64_t key = random_below(&maker->windows, 4);

	if (!maker->has_windows || random_below(&maker->windows, WINDOW_ACTS))
		return;
	switch (random_below(&maker->windows, 4)) {
	case 0:
		add(maker, "write %s/%s", path, PICK_OF_WINDOWS(maker, WINDOW_KEY_RATES));
		break;
	case 1:
		add(maker, "load %s keys 3 1/%" PRIu64 "ms take %s until %" PRIu64 "ns", path,
		    100 + random_below(&maker->windows, 3000),
		    PICK_OF_WINDOWS(maker, WINDOW_AMOUNTS),
		    maker->now_ns + (1 + random_below(&maker->windows, 60)) * NSEC_PER_SEC);
		break;
	case 2:
		add(maker, "read %s/keys/k%" PRIu64 "/eta/%s as n%u", path, key,
		    PICK_OF_WINDOWS(maker, WINDOW_AMOUNTS), ++maker->names);
		break;
	default:
		add(maker, "read %s/keys/k%" PRIu64 "/take/%s as n%u", path, key,
		    PICK_OF_WINDOWS(maker, WINDOW_AMOUNTS), ++maker->names);
		break;
	}
}

static void make_read_of_key(struct maker *maker)
{
	char take[TAKE_TEXT];
	const char *path = PICK(maker, PATHS);
	unsigned int key = (unsigned int)below(maker, 5), name = ++maker->names;
	uint64_t tokens = below(maker, 4) ? below(maker, 4) : below(maker, 100);

	switch (below(maker, 7)) {
	case 6:
		add(maker, "poll %s/keys/k%u/token as n%u after %" PRIu64 "ms", path, key, name,
		    below(maker, 2) * below(maker, 2000));
		break;
	case 0:
		add(maker, "read %s/keys/k%u/try as n%u", path, key, name);
		break;
	case 1:
		add(maker, "read %s/keys/k%u/take/%s as n%u", path, key,
		    take_of(maker, tokens, take), name);
		break;
	case 2:
		add(maker, "read %s/keys/k%u/take/%s,within=%" PRIu64 "ms as n%u", path, key,
		    take_of(maker, tokens, take), below(maker, 20000), name);
		break;
	case 3:
		add(maker, "read %s/keys/k%u/stat as n%u", path, key, name);
		break;
	default:
		add(maker, "read %s/keys/k%u/token as n%u", path, key, name);
		break;
	}
}

static void make_read(struct maker *maker)
{
	char take[TAKE_TEXT];
	const char *path = PICK(maker, PATHS);
	unsigned int name = ++maker->names;
	uint64_t tokens = below(maker, 4) ? below(maker, 6) : below(maker, 3000);

	switch (below(maker, 14)) {
	case 12:
		add(maker, "poll %s/token as n%u after %" PRIu64 "ms", path, name,
		    below(maker, 2) * below(maker, 2000));
		break;
	case 13:
		add(maker, "poll %s/take/%s as n%u after %" PRIu64 "ms", path,
		    take_of(maker, tokens, take), name, below(maker, 2) * below(maker, 2000));
		break;
	case 10:
	case 11:
		if (below(maker, 2))
			add(maker, "open %s/keys/k%" PRIu64 "/slot as n%u", path,
			    1 + below(maker, 3), name);
		else
			add(maker, "open %s/slot as n%u", path, name);
		break;
	case 0:
		add(maker, "read %s/try as n%u", path, name);
		break;
	case 1:
	case 2:
	case 3:
		add(maker, "read %s/take/%s as n%u", path, take_of(maker, tokens, take), name);
		break;
	case 4:
	case 5:
		add(maker, "read %s/take/%s,within=%" PRIu64 "ms as n%u", path,
		    take_of(maker, tokens, take), below(maker, 3) * below(maker, 20000), name);
		break;
	case 6:
		add(maker, "read %s/eta/%" PRIu64 " as n%u", path, tokens, name);
		break;
	case 7:
		add(maker, "read %s/%s as n%u", path, below(maker, 2) ? "stat" : "config", name);
		break;
	case 8:
		add(maker, "read %s/partitions/%" PRIu64 "/%s as n%u", path, below(maker, 6),
		    below(maker, 4) ? "token" : "rate", name);
		break;
	default:
		add(maker, "read %s/token as n%u", path, name);
		break;
	}
}

/* So many arrivals, over nanoseconds or hours. */
static void make_load(struct maker *maker)
{
	uint64_t arrivals = 1 + below(maker, ARRIVALS_MAX);
	uint64_t gap_ns = 1 + below(maker, UINT64_C(1) << (1 + below(maker, 33)));

	if (below(maker, 3)) {
		add(maker, "load %s %s1/%" PRIu64 "ns take %" PRIu64 " until %" PRIu64 "ns",
		    PICK(maker, PATHS), below(maker, 4) ? "" : "keys 3 ", gap_ns,
		    below(maker, 3) ? 1 : below(maker, 20), maker->now_ns + arrivals * gap_ns);
		return;
	}
	gap_ns = 1000000 + gap_ns % 1000000000;
	add(maker, "workers %s %" PRIu64 "%s work %" PRIu64 "ns until %" PRIu64 "ns",
	    PICK(maker, PATHS), 1 + below(maker, 4), below(maker, 2) ? " slot" : "", gap_ns,
	    maker->now_ns + (1 + arrivals / 4) * gap_ns);
}

/* Of one reader: one of @count that are called @kind and a number. */
static void make_leave(struct maker *maker, char kind, uint64_t count)
{
	uint64_t number = 1 + below(maker, count);

	switch (below(maker, 4)) {
	case 0:
		add(maker, "cancel %c%" PRIu64, kind, number);
		break;
	case 1:
		add(maker, "close %c%" PRIu64, kind, number);
		break;
	case 2:
		add(maker, "interrupt %c%" PRIu64, kind, number);
		break;
	default:
		add(maker, "interrupt %c%" PRIu64 " for %" PRIu64 "ns", kind, number,
		    below(maker, UINT64_C(1) << (1 + below(maker, 31))));
		break;
	}
}

static void make_one(struct maker *maker)
{
	const char *path = PICK(maker, PATHS);

	switch (below(maker, 23)) {
	case 20:
	case 21:
		add(maker, "write %s/feedback %s", path, PICK(maker, OUTCOMES));
		break;
	case 22:
		add(maker, "service %s %s burst %" PRIu64 " latency %" PRIu64 "ms", path,
		    PICK(maker, SERVICES), 1 + below(maker, 50), below(maker, 300));
		break;
	case 0:
		add(maker, "mkdir %s", path);
		break;
	case 1:
		add(maker, "rmdir %s", path);
		break;
	case 2:
	case 3:
		if (maker->names)
			make_leave(maker, 'n', maker->names);
		break;
	case 4:
		make_leave(maker, below(maker, 2) ? 'l' : 'w', 10000);
		break;
	case 5:
		add(maker, "write %s/charge %s%" PRIu64, path, below(maker, 2) ? "-" : "",
		    1 + below(maker, 100));
		break;
	case 6:
		add(maker, "write %s/%s", path, PICK(maker, WRONG));
		break;
	case 7:
	case 8:
	case 9:
	case 10:
		make_write(maker);
		break;
	case 11:
	case 12:
	case 13:
		make_load(maker);
		break;
	case 14:
	case 15:
		make_read_of_key(maker);
		break;
	default:
		make_read(maker);
		break;
	}
}

/*
 * Sets the wall clock, now and then: by seconds, hours or days from a night in which the clocks of
 * Paris are put forward.
 */
static void make_clock(struct maker *maker)
{
	static const int64_t night_s = INT64_C(1774738790); /* 2026-03-28 22:59:50 UTC */
	static const int64_t spans_s[] = {20, 200, 8000, 200000};
	int64_t span_s = spans_s[random_below(&maker->clock, 4)];
	time_t time = (time_t)(night_s + (int64_t)(maker->now_ns / NSEC_PER_SEC));
	char text[32];

	if (random_below(&maker->clock, 40))
		return;
	time += (int64_t)random_below(&maker->clock, (uint64_t)(2 * span_s)) - span_s;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", gmtime(&time));
	add(maker, "clock %s", text);
}

char *random_trace(uint64_t seed, uint64_t for_ns)
{
	struct maker maker = {.random = {seed},
			      .units = {~seed},
			      .clock = {~seed * 3},
			      .windows = {~seed * 7},
			      .has_units = seed % UNITS_EVERY == 0,
			      .has_windows = seed % WINDOWS_EVERY == 3};
	uint64_t gap_ns = 2 * for_ns / COMMANDS + 1;

	for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
		if (!below(&maker, 4))
			continue;
		add(&maker, "mkdir %s", PATHS[i]);
		add(&maker, "write %s/rate %s", PATHS[i], PICK(&maker, RATES));
		if (below(&maker, 2))
			add(&maker, "write %s/burst %s", PATHS[i], PICK(&maker, BURSTS));
	}
	for (;;) {
		/* Often at one instant, or nanoseconds after it. */
		if (below(&maker, 3))
			maker.now_ns += below(&maker, below(&maker, 2) ? gap_ns * 2 : 1000);
		if (maker.now_ns >= for_ns)
			break;
		make_one(&maker);
		if (maker.has_units)
			make_units(&maker);
		make_window(&maker);
		make_clock(&maker);
	}
	maker.now_ns = for_ns;
	add(&maker, "end");
	return maker.lines.text;
}
