/* text_file - files that are shown as a text, see text_file.h. */
#include "fs/mount/text_file.h"
#include "fs/mount/await.h"
#include "fs/mount/partitions.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void text_file_reply(fuse_req_t request, const char *text, size_t length, off_t offset, size_t size)
{
	size_t start = (uint64_t)offset < length ? (size_t)offset : length;
	size_t rest = length - start;

	fuse_reply_buf(request, text + start, rest < size ? rest : size);
}

/* Notes whether @read leaves a rest of a text of @length bytes: that is there without waiting. */
static void note_rest(struct handle *handle, size_t length, const struct read_request *read)
{
	if (handle->row->until)
		handle_set_half(handle, (uint64_t)read->offset + read->size < length);
}

/* Makes the text, and answers with it. */
static void show_text(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	fuse_req_t request = read->caller->request;
	struct node node = {.row = handle->row,
			    .limiter = handle->limiter,
			    .partition = handle->partition,
			    .tokens = handle->tokens,
			    .most = handle->most,
			    .amounts = handle->amounts,
			    .within_ns = handle->within_ns,
			    .viewer = handle->viewer};
	char *text = NULL, *kept;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);
	bool gone;

	if (!out) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	pthread_mutex_lock(&daemon->lock);
	gone = handle->limiter->removed ||
	       !partitions_has(handle->row, handle->limiter, handle->partition);
	if (!gone)
		handle->row->show(out, daemon, &node, read->caller->uid);
	pthread_mutex_unlock(&daemon->lock);
	if (fclose(out) || gone) {
		free(text);
		fuse_reply_err(request, gone ? ENODEV : ENOMEM);
		return;
	}
	/* With the answer the file may be closed, and what it keeps is gone. */
	kept = malloc(length + 1);
	if (kept)
		memcpy(kept, text, length + 1);
	pthread_mutex_lock(&daemon->lock);
	handle_keep_text(handle, kept, kept ? length : 0);
	note_rest(handle, length, read);
	pthread_mutex_unlock(&daemon->lock);
	text_file_reply(request, text, length, read->offset, read->size);
	free(text);
}

/* Reads on in the text as it was made, which another read may replace. False: there is none. */
static bool read_on(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	bool kept;

	daemon_lock(daemon);
	kept = handle->text;
	if (kept) {
		note_rest(handle, handle->length, read);
		text_file_reply(read->caller->request, handle->text, handle->length, read->offset,
				read->size);
	}
	daemon_unlock(daemon);
	return kept;
}

void text_file_read_now(struct daemon *daemon, struct handle *handle,
			const struct read_request *read)
{
	if (!read->offset || !read_on(daemon, handle, read))
		show_text(daemon, handle, read);
}

void text_file_read(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	if (!read->offset && handle->row->until)
		await_read(daemon, handle, read);
	else
		text_file_read_now(daemon, handle, read);
}

const struct node_kind TEXT_FILE = {
	.read = text_file_read, .answer = show_text, .poll = await_poll};
const struct node_kind VIEW_FILE = {.open = handle_open_view,
				    .reopen = handle_reopen_view,
				    .read = text_file_read,
				    .answer = show_text,
				    .poll = await_poll};
