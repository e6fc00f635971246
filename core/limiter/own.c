/* own - what a limiter itself has, see own.h. */
#include "core/limiter/own.h"
#include "core/limiter/learning.h"

#include <math.h>

void own_refill(const struct schedule *schedule, struct limiter *limiter)
{
	for (unsigned int i = 0; i < limiter->bucket_count; i++)
		bucket_refill(&limiter->buckets[i], schedule->now_ns);
	if (limiter->learning)
		learning_refill(schedule, limiter);
}

void own_grow(const struct schedule *schedule, struct limiter *limiter)
{
	own_refill(schedule, limiter);
	if (limiter->learning)
		learning_run(schedule, limiter);
}

struct bucket *own_bucket(const struct limiter *limiter, unsigned int i)
{
	if (i < limiter->bucket_count)
		return &limiter->buckets[i];
	if (i == limiter->bucket_count && limiter->learning && limiter->learning->limited)
		return &limiter->learning->bucket;
	return NULL;
}

bool own_allows(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	const struct bucket *bucket;

	if (limiter->learning && limiter->learning->pause.until_ns > now_ns)
		return false;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		if (!bucket_has(bucket, tokens))
			return false;
	}
	return true;
}

bool own_has(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	switch (limiter->settings->enforcement) {
	case ENFORCEMENT_ENFORCE:
		return own_allows(limiter, tokens, now_ns);
	case ENFORCEMENT_SHADOW:
	case ENFORCEMENT_OPEN:
		return true;
	case ENFORCEMENT_CLOSED:
	case ENFORCEMENT_COUNT:
		break;
	}
	return false;
}

uint64_t own_when(const struct limiter *limiter, uint64_t tokens, uint64_t now_ns)
{
	uint64_t at_ns = now_ns;
	const struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_CLOSED)
		return NEVER_NS;
	if (limiter->settings->enforcement != ENFORCEMENT_ENFORCE)
		return now_ns;
	if (limiter->learning && limiter->learning->pause.until_ns > now_ns)
		at_ns = limiter->learning->pause.until_ns;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		uint64_t bucket_ns = bucket_when(bucket, tokens, now_ns);

		at_ns = bucket_ns > at_ns ? bucket_ns : at_ns;
	}
	return at_ns;
}

void own_take(struct limiter *limiter, uint64_t tokens)
{
	struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_OPEN)
		return;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
		bucket_take(bucket, tokens);
}

void own_put(struct limiter *limiter, uint64_t tokens, uint64_t kept)
{
	struct bucket *bucket;

	if (limiter->settings->enforcement == ENFORCEMENT_OPEN)
		return;
	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++)
		bucket_put(bucket, tokens, kept);
}

void limiter_empty(struct schedule *schedule, struct limiter *limiter)
{
	for (unsigned int i = 0; i < limiter->bucket_count; i++) {
		struct bucket *bucket = &limiter->buckets[i];

		bucket_refill(bucket, schedule->now_ns);
		bucket_leave(bucket, 0);
	}
}

double limiter_tokens(const struct limiter *limiter)
{
	double least = (double)INFINITY;
	const struct bucket *bucket;

	for (unsigned int i = 0; (bucket = own_bucket(limiter, i)); i++) {
		double level = (double)bucket->level - (double)bucket->aside +
			       (double)bucket->part / (double)bucket->flow.den;

		least = level < least ? level : least;
	}
	return least;
}
