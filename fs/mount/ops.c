/* ops - FUSE operations, see ops.h. */
#include "fs/mount/ops.h"
#include "fs/mount/directory.h"
#include "fs/mount/handle.h"
#include "fs/mount/request.h"
#include "fs/mount/write.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_MAX = 4095 };

/* Declines the features that libfuse asks for by default and the daemon does not want. */
static void op_init(void *userdata, struct fuse_conn_info *connection)
{
	/*
	 * With FUSE_CAP_ASYNC_DIO asynchronous reads are background requests: twelve of them that
	 * wait keep every release of the mount from being sent, and outlive their client. With
	 * FUSE_CAP_ATOMIC_O_TRUNC the kernel takes files opened by `>` to be empty from then on.
	 */
	static const unsigned int unwanted = FUSE_CAP_ASYNC_DIO | FUSE_CAP_SPLICE_READ |
					     FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
					     FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
					     FUSE_CAP_ATOMIC_O_TRUNC;

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
	connection->max_write = MOUNT_WRITE_MAX;
}

/*
 * Answers with what @ino is, which the kernel may rely on for @seconds, for all users, unless each
 * user has its own.
 */
static void reply_attributes(fuse_req_t request, fuse_ino_t ino, double seconds)
{
	struct daemon *daemon = request_daemon(request);
	struct stat attributes;
	struct node node;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	if (!err)
		node_attributes(daemon, &node, request_caller(request)->uid, &attributes);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(request, -err);
	else
		fuse_reply_attr(request, &attributes, node.row->own ? 0 : seconds);
}

static void op_getattr(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	(void)file;
	reply_attributes(request, ino, ATTRIBUTES_S);
}

/*
 * Tells whether a chmod of @node, which is no limiter, to @mode leaves it as it is: each bit is as
 * the file or the limiter's directory has it. A recursive chmod changes the directory first, so
 * the mode that it gives a file is that of the limiter; any other mode is not. Setuid is ignored,
 * as of a directory.
 */
static bool mode_follows(struct daemon *daemon, const struct node *node, mode_t mode)
{
	struct stat now;

	node_attributes(daemon, node, node->limiter->uid, &now);
	return !((mode ^ now.st_mode) & (mode ^ node->limiter->access) & ACCESS_BITS);
}

/*
 * Changes owner and mode. Files are cut to nothing (`>`) and touched without effect. Owner and mode
 * are the limiter's. A chown of a file changes nothing and succeeds, since a recursive one comes to
 * the directory last.
 */
static void op_setattr(fuse_req_t request, fuse_ino_t ino, struct stat *wanted, int which,
		       struct fuse_file_info *file)
{
	static const int ownership = FUSE_SET_ATTR_MODE | FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
	struct daemon *daemon = request_daemon(request);
	struct writer *writer;
	struct node node;
	bool follows; /* no limiter: owner and mode are those of its directory */
	int err;

	if (!(which & ownership)) {
		op_getattr(request, ino, file);
		return;
	}
	writer = write_new(NULL, 0);
	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	follows = !err && node.row->access != ACCESS_LIMITER;
	if (follows && which & FUSE_SET_ATTR_MODE &&
	    !mode_follows(daemon, &node, wanted->st_mode)) {
		daemon_refused(daemon, request_caller(request)->uid, node.limiter, node.row,
			       "the mode of a file is the limiter's: change its directory");
		err = -EPERM;
	}
	if (!err && !follows) {
		writer->ino = ino;
		writer->change.kind = CHANGE_OWNER;
		writer->change.limiter = node.limiter;
		writer->change.unchanged = (which & FUSE_SET_ATTR_UID ? 0 : OWNER_UID) |
					   (which & FUSE_SET_ATTR_GID ? 0 : OWNER_GID) |
					   (which & FUSE_SET_ATTR_MODE ? 0 : OWNER_ACCESS);
		writer->change.owner = (struct owner){wanted->st_uid, wanted->st_gid,
						      wanted->st_mode & ACCESS_BITS};
		write_submit(daemon, writer, request_caller(request));
	}
	daemon_unlock(daemon);
	if (!err && !follows)
		return;
	free(writer);
	if (err)
		fuse_reply_err(request, -err);
	else
		reply_attributes(request, ino, 0); /* these are about to change */
}

static void op_open(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	const struct caller *caller = request_caller(request);
	struct daemon *daemon = request_daemon(request);
	enum { READ = 1, WRITE = 2 };
	int accesses = (file->flags & O_ACCMODE) + 1; /* as the kernel counts them */
	struct handle *handle = NULL;
	struct node node;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	/* Even root, whom permissions do not bind, cannot write a file without a write. */
	if (!err && ((accesses & WRITE && !node.row->kind->write) ||
		     (accesses & READ && !node.row->kind->read)))
		err = -EACCES;
	if (!err)
		err = daemon_has_room(daemon, caller->uid, BOUND_FILES);
	if (!err && handle_makes_partition(&node))
		err = daemon_has_room(daemon, caller->uid, BOUND_LIMITERS);
	if (!err) {
		handle = handle_open(daemon, &node, caller);
		err = handle ? 0 : -ENOMEM;
	}
	daemon_unlock(daemon);
	if (err) {
		fuse_reply_err(request, -err);
		return;
	}
	if (handle->row->kind->open)
		handle->row->kind->open(daemon, handle, caller, file->flags);
	else
		handle_answer_open(daemon, handle, request);
}

static void op_release(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file)
{
	struct daemon *daemon = request_daemon(request);
	struct handle *handle;

	(void)ino;
	daemon_lock(daemon);
	handle = handle_find(daemon, file->fh);
	if (handle && handle->row->kind->close)
		handle->row->kind->close(daemon, handle);
	if (handle)
		handle_close(daemon, handle);
	else
		handle_forget(daemon, file->fh);
	daemon_unlock(daemon);
	fuse_reply_err(request, 0);
}

static void op_read(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *file)
{
	struct handle *handle = handle_find(request_daemon(request), file->fh);
	struct read_request read = {request_caller(request), size, offset,
				    file->flags & O_NONBLOCK};

	(void)ino;
	/*
	 * A read that fills the page cache has no owner: of sendfile, splice or mmap. A token is
	 * not there to be cached; a client that gets an error from sendfile reads instead.
	 */
	if (!handle || !handle->row->kind->read) /* a file as a predecessor that ran wild left it */
		fuse_reply_err(request, ENODEV);
	else if (file->lock_owner)
		handle->row->kind->read(request_daemon(request), handle, &read);
	else
		fuse_reply_err(request, EINVAL);
}

static void op_write(fuse_req_t request, fuse_ino_t ino, const char *bytes, size_t size,
		     off_t offset, struct fuse_file_info *file)
{
	struct daemon *daemon = request_daemon(request);
	struct handle *handle = handle_find(daemon, file->fh);
	const struct node_kind *kind = handle ? handle->row->kind : &PLAIN_DIRECTORY;
	size_t most = kind->write_max ? kind->write_max : WRITE_MAX;
	bool ends_in_zero = kind->ends_in_zero && size && !bytes[size - 1];
	const char *why = NULL;
	char *text = NULL;
	int err = 0;

	(void)ino;
	(void)offset;
	if (!handle || !kind->write) {
		err = ENODEV;
	} else if (size > most) {
		err = E2BIG;
		why = "the write is too long";
	} else if (memchr(bytes, '\0', size - ends_in_zero)) {
		err = EINVAL;
		why = "the write has a zero byte in it";
	} else {
		text = strndup(bytes, size);
		err = text ? 0 : ENOMEM;
	}
	if (why) {
		daemon_lock(daemon);
		daemon_refused(daemon, request_caller(request)->uid, handle->limiter, handle->row,
			       "%s", why);
		daemon_unlock(daemon);
	}
	if (err)
		fuse_reply_err(request, err);
	else
		kind->write(daemon, handle, request_caller(request), text, size);
	free(text);
}

/* Notes the thread that polls @handle if it is about to wait. */
static void note_poll(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		      bool ready)
{
	handle->poll_pid = ready ? 0 : caller->pid;
	if (!ready && handle != daemon->freezer)
		daemon->pending.asked++;
}

static void op_poll(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file,
		    struct fuse_pollhandle *poll)
{
	struct daemon *daemon = request_daemon(request);
	struct handle *handle = handle_find(daemon, file->fh);
	unsigned int events = POLLOUT | POLLWRNORM;

	(void)ino;
	if (!handle) {
		if (poll)
			fuse_pollhandle_destroy(poll);
		fuse_reply_poll(request, POLLERR);
		return;
	}
	daemon_lock(daemon);
	if (poll) {
		if (handle->poll)
			fuse_pollhandle_destroy(handle->poll);
		handle->poll = poll;
		handle_polled(handle, request_caller(request)->poll);
	}
	if (!handle->row->kind->poll || handle->row->kind->poll(daemon, handle))
		events |= POLLIN | POLLRDNORM;
	if (handle->row->kind->poll_more)
		events |= handle->row->kind->poll_more(daemon, handle);
	if (poll)
		note_poll(daemon, handle, request_caller(request),
			  events & (POLLIN | POLLPRI) & file->poll_events);
	daemon_unlock(daemon);
	fuse_reply_poll(request, events);
}

const struct fuse_lowlevel_ops OPS = {
	.init = op_init,
	.lookup = directory_lookup,
	.forget = directory_forget,
	.forget_multi = directory_forget_multi,
	.getattr = op_getattr,
	.setattr = op_setattr,
	.mkdir = directory_mkdir,
	.rmdir = directory_rmdir,
	.rename = directory_rename,
	.mknod = directory_mknod,
	.create = directory_create,
	.symlink = directory_symlink,
	.link = directory_link,
	.unlink = directory_unlink,
	.open = op_open,
	.read = op_read,
	.write = op_write,
	.release = op_release,
	.readdir = directory_read,
	.poll = op_poll,
};
