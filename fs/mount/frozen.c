/* frozen - the file `frozen`, see frozen.h. */
#include "fs/mount/frozen.h"
#include "fs/mount/await.h"
#include "fs/mount/text_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>

/* Has @handle freeze. Its record says so to a successor: granted, and given to that process. */
static void begin_freeze(struct daemon *daemon, struct handle *handle, uint64_t pid)
{
	handle->granted = true;
	handle->given = pid;
	handle->kept->granted = true;
	handle->kept->given = pid;
	daemon->freezer = handle;
	engine_freeze(&daemon->engine);
}

void frozen_end(struct daemon *daemon)
{
	daemon->freezer = NULL;
	engine_thaw(&daemon->engine, clock_ns());
}

uint32_t frozen_by(const struct daemon *daemon)
{
	return daemon->freezer ? (uint32_t)daemon->freezer->given : 0;
}

static void open_frozen(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			int flags)
{
	int err = 0;

	daemon_lock(daemon);
	handle->position = UINT64_MAX;
	if ((flags & O_ACCMODE) != O_RDONLY) {
		err = daemon->freezer ? EBUSY : 0;
		if (err)
			daemon_refused(daemon, caller->uid, handle->limiter, handle->row,
				       "process %" PRIu32 " has it frozen", frozen_by(daemon));
		else
			begin_freeze(daemon, handle, caller->pid);
	}
	if (err)
		handle_close(daemon, handle);
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(caller->request, err);
	else
		handle_answer_open(daemon, handle, caller->request);
}

static int reopen_frozen(struct daemon *daemon, struct handle *handle,
			 const struct state_handle *kept)
{
	handle->position = UINT64_MAX;
	if (kept->granted)
		begin_freeze(daemon, handle, kept->given);
	return 0;
}

static void answer_frozen(struct daemon *daemon, struct handle *handle,
			  const struct read_request *read)
{
	pthread_mutex_lock(&daemon->lock);
	handle->position = daemon->pending.asked;
	pthread_mutex_unlock(&daemon->lock);
	TEXT_FILE.answer(daemon, handle, read);
}

/* Refuses a write: the open file itself is what freezes. */
static void write_frozen(struct daemon *daemon, struct handle *handle, const struct caller *caller,
			 const char *text, size_t size)
{
	(void)text;
	(void)size;
	daemon_lock(daemon);
	daemon_refused(daemon, caller->uid, handle->limiter, handle->row,
		       "the tree is frozen as long as this file is open: nothing is written to it");
	daemon_unlock(daemon);
	fuse_reply_err(caller->request, EINVAL);
}

const struct node_kind FROZEN_FILE = {
	.open = open_frozen,
	.reopen = reopen_frozen,
	.read = text_file_read,
	.answer = answer_frozen,
	.write = write_frozen,
	.poll = await_poll,
};

void frozen_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	(void)node;
	(void)uid;
	for (uint32_t i = 0; i < daemon->pending.size; i++) {
		for (const struct pending *p = daemon->pending.chains[i]; p; p = p->next) {
			if (p->pid && !PENDING_ROWS[p->kind].resolute)
				fprintf(out, "%" PRIu32 "\n", p->pid);
		}
	}
	for (uint32_t i = 0; i < daemon->handles.size; i++) {
		const struct handle *handle = daemon->handles.at[i];

		if (handle && handle->poll_pid && handle != daemon->freezer)
			fprintf(out, "%" PRIu32 "\n", handle->poll_pid);
	}
}
