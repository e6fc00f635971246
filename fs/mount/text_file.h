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

#endif
