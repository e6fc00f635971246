/* text_file - files that are shown as a text, see text_file.h. */
#include "fs/mount/text_file.h"
#include "fs/mount/await.h"
#include "fs/mount/partitions.h"
#include "fs/mount/show.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void text_file_reply(fuse_req_t request, const char *text, size_t length, off_t offset, size_t size)
{
	size_t start = (uint64_t)offset < length ? (size_t)offset : length;
	size_t rest = length - start;

	fuse_reply_buf(request, text + start, rest < size ? rest : size);
}

static bool leaves_rest(size_t length, off_t offset, size_t size)
{
	return (uint64_t)offset + size < length;
}

/* Answers, and notes whether a rest is left: then a poll need not wait for it. */
static void answer_part(struct daemon *daemon, struct handle *handle, fuse_req_t request,
			off_t offset, size_t size)
{
	bool rest = leaves_rest(handle->length, offset, size);

	if (handle->row->until)
		handle_set_half(handle, rest);
	text_file_reply(request, handle->text, handle->length, offset, size);
	if (!rest)
		handle_text_read(daemon, handle);
}

void text_file_answer(struct daemon *daemon, struct handle *handle, fuse_req_t request, char *text,
		      size_t length, off_t offset, size_t size)
{
	if (!handle_keep_text(daemon, handle, text, length)) {
		answer_part(daemon, handle, request, offset, size);
		return;
	}
	/* A read of all of it needs none that is kept. */
	if (leaves_rest(length, offset, size)) {
		fuse_reply_err(request, -daemon_has_room(daemon, handle->uid, BOUND_TEXTS));
	} else {
		handle->length = length;
		if (handle->row->until)
			handle_set_half(handle, false);
		text_file_reply(request, text, length, offset, size);
	}
	free(text);
}

bool text_file_go_on(struct daemon *daemon, struct handle *handle, fuse_req_t request, off_t offset,
		     size_t size)
{
	/* The end of a text that had to make room stays where it was. */
	if (!handle->text && handle->length && (uint64_t)offset >= handle->length) {
		if (handle->row->until)
			handle_set_half(handle, false);
		fuse_reply_buf(request, NULL, 0);
		return true;
	}
	if (!handle->text)
		return false;
	answer_part(daemon, handle, request, offset, size);
	return true;
}

/*
 * Writes the text of @node; a table has headings if it has lines, and before them the age of what
 * ZooKeeper was asked for.
 */
static void write_text(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct node_row *row = node->row;
	off_t headings, lines;

	if (!row->columns) {
		row->show(out, daemon, node, uid);
		return;
	}
	if (row->brief)
		show_age(out, daemon, node->limiter);
	headings = ftello(out);
	fprintf(out, "# %s\n", row->columns);
	lines = ftello(out);
	row->show(out, daemon, node, uid);
	if (ftello(out) == lines)
		(void)fseeko(out, headings, SEEK_SET);
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
	char *text = NULL;
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
		write_text(out, daemon, &node, read->caller->uid);
	pthread_mutex_unlock(&daemon->lock);
	if (fclose(out) || gone) {
		free(text);
		fuse_reply_err(request, gone ? ENODEV : ENOMEM);
		return;
	}
	pthread_mutex_lock(&daemon->lock);
	text_file_answer(daemon, handle, request, text, length, read->offset, read->size);
	pthread_mutex_unlock(&daemon->lock);
}

/* Reads on in the text as it was made. False: there is none. */
static bool read_on(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	bool goes_on;

	daemon_lock(daemon);
	goes_on = text_file_go_on(daemon, handle, read->caller->request, read->offset, read->size);
	daemon_unlock(daemon);
	return goes_on;
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
