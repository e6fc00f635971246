/* server - the file system without a kernel, see server.h. */
#include "server.h"
#include "fuzz.h"

#include "fs/keeper/keeper.h"
#include "fs/keeper/takeover.h"
#include "fs/local/local.h"
#include "fs/mount/handle.h"
#include "fs/mount/loop.h"
#include "fs/mount/mount.h"
#include "fs/state/state.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	SOCKET_BYTES = 1 << 21,
	NAME_MOST = 1023, /* bytes of a name, as the kernel allows */
	READ_MOST = 1 << 17,
	ERRNO_MOST = 1000,
};

/* The text of one argument after the fixed part of a request. */
enum tail { TAIL_NONE, TAIL_NAME, TAIL_TWO_NAMES, TAIL_DATA };

/* Requests of the kernel that a script can name. */
static const struct kind {
	uint32_t opcode;
	uint8_t fixed; /* bytes of the fixed part */
	enum tail tail;
	bool file; /* the fixed part begins with the number of an open file */
} KINDS[] = {
	{FUSE_LOOKUP, 0, TAIL_NAME, false},
	{FUSE_OPEN, sizeof(struct fuse_open_in), TAIL_NONE, false},
	{FUSE_READ, sizeof(struct fuse_read_in), TAIL_NONE, true},
	{FUSE_WRITE, sizeof(struct fuse_write_in), TAIL_DATA, true},
	{FUSE_RELEASE, sizeof(struct fuse_release_in), TAIL_NONE, true},
	{FUSE_MKDIR, sizeof(struct fuse_mkdir_in), TAIL_NAME, false},
	{FUSE_RMDIR, 0, TAIL_NAME, false},
	{FUSE_RENAME2, sizeof(struct fuse_rename2_in), TAIL_TWO_NAMES, false},
	{FUSE_SETATTR, sizeof(struct fuse_setattr_in), TAIL_NONE, false},
	{FUSE_GETATTR, sizeof(struct fuse_getattr_in), TAIL_NONE, false},
	{FUSE_OPENDIR, sizeof(struct fuse_open_in), TAIL_NONE, false},
	{FUSE_READDIR, sizeof(struct fuse_read_in), TAIL_NONE, true},
	{FUSE_RELEASEDIR, sizeof(struct fuse_release_in), TAIL_NONE, true},
	{FUSE_POLL, sizeof(struct fuse_poll_in), TAIL_NONE, true},
	{FUSE_INTERRUPT, sizeof(struct fuse_interrupt_in), TAIL_NONE, false},
	{FUSE_FORGET, sizeof(struct fuse_forget_in), TAIL_NONE, false},
	{FUSE_STATFS, 0, TAIL_NONE, false},
	{FUSE_UNLINK, 0, TAIL_NAME, false},
	{FUSE_RENAME, sizeof(struct fuse_rename_in), TAIL_TWO_NAMES, false},
	{FUSE_CREATE, sizeof(struct fuse_create_in), TAIL_NAME, false},
	{FUSE_MKNOD, sizeof(struct fuse_mknod_in), TAIL_NAME, false},
	{FUSE_SYMLINK, 0, TAIL_TWO_NAMES, false},
	{FUSE_LINK, sizeof(struct fuse_link_in), TAIL_NAME, false},
	{FUSE_READLINK, 0, TAIL_NONE, false},
	{FUSE_ACCESS, sizeof(struct fuse_access_in), TAIL_NONE, false},
	{FUSE_FLUSH, sizeof(struct fuse_flush_in), TAIL_NONE, true},
	{FUSE_FSYNC, sizeof(struct fuse_fsync_in), TAIL_NONE, true},
	{FUSE_LSEEK, sizeof(struct fuse_lseek_in), TAIL_NONE, true},
	{FUSE_GETXATTR, sizeof(struct fuse_getxattr_in), TAIL_NAME, false},
};

int server_memory(void)
{
	int descriptor = memfd_create("state", MFD_CLOEXEC);

	FUZZ_CHECK(descriptor >= 0);
	return descriptor;
}

/*
 * Reads the answers that the server has sent so far: each request is answered once, with an error
 * that is one.
 */
static void hear(struct server *server)
{
	static char bytes[SOCKET_BYTES];
	const struct fuse_out_header *header = (const struct fuse_out_header *)bytes;
	ssize_t got;

	while ((got = recv(server->kernel, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		FUZZ_CHECK((size_t)got >= sizeof(*header) && header->len == (uint32_t)got);
		uint64_t unique = header->unique & ~SERVER_RESEND;

		if (!unique) /* a notification */
			continue;
		FUZZ_CHECK(unique <= server->unique && server->asked[unique]);
		FUZZ_CHECK(header->error <= 0 && header->error > -ERRNO_MOST);
		server->asked[unique] = false;
	}
}

static bool is_answered(uint32_t opcode)
{
	return opcode != FUSE_FORGET && opcode != FUSE_INTERRUPT;
}

/* Remembers the node or the open file that the server is about to tell of. */
static void remember_reply(struct server *server, uint32_t opcode, const void *body)
{
	char bytes[sizeof(struct fuse_out_header) + sizeof(struct fuse_entry_out)];
	const struct fuse_out_header *header = (const struct fuse_out_header *)bytes;
	const struct fuse_open_in *in = body;
	uint64_t number;
	ssize_t got = recv(server->kernel, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_PEEK);

	if (got < (ssize_t)(sizeof(*header) + sizeof(number)) || header->error ||
	    header->unique != server->unique)
		return;
	memcpy(&number, header + 1, sizeof(number));
	if (opcode == FUSE_LOOKUP || opcode == FUSE_MKDIR)
		server->nodes[server->node_count++ % SERVER_KNOWN_MAX] = number;
	else if (opcode == FUSE_OPEN || opcode == FUSE_OPENDIR)
		server->files[server->file_count++ % SERVER_KNOWN_MAX] =
			(struct server_file){true, opcode == FUSE_OPENDIR, in->flags, number};
}

void server_ask(struct server *server, uint32_t opcode, uint64_t node, const void *body,
		size_t size)
{
	static struct {
		struct fuse_in_header header;
		char body[SERVER_BODY_MAX];
		char zeros[READ_MOST]; /* libfuse relies on the kernel's lengths */
	} message;
	struct fuse_buf buffer = {.mem = &message, .size = sizeof(message.header) + size};

	FUZZ_CHECK(size <= sizeof(message.body));
	if (server->unique == SERVER_REQUESTS_MAX)
		return;
	memset(&message.header, 0, sizeof(message.header));
	memset(message.body, 0, sizeof(message.body));
	if (size)
		memcpy(message.body, body, size);
	message.header.len = (uint32_t)buffer.size;
	message.header.opcode = opcode;
	message.header.unique = ++server->unique;
	message.header.nodeid = node;
	message.header.pid = (uint32_t)getpid();
	server->asked[server->unique] = is_answered(opcode);
	loop_process(&server->daemon, &buffer, clock_ns());
	remember_reply(server, opcode, message.body);
	hear(server);
}

/* Takes a name, as the kernel would pass it on, from @script; bytes that it used. */
static size_t take_name(const uint8_t *script, size_t size, char *body, size_t *length)
{
	size_t used = strnlen((const char *)script, size < NAME_MOST ? size : NAME_MOST);
	char *name = body + *length;

	memcpy(name, script, used);
	for (size_t i = 0; i < used; i++) {
		if (name[i] == '/')
			name[i] = '_';
	}
	name[used] = '\0';
	if (!used || !strcmp(name, ".") || !strcmp(name, ".."))
		strcpy(name, "x");
	*length += strlen(name) + 1;
	return used < size ? used + 1 : used;
}

/* Bounds the parts of @body for which the kernel vouches. */
static void bound_body(struct server *server, const struct kind *kind, uint8_t file, char *body,
		       size_t size)
{
	struct fuse_read_in *read = (struct fuse_read_in *)body;
	struct fuse_write_in *write = (struct fuse_write_in *)body;

	if (kind->file)
		memcpy(body, &server->files[file % SERVER_KNOWN_MAX].number, sizeof(uint64_t));
	if (kind->opcode == FUSE_READ || kind->opcode == FUSE_READDIR) {
		read->size %= READ_MOST;
		read->read_flags = FUSE_READ_LOCKOWNER;
	}
	if (kind->opcode == FUSE_WRITE)
		write->size = (uint32_t)(size - sizeof(*write));
	if (kind->opcode == FUSE_RENAME || kind->opcode == FUSE_RENAME2)
		memcpy(body, &server->nodes[file % SERVER_KNOWN_MAX], sizeof(uint64_t));
	if (kind->opcode == FUSE_INTERRUPT) {
		uint64_t unique = server->unique - file % (server->unique + 1);

		memcpy(body, &unique, sizeof(unique));
	}
}

/* Tells whether a request on the open file @number is not answered yet. */
static bool is_busy(const struct server *server, uint64_t number)
{
	for (uint64_t i = 1; i <= server->unique; i++) {
		if (server->asked[i] && server->on[i] == number)
			return true;
	}
	return false;
}

/* Tells whether a kernel would send a request of @kind about @file. */
static bool is_possible(const struct server *server, const struct kind *kind,
			const struct server_file *file)
{
	uint32_t access = file->flags & O_ACCMODE;
	bool directory = kind->opcode == FUSE_READDIR || kind->opcode == FUSE_RELEASEDIR;

	if (!kind->file)
		return true;
	if (!file->open || file->directory != directory)
		return false;
	if (kind->opcode == FUSE_RELEASE)
		return !is_busy(server, file->number);
	if (kind->opcode == FUSE_READ)
		return access == O_RDONLY || access == O_RDWR;
	return kind->opcode != FUSE_WRITE || access == O_WRONLY || access == O_RDWR;
}

void server_play(struct server *server, const uint8_t *script, size_t size, unsigned int most)
{
	enum { HEAD = 4 }; /* bytes */
	static _Alignas(8) char body[SERVER_BODY_MAX];

	while (size >= HEAD && most--) {
		const struct kind *kind = &KINDS[script[0] % (sizeof(KINDS) / sizeof(KINDS[0]))];
		uint64_t node = server->nodes[script[1] % SERVER_KNOWN_MAX];
		uint8_t file = script[2];
		size_t left = script[3], length = kind->fixed, fixed;

		script += HEAD;
		size -= HEAD;
		left = left < size ? left : size;
		size -= left;
		fixed = kind->fixed < left ? kind->fixed : left;
		memset(body, 0, sizeof(body));
		memcpy(body, script, fixed);
		script += fixed;
		left -= fixed;
		if (kind->tail == TAIL_DATA) {
			memcpy(body + length, script, left);
			length += left;
		}
		if (kind->tail == TAIL_NAME || kind->tail == TAIL_TWO_NAMES) {
			size_t used = take_name(script, left, body, &length);

			if (kind->tail == TAIL_TWO_NAMES)
				take_name(script + used, left - used, body, &length);
		}
		script += left;
		if (!is_possible(server, kind, &server->files[file % SERVER_KNOWN_MAX]))
			continue;
		bound_body(server, kind, file, body, length);
		if (kind->file)
			server->on[server->unique + 1] =
				server->files[file % SERVER_KNOWN_MAX].number;
		server_ask(server, kind->opcode, node, body, length);
		if (kind->opcode == FUSE_RELEASE || kind->opcode == FUSE_RELEASEDIR)
			server->files[file % SERVER_KNOWN_MAX].open = false;
	}
}

/* Fills in the first request of the kernel. */
static void fill_mount(struct keeper_mount *mount)
{
	struct fuse_in_header header = {.opcode = FUSE_INIT, .unique = 1};
	struct fuse_init_in init = {.major = FUSE_KERNEL_VERSION,
				    .minor = FUSE_KERNEL_MINOR_VERSION,
				    .max_readahead = 1 << 17};

	header.len = mount->init_bytes = sizeof(header) + sizeof(init);
	memcpy(mount->init, &header, sizeof(header));
	memcpy(mount->init + sizeof(header), &init, sizeof(init));
}

/* Gives the server its end of the device, with the requests that the kernel sends again in it. */
static void mount_server(struct server *server, const char *resent, size_t size)
{
	struct keeper_mount mount = {.outlives = true};
	const int room = SOCKET_BYTES;
	int device[2];

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, device));
	setsockopt(device[1], SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	server->kernel = device[0];
	fill_mount(&mount);
	server->unique = 1;
	server->asked[1] = true;
	while (size) {
		const struct fuse_in_header *header = (const struct fuse_in_header *)resent;
		uint64_t unique = header->unique & ~SERVER_RESEND;

		FUZZ_CHECK(header->len >= sizeof(*header) && header->len <= size);
		FUZZ_CHECK(unique < SERVER_REQUESTS_MAX);
		FUZZ_CHECK(send(device[0], resent, header->len, 0) == (ssize_t)header->len);
		server->unique = unique > server->unique ? unique : server->unique;
		server->asked[unique] = true;
		resent += header->len;
		size -= header->len;
	}
	FUZZ_CHECK(!mount_adopt(&server->daemon, mount.init, mount.init_bytes, device + 1, 1));
	hear(server);
}

static void end_source(struct server *server)
{
	local_close(server->source);
	mount_free(&server->daemon);
	state_close(server->state);
	options_free(&server->options);
}

bool server_start(struct server *server, int descriptor, uint32_t starts, const void *resent,
		  size_t size)
{
	static char program[] = "ratefs", source[] = "local", mountpoint[] = "/";
	char *arguments[] = {program, source, mountpoint, NULL};
	const struct owner root = {0, 0, 0755};
	struct daemon *daemon = &server->daemon;
	int err;

	memset(server, 0, sizeof(*server));
	for (unsigned int i = 0; i < SERVER_KNOWN_MAX; i++)
		server->nodes[i] = FUSE_ROOT_ID;
	FUZZ_CHECK(!options_parse(&server->options, 3, arguments));
	server->state = state_open(descriptor, starts);
	FUZZ_CHECK(server->state);
	if (state_is_strange(server->state)) {
		state_close(server->state);
		options_free(&server->options);
		return false;
	}
	server->source = local_open(NULL, -1);
	FUZZ_CHECK(server->source);
	FUZZ_CHECK(!mount_init(daemon, &server->options, local_source(server->source),
			       server->state, &root));
	daemon->keeper = getppid();
	daemon->engine.tree.last_id = state_base(server->state);
	if (local_load(server->source, daemon)) {
		end_source(server);
		return false;
	}
	if (state_is_there(server->state))
		err = state_continue(server->state);
	else
		err = state_begin(server->state);
	FUZZ_CHECK(!err);
	mount_server(server, resent, size);
	if (starts)
		FUZZ_CHECK(!takeover(daemon));
	hear(server);
	return true;
}

void server_stop(struct server *server)
{
	daemon_stop(&server->daemon);
	hear(server);
	for (uint64_t i = 1; i <= server->unique; i++)
		FUZZ_CHECK(!server->asked[i]);
	local_stop(server->source);
	pages_finish(&server->daemon);
	mount_end(&server->daemon);
	end_source(server);
	close(server->kernel);
}
