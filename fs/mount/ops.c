/* ops - FUSE operations, see ops.h. */
#include "fs/mount/ops.h"
#include "fs/mount/await.h"
#include "fs/mount/handle.h"
#include "fs/mount/write.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { WRITE_MAX = 4095 };

static struct daemon *daemon_of(fuse_req_t request)
{
	return fuse_req_userdata(request);
}

/* Finds the caller of @request, which the loop received last. */
static const struct caller *caller_of(fuse_req_t request)
{
	struct caller *caller = &daemon_of(request)->caller;

	caller->request = request;
	return caller;
}

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
	connection->max_write = CONFIG_TEXT * 2;
}

/* Answers with what @ino is, which the kernel may rely on for @seconds. */
static void reply_attributes(fuse_req_t request, fuse_ino_t ino, double seconds)
{
	struct daemon *daemon = daemon_of(request);
	struct stat attributes;
	struct node node;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, ino, &node);
	if (!err)
		node_attributes(daemon, &node, &attributes);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(request, -err);
	else
		fuse_reply_attr(request, &attributes, seconds);
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

	node_attributes(daemon, node, &now);
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
	struct daemon *daemon = daemon_of(request);
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
		daemon_refused(daemon, caller_of(request)->uid,
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
		write_submit(daemon, writer, caller_of(request));
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
	const struct caller *caller = caller_of(request);
	struct daemon *daemon = daemon_of(request);
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
	struct daemon *daemon = daemon_of(request);
	struct handle *handle;

	(void)ino;
	daemon_lock(daemon);
	handle = handle_find(daemon, file->fh);
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
	struct handle *handle = handle_find(daemon_of(request), file->fh);
	struct read_request read = {caller_of(request), size, offset, file->flags & O_NONBLOCK};

	(void)ino;
	/*
	 * A read that fills the page cache has no owner: of sendfile, splice or mmap. A token is
	 * not there to be cached; a client that gets an error from sendfile reads instead.
	 */
	if (!handle || !handle->row->kind->read) /* a file as a predecessor that ran wild left it */
		fuse_reply_err(request, ENODEV);
	else if (file->lock_owner)
		handle->row->kind->read(daemon_of(request), handle, &read);
	else
		fuse_reply_err(request, EINVAL);
}

static void op_write(fuse_req_t request, fuse_ino_t ino, const char *bytes, size_t size,
		     off_t offset, struct fuse_file_info *file)
{
	struct daemon *daemon = daemon_of(request);
	struct handle *handle = handle_find(daemon, file->fh);
	const struct node_kind *kind = handle ? handle->row->kind : &PLAIN_DIRECTORY;
	size_t most = kind->write_max ? kind->write_max : WRITE_MAX;
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
	} else if (memchr(bytes, '\0', size)) {
		err = EINVAL;
		why = "the write has a zero byte in it";
	} else {
		text = strndup(bytes, size);
		err = text ? 0 : ENOMEM;
	}
	if (why) {
		daemon_lock(daemon);
		daemon_refused(daemon, caller_of(request)->uid, "%s", why);
		daemon_unlock(daemon);
	}
	if (err)
		fuse_reply_err(request, err);
	else
		kind->write(daemon, handle, caller_of(request), text, size);
	free(text);
}

static void op_poll(fuse_req_t request, fuse_ino_t ino, struct fuse_file_info *file,
		    struct fuse_pollhandle *poll)
{
	struct daemon *daemon = daemon_of(request);
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
		handle_polled(handle, caller_of(request)->poll);
	}
	if (!handle->row->kind->poll || handle->row->kind->poll(daemon, handle))
		events |= POLLIN | POLLRDNORM;
	daemon_unlock(daemon);
	fuse_reply_poll(request, events);
}

static void find_name(struct daemon *daemon, fuse_req_t request, uint32_t uid,
		      const struct look *look)
{
	struct fuse_entry_param entry;
	struct node directory, node;
	bool waits = false;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, look->directory, &directory);
	if (!err)
		waits = await_look(daemon, &directory, look);
	if (!err && !waits)
		err = node_find(daemon, &directory, look->name, uid, &node);
	if (!err && !waits)
		err = node_entry(daemon, &node, uid, &entry);
	daemon_unlock(daemon);
	if (waits)
		return;
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

static void op_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	const struct caller *caller = caller_of(request);
	const struct look look = {
		.directory = parent, .name = name, .caller = caller, .act = find_name};

	find_name(daemon_of(request), request, caller->uid, &look);
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

static void op_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct daemon *daemon = daemon_of(request);
	const struct caller *caller = caller_of(request);
	struct writer *writer = write_new(NULL, 0);
	struct node directory;
	int err;

	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, parent, &directory);
	if (!err && caller->again && tree_find(&daemon->engine.tree, directory.limiter, name)) {
		daemon_unlock(daemon);
		free(writer);
		op_lookup(request, parent, name); /* a predecessor has made it */
		return;
	}
	if (!err && directory.row->access != ACCESS_LIMITER) {
		daemon_refused(daemon, caller->uid,
			       "'%.200s': limiters are made at the top or in a limiter", name);
		err = -EPERM;
	}
	if (!err && strlen(name) > NAME_BYTES_MAX)
		err = -ENAMETOOLONG;
	if (!err && node_name_is_taken(name)) {
		daemon_refused(daemon, caller->uid, "'%.200s' is the name of a control file", name);
		err = -EEXIST;
	}
	if (!err) {
		writer->change.kind = CHANGE_MAKE;
		writer->change.limiter = directory.limiter;
		writer->change.owner = (struct owner){caller->uid, caller->gid, mode & ACCESS_BITS};
		strcpy(writer->change.name, name);
		write_submit(daemon, writer, caller);
	}
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		fuse_reply_err(request, -err);
	}
}

/* Says what removes @name in @directory, which is no limiter: rm -r tries it with each file. */
static void refuse_file(struct daemon *daemon, const struct node *directory, const char *name,
			uint32_t uid)
{
	if (limiter_is_root(directory->limiter))
		daemon_refused(daemon, uid, "'%.200s' is part of the tree and stays where it is",
			       name);
	else
		daemon_refused(daemon, uid,
			       "'%.200s' is part of the limiter '%.200s': rmdir removes that, with "
			       "all its files",
			       name, directory->limiter->name);
}

/* Finds the limiter called @name in directory @parent. 0, -ENOENT, or -EPERM for other things. */
static int find_limiter(struct daemon *daemon, fuse_ino_t parent, const char *name, uint32_t uid,
			struct limiter **limiter)
{
	struct node directory, node;
	int err = node_decode(daemon, parent, &directory);

	if (!err)
		err = node_find(daemon, &directory, name, uid, &node);
	if (!err && node.row->access != ACCESS_LIMITER) {
		refuse_file(daemon, &directory, name, uid);
		err = -EPERM;
	}
	if (!err)
		*limiter = node.limiter;
	return err;
}

static void op_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	const struct caller *caller = caller_of(request);
	struct daemon *daemon = daemon_of(request);
	struct writer *writer = write_new(NULL, 0);
	int err;

	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	writer->change.kind = CHANGE_REMOVE;
	err = find_limiter(daemon, parent, name, caller->uid, &writer->change.limiter);
	if (!err) {
		writer->ino = writer->change.limiter->id;
		write_submit(daemon, writer, caller);
	}
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		/* A predecessor may have removed it. */
		fuse_reply_err(request, caller->again && err == -ENOENT ? 0 : -err);
	}
}

static void op_rename(fuse_req_t request, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	const struct caller *caller = caller_of(request);
	struct daemon *daemon = daemon_of(request);
	struct writer *writer = write_new(NULL, 0);
	bool renamed; /* by a predecessor */
	int err;

	(void)flags; /* nothing is ever replaced, and nothing exchanged */
	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	writer->change.kind = CHANGE_RENAME;
	err = find_limiter(daemon, parent, name, caller->uid, &writer->change.limiter);
	renamed = err == -ENOENT && caller->again && new_parent == parent &&
		  !find_limiter(daemon, parent, new_name, caller->uid, &writer->change.limiter);
	if (!err && new_parent != parent) {
		daemon_refused(daemon, caller->uid,
			       "'%.200s': a limiter stays where it is: among its siblings", name);
		err = -EPERM;
	}
	if (!err && strlen(new_name) > NAME_BYTES_MAX)
		err = -ENAMETOOLONG;
	if (!err && node_name_is_taken(new_name)) {
		daemon_refused(daemon, caller->uid, "'%.200s' is the name of a control file",
			       new_name);
		err = -EEXIST;
	}
	if (!err) {
		strcpy(writer->change.name, new_name);
		write_submit(daemon, writer, caller);
	}
	daemon_unlock(daemon);
	if (err) {
		free(writer);
		fuse_reply_err(request, renamed ? 0 : -err);
	}
}

static void refuse_name(fuse_req_t request, const char *name, const char *why)
{
	struct daemon *daemon = daemon_of(request);

	daemon_lock(daemon);
	daemon_refused(daemon, caller_of(request)->uid, "'%.200s': %s", name, why);
	daemon_unlock(daemon);
	fuse_reply_err(request, EPERM);
}

/* Refuses: nothing else can be made, linked or removed. */
static void op_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t device)
{
	(void)parent;
	(void)mode;
	(void)device;
	refuse_name(request, name, "only limiters can be made or removed, by mkdir and rmdir");
}

/* Refuses a name that is not there: most often a control file was meant. */
static void op_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *file)
{
	(void)parent;
	(void)mode;
	(void)file;
	refuse_name(request, name, "there is no such file, and only limiters can be made");
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
	struct daemon *daemon = daemon_of(request);
	struct node directory;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, parent, &directory);
	if (!err)
		refuse_file(daemon, &directory, name, caller_of(request)->uid);
	daemon_unlock(daemon);
	fuse_reply_err(request, err ? -err : EPERM);
}

/* Entries of a directory, for one readdir. */
struct entries {
	struct node_listing listing; /* first */
	fuse_req_t request;
	char *bytes;
	size_t size;
	size_t used;
};

static bool add_entry(struct node_listing *listing, const char *name, fuse_ino_t ino, mode_t type,
		      uint64_t next)
{
	struct entries *entries = (struct entries *)listing;
	struct stat attributes = {.st_ino = ino, .st_mode = type};
	size_t length = fuse_add_direntry(entries->request, entries->bytes + entries->used,
					  entries->size - entries->used, name, &attributes,
					  (off_t)next);

	if (length > entries->size - entries->used)
		return false;
	entries->used += length;
	return true;
}

static void list_names(struct daemon *daemon, fuse_req_t request, uint32_t uid,
		       const struct look *look)
{
	struct entries entries = {.listing.add = add_entry,
				  .request = request,
				  .bytes = malloc(look->size),
				  .size = look->size};
	bool waits = false;
	struct node node;
	int err;

	(void)uid;
	if (!entries.bytes) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, look->directory, &node);
	if (!err)
		waits = await_look(daemon, &node, look);
	if (!err && !waits)
		node_list(daemon, &node, (uint64_t)look->offset, &entries.listing);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(request, -err);
	else if (!waits)
		fuse_reply_buf(request, entries.bytes, entries.used);
	free(entries.bytes);
}

static void op_readdir(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		       struct fuse_file_info *file)
{
	const struct caller *caller = caller_of(request);
	/* The begin of a listing waits; its other parts are of the same look. */
	const struct look look = {.directory = ino,
				  .size = size,
				  .offset = offset,
				  .caller = offset ? NULL : caller,
				  .act = list_names};

	(void)file;
	list_names(daemon_of(request), request, caller->uid, &look);
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
