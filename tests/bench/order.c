/*
 * order - the CPU that a token costs the core where 100,000 readers wait, in one queue or in 1,000.
 *
 *	order SHAPE TOKENS SEED
 *
 * All readers wait below one limiter, whose rate limits them, and each that is granted asks again
 * at once: so many wait all the time. Readers lie in memory in another order than they ask, as they
 * do in a daemon that has run for long.
 */
#include "core/limiter/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	CHILDREN = 1000,
	READERS = 100000,
	WARM_UP = READERS, /* tokens that are granted before it counts */
	TEXT_MAX = 128,
};

static const char RATE[] = "rate=1M/s\nburst=1\n";

/* Settings of children, by turns. */
static const char *const ALIKE[] = {"weight=100", NULL};
/* Only minima bring tokens to the lower classes. */
static const char *const MIXED[] = {
	"weight=3000\nmin=700/s",	   "min=500/s",	 "priority=1\nmin=700/s",
	"priority=1\nweight=7\nmin=500/s", "priority=2", "priority=2\nweight=777",
	"priority=2\nweight=300",	   NULL,
};

/* Places at which readers wait. Without children all wait in the limiter itself. */
static const struct shape {
	const char *name;
	uint32_t children;
	const char *const *settings;
} SHAPES[] = {
	{"queue", 0, NULL},
	{"child", 1, ALIKE},
	{"children", CHILDREN, ALIKE},
	{"mixed", CHILDREN, MIXED},
};

struct crowd {
	struct engine engine;
	struct source source;
	struct limiter *limiter;
	struct limiter *children[CHILDREN];
	struct waiter *readers;
};

static void fail(const char *what)
{
	fprintf(stderr, "order: %s\n", what);
	exit(EXIT_FAILURE);
}

static void store(struct source *source, struct change *change)
{
	change_stored(&container_of(source, struct crowd, source)->engine, change, 0);
}

static struct limiter *make_limiter(struct crowd *crowd, struct limiter *parent, const char *name,
				    const char *settings)
{
	struct change change = {.kind = CHANGE_MAKE, .limiter = parent, .text = settings};

	snprintf(change.name, sizeof(change.name), "%s", name);
	change_begin(&crowd->engine, &change, 0);
	if (engine_changed(&crowd->engine) != &change || change.outcome)
		fail(change.error);
	return change.made;
}

static const struct shape *find_shape(const char *name)
{
	for (size_t i = 0; i < sizeof(SHAPES) / sizeof(SHAPES[0]); i++) {
		if (strcmp(SHAPES[i].name, name) == 0)
			return &SHAPES[i];
	}
	fail("there is no such shape");
	return NULL;
}

static void make_limiters(struct crowd *crowd, const struct shape *shape)
{
	static const struct owner root = {.access = 0755};

	crowd->source.store = store;
	if (engine_init(&crowd->engine, &crowd->source, &root, 0))
		fail("no memory");
	crowd->limiter = make_limiter(crowd, crowd->engine.tree.root, "x", RATE);
	for (uint32_t i = 0, kind = 0; i < shape->children; i++, kind++) {
		char name[TEXT_MAX];

		if (!shape->settings[kind])
			kind = 0;
		snprintf(name, sizeof(name), "c%u", i);
		crowd->children[i] = make_limiter(crowd, crowd->limiter, name,
						  shape->settings[kind]);
	}
}

static void ask(struct crowd *crowd, struct waiter *reader)
{
	uint64_t now_ns = crowd->engine.schedule.now_ns;

	reader->tokens = reader->most = 1;
	if (engine_ask(&crowd->engine, reader, NEVER_NS, now_ns) != -EINPROGRESS)
		fail("a reader does not wait");
}

/* Has all readers ask, in an order that @seed gives; as many at each child. */
static void gather(struct crowd *crowd, const struct shape *shape, unsigned int seed)
{
	static uint32_t order[READERS];

	crowd->readers = calloc(READERS, sizeof(*crowd->readers));
	if (!crowd->readers)
		fail("no memory");
	/* The first token is gone, and nothing more comes in at time 0. */
	limiter_empty(&crowd->engine.schedule, crowd->limiter);
	for (uint32_t i = 0; i < READERS; i++) {
		uint32_t other = (uint32_t)rand_r(&seed) % (i + 1);

		order[i] = order[other];
		order[other] = i;
	}
	for (uint32_t i = 0; i < READERS; i++) {
		struct waiter *reader = &crowd->readers[order[i]];

		reader->limiter = shape->children ? crowd->children[i % shape->children]
						  : crowd->limiter;
		ask(crowd, reader);
	}
}

/* Grants @tokens, each at its time. */
static void grant(struct crowd *crowd, long tokens)
{
	struct waiter *reader;

	while (tokens > 0) {
		engine_run(&crowd->engine, engine_next_ns(&crowd->engine));
		while ((reader = engine_done(&crowd->engine))) {
			tokens--;
			ask(crowd, reader);
		}
	}
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* Checks that siblings that are alike have been granted alike, and that the rate has limited. */
static void check_grants(const struct crowd *crowd, const struct shape *shape)
{
	uint64_t granted = crowd->limiter->counters[COUNTER_GRANTED];

	if (crowd->engine.schedule.now_ns != granted * 1000)
		fail("the rate did not limit");
	for (uint32_t i = 0; shape->settings == ALIKE && i < shape->children; i++) {
		uint64_t part = crowd->children[i]->counters[COUNTER_GRANTED];

		if (part < granted / shape->children || part > granted / shape->children + 1)
			fail("siblings that are alike were not served alike");
	}
}

int main(int argc, char **argv)
{
	static struct crowd crowd;
	const struct shape *shape;
	uint64_t begun_ns;
	long tokens;

	if (argc != 4)
		fail("usage: order SHAPE TOKENS SEED");
	shape = find_shape(argv[1]);
	tokens = atol(argv[2]);
	make_limiters(&crowd, shape);
	gather(&crowd, shape, (unsigned int)atol(argv[3]));
	grant(&crowd, WARM_UP);
	begun_ns = cpu_ns();
	grant(&crowd, tokens);
	printf("cpu_ns %.2f\n", (double)(cpu_ns() - begun_ns) / (double)tokens);
	check_grants(&crowd, shape);
	for (size_t i = 0; i < READERS; i++)
		engine_cancel(&crowd.engine, &crowd.readers[i]);
	free(crowd.readers);
	engine_free(&crowd.engine);
	return 0;
}
