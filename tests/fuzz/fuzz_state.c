/*
 * fuzz_state - the state that a server that runs wild may leave to its successor: that of a server
 * with limiters, open files, partitions, a slot, keys and a reader that waits, in which some bytes
 * are others. The successor refuses it and moves it aside, or goes on with it, answers the requests
 * that the kernel sends again, and does as it is asked.
 *
 * An input is a byte for how many places are others, whether sums are made right, and which part is
 * given up; for each place four bytes for where it is, one for its length, and its bytes; then a
 * script as of fuzz_request. The places in the seeds are those of STATE_VERSION 12.
 */
#include "fuzz.h"
#include "server.h"

#include "fs/state/inside.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	EXTENTS_MAX = 64,
	PLACES_MASK = 7,
	SUMS_RIGHT = 8,
	PART_BITS = 4,
	AFTERWARDS = 32,
	RESENT_MAX = 4096
};

/* The parts of the state's memory that hold anything. */
static struct extent {
	off_t at;
	size_t size;
	uint8_t *bytes;
} extents[EXTENTS_MAX];
static size_t extent_count, bytes_count;

/* The request that waits in it. */
static struct {
	struct fuse_in_header header;
	struct fuse_read_in read;
} waiting;

static uint64_t look_up(struct server *server, uint64_t parent, const char *name)
{
	server_ask(server, FUSE_LOOKUP, parent, name, strlen(name) + 1);
	return server->nodes[(server->node_count - 1) % SERVER_KNOWN_MAX];
}

static uint64_t open_file(struct server *server, uint64_t node, uint32_t flags)
{
	const struct fuse_open_in in = {.flags = flags};

	server_ask(server, FUSE_OPEN, node, &in, sizeof(in));
	return server->files[(server->file_count - 1) % SERVER_KNOWN_MAX].number;
}

static uint64_t make(struct server *server, uint64_t parent, const char *name)
{
	struct {
		struct fuse_mkdir_in in;
		char name[8];
	} body = {.in = {.mode = 0755}};

	strcpy(body.name, name);
	server_ask(server, FUSE_MKDIR, parent, &body, sizeof(body.in) + strlen(name) + 1);
	return server->nodes[(server->node_count - 1) % SERVER_KNOWN_MAX];
}

static void set(struct server *server, uint64_t limiter, const char *file, const char *text)
{
	uint64_t node = look_up(server, limiter, file);
	struct {
		struct fuse_write_in in;
		char text[32];
	} body = {.in = {.fh = open_file(server, node, O_WRONLY), .size = (uint32_t)strlen(text)}};

	strcpy(body.text, text);
	server_ask(server, FUSE_WRITE, node, &body, sizeof(body.in) + strlen(text));
}

static void read_file(struct server *server, uint64_t node)
{
	waiting.read = (struct fuse_read_in){.fh = open_file(server, node, O_RDONLY),
					     .size = 4096,
					     .read_flags = FUSE_READ_LOCKOWNER,
					     .lock_owner = 1};
	server_ask(server, FUSE_READ, node, &waiting.read, sizeof(waiting.read));
	waiting.header = (struct fuse_in_header){.len = sizeof(waiting),
						 .opcode = FUSE_READ,
						 .unique = server->unique | SERVER_RESEND,
						 .nodeid = node};
}

/* Opens files of partitions and of the reserve, some of which are gone then. */
static void share(struct server *server, uint64_t limiter)
{
	uint64_t partitions = look_up(server, limiter, "partitions");

	set(server, partitions, "count", "4096");
	set(server, partitions, "reserve", "1/d hosts=8");
	open_file(server, look_up(server, look_up(server, partitions, "r2"), "token"), O_RDONLY);
	set(server, partitions, "reserve", "none");
	set(server, partitions, "count", "20");
	open_file(server, look_up(server, look_up(server, partitions, "3"), "token"), O_RDONLY);
	open_file(server, look_up(server, look_up(server, partitions, "15"), "token"), O_RDONLY);
	open_file(server, look_up(server, look_up(server, partitions, "15"), "rate"), O_RDONLY);
	set(server, partitions, "count", "5");
}

static void live(struct server *server)
{
	uint64_t orders = make(server, FUSE_ROOT_ID, "orders");
	uint64_t child = make(server, orders, "eu");
	uint64_t take, keys;

	share(server, make(server, FUSE_ROOT_ID, "shared"));
	set(server, orders, "rate", "3/d 5000/d:9");
	set(server, orders, "adapt", "aimd");
	set(server, orders, "feedback", "throttled");
	set(server, child, "concurrency", "2");
	set(server, child, "key_rate", "1/s");
	open_file(server, look_up(server, child, "slot"), O_RDONLY);
	keys = look_up(server, look_up(server, child, "keys"), "anna");
	read_file(server, look_up(server, keys, "token"));
	take = look_up(server, look_up(server, orders, "take"), "7");
	read_file(server, take);
	FUZZ_CHECK(server->asked[server->unique]);
}

static void keep(int descriptor)
{
	off_t from = 0, until;

	while ((from = lseek(descriptor, from, SEEK_DATA)) >= 0) {
		struct extent *extent = &extents[extent_count++];

		FUZZ_CHECK(extent_count <= EXTENTS_MAX);
		until = lseek(descriptor, from, SEEK_HOLE);
		*extent = (struct extent){from, (size_t)(until - from),
					  malloc((size_t)(until - from))};
		FUZZ_CHECK(extent->bytes);
		FUZZ_CHECK(pread(descriptor, extent->bytes, extent->size, from) ==
			   (ssize_t)extent->size);
		bytes_count += extent->size;
		from = until;
	}
}

static void make_original(void)
{
	static struct server server;
	int descriptor = server_memory(), copy = dup(descriptor);

	FUZZ_CHECK(server_start(&server, descriptor, 0, NULL, 0));
	live(&server);
	keep(copy);
	server_stop(&server);
	close(copy);
}

/* Writes @bytes at @place, counted over the extents. */
static void spoil(int descriptor, uint32_t place, const uint8_t *bytes, size_t size)
{
	size_t at = place % bytes_count;
	const struct extent *extent = extents;

	while (at >= extent->size)
		at -= (extent++)->size;
	size = size < extent->size - at ? size : extent->size - at;
	FUZZ_CHECK(pwrite(descriptor, bytes, size, extent->at + (off_t)at) == (ssize_t)size);
}

/* Makes the sums of both logs right, as far as their records can be followed. */
static void make_sums_right(int descriptor)
{
	enum { ENOUGH = 1 << 16 };

	for (int log = 0; log < 2; log++) {
		off_t at = (off_t)(STATE_HEADER_BYTES + (uint64_t)log * STATE_LOG_BYTES);
		char *bytes = mmap(NULL, ENOUGH, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
				   at);
		size_t left = ENOUGH;

		FUZZ_CHECK(bytes != MAP_FAILED);
		for (char *next = bytes; left >= sizeof(struct log_record);) {
			struct log_record *record = (struct log_record *)next;

			if (record->bytes < sizeof(*record) || record->bytes > left ||
			    record->bytes % sizeof(uint64_t))
				break;
			record->sum = state_sum(record);
			next += record->bytes;
			left -= record->bytes;
		}
		munmap(bytes, ENOUGH);
	}
}

/* Gives up a part of the state behind @descriptor, as a server does that can read it. */
static void give_up(int descriptor, enum state_part part)
{
	struct state *state = state_open(dup(descriptor), 1);

	FUZZ_CHECK(state);
	if (!state_is_strange(state))
		state_give_up(state, part);
	state_close(state);
}

static int copy_original(void)
{
	int descriptor = server_memory();

	for (size_t i = 0; i < extent_count; i++)
		FUZZ_CHECK(pwrite(descriptor, extents[i].bytes, extents[i].size, extents[i].at) ==
			   (ssize_t)extents[i].size);
	return descriptor;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	enum { PLACE = 5 }; /* bytes before those of a place */
	static struct server server;
	uint8_t head = size ? *input : 0;
	int descriptor, copy;

	if (!extent_count)
		make_original();
	descriptor = copy_original();
	copy = dup(descriptor);
	if (size) {
		input++;
		size--;
	}
	for (int places = head & PLACES_MASK; places && size > PLACE; places--) {
		size_t length = input[PLACE - 1];
		uint32_t place;

		memcpy(&place, input, sizeof(place));
		input += PLACE;
		size -= PLACE;
		length = length < size ? length : size;
		spoil(descriptor, place, input, length);
		input += length;
		size -= length;
	}
	if (head & SUMS_RIGHT)
		make_sums_right(descriptor);
	give_up(descriptor, (enum state_part)((head >> PART_BITS) % (STATE_ALL + 1)));
	if (server_start(&server, descriptor, 1, &waiting, sizeof(waiting))) {
		server_play(&server, input, size, AFTERWARDS);
		server_stop(&server);
		close(copy);
		return 0;
	}
	/* It was refused: a state that is moved aside does not hinder the next server. */
	struct state *state = state_open(copy, 1);

	FUZZ_CHECK(state && !state_set_aside(state) && !state_is_strange(state));
	state_close(state);
	return 0;
}
