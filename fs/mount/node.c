/* node - files by number and by name, see node.h. */
#include "fs/mount/daemon.h"
#include "fs/mount/node.h"
#include "fs/mount/partitions.h"
#include "fs/state/parameter.h"
#include "fs/state/state.h"

#include "core/limiter/keys.h"
#include "core/limiter/units.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ROW_BITS = 8, PARTITION_BITS = 16 };
enum { PIECE_BITS = 24, PIECE_ROW_BITS = 3 };

static_assert(NODE_ROWS_MAX == 1 << ROW_BITS, "a row fits its bits");
static_assert(PARTITIONS_MAX + RESERVE_HOSTS_MAX < 1 << PARTITION_BITS, "a partition fits, too");

static_assert(STATE_PIECES_MAX <= 1 << PIECE_BITS, "a piece fits");

enum { TEXT_SIZE = 4096 };

/* Directory positions: rows first, then limiters by id, and other members. */
static const uint64_t FIRST_MEMBER = UINT64_C(1) << 32;

/* Set in the numbers of keys and their files, which nothing else has. */
static const fuse_ino_t KEY_MARK = UINT64_C(1) << 62;

/* Likewise of pieces. */
static const fuse_ino_t PIECE_MARK = UINT64_C(1) << 61;

struct node node_of(const struct node_row *row, struct limiter *limiter, uint32_t partition)
{
	return (struct node){row, limiter, partition, 1, 1, NEVER_NS, NULL, NULL, NULL};
}

static struct node node_of_key(const struct node_row *row, struct limiter *limiter, struct key *key)
{
	return (struct node){row, limiter, 0, 1, 1, NEVER_NS, NULL, key, NULL};
}

struct node node_of_limiter(struct limiter *limiter)
{
	return node_of(&NODES[limiter_is_root(limiter) ? NODE_ROOT : NODE_LIMITER], limiter, 0);
}

/* Returns the place of @row, one of a piece's, among these: the piece itself is 0. */
static fuse_ino_t piece_row_number(const struct node_row *row)
{
	fuse_ino_t number = 0;

	for (const struct node_row *r = NODES; row != &NODES[NODE_PIECE] && r <= row; r++)
		number += r->place == NODE_PIECE;
	return number;
}

/* Finds the row at place @number. NULL: there is none. */
static const struct node_row *piece_row(fuse_ino_t number)
{
	if (!number)
		return &NODES[NODE_PIECE];
	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		if (NODES[i].place == NODE_PIECE && !--number)
			return &NODES[i];
	}
	return NULL;
}

static fuse_ino_t encode_node(const struct daemon *daemon, const struct node *node)
{
	fuse_ino_t row = state_row_number(daemon->state, (unsigned int)(node->row - NODES));

	if (partitions_is_of_piece(node->row))
		return PIECE_MARK | (fuse_ino_t)node->limiter->id << (PIECE_BITS + PIECE_ROW_BITS) |
		       (fuse_ino_t)(node->partition - 1) << PIECE_ROW_BITS |
		       piece_row_number(node->row);
	if (node->key)
		return KEY_MARK | node->key->id << ROW_BITS | row;
	return (fuse_ino_t)node->limiter->id << (ROW_BITS + PARTITION_BITS) |
	       (fuse_ino_t)node->partition << ROW_BITS | row;
}

/* Tells whether @node is a file with a number in its name, which that of the kernel cannot hold. */
static bool has_parameter(const struct node *node)
{
	return !node->row->name && node->row->kind->read;
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

static int decode_piece(struct daemon *daemon, fuse_ino_t ino, struct node *node)
{
	const struct node_row *row = piece_row(ino & ((1 << PIECE_ROW_BITS) - 1));
	uint32_t piece = ino >> PIECE_ROW_BITS & ((1 << PIECE_BITS) - 1);
	fuse_ino_t id = (ino & ~PIECE_MARK) >> (PIECE_BITS + PIECE_ROW_BITS);
	struct limiter *limiter = tree_find_id(&daemon->engine.tree, (uint32_t)id);

	if (!row || id > UINT32_MAX || !limiter || !partitions_has(row, limiter, piece + 1))
		return -ESTALE;
	*node = node_of(row, limiter, piece + 1);
	return 0;
}

static int decode_plain(struct daemon *daemon, fuse_ino_t plain, struct node *node)
{
	uint8_t row = state_row(daemon->state, plain & ((1 << ROW_BITS) - 1));
	uint64_t partition = plain >> ROW_BITS & ((1 << PARTITION_BITS) - 1);

	if (!row || plain >> (ROW_BITS + PARTITION_BITS) > UINT32_MAX)
		return -ESTALE;
	*node = node_of(&NODES[row],
			tree_find_id(&daemon->engine.tree,
				     (uint32_t)(plain >> (ROW_BITS + PARTITION_BITS))),
			(uint32_t)partition);
	if (!node->limiter || !partitions_has(node->row, node->limiter, node->partition))
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
		plain = parameter->name.node;
	}
	err = plain & KEY_MARK	   ? decode_key(daemon, plain, node)
	      : plain & PIECE_MARK ? decode_piece(daemon, plain, node)
				   : decode_plain(daemon, plain, node);
	if (err)
		return err;
	if (parameter) {
		node->tokens = parameter->name.tokens;
		node->most = parameter->name.most;
		node->within_ns = parameter->name.within_ns;
		node->amounts = parameter_amounts(daemon->parameters, parameter);
	}
	return 0;
}

/* Refuses @node, which @name is in take or eta, and tells @why in last_error. */
static int refuse_parameter(struct daemon *daemon, const struct node *node, uint32_t uid, int err,
			    const char *name, const char *why)
{
	const struct node_row *directory = &NODES[node->row->place];

	daemon_refused(daemon, uid, node->limiter, directory, "'%.200s': %s", name, why);
	return err == -ERANGE ? err : -ENOENT;
}

/* Says why the tokens, or the time, are refused. */
static const char *why_not_tokens(int err)
{
	return err == -ERANGE ? "out of bounds: tokens are a whole number from 0 to 10T"
			      : "not a number of tokens: such as 250 or 64Ki, or with units "
				"1,tpm=250";
}

static const char *why_not_take(int err)
{
	return err == -ERANGE ? "out of bounds: N is from 0 to 10T; of A-B, A is from 1 and B from "
				"A to 10T"
			      : "not a number of tokens: such as 250 or 64Ki, or 1-250 for up to "
				"250, or with units 1,tpm=250; ,within=DURATION comes last";
}

static const char *why_not_within(int err)
{
	return err == -ERANGE ? "out of bounds: a time is whole nanoseconds, up to 3650d"
			      : DURATION_WHY;
}

static const char WITHIN[] = ",within=";
static const char SLOT_WITHIN[] = "slot,within=";

/* Copies @name up to its time, if it has one. Returns the length. */
static size_t copy_amounts(const char *name, char amounts[NAME_BYTES_MAX + 1])
{
	const char *within = strstr(name, WITHIN);
	size_t length = within ? (size_t)(within - name) : strlen(name);

	memcpy(amounts, name, length);
	amounts[length] = '\0';
	return length;
}

/* Gives @node the amounts of units in @name, which were parsed into daemon->amounts. */
static int name_units(struct daemon *daemon, const char *name, uint32_t uid, struct node *node)
{
	for (uint64_t i = 0; i < daemon->amounts.count; i++) {
		if (!units_know(node->limiter, node_is_below(node->row, NODE_KEY),
				daemon->amounts.of[i].unit))
			return refuse_parameter(daemon, node, uid, -ENOENT, name,
						"no rate of the limiter, or above it, has that "
						"unit");
	}
	node->amounts = daemon->amounts.count ? &daemon->amounts : NULL;
	return 0;
}

/* Finds `N`, `UNIT=N`, or several of these, in eta. */
static int find_eta(struct daemon *daemon, const struct node *parent, const struct node_row *row,
		    const char *name, uint32_t uid, struct node *node)
{
	int err;

	*node = node_of_key(row, parent->limiter, parent->key);
	if (strstr(name, WITHIN))
		return refuse_parameter(daemon, node, uid, -EINVAL, name,
					"eta has nothing after the numbers");
	err = amounts_parse(name, &node->tokens, &daemon->amounts);
	if (err)
		return refuse_parameter(daemon, node, uid, err, name, why_not_tokens(err));
	node->most = node->tokens;
	return name_units(daemon, name, uid, node);
}

/*
 * Finds `N`, `A-B`, `UNIT=N` or several of these, which `,within=DURATION` may follow, in take.
 * @row is that of `N`.
 */
static int find_take(struct daemon *daemon, const struct node *parent, const struct node_row *row,
		     const char *name, uint32_t uid, struct node *node)
{
	char amounts[NAME_BYTES_MAX + 1];
	const char *rest = name + copy_amounts(name, amounts);
	int err;

	*node = node_of_key(row, parent->limiter, parent->key);
	err = amounts_parse_take(amounts, &node->tokens, &node->most, &daemon->amounts);
	if (err)
		return refuse_parameter(daemon, node, uid, err, name, why_not_take(err));
	if (node->most > node->tokens)
		node->row =
			&NODES[row == &NODES[NODE_TAKE_N] ? NODE_TAKE_RANGE : NODE_KEY_TAKE_RANGE];
	if (*rest) {
		err = duration_parse(rest + strlen(WITHIN), &node->within_ns);
		if (err)
			return refuse_parameter(daemon, node, uid, err, name, why_not_within(err));
	}
	return name_units(daemon, name, uid, node);
}

static bool is_slot_within(const char *name)
{
	return !strncmp(name, SLOT_WITHIN, strlen(SLOT_WITHIN));
}

/* Finds `slot,within=DURATION` in a limiter, or in a key. */
static int find_slot(struct daemon *daemon, const struct node *parent, const struct node_row *row,
		     const char *name, uint32_t uid, struct node *node)
{
	int err;

	if (!is_slot_within(name))
		return -ENOENT;
	*node = node_of_key(row, parent->limiter, parent->key);
	err = duration_parse(name + strlen(SLOT_WITHIN), &node->within_ns);
	return err ? refuse_parameter(daemon, node, uid, err, name, why_not_within(err)) : 0;
}

static int find_key(struct daemon *daemon, const struct node *parent, const struct node_row *row,
		    const char *name, uint32_t uid, struct node *node)
{
	struct key *key;
	int err;

	if (!*name || *name == '.')
		return -ENOENT;
	/* Its removal may be due by now: it is held. */
	limiter_hold(parent->limiter);
	err = engine_key(&daemon->engine, parent->limiter, name, uid, clock_ns(), &key);
	limiter_drop(parent->limiter);
	state_keys(daemon->state);
	if (err == -ENODEV)
		return -ESTALE;
	if (err == -ENOSPC && !daemon_has_room(daemon, uid, BOUND_KEYS))
		daemon_refused(daemon, uid, parent->limiter, parent->row,
			       "'%.200s': keys_max keys are in use, and none is idle", name);
	if (!err)
		*node = node_of_key(row, parent->limiter, key);
	return err;
}

static int find_limiter(struct daemon *daemon, const struct node *parent,
			const struct node_row *row, const char *name, uint32_t uid,
			struct node *node)
{
	struct limiter *limiter = tree_find(&daemon->engine.tree, parent->limiter, name);

	if (limiter)
		*node = node_of_limiter(limiter);
	else if (row == &NODES[NODE_SLOT_WITHIN])
		return find_slot(daemon, parent, row, name, uid, node);
	return limiter ? 0 : -ENOENT;
}

int node_find(struct daemon *daemon, const struct node *parent, const char *name, uint32_t uid,
	      struct node *node)
{
	enum node_id place = (enum node_id)(parent->row - NODES);
	const struct node_row *nameless = NULL;

	if (strlen(name) > NAME_BYTES_MAX)
		return -ENAMETOOLONG;
	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		if (NODES[i].place != place)
			continue;
		if (!NODES[i].name) {
			nameless = nameless ? nameless : &NODES[i];
		} else if (!strcmp(NODES[i].name, name)) {
			*node = node_of(&NODES[i], parent->limiter, parent->partition);
			node->key = parent->key;
			return 0;
		}
	}
	if (!parent->row->kind->find)
		return -ENOENT;
	return parent->row->kind->find(daemon, parent, nameless, name, uid, node);
}

const struct limiter *node_place_keeper(const struct limiter *limiter)
{
	return limiter_is_root(limiter->parent) ? limiter : limiter->parent;
}

/* Returns the limiter whose owner and mode @node follows. */
static const struct limiter *keeper_of(const struct node *node)
{
	return node->row->access == ACCESS_PLACE ? node_place_keeper(node->limiter) : node->limiter;
}

static mode_t mode_of(const struct node *node)
{
	mode_t access = keeper_of(node)->access;

	switch (node->row->access) {
	case ACCESS_LIMITER:
		return S_IFDIR | access;
	case ACCESS_DIRECTORY:
		return S_IFDIR | (access & 0555);
	case ACCESS_USE:
		return S_IFREG | (access & 0444);
	case ACCESS_REPORT:
		return S_IFREG | (access & 0444) >> 1;
	case ACCESS_WATCH:
		return S_IFREG | (access & 0444) | (access & 0444) >> 1;
	case ACCESS_OWNER:
		return S_IFREG | 0600;
	case ACCESS_TUNE:
	case ACCESS_PLACE:
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
	const struct node_kind *kind = node->row->kind;

	if (!kind->read)
		return 0;
	return kind->size ? kind->size(node) : TEXT_SIZE;
}

/* Returns the name by which @node, whose number without it is @ino, is remembered. */
static struct parameter_name parameter_name_of(fuse_ino_t ino, const struct node *node)
{
	return (struct parameter_name){ino, node->tokens, node->most, node->within_ns,
				       node->amounts ? node->amounts->count : 0};
}

static fuse_ino_t number_of(struct daemon *daemon, const struct node *node)
{
	fuse_ino_t ino = encode_node(daemon, node);
	struct parameter_name name;
	fuse_ino_t known;

	if (!has_parameter(node))
		return ino;
	name = parameter_name_of(ino, node);
	known = parameter_known(daemon->parameters, &name, node->amounts);
	return known ? known : ino;
}

void node_attributes(struct daemon *daemon, const struct node *node, uint32_t uid,
		     struct stat *attributes)
{
	const struct limiter *limiter = node->limiter;
	const struct refusal *refusal = node->row->own ? refusals_last(&daemon->refusals, uid)
						       : NULL;
	bool setting = node->row->kind->is_setting;

	*attributes = (struct stat){
		.st_ino = number_of(daemon, node),
		.st_mode = mode_of(node),
		.st_nlink = 1,
		.st_uid = keeper_of(node)->uid,
		.st_gid = keeper_of(node)->gid,
		.st_size = size_of(node),
		.st_blksize = TEXT_SIZE,
		.st_blocks = TEXT_SIZE / 512, /* with none, cp would take it for a hole */
	};
	attributes->st_mtim = daemon->began;
	attributes->st_mtim.tv_sec += setting ? limiter_changed_s(limiter, node->row->setting)
					      : limiter->made_s;
	if (refusal)
		attributes->st_mtim = refusal->at;
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
	struct parameter_name name;
	int err;

	*entry = (struct fuse_entry_param){.attr_timeout = node->row->own ? 0 : ATTRIBUTES_S,
					   .entry_timeout = ENTRY_S};
	if (has_parameter(node)) {
		name = parameter_name_of(encode_node(daemon, node), node);
		/*
		 * The kernel may know names in forgotten keys for ever. Two for one: see
		 * keys_get().
		 */
		parameter_sweep(daemon->parameters, 2, is_gone, daemon);
		if (!parameter_known(daemon->parameters, &name, node->amounts) &&
		    !parameter_make_room(daemon->parameters, uid))
			return daemon_has_room(daemon, uid, BOUND_NAMES);
		err = parameter_get(daemon->parameters, &name, node->amounts, uid);
		if (err)
			return err;
	}
	node_attributes(daemon, node, uid, &entry->attr);
	entry->ino = entry->attr.st_ino;
	return 0;
}

void node_forget(struct daemon *daemon, fuse_ino_t ino, uint64_t lookups)
{
	if (parameter_is(ino))
		parameter_put(daemon->parameters, ino, lookups);
}

fuse_ino_t node_opened(struct daemon *daemon, const struct node *node)
{
	fuse_ino_t ino = number_of(daemon, node);

	parameter_open(daemon->parameters, ino);
	return ino;
}

void node_closed(struct daemon *daemon, fuse_ino_t ino)
{
	parameter_close(daemon->parameters, ino);
}

/* Finds the limiter in @node with @id or, if it is gone, the next one. */
static struct limiter *member_at(struct daemon *daemon, const struct node *node, uint64_t id)
{
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

bool node_add_member(struct node_listing *listing, const struct daemon *daemon, const char *name,
		     const struct node *member, uint64_t i)
{
	return listing->add(listing, name, encode_node(daemon, member), S_IFDIR,
			    FIRST_MEMBER + i + 1);
}

static void list_limiters(struct daemon *daemon, const struct node *node, uint64_t first,
			  struct node_listing *listing)
{
	struct limiter *l = member_at(daemon, node, first);

	for (; l; l = l->next_sibling) {
		struct node member = node_of(&NODES[NODE_LIMITER], l, 0);

		if (!node_add_member(listing, daemon, l->name, &member, l->id))
			return;
	}
}

static void list_keys(struct daemon *daemon, const struct node *node, uint64_t first,
		      struct node_listing *listing)
{
	uint64_t place = first;
	struct key *key;

	for (; (key = keys_from(node->limiter, &place)); place++) {
		struct node member = node_of_key(&NODES[NODE_KEY], node->limiter, key);

		if (!node_add_member(listing, daemon, key->name, &member, place))
			return;
	}
}

void node_list(struct daemon *daemon, const struct node *node, uint64_t position,
	       struct node_listing *listing)
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
		if (!listing->add(listing, NODES[position].name, encode_node(daemon, &member),
				  mode_of(&member) & S_IFMT, position + 1))
			return;
	}
	if (node->row->kind->list)
		node->row->kind->list(daemon, node,
				      position < FIRST_MEMBER ? 0 : position - FIRST_MEMBER,
				      listing);
}

const struct node_kind PLAIN_DIRECTORY = {0};
const struct node_kind LIMITERS_DIRECTORY = {.find = find_limiter, .list = list_limiters};
const struct node_kind TAKES_DIRECTORY = {.find = find_take};
const struct node_kind ETAS_DIRECTORY = {.find = find_eta};
const struct node_kind KEYS_DIRECTORY = {.find = find_key, .list = list_keys};
const struct node_kind KEY_DIRECTORY = {.find = find_slot};

bool node_is_below(const struct node_row *row, enum node_id id)
{
	for (; row != &NODES[NODE_ROOT] && row != &NODES[NODE_NONE]; row = &NODES[row->place]) {
		if (row->place == id)
			return true;
	}
	return false;
}

/* Tells whether the files of a row are known by the limiter's number alone. */
static bool is_of_limiter(const struct node_row *row)
{
	return row->name && !node_is_below(row, NODE_PARTITION) && !partitions_is_of_piece(row) &&
	       !node_is_below(row, NODE_KEY);
}

void node_owner_changed(struct daemon *daemon, const struct limiter *limiter)
{
	struct node node = {.limiter = (struct limiter *)limiter};

	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		node.row = &NODES[i];
		if (i == NODE_ROOT || i == NODE_LIMITER || is_of_limiter(node.row))
			fuse_lowlevel_notify_inval_inode(daemon->fuse, encode_node(daemon, &node),
							 -1, 0);
	}
}

static void row_path(unsigned int row, char path[STATE_ROW_TEXT])
{
	node_path(&NODES[row], path);
}

int node_init(struct daemon *daemon)
{
	const struct state_server server = {&daemon->engine, &daemon->began, NODE_COUNT, row_path};
	uint32_t *used;
	struct amounts *amounts;
	struct parameter *places = state_parameters(daemon->state, &amounts, &used);

	state_attach(daemon->state, &server);
	daemon->parameters = parameter_table_new(places, amounts, used, state_base(daemon->state),
						 &daemon->engine.users,
						 daemon->engine.schedule.key_seed);
	return daemon->parameters ? 0 : -ENOMEM;
}

void node_free(struct daemon *daemon)
{
	parameter_table_free(daemon->parameters);
}

bool node_name_is_taken(const char *name)
{
	for (unsigned int i = NODE_ROOT; i < NODE_COUNT; i++) {
		if (NODES[i].name && !strcmp(name, NODES[i].name) &&
		    (NODES[i].place == NODE_ROOT || NODES[i].place == NODE_LIMITER))
			return true;
	}
	return is_slot_within(name);
}

void node_file(const struct limiter *limiter, const struct node_row *row, char file[NODE_FILE_TEXT])
{
	static const char above[] = "LIMITER";
	char path[PATH_TEXT] = "", within[NODE_PATH_TEXT];
	const char *rest = within;

	node_path(row, within);
	if (!strncmp(within, above, strlen(above))) {
		tree_path(limiter->is_key || limiter->partition ? limiter->parent : limiter, path);
		rest += strlen(above);
	}
	snprintf(file, NODE_FILE_TEXT, "%s%s", path, *path || *rest ? rest : "/");
}

void node_path(const struct node_row *row, char path[NODE_PATH_TEXT])
{
	if (row == &NODES[NODE_ROOT]) {
		*path = '\0';
		return;
	}
	node_path(&NODES[row->place], path);
	snprintf(path + strlen(path), NODE_PATH_TEXT - strlen(path), "%s%s",
		 row->name ? row->name : row->label,
		 row->name && row->access == ACCESS_DIRECTORY ? "/" : "");
}
