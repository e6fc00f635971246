/* maker - makes up a trace of a fleet: shared by random_fleet.c and others. */
#ifndef RATEFS_SIM_MAKER_H
#define RATEFS_SIM_MAKER_H

#include "core/values/quantity.h"
#include "tests/sim/generator/lines.h"
#include "tests/sim/base/random.h"

#include <stdarg.h>
#include <stdbool.h>

#define SETTLE_NS UINT64_C(3000000000)

struct maker {
	struct random random;
	struct random polls;  /* draws polls alone: they change nothing else of a seed's trace */
	unsigned int pollers; /* have begun: p1, p2 and so on */
	struct random keys;   /* draws, likewise, what is read of keys that are leased */
	bool has_keys;
	struct random windows; /* draws, likewise, windows of the calendar */
	bool has_windows;
	struct random units; /* draws, likewise, what is done in a limiter with units */
	bool has_units;
	struct random lates; /* draws, likewise, when a host is late */
	bool has_late;
	struct random slots;	 /* draws, likewise, what is done in a limiter of slots */
	unsigned int slot_acts;	 /* so much was yet */
	unsigned int slot_names; /* were opened: s1, s2 and so on */
	unsigned int late_host;	 /* its process stops and goes on ... */
	unsigned int late_turns; /* ... so often yet */
	uint64_t now_ns;
	uint64_t for_ns;
	uint64_t shift_ns; /* of the next load */
	unsigned int hosts;
	unsigned int names;
	unsigned int plots; /* their limiters: p1, p2 and so on */
	struct lines lines;
	uint64_t kind;
	bool *down, *paused, *cut; /* owned, by host: as far as it is known */
};

/* Those that are there from the start. */
static const char *const PATHS[] = {"a", "b", "a/c"};
static const char *const RATES[] = {
	"10/s",
	"100/s",
	"50/s",
	"200/s",
	"20/s",
	"30/s",
	"600/min",
	"70/3s",
	"100/s 3000/min",
	"20/2s,strict",
	"300/10s,strict",
	"10/60s,strict",
	"50/s 600/min,strict",
};
static const char *const BURSTS[] = {"1", "2", "5", "10", "30", "1000"};
static const char *const COUNTS[] = {"auto", "auto", "auto", "1", "2", "4", "10", "20"};

/* One of the strings of @texts, an array. */
#define DRAW(random, texts) ((texts)[random_below(random, sizeof(texts) / sizeof((texts)[0]))])
#define PICK(maker, texts)  DRAW(&(maker)->random, texts)

/* Draws a number from 0 to @most - 1. */
static inline uint64_t below(struct maker *maker, uint64_t most)
{
	return random_below(&maker->random, most);
}

/* Adds a line of what happens now. */
__attribute__((format(printf, 2, 3))) static inline void add(struct maker *maker,
							     const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	/* The first line says what fleet it is. */
	lines_add(&maker->lines, maker->lines.used ? maker->now_ns : NEVER_NS, format, arguments);
	va_end(arguments);
}

static inline unsigned int any_host(struct maker *maker)
{
	return (unsigned int)below(maker, maker->hosts);
}

/* Lets up to @most_ns pass. */
static inline void wait(struct maker *maker, uint64_t most_ns)
{
	maker->now_ns += below(maker, most_ns + 1);
}

/* In a fleet of one it is @host. */
static inline unsigned int another_host(struct maker *maker, unsigned int host)
{
	if (maker->hosts == 1)
		return host;
	return (host + 1 + (unsigned int)below(maker, maker->hosts - 1)) % maker->hosts;
}

/* Mends all that was broken of @host. */
static inline void mend(struct maker *maker, unsigned int host)
{
	add(maker, "start h%u", host + 1);
	add(maker, "resume h%u", host + 1);
	add(maker, "heal h%u", host + 1);
	maker->down[host] = false;
	maker->paused[host] = false;
	maker->cut[host] = false;
}

/* random_slots.c: in some fleets, by @seed, a limiter has slots, of which programs ask numbers. */
void random_slots(struct maker *maker, uint64_t seed);

/* random_names.c: limiters are made, renamed and removed by several hosts at once. */
void random_names(struct maker *maker);

/*
 * Limiters are renamed, removed and made while @host does not hear of it, which goes on granting by
 * the names that they had: another limiter must not begin with such a name before the right of that
 * host is over.
 */
void random_names_heirs(struct maker *maker, unsigned int host);

/* random_late.c: lets the process of a host stop, or go on, in fleets in which hosts are late. */
void random_late(struct maker *maker);

/*
 * plots.c: a host loses its session and does not hear of it, and the host that takes what it had is
 * struck in the middle of a take or a give-back, or by an election between its list and its take.
 */
void plots_hand_over(struct maker *maker);

/*
 * Settings change several times within Q while a host does not hear of it, by hosts that have
 * joined, slept, or gone on for a killed server meanwhile.
 */
void plots_retune(struct maker *maker);

#endif
