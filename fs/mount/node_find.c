/* node_find - files by number and by name, see node.h. */
#include "fs/mount/handle.h"
#include "fs/mount/node.h"
#include "fs/mount/show.h"
#include "fs/state/parameter.h"
#include "fs/state/state.h"

#include "core/limiter/keys.h"
#include "core/limiter/partition.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BITS = 8, PARTITION_BITS = 16 };

static_assert(NODE_ROWS_MAX == 1 << ROW_BITS, "a row fits its bits");
static_assert(PARTITIONS_MAX + RESERVE_HOSTS_MAX < 1 << PARTITION_BITS, "a partition fits, too");

enum { TEXT_SIZE = 4096 };

/* Directory positions: rows first, then limiters by id or partitions by index. */
static const uint64_t FIRST_MEMBER = UINT64_C(1) << 32;

/* Set in the numbers of keys and their files, which nothing else has. */
static const fuse_ino_t KEY_MARK = UINT64_C(1) << 62;

static struct node node_of(const struct node_row *row, struct limiter *limiter, uint32_t partition)
{
	return (struct node){row, limiter, partition, 1, NEVER_NS, NULL};
}

static struct node node_of_key(const struct node_row *row, struct limiter *limiter, struct key *key)
{
	return (struct node){row, limiter, 0, 1, NEVER_NS, key};
}

struct node node_of_limiter(struct limiter *limiter)
{
	return node_of(&NODES[limiter_is_root(limiter) ? NODE_ROOT : NODE_LIMITER], limiter, 0);
}

static fuse_ino_t encode(const struct daemon *daemon, const struct node *node)
{
	fuse_ino_t row = state_row_number(daemon->state, (unsigned int)(node->row - NODES));

	if (node->key)
		return KEY_MARK | node->key->id << ROW_BITS | row;
	return (fuse_ino_t)node->limiter->id << (ROW_BITS + PARTITION_BITS) |
	       (fuse_ino_t)node->partition << ROW_BITS | row;
}

static bool has_parameter(const struct node *node)
{
	return node->row == &NODES[NODE_TAKE_N] || node->row == &NODES[NODE_ETA_N] ||
	       node->row == &NODES[NODE_KEY_TAKE_N] || node->row == &NODES[NODE_KEY_ETA_N];
}

static int decode_key(struct daemon *daemon, fuse_ino_t ino, struct node *node)
{
	uint8_t row = state_row(daemon->state, ino & ((1 << ROW_BITS) - 1));
	struct key *key = keys_find(&daemon->engine.schedule, (ino & ~KEY_MARK) >> ROW_BITS);
	struct limiter *limiter;

	if (!key || !row)
		return -ESTALE;
	/* Keys of a limiter that is gone take some time to follow. */
	limiter = tree_find_id(&daemon->engine.tree, key->level.limiter);
	if (!limiter)
		return -ESTALE;
	*node = node_of_key(&NODES[row], limiter, key);
	return 0;
}

static int decode_plain(struct daemon *daemon, fuse_ino_t plain, struct node *node)
{
	uint8_t row = state_row(daemon->state, plain & ((1 << ROW_BITS) - 1));
	uint64_t partition = plain >> ROW_BITS & ((1 << PARTITION_BITS) - 1);
	uint32_t shares;

	if (!row || plain >> (ROW_BITS + PARTITION_BITS) > UINT32_MAX)
		return -ESTALE;
	*node = node_of(&NODES[row],
			tree_find_id(&daemon->engine.tree,
				     (uint32_t)(plain >> (ROW_BITS + PARTITION_BITS))),
			(uint32_t)partition);
	if (!node->limiter || (partition && partition > partition_count(node->limiter, &shares)))
		return -ESTALE;
	return 0;
}

int node_decode(struct daemon *daemon, fuse_ino_t ino, struct node *node)
{
	const struct parameter *parameter = NULL;
	fuse_ino_t plain = ino;
	int err;

	if (parameter_is(ino)) {
		parameter = parameter_find(daemon->parameters, ino);
		if (!parameter)
			return -ESTALE;
		plain = parameter->node;
	}
	err = plain & KEY_MARK ? decode_key(daemon, plain, node)
			       : decode_plain(daemon, plain, node);
	if (err)
		return err;
	if (parameter) {
		node->tokens = parameter->tokens;
		node->within_ns = parameter->within_ns;
	}
	return 0;
}

/* Refuses @name in take or eta, and tells @why in last_error. */
static int refuse_parameter(struct daemon *daemon, uint32_t uid, int err, const char *name,
			    const char *why)
{
	daemon_refused(daemon, uid, "'%.200s': %s", name, why);
	return err == -ERANGE ? err : -ENOENT;
}

/* Says why the number of tokens, or the time, is refused. */
static const char *why_not_tokens(int err)
{
	return err == -ERANGE ? "out of bounds: tokens are a whole number from 0 to 10T"
			      : "not a number of tokens: such as 250 or 64Ki";
}

static const char *why_not_within(int err)
{
	return err == -ERANGE ? "out of bounds: a time is whole nanoseconds, up to 3650d"
			      : DURATION_WHY;
}

/* `N` or, for take, `N,within=DURATION`. */
static int find_parameter(struct daemon *daemon, const struct node *parent, const char *name,
			  uint32_t uid, struct node *node)
{
	static const char within[] = ",within=";
	static const enum node_id rows[2][2] = {{NODE_ETA_N, NODE_TAKE_N},
						{NODE_KEY_ETA_N, NODE_KEY_TAKE_N}};
	bool take = parent->row == &NODES[NODE_TAKE] || parent->row == &NODES[NODE_KEY_TAKE];
	char number[QUANTITY_TEXT];
	const char *comma = strchr(name, ',');
	size_t length = comma ? (size_t)(comma - name) : strlen(name);
	int err;

	*node = node_of_key(&NODES[rows[parent->key != NULL][take]], parent->limiter, parent->key);
	if (length >= sizeof(number))
		return refuse_parameter(daemon, uid, -EINVAL, name, why_not_tokens(-EINVAL));
	memcpy(number, name, length);
	number[length] = '\0';
	err = tokens_parse(number, &node->tokens);
	if (err)
		return refuse_parameter(daemon, uid, err, name, why_not_tokens(err));
	if (!comma)
		return 0;
	if (!take)
		return refuse_parameter(daemon, uid, -EINVAL, name,
					"eta has nothing after the number");
	if (strncmp(comma, within, strlen(within)) != 0)
		return refuse_parameter(daemon, uid, -EINVAL, name,
					"only ,within=DURATION may come after the number, such as "
					"5,within=2s");
	err = duration_parse(comma + strlen(within), &node->within_ns);
	return err ? refuse_parameter(daemon, uid, err, name, why_not_within(err)) : 0;
}

static int find_partition(const struct node *parent, const char *name, struct node *node)
{
	uint32_t shares, count = partition_count(parent->limiter, &shares);
	bool reserved = *name == 'r';
	uint64_t index;
	char canonical[QUANTITY_TEXT];

	if (count_parse(name + reserved, &index) || index >= count)
		return -ENOENT;
	count_print(index, canonical);
	if (strcmp(canonical, name + reserved) != 0 ||
	    index >= (reserved ? count - shares : shares))
		return -ENOENT;
	*node = node_of(&NODES[NODE_PARTITION], parent->limiter,
			(uint32_t)index + (reserved ? shares : 0) + 1);
	return 0;
}

static int find_key(struct daemon *daemon, const struct node *parent, const char *name,
		    uint32_t uid, struct node *node)
{
	struct key *key;
	int err;

	if (!*name || *name == '.')
		return -ENOENT;
	/* What is due until now may be that it is removed. */
	limiter_hold(parent->limiter);
	err = engine_key(&daemon->engine, parent->limiter, name, uid, clock_ns(), &key);
	limiter_drop(parent->limiter);
	state_keys(daemon->state);
	if (err == -ENODEV)
		return -ESTALE;
	if (err == -ENOSPC && !daemon_has_room(daemon, uid, BOUND_KEYS))
		daemon_refused(daemon, uid, "'%.200s': keys_max keys are in use, and none is idle",
			       name);
	if (!err)
		*node = node_of_key(&NODES[NODE_KEY], parent->limiter, key);
	return err;
}

int node_find(struct daemon *daemon, const struct node *parent, const char *name, uint32_t uid,
	      struct node *node)
{
	enum node_id place = (enum node_id)(parent->row - NODES);
	struct limiter *limiter;

	if (strlen(name) > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		if (NODES[i].place == place && NODES[i].name && !strcmp(NODES[i].name, name)) {
			*node = node_of(&NODES[i], parent->limiter, parent->partition);
			node->key = parent->key;
			return 0;
		}
	}
	if (place == NODE_TAKE || place == NODE_ETA || place == NODE_KEY_TAKE ||
	    place == NODE_KEY_ETA)
		return find_parameter(daemon, parent, name, uid, node);
	if (place == NODE_KEYS)
		return find_key(daemon, parent, name, uid, node);
	if (place == NODE_PARTITIONS)
		return find_partition(parent, name, node);
	if (place != NODE_ROOT && place != NODE_LIMITER)
		return -ENOENT;
	limiter = tree_find(&daemon->engine.tree, parent->limiter, name);
	if (!limiter)
		return -ENOENT;
	*node = node_of_limiter(limiter);
	return 0;
}

static mode_t mode_of(const struct node *node)
{
	mode_t access = node->limiter->access;

	switch (node->row->access) {
	case ACCESS_LIMITER:
		return S_IFDIR | access;
	case ACCESS_DIRECTORY:
		return S_IFDIR | (access & 0555);
	case ACCESS_USE:
		return S_IFREG | (access & 0444);
	case ACCESS_REPORT:
		return S_IFREG | (access & 0444) >> 1;
	case ACCESS_TUNE:
		break;
	}
	return S_IFREG | (access & 0666);
}

/*
 * With size 0 the kernel would tell sendfile, splice and asynchronous reads, without asking, that a
 * file is empty: `busybox cat token` would succeed without a token. The text of tokens is known,
 * and a text has the size that sysfs gives all of its own.
 *
 * A file without an end has the size of its first line. tar, rsync, tail and wc -c take that much,
 * and end. Java hands out a line at once, since it reads on only while the size says that there is
 * more. Of a large file tar would fill the disk, and Java its buffer first; with 0, tail and wc -c
 * never end.
 */
static off_t size_of(const struct node *node)
{
	char text[TOKEN_TEXT];

	if (!node->row->read)
		return 0;
	if (node->row->read == read_events)
		return EVENTS_HEAD_BYTES;
	if (node->row->read == read_tokens || node->row->read == read_try ||
	    node->row->read == read_stream)
		return (off_t)token_text(node->tokens, 0, sizeof(text), text);
	return TEXT_SIZE;
}

static fuse_ino_t number_of(struct daemon *daemon, const struct node *node)
{
	fuse_ino_t ino = encode(daemon, node);
	fuse_ino_t known;

	if (!has_parameter(node))
		return ino;
	known = parameter_known(daemon->parameters, ino, node->tokens, node->within_ns);
	return known ? known : ino;
}

void node_attributes(struct daemon *daemon, const struct node *node, struct stat *attributes)
{
	const struct limiter *limiter = node->limiter;
	bool setting = node->row->show == show_setting;

	*attributes = (struct stat){
		.st_ino = number_of(daemon, node),
		.st_mode = mode_of(node),
		.st_nlink = 1,
		.st_uid = limiter->uid,
		.st_gid = limiter->gid,
		.st_size = size_of(node),
		.st_blksize = TEXT_SIZE,
		.st_blocks = TEXT_SIZE / 512, /* with none, cp would take it for a hole */
	};
	attributes->st_mtim = daemon->began;
	attributes->st_mtim.tv_sec += setting ? limiter_changed_s(limiter, node->row->setting)
					      : limiter->made_s;
	attributes->st_ctim = attributes->st_mtim;
	attributes->st_atim = attributes->st_mtim;
}

static bool is_gone(void *daemon, uint64_t plain)
{
	struct node node;

	return node_decode(daemon, plain, &node) != 0;
}

int node_entry(struct daemon *daemon, const struct node *node, uint32_t uid,
	       struct fuse_entry_param *entry)
{
	int err;

	*entry = (struct fuse_entry_param){.attr_timeout = ATTRIBUTES_S, .entry_timeout = ENTRY_S};
	if (has_parameter(node)) {
		/* The kernel may know names in keys that were forgotten for ever. Two for one: see keys_get(). */
		parameter_sweep(daemon->parameters, 2, is_gone, daemon);
		if (!parameter_known(daemon->parameters, encode(daemon, node), node->tokens,
				     node->within_ns) &&
		    daemon_has_room(daemon, uid, BOUND_NAMES))
			return -ENOSPC;
		err = parameter_get(daemon->parameters, encode(daemon, node), node->tokens,
				    node->within_ns, uid);
		if (err)
			return err;
	}
	node_attributes(daemon, node, &entry->attr);
	entry->ino = entry->attr.st_ino;
	return 0;
}

void node_forget(struct daemon *daemon, fuse_ino_t ino, uint64_t lookups)
{
	if (parameter_is(ino))
		parameter_put(daemon->parameters, ino, lookups);
}

/* The limiter to list at @position: that with this id or, if it is gone, the next one. */
static struct limiter *member_at(struct daemon *daemon, const struct node *node, uint64_t position)
{
	uint64_t id = position - FIRST_MEMBER;
	struct limiter *l;

	if (!id)
		return node->limiter->first_child;
	l = tree_find_id(&daemon->engine.tree, (uint32_t)id);
	if (l && l->parent == node->limiter)
		return l;
	for (l = node->limiter->first_child; l && l->id < id; l = l->next_sibling)
		;
	return l;
}

static void list_limiters(struct daemon *daemon, const struct node *node, uint64_t position,
			  int (*add)(void *list, const char *name, fuse_ino_t ino, mode_t type,
				     uint64_t next),
			  void *list)
{
	struct limiter *l = member_at(daemon, node, position);

	for (; l; l = l->next_sibling) {
		struct node member = node_of(&NODES[NODE_LIMITER], l, 0);

		if (add(list, l->name, encode(daemon, &member), S_IFDIR, FIRST_MEMBER + l->id + 1))
			return;
	}
}

static void list_partitions(const struct daemon *daemon, const struct node *node, uint64_t position,
			    int (*add)(void *list, const char *name, fuse_ino_t ino, mode_t type,
				       uint64_t next),
			    void *list)
{
	uint32_t shares, count = partition_count(node->limiter, &shares);
	char name[QUANTITY_TEXT];

	for (uint64_t i = position - FIRST_MEMBER; i < count; i++) {
		struct node member = node_of(&NODES[NODE_PARTITION], node->limiter,
					     (uint32_t)i + 1);

		if (i < shares)
			snprintf(name, sizeof(name), "%u", (unsigned int)i);
		else
			snprintf(name, sizeof(name), "r%u", (unsigned int)(i - shares));
		if (add(list, name, encode(daemon, &member), S_IFDIR, FIRST_MEMBER + i + 1))
			return;
	}
}

static void list_keys(const struct daemon *daemon, const struct node *node, uint64_t position,
		      int (*add)(void *list, const char *name, fuse_ino_t ino, mode_t type,
				 uint64_t next),
		      void *list)
{
	uint64_t place = position - FIRST_MEMBER;
	struct key *key;

	for (; (key = keys_from(node->limiter, &place)); place++) {
		struct node member = node_of_key(&NODES[NODE_KEY], node->limiter, key);

		if (add(list, key->name, encode(daemon, &member), S_IFDIR,
			FIRST_MEMBER + place + 1))
			return;
	}
}

void node_list(struct daemon *daemon, const struct node *node, uint64_t position,
	       int (*add)(void *list, const char *name, fuse_ino_t ino, mode_t type, uint64_t next),
	       void *list)
{
	enum node_id place = (enum node_id)(node->row - NODES);

	for (; position < NODE_COUNT; position++) {
		struct node member;

		/* A program that reads all that it finds would read for ever. */
		if (!NODES[position].name || NODES[position].place != place ||
		    NODES[position].cost == COST_ENDLESS)
			continue;
		member = node_of(&NODES[position], node->limiter, node->partition);
		member.key = node->key;
		if (add(list, NODES[position].name, encode(daemon, &member),
			mode_of(&member) & S_IFMT, position + 1))
			return;
	}
	if (position < FIRST_MEMBER)
		position = FIRST_MEMBER;
	if (place == NODE_ROOT || place == NODE_LIMITER)
		list_limiters(daemon, node, position, add, list);
	else if (place == NODE_PARTITIONS)
		list_partitions(daemon, node, position, add, list);
	else if (place == NODE_KEYS)
		list_keys(daemon, node, position, add, list);
}

/* Whether the files of a row are known by the limiter's number alone. */
static bool is_of_limiter(const struct node_row *row)
{
	enum node_id place = row->place;

	return row->name && place != NODE_PARTITION && place != NODE_KEY;
}

void node_owner_changed(struct daemon *daemon, const struct limiter *limiter)
{
	struct node node = {.limiter = (struct limiter *)limiter};

	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		node.row = &NODES[i];
		if (i == NODE_ROOT || i == NODE_LIMITER || is_of_limiter(node.row))
			fuse_lowlevel_notify_inval_inode(daemon->session, encode(daemon, &node), -1,
							 0);
	}
}

int node_init(struct daemon *daemon)
{
	uint32_t *used;
	struct parameter *places = state_parameters(daemon->state, &used);

	daemon->parameters = parameter_table_new(places, used, state_base(daemon->state),
						 &daemon->engine.users,
						 daemon->engine.schedule.key_seed);
	return daemon->parameters ? 0 : -ENOMEM;
}

void node_free(struct daemon *daemon)
{
	parameter_table_free(daemon->parameters);
}
