/*
 * random - a trace made up from a seed, see random.h.
 *
 * A few limiters, some inside others, are made, tuned, loaded, charged, told how it went and
 * removed in no sensible order, some of it refused. Times are often equal or nanoseconds apart,
 * rates span nine decades.
 */
#include "tests/sim/base/random.h"
#include "core/values/quantity.h"
#include "tests/sim/generator/lines.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	COMMANDS = 300,	    /* in a trace, about */
	ARRIVALS_MAX = 400, /* of one load */
	TAKE_TEXT = 48,	    /* of a name in take */
};

struct maker {
	struct random random;
	uint64_t now_ns;
	unsigned int names;
	struct lines lines;
};

static const char *const PATHS[] = {"a", "b", "a/c", "a/d", "b/e", "a/c/f", "a/c/g", "b/e/h"};
static const char *const RATES[] = {
	"10/s",		 "100/s",
	"1000/s",	 "1/s",
	"1/7s",		 "1000/90s",
	"7/3s",		 "1000000/s",
	"60/min",	 "1/100ms",
	"333/1ms",	 "10/s 50/min",
	"max",		 "0",
	"20/s:5 3/s:40", "1G/s",
	"5000/h",	 "1.5/s",
	"2Ki/s",	 "3/s",
	"99999/7min",	 "500/s 400/s 300/s:9",
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
	"linear initial=33ms step=1us max=1s after=2",
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
};
static const char *const CONFIGS[] = {
	"rate=50/s\\nburst=5\\nenforcement=enforce",
	"release_interval=100ms\\nrate=30/s",
	"burst=4\\nrate=nonsense",
	"rate=3/s 90/min\\nrelease_interval=0s\\nenforcement=enforce",
};
static const char *const SERVICES[] = {"10/s", "100/s", "1000/s", "1/s", "7/3s"};
static const char *const KEY_SETTINGS[] = {
	"key_rate 1/s", "key_rate 3/s", "key_rate 100/s", "key_rate 0", "key_rate 1/7s",
	"key_rate max", "key_burst 1",	"key_burst 5",	  "keys_max 2", "keys_max 3",
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

/* Names a take of @tokens: every third one is of a range. Returns @name. */
static const char *take_of(uint64_t tokens, char name[TAKE_TEXT])
{
	if (tokens % 3 != 1)
		snprintf(name, TAKE_TEXT, "%" PRIu64, tokens);
	else
		snprintf(name, TAKE_TEXT, "%" PRIu64 "-%" PRIu64, 1 + tokens / 6, 1 + tokens);
	return name;
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
		add(maker, "read %s/keys/k%u/take/%s as n%u", path, key, take_of(tokens, take),
		    name);
		break;
	case 2:
		add(maker, "read %s/keys/k%u/take/%s,within=%" PRIu64 "ms as n%u", path, key,
		    take_of(tokens, take), below(maker, 20000), name);
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
		    take_of(tokens, take), name, below(maker, 2) * below(maker, 2000));
		break;
	case 10:
	case 11:
		add(maker, "open %s/slot as n%u", path, name);
		break;
	case 0:
		add(maker, "read %s/try as n%u", path, name);
		break;
	case 1:
	case 2:
	case 3:
		add(maker, "read %s/take/%s as n%u", path, take_of(tokens, take), name);
		break;
	case 4:
	case 5:
		add(maker, "read %s/take/%s,within=%" PRIu64 "ms as n%u", path,
		    take_of(tokens, take), below(maker, 3) * below(maker, 20000), name);
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

char *random_trace(uint64_t seed, uint64_t for_ns)
{
	struct maker maker = {.random = {seed}};
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
	}
	maker.now_ns = for_ns;
	add(&maker, "end");
	return maker.lines.text;
}
