/*
 * plots - faults of a made-up fleet that fit together, see maker.h: each is where a rule is needed
 * that single faults, drawn one after the other, seldom reach.
 */
#include "tests/sim/generator/maker.h"

#include <inttypes.h>
#include <stdio.h>

enum { PLOT_PATH = 16 };

/* Between two changes that count as one; and until changes count no more. */
#define QUICK_NS UINT64_C(800000000)
#define OVER_NS	 UINT64_C(9000000000)
/* As long as a host uses what it has lost, at least. */
#define RIGHT_NS UINT64_C(8000000000)

/* The holder loses its session, and goes on: it is cut off, or hears nothing, or sleeps. */
static const char *const ENDS[] = {
	"hears strike",	  "hears strike",	 "hears take strike",
	"commits orphan", "commits give strike",
};
/* ... and the host that takes what it had is struck in turn. */
static const char *const TURNS[] = {
	"commits take answers", "commits take cut",	"commits take kill", "commits take pause",
	"sends take kill",	"sends take pause",	"hears take kill",   "hears take expire",
	"hears list elect",	"commits give answers", "sends give kill",   "commits give pause",
};
/*
 * Few of each, and the largest rate often: the bound is that of the largest settings, and
 * partitions of others are worth as much by one measure and more by another.
 */
static const char *const FEW_RATES[] = {"100/s", "100/s", "100/s", "50/s", "20/s"};
static const char *const FEW_COUNTS[] = {"1", "1", "2", "2", "4", "10"};
static const char *const FEW_BURSTS[] = {"1", "10", "100"};

static void retune(struct maker *maker, unsigned int host, const char *path)
{
	const char *rate = below(maker, 12) ? PICK(maker, FEW_RATES) : "max";

	if (below(maker, 4))
		add(maker, "h%u: write %s/config rate=%s\\npartitions.count=%s", host + 1, path,
		    rate, PICK(maker, FEW_COUNTS));
	else
		add(maker, "h%u: write %s/config rate=%s\\nburst=%s\\npartitions.count=%s",
		    host + 1, path, rate, PICK(maker, FEW_BURSTS), PICK(maker, FEW_COUNTS));
}

static void work(struct maker *maker, unsigned int host, const char *path, unsigned int workers)
{
	add(maker, "h%u: workers %s %u work 10ms until %" PRIu64 "ns", host + 1, path, workers,
	    maker->now_ns + 2 * OVER_NS);
}

/*
 * Makes a limiter that nothing else is about: its partitions are clean. All hosts of the plot are
 * well.
 */
static void prepare(struct maker *maker, unsigned int host, unsigned int other, unsigned int third,
		    char path[PLOT_PATH])
{
	mend(maker, host);
	mend(maker, other);
	mend(maker, third);
	add(maker, "latency 1ms");
	wait(maker, SETTLE_NS);
	snprintf(path, PLOT_PATH, "p%u", ++maker->plots);
	add(maker, "h%u: mkdir %s", other + 1, path);
	add(maker, "h%u: write %s/partitions/lease 3s", other + 1, path);
	retune(maker, other, path);
	maker->now_ns += NSEC_PER_SEC;
}

void plots_hand_over(struct maker *maker)
{
	unsigned int host = any_host(maker), other = another_host(maker, host);
	char path[PLOT_PATH];

	prepare(maker, host, other, other, path);
	work(maker, host, path, 4);
	wait(maker, SETTLE_NS);
	if (below(maker, 2))
		add(maker, "h%u: latency 1ms answers %" PRIu64 "ms", host + 1, below(maker, 650));
	add(maker, "when h%u %s", other + 1, PICK(maker, TURNS));
	add(maker, "when h%u %s", host + 1, PICK(maker, ENDS));
	maker->cut[host] = true;
	work(maker, other, path, 4);
	wait(maker, SETTLE_NS);
	/* The library gives a connection up before it looks again. */
	maker->now_ns += NSEC_PER_SEC;
	add(maker, "succeed h%u", other + 1);
	add(maker, "resume h%u", other + 1);
	add(maker, "heal h%u", other + 1);
	maker->cut[other] = false;
	work(maker, other, path, 4);
	maker->now_ns += RIGHT_NS;
	wait(maker, SETTLE_NS);
	if (below(maker, 2))
		mend(maker, host);
}

/* Another host makes the next change: one that slept through the last, or knows only records. */
static void change_hands(struct maker *maker, unsigned int other, unsigned int third)
{
	switch (below(maker, 4)) {
	case 0:
		add(maker, "start h%u", third + 1);
		break;
	case 1:
		add(maker, "resume h%u", third + 1);
		break;
	case 2:
		add(maker, "kill h%u", other + 1);
		add(maker, "succeed h%u", other + 1);
		break;
	default:
		return;
	}
	wait(maker, QUICK_NS);
}

void plots_retune(struct maker *maker)
{
	unsigned int host = any_host(maker), other = another_host(maker, host);
	unsigned int third = another_host(maker, host);
	char path[PLOT_PATH];

	prepare(maker, host, other, third, path);
	if (below(maker, 2))
		maker->now_ns += OVER_NS;
	if (third != other && below(maker, 2))
		add(maker, "%s h%u", below(maker, 2) ? "kill" : "pause", third + 1);
	work(maker, host, path, 10);
	if (below(maker, 3))
		work(maker, other, path, 10);
	maker->now_ns += SETTLE_NS / 2;
	wait(maker, SETTLE_NS);
	for (uint64_t i = below(maker, 3); i; i--) {
		retune(maker, other, path);
		maker->now_ns += below(maker, 2) ? OVER_NS : QUICK_NS;
		work(maker, host, path, 10);
	}
	add(maker, below(maker, 2) ? "when h%u hears cut" : "cut h%u", host + 1);
	maker->cut[host] = true;
	wait(maker, 2 * QUICK_NS);
	retune(maker, other, path);
	wait(maker, QUICK_NS);
	for (uint64_t i = 1 + below(maker, 2); i; i--) {
		change_hands(maker, other, third);
		retune(maker, below(maker, 2) ? other : third, path);
		wait(maker, QUICK_NS);
	}
	/* It reads of the last change alone. */
	mend(maker, third);
	wait(maker, QUICK_NS);
	work(maker, other, path, 10);
	work(maker, third, path, 10);
	maker->now_ns += RIGHT_NS;
	mend(maker, host);
}
