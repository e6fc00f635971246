/* quota - what was used of windows of the calendar, see quota.h. */
#include "fs/local/quota.h"
#include "fs/base/clock.h"
#include "fs/base/log.h"

#include "core/base/siphash.h"
#include "core/limiter/bucket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FILE_NAME[] = ".windows";
static const char MAGIC[8] = "rfswin1\n";

enum { BOOT_BYTES = 40, RECORDS_MAX = ENGINE_LIMITERS_MAX * LIMITS_MAX, FIRST_ROOM = 16 };

struct header {
	char magic[8];
	char boot[BOOT_BYTES]; /* of the machine, when the file was opened last */
	uint64_t clean;	       /* 1: the last daemon has ended, and all is synced */
	uint64_t sum;
};

struct record {
	uint64_t name[2]; /* 0, 0: it is free */
	int64_t begin_s;  /* of the window */
	int64_t used;
	int64_t reserve; /* used, too, if the power was lost */
	uint64_t unused[2];
	uint64_t sum; /* of what is above */
};

_Static_assert(sizeof(struct header) == QUOTA_BYTES, "as the file has it");
_Static_assert(sizeof(struct record) == QUOTA_BYTES, "as the file has it");

/* A limit of windows, at the place of its record in the file. */
struct place {
	struct chain_link link; /* by limiter */
	struct record record;
	uint32_t at;	    /* its number */
	uint32_t id;	    /* of the limiter; 0: it is free, or was read and not claimed yet */
	uint32_t limit;	    /* index */
	struct place *next; /* of those that are free */
	int64_t looked;	    /* used, when it was looked at last; and when a second began */
	int64_t of_second;
};

struct quota {
	int file;
	bool power_lost;
	bool damaged;	       /* windows without a record may have been used */
	bool failed;	       /* it could not be written, which was told */
	bool dirty;	       /* something was written since the last sync */
	struct place **places; /* owned */
	uint32_t count, room;
	struct place *free;	/* the first */
	struct place **by_name; /* owned: those that were read, until quota_begin() */
	uint32_t read_count;
	struct chains by_limiter;
};

static uint64_t hash_number(uint32_t id, uint32_t limit)
{
	return (uint64_t)id * LIMITS_MAX + limit;
}

static uint64_t hash_of(const struct chain_link *link, const void *seed)
{
	const struct place *place = container_of(link, const struct place, link);

	(void)seed;
	return hash_number(place->id, place->limit);
}

static uint64_t sum_of(const void *bytes, size_t length)
{
	static const uint64_t seed[2];

	return siphash(bytes, length, seed);
}

/* Gives the name of the record of limit @i of @limiter. */
static void name_limit(const struct limiter *limiter, uint32_t i, uint64_t name[2])
{
	static const uint64_t seeds[2][2] = {{1, 2}, {3, 4}};
	char text[PATH_TEXT + CALENDAR_TEXT + UNIT_TEXT + 1], period[CALENDAR_TEXT];
	size_t length;

	calendar_print_period(limiter->buckets[i].window->rate, period);
	length = (size_t)sprintf(text, "%s=%s", limiter->settings->limits[i].unit, period) + 1;
	tree_path(limiter, text + length);
	length += strlen(text + length);
	for (int j = 0; j < 2; j++)
		name[j] = siphash(text, length, seeds[j]);
}

/* Writes @bytes as entry @index of the file, of which 0 is the header. */
static void write_entry(struct quota *quota, uint32_t index, const void *bytes)
{
	if (pwrite(quota->file, bytes, QUOTA_BYTES, (off_t)index * QUOTA_BYTES) == QUOTA_BYTES) {
		quota->dirty = true;
		quota->failed = false;
		return;
	}
	if (!quota->failed)
		log_error("cannot write what is used of windows: %s", strerror(errno));
	quota->failed = true;
}

static void write_place(struct quota *quota, struct place *place)
{
	struct record *record = &place->record;

	record->sum = sum_of(record, offsetof(struct record, sum));
	write_entry(quota, place->at + 1, record);
}

static void write_header(struct quota *quota, bool clean)
{
	struct header header = {.clean = clean};
	int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	memcpy(header.magic, MAGIC, sizeof(MAGIC));
	if (file >= 0) {
		if (read(file, header.boot, sizeof(header.boot) - 1) < 0)
			header.boot[0] = '\0';
		close(file);
	}
	header.sum = sum_of(&header, offsetof(struct header, sum));
	write_entry(quota, 0, &header);
}

/* Tells whether the power may have been lost since the header was written. */
static bool was_power_lost(const struct header *header)
{
	char boot[BOOT_BYTES] = "";
	int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t got = -1;

	if (file >= 0) {
		got = read(file, boot, sizeof(boot) - 1);
		close(file);
	}
	return !header->clean && (got <= 0 || memcmp(boot, header->boot, sizeof(boot)) != 0);
}

/* Adds a place behind the others. NULL: there is no memory, or there are too many. */
static struct place *add_place(struct quota *quota)
{
	struct place *place;

	if (quota->count == quota->room) {
		uint32_t room = quota->room ? 2 * quota->room : FIRST_ROOM;
		struct place **places = NULL;

		if (quota->count < RECORDS_MAX)
			places = realloc(quota->places, room * sizeof(struct place *));
		if (!places)
			return NULL;
		quota->places = places;
		quota->room = room;
	}
	place = calloc(1, sizeof(*place));
	if (!place)
		return NULL;
	place->at = quota->count;
	quota->places[quota->count++] = place;
	return place;
}

static void free_place(struct quota *quota, struct place *place)
{
	place->record = (struct record){0};
	place->id = 0;
	place->next = quota->free;
	quota->free = place;
	write_place(quota, place);
}

static int by_name(const void *a, const void *b)
{
	const struct place *one = *(struct place *const *)a, *other = *(struct place *const *)b;

	return memcmp(one->record.name, other->record.name, sizeof(one->record.name));
}

/*
 * Reads the records of a file of @bytes. 0 or -1: it is none of ours, or damaged; or there is no
 * memory.
 */
static int read_records(struct quota *quota, off_t bytes)
{
	struct header header;
	struct record record;
	int err = bytes % QUOTA_BYTES ? -1 : 0;

	if (pread(quota->file, &header, sizeof(header), 0) != sizeof(header) ||
	    memcmp(header.magic, MAGIC, sizeof(MAGIC)) != 0 ||
	    header.sum != sum_of(&header, offsetof(struct header, sum)))
		return -1;
	quota->power_lost = was_power_lost(&header);
	for (off_t i = 1; i < bytes / QUOTA_BYTES; i++) {
		struct place *place = add_place(quota);

		if (!place)
			return -1;
		if (pread(quota->file, &record, sizeof(record), i * QUOTA_BYTES) ==
			    sizeof(record) &&
		    record.sum == sum_of(&record, offsetof(struct record, sum)))
			place->record = record;
		else
			err = -1;
	}
	quota->by_name = calloc(quota->count + 1, sizeof(struct place *));
	if (!quota->by_name)
		return -1;
	quota->read_count = quota->count;
	for (uint32_t i = 0; i < quota->count; i++)
		quota->by_name[i] = quota->places[i];
	qsort(quota->by_name, quota->count, sizeof(struct place *), by_name);
	return err;
}

struct quota *quota_open(int directory)
{
	struct quota *quota = calloc(1, sizeof(*quota));
	struct stat status;

	if (!quota)
		return NULL;
	quota->by_limiter.hash = hash_of;
	quota->file = openat(directory, FILE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (quota->file < 0 || fstat(quota->file, &status)) {
		log_error("cannot keep what is used of windows: %s", strerror(errno));
		free(quota);
		return NULL;
	}
	quota->damaged = status.st_size && read_records(quota, status.st_size);
	if (quota->damaged)
		log_error("DIR/%s is damaged: windows that are not found there begin empty",
			  FILE_NAME);
	return quota;
}

void quota_close(struct quota *quota, bool clean)
{
	if (!quota)
		return;
	if (clean && !quota->failed && !quota_sync(quota)) {
		write_header(quota, true);
		(void)quota_sync(quota);
	}
	close(quota->file);
	for (uint32_t i = 0; i < quota->count; i++) {
		if (quota->places[i]->id)
			chains_remove(&quota->by_limiter, &quota->places[i]->link);
		free(quota->places[i]);
	}
	free(quota->places);
	free(quota->by_name);
	free(quota);
}

/* Finds the place of the record called @name among those that were read. NULL: there is none. */
static struct place *find_name(const struct quota *quota, const uint64_t name[2])
{
	struct place key = {.record.name = {name[0], name[1]}}, *wanted = &key, **found = NULL;

	if (quota->by_name)
		found = bsearch(&wanted, quota->by_name, quota->read_count, sizeof(struct place *),
				by_name);
	return found ? *found : NULL;
}

static struct place *find_limit(const struct quota *quota, uint32_t id, uint32_t limit)
{
	struct chain_link *link = chains_find(&quota->by_limiter, hash_number(id, limit));

	for (; link; link = link->next) {
		struct place *place = container_of(link, struct place, link);

		if (place->id == id && place->limit == limit)
			return place;
	}
	return NULL;
}

void quota_restore(struct quota *quota, struct limiter *limiter, uint64_t now_ns)
{
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];
		const struct place *place;
		uint64_t name[2];
		int64_t used, all = (int64_t)bucket->burst;

		if (!bucket_is_window(bucket))
			continue;
		name_limit(limiter, i, name);
		place = find_name(quota, name);
		if (place) {
			used = place->record.used;
			if (quota->power_lost && used < all)
				used = all - used < place->record.reserve
					       ? all
					       : used + place->record.reserve;
			window_restore(bucket, place->record.begin_s, used, 0, 0, now_ns);
		} else if (!quota->damaged) {
			bucket_fill(bucket);
		}
	}
}

/* Notes what was used of the window of @place, which is that of @bucket. */
static void note_used(struct quota *quota, struct place *place, const struct bucket *bucket)
{
	place->record.begin_s = window_begin_s(bucket);
	place->record.used = window_used(bucket);
	write_place(quota, place);
}

/* Half of what a power loss may cost was taken since the last sync. */
static bool uses_reserve(const struct place *place)
{
	return 2 * (place->record.used - place->looked) > place->record.reserve;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Gives limit @i of @limiter a place. */
static void claim_place(struct quota *quota, const struct limiter *limiter, uint32_t i)
{
	uint64_t name[2];
	struct place *place;

	name_limit(limiter, i, name);
	place = find_name(quota, name);
	if (!place || place->id) {
		place = quota->free;
		if (place)
			quota->free = place->next;
		else
			place = add_place(quota);
	}
	if (!place) {
		log_error("no memory to keep what is used of windows");
		return;
	}
	place->id = limiter->id;
	place->limit = i;
	if (chains_insert(&quota->by_limiter, &place->link)) {
		free_place(quota, place);
		return;
	}
	memcpy(place->record.name, name, sizeof(name));
	place->record.reserve = 1;
	note_used(quota, place, &limiter->buckets[i]);
	place->looked = place->record.used;
	place->of_second = place->record.used;
}

void quota_follow(struct quota *quota, const struct limiter *limiter)
{
	struct place *old[LIMITS_MAX];

	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		old[i] = find_limit(quota, limiter->id, i);
		if (old[i])
			chains_remove(&quota->by_limiter, &old[i]->link);
	}
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		if (bucket_is_window(&limiter->buckets[i]))
			claim_place(quota, limiter, i);
	}
	/* Only now, so that a crash in between loses none. */
	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		if (old[i])
			free_place(quota, old[i]);
	}
}

void quota_follow_all(struct quota *quota, const struct limiter *limiter)
{
	if (!limiter_is_root(limiter))
		quota_follow(quota, limiter);
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		quota_follow_all(quota, l);
}

void quota_begin(struct quota *quota, struct engine *engine)
{
	quota_follow_all(quota, engine->tree.root);
	for (uint32_t i = 0; i < quota->read_count; i++) {
		if (!quota->places[i]->id)
			free_place(quota, quota->places[i]);
	}
	free(quota->by_name);
	quota->by_name = NULL;
	quota->read_count = 0;
	/* Behind a damage there may be records that were not read. */
	if (ftruncate(quota->file, (off_t)(quota->count + 1) * QUOTA_BYTES))
		log_error("cannot cut DIR/%s: %s", FILE_NAME, strerror(errno));
	write_header(quota, false);
	(void)quota_sync(quota);
}

void quota_forget(struct quota *quota, uint32_t id)
{
	for (uint32_t i = 0; i < LIMITS_MAX; i++) {
		struct place *place = find_limit(quota, id, i);

		if (!place)
			continue;
		chains_remove(&quota->by_limiter, &place->link);
		free_place(quota, place);
	}
}

bool quota_used(struct quota *quota, const struct limiter *limiter)
{
	bool soon = false;

	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		struct place *place;

		if (!bucket_is_window(&limiter->buckets[i]))
			continue;
		place = find_limit(quota, limiter->id, i);
		if (!place)
			continue;
		note_used(quota, place, &limiter->buckets[i]);
		soon |= uses_reserve(place);
	}
	return soon;
}

bool quota_foresee(struct quota *quota, bool early)
{
	bool dirty;

	for (uint32_t i = 0; i < quota->count; i++) {
		struct place *place = quota->places[i];
		int64_t reserve = place->record.reserve;

		if (!place->id)
			continue;
		if (early && uses_reserve(place))
			reserve = max(2 * reserve, place->record.used - place->looked);
		if (!early) {
			reserve = max(1, place->record.used - place->of_second);
			place->of_second = place->record.used;
		}
		place->looked = place->record.used;
		if (reserve == place->record.reserve)
			continue;
		place->record.reserve = reserve;
		write_place(quota, place);
	}
	dirty = quota->dirty;
	quota->dirty = false;
	return dirty;
}

bool quota_is_kept(const struct quota *quota)
{
	return quota->by_limiter.count;
}

int quota_sync(const struct quota *quota)
{
	return fdatasync(quota->file) ? -errno : 0;
}
