/* ops - FUSE operations, see ops.h. */
#include "fs/ops.h"
#include "fs/handle.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_MAX = 4095, ACCESS_BITS = 01777 };

static struct daemon *daemon_of(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

static struct handle *handle_of(const struct fuse_file_info *file)
{
	return (struct handle *)(uintptr_t)file->fh;
}

/* What libfuse negotiates by default is more than is wanted; architecture: README. */
static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	/*
	 * With FUSE_CAP_ASYNC_DIO asynchronous reads are background requests: twelve of them that
	 * wait keep every release of the mount from being sent, and outlive their client.
	 */
	static const unsigned int unwanted = FUSE_CAP_ASYNC_DIO | FUSE_CAP_SPLICE_READ |
					     FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
					     FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO;

	(void)userdata;
	for (unsigned int bit = 1; bit; bit <<= 1) {
		if (!(unwanted & bit))
			continue;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
		fuse_unset_feature_flag(connection, bit);
#else
		connection->want &= ~bit;
#endif
	}
	connection->max_write = CONFIG_TEXT * 2;
}

static void op_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	struct daemon *daemon = daemon_of(request);
	struct fuse_entry_param entry;
	struct node directory, node;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, parent, &directory);
	if (!err)
		err = node_find(daemon, &directory, name, &node);
	if (!err)
		err = node_entry(daemon, &node, &entry);
	daemon_unlock(daemon);
	if (err) {
		fuse_reply_err(request, -err);
		return;
	}
	if (fuse_reply_entry(request, &entry) == -ENOENT) {
		daemon_lock(daemon);
		node_forget(daemon, entry.ino, 1);
		daemon_unlock(daemon);
	}
}

static void op_forget(fuse_req_t request, fuse_ino_t ino, uint64_t lookups)
{
	struct daemon *daemon = daemon_of(request);

	daemon_lock(daemon);
	node_forget(daemon, ino, lookups);
	daemon_unlock(daemon);
	fuse_reply_none(request);
}

static void op_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
	struct daemon *daemon = daemon_of(request);

	daemon_lock(daemon);
	for (size_t i = 0; i < count; i++)
		node_forget(daemon, forgets[i].ino, forgets[i].nlookup);
	daemon_unlock(daemon);
	fuse_reply_none(request);
}

static void op_getattr(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct daemon *daemon = daemon_of(request);
	struct stat attributes;
	struct node node;
	int err;

	(void)file;
	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	if (!err)
		node_attributes(daemon, &node, &attributes);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(request, -err);
	else
		fuse_reply_attr(request, &attributes, ATTRIBUTES_S);
}

/* Files are cut to nothing (`>`) and touched without effect; owners are the limiter's. */
static void op_setattr(fuse_req_t request, fuse_ino_t ino, struct stat *wanted, int which,
		       struct fuse_file_info *file)
{
	static const int ownership = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
	struct daemon *daemon = daemon_of(request);
	struct writer *writer;
	struct node node;
	int err;

	if (!(which & ownership)) {
		op_getattr(request, ino, file);
		return;
	}
	writer = writer_new(NULL, 0);
	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	if (!err && node.row->access != ACCESS_LIMITER) {
		daemon_refused(daemon, "owner and mode are the limiter's: change its directory");
		err = -EPERM;
	}
	if (!err) {
		writer->ino = ino;
		writer->change.kind = CHANGE_OWNER;
		writer->change.limiter = node.limiter;
		writer->change.owner = (struct owner){
			.uid = which & FUSE_SET_ATTR_UID ? wanted->st_uid : node.limiter->uid,
			.gid = which & FUSE_SET_ATTR_GID ? wanted->st_gid : node.limiter->gid,
			.access = which & FUSE_SET_ATTR_MODE ? wanted->st_mode & ACCESS_BITS
							     : node.limiter->access,
		};
		writer_submit(daemon, writer, request);
	}
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		fuse_reply_err(request, -err);
	}
}

static void op_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct daemon *daemon = daemon_of(request);
	const struct fuse_ctx *caller = fuse_req_ctx(request);
	struct writer *writer = writer_new(NULL, 0);
	struct node directory;
	int err;

	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, parent, &directory);
	if (!err && directory.row->access != ACCESS_LIMITER) {
		daemon_refused(daemon, "'%.200s': limiters are made at the top or in a limiter",
			       name);
		err = -EPERM;
	}
	if (!err && strlen(name) > NAME_BYTES_MAX)
		err = -ENAMETOOLONG;
	if (!err && node_name_is_taken(name)) {
		daemon_refused(daemon, "'%.200s' is the name of a control file", name);
		err = -EEXIST;
	}
	if (!err) {
		writer->change.kind = CHANGE_MAKE;
		writer->change.limiter = directory.limiter;
		writer->change.owner = (struct owner){caller->uid, caller->gid, mode & ACCESS_BITS};
		strcpy(writer->change.name, name);
		writer_submit(daemon, writer, request);
	}
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		fuse_reply_err(request, -err);
	}
}

/* The limiter called @name in directory @parent. 0, -ENOENT, or -EPERM for other things. */
static int find_limiter(struct daemon *daemon, fuse_ino_t parent, const char *name,
			struct limiter **limiter)
{
	struct node directory, node;
	int err = node_decode(daemon, parent, &directory);

	if (!err)
		err = node_find(daemon, &directory, name, &node);
	if (!err && node.row->access != ACCESS_LIMITER) {
		daemon_refused(daemon, "'%.200s': only limiters can be removed or renamed", name);
		err = -EPERM;
	}
	if (!err)
		*limiter = node.limiter;
	return err;
}

static void op_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	struct daemon *daemon = daemon_of(request);
	struct writer *writer = writer_new(NULL, 0);
	int err;

	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	writer->change.kind = CHANGE_REMOVE;
	err = find_limiter(daemon, parent, name, &writer->change.limiter);
	if (!err)
		writer_submit(daemon, writer, request);
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		fuse_reply_err(request, -err);
	}
}

static void op_rename(fuse_req_t request, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	struct daemon *daemon = daemon_of(request);
	struct writer *writer = writer_new(NULL, 0);
	int err;

	(void)flags; /* nothing is ever replaced, and nothing exchanged */
	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	writer->change.kind = CHANGE_RENAME;
	err = find_limiter(daemon, parent, name, &writer->change.limiter);
	if (!err && new_parent != parent) {
		daemon_refused(daemon, "'%.200s': a limiter stays where it is: among its siblings",
			       name);
		err = -EPERM;
	}
	if (!err && strlen(new_name) > NAME_BYTES_MAX)
		err = -ENAMETOOLONG;
	if (!err && node_name_is_taken(new_name)) {
		daemon_refused(daemon, "'%.200s' is the name of a control file", new_name);
		err = -EEXIST;
	}
	if (!err) {
		strcpy(writer->change.name, new_name);
		writer_submit(daemon, writer, request);
	}
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		fuse_reply_err(request, -err);
	}
}

/* Nothing else can be made, linked or removed. */
static void op_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t device)
{
	(void)parent;
	(void)name;
	(void)mode;
	(void)device;
	fuse_reply_err(request, EPERM);
}

static void op_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *file)
{
	(void)file;
	op_mknod(request, parent, name, mode, 0);
}

static void op_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target;
	op_mknod(request, parent, name, 0, 0);
}

static void op_link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino;
	op_mknod(request, parent, name, 0, 0);
}

static void op_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	op_mknod(request, parent, name, 0, 0);
}

static void op_open(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct daemon *daemon = daemon_of(request);
	struct handle *handle = NULL;
	struct node node;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	if (!err) {
		handle = handle_open(daemon, &node);
		err = handle ? 0 : -ENOMEM;
	}
	daemon_unlock(daemon);
	if (err) {
		fuse_reply_err(request, -err);
		return;
	}
	file->fh = (uintptr_t)handle;
	file->direct_io = 1;
	if (fuse_reply_open(request, file) == -ENOENT) {
		daemon_lock(daemon);
		handle_close(daemon, handle);
		daemon_unlock(daemon);
	}
}

static void op_release(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct daemon *daemon = daemon_of(request);

	(void)ino;
	daemon_lock(daemon);
	handle_close(daemon, handle_of(file));
	daemon_unlock(daemon);
	fuse_reply_err(request, 0);
}

static void op_read(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *file)
{
	struct handle *handle = handle_of(file);
	struct read_request read = {request, size, offset, file->flags & O_NONBLOCK};

	(void)ino;
	if (handle->row->read)
		handle->row->read(daemon_of(request), handle, &read);
	else
		fuse_reply_err(request, EINVAL);
}

static void op_write(fuse_req_t request, fuse_ino_t ino, const char *bytes, size_t size,
		     off_t offset, struct fuse_file_info *file)
{
	struct daemon *daemon = daemon_of(request);
	struct handle *handle = handle_of(file);
	const struct node_row *row = handle->row;
	size_t most = row->write_max ? row->write_max : WRITE_MAX;
	const char *why = NULL;
	char *text = NULL;
	int err = 0;

	(void)ino;
	(void)offset;
	if (!row->write) {
		err = EINVAL;
		why = "the file is only for reading";
	} else if (size > most) {
		err = E2BIG;
		why = "the write is too long";
	} else if (memchr(bytes, '\0', size)) {
		err = EINVAL;
		why = "the write has a zero byte in it";
	} else {
		text = strndup(bytes, size);
		err = text ? 0 : ENOMEM;
	}
	if (why) {
		daemon_lock(daemon);
		daemon_refused(daemon, "%s", why);
		daemon_unlock(daemon);
	}
	if (err)
		fuse_reply_err(request, err);
	else
		row->write(daemon, handle, request, text, size);
	free(text);
}

static void op_poll(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file,
		    struct fuse_pollhandle *poll)
{
	struct daemon *daemon = daemon_of(request);
	struct handle *handle = handle_of(file);
	unsigned int events = POLLOUT | POLLWRNORM;

	(void)ino;
	daemon_lock(daemon);
	if (poll) {
		if (handle->poll)
			fuse_pollhandle_destroy(handle->poll);
		handle->poll = poll;
	}
	if (!handle->row->poll || handle->row->poll(daemon, handle))
		events |= POLLIN | POLLRDNORM;
	daemon_unlock(daemon);
	fuse_reply_poll(request, events);
}

/* A page of directory entries. */
struct page {
	fuse_req_t request;
	char *bytes;
	size_t size;
	size_t used;
};

static int page_add(void *list, const char *name, fuse_ino_t ino, mode_t type, uint64_t next)
{
	struct page *page = list;
	struct stat attributes = {.st_ino = ino, .st_mode = type};
	size_t length = fuse_add_direntry(page->request, page->bytes + page->used,
					  page->size - page->used, name, &attributes, (off_t)next);

	if (length > page->size - page->used)
		return 1;
	page->used += length;
	return 0;
}

static void op_readdir(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *file)
{
	struct daemon *daemon = daemon_of(request);
	struct page page = {.request = request, .bytes = malloc(size), .size = size};
	struct node node;
	int err;

	(void)file;
	if (!page.bytes) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	if (!err)
		node_list(daemon, &node, (uint64_t)offset, page_add, &page);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(request, -err);
	else
		fuse_reply_buf(request, page.bytes, page.used);
	free(page.bytes);
}

const struct fuse_lowlevel_ops OPS = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.mkdir = op_mkdir,
	.rmdir = op_rmdir,
	.rename = op_rename,
	.mknod = op_mknod,
	.create = op_create,
	.symlink = op_symlink,
	.link = op_link,
	.unlink = op_unlink,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.release = op_release,
	.readdir = op_readdir,
	.poll = op_poll,
};
