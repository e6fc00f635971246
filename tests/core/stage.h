/*
 * stage - an engine to try things on: settings stored at once or when told, readers with names.
 */
#ifndef RATEFS_TESTS_STAGE_H
#define RATEFS_TESTS_STAGE_H

#include "core/limiter/change.h"
#include "core/limiter/partition.h"
#include "core/limiter/stat.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum { WAITING = -EINPROGRESS };

struct stage {
	struct engine engine;
	struct source source;
	bool later;	      /* the source answers when answer() is called */
	int answer;	      /* its answer at once */
	struct change *asked; /* the last operation given to it and not answered */
	unsigned int stored;  /* how many it was given */
};

/* A reader; its outcome is WAITING until it is done. */
struct guest {
	struct waiter waiter; /* first */
	struct expiry expiry;
	uint64_t done_ns;
	unsigned int place; /* in order of being done */
};

static inline void stage_store(struct source *source, struct change *change)
{
	struct stage *stage = (struct stage *)((char *)source - offsetof(struct stage, source));

	stage->stored++;
	stage->asked = change;
	if (!stage->later) {
		stage->asked = NULL;
		change_stored(&stage->engine, change, stage->answer);
	}
}

static inline void stage_open(struct stage *stage)
{
	static const struct owner root = {.access = 0755};

	*stage = (struct stage){.source = {.store = stage_store}};
	assert_int_equal(engine_init(&stage->engine, &stage->source, &root, 0), 0);
}

static inline void stage_close(struct stage *stage)
{
	assert_null(stage->engine.schedule.deadlines.root);
	assert_null(stage->engine.schedule.expiries.root);
	assert_null(engine_done(&stage->engine));
	assert_null(stage->engine.schedule.called.first);
	assert_null(engine_changed(&stage->engine));
	engine_free(&stage->engine);
	assert_int_equal(stage->engine.schedule.pool.blocks.count, 0);
}

/* Everybody is collected at each step, and knows when. */
static inline unsigned int stage_collect(struct stage *stage)
{
	unsigned int count = 0;
	struct waiter *waiter;

	while ((waiter = engine_done(&stage->engine))) {
		struct guest *guest = (struct guest *)waiter;

		if (waiter->is_poller)
			continue;
		guest->done_ns = stage->engine.schedule.now_ns;
		guest->place = ++count;
	}
	return count;
}

/* Steps through all that is due until @now_ns, each at its time. */
static inline void stage_run(struct stage *stage, uint64_t now_ns)
{
	uint64_t next_ns;

	while ((next_ns = engine_next_ns(&stage->engine)) <= now_ns) {
		engine_run(&stage->engine, next_ns);
		stage_collect(stage);
	}
	engine_run(&stage->engine, now_ns);
	stage_collect(stage);
}

/* Makes the limiter @name below @parent (NULL: the root); @config is not empty, but may be NULL. */
static inline struct limiter *stage_make(struct stage *stage, struct limiter *parent,
					 const char *name, const char *config)
{
	struct change change = {.kind = CHANGE_MAKE, .text = config};

	change.limiter = parent ? parent : stage->engine.tree.root;
	strcpy(change.name, name);
	change_begin(&stage->engine, &change, stage->engine.schedule.now_ns);
	assert_ptr_equal(engine_changed(&stage->engine), &change);
	assert_int_equal(change.outcome, 0);
	return change.made;
}

/* A change of one kind to @limiter; its outcome. */
static inline int stage_change(struct stage *stage, struct limiter *limiter, enum change_kind kind,
			       const char *text, uint64_t now_ns)
{
	struct change change = {.kind = kind, .limiter = limiter, .setting = CHANGE_CONFIG};

	if (kind == CHANGE_MAKE || kind == CHANGE_RENAME)
		strcpy(change.name, text);
	else
		change.text = text;
	change_begin(&stage->engine, &change, now_ns);
	assert_ptr_equal(engine_changed(&stage->engine), &change);
	assert_int_equal(change.outcome != 0, change.error[0] != '\0');
	stage_collect(stage);
	return change.outcome;
}

static inline void stage_write(struct stage *stage, struct limiter *limiter, const char *config,
			       uint64_t now_ns)
{
	assert_int_equal(stage_change(stage, limiter, CHANGE_SETTINGS, config, now_ns), 0);
}

static inline void stage_remove(struct stage *stage, struct limiter *limiter)
{
	uint64_t now_ns = stage->engine.schedule.now_ns;

	assert_int_equal(stage_change(stage, limiter, CHANGE_REMOVE, NULL, now_ns), 0);
}

/* 0, WAITING or an error. */
static inline int stage_ask(struct stage *stage, struct guest *guest, struct limiter *limiter,
			    uint64_t tokens, uint64_t now_ns)
{
	*guest = (struct guest){.waiter = {.limiter = limiter, .tokens = tokens}};
	guest->waiter.outcome = WAITING;
	return engine_ask(&stage->engine, &guest->waiter, NEVER_NS, now_ns);
}

static inline int stage_ask_within(struct stage *stage, struct guest *guest,
				   struct limiter *limiter, uint64_t tokens, uint64_t within_ns,
				   uint64_t now_ns)
{
	*guest = (struct guest){.waiter = {.limiter = limiter, .tokens = tokens}};
	guest->waiter.outcome = WAITING;
	guest->waiter.expiry = &guest->expiry;
	return engine_ask(&stage->engine, &guest->waiter, within_ns, now_ns);
}

/* Tells whether a read by @poller, polling for the first time, is answered now. */
static inline bool stage_poll(struct stage *stage, struct poller *poller, struct limiter *limiter,
			      uint64_t tokens, uint64_t now_ns)
{
	poller_init(poller, limiter, tokens, tokens, NULL);
	return engine_poll(&stage->engine, poller, now_ns);
}

/* Tells whether tokens are kept for @poller; then it has them. */
static inline bool stage_fetch(struct stage *stage, struct poller *poller, uint64_t now_ns)
{
	engine_run(&stage->engine, now_ns);
	return !poller->waiter.limiter->removed && poller_fetch(&stage->engine.schedule, poller);
}

/* Returns the outcome of a read; where it would wait it gives up. */
static inline int stage_read(struct stage *stage, struct limiter *limiter, uint64_t tokens,
			     enum read_manner manner, uint64_t now_ns)
{
	struct token_read read = {
		.limiter = limiter, .tokens = tokens, .manner = manner, .within_ns = NEVER_NS};
	struct read_wait wait;

	return engine_read(&stage->engine, &read, &wait, now_ns);
}

static inline int stage_try(struct stage *stage, struct limiter *limiter, uint64_t tokens,
			    uint64_t now_ns)
{
	return stage_read(stage, limiter, tokens, READ_TRYING, now_ns);
}

#endif
