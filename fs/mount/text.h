/*
 * text - files that are shown as a text: made by a read at offset 0, and read on as it was then.
 */
#ifndef RATEFS_FS_MOUNT_TEXT_H
#define RATEFS_FS_MOUNT_TEXT_H

#include "fs/mount/handle.h"

extern const struct node_kind TEXT_FILE;

/* Reads TEXT_FILE, and other files that can be read as a text. */
void text_read(struct daemon *daemon, struct handle *handle, const struct read_request *read);

/* Answers with at most @size bytes of the @length bytes of @text, from @offset on. */
void text_reply(fuse_req_t request, const char *text, size_t length, off_t offset, size_t size);

#endif
