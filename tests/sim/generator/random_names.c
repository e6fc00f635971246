/*
 * random_names - names of a made-up fleet that come and go, see maker.h.
 *
 * Limiters are made, renamed and removed by several hosts at once, and their names are given up and
 * taken while a host does not hear of it.
 */
#include "tests/sim/generator/maker.h"

#include <inttypes.h>

/* To which those of PATHS are renamed, and back. */
static const struct {
	const char *path, *name, *other_path, *other_name;
} SIBLINGS[] = {{"a", "a", "d", "d"}, {"b", "b", "f", "f"}, {"a/c", "c", "a/e", "e"}};
/* These are loaded, and their names go to others while a host is cut off. */
enum { LOADED_HEIRS = 2, STEPS_MAX = 4 };
static const char *const HEIRS[LOADED_HEIRS] = {"g", "g/c"};
static const char *const STEPS[][STEPS_MAX] = {
	{"mv g k"},
	{"mv g k"},
	{"mv k g"},
	{"mv g/c h"},
	{"rmdir g/c", "rmdir g"},
	{"rmdir g/c", "rmdir g", "mkdir k", "mv k g"},
	{"rmdir g/c", "mv g k", "mkdir k/c", "mv k g"},
	{"rmdir k/c", "rmdir k"},
};

void random_names(struct maker *maker)
{
	size_t number = below(maker, sizeof(PATHS) / sizeof(PATHS[0]));
	const char *path = PATHS[number];

	for (uint64_t i = 1 + below(maker, 4); i; i--) {
		unsigned int host = any_host(maker) + 1;

		switch (below(maker, 4)) {
		case 0:
			add(maker, "h%u: rmdir %s", host, path);
			break;
		case 1:
			add(maker, "h%u: mkdir %s", host, path);
			break;
		case 2:
			add(maker, "h%u: mv %s %s", host, path, SIBLINGS[number].other_name);
			break;
		default:
			add(maker, "h%u: mv %s %s", host, SIBLINGS[number].other_path,
			    SIBLINGS[number].name);
			break;
		}
		if (below(maker, 2))
			wait(maker, NSEC_PER_SEC / 5);
	}
	add(maker, "h%u: mkdir %s", any_host(maker) + 1, path);
	wait(maker, SETTLE_NS / 2);
	add(maker, "h%u: write %s/config rate=%s\\nburst=%s", any_host(maker) + 1, path,
	    PICK(maker, RATES), PICK(maker, BURSTS));
}

/* Makes the heirs that are loaded, as far as they are not there, and loads them by @host. */
static void make_loaded(struct maker *maker, unsigned int maker_host, unsigned int host)
{
	for (size_t i = 0; i < LOADED_HEIRS; i++) {
		add(maker, "h%u: mkdir %s", maker_host + 1, HEIRS[i]);
		wait(maker, NSEC_PER_SEC / 5);
	}
	for (size_t i = 0; i < LOADED_HEIRS; i++) {
		/* The one above lets all through now and then. */
		const char *rate = i || below(maker, 2) ? PICK(maker, RATES) : "max";

		add(maker, "h%u: write %s/config rate=%s\\npartitions.count=%s", maker_host + 1,
		    HEIRS[i], rate, PICK(maker, COUNTS));
	}
	wait(maker, NSEC_PER_SEC);
	for (size_t i = 0; i < LOADED_HEIRS; i++)
		add(maker, "h%u: workers %s 4 work 20ms until %" PRIu64 "ns", host + 1, HEIRS[i],
		    maker->now_ns + 5 * SETTLE_NS);
}

static void make_step_of_heirs(struct maker *maker, unsigned int host)
{
	const char *const *steps = STEPS[below(maker, sizeof(STEPS) / sizeof(STEPS[0]))];

	for (size_t i = 0; i < STEPS_MAX && steps[i]; i++) {
		add(maker, "h%u: %s", host + 1, steps[i]);
		wait(maker, NSEC_PER_SEC / 4);
	}
}

void random_names_heirs(struct maker *maker, unsigned int host)
{
	unsigned int other = another_host(maker, host), heir = another_host(maker, host);

	mend(maker, host);
	mend(maker, other);
	mend(maker, heir);
	add(maker, "latency 1ms");
	wait(maker, 2 * SETTLE_NS);
	make_loaded(maker, other, host);
	maker->now_ns += SETTLE_NS / 2;
	wait(maker, SETTLE_NS);
	add(maker, below(maker, 2) ? "when h%u hears cut" : "cut h%u", host + 1);
	maker->cut[host] = true;
	wait(maker, SETTLE_NS / 2);
	for (uint64_t i = 1 + below(maker, 3); i; i--)
		make_step_of_heirs(maker, below(maker, 2) ? other : heir);
	if (!below(maker, 3)) {
		add(maker, "kill h%u", heir + 1);
		add(maker, "%s h%u", below(maker, 2) ? "start" : "succeed", heir + 1);
		wait(maker, SETTLE_NS / 2);
	}
	wait(maker, below(maker, 2) * 2 * SETTLE_NS);
	make_loaded(maker, heir, heir);
	wait(maker, 2 * SETTLE_NS);
}
