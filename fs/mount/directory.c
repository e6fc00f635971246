/* directory - FUSE operations on names in directories, see directory.h. */
#include "fs/mount/directory.h"
#include "fs/mount/await.h"
#include "fs/mount/request.h"
#include "fs/mount/write.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

void directory_lookup(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	const struct caller *caller = request_caller(request);
	const struct look look = {
		.directory = parent, .name = name, .caller = caller, .act = find_name};

	find_name(request_daemon(request), request, caller->uid, &look);
}

void directory_forget(fuse_req_t request, fuse_ino_t ino, uint64_t lookups)
{
	struct daemon *daemon = request_daemon(request);

	daemon_lock(daemon);
	node_forget(daemon, ino, lookups);
	daemon_unlock(daemon);
	fuse_reply_none(request);
}

void directory_forget_multi(fuse_req_t request, size_t count, struct fuse_forget_data *forgets)
{
	struct daemon *daemon = request_daemon(request);

	daemon_lock(daemon);
	for (size_t i = 0; i < count; i++)
		node_forget(daemon, forgets[i].ino, forgets[i].nlookup);
	daemon_unlock(daemon);
	fuse_reply_none(request);
}

void directory_mkdir(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct daemon *daemon = request_daemon(request);
	const struct caller *caller = request_caller(request);
	struct writer *writer = write_new(NULL, 0);
	const struct limiter *there = NULL;
	struct node directory;
	int err;

	if (!writer) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	daemon_lock(daemon);
	err = node_decode(daemon, parent, &directory);
	if (!err && caller->again)
		there = tree_find(&daemon->engine.tree, directory.limiter, name);
	if (there && write_maker(there) == MAKER_THIS) {
		daemon_unlock(daemon);
		free(writer);
		directory_lookup(request, parent, name); /* a predecessor has made it */
		return;
	}
	if (!err && directory.row->access != ACCESS_LIMITER) {
		daemon_refused(daemon, caller->uid, directory.limiter, directory.row,
			       "'%.200s': limiters are made at the top or in a limiter", name);
		err = -EPERM;
	}
	if (!err && strlen(name) > NAME_BYTES_MAX)
		err = -ENAMETOOLONG;
	if (!err && node_name_is_taken(name)) {
		daemon_refused(daemon, caller->uid, directory.limiter, directory.row,
			       "'%.200s' is the name of a control file", name);
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
		daemon_refused(daemon, uid, directory->limiter, directory->row,
			       "'%.200s' is part of the tree and stays where it is", name);
	else
		daemon_refused(daemon, uid, directory->limiter, directory->row,
			       "'%.200s' is part of the limiter '%.200s': rmdir removes that, with "
			       "all its files; ratefs rm -r with all limiters in it, too",
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

void directory_rmdir(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	const struct caller *caller = request_caller(request);
	struct daemon *daemon = request_daemon(request);
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

void directory_rename(fuse_req_t request, fuse_ino_t parent, const char *name,
		      fuse_ino_t new_parent, const char *new_name, unsigned int flags)
{
	const struct caller *caller = request_caller(request);
	struct daemon *daemon = request_daemon(request);
	struct writer *writer;
	bool renamed; /* by a predecessor */
	int err;

	/* Nothing is ever replaced, so that flag asks for no more. */
	if (flags & ~(unsigned int)RENAME_NOREPLACE) {
		daemon_lock(daemon);
		daemon_refused(daemon, caller->uid, NULL, NULL,
			       "limiters are neither exchanged nor whited out");
		daemon_unlock(daemon);
		fuse_reply_err(request, EINVAL);
		return;
	}
	writer = write_new(NULL, 0);
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
		daemon_refused(daemon, caller->uid, writer->change.limiter, &NODES[NODE_LIMITER],
			       "'%.200s': a limiter stays where it is: among its siblings", name);
		err = -EPERM;
	}
	if (!err && strlen(new_name) > NAME_BYTES_MAX)
		err = -ENAMETOOLONG;
	if (!err && node_name_is_taken(new_name)) {
		daemon_refused(daemon, caller->uid, writer->change.limiter, &NODES[NODE_LIMITER],
			       "'%.200s' is the name of a control file", new_name);
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
	struct daemon *daemon = request_daemon(request);

	daemon_lock(daemon);
	daemon_refused(daemon, request_caller(request)->uid, NULL, NULL, "'%.200s': %s", name, why);
	daemon_unlock(daemon);
	fuse_reply_err(request, EPERM);
}

/* Refuses: nothing else can be made, linked or removed. */
void directory_mknod(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		     dev_t device)
{
	(void)parent;
	(void)mode;
	(void)device;
	refuse_name(request, name, "only limiters can be made or removed, by mkdir and rmdir");
}

/* Refuses a name that is not there: most often a control file was meant. */
void directory_create(fuse_req_t request, fuse_ino_t parent, const char *name, mode_t mode,
		      struct fuse_file_info *file)
{
	(void)parent;
	(void)mode;
	(void)file;
	refuse_name(request, name, "there is no such file, and only limiters can be made");
}

void directory_symlink(fuse_req_t request, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target;
	directory_mknod(request, parent, name, 0, 0);
}

void directory_link(fuse_req_t request, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino;
	directory_mknod(request, parent, name, 0, 0);
}

void directory_unlink(fuse_req_t request, fuse_ino_t parent, const char *name)
{
	struct daemon *daemon = request_daemon(request);
	struct node directory;
	int err;

	daemon_lock(daemon);
	err = node_decode(daemon, parent, &directory);
	if (!err)
		refuse_file(daemon, &directory, name, request_caller(request)->uid);
	daemon_unlock(daemon);
	fuse_reply_err(request, err ? -err : EPERM);
}

enum { LISTING_MAX = 131072 }; /* bytes: a newer kernel asks for more, which holds up others */

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

void directory_read(fuse_req_t request, fuse_ino_t ino, size_t size, off_t offset,
		    struct fuse_file_info *file)
{
	const struct caller *caller = request_caller(request);
	/* The begin of a listing waits; its other parts are of the same look. */
	const struct look look = {.directory = ino,
				  .size = size < LISTING_MAX ? size : LISTING_MAX,
				  .offset = offset,
				  .caller = offset ? NULL : caller,
				  .act = list_names};

	(void)file;
	list_names(request_daemon(request), request, caller->uid, &look);
}
