/*
 * text_file - files that are shown as a text: a read at offset 0 makes it, and further reads get it
 * as it was then.
 */
#ifndef RATEFS_FS_MOUNT_TEXT_FILE_H
#define RATEFS_FS_MOUNT_TEXT_FILE_H

#include "fs/mount/handle.h"

extern const struct node_kind TEXT_FILE;
extern const struct node_kind VIEW_FILE; /* with the rights of its reader in node->viewer */

/* Reads TEXT_FILE, and other files that can be read as a text. */
void text_file_read(struct daemon *daemon, struct handle *handle, const struct read_request *read);

/* Reads one whose `until` is of polls alone. */
void text_file_read_now(struct daemon *daemon, struct handle *handle,
			const struct read_request *read);

/* Answers with at most @size bytes of the @length bytes of @text, from @offset on. */
void text_file_reply(fuse_req_t request, const char *text, size_t length, off_t offset,
		     size_t size);

/*
 * Answers so with @text (from malloc), made for @handle, which keeps it, see handle.h. Under the
 * lock.
 */
void text_file_answer(struct daemon *daemon, struct handle *handle, fuse_req_t request, char *text,
		      size_t length, off_t offset, size_t size);

/*
 * Answers so with the text as it was made, which another read may replace. False: there is none.
 * Under the lock.
 */
bool text_file_go_on(struct daemon *daemon, struct handle *handle, fuse_req_t request, off_t offset,
		     size_t size);

#endif
