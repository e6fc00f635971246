/* text - files that are shown as a text, see text.h. */
#include "fs/mount/text.h"
#include "fs/base/clock.h"

#include "core/fleet/survey.h"
#include "core/limiter/partition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A reader of a text for which the coordinator is asked first. */
struct looker {
	struct queued queued;
	struct handle *handle; /* borrowed: it is open as long as this is not answered */
	size_t size;
};

void text_reply(fuse_req_t request, const char *text, size_t length, off_t offset, size_t size)
{
	size_t start = (uint64_t)offset < length ? (size_t)offset : length;
	size_t rest = length - start;

	fuse_reply_buf(request, text + start, rest < size ? rest : size);
}

static void show_text(struct daemon *daemon, struct handle *handle, fuse_req_t request,
		      uint32_t uid, off_t offset, size_t size)
{
	struct node node = {handle->row,    handle->limiter,   handle->partition,
			    handle->tokens, handle->within_ns, NULL};
	char *text = NULL, *kept;
	size_t length = 0;
	uint32_t shares;
	FILE *out = open_memstream(&text, &length);
	bool gone;

	if (!out) {
		fuse_reply_err(request, ENOMEM);
		return;
	}
	pthread_mutex_lock(&daemon->lock);
	gone = handle->limiter->removed ||
	       handle->partition > partition_count(handle->limiter, &shares);
	if (!gone)
		handle->row->show(out, daemon, &node, uid);
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
	pthread_mutex_unlock(&daemon->lock);
	text_reply(request, text, length, offset, size);
	free(text);
}

/* Asks the coordinator what @handle's text is about. Whether the reader has to wait for it. */
static bool ask_coordinator(struct daemon *daemon, struct handle *handle,
			    const struct read_request *read)
{
	struct limiter *limiter = handle->limiter;
	uint64_t now_ns = clock_ns();
	struct looker *looker;

	if (!daemon->fleet || !handle->row->survey || daemon->stopping || limiter->removed)
		return false;
	engine_run(&daemon->engine, now_ns);
	survey_begin(daemon->fleet, limiter->holding);
	if (survey_is_done(daemon->fleet, limiter->holding, now_ns))
		return false;
	looker = malloc(sizeof(*looker));
	if (!looker)
		return false;
	*looker = (struct looker){
		.queued = {.asked_ns = now_ns, .until_ns = now_ns + FLEET_ANSWER_NS},
		.handle = handle,
		.size = read->size,
	};
	pending_insert(&daemon->pending, &looker->queued.pending, read->caller, PENDING_LOOKER);
	return true;
}

/* Makes the text at offset 0; other offsets read on in the text as it was. */
void text_read(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	bool waits;

	daemon_lock(daemon);
	/* A page of metrics in the making may replace the text. */
	if (read->offset && handle->text)
		text_reply(read->caller->request, handle->text, handle->length, read->offset,
			   read->size);
	waits = (read->offset && handle->text) ||
		(!read->offset && ask_coordinator(daemon, handle, read));
	daemon_unlock(daemon);
	if (!waits)
		show_text(daemon, handle, read->caller->request, read->caller->uid, read->offset,
			  read->size);
}

const struct node_kind TEXT_FILE = {.read = text_read};

void text_collect(struct daemon *daemon, struct outbox *outbox)
{
	struct queued *queued = pending_first(&daemon->pending, PENDING_LOOKER), *next;
	uint64_t now_ns = queued ? clock_ns() : 0;

	for (; queued; queued = next) {
		const struct looker *looker = (const struct looker *)queued;

		next = pending_next(queued);
		if (now_ns >= queued->until_ns ||
		    survey_is_done(daemon->fleet, looker->handle->limiter->holding,
				   queued->asked_ns))
			pending_decide(&daemon->pending, &queued->pending, outbox);
	}
}

void text_answer(struct daemon *daemon, struct pending *pending)
{
	struct looker *looker = (struct looker *)pending;

	show_text(daemon, looker->handle, pending->request, pending->uid, 0, looker->size);
	free(looker);
}
