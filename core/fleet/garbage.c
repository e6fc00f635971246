/* garbage - nodes of limiters that are gone, see garbage.h. */
#include "core/fleet/garbage.h"
#include "core/base/chain.h"
#include "core/fleet/holdings.h"
#include "core/fleet/request.h"
#include "core/fleet/transaction.h"
#include "core/fleet/znode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DELETES_MAX = 90, TRIES_MAX = 5, FOLDERS_MAX = 2, KEYS_MAX = 256 };

/* Ends of hosts are of use for so long, unless their tiles are taken by then. */
#define ENDS_SPREAD_NS (900 * NSEC_PER_SEC)
#define ENDS_KEPT_NS   (25 * 3600 * NSEC_PER_SEC)

/* The leaves of a limiter as they were numbered, and what else there is of one that is gone. */
struct swept {
	struct chain_link link; /* by id */
	struct swept *next;
	uint64_t id, cut;
	char hid[HID_TEXT];	/* in place of them the end of this host, "" ... */
	uint32_t epoch;		/* ... with this in its name */
	uint64_t not_before_ns; /* by the waiter's clock */
	uint32_t tries;
	bool whole; /* the limiter is gone ... */
	bool named; /* ... and its record says so */
	bool keyed; /* folders of keys may be left; all else goes after them */
	/* Folders that are there, of those that FOLDERS has; nodes in them. */
	bool there[FOLDERS_MAX];
	uint32_t listed;	   /* folders so far */
	char (*paths)[ZNODE_TEXT]; /* owned */
	uint32_t path_count;
	bool ready;
	bool partly; /* more than fit one transaction */
};

struct garbage {
	struct swept *first;   /* owned */
	struct chains by_id;   /* the same */
	struct swept *current; /* that is looked at, or deleted; NULL */
	/* Hashes of its keys that are to be listed. After them its folder is listed anew. */
	uint64_t keys[KEYS_MAX];
	uint32_t key_count;
};

bool garbage_new(struct fleet *fleet)
{
	fleet->garbage = calloc(1, sizeof(*fleet->garbage));
	return fleet->garbage;
}

static void keep_for(struct fleet *fleet, struct swept *swept, uint64_t ns)
{
	swept->not_before_ns = fleet->clocks.waiter_ns + ns;
	fleet_wake_at(fleet, fleet->now_ns + ns);
}

static uint64_t hash_id(uint64_t id)
{
	/* Fibonacci hashing (Knuth, 6.4): numbers given one after the other are spread. */
	return (id * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static uint64_t hash_link(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return hash_id(((const struct swept *)link)->id);
}

static bool is_known(const struct fleet *fleet, const struct swept *swept)
{
	struct chain_link *link = chains_find(&fleet->garbage->by_id, hash_id(swept->id));

	for (; link; link = link->next) {
		const struct swept *known = (const struct swept *)link;

		if (known->id == swept->id && known->cut == swept->cut &&
		    known->epoch == swept->epoch && !strcmp(known->hid, swept->hid))
			return true;
	}
	return false;
}

/* Adds a copy of @swept, which is kept for @ns. */
static void add(struct fleet *fleet, const struct swept *swept, uint64_t ns)
{
	struct swept *added;

	if (is_known(fleet, swept))
		return;
	added = malloc(sizeof(*added));
	/* Without memory it is left to the next host that starts. */
	if (!added)
		return;
	*added = *swept;
	fleet->garbage->by_id.hash = hash_link;
	if (chains_insert(&fleet->garbage->by_id, &added->link)) {
		free(added);
		return;
	}
	added->next = fleet->garbage->first;
	fleet->garbage->first = added;
	keep_for(fleet, added, ns);
}

void garbage_add(struct fleet *fleet, uint64_t id, uint64_t cut)
{
	add(fleet, &(struct swept){.id = id, .cut = cut}, fleet->constants.quarantine_ns);
}

void garbage_add_end(struct fleet *fleet, const char *hid, uint32_t epoch)
{
	struct swept swept = {.epoch = epoch};

	memcpy(swept.hid, hid, HID_TEXT);
	add(fleet, &swept, ENDS_KEPT_NS + fleet_jitter(fleet, ENDS_SPREAD_NS));
}

/* Prints the path of the end that @swept is. */
static void end_path(const struct swept *swept, char path[ZNODE_TEXT])
{
	char name[ZNODE_TEXT];

	znode_end_print(swept->hid, swept->epoch, name);
	znode_path_named(ZNODE_END, 0, name, path);
}

/* Limiters, or cuts, that are just being made are looked for once more before they are deleted. */
static void folders_listed(struct fleet *fleet, struct request *request)
{
	for (uint32_t i = 0; i < request->name_count; i++) {
		const struct holding *holding;
		uint64_t id, cut;

		if (!znode_cut_parse(request->names[i], &id, &cut) || !id)
			continue;
		holding = holdings_find(fleet, id);
		if (!holding || holding->cut != cut)
			garbage_add(fleet, id, cut);
	}
}

/* A folder of keys may be left without tiles beside it: no transaction guards its making. */
void garbage_look(struct fleet *fleet)
{
	static const enum znode_kind kinds[] = {ZNODE_TILES_OF, ZNODE_KEYS_OF};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct request *request;
		char path[ZNODE_TEXT];

		znode_path(kinds[i], 0, path);
		request = request_new(REQUEST_LIST, path, folders_listed);
		if (request)
			request_send(fleet, request);
	}
}

static void free_paths(struct swept *swept)
{
	free(swept->paths);
	swept->paths = NULL;
	swept->path_count = 0;
	swept->listed = 0;
	swept->ready = false;
}

static void forget(struct fleet *fleet, struct swept *swept)
{
	struct swept **at = &fleet->garbage->first;

	while (*at != swept)
		at = &(*at)->next;
	*at = swept->next;
	chains_remove(&fleet->garbage->by_id, &swept->link);
	free_paths(swept);
	free(swept);
	fleet->garbage->current = NULL;
}

static void give_up(struct fleet *fleet)
{
	struct swept *swept = fleet->garbage->current;

	fleet->garbage->current = NULL;
	free_paths(swept);
	if (++swept->tries >= TRIES_MAX)
		forget(fleet, swept);
	else
		keep_for(fleet, swept, fleet->constants.quarantine_ns);
}

/* Folders of nodes that have a name of their own. */
static const enum znode_kind FOLDERS[FOLDERS_MAX] = {ZNODE_TILES, ZNODE_RESERVES};

/* Prints the path of folder @at, or of node @name in it. */
static void path_in(const struct swept *swept, uint32_t at, const char *name, char path[ZNODE_TEXT])
{
	znode_path_tile(swept->id, swept->cut, FOLDERS[at] == ZNODE_RESERVES, name, path);
}

/* Makes room for @count paths more. False: there is no memory. */
static bool make_room(struct swept *swept, uint32_t count)
{
	char(*paths)[ZNODE_TEXT] = realloc(swept->paths,
					   (swept->path_count + count) * sizeof(*paths));

	if (paths)
		swept->paths = paths;
	return paths;
}

/* Returns what a list that was just answered is about; NULL: nothing comes of it. */
static struct swept *listed_of(struct fleet *fleet, const struct request *request)
{
	struct swept *swept = fleet->garbage->current;

	if (swept && request->answer != ANSWER_OK && request->answer != ANSWER_NO_NODE) {
		give_up(fleet);
		return NULL;
	}
	return swept;
}

static void list_folder(struct fleet *fleet);

static void nodes_listed(struct fleet *fleet, struct request *request)
{
	struct swept *swept = listed_of(fleet, request);

	if (!swept)
		return;
	swept->there[swept->listed] = request->answer == ANSWER_OK;
	if (!make_room(swept, request->name_count + 1)) {
		give_up(fleet);
		return;
	}
	for (uint32_t i = 0; i < request->name_count; i++)
		path_in(swept, swept->listed, request->names[i], swept->paths[swept->path_count++]);
	swept->listed++;
	list_folder(fleet);
}

/* Lists the next folder; after the last one, it is ready to be deleted. */
static void list_folder(struct fleet *fleet)
{
	struct swept *swept = fleet->garbage->current;
	struct request *list;
	char path[ZNODE_TEXT];

	if (swept->listed == FOLDERS_MAX) {
		swept->ready = true;
		fleet_wake_at(fleet, 0);
		return;
	}
	path_in(swept, swept->listed, NULL, path);
	list = request_new(REQUEST_LIST, path, nodes_listed);
	if (list) {
		request_send(fleet, list);
	} else {
		give_up(fleet);
	}
}

static void list_key(struct fleet *fleet);

/* Notes what is in the folder of a key, and the folder, as far as one transaction has room. */
static void key_listed(struct fleet *fleet, struct request *request)
{
	struct swept *swept = listed_of(fleet, request);
	uint64_t hash;

	if (!swept)
		return;
	if (!make_room(swept, DELETES_MAX - swept->path_count)) {
		give_up(fleet);
		return;
	}
	hash = fleet->garbage->keys[--fleet->garbage->key_count];
	for (uint32_t i = 0; i < request->name_count && swept->path_count < DELETES_MAX; i++)
		znode_path_key(swept->id, swept->cut, hash, request->names[i],
			       swept->paths[swept->path_count++]);
	if (request->answer == ANSWER_OK && swept->path_count < DELETES_MAX)
		znode_path_key(swept->id, swept->cut, hash, NULL,
			       swept->paths[swept->path_count++]);
	list_key(fleet);
}

/* Lists the folder of the next key; after the last one, or enough, they are ready to go. */
static void list_key(struct fleet *fleet)
{
	struct garbage *garbage = fleet->garbage;
	struct swept *swept = garbage->current;
	struct request *list;
	char path[ZNODE_TEXT];

	if (!garbage->key_count && !swept->path_count) {
		give_up(fleet);
		return;
	}
	if (!garbage->key_count || swept->path_count == DELETES_MAX) {
		swept->ready = true;
		fleet_wake_at(fleet, 0);
		return;
	}
	znode_path_key(swept->id, swept->cut, garbage->keys[garbage->key_count - 1], NULL, path);
	list = request_new(REQUEST_LIST, path, key_listed);
	if (list)
		request_send(fleet, list);
	else
		give_up(fleet);
}

/* Prints the path of the folder that has the leased keys of @swept. */
static void keys_path(const struct swept *swept, char path[ZNODE_TEXT])
{
	znode_path_key(swept->id, swept->cut, 0, NULL, path);
	*strrchr(path, '/') = '\0';
}

static void keys_listed(struct fleet *fleet, struct request *request)
{
	struct garbage *garbage = fleet->garbage;
	struct swept *swept = listed_of(fleet, request);

	if (!swept)
		return;
	garbage->key_count = 0;
	for (uint32_t i = 0; i < request->name_count && garbage->key_count < KEYS_MAX; i++) {
		if (znode_key_parse(request->names[i], &garbage->keys[garbage->key_count]))
			garbage->key_count++;
	}
	swept->keyed = garbage->key_count;
	if (swept->keyed) {
		list_key(fleet);
		return;
	}
	/* A foreign hand's nodes stay, and so does the folder. */
	if (request->answer == ANSWER_OK && !request->name_count) {
		if (!make_room(swept, 1)) {
			give_up(fleet);
			return;
		}
		keys_path(swept, swept->paths[swept->path_count++]);
	}
	list_folder(fleet);
}

static void list_keys(struct fleet *fleet)
{
	struct request *list;
	char path[ZNODE_TEXT];

	keys_path(fleet->garbage->current, path);
	list = request_new(REQUEST_LIST, path, keys_listed);
	if (list)
		request_send(fleet, list);
	else
		give_up(fleet);
}

/* An id is never used twice, so one that is not there any more does not come back. */
static void looked_up(struct fleet *fleet, struct request *request)
{
	struct swept *swept = fleet->garbage->current;
	char error[ERROR_TEXT];
	struct record record = {0};
	bool understood;

	if (!swept)
		return;
	if (request->answer != ANSWER_OK && request->answer != ANSWER_NO_NODE) {
		give_up(fleet);
		return;
	}
	swept->named = request->answer == ANSWER_OK;
	understood = swept->named && !record_parse(request->data, &record, error);
	record_drop(&record);
	if (swept->named && (!understood || (!record.removed && record.cut == swept->cut))) {
		forget(fleet, swept);
		return;
	}
	swept->whole = !swept->named || (record.removed && record.cut == swept->cut);
	list_keys(fleet);
}

static void end_looked_up(struct fleet *fleet, struct request *request)
{
	struct swept *swept = fleet->garbage->current;

	if (!swept)
		return;
	if (request->answer == ANSWER_OK) {
		swept->ready = true;
		fleet_wake_at(fleet, 0);
	} else if (request->answer == ANSWER_NO_NODE) {
		forget(fleet, swept);
	} else {
		give_up(fleet);
	}
}

static bool add_delete(struct request *request, const char *path)
{
	return request_add(request, OPERATION_DELETE, path, NULL, NODE_VERSION_ANY, 0);
}

/* Adds nodes that lie beside the folders. A name that was left by a rename has its record alone. */
static bool add_whole(const struct swept *swept, struct request *request)
{
	static const enum znode_kind kinds[] = {ZNODE_CLAIMS, ZNODE_AGREED_RATE};
	char path[ZNODE_TEXT];
	bool added = true;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && swept->there[0] && added; i++) {
		znode_path(kinds[i], swept->id, path);
		added = add_delete(request, path);
	}
	znode_path(ZNODE_RECORD, swept->id, path);
	return added && (!swept->named || add_delete(request, path));
}

static bool add_deletes(const struct swept *swept, struct request *request)
{
	char path[ZNODE_TEXT];
	bool added = true;

	if (*swept->hid) {
		end_path(swept, path);
		return add_delete(request, path);
	}
	for (uint32_t i = 0; i < swept->path_count && i < DELETES_MAX && added; i++)
		added = add_delete(request, swept->paths[i]);
	if (swept->partly)
		return added;
	for (uint32_t i = 0; i < swept->listed && added; i++) {
		path_in(swept, i, NULL, path);
		added = !swept->there[i] || add_delete(request, path);
	}
	return added && (!swept->whole || add_whole(swept, request));
}

/*
 * Tells whether @swept is still garbage by the settings that the transaction checks, and whether
 * there is anything of it.
 */
static bool is_garbage(const struct fleet *fleet, const struct swept *swept)
{
	const struct holding *holding = *swept->hid ? NULL : holdings_find(fleet, swept->id);

	if (holding && (swept->whole || holding->cut == swept->cut))
		return false;
	return *swept->hid || swept->path_count || swept->there[0] || swept->there[1] ||
	       (swept->whole && swept->named);
}

static bool send_deletes(struct fleet *fleet)
{
	struct swept *swept = fleet->garbage->current;
	struct request *request;

	if (!is_garbage(fleet, swept)) {
		forget(fleet, swept);
		return false;
	}
	swept->partly = swept->keyed || swept->path_count > DELETES_MAX;
	request = transaction_begin(fleet, TRANSACTION_SWEEP);
	if (!request || !add_deletes(swept, request)) {
		if (request)
			transaction_give_up(fleet, request);
		give_up(fleet);
		return false;
	}
	free_paths(swept);
	transaction_send(fleet, request);
	return true;
}

void garbage_answered(struct fleet *fleet, const struct request *request)
{
	struct swept *swept = fleet->garbage->current;

	if (!swept)
		return;
	if (request->answer == ANSWER_OK && !swept->partly) {
		forget(fleet, swept);
	} else if (request->answer == ANSWER_OK) {
		swept->tries = 0;
		if (swept->keyed && fleet->garbage->key_count) {
			list_key(fleet);
			return;
		}
		swept->not_before_ns = 0;
		fleet->garbage->current = NULL;
	} else {
		give_up(fleet);
	}
}

/* Looks for the node that tells whether @swept is garbage. False: there is no memory. */
static bool look_up(struct fleet *fleet, struct swept *swept)
{
	struct request *request;
	char path[ZNODE_TEXT];

	if (*swept->hid)
		end_path(swept, path);
	else
		znode_path(ZNODE_RECORD, swept->id, path);
	request = request_new(REQUEST_GET, path, *swept->hid ? end_looked_up : looked_up);
	if (!request)
		return false;
	fleet->garbage->current = swept;
	request_send(fleet, request);
	return true;
}

bool garbage_send(struct fleet *fleet)
{
	uint64_t now_ns = fleet->clocks.waiter_ns;

	if (fleet->garbage->current)
		return fleet->garbage->current->ready && send_deletes(fleet);
	for (struct swept *s = fleet->garbage->first; s; s = s->next) {
		if (s->not_before_ns > now_ns)
			fleet_wake_at(fleet, fleet->now_ns + s->not_before_ns - now_ns);
		else if (look_up(fleet, s))
			return false;
	}
	return false;
}

void garbage_forget(struct fleet *fleet)
{
	if (fleet->garbage->current)
		free_paths(fleet->garbage->current);
	fleet->garbage->current = NULL;
}

void garbage_free(struct fleet *fleet)
{
	struct garbage *garbage = fleet->garbage;

	if (!garbage)
		return;
	garbage_forget(fleet);
	while (garbage->first) {
		struct swept *next = garbage->first->next;

		chains_remove(&garbage->by_id, &garbage->first->link);
		free(garbage->first);
		garbage->first = next;
	}
	free(garbage);
}
