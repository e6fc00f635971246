/* consumers - the file `users`, see consumers.h. */
#include "fs/mount/consumers.h"
#include "fs/base/clock.h"
#include "fs/mount/plain.h"
#include "fs/mount/read.h"
#include "fs/mount/slot.h"

#include "core/limiter/keys.h"
#include "core/limiter/partition.h"
#include "core/limiter/usage.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* More files, or waiters, than FILES_SEEN are not looked at: those take the loop some 3 ms. */
enum { CONSUMERS_SHOWN = 64, FILES_SEEN = 8192 };

/* The waiters and slots of each line of a tally. */
struct present {
	uint32_t waiting[TALLY_MAX], slots[TALLY_MAX];
};

/* Returns the limiter whose user reads @limiter: that of a key or a partition. */
static struct limiter *owner_of(struct limiter *limiter)
{
	return limiter->is_key || limiter->partition ? limiter->parent : limiter;
}

/* Returns the line of a file of @limiter that thread @pid of user @uid opened. */
static struct tally_line line_of(const struct limiter *limiter, uint32_t uid, uint32_t pid)
{
	const struct key *key = limiter->is_key ? keys_key(limiter) : NULL;

	return (struct tally_line){.uid = uid, .pid = pid, .key = key ? key->id : 0};
}

void consumers_note(struct handle *handle)
{
	struct tally_line line;

	/* A key or a partition that is gone does not keep its limiter. */
	if (!handle->row->kind->takes || !handle->taken || !handle->kept ||
	    handle->limiter->removed)
		return;
	line = line_of(handle->limiter, handle->uid, handle->kept->pid);
	line.granted = handle->taken;
	usage_tally(owner_of(handle->limiter), &line);
}

/* The files of a limiter, its partitions and keys through which tokens and slots are had. */
struct files {
	const struct handle *at[FILES_SEEN];
	uint32_t count;
};

static void add_files_of(struct files *files, const struct limiter *limiter)
{
	const struct handle *handle = list_first(&limiter->files, struct handle, link);

	for (; handle && files->count < FILES_SEEN; handle = list_next(handle, link))
		files->at[files->count++] = handle;
}

/* Finds the open files of @limiter: from malloc, or NULL. */
static struct files *find_files(const struct limiter *limiter)
{
	const struct limiter *partition;
	struct files *files = malloc(sizeof(*files));
	uint32_t keys = 0;

	if (!files)
		return NULL;
	files->count = 0;
	add_files_of(files, limiter);
	for (uint32_t i = 0; (partition = partition_next(limiter, &i));)
		add_files_of(files, partition);
	for (const struct limiter *key = NULL;
	     keys++ < FILES_SEEN && (key = keys_next_open(limiter, key));)
		add_files_of(files, key);
	return files;
}

/* Adds the openers of @files, and what was granted through them. */
static void add_openers(struct tally *tally, const struct files *files)
{
	for (uint32_t i = 0; i < files->count; i++) {
		const struct handle *handle = files->at[i];
		struct tally_line line;

		if (!handle->row->kind->takes && !handle->slot.limiter)
			continue; /* an opener that waits */
		line = line_of(handle->limiter, handle->uid, handle->kept->pid);
		if (handle->row->kind->takes)
			line.granted = handle->taken;
		(void)tally_add(tally, &line);
	}
}

/* Finds the place of @line in @tally; TALLY_MAX: there is none. */
static uint32_t find_place(const struct tally *tally, const struct tally_line *line)
{
	uint32_t i = 0;

	while (i < tally->count &&
	       (tally->lines[i].uid != line->uid || tally->lines[i].key != line->key))
		i++;
	return i < tally->count ? i : TALLY_MAX;
}

static void count_waiter(const struct tally *tally, struct present *present,
			 const struct waiter *waiter)
{
	struct tally_line line;
	uint32_t place, uid;

	uid = waiter->is_poller ? polling_of(waiter)->handle->uid
				: container_of(waiter, const struct reader, waiter)->pending.uid;
	line = line_of(waiter->limiter, uid, 0);
	place = find_place(tally, &line);
	if (place < TALLY_MAX)
		present->waiting[place]++;
}

/* Counts the waiters of @queue, as long as there is @room. */
static void count_queue(const struct tally *tally, struct present *present,
			const struct queue *queue, uint32_t *room)
{
	struct heap_node *turn = queue->returned.root;

	for (const struct waiter *w = list_first(&queue->once, struct waiter, once); w && *room;
	     w = list_next(w, once), --*room)
		count_waiter(tally, present, w);
	for (; turn && *room; turn = heap_next(turn), --*room)
		count_waiter(tally, present, waiter_of_turn(turn));
}

static void count_present(const struct limiter *limiter, const struct files *files,
			  const struct tally *tally, struct present *present)
{
	const struct limiter *partition;
	uint32_t room = FILES_SEEN;

	count_queue(tally, present, &limiter->turns.queue, &room);
	if (limiter->slots)
		count_queue(tally, present, &limiter->slots->turns.queue, &room);
	for (uint32_t i = 0; (partition = partition_next(limiter, &i));)
		count_queue(tally, present, &partition->turns.queue, &room);
	for (struct limiter *key = NULL; room && (key = keys_next_waiting(limiter, key));) {
		count_queue(tally, present, &key->turns.queue, &room);
		if (key->slots)
			count_queue(tally, present, &key->slots->turns.queue, &room);
	}
	for (uint32_t i = 0; i < files->count; i++) {
		const struct handle *handle = files->at[i];
		const struct tally_line line = line_of(handle->limiter, handle->uid, 0);
		uint32_t place = handle->slot.limiter ? find_place(tally, &line) : TALLY_MAX;

		if (place < TALLY_MAX)
			present->slots[place]++;
	}
}

static void show_line(FILE *out, const struct daemon *daemon, const struct tally_line *line,
		      uint32_t waiting, uint32_t slots)
{
	const struct key *key = line->key ? keys_find(&daemon->engine.schedule, line->key) : NULL;

	fprintf(out, "%" PRIu32 " ", line->uid);
	plain_command(out, line->pid);
	fputc(' ', out);
	plain_word(out, key ? key->name : "");
	fputc(' ', out);
	if (line->over)
		fprintf(out, "%" PRIu64 "-", line->granted - line->over);
	fprintf(out, "%" PRIu64 " %" PRIu32 " %" PRIu32 "\n", line->granted, waiting, slots);
}

void consumers_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	struct limiter *limiter = node->limiter;
	struct files *files = find_files(limiter);
	struct present present = {0};
	struct tally tally = {0};

	(void)uid;
	engine_refresh(&daemon->engine, limiter, clock_ns());
	if (!files || (limiter->usage && tally_copy(&limiter->usage->tally, &tally))) {
		free(files);
		return;
	}
	add_openers(&tally, files);
	tally_sort(&tally);
	count_present(limiter, files, &tally, &present);
	free(files);
	for (uint32_t i = 0; i < tally.count && i < CONSUMERS_SHOWN; i++)
		show_line(out, daemon, &tally.lines[i], present.waiting[i], present.slots[i]);
	if (tally.count > CONSUMERS_SHOWN)
		fputs("...\n", out);
	tally_free(&tally);
}
