/*
 * random_fleet - a trace of a fleet made up from a seed, see random.h.
 *
 * Some limiters are made, tuned, renamed, removed and loaded by all hosts, and everything is
 * against them: links are cut right after an acknowledgement, sessions end at any moment, processes
 * stop, die and come back in the middle of a transaction or with grants on their way, clocks
 * disagree, answers take long, servers elect, names are given up and taken while a host does not
 * hear of it. One seed in eight loses writes, one has a foreign hand that deletes nodes, one has
 * access rights that are taken away and given back, and two have plots (plots.c). In some fleets
 * PATH is so long that a host has room for few leases. Programs poll meanwhile, and tokens are kept
 * for them. In some fleets a limiter has keys that are leased. In some there are windows of the
 * calendar, and no clock drifts. In some a limiter has slots (random_slots.c). In half of all
 * fleets steps of a host come late (random_late.c). For the last three tenths of the time nothing
 * goes wrong any more. All hosts have the same work; or one has more than there is for it, and the
 * others little, where partitions have no numbers.
 */
#include "tests/sim/generator/maker.h"
#include "tests/sim/base/memory.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	ACTS = 220, /* in a trace, about */
	KINDS = 8,  /* of seeds */
	DRIFT_PPM = 5000,
	WORKERS = 3,
	POLL_ACTS = 8,	   /* polls begin after one of so many */
	KEY_ACTS = 4,	   /* so does load of keys that are leased, in one of so many fleets */
	PLOT_ACTS = 4,	   /* in a fleet with plots, one of so many */
	WINDOW_FLEETS = 3, /* one in so many has windows of the calendar ... */
	WINDOW_ACTS = 6,   /* ... written in one act of so many */
	UNIT_FLEETS = 4,   /* one in so many has a limiter with units, of it and of its keys ... */
	UNIT_ACTS = 3,	   /* ... where something is done after one act of so many */
	LATE_FLEETS = 2,   /* in one of so many, steps of hosts come late */
};

enum kind { KIND_LOSES, KIND_MEDDLES, KIND_DENIES, KIND_RETUNES, KIND_HANDS_OVER };

#define SHIFT_NS UINT64_C(25000000000) /* so often load comes */

static const char *const SLOW_RATES[] = {"3/s", "1/s", "7/3s", "1/10s", "max", "0"};
static const char *const WINDOWS[] = {
	"300/min@:00", "900/min@:00", "1000/min@:30",	  "100/min@:00", "6000/h@:01",
	"20000/h@:01", "300/min@:00", "300/min@:00 10/s", "40/min@:00",	 "500/min@:00",
};
static const char *const LEASES[] = {"3s", "15s", "5s", "3s"};
static const char *const ENFORCEMENTS[] = {"enforce", "enforce", "enforce",
					   "shadow",  "closed",	 "open"};
static const char *const RELEASE_INTERVALS[] = {"0s", "0s", "200ms", "1s"};
static const char *const RESERVES[] = {"none", "1/s hosts=2", "60/min hosts=8", "5/s hosts=1"};
static const char *const OFFLINES[] = {"block", "block", "share:4", "open"};
static const char *const ADAPTS[] = {
	"none", "none", "aimd", "cubic", "aimd period=100ms increase=5/s", "cubic scope=host",
};
static const char *const BACKOFFS[] = {"none", "none", "exponential initial=10ms max=2s"};
static const char *const OUTCOMES[] = {"quota", "throttled", "throttled 3 retry-after=2s", "error"};
static const char *const QUOTAS[] = {
	"200 remaining=400 reset=5min",	    "quota remaining=100 reset=2min",
	"quota remaining=30 reset=45s",	    "429 remaining=0 reset=20s",
	"quota remaining=1000 reset=10min", "quota remaining=max",
};
static const char *const CONCURRENCIES[] = {"1", "3", "7", "20", "100", "max", "max", "auto"};
static const char *const KEY_SETTINGS[] = {
	"key_rate 5/s",
	"key_rate 1/s",
	"key_rate max",
	"key_burst 3",
	"keys_max 4",
	"key_share leased",
	"key_share leased",
	"key_share proportional",
	"keys/k1/rate 20/s",
	"keys/k1/rate 2/s",
	"keys/k1/rate default",
	"keys/k2/burst 5",
	"config key.k1.burst=9\\nkey.k2.rate=max\\nkey.k3.rate=1/s"};
static const char *const CONSTANTS[] = {
	"",
	"",
	"",
	"",
	" renewal 500ms right 3s session 2s",
	" renewal 3s right 16s session 12s",
	" weights 1,2,3",
	" prefix 20000",
};
static const char *const POINTS[] = {"sends", "commits", "hears"};
static const char *const WHATS[] = {"", "", "take ", "take ", "give ", "change ", "claim "};
static const char *const DEEDS[] = {"cut",    "answers", "expire", "strike",
				    "strike", "kill",	 "kill",   "pause"};
static const char *const FOLDERS[] = {"/t/", "/t/", "/t/", "/r/", "/w/", "/h/"};
static const char *const DENIED[] = {"/t", "/h", "/w", "/r", "/c", "/g"};

static const char *any_rate(struct maker *maker)
{
	return below(maker, 6) ? PICK(maker, RATES) : PICK(maker, SLOW_RATES);
}

/* Makes a change of settings, on which the bound of all hosts together depends. */
static void make_change(struct maker *maker, unsigned int host, const char *path)
{
	switch (below(maker, 7)) {
	case 0:
	case 1:
		add(maker, "h%u: write %s/rate %s", host, path, any_rate(maker));
		break;
	case 2:
		add(maker, "h%u: write %s/burst %s", host, path, PICK(maker, BURSTS));
		break;
	case 3:
	case 4:
		add(maker, "h%u: write %s/partitions/count %s", host, path, PICK(maker, COUNTS));
		break;
	case 5:
		add(maker, "h%u: write %s/config partitions.count=%s\\nrate=%s", host, path,
		    PICK(maker, COUNTS), PICK(maker, RATES));
		break;
	default:
		add(maker, "h%u: write %s/partitions/reserve %s", host, path,
		    PICK(maker, RESERVES));
		break;
	}
}

static void make_write(struct maker *maker)
{
	const char *outcome;
	unsigned int host = any_host(maker) + 1;
	const char *path = PICK(maker, PATHS);

	switch (below(maker, 20)) {
	case 0:
		add(maker, "h%u: write %s/concurrency %s", host, path, PICK(maker, CONCURRENCIES));
		break;
	case 1:
	case 2:
		add(maker, "h%u: write %s/partitions/lease %s", host, path, PICK(maker, LEASES));
		break;
	case 3:
		add(maker, "h%u: write %s/enforcement %s", host, path, PICK(maker, ENFORCEMENTS));
		break;
	case 4:
		add(maker, "h%u: write %s/release_interval %s", host, path,
		    PICK(maker, RELEASE_INTERVALS));
		break;
	case 5:
		add(maker, "h%u: write %s/charge %s%" PRIu64, host, path,
		    below(maker, 2) ? "-" : "", 1 + below(maker, 20));
		break;
	case 6:
		add(maker, "h%u: write %s/config offline=%s", host, path, PICK(maker, OFFLINES));
		break;
	case 7:
		add(maker, "h%u: write %s/adapt %s", host, path, PICK(maker, ADAPTS));
		break;
	case 8:
		add(maker, "h%u: write %s/backoff %s", host, path, PICK(maker, BACKOFFS));
		break;
	case 9:
		outcome = PICK(maker, OUTCOMES);
		if (outcome == OUTCOMES[0])
			outcome = QUOTAS[host % (sizeof(QUOTAS) / sizeof(QUOTAS[0]))];
		add(maker, "h%u: write %s/feedback %s", host, path, outcome);
		break;
	case 10:
		add(maker, "h%u: service %s %" PRIu64 "/s burst %" PRIu64 " latency %" PRIu64 "ms",
		    host, path, 1 + below(maker, 100), 1 + below(maker, 20), below(maker, 300));
		break;
	case 11:
		add(maker, "h%u: write %s/%s", host, path, PICK(maker, KEY_SETTINGS));
		break;
	default:
		make_change(maker, host, path);
		break;
	}
}

static void make_read(struct maker *maker)
{
	static const char *const files[] = {
		"token",
		"try",
		"take/3",
		"take/0",
		"stat",
		"eta/2",
		"partitions/1/token",
		"take/1-30",
		"partitions/held",
		"take/40,within=5s",
		"take/2-9,within=0s",
		"keys/k1/token",
		"keys/k2/take/2,within=3s",
	};

	static const char *const times[] = {"", ",within=0", ",within=700ms"};
	const char *time = times[maker->names % 3];

	if (!below(maker, 6))
		add(maker, "h%u: open %s%s/slot%s as n%u", any_host(maker) + 1, PICK(maker, PATHS),
		    below(maker, 3) ? "" : "/keys/k1", time, ++maker->names);
	else
		add(maker, "h%u: read %s/%s as n%u", any_host(maker) + 1, PICK(maker, PATHS),
		    PICK(maker, files), ++maker->names);
	if (!below(maker, 9))
		add(maker, "close n%" PRIu64, 1 + below(maker, maker->names));
	if (!below(maker, 6))
		add(maker, "cancel n%" PRIu64, 1 + below(maker, maker->names));
	if (!below(maker, 6))
		add(maker, "interrupt n%" PRIu64 " for %" PRIu64 "ms",
		    1 + below(maker, maker->names), below(maker, 2) * below(maker, 1500));
}

/* Lets some programs poll now and then: they read almost at once, in time, or late. */
static void make_poll(struct maker *maker)
{
	static const char *const paths[] = {"a", "a", "b", "a/c", "d", "f", "a/e", "g", "g/c", "k"};
	static const char *const files[] = {
		"token",   "take/1-30",		 "stream",	  "take/0",	    "take/3",
		"take/40", "partitions/1/token", "keys/k1/token", "keys/k2/take/2",
	};
	struct random *random = &maker->polls;

	if (random_below(random, POLL_ACTS))
		return;
	for (uint64_t i = 1 + random_below(random, 4); i; i--) {
		unsigned int host = (unsigned int)random_below(random, maker->hosts) + 1;
		const char *path = DRAW(random, paths), *file = DRAW(random, files);
		/* At least 1: a stream of a limiter without a limit would let no time pass. */
		uint64_t after_ms = 1 + random_below(random, 3) * random_below(random, 1000);

		add(maker, "h%u: poll %s/%s as p%u after %" PRIu64 "ms", host, path, file,
		    ++maker->pollers, after_ms);
	}
	if (random_below(random, 2))
		add(maker, "cancel p%" PRIu64, 1 + random_below(random, maker->pollers));
}

/* Makes a limiter in which keys are leased. */
static void make_keys(struct maker *maker)
{
	static const char *const rates[] = {"20/s", "5/s", "1/s"};
	static const char *const bursts[] = {"1", "10", "40"};
	struct random *random = &maker->keys;

	maker->has_keys = !random_below(random, KEY_ACTS);
	if (!maker->has_keys)
		return;
	add(maker, "h1: mkdir u");
	maker->now_ns += SETTLE_NS;
	add(maker,
	    "h1: write u/config rate=200/s\\nburst=20\\nkey_rate=%s\\nkey_burst=%s\\n"
	    "key_share=leased",
	    DRAW(random, rates), DRAW(random, bursts));
}

/* Lets a host have load of a few keys, so that hosts share them, or of one key alone. */
static void make_key_load(struct maker *maker)
{
	static const char *const settings[] = {"key_share proportional", "key_share leased",
					       "key_rate 10/s", "key_burst 3", "key_burst 30"};
	struct random *random = &maker->keys;
	unsigned int host = (unsigned int)random_below(random, maker->hosts) + 1;

	if (!maker->has_keys || random_below(random, KEY_ACTS))
		return;
	add(maker, "h%u: load u keys %" PRIu64 " %" PRIu64 "/s until %" PRIu64 "ns", host,
	    1 + random_below(random, 3), 5 + random_below(random, 60),
	    maker->now_ns + NSEC_PER_SEC + random_below(random, 2 * SHIFT_NS));
	if (!random_below(random, 3 * KEY_ACTS))
		add(maker, "h%u: write u/%s", host, DRAW(random, settings));
}

static void make_load(struct maker *maker)
{
	uint64_t gap_ns = UINT64_C(5000000) + below(maker, UINT64_C(1) << (22 + below(maker, 9)));

	switch (below(maker, 4)) {
	case 0:
		add(maker,
		    "h%u: workers %s %" PRIu64 " slot work %" PRIu64 "ms until %" PRIu64 "ns",
		    any_host(maker) + 1, PICK(maker, PATHS), 1 + below(maker, 20),
		    100 + below(maker, 5000), maker->now_ns + below(maker, 2 * SHIFT_NS));
		break;
	case 1:
		add(maker, "h%u: load %s keys 3 1/%" PRIu64 "ns until %" PRIu64 "ns",
		    any_host(maker) + 1, PICK(maker, PATHS), 10 * gap_ns,
		    maker->now_ns + (1 + below(maker, 100)) * gap_ns);
		break;
	default:
		add(maker, "h%u: load %s 1/%" PRIu64 "ns take %" PRIu64 " until %" PRIu64 "ns",
		    any_host(maker) + 1, PICK(maker, PATHS), gap_ns,
		    below(maker, 4) ? 1 : below(maker, 8),
		    maker->now_ns + (1 + below(maker, 100)) * gap_ns);
		break;
	}
}

/* Most hosts have work on most limiters most of the time. */
static void make_shift(struct maker *maker)
{
	uint64_t until_ns = maker->now_ns + SHIFT_NS + below(maker, SETTLE_NS);

	if (maker->now_ns < maker->shift_ns)
		return;
	maker->shift_ns = maker->now_ns + SHIFT_NS / 2;
	for (unsigned int host = 0; host < maker->hosts; host++) {
		for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
			if (maker->down[host] || maker->paused[host] || !below(maker, 3))
				continue;
			add(maker,
			    "h%u: workers %s %" PRIu64 "%s work %" PRIu64 "ms until %" PRIu64 "ns",
			    host + 1, PATHS[i], 1 + below(maker, WORKERS),
			    below(maker, 8) ? "" : " pipe", 20 + below(maker, 60), until_ns);
		}
	}
}

static void make_cut(struct maker *maker, unsigned int host)
{
	if (maker->cut[host])
		add(maker, "heal h%u", host + 1);
	else
		add(maker, "cut h%u%s", host + 1, below(maker, 2) ? " answers" : "");
	maker->cut[host] = !maker->cut[host];
	if (maker->cut[host] && below(maker, 2))
		add(maker, "expire h%u", host + 1);
}

static void make_pause(struct maker *maker, unsigned int host)
{
	const char *deed = below(maker, 2) ? "pause" : "stall";

	if (maker->down[host])
		return;
	add(maker, "%s h%u", maker->paused[host] ? "resume" : deed, host + 1);
	maker->paused[host] = !maker->paused[host];
	if (maker->paused[host] && below(maker, 2))
		add(maker, "expire h%u", host + 1);
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
	if (!below(maker, 4))
		add(maker, "expire h%u", host + 1);
	if (!below(maker, 4))
		wait(maker, SETTLE_NS);
	add(maker, "succeed h%u", host + 1);
	maker->paused[host] = false;
}

/* One host is struck, most of the time in the middle of a transaction, and the others go on. */
static void make_ambush(struct maker *maker, unsigned int host)
{
	const char *deed = PICK(maker, DEEDS);

	if (maker->kind == KIND_LOSES && below(maker, 2))
		add(maker, "when h%u hears %slose", host + 1, below(maker, 4) ? "take " : "");
	else
		add(maker, "when h%u %s %s%s", host + 1, PICK(maker, POINTS), PICK(maker, WHATS),
		    deed);
	/*
	 * The outcome of the ambush shows when the host is mended: commands that mend too much are
	 * refused.
	 */
	maker->cut[host] = true;
	wait(maker, 2 * SETTLE_NS);
	if (below(maker, 3))
		add(maker, "%s h%u", below(maker, 4) ? "succeed" : "start", host + 1);
	if (below(maker, 3)) {
		add(maker, "resume h%u", host + 1);
		add(maker, "heal h%u", host + 1);
		maker->cut[host] = false;
	}
}

/* Settings change while a host does not hear of it. */
static void make_secret(struct maker *maker, unsigned int host)
{
	unsigned int other = another_host(maker, host);
	const char *path = PICK(maker, PATHS);

	if (maker->cut[host])
		return;
	add(maker, "when h%u hears %s", host + 1, below(maker, 2) ? "cut" : "strike");
	maker->cut[host] = true;
	wait(maker, 2 * NSEC_PER_SEC);
	if (!below(maker, 4)) {
		add(maker, "h%u: rmdir %s", other + 1, path);
		wait(maker, NSEC_PER_SEC);
		add(maker, "h%u: mkdir %s", other + 1, path);
		wait(maker, NSEC_PER_SEC);
		add(maker, "h%u: write %s/rate %s", other + 1, path, PICK(maker, RATES));
		return;
	}
	for (uint64_t i = 1 + below(maker, 3); i; i--) {
		make_change(maker, other + 1, path);
		wait(maker, NSEC_PER_SEC * 2);
	}
}

static void make_latency(struct maker *maker)
{
	uint64_t most_us = below(maker, 3) ? 20000 : below(maker, 2) ? 300000 : 2500000;

	if (below(maker, 2))
		add(maker, "latency %" PRIu64 "us jitter %" PRIu64 "us answers %" PRIu64 "us",
		    100 + below(maker, most_us), below(maker, most_us),
		    below(maker, 2) * below(maker, most_us));
	else
		add(maker, "latency 1ms");
	if (!below(maker, 3))
		add(maker, "lag %" PRIu64 "ms", below(maker, 2) * below(maker, 3000));
}

/* Of wall clocks that differ by more and more nothing is promised. */
static void make_drift(struct maker *maker)
{
	unsigned int host = any_host(maker) + 1;

	if (maker->has_windows)
		return;
	if (below(maker, 2))
		add(maker, "drift h%u -%d waiter %d", host, DRIFT_PPM, DRIFT_PPM);
	else
		add(maker, "drift h%u %d waiter %d", host,
		    (int)below(maker, 2 * DRIFT_PPM + 1) - DRIFT_PPM,
		    (int)below(maker, 2 * DRIFT_PPM + 1) - DRIFT_PPM);
}

/* Makes a fault that only seeds of its kind have, or an election. */
static void make_special(struct maker *maker)
{
	switch (maker->kind) {
	case KIND_LOSES:
		add(maker, "lose %" PRIu64, 1 + below(maker, 4));
		add(maker, "elect %" PRIu64 "ms", below(maker, 2000));
		break;
	case KIND_MEDDLES:
		add(maker, "meddle %s %" PRIu64, PICK(maker, FOLDERS), below(maker, 1000));
		break;
	case KIND_DENIES:
		if (below(maker, 2))
			add(maker, "deny %s", PICK(maker, DENIED));
		else
			add(maker, "deny none");
		break;
	default:
		add(maker, "elect %" PRIu64 "ms", below(maker, below(maker, 2) ? 2000 : 20000));
		break;
	}
}

static void make_fault(struct maker *maker)
{
	unsigned int host = any_host(maker);

	switch (below(maker, 22)) {
	case 0:
	case 1:
		make_cut(maker, host);
		break;
	case 2:
	case 3:
		make_pause(maker, host);
		break;
	case 4:
		make_death(maker, host);
		break;
	case 5:
		make_drift(maker);
		break;
	case 6:
		make_latency(maker);
		break;
	case 7:
	case 8:
		make_special(maker);
		break;
	case 9:
		add(maker, "expire h%u", host + 1);
		break;
	case 10:
	case 11:
	case 12:
		make_successor(maker, host);
		break;
	case 13:
	case 14:
	case 15:
	case 16:
		make_secret(maker, host);
		break;
	default:
		make_ambush(maker, host);
		break;
	}
}

/* Mends broken links and processes, most of the time soon. */
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

/* Makes a limiter's limit one of windows of the calendar, in fleets that have some. */
static void make_window(struct maker *maker)
{
	struct random *random = &maker->windows;

	if (!maker->has_windows || random_below(random, WINDOW_ACTS))
		return;
	add(maker, "h%u: write %s/rate %s", (unsigned int)random_below(random, maker->hosts) + 1,
	    DRAW(random, PATHS), DRAW(random, WINDOWS));
}

static const char *const UNIT_SETTINGS[] = {
	"rate 200/s x=600/s:600",
	"rate 100/s x=300/s:60 y=5/s:20",
	"rate x=200/s:100",
	"rate 50/s:50 x=300/10s,strict",
	"rate 100/s",
	"key_rate 20/s x=600/s:600",
	"key_rate 10/s x=60/s:60 y=10/s",
	"key_rate x=20/s:40",
	"key_rate 20/s x=300/10s,strict",
	"key_rate max",
	"key_burst 3",
	"key_burst 30",
	"burst 40",
	"keys/k1/rate 5/s x=30/s:30",
	"keys/k1/rate default",
	"keys/k2/burst 60",
	"config rate=200/s x=100/s:200\\nkey_rate=10/s x=20/s:20\\nkey.k1.rate=20/s x=60/s",
	"partitions/lease 3s",
	"partitions/count 20",
	"partitions/count auto",
	"enforcement enforce",
};
static const char *const UNIT_REPORTS[] = {
	"200 unit=x remaining=300 reset=20s",
	"429 unit=x remaining=0 reset=5s",
	"quota unit=x remaining=1000 reset=1min",
	"quota unit=y remaining=10 reset=30s",
	"quota unit=x remaining=max",
	"200 remaining=40 reset=30s",
};
static const char *const UNIT_TAKES[] = {"1,x=10", "1,x=60", "0,x=5", "2", "1,x=1,y=1", "1,x=200"};

/* Makes a limiter with units. */
static void make_units(struct maker *maker)
{
	if (!maker->has_units)
		return;
	add(maker, "h1: mkdir v");
	maker->now_ns += SETTLE_NS;
	add(maker, "h1: write v/config rate=200/s x=600/s:600\\nkey_rate=20/s x=60/s:60");
}

/* Changes its settings, has a host charge it or hear of a quota, or have load of it or its keys. */
static void make_unit_act(struct maker *maker)
{
	struct random *random = &maker->units;
	unsigned int host;
	uint64_t until_ns;

	if (!maker->has_units || random_below(random, UNIT_ACTS))
		return;
	host = (unsigned int)random_below(random, maker->hosts) + 1;
	until_ns = maker->now_ns + NSEC_PER_SEC + random_below(random, SHIFT_NS);
	switch (random_below(random, 9)) {
	case 0:
		add(maker, "h%u: write v/%s", host, DRAW(random, UNIT_SETTINGS));
		break;
	case 5:
		add(maker, "h%u: write v/feedback %s", host, DRAW(random, UNIT_REPORTS));
		break;
	case 1:
		add(maker, "h%u: write v/charge %s", host,
		    random_below(random, 2) ? "x=50" : "-1 x=-20");
		break;
	case 2:
	case 3:
		add(maker, "h%u: load v %" PRIu64 "/s take %s until %" PRIu64 "ns", host,
		    1 + random_below(random, 30), DRAW(random, UNIT_TAKES), until_ns);
		break;
	case 4:
		add(maker,
		    "h%u: workers v key k1 %" PRIu64 " take %s work 50ms until %" PRIu64 "ns", host,
		    1 + random_below(random, 4), DRAW(random, UNIT_TAKES), until_ns);
		break;
	default:
		add(maker, "h%u: load v keys %" PRIu64 " %" PRIu64 "/s take %s until %" PRIu64 "ns",
		    host, 1 + random_below(random, 3), 1 + random_below(random, 20),
		    DRAW(random, UNIT_TAKES), until_ns);
		break;
	}
}

static void make_one(struct maker *maker)
{
	uint64_t kind = below(maker, 21);

	if (maker->kind == KIND_HANDS_OVER && kind % PLOT_ACTS == 0)
		plots_hand_over(maker);
	else if (maker->kind == KIND_RETUNES && kind % PLOT_ACTS == 0)
		plots_retune(maker);
	else if (kind < 2)
		make_load(maker);
	else if (kind < 5)
		make_read(maker);
	else if (kind < 7)
		make_write(maker);
	else if (kind < 8)
		random_names(maker);
	else if (kind < 9)
		random_names_heirs(maker, any_host(maker));
	else if (kind < 15)
		make_fault(maker);
	else
		make_repair(maker);
}

static void make_first(struct maker *maker)
{
	add(maker, "fleet %u%s", maker->hosts, PICK(maker, CONSTANTS));
	if (below(maker, 4))
		add(maker, "hasty on");
	if (below(maker, 2))
		add(maker, "torn on");
	for (unsigned int host = 0; host < maker->hosts && below(maker, 2); host++)
		make_drift(maker);
	for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
		wait(maker, SETTLE_NS);
		for (unsigned int host = 0; host < maker->hosts; host++) {
			if (!host || !below(maker, 2))
				add(maker, "h%u: mkdir %s", host + 1, PATHS[i]);
		}
		wait(maker, SETTLE_NS);
		add(maker, "h1: write %s/rate %s", PATHS[i], PICK(maker, RATES));
		if (below(maker, 2))
			add(maker, "h1: write %s/burst %s", PATHS[i], PICK(maker, BURSTS));
		if (below(maker, 2))
			add(maker, "h1: write %s/partitions/count %s", PATHS[i],
			    PICK(maker, COUNTS));
		add(maker, "h1: write %s/partitions/lease %s", PATHS[i], PICK(maker, LEASES));
	}
	wait(maker, SETTLE_NS);
}

/* Until the end readers wait all the time on a host, or come now and then. */
static void work(struct maker *maker, unsigned int host, const char *path, bool light)
{
	if (light)
		add(maker, "h%u: load %s 1/3s%s until %" PRIu64 "ns", host, path,
		    below(maker, 2) ? " poisson" : "", maker->for_ns);
	else
		add(maker, "h%u: workers %s 10 work 20ms until %" PRIu64 "ns", host, path,
		    maker->for_ns);
}

/* Everything is mended. */
static void make_calm(struct maker *maker)
{
	bool light = below(maker, 2);

	add(maker, "hasty off");
	add(maker, "torn off");
	add(maker, "deny none");
	add(maker, "latency 1ms");
	add(maker, "lag 0");
	for (unsigned int host = 1; host <= maker->hosts; host++) {
		add(maker, "start h%u", host);
		add(maker, "resume h%u", host);
		add(maker, "heal h%u", host);
	}
	for (unsigned int number = 1; number <= maker->pollers; number++)
		add(maker, "cancel p%u", number);
	/* Time for changes that could not be begun yet. */
	maker->now_ns += 10 * SETTLE_NS;
	for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
		add(maker, "h1: mkdir %s", PATHS[i]);
		maker->now_ns += SETTLE_NS / 10;
		add(maker,
		    "h1: write %s/config rate=%s\\nenforcement=enforce\\nadapt=none\\n"
		    "backoff=none%s",
		    PATHS[i], PICK(maker, RATES), light ? "\\npartitions.count=auto" : "");
		maker->now_ns += SETTLE_NS / 10;
	}
	for (unsigned int host = 1; host <= maker->hosts; host++) {
		for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++)
			work(maker, host, PATHS[i], light && host > 1);
	}
}

char *random_fleet(uint64_t seed, uint64_t for_ns, unsigned int hosts)
{
	struct maker maker = {.random = {seed},
			      .polls = {~seed},
			      .keys = {seed ^ UINT64_C(0x9e3779b97f4a7c15)},
			      .hosts = hosts,
			      .for_ns = for_ns,
			      .windows = {seed * 7},
			      .has_windows = seed % WINDOW_FLEETS == 1,
			      .units = {seed * 11},
			      .has_units = seed % UNIT_FLEETS == 2,
			      .lates = {seed * 13},
			      .slots = {seed * 17},
			      .kind = seed % KINDS};
	uint64_t calm_ns = for_ns / 10 * 7;
	uint64_t gap_ns = calm_ns / ACTS + 1;

	maker.down = memory_get(hosts * sizeof(bool));
	maker.paused = memory_get(hosts * sizeof(bool));
	maker.cut = memory_get(hosts * sizeof(bool));
	make_first(&maker);
	make_keys(&maker);
	make_units(&maker);
	maker.has_late = !random_below(&maker.lates, LATE_FLEETS);
	for (;;) {
		make_shift(&maker);
		if (below(&maker, 4))
			wait(&maker, below(&maker, 2) ? gap_ns * 3 : gap_ns / 8 + 1);
		if (maker.now_ns >= calm_ns)
			break;
		make_one(&maker);
		make_poll(&maker);
		make_key_load(&maker);
		make_window(&maker);
		make_unit_act(&maker);
		random_late(&maker);
		random_slots(&maker, seed);
	}
	make_calm(&maker);
	if (maker.now_ns < for_ns)
		maker.now_ns = for_ns;
	add(&maker, "end");
	free(maker.down);
	free(maker.paused);
	free(maker.cut);
	return maker.lines.text;
}
