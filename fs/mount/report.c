/* report - what is written to `feedback`, see report.h. */
#include "fs/mount/report.h"
#include "fs/base/clock.h"
#include "fs/mount/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A program that writes so many bytes at once has a buffer, which ends anywhere. */
enum { BUFFER_BYTES = 512, FIRST_OUTCOMES = 16 };

static const char BLANKS[] = " \t\r\v\f";

/* The outcomes in a write, and the first thing that is wrong in it. */
struct report {
	struct outcome *outcomes; /* owned */
	size_t count, room;
	int err; /* 0; or why all is refused */
	/* Why; or the first that counts as nothing behind a status; else "". */
	char why[ERROR_TEXT];
	size_t line; /* that is of; 0: none is known */
};

/* Tells whether @outcome is a number of pieces of work, and nothing else. */
static bool is_plain(const struct outcome *outcome)
{
	return (outcome->kind == OUTCOME_OK || outcome->kind == OUTCOME_ERROR) &&
	       !outcome_tells_quota(outcome) && !*outcome->unit;
}

/* Adds @outcome to @report; two plain ones of a kind after each other are one. 0 or -ENOMEM. */
static int add_outcome(struct report *report, const struct outcome *outcome)
{
	struct outcome *last = report->count ? &report->outcomes[report->count - 1] : NULL;
	struct outcome *outcomes;

	if (last && last->kind == outcome->kind && is_plain(last) && is_plain(outcome) &&
	    last->count <= OUTCOMES_MAX - outcome->count) {
		last->count += outcome->count;
		return 0;
	}
	if (report->count == report->room) {
		size_t room = report->room ? 2 * report->room : FIRST_OUTCOMES;

		outcomes = reallocarray(report->outcomes, room, sizeof(*outcomes));
		if (!outcomes)
			return -ENOMEM;
		report->outcomes = outcomes;
		report->room = room;
	}
	report->outcomes[report->count++] = *outcome;
	return 0;
}

static size_t line_at(const char *text, const char *at)
{
	size_t line = 1;

	while (text < at)
		line += *text++ == '\n';
	return line;
}

/* Reads all of @text. */
static void read_report(const char *text, struct report *report)
{
	int64_t wall_s = time(NULL);
	struct outcome outcome;
	char why[ERROR_TEXT];
	const char *at = text;

	while (!(report->err = feedback_parse(&at, &outcome, why))) {
		feedback_at(&outcome, wall_s);
		report->err = add_outcome(report, &outcome);
		if (report->err) {
			strcpy(why, "no memory for so many outcomes");
			break;
		}
		if (!*why || *report->why)
			continue;
		strcpy(report->why, why);
		report->line = line_at(text, at);
	}
	if (report->err == -ENOENT) {
		report->err = 0;
		return;
	}
	strcpy(report->why, why);
	report->line = line_at(text, at);
}

/*
 * Looks for outcomes of a unit that @limiter does not have: one that was told by a HTTP status
 * counts, but for the quota; another one refuses @report.
 */
static void check_units(const struct limiter *limiter, struct report *report)
{
	for (size_t i = 0; i < report->count && !report->err; i++) {
		struct outcome *outcome = &report->outcomes[i];

		if (!*outcome->unit || settings_have_unit(limiter_settings(limiter), outcome->unit))
			continue;
		if (!*report->why || !outcome->is_status) {
			snprintf(report->why, sizeof(report->why),
				 "unit=%s: the rate of the limiter has no such unit",
				 outcome->unit);
			report->line = 0;
		}
		if (outcome->is_status)
			feedback_void_quota(outcome);
		else
			report->err = -EINVAL;
	}
}

static void explain(struct daemon *daemon, const struct handle *handle, uint32_t uid,
		    const struct report *report)
{
	const char *counted = report->err ? "" : "counted, but for ";

	if (report->line > 1)
		daemon_refused(daemon, uid, handle->limiter, handle->row, "line %zu: %s%s",
			       report->line, counted, report->why);
	else if (*report->why)
		daemon_refused(daemon, uid, handle->limiter, handle->row, "%s%s", counted,
			       report->why);
}

/* Tells what is not understood in @report. 0, or why all of it is refused. Under the lock. */
static int check_report(struct daemon *daemon, const struct handle *handle, uint32_t uid,
			struct report *report, uint64_t now_ns)
{
	/* Settings of other hosts may be about to follow. */
	engine_run(&daemon->engine, now_ns);
	check_units(handle->limiter, report);
	explain(daemon, handle, uid, report);
	return report->err;
}

/* Counts all of @report, or nothing. 0, or why. Under the lock. */
static int count_report(struct daemon *daemon, const struct handle *handle,
			const struct report *report, uint64_t now_ns)
{
	int err = engine_feedback(&daemon->engine, handle->limiter, report->outcomes, report->count,
				  now_ns);

	state_taken(daemon->state, handle->limiter);
	return err;
}

/*
 * Keeps the line of @handle that goes on, or "". @buffers: lines of this open file go on until a
 * newline ends them. For a successor, too. Under the lock.
 */
static void keep_line(struct daemon *daemon, struct handle *handle, const char *line, bool buffers)
{
	strcpy(state_handle_text(daemon->state, (uint32_t)handle->number), line);
	handle_set_half(handle, buffers);
}

/*
 * Returns @text, of @size bytes, behind the line of @handle that goes on there; NULL: no memory.
 * Under the lock.
 */
static char *join(struct daemon *daemon, const struct handle *handle, const char *text, size_t size)
{
	const char *begin = handle->half
				    ? state_handle_text(daemon->state, (uint32_t)handle->number)
				    : "";
	size_t length = strnlen(begin, STATE_HANDLE_TEXT - 1);
	char *whole = malloc(length + size + 1);

	if (!whole)
		return NULL;
	memcpy(whole, begin, length);
	memcpy(whole + length, text, size);
	whole[length + size] = '\0';
	return whole;
}

/*
 * Takes the last line off @whole, if no newline ends it: @line is that, or "". A line without an
 * end is not kept whole: `...` stands for the rest of it, so that no value counts that is cut.
 */
static void cut_off(char *whole, char line[STATE_HANDLE_TEXT])
{
	static const char rest[] = " ...";
	char *begin = strrchr(whole, '\n');

	begin = begin ? begin + 1 : whole;
	begin += strspn(begin, BLANKS);
	snprintf(line, STATE_HANDLE_TEXT, "%s", begin);
	if (strlen(begin) >= STATE_HANDLE_TEXT) {
		char *last = line + STATE_HANDLE_TEXT - sizeof(rest);

		while (last > line && !strchr(BLANKS, *last))
			last--;
		strcpy(last, rest);
	}
	*begin = '\0';
}

static void write_feedback(struct daemon *daemon, struct handle *handle,
			   const struct caller *caller, const char *text, size_t size)
{
	uint64_t now_ns = clock_ns();
	struct report report = {.count = 0};
	char line[STATE_HANDLE_TEXT] = "";
	bool buffers;
	char *whole;
	int err;

	daemon_lock(daemon);
	buffers = handle->half || size >= BUFFER_BYTES;
	whole = join(daemon, handle, text, size);
	daemon_unlock(daemon);
	if (!whole) {
		fuse_reply_err(caller->request, ENOMEM);
		return;
	}
	if (buffers)
		cut_off(whole, line);
	read_report(whole, &report);
	daemon_lock(daemon);
	err = write_check_limiter(daemon, handle, caller->uid);
	if (!err && !(caller->again && state_was_done(daemon->state, caller->unique))) {
		err = check_report(daemon, handle, caller->uid, &report, now_ns);
		if (!err)
			state_done(daemon->state, caller->unique);
		if (buffers)
			keep_line(daemon, handle, err ? "" : line, true);
		if (!err)
			err = count_report(daemon, handle, &report, now_ns);
	}
	daemon_unlock(daemon);
	free(report.outcomes);
	free(whole);
	if (err)
		fuse_reply_err(caller->request, -err);
	else
		fuse_reply_write(caller->request, size);
}

/* Has the line of @handle that goes on nowhere count. */
static void end_feedback(struct daemon *daemon, struct handle *handle)
{
	uint64_t now_ns = clock_ns();
	struct report report = {.count = 0};
	char *line;

	if (!handle->half)
		return;
	line = join(daemon, handle, "", 0);
	keep_line(daemon, handle, "", false);
	if (!line)
		return;
	read_report(line, &report);
	if (!write_check_limiter(daemon, handle, handle->uid) &&
	    !check_report(daemon, handle, handle->uid, &report, now_ns))
		(void)count_report(daemon, handle, &report, now_ns);
	free(report.outcomes);
	free(line);
}

const struct node_kind FEEDBACK_FILE = {
	.write = write_feedback, .write_max = MOUNT_WRITE_MAX, .close = end_feedback};
