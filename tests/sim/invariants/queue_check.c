/* queue_check - first come, first served, and no reader lost: see queue_check.h. */
#include "tests/sim/invariants/queue_check.h"

#include "core/limiter/learning.h"

#include <stdio.h>

static void unlink_reader(struct queue_check *check, struct reader_check *reader)
{
	if (reader->older)
		reader->older->newer = reader->newer;
	else
		check->oldest = reader->newer;
	if (reader->newer)
		reader->newer->older = reader->older;
	else
		check->newest = reader->older;
	check->length--;
	reader->older = NULL;
	reader->newer = NULL;
}

bool queue_check_waits(struct queue_check *check, struct reader_check *reader, char why[WHY_TEXT])
{
	struct reader_check *older = check->newest;

	if (reader->state != READER_NEW) {
		snprintf(why, WHY_TEXT, "reader %llu waits again",
			 (unsigned long long)reader->number);
		return false;
	}
	/* One that came back to its place stands among the others by its number. */
	while (older && older->number > reader->number)
		older = older->older;
	reader->state = READER_WAITS;
	reader->older = older;
	reader->newer = older ? older->newer : check->oldest;
	if (older)
		older->newer = reader;
	else
		check->oldest = reader;
	if (reader->newer)
		reader->newer->older = reader;
	else
		check->newest = reader;
	check->length++;
	return true;
}

bool queue_check_granted(struct queue_check *check, struct reader_check *reader, char why[WHY_TEXT])
{
	if (reader->state == READER_GONE) {
		snprintf(why, WHY_TEXT, "reader %llu is served after it has gone",
			 (unsigned long long)reader->number);
		return false;
	}
	if (check->oldest && check->oldest != reader) {
		snprintf(why, WHY_TEXT, "reader %llu is served before reader %llu",
			 (unsigned long long)reader->number,
			 (unsigned long long)check->oldest->number);
		return false;
	}
	return queue_check_left(check, reader, why);
}

bool queue_check_left(struct queue_check *check, struct reader_check *reader, char why[WHY_TEXT])
{
	if (reader->state == READER_GONE) {
		snprintf(why, WHY_TEXT, "reader %llu leaves twice",
			 (unsigned long long)reader->number);
		return false;
	}
	if (reader->state == READER_WAITS)
		unlink_reader(check, reader);
	reader->state = READER_GONE;
	return true;
}

bool queue_check_length(const struct queue_check *check, const struct limiter *limiter,
			char why[WHY_TEXT])
{
	if (check->length == limiter->turns.queue.length)
		return true;
	snprintf(why, WHY_TEXT, "%u readers are in the queue, %u should be",
		 limiter->turns.queue.length, check->length);
	return false;
}

/* When @bucket, which is looked at and not touched, has @tokens. */
static uint64_t bucket_due_ns(struct bucket bucket, uint64_t tokens, uint64_t now_ns)
{
	bucket.account = NULL;
	bucket_refill(&bucket, now_ns);
	return bucket_when(&bucket, tokens, now_ns);
}

/* Returns from when on, from @due_ns, no report is against @tokens. */
static uint64_t allowed_ns(const struct allowances *allowances, uint64_t tokens, uint64_t due_ns)
{
	for (uint32_t i = 0; i < allowances->count; i++) {
		const struct allowance *at = &allowances->list[i];

		if (at->left < (int64_t)tokens && at->until_ns > due_ns)
			due_ns = at->until_ns;
	}
	return due_ns;
}

uint64_t queue_check_due_ns(const struct limiter *limiter, uint64_t tokens,
			    const struct amounts *amounts, uint64_t now_ns)
{
	const struct learning *learning = limiter->learning;
	uint64_t due_ns = now_ns;

	if (limiter->settings->enforcement == ENFORCEMENT_CLOSED)
		return NEVER_NS;
	if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
		return now_ns;
	for (uint32_t i = 0; i < limiter->bucket_count; i++) {
		const char *unit = limiter->settings->limits[i].unit;
		uint64_t wanted = *unit ? amounts_of(amounts, unit) : tokens, at_ns;

		if (*unit && !amounts_name(amounts, unit))
			continue;
		at_ns = bucket_due_ns(limiter->buckets[i], wanted, now_ns);
		due_ns = at_ns > due_ns ? at_ns : due_ns;
	}
	for (uint32_t i = 0; learning && learning->units && i < learning->units->count; i++) {
		const struct unit_quota *quota = &learning->units->of[i];

		if (amounts_name(amounts, quota->unit))
			due_ns = allowed_ns(&quota->allowances, amounts_of(amounts, quota->unit),
					    due_ns);
	}
	if (learning && learning->limited) {
		uint64_t at_ns = bucket_due_ns(learning->bucket, tokens, now_ns);

		due_ns = at_ns > due_ns ? at_ns : due_ns;
	}
	if (learning)
		due_ns = allowed_ns(&learning->allowances, tokens, due_ns);
	if (learning && learning->pause.until_ns > due_ns)
		due_ns = learning->pause.until_ns;
	return due_ns;
}
