/*
 * random_fleet - a trace of a fleet made up from a seed, see random.h.
 *
 * A few limiters are made by one host and loaded by all, tuned now and then, and things go wrong:
 * links are cut, processes stop, die and come back, clocks run fast, servers elect.
 */
#include "random.h"

#include "core/quantity.h"
#include "lines.h"
#include "memory.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	COMMANDS = 400, /* in a trace, about */
	ARRIVALS = 150, /* of one load, at most */
	DRIFT_PPM = 5000,
};

#define SETTLE_NS UINT64_C(3000000000)
#define WORK_NS	  UINT64_C(20000000)

struct maker {
	struct random random;
	uint64_t now_ns;
	uint64_t for_ns;
	unsigned int hosts;
	unsigned int names;
	struct lines lines;
	bool loses;		   /* writes */
	bool *down, *paused, *cut; /* owned, by host */
};

static const char *const PATHS[] = {"a", "b", "a/c"};
static const char *const RATES[] = {
	"10/s", "100/s", "50/s", "500/s", "20/s", "3/s", "60/min", "7/3s", "100/s 3000/min", "1/s",
};
static const char *const BURSTS[] = {"1", "2", "5", "10", "100"};
static const char *const COUNTS[] = {"auto", "1", "2", "4", "10", "20"};
static const char *const LEASES[] = {"3s", "15s", "5s", "1min"};
static const char *const MODES[] = {"enforce", "enforce", "enforce", "shadow", "closed", "open"};
static const char *const INTERVALS[] = {"0s", "0s", "200ms", "1s"};
static const char *const RESERVES[] = {"none", "1/s hosts=2", "1/min hosts=8"};
static const char *const DEGRADED[] = {"block", "block", "share:4", "open"};

static const char *const ADAPTS[] = {
	"none",		"aimd", "cubic", "aimd period=100ms increase=5/s", "cubic scope=host",
	"aimd min=5/s",
};
static const char *const BACKOFFS[] = {
	"none",
	"none",
	"exponential initial=10ms max=2s",
	"linear initial=20ms step=50ms max=1s",
};
static const char *const OUTCOMES[] = {"ok", "throttled", "throttled 3 retry-after=2s", "error"};

#define PICK(maker, texts) \
	((texts)[random_below(&(maker)->random, sizeof(texts) / sizeof((texts)[0]))])

static uint64_t below(struct maker *maker, uint64_t most)
{
	return random_below(&maker->random, most);
}

__attribute__((format(printf, 2, 3))) static void add(struct maker *maker, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	/* The first line says what fleet it is. */
	lines_add(&maker->lines, maker->lines.used ? maker->now_ns : NEVER_NS, format, arguments);
	va_end(arguments);
}

static unsigned int any_host(struct maker *maker)
{
	return (unsigned int)below(maker, maker->hosts);
}

static const char *const CONCURRENCIES[] = {"1", "3", "7", "20", "100", "max", "auto"};

static void make_write(struct maker *maker)
{
	unsigned int host = any_host(maker) + 1;
	const char *path = PICK(maker, PATHS);

	switch (below(maker, 23)) {
	case 21:
	case 22:
		add(maker, "h%u: write %s/concurrency %s", host, path, PICK(maker, CONCURRENCIES));
		break;
	case 0:
		add(maker, "h%u: write %s/burst %s", host, path, PICK(maker, BURSTS));
		break;
	case 1:
	case 2:
		add(maker, "h%u: write %s/partitions/count %s", host, path, PICK(maker, COUNTS));
		break;
	case 3:
		add(maker, "h%u: write %s/partitions/lease %s", host, path, PICK(maker, LEASES));
		break;
	case 4:
		add(maker, "h%u: write %s/mode %s", host, path, PICK(maker, MODES));
		break;
	case 5:
		add(maker, "h%u: write %s/interval %s", host, path, PICK(maker, INTERVALS));
		break;
	case 6:
		add(maker, "h%u: write %s/partitions/reserve %s", host, path,
		    PICK(maker, RESERVES));
		break;
	case 7:
		add(maker, "h%u: write %s/charge %s%" PRIu64, host, path,
		    below(maker, 2) ? "-" : "", 1 + below(maker, 20));
		break;
	case 8:
		add(maker, "h%u: write %s/config degraded=%s", host, path, PICK(maker, DEGRADED));
		break;
	case 9:
		add(maker, "h%u: rmdir %s", host, path);
		break;
	case 10:
	case 11:
		add(maker, "h%u: mkdir %s", host, path);
		break;
	case 12:
		add(maker, "h%u: write %s/adapt %s", host, path, PICK(maker, ADAPTS));
		break;
	case 13:
		add(maker, "h%u: write %s/backoff %s", host, path, PICK(maker, BACKOFFS));
		break;
	case 14:
		add(maker, "h%u: write %s/feedback %s", host, path, PICK(maker, OUTCOMES));
		break;
	case 15:
		add(maker, "h%u: service %s %" PRIu64 "/s burst %" PRIu64 " latency %" PRIu64 "ms",
		    host, path, 1 + below(maker, 100), 1 + below(maker, 20), below(maker, 300));
		break;
	default:
		add(maker, "h%u: write %s/rate %s", host, path, PICK(maker, RATES));
		break;
	}
}

static void make_read(struct maker *maker)
{
	static const char *const files[] = {
		"token",
		"token",
		"try",
		"take/3",
		"take/0",
		"take/40,within=5s",
		"partitions/1/token",
		"partitions/0/token",
		"stat",
		"partitions/held",
		"eta/2",
		"take/2,within=0s",
	};

	if (!below(maker, 6))
		add(maker, "h%u: open %s/slot as n%u", any_host(maker) + 1, PICK(maker, PATHS),
		    ++maker->names);
	else
		add(maker, "h%u: read %s/%s as n%u", any_host(maker) + 1, PICK(maker, PATHS),
		    PICK(maker, files), ++maker->names);
	if (!below(maker, 9))
		add(maker, "close n%" PRIu64, 1 + below(maker, maker->names));
	if (!below(maker, 6))
		add(maker, "cancel n%" PRIu64, 1 + below(maker, maker->names));
}

static void make_load(struct maker *maker)
{
	uint64_t gap_ns = UINT64_C(1000000) + below(maker, UINT64_C(1) << (20 + below(maker, 11)));
	uint64_t arrivals = 1 + below(maker, ARRIVALS);

	if (below(maker, 2))
		add(maker, "h%u: load %s 1/%" PRIu64 "ns take %" PRIu64 " until %" PRIu64 "ns",
		    any_host(maker) + 1, PICK(maker, PATHS), gap_ns,
		    below(maker, 4) ? 1 : below(maker, 8), maker->now_ns + arrivals * gap_ns);
	else
		add(maker, "h%u: workers %s %" PRIu64 " work %" PRIu64 "ns until %" PRIu64 "ns",
		    any_host(maker) + 1, PICK(maker, PATHS), 1 + below(maker, 20), 1 + gap_ns / 8,
		    maker->now_ns + below(maker, UINT64_C(60000000000)));
	if (!below(maker, 3))
		add(maker,
		    "h%u: workers %s %" PRIu64 " slot work %" PRIu64 "ms until %" PRIu64 "ns",
		    any_host(maker) + 1, PICK(maker, PATHS), 1 + below(maker, 20),
		    100 + below(maker, 5000), maker->now_ns + below(maker, UINT64_C(60000000000)));
}

static void make_cut(struct maker *maker, unsigned int host)
{
	if (maker->cut[host])
		add(maker, "heal h%u", host + 1);
	else
		add(maker, "cut h%u%s", host + 1, below(maker, 2) ? " answers" : "");
	maker->cut[host] = !maker->cut[host];
}

static void make_pause(struct maker *maker, unsigned int host)
{
	if (maker->down[host])
		return;
	add(maker, "%s h%u", maker->paused[host] ? "resume" : "pause", host + 1);
	maker->paused[host] = !maker->paused[host];
}

static void make_death(struct maker *maker, unsigned int host)
{
	if (maker->down[host])
		add(maker, "%s h%u", below(maker, 3) ? "succeed" : "start", host + 1);
	else if (below(maker, 3) || maker->paused[host])
		add(maker, "kill h%u", host + 1);
	else
		add(maker, "stop h%u", host + 1);
	maker->down[host] = !maker->down[host];
	maker->paused[host] = false;
}

/* A server is killed, and the next one goes on. */
static void make_successor(struct maker *maker, unsigned int host)
{
	if (maker->down[host])
		return;
	add(maker, "kill h%u", host + 1);
	add(maker, "succeed h%u", host + 1);
	maker->paused[host] = false;
}

static void make_fault(struct maker *maker)
{
	unsigned int host = any_host(maker);

	switch (below(maker, 18)) {
	case 0:
	case 1:
	case 2:
	case 3:
		make_cut(maker, host);
		break;
	case 4:
	case 5:
	case 6:
		make_pause(maker, host);
		break;
	case 7:
	case 8:
		make_death(maker, host);
		break;
	case 9:
		add(maker, "drift h%u %d", host + 1,
		    (int)below(maker, 2 * DRIFT_PPM + 1) - DRIFT_PPM);
		break;
	case 10:
		add(maker, "elect %" PRIu64 "ms", below(maker, below(maker, 2) ? 2000 : 20000));
		break;
	case 11:
		add(maker, "latency %" PRIu64 "us jitter %" PRIu64 "us", 100 + below(maker, 20000),
		    below(maker, below(maker, 3) ? 2000 : 900000));
		break;
	case 12:
		add(maker, "lag %" PRIu64 "ms", below(maker, 2) * below(maker, 3000));
		break;
	case 13:
	case 14:
	case 15:
	case 16:
		make_successor(maker, host);
		break;
	default:
		/* Invariant 2 is not checked after that. */
		if (!maker->loses)
			break;
		add(maker, "lose %" PRIu64, 1 + below(maker, 4));
		add(maker, "elect %" PRIu64 "ms", below(maker, 2000));
		break;
	}
}

/* What is broken is mended, most of the time soon. */
static void make_repair(struct maker *maker)
{
	for (unsigned int host = 0; host < maker->hosts; host++) {
		if (maker->cut[host] && below(maker, 3) == 0)
			make_cut(maker, host);
		if (maker->paused[host] && below(maker, 3) == 0)
			make_pause(maker, host);
		if (maker->down[host] && below(maker, 3) == 0)
			make_death(maker, host);
	}
}

static void make_one(struct maker *maker)
{
	uint64_t kind = below(maker, 20);

	if (kind < 5)
		make_load(maker);
	else if (kind < 10)
		make_read(maker);
	else if (kind < 13)
		make_write(maker);
	else if (kind < 16)
		make_fault(maker);
	else
		make_repair(maker);
}

static void make_first(struct maker *maker)
{
	add(maker, "fleet %u", maker->hosts);
	for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
		maker->now_ns += SETTLE_NS;
		add(maker, "h1: mkdir %s", PATHS[i]);
		maker->now_ns += SETTLE_NS;
		add(maker, "h1: write %s/rate %s", PATHS[i], PICK(maker, RATES));
		if (below(maker, 2))
			add(maker, "h1: write %s/partitions/count %s", PATHS[i],
			    PICK(maker, COUNTS));
		if (below(maker, 2))
			add(maker, "h1: write %s/partitions/lease %s", PATHS[i],
			    PICK(maker, LEASES));
	}
	maker->now_ns += SETTLE_NS;
}

char *random_fleet(uint64_t seed, uint64_t for_ns, unsigned int hosts)
{
	struct maker maker = {
		.random = {seed}, .hosts = hosts, .for_ns = for_ns, .loses = seed % 4 == 0};
	uint64_t gap_ns = for_ns / COMMANDS + 1;

	maker.down = memory_get(hosts * sizeof(bool));
	maker.paused = memory_get(hosts * sizeof(bool));
	maker.cut = memory_get(hosts * sizeof(bool));
	make_first(&maker);
	for (;;) {
		if (below(&maker, 4))
			maker.now_ns += below(&maker,
					      below(&maker, 2) ? gap_ns * 4 : gap_ns / 8 + 1);
		if (maker.now_ns >= for_ns)
			break;
		make_one(&maker);
	}
	if (maker.now_ns < for_ns)
		maker.now_ns = for_ns;
	add(&maker, "end");
	free(maker.down);
	free(maker.paused);
	free(maker.cut);
	return maker.lines.text;
}
