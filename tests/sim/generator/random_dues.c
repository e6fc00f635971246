/*
 * random_dues - a trace about the order among siblings over the hosts of a fleet, made up from a
 * seed, see random.h.
 *
 * Limiters three levels deep have weights, minima and classes. In each phase they are changed by
 * any host, and then demand stands still: on most hosts some limiters are flooded by readers that
 * ask again at once, on others some have few readers, which come by themselves, also of keys. In
 * some phases a host dies, is cut off, or loses its session, and all is mended before demand comes.
 */
#include "tests/sim/generator/maker.h"

#include <inttypes.h>
#include <string.h>

enum {
	FLOOD_MOST = 60, /* readers on one host */
	FAULTS = 4,	 /* one phase in so many has one */
};

/* So long demand stands still: until the fault is forgotten, and for a window or two after that. */
#define PHASE_NS  UINT64_C(90000000000)
#define CHANGE_NS UINT64_C(300000000)
#define MEND_NS	  UINT64_C(5000000000)

static const char *const LIMITERS[] = {"a",	"a/x",	 "a/y", "a/z", "a/w",
				       "a/x/p", "a/x/q", "b",	"b/u", "b/v"};

enum { LIMITER_COUNT = sizeof(LIMITERS) / sizeof(LIMITERS[0]) };

static const char *const TOP_RATES[] = {"10/s", "20/s", "50/s", "100/s", "200/s"};
static const char *const TILES[] = {"auto", "auto", "auto", "auto", "auto", "20"};
static const char *const LEASE_TIMES[] = {"3s", "3s", "5s"};
static const char *const WEIGHTS[] = {"100", "100", "200", "300", "50", "1", "1000"};
static const char *const MINIMA[] = {"0", "1/s", "2/s", "5/s", "30/min"};
static const char *const CLASSES[] = {"0", "0", "0", "1", "1", "5", "9"};
static const char *const DEMANDS[] = {"1/3s", "1/s", "2/s", "5/s"};
static const char *const ORDER_CONSTANTS[] = {"", " renewal 500ms right 3s session 2s",
					      " renewal 500ms right 3s session 2s"};

static bool is_top(size_t i)
{
	return !strchr(LIMITERS[i], '/');
}

/* Changes its place among its siblings. */
static void make_terms(struct maker *maker, size_t i)
{
	unsigned int host = any_host(maker) + 1;

	if (is_top(i))
		return;
	switch (below(maker, 4)) {
	case 0:
	case 1:
		add(maker, "h%u: write %s/weight %s", host, LIMITERS[i], PICK(maker, WEIGHTS));
		break;
	case 2:
		add(maker, "h%u: write %s/priority %s", host, LIMITERS[i], PICK(maker, CLASSES));
		break;
	default:
		add(maker, "h%u: write %s/min %s", host, LIMITERS[i], PICK(maker, MINIMA));
		break;
	}
	maker->now_ns += CHANGE_NS;
}

static void make_limiters(struct maker *maker)
{
	add(maker, "fleet %u%s", maker->hosts, PICK(maker, ORDER_CONSTANTS));
	maker->now_ns = SETTLE_NS;
	for (size_t i = 0; i < LIMITER_COUNT; i++) {
		add(maker, "h1: mkdir %s", LIMITERS[i]);
		maker->now_ns += CHANGE_NS;
		add(maker,
		    "h1: write %s/config rate=%s\\npartitions.count=%s\\npartitions.lease=%s",
		    LIMITERS[i], is_top(i) ? PICK(maker, TOP_RATES) : "max", PICK(maker, TILES),
		    PICK(maker, LEASE_TIMES));
		maker->now_ns += CHANGE_NS;
		if (below(maker, 2))
			make_terms(maker, i);
	}
	maker->now_ns += SETTLE_NS;
}

static void make_fault(struct maker *maker)
{
	unsigned int host = any_host(maker) + 1;

	switch (below(maker, 4)) {
	case 0:
		add(maker, "kill h%u", host);
		break;
	case 1:
		add(maker, "cut h%u", host);
		break;
	case 2:
		add(maker, "pause h%u", host);
		break;
	default:
		add(maker, "expire h%u", host);
		break;
	}
	maker->now_ns += below(maker, MEND_NS);
	add(maker, "start h%u", host);
	add(maker, "resume h%u", host);
	add(maker, "heal h%u", host);
	maker->now_ns += MEND_NS;
}

/* Lets a limiter be flooded on a host until the phase ends. */
static void make_flood(struct maker *maker, unsigned int host, const char *path, uint64_t until_ns)
{
	if (below(maker, 3))
		return;
	add(maker, "h%u: workers %s %" PRIu64 " take %d work %" PRIu64 "ms until %" PRIu64 "ns",
	    host, path, 5 + below(maker, FLOOD_MOST), below(maker, 6) ? 1 : 3, 1 + below(maker, 10),
	    until_ns);
}

/* Lets it have few readers. */
static void make_load(struct maker *maker, unsigned int host, const char *path, uint64_t until_ns)
{
	switch (below(maker, 6)) {
	case 0:
	case 1:
		add(maker, "h%u: load %s %s%s until %" PRIu64 "ns", host, path,
		    PICK(maker, DEMANDS), below(maker, 2) ? " poisson" : "", until_ns);
		break;
	case 2:
		add(maker, "h%u: load %s keys 3 3/s until %" PRIu64 "ns", host, path, until_ns);
		break;
	default:
		break;
	}
}

/* Most hosts have floods. */
static void make_demand(struct maker *maker, unsigned int host, uint64_t until_ns)
{
	bool floods = below(maker, 3);

	for (size_t i = 0; i < LIMITER_COUNT; i++) {
		if (floods)
			make_flood(maker, host, LIMITERS[i], until_ns);
		else
			make_load(maker, host, LIMITERS[i], until_ns);
	}
}

static void make_phase(struct maker *maker)
{
	uint64_t until_ns = maker->now_ns + PHASE_NS;

	for (uint64_t i = below(maker, 4); i; i--)
		make_terms(maker, below(maker, LIMITER_COUNT));
	if (!below(maker, FAULTS))
		make_fault(maker);
	for (unsigned int host = 1; host <= maker->hosts; host++)
		make_demand(maker, host, until_ns);
	maker->now_ns = until_ns;
}

char *random_dues(uint64_t seed, uint64_t for_ns, unsigned int hosts)
{
	struct maker maker = {.random = {seed}, .hosts = hosts, .for_ns = for_ns};

	make_limiters(&maker);
	while (maker.now_ns + PHASE_NS <= for_ns)
		make_phase(&maker);
	maker.now_ns = for_ns > maker.now_ns ? for_ns : maker.now_ns;
	add(&maker, "end");
	return maker.lines.text;
}
