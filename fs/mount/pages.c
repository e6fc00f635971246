/* pages - long pages of `metrics`, see pages.h. */
#include "fs/mount/pages.h"
#include "fs/base/thread.h"
#include "fs/mount/channel.h"
#include "fs/mount/metrics.h"
#include "fs/mount/text_file.h"

#include <errno.h>
#include <stdlib.h>

enum { THREADS_MAX = 2, WAITING_MAX = 16 };

/* Tells whether user @uid waits for as many pages as it may. */
static bool waits_for_many(struct pages *pages, uint32_t uid)
{
	struct list_link *link = lanes_first(&pages->queue, uid);
	unsigned int own = 0;

	for (; link; link = link->next)
		own += list_entry(link, struct page, link)->pending.uid == uid;
	return own >= WAITING_MAX;
}

/* Takes the page whose turn it is out of the queue, or returns NULL. */
static struct page *begin_next(struct pages *pages)
{
	struct page *page = list_entry(lanes_take(&pages->queue), struct page, link);

	if (page)
		page->begun = true;
	return page;
}

/* Makes @page, answers it and frees it. Called with the lock, which it gives up meanwhile. */
static void make_page(struct daemon *daemon, struct page *page)
{
	fuse_req_t request;
	size_t length = 0;
	char *text;

	daemon_unlock(daemon);
	text = metrics_text(daemon, page, page->handle, &length);
	daemon_lock(daemon);
	request = page->pending.request;
	channel_reply_to(page->pending.channel);
	if (request)
		pending_remove(&daemon->pending, &page->pending);
	/* Under the lock: another read of the same open file may replace the text. */
	if (request && text) {
		text_file_answer(daemon, page->handle, request, text, length, page->offset,
				 page->size);
	} else {
		free(text);
		if (request)
			fuse_reply_err(request, ENOMEM);
	}
	free(page);
}

static void *make_pages(void *argument)
{
	struct daemon *daemon = argument;
	struct page *page;

	daemon_lock(daemon);
	while ((page = begin_next(&daemon->pages)))
		make_page(daemon, page);
	daemon->pages.threads--;
	pthread_cond_signal(&daemon->pages.ended);
	daemon_unlock(daemon);
	return NULL;
}

/* Starts one more thread, if there may be one. 0, or -errno if there is none at all. */
static int start_thread(struct daemon *daemon)
{
	pthread_t thread;
	int err;

	if (daemon->pages.threads == THREADS_MAX)
		return 0;
	err = thread_start(&thread, make_pages, daemon);
	if (err)
		return daemon->pages.threads ? 0 : err;
	daemon->pages.threads++;
	pthread_detach(thread);
	return 0;
}

int pages_ask(struct daemon *daemon, struct handle *handle, const struct read_request *read)
{
	struct page *page = malloc(sizeof(*page));
	struct pages *pages = &daemon->pages;
	int err;

	if (!page)
		return -ENOMEM;
	*page = (struct page){.handle = handle, .offset = read->offset, .size = read->size};
	daemon_lock(daemon);
	if (waits_for_many(pages, read->caller->uid)) {
		err = -EBUSY;
		daemon_refused(daemon, read->caller->uid, handle->limiter, handle->row,
			       "user %u waits for %d pages of metrics already", read->caller->uid,
			       WAITING_MAX);
	} else {
		pending_insert(&daemon->pending, &page->pending, read->caller, PENDING_PAGE);
		lanes_append(&pages->queue, page->pending.uid, &page->link);
		err = start_thread(daemon);
		if (err) {
			lanes_remove(&pages->queue, page->pending.uid, &page->link);
			pending_remove(&daemon->pending, &page->pending);
		}
	}
	daemon_unlock(daemon);
	if (err)
		free(page);
	return err;
}

enum pending_end pages_give_up(struct daemon *daemon, struct pending *pending, int err)
{
	struct page *page = (struct page *)pending;

	(void)err;
	if (page->begun)
		return PENDING_ABANDONED;
	lanes_remove(&daemon->pages.queue, pending->uid, &page->link);
	return PENDING_FREED;
}

void pages_finish(struct daemon *daemon)
{
	daemon_lock(daemon);
	while (daemon->pages.threads)
		pthread_cond_wait(&daemon->pages.ended, &daemon->lock);
	daemon_unlock(daemon);
}
