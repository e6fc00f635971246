/* write - what writing a file does, and how changes are answered, see handle.h. */
#include "fs/mount/handle.h"
#include "fs/state/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Of a write of 4095 bytes: `ok` and a newline are three. One more is to find the end. */
enum { OUTCOMES_PER_WRITE = 4095 / 3 + 2 };

/* Nothing that is coordinated is held for longer. */
static const uint64_t ANSWER_WITHIN_NS = 2 * NSEC_PER_SEC;

struct writer *writer_new(const char *text, size_t size)
{
	struct writer *writer = calloc(1, sizeof(*writer) + size + 1);

	if (!writer)
		return NULL;
	if (text)
		memcpy(writer->text, text, size);
	writer->change.text = text ? writer->text : NULL;
	writer->size = size;
	return writer;
}

void writer_submit(struct daemon *daemon, struct writer *writer, const struct caller *caller)
{
	struct pending_table *table = &daemon->pending;
	uint64_t now_ns = clock_ns();

	writer->subject = viewer_subject(writer->change.limiter);
	writer->until_ns = now_ns + ANSWER_WITHIN_NS;
	pending_insert(table, &writer->pending, caller, PENDING_WRITER);
	writer_append(table, writer);
	change_begin(&daemon->engine, &writer->change, now_ns);
}

/* A change of the setting that @handle is, or of all with CHANGE_CONFIG. */
static void change_settings(struct daemon *daemon, struct handle *handle,
			    const struct caller *caller, const char *text, size_t size,
			    unsigned int setting)
{
	struct writer *writer = writer_new(text, size);

	if (!writer) {
		fuse_reply_err(caller->request, ENOMEM);
		return;
	}
	writer->change.kind = CHANGE_SETTINGS;
	writer->change.setting = setting;
	writer->change.limiter = handle->limiter;
	daemon_lock(daemon);
	writer_submit(daemon, writer, caller);
	daemon_unlock(daemon);
}

void write_setting(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		   const char *text, size_t size)
{
	change_settings(daemon, handle, caller, text, size, handle->row->setting);
}

void write_config(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		  const char *text, size_t size)
{
	change_settings(daemon, handle, caller, text, size, CHANGE_CONFIG);
}

/*
 * Refuses a report on a limiter that is gone, whatever the report says: 0 or -ENODEV. Under the
 * lock.
 */
static int check_limiter(struct daemon *daemon, const struct handle *handle, uint32_t uid)
{
	if (!handle->limiter->removed)
		return 0;
	daemon_refused(daemon, uid, "the limiter is gone");
	return -ENODEV;
}

void write_charge(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		  const char *text, size_t size)
{
	char charge[QUANTITY_TEXT] = "";
	int64_t tokens = 0;
	int err, wrong = text_copy(text, strlen(text), charge, sizeof(charge));

	if (!wrong)
		wrong = charge_parse(charge, &tokens);
	daemon_lock(daemon);
	err = check_limiter(daemon, handle, caller->uid);
	if (caller->again && state_was_done(daemon->state, caller->unique)) {
		err = 0;
	} else if (!err && wrong) {
		err = wrong;
		daemon_refused(daemon, caller->uid,
			       err == -ERANGE
				       ? "'%.60s': out of bounds: a charge is -1e13 to 1e13, not 0"
				       : "'%.60s': not a charge: a whole number such as 12 or -5",
			       charge);
	} else if (!err) {
		state_done(daemon->state, caller->unique);
		err = engine_charge(&daemon->engine, handle->limiter, tokens, clock_ns());
		if (err == -ERANGE)
			daemon_refused(daemon, caller->uid,
				       "'%.60s': more would come back than was taken", charge);
		state_taken(daemon->state, handle->limiter);
	}
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(caller->request, -err);
	else
		fuse_reply_write(caller->request, size);
}

/* All outcomes of one write count, or none. */
void write_feedback(struct daemon *daemon, struct handle *handle, const struct caller *caller,
		    const char *text, size_t size)
{
	struct outcome outcomes[OUTCOMES_PER_WRITE];
	char error[ERROR_TEXT] = "no outcome is given";
	const char *at = text;
	size_t count = 0, line = 1;
	int err, wrong;

	while (!(wrong = feedback_parse(&at, &outcomes[count], error)))
		count++;
	if (wrong == -ENOENT)
		wrong = count ? 0 : -EINVAL;
	while (text < at)
		line += *text++ == '\n';
	daemon_lock(daemon);
	err = check_limiter(daemon, handle, caller->uid);
	if (!err && wrong) {
		err = wrong;
		if (line > 1)
			daemon_refused(daemon, caller->uid, "line %zu: %s", line, error);
		else
			daemon_refused(daemon, caller->uid, "%s", error);
	} else if (!err && (!caller->again || !state_was_done(daemon->state, caller->unique))) {
		state_done(daemon->state, caller->unique);
		err = engine_feedback(&daemon->engine, handle->limiter, outcomes, count,
				      clock_ns());
		state_taken(daemon->state, handle->limiter);
	}
	daemon_unlock(daemon);
	if (err)
		fuse_reply_err(caller->request, -err);
	else
		fuse_reply_write(caller->request, size);
}
