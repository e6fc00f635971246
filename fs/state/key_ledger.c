/* key_ledger - what is used of windows of keys, see key_ledger.h. */
#include "fs/state/key_ledger.h"

#include "core/base/siphash.h"
#include "core/limiter/keys.h"
#include "core/limiter/tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FILE_NAME[] = ".keys";
static const char MAGIC[8] = "rfskey1\n";

enum { FIRST_ROOM = 256, READ_RECORDS = 1024 };

/* No use is more: of a bucket, with the debt that it can have. */
static const int64_t USED_MAX = INT64_C(1) << 62;

/* No window begins or ends further from 1970: a clock in nanoseconds ends in 2262. */
static const int64_t TIME_MAX_S = INT64_C(1) << 33;

#define INDEX_MASK ((UINT64_C(1) << KEY_LEDGER_INDEX_BITS) - 1)

/* Bits of a record that only this process knows. */
enum {
	IS_DIRTY = 1,	/* the file has another one */
	IS_CLAIMED = 2, /* of a limiter that is there */
	IS_OLD = 4,	/* it was there at the start */
};

/* The first entry of the file. */
struct header {
	char magic[8];
	uint64_t seed[2];
	uint64_t made;
	int64_t lost_until_s;
	int64_t reserve; /* used, too, if the end was not clean */
	uint64_t clean;	 /* 1: the last daemon has ended, and all is synced */
	uint64_t sum;
};

_Static_assert(sizeof(struct header) == KEY_LEDGER_BYTES, "as the file has it");
_Static_assert(sizeof(struct key_ledger_record) == KEY_LEDGER_BYTES, "as the file has it");

struct key_ledger {
	struct ledger interface; /* first */
	struct key_ledger_memory *memory;
	const struct wall *wall;
	bool succeeds; /* records are those of a predecessor */
	int file;      /* -1: there is none */

	/* By index of records: of as many as there is room for. All owned. */
	uint32_t room;	/* a power of two */
	uint32_t *next; /* in its chain, or of those that are free: index + 1 */
	uint8_t *bits;
	uint32_t *heads; /* of chains: index + 1 */
	uint32_t *dirty; /* indices of those that are */
	uint32_t dirty_count;
	uint32_t free; /* the first: index + 1 */

	int64_t missing;    /* tokens that keys without a record may have used before the start */
	int64_t reserve;    /* as the header of the file has it */
	int64_t of_second;  /* the most that a key took since a second began, until a sync */
	bool header_is_old; /* it is to be written */
	bool soon;	    /* a key uses the reserve, or a limiter has another path */
};

static uint64_t sum_of(const void *bytes, size_t length)
{
	static const uint64_t seed[2];

	return siphash(bytes, length, seed);
}

static bool is_free(const struct key_ledger_record *record)
{
	return !record->name[0] && !record->name[1];
}

static bool record_is_sound(const struct key_ledger_record *record)
{
	return record->used >= 0 && record->used <= USED_MAX && record->synced >= 0 &&
	       record->synced <= USED_MAX && record->begin_s >= -TIME_MAX_S &&
	       record->begin_s <= record->end_s && record->end_s <= TIME_MAX_S;
}

bool key_ledger_is_sound(const struct key_ledger_memory *memory)
{
	if (memory->count > KEY_LEDGER_RECORDS || memory->journal_at > memory->count ||
	    !record_is_sound(&memory->journal))
		return false;
	for (uint32_t i = 0; i < memory->count; i++) {
		const struct key_ledger_record *record = &memory->records[i];

		if (i + 1 != memory->journal_at &&
		    (!record_is_sound(record) ||
		     (record->number && (record->number & INDEX_MASK) != i)))
			return false;
	}
	return true;
}

/* Chains. */

static uint32_t *head_of(const struct key_ledger *ledger, const uint64_t name[2])
{
	return &ledger->heads[name[0] & (ledger->room - 1)];
}

static void link_record(struct key_ledger *ledger, uint32_t i)
{
	uint32_t *head = head_of(ledger, ledger->memory->records[i].name);

	ledger->next[i] = *head;
	*head = i + 1;
}

static void unlink_record(struct key_ledger *ledger, uint32_t i)
{
	uint32_t *at = head_of(ledger, ledger->memory->records[i].name);

	while (*at != i + 1)
		at = &ledger->next[*at - 1];
	*at = ledger->next[i];
}

/* Returns the record called @name, or NULL; *@i is its index. */
static struct key_ledger_record *find_record(const struct key_ledger *ledger,
					     const uint64_t name[2], uint32_t *i)
{
	for (uint32_t at = *head_of(ledger, name); at; at = ledger->next[at - 1]) {
		struct key_ledger_record *record = &ledger->memory->records[at - 1];

		*i = at - 1;
		if (record->name[0] == name[0] && record->name[1] == name[1])
			return record;
	}
	return NULL;
}

/* Puts all records into chains, those that are free into the list of these. */
static void link_all(struct key_ledger *ledger)
{
	memset(ledger->heads, 0, ledger->room * sizeof(*ledger->heads));
	ledger->free = 0;
	for (uint32_t i = 0; i < ledger->memory->count; i++) {
		if (is_free(&ledger->memory->records[i])) {
			ledger->next[i] = ledger->free;
			ledger->free = i + 1;
			continue;
		}
		link_record(ledger, i);
	}
}

/* Gets room for @count records. 0 or -ENOMEM; then it is as it was. */
static int make_room(struct key_ledger *ledger, uint32_t count)
{
	uint32_t room = ledger->room ? ledger->room : FIRST_ROOM, *next, *heads, *dirty;
	uint8_t *bits;

	while (room < count)
		room *= 2;
	if (room == ledger->room)
		return 0;
	next = realloc(ledger->next, room * sizeof(*next));
	ledger->next = next ? next : ledger->next;
	bits = realloc(ledger->bits, room);
	ledger->bits = bits ? bits : ledger->bits;
	heads = realloc(ledger->heads, room * sizeof(*heads));
	ledger->heads = heads ? heads : ledger->heads;
	dirty = realloc(ledger->dirty, room * sizeof(*dirty));
	ledger->dirty = dirty ? dirty : ledger->dirty;
	if (!next || !bits || !heads || !dirty)
		return -ENOMEM;
	memset(ledger->bits + ledger->room, 0, room - ledger->room);
	ledger->room = room;
	link_all(ledger);
	return 0;
}

/* Records. */

static void set_dirty(struct key_ledger *ledger, uint32_t i)
{
	if (ledger->file < 0 || ledger->bits[i] & IS_DIRTY)
		return;
	ledger->bits[i] |= IS_DIRTY;
	ledger->dirty[ledger->dirty_count++] = i;
}

/* A kill comes between two instructions: the compiler alone must keep the order of stores. */
static void set_journal(struct key_ledger_memory *memory, uint32_t at)
{
	atomic_signal_fence(memory_order_seq_cst);
	atomic_store_explicit(&memory->journal_at, at, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
}

/* Writes record @i, so that a successor finds all of it or nothing. */
static void write_record(struct key_ledger *ledger, uint32_t i,
			 const struct key_ledger_record *record)
{
	struct key_ledger_memory *memory = ledger->memory;

	memory->journal = *record;
	set_journal(memory, i + 1);
	memory->records[i] = *record;
	set_journal(memory, 0);
	set_dirty(ledger, i);
}

static void free_record(struct key_ledger *ledger, uint32_t i)
{
	static const struct key_ledger_record none;

	unlink_record(ledger, i);
	write_record(ledger, i, &none);
	ledger->bits[i] &= IS_DIRTY;
	ledger->next[i] = ledger->free;
	ledger->free = i + 1;
}

static int64_t now_s(const struct key_ledger *ledger)
{
	return calendar_wall_s(ledger->wall, *ledger->wall->now_ns);
}

/* Frees the uses of windows that are over. */
static void sweep_records(struct key_ledger *ledger)
{
	int64_t at_s = now_s(ledger);

	for (uint32_t i = 0; i < ledger->memory->count; i++) {
		const struct key_ledger_record *record = &ledger->memory->records[i];

		if (!is_free(record) && !record->number && record->end_s <= at_s)
			free_record(ledger, i);
	}
}

/* Has room for a record more, in *@i. False: there is none. */
static bool find_free(struct key_ledger *ledger, uint32_t *i)
{
	struct key_ledger_memory *memory = ledger->memory;

	/* Where half of the room is over it does not grow, so a sweep costs little for each. */
	if (!ledger->free && memory->count == ledger->room)
		sweep_records(ledger);
	if (ledger->free) {
		*i = ledger->free - 1;
		ledger->free = ledger->next[*i];
		return true;
	}
	if (memory->count == KEY_LEDGER_RECORDS || make_room(ledger, memory->count + 1))
		return false;
	*i = memory->count;
	memory->records[*i] = (struct key_ledger_record){0};
	memory->count++;
	return true;
}

/* Adds @record, whose name is not there. Returns its index + 1; 0: there is no room. */
static uint32_t add_record(struct key_ledger *ledger, struct key_ledger_record *record)
{
	uint32_t i;

	if (!find_free(ledger, &i))
		return 0;
	if (record->number)
		record->number = record->number << KEY_LEDGER_INDEX_BITS | i;
	write_record(ledger, i, record);
	link_record(ledger, i);
	return i + 1;
}

/* Hashes @length bytes. */
static void hash_name(const struct key_ledger *ledger, const void *bytes, size_t length,
		      uint64_t name[2])
{
	const uint64_t other[2] = {~ledger->memory->seed[0], ledger->memory->seed[1]};

	name[0] = siphash(bytes, length, ledger->memory->seed);
	name[1] = siphash(bytes, length, other) | 1; /* a name is not 0 */
}

/* The name of a use; all of it is hashed, up to the end of the key. */
struct use_name {
	uint64_t number;
	char unit[UNIT_TEXT];
	char kind;
	char key[NAME_BYTES_MAX + 1];
};

static void name_use(const struct key_ledger *ledger, uint64_t number, const char *key,
		     const char *unit, uint8_t kind, uint64_t name[2])
{
	struct use_name its = {.number = number, .kind = (char)kind};

	strncpy(its.unit, unit, sizeof(its.unit) - 1);
	strncpy(its.key, key, sizeof(its.key) - 1);
	hash_name(ledger, &its, offsetof(struct use_name, key) + strlen(its.key) + 1, name);
}

/* The functions for the engine. */

static uint64_t number_of(struct ledger *interface, const char *path)
{
	struct key_ledger *ledger = (struct key_ledger *)interface;
	struct key_ledger_record record = {.number = 1}, *found;
	uint32_t i;

	hash_name(ledger, path, strlen(path), record.name);
	found = find_record(ledger, record.name, &i);
	if (!found) {
		record.number = ++ledger->memory->made;
		ledger->header_is_old = true;
		i = add_record(ledger, &record);
		if (!i--)
			return 0;
		found = &ledger->memory->records[i];
	}
	ledger->bits[i] |= IS_CLAIMED;
	return found->number;
}

/* Of keys that are not known a successor knows all; any other start has a reserve. */
static bool recall_unknown(const struct key_ledger *ledger, uint64_t number, struct key_use *use)
{
	bool is_old = ledger->bits[number & INDEX_MASK] & IS_OLD;

	if (now_s(ledger) < ledger->memory->lost_until_s || (ledger->succeeds && !is_old))
		return false;
	if (!ledger->succeeds && ledger->missing)
		use->used = ledger->missing;
	else
		*use = (struct key_use){0};
	return true;
}

static bool recall_use(struct ledger *interface, uint64_t number, const char *key, const char *unit,
		       uint8_t kind, struct key_use *use)
{
	const struct key_ledger *ledger = (struct key_ledger *)interface;
	const struct key_ledger_record *record;
	uint64_t name[2];
	uint32_t i;

	name_use(ledger, number, key, unit, kind, name);
	record = find_record(ledger, name, &i);
	if (record && (*key || now_s(ledger) >= ledger->memory->lost_until_s)) {
		*use = (struct key_use){record->begin_s, record->end_s, record->used};
		if (*key || use->end_s > now_s(ledger))
			return true;
	}
	return !*key && recall_unknown(ledger, number, use);
}

/* Half of what an end may cost was taken since the last sync. */
static bool uses_reserve(const struct key_ledger *ledger, const struct key_ledger_record *record)
{
	return ledger->file >= 0 && record->used - record->synced > ledger->reserve / 2;
}

static void note_use(struct ledger *interface, uint64_t number, const char *key, const char *unit,
		     uint8_t kind, const struct key_use *use)
{
	struct key_ledger *ledger = (struct key_ledger *)interface;
	struct key_ledger_record record = {
		.begin_s = use->begin_s, .end_s = use->end_s, .used = use->used};
	const struct key_ledger_record *found;
	uint32_t i;

	name_use(ledger, number, key, unit, kind, record.name);
	found = find_record(ledger, record.name, &i);
	if (found ? found->begin_s == use->begin_s && found->used == use->used : !use->used)
		return;
	if (!use->used) {
		free_record(ledger, i);
		return;
	}
	if (found && found->end_s == use->end_s)
		record.synced = found->synced;
	ledger->soon |= uses_reserve(ledger, &record);
	if (found) {
		write_record(ledger, i, &record);
	} else if (!add_record(ledger, &record) && use->end_s > ledger->memory->lost_until_s) {
		ledger->memory->lost_until_s = use->end_s;
		ledger->header_is_old = true;
	}
}

static void end_limiter(struct ledger *interface, uint64_t number)
{
	struct key_ledger *ledger = (struct key_ledger *)interface;
	uint32_t i = (uint32_t)(number & INDEX_MASK);

	if (i < ledger->memory->count && ledger->memory->records[i].number == number)
		free_record(ledger, i);
}

/* Has the number of @limiter found by the path that it has now. */
static void follow_one(struct key_ledger *ledger, const struct limiter *limiter)
{
	uint64_t number = limiter->keys ? limiter->keys->number : 0;
	uint32_t i = (uint32_t)(number & INDEX_MASK), other;
	struct key_ledger_record record;
	char path[PATH_TEXT];

	if (!number || i >= ledger->memory->count || ledger->memory->records[i].number != number)
		return;
	record = ledger->memory->records[i];
	tree_path(limiter, path);
	hash_name(ledger, path, strlen(path), record.name);
	if (record.name[0] == ledger->memory->records[i].name[0])
		return;
	if (find_record(ledger, record.name, &other))
		free_record(ledger, other);
	unlink_record(ledger, i);
	write_record(ledger, i, &record);
	link_record(ledger, i);
	ledger->soon = true;
}

void key_ledger_follow(struct key_ledger *ledger, const struct limiter *limiter)
{
	follow_one(ledger, limiter);
	for (const struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		key_ledger_follow(ledger, l);
}

static void free_ledger(struct key_ledger *ledger)
{
	if (ledger->file >= 0)
		close(ledger->file);
	free(ledger->next);
	free(ledger->bits);
	free(ledger->heads);
	free(ledger->dirty);
	free(ledger);
}

struct key_ledger *key_ledger_new(struct key_ledger_memory *memory, const struct wall *wall,
				  bool succeeds)
{
	struct key_ledger *ledger = calloc(1, sizeof(*ledger));

	if (!ledger)
		return NULL;
	*ledger = (struct key_ledger){
		.interface = {.number = number_of,
			      .recall = recall_use,
			      .note = note_use,
			      .end = end_limiter},
		.memory = memory,
		.wall = wall,
		.succeeds = memory->seed[0] || memory->seed[1],
		.file = -1,
		.reserve = 1,
	};
	if (memory->journal_at)
		memory->records[memory->journal_at - 1] = memory->journal;
	set_journal(memory, 0);
	if (!ledger->succeeds && getrandom(memory->seed, sizeof(memory->seed), 0) < 0)
		memory->seed[0] = *wall->now_ns | 1;
	if (succeeds && !ledger->succeeds)
		ledger->missing = (int64_t)TOKENS_MAX;
	if (make_room(ledger, memory->count)) {
		free_ledger(ledger);
		return NULL;
	}
	memset(ledger->bits, IS_OLD, memory->count);
	return ledger;
}

struct ledger *key_ledger_interface(struct key_ledger *ledger)
{
	return &ledger->interface;
}

static struct key_batch_entry header_entry(const struct key_ledger *ledger, bool clean)
{
	struct header header = {
		.made = ledger->memory->made,
		.lost_until_s = ledger->memory->lost_until_s,
		.reserve = ledger->reserve,
		.clean = clean,
	};
	struct key_batch_entry entry = {.at = 0};

	memcpy(header.magic, MAGIC, sizeof(MAGIC));
	memcpy(header.seed, ledger->memory->seed, sizeof(header.seed));
	header.sum = sum_of(&header, offsetof(struct header, sum));
	memcpy(&entry.record, &header, sizeof(header));
	return entry;
}

void key_ledger_begin(struct key_ledger *ledger)
{
	struct key_ledger_memory *memory = ledger->memory;

	for (uint32_t i = 0; i < memory->count; i++) {
		if (memory->records[i].number && !(ledger->bits[i] & IS_CLAIMED))
			free_record(ledger, i);
	}
	sweep_records(ledger);
	ledger->header_is_old = true;
	if (ledger->file >= 0) {
		struct key_batch_entry header = header_entry(ledger, false);
		const struct key_batch batch = {.entries = &header, .count = 1, .raises = true};

		(void)key_ledger_write(ledger, &batch);
	}
}

/* The file. */

/*
 * Reads record @i, which the file has as @record. False: it is damaged. Zeros are one that was not
 * synced.
 */
static bool take_record(struct key_ledger *ledger, uint32_t i,
			const struct key_ledger_record *record)
{
	struct key_ledger_record *made = &ledger->memory->records[i];

	*made = (struct key_ledger_record){0};
	if (!memcmp(record, made, sizeof(*made)))
		return true;
	if (record->sum != sum_of(record, offsetof(struct key_ledger_record, sum)) ||
	    !record_is_sound(record) || (record->number && (record->number & INDEX_MASK) != i))
		return false;
	if (!record->number && record->end_s <= now_s(ledger))
		return true;
	*made = *record;
	if (!made->number && !is_free(made))
		made->used += ledger->missing;
	made->used = made->used < USED_MAX ? made->used : USED_MAX;
	made->synced = made->used;
	return true;
}

/* Reads @count records behind the header. False: some are damaged, or there is no memory. */
static bool read_records(struct key_ledger *ledger, uint32_t count)
{
	struct key_ledger_record *records = calloc(READ_RECORDS, sizeof(*records));
	bool sound = records && !make_room(ledger, count);
	uint32_t i = 0;

	while (sound && i < count) {
		uint32_t part = count - i < READ_RECORDS ? count - i : READ_RECORDS;
		ssize_t bytes = (ssize_t)part * KEY_LEDGER_BYTES;

		if (pread(ledger->file, records, (size_t)bytes,
			  ((off_t)i + 1) * KEY_LEDGER_BYTES) != bytes)
			break;
		for (uint32_t j = 0; j < part; j++)
			sound &= take_record(ledger, i + j, &records[j]);
		i += part;
	}
	ledger->memory->count = i;
	free(records);
	return sound && i == count;
}

static bool read_header(const struct key_ledger *ledger, struct header *header)
{
	return pread(ledger->file, header, sizeof(*header), 0) == sizeof(*header) &&
	       !memcmp(header->magic, MAGIC, sizeof(MAGIC)) &&
	       header->sum == sum_of(header, offsetof(struct header, sum)) && header->reserve > 0 &&
	       header->reserve <= USED_MAX;
}

/* Reads the file of @bytes. False: it is none of ours, or damaged. */
static bool read_file(struct key_ledger *ledger, off_t bytes)
{
	struct header header;
	off_t count = bytes / KEY_LEDGER_BYTES - 1;
	bool sound, is_ours = read_header(ledger, &header);

	/* Until all is written it is what it was. */
	if (is_ours)
		ledger->reserve = header.reserve;
	if (ledger->succeeds)
		return true;
	if (!is_ours || count > KEY_LEDGER_RECORDS)
		return false;
	memcpy(ledger->memory->seed, header.seed, sizeof(header.seed));
	ledger->memory->made = header.made;
	ledger->memory->lost_until_s = header.lost_until_s;
	ledger->missing = header.clean ? 0 : header.reserve;
	sound = read_records(ledger, (uint32_t)count);
	while (ledger->memory->count &&
	       is_free(&ledger->memory->records[ledger->memory->count - 1]))
		ledger->memory->count--;
	memset(ledger->bits, IS_OLD, ledger->memory->count);
	link_all(ledger);
	return sound && !(bytes % KEY_LEDGER_BYTES);
}

int key_ledger_load(struct key_ledger *ledger, int directory)
{
	struct stat status;
	int file = openat(directory, FILE_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	int err = 0;

	if (file < 0 || fstat(file, &status)) {
		err = -errno;
		if (file >= 0)
			close(file);
		return err;
	}
	ledger->file = file;
	if (status.st_size && !read_file(ledger, status.st_size)) {
		ledger->missing = (int64_t)TOKENS_MAX;
		err = -EBADMSG;
	}
	for (uint32_t i = 0; i < ledger->memory->count; i++)
		set_dirty(ledger, i);
	/* Records behind the last that is used. */
	if (ftruncate(file, ((off_t)ledger->memory->count + 1) * KEY_LEDGER_BYTES))
		return -errno;
	return err;
}

bool key_ledger_is_kept(const struct key_ledger *ledger)
{
	return ledger->file >= 0 &&
	       (ledger->dirty_count || ledger->header_is_old || ledger->reserve > 1);
}

bool key_ledger_hurries(struct key_ledger *ledger)
{
	bool soon = ledger->soon;

	ledger->soon = false;
	return soon;
}

/* Copies the records that have changed. Returns the most that a key took since the last sync. */
static int64_t copy_records(struct key_ledger *ledger, struct key_batch *batch)
{
	int64_t most = 0;

	for (uint32_t k = 0; k < ledger->dirty_count; k++) {
		uint32_t i = ledger->dirty[k];
		struct key_ledger_record *record = &ledger->memory->records[i];
		struct key_batch_entry *entry = &batch->entries[batch->count++];

		if (record->used - record->synced > most)
			most = record->used - record->synced;
		record->synced = record->used;
		entry->at = i + 1;
		entry->record = *record;
		entry->record.sum = sum_of(record, offsetof(struct key_ledger_record, sum));
		ledger->bits[i] &= (uint8_t)~IS_DIRTY;
	}
	ledger->dirty_count = 0;
	return most;
}

int key_ledger_collect(struct key_ledger *ledger, bool early, struct key_batch *batch)
{
	int64_t reserve, most;

	*batch = (struct key_batch){
		.entries = calloc((size_t)ledger->dirty_count + 1, sizeof(*batch->entries))};
	if (!batch->entries)
		return -ENOMEM;
	most = copy_records(ledger, batch);
	ledger->of_second += most;
	reserve = early ? 2 * ledger->reserve : ledger->of_second;
	if (early && reserve < most)
		reserve = most;
	if (!early)
		ledger->of_second = 0;
	reserve = reserve < 1 ? 1 : reserve > USED_MAX ? USED_MAX : reserve;
	batch->raises = reserve > ledger->reserve;
	if (reserve != ledger->reserve)
		ledger->header_is_old = true;
	ledger->reserve = reserve;
	if (ledger->header_is_old)
		batch->entries[batch->count++] = header_entry(ledger, false);
	ledger->header_is_old = false;
	return 0;
}

/* Writes entries @from to @to of @batch. 0 or -errno. */
static int write_entries(int file, const struct key_batch *batch, uint32_t from, uint32_t to)
{
	for (uint32_t k = from; k < to; k++) {
		const struct key_batch_entry *entry = &batch->entries[k];

		if (pwrite(file, &entry->record, sizeof(entry->record),
			   (off_t)entry->at * KEY_LEDGER_BYTES) != sizeof(entry->record))
			return errno ? -errno : -EIO;
	}
	return 0;
}

/* A smaller reserve comes after the records, and is synced with the next ones. */
int key_ledger_write(const struct key_ledger *ledger, const struct key_batch *batch)
{
	uint32_t count = batch->count;
	bool has_header = count && !batch->entries[count - 1].at;
	uint32_t records = count - has_header;
	int err = 0;

	if (has_header && batch->raises)
		err = write_entries(ledger->file, batch, records, count);
	if (!err)
		err = write_entries(ledger->file, batch, 0, records);
	if (!err && count && fdatasync(ledger->file))
		err = -errno;
	if (!err && has_header && !batch->raises)
		err = write_entries(ledger->file, batch, records, count);
	return err;
}

void key_ledger_written(struct key_ledger *ledger, struct key_batch *batch, int err)
{
	for (uint32_t k = 0; err && k < batch->count; k++) {
		if (batch->entries[k].at)
			set_dirty(ledger, batch->entries[k].at - 1);
	}
	ledger->header_is_old |= err != 0;
	free(batch->entries);
	batch->entries = NULL;
}

/* Writes all that is not in the file yet. 0 or -errno. */
static int write_rest(struct key_ledger *ledger)
{
	struct key_batch batch;
	int err = key_ledger_collect(ledger, false, &batch);

	if (!err) {
		err = key_ledger_write(ledger, &batch);
		key_ledger_written(ledger, &batch, err);
	}
	return err;
}

void key_ledger_close(struct key_ledger *ledger, bool clean)
{
	struct key_batch_entry header;
	const struct key_batch batch = {.entries = &header, .count = 1, .raises = true};

	if (!ledger)
		return;
	if (clean && ledger->file >= 0 && !write_rest(ledger)) {
		header = header_entry(ledger, true);
		(void)key_ledger_write(ledger, &batch);
	}
	free_ledger(ledger);
}
