/* replay - readers on virtual time, see replay.h. */
#include "companions/replay.h"

#include "core/limiter/change.h"
#include "core/values/ini.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * So many steps may pass after the last reader has come without one that ends a wait: the others
 * wait for ever, as where a rate is 0.
 */
enum { STEPS_MAX = 1000000 };

/* A reader that waits. */
struct replayed {
	struct waiter waiter;
	struct expiry expiry;
	struct list_link link;
	bool has_key; /* the waiter's limiter is a key, open for it */
};

/* Answers the engine at once. */
static void store_change(struct source *source, struct change *change)
{
	struct replay *replay = container_of(source, struct replay, source);

	change_stored(&replay->engine, change, 0);
}

int replay_open(struct replay *replay, uint64_t within_ns)
{
	static const struct owner root = {.access = 0755};

	*replay = (struct replay){.source = {.store = store_change}, .within_ns = within_ns};
	return engine_init(&replay->engine, &replay->source, &root, 0);
}

/* Makes limiter @name below @parent, with the settings in @text; NULL: the defaults. */
static int make_limiter(struct replay *replay, struct limiter *parent, const char *name,
			const char *text, struct limiter **made, char error[ERROR_TEXT])
{
	struct change change = {.kind = CHANGE_MAKE, .limiter = parent, .text = text};
	struct tally *tallies;

	strcpy(change.name, name);
	change_begin(&replay->engine, &change, 0);
	(void)engine_changed(&replay->engine);
	memcpy(error, change.error, ERROR_TEXT);
	if (change.outcome)
		return change.outcome;
	*made = change.made;
	if ((*made)->id < replay->tally_count)
		return 0;
	tallies = realloc(replay->tallies, ((size_t)(*made)->id + 1) * sizeof(*tallies));
	if (!tallies) {
		snprintf(error, ERROR_TEXT, "no memory");
		return -ENOMEM;
	}
	replay->tallies = tallies;
	while (replay->tally_count <= (*made)->id)
		tallies[replay->tally_count++] = (struct tally){.asked = 0};
	return 0;
}

/* Makes the limiter of @section, and those above it that are missing. @text is its body, spoilt. */
static int load_section(struct replay *replay, struct ini_section *section, char *text,
			char error[ERROR_TEXT])
{
	struct limiter *limiter = replay->engine.tree.root;
	char *rest = *section->path ? section->path : NULL, *name;
	struct ini_owner owner;
	int err = ini_take_owner(text, &owner, error);

	while (!err && (name = strsep(&rest, "/"))) {
		struct limiter *child = tree_find(&replay->engine.tree, limiter, name);

		if (!child)
			err = make_limiter(replay, limiter, name,
					   rest || ini_is_blank(text) ? NULL : text, &child, error);
		limiter = child;
	}
	return err;
}

int replay_load(struct replay *replay, const char *text, char error[ERROR_TEXT])
{
	struct ini ini = {.at = text};
	struct ini_section section;
	int found;

	while ((found = ini_next(&ini, &section, error)) > 0) {
		char *body = strndup(section.body, section.length);
		int err = -ENOMEM;

		snprintf(error, ERROR_TEXT, "no memory");
		if (body)
			err = load_section(replay, &section, body, error);
		free(body);
		if (err)
			return err;
	}
	return found;
}

struct limiter *replay_find(const struct replay *replay, const char *path)
{
	struct limiter *limiter = replay->engine.tree.root;
	char name[NAME_BYTES_MAX + 1];

	for (;;) {
		size_t length = strcspn(path, "/");

		if (length > NAME_BYTES_MAX)
			return NULL;
		memcpy(name, path, length);
		name[length] = '\0';
		limiter = tree_find(&replay->engine.tree, limiter, name);
		if (!limiter || !path[length])
			return limiter;
		path += length + 1;
	}
}

const struct tally *replay_tally(const struct replay *replay, const struct limiter *limiter)
{
	return &replay->tallies[limiter->id];
}

static struct tally *tally_of(struct replay *replay, const struct limiter *limiter)
{
	return &replay->tallies[(limiter->is_key ? limiter->parent : limiter)->id];
}

/* Ends what @limiter, of a reader that is gone, was opened for. */
static void close_key(struct replay *replay, struct limiter *limiter, bool has_key)
{
	if (has_key)
		keys_close(&replay->engine.schedule, limiter);
}

static void forget_reader(struct replay *replay, struct replayed *reader)
{
	list_remove(&replay->waiting, &reader->link);
	close_key(replay, reader->waiter.limiter, reader->has_key);
	free(reader);
}

/* Notes the readers whose waiting ended in the last step. Returns their number. */
static unsigned int collect_readers(struct replay *replay)
{
	uint64_t now_ns = replay->engine.schedule.now_ns;
	struct waiter *waiter;
	unsigned int count = 0;

	while ((waiter = engine_done(&replay->engine))) {
		struct tally *tally = tally_of(replay, waiter->limiter);

		if (waiter->outcome) {
			tally->refused_within++;
		} else {
			tally->tokens += waiter->granted;
			if (waits_add(&tally->waits, now_ns - waiter->asked_ns))
				replay->err = -ENOMEM;
		}
		forget_reader(replay, container_of(waiter, struct replayed, waiter));
		count++;
	}
	return count;
}

/* Counts a reader that was answered when it came: with @err. */
static void note_answer(const struct replay *replay, struct tally *tally, int err, uint64_t granted)
{
	if (!err) {
		tally->at_once++;
		tally->tokens += granted;
	} else if (err == -EAGAIN) {
		tally->refused_within++;
	} else if (err == -ENOSPC) {
		tally->refused_no_room++;
	} else if (replay->engine.refused_by == SETTING_QUEUE_MAX) {
		tally->refused_queue++;
	} else {
		tally->refused_wait++;
	}
}

/* Puts a reader, as @wait has it, into the queue. As engine_ask(), or -ENOMEM. */
static int queue_reader(struct replay *replay, struct read_wait *wait, bool has_key, uint64_t at_ns)
{
	struct replayed *reader = malloc(sizeof(*reader));
	int err;

	if (!reader)
		return -ENOMEM;
	*reader = (struct replayed){.waiter = wait->waiter, .has_key = has_key};
	if (wait->within_ns != NEVER_NS) {
		reader->expiry.waiter = &reader->waiter;
		reader->waiter.expiry = &reader->expiry;
	}
	err = engine_ask(&replay->engine, &reader->waiter, wait->within_ns, at_ns);
	if (err == -EINPROGRESS) {
		list_append(&replay->waiting, &reader->link);
	} else {
		wait->waiter.granted = reader->waiter.granted;
		free(reader);
	}
	return err;
}

/* Opens the key of @arrival: *@limiter. 0, -ENOSPC or -ENOMEM. */
static int open_key(struct replay *replay, const struct arrival *arrival, uint64_t at_ns,
		    struct limiter **limiter)
{
	struct key *key;
	int err = engine_key(&replay->engine, arrival->limiter, arrival->key, 0, at_ns, &key);

	if (err)
		return err;
	*limiter = keys_open(&replay->engine.schedule, arrival->limiter, key);
	return *limiter ? 0 : -ENOMEM;
}

/* Has a reader ask. 0 or -errno, and -EINPROGRESS. */
static int ask(struct replay *replay, const struct arrival *arrival, uint64_t at_ns,
	       uint64_t *granted)
{
	struct token_read read = {
		.limiter = arrival->limiter,
		.tokens = arrival->tokens,
		.most = arrival->tokens,
		.manner = READ_BLOCKING,
		.within_ns = replay->within_ns,
	};
	bool has_key = arrival->key;
	struct read_wait wait;
	int err = has_key ? open_key(replay, arrival, at_ns, &read.limiter) : 0;

	if (err)
		return err;
	err = engine_read(&replay->engine, &read, &wait, at_ns);
	if (err == -EINPROGRESS)
		err = queue_reader(replay, &wait, has_key, at_ns);
	*granted = wait.waiter.granted;
	if (err != -EINPROGRESS)
		close_key(replay, read.limiter, has_key);
	return err;
}

int replay_arrive(struct replay *replay, const struct arrival *arrival, uint64_t at_ns)
{
	struct tally *tally = tally_of(replay, arrival->limiter);
	uint64_t next_ns, granted = 0;
	int err;

	/* A daemon whose timers are never late makes a step for each. */
	while ((next_ns = engine_next_ns(&replay->engine)) < at_ns) {
		engine_run(&replay->engine, next_ns);
		collect_readers(replay);
	}
	err = ask(replay, arrival, at_ns, &granted);
	tally->asked++;
	if (err != -EINPROGRESS && err != -ENOMEM)
		note_answer(replay, tally, err, granted);
	collect_readers(replay);
	return err == -ENOMEM ? err : replay->err;
}

int replay_finish(struct replay *replay)
{
	unsigned int steps = 0;
	uint64_t next_ns;

	while (replay->engine.waiting && steps++ < STEPS_MAX && !replay->err) {
		next_ns = engine_next_ns(&replay->engine);
		if (next_ns == NEVER_NS)
			break;
		engine_run(&replay->engine, next_ns);
		if (collect_readers(replay))
			steps = 0;
	}
	return replay->err;
}

void replay_close(struct replay *replay)
{
	struct replayed *reader;

	engine_stop(&replay->engine);
	while ((reader = list_first(&replay->waiting, struct replayed, link))) {
		engine_cancel(&replay->engine, &reader->waiter);
		forget_reader(replay, reader);
	}
	for (uint32_t i = 0; i < replay->tally_count; i++)
		waits_free(&replay->tallies[i].waits);
	free(replay->tallies);
	engine_free(&replay->engine);
}
