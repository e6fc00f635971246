/*
 * events - `/v1/events/LIMITER`: the stream that the page draws, see look.h.
 *
 * One thread looks at the tree once a second, as long as there are viewers, and writes what changed
 * once for all of them. A viewer that missed a look, because its connection is slow, is told of
 * everything by the next one, so nothing is kept for it but the message that it reads. If such
 * messages have more bytes than they may, the viewers that are furthest behind lose theirs, and
 * their connections.
 */
#include "companions/companion.h"
#include "companions/serve/answer.h"
#include "companions/serve/look.h"
#include "companions/serve/route.h"
#include "core/values/quantity.h"
#include "fs/base/thread.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
	VIEWERS_MAX = 64,
	BLOCK = 1 << 16,
	/* Bytes of all messages that there are: so many, or so many times the last one with all. */
	TEXTS_BYTES = 4 << 20,
	TEXTS_OF_ALL = 4,
	/* Parts of limiters whose files a look reads before it leaves the rest to the next one. */
	PARTS_AT_ONCE = 4096,
};

/* Messages, shared by viewers under the lock. */
struct text {
	size_t users;
	size_t size;
	char *bytes; /* owned */
};

struct viewer {
	struct list_link link;
	struct MHD_Connection *mhd;
	int socket;
	struct text *text;    /* that it reads now, from @offset on; NULL: none */
	struct text *holders; /* that it has not read yet; NULL: none */
	size_t offset;
	uint64_t seen; /* number of the look that it was told of last; 0: none */
	bool sleeps;
	bool is_cut;	/* its message was taken from it */
	char limiter[]; /* whose holders it wants, "" for none */
};

static struct events {
	pthread_mutex_t lock;
	pthread_cond_t comes; /* a viewer */
	struct list viewers;
	size_t count;
	bool runs;		    /* the thread */
	uint64_t number;	    /* of the look; 0: there is none that viewers may be told of */
	struct look look;	    /* changed by the thread alone, under the lock */
	bool in_trouble;	    /* there was none this time */
	struct text *all, *changes; /* of the look; NULL: not made yet, or nothing to compare */
	size_t bytes;		    /* of all texts */
	size_t all_bytes;	    /* of the last that was made with all */
	size_t told;		    /* how often the holders of a limiter were told */
	const char *mountpoint;	    /* borrowed */
} events = {.lock = PTHREAD_MUTEX_INITIALIZER, .comes = PTHREAD_COND_INITIALIZER};

/* A text that is being written. */
struct draft {
	FILE *out; /* NULL: no memory */
	char *bytes;
	size_t size;
};

static void draft_begin(struct draft *draft)
{
	draft->out = open_memstream(&draft->bytes, &draft->size);
}

/* Ends it as a text with one user. NULL: no memory, or nothing was written. */
static struct text *draft_end(struct draft *draft)
{
	struct text *text = NULL;

	if (!draft->out)
		return NULL;
	if (!fclose(draft->out) && draft->size)
		text = malloc(sizeof(*text));
	if (text)
		*text = (struct text){.users = 1, .size = draft->size, .bytes = draft->bytes};
	else
		free(draft->bytes);
	events.bytes += text ? text->size : 0;
	return text;
}

static struct text *use_text(struct text *text)
{
	if (text)
		text->users++;
	return text;
}

/* Ends the use of *@text, and forgets it. */
static void drop_text(struct text **text)
{
	if (*text && !--(*text)->users) {
		events.bytes -= (*text)->size;
		free((*text)->bytes);
		free(*text);
	}
	*text = NULL;
}

/* --- the thread that looks */

/* Returns the viewer that is furthest behind, with a message that is not of this look, or NULL. */
static struct viewer *find_slowest(void)
{
	struct viewer *viewer = list_first(&events.viewers, struct viewer, link), *slowest = NULL;

	for (; viewer; viewer = list_next(viewer, link)) {
		if (viewer->text && viewer->seen != events.number &&
		    (!slowest || viewer->seen < slowest->seen))
			slowest = viewer;
	}
	return slowest;
}

/* Takes their messages from the slowest viewers, as long as there are too many bytes. */
static void cut_slow_viewers(void)
{
	size_t most = TEXTS_OF_ALL * events.all_bytes;
	struct viewer *viewer;

	most = most > TEXTS_BYTES ? most : TEXTS_BYTES;
	while (events.bytes > most && (viewer = find_slowest())) {
		drop_text(&viewer->text);
		drop_text(&viewer->holders);
		viewer->is_cut = true;
		shutdown(viewer->socket, SHUT_RDWR);
	}
}

/* Replaces the look by @now, and says what changed since it. */
static void publish_look(struct look *now)
{
	struct draft draft;

	drop_text(&events.all);
	drop_text(&events.changes);
	if (events.number && !events.in_trouble) {
		draft_begin(&draft);
		if (draft.out)
			look_print_changes(now, &events.look, draft.out);
		events.changes = draft_end(&draft);
	}
	look_free(&events.look);
	events.look = *now;
	events.in_trouble = false;
	events.number++;
}

/* Says to all that there is no look: viewers stay with the one that they have. */
static void publish_trouble(int err)
{
	struct draft draft;

	draft_begin(&draft);
	if (draft.out)
		look_print_trouble(strerror(-err), draft.out);
	drop_text(&events.changes);
	drop_text(&events.all);
	events.all = draft_end(&draft);
	events.changes = use_text(events.all);
	events.in_trouble = true;
	events.number++;
}

/* Lets viewers read on that have read all there was. */
static void wake_viewers(void)
{
	struct viewer *viewer = list_first(&events.viewers, struct viewer, link);

	for (; viewer; viewer = list_next(viewer, link)) {
		if (viewer->sleeps)
			MHD_resume_connection(viewer->mhd);
		viewer->sleeps = false;
	}
}

/* Lists the limiters whose holders are wanted, each once; owned by the caller. */
static size_t list_wanted(char *wanted[VIEWERS_MAX])
{
	struct viewer *viewer;
	size_t count = 0, i;

	pthread_mutex_lock(&events.lock);
	viewer = list_first(&events.viewers, struct viewer, link);
	for (; viewer && count < VIEWERS_MAX; viewer = list_next(viewer, link)) {
		for (i = 0; i < count && strcmp(wanted[i], viewer->limiter) != 0; i++)
			;
		if (i < count || !*viewer->limiter)
			continue;
		wanted[count] = strdup(viewer->limiter);
		count += wanted[count] != NULL;
	}
	pthread_mutex_unlock(&events.lock);
	return count;
}

/* Tells viewers of the holders of @limiter. Returns how many parts it has. */
static size_t publish_holders(const char *limiter)
{
	struct viewer *viewer;
	size_t parts = 0;
	struct draft draft;
	struct text *text;

	draft_begin(&draft);
	if (draft.out)
		parts = look_print_holders(events.mountpoint, limiter, draft.out);
	pthread_mutex_lock(&events.lock);
	text = draft_end(&draft);
	viewer = list_first(&events.viewers, struct viewer, link);
	for (; viewer; viewer = list_next(viewer, link)) {
		if (strcmp(viewer->limiter, limiter) != 0)
			continue;
		drop_text(&viewer->holders);
		viewer->holders = use_text(text);
	}
	drop_text(&text);
	pthread_mutex_unlock(&events.lock);
	return parts;
}

/* Tells viewers of the holders of limiters in turn, as many as one look may read. */
static void publish_all_holders(void)
{
	char *wanted[VIEWERS_MAX];
	size_t count = list_wanted(wanted), parts = 0;

	for (size_t i = 0; i < count && parts < PARTS_AT_ONCE; i++)
		parts += publish_holders(wanted[events.told++ % count]);
	for (size_t i = 0; i < count; i++)
		free(wanted[i]);
}

/* Looks at the tree once, and tells viewers. */
static void look_once(void)
{
	struct look now;
	int err = look_take(events.mountpoint, &now);

	if (err == -EBUSY) /* others make pages of metrics now */
		return;
	if (!err && now.is_fleet)
		publish_all_holders();
	pthread_mutex_lock(&events.lock);
	if (err)
		publish_trouble(err);
	else
		publish_look(&now);
	cut_slow_viewers();
	wake_viewers();
	pthread_mutex_unlock(&events.lock);
}

/* Waits for viewers. The look of before is given up: it is too old for the next viewer. */
static void wait_for_viewers(void)
{
	pthread_mutex_lock(&events.lock);
	if (!events.count) {
		drop_text(&events.all);
		drop_text(&events.changes);
		events.number = 0;
	}
	while (!events.count)
		pthread_cond_wait(&events.comes, &events.lock);
	pthread_mutex_unlock(&events.lock);
}

static void *run_events(void *argument)
{
	(void)argument;
	for (;;) {
		struct timespec due;

		wait_for_viewers();
		clock_gettime(CLOCK_MONOTONIC, &due);
		due.tv_sec++;
		look_once();
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL) == EINTR)
			;
	}
	return NULL;
}

/* --- viewers */

/* Returns the message with all of the look, or NULL without memory. */
static struct text *text_of_all(void)
{
	struct draft draft;

	if (!events.all) {
		draft_begin(&draft);
		if (draft.out)
			look_print_all(&events.look, draft.out);
		events.all = draft_end(&draft);
		events.all_bytes = events.all ? events.all->size : 0;
	}
	return events.all;
}

/* Gives @viewer the next message to read, if there is one. */
static void take_text(struct viewer *viewer)
{
	viewer->offset = 0;
	if (events.number && viewer->seen != events.number) {
		bool follows = viewer->seen + 1 == events.number && events.changes;

		viewer->text = use_text(follows ? events.changes : text_of_all());
		viewer->seen = events.number;
	} else {
		viewer->text = viewer->holders;
		viewer->holders = NULL;
	}
}

static ssize_t read_events(void *cls, uint64_t position, char *bytes, size_t room)
{
	struct viewer *viewer = cls;
	size_t size = 0;

	(void)position;
	pthread_mutex_lock(&events.lock);
	if (!viewer->text && !viewer->is_cut)
		take_text(viewer);
	if (viewer->is_cut) {
		pthread_mutex_unlock(&events.lock);
		return MHD_CONTENT_READER_END_WITH_ERROR;
	}
	if (viewer->text) {
		size = viewer->text->size - viewer->offset;
		size = size < room ? size : room;
		memcpy(bytes, viewer->text->bytes + viewer->offset, size);
		viewer->offset += size;
		if (viewer->offset == viewer->text->size)
			drop_text(&viewer->text);
	} else {
		viewer->sleeps = true;
		MHD_suspend_connection(viewer->mhd);
	}
	pthread_mutex_unlock(&events.lock);
	return (ssize_t)size;
}

static void free_viewer(void *cls)
{
	struct viewer *viewer = cls;

	pthread_mutex_lock(&events.lock);
	list_remove(&events.viewers, &viewer->link);
	events.count--;
	drop_text(&viewer->text);
	drop_text(&viewer->holders);
	pthread_mutex_unlock(&events.lock);
	free(viewer);
}

/* Lists @viewer, and starts the thread with the first. 0 or -errno. */
static int add_viewer(struct viewer *viewer, const char *mountpoint)
{
	pthread_t thread;
	int err = 0;

	pthread_mutex_lock(&events.lock);
	if (events.count >= VIEWERS_MAX) {
		err = -EMFILE;
	} else if (!events.runs) {
		events.mountpoint = mountpoint; /* read by the thread without the lock */
		err = thread_start(&thread, run_events, NULL);
	}
	if (!err) {
		events.runs = true;
		events.count++;
		list_append(&events.viewers, &viewer->link);
		pthread_cond_signal(&events.comes);
	}
	pthread_mutex_unlock(&events.lock);
	return err;
}

/* Makes the viewer of @request; its limiter is the rest of the URL, escaped. NULL: no memory. */
static struct viewer *make_viewer(const struct request *request, const char *limiter)
{
	size_t length = strlen(limiter);
	struct viewer *viewer = calloc(1, sizeof(*viewer) + length + 1);

	if (!viewer)
		return NULL;
	viewer->mhd = request->connection->mhd;
	viewer->socket = request->connection->socket;
	memcpy(viewer->limiter, limiter, length);
	return viewer;
}

enum MHD_Result events_answer(struct request *request)
{
	struct MHD_Response *response;
	struct viewer *viewer;
	char error[ERROR_TEXT];
	struct url url = {.limiter = ""};
	enum MHD_Result result;
	int err = *request->rest ? url_parse(request->rest, &url, error) : 0;

	if (err)
		return answer_error(request, err, error);
	viewer = make_viewer(request, url.limiter);
	err = !viewer ? -ENOMEM : worker_hold(request) ? 0 : -EMFILE;
	if (!err)
		err = add_viewer(viewer, request->connection->worker->files.mountpoint);
	if (err) {
		free(viewer);
		return answer_error(request, err, NULL);
	}
	response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, viewer,
						     free_viewer);
	if (!response) {
		free_viewer(viewer);
		return MHD_NO;
	}
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
	(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	result = MHD_queue_response(viewer->mhd, MHD_HTTP_OK, response);
	MHD_destroy_response(response);
	return result;
}
