/* account_check - every token is accounted for, see account_check.h. */
#include "tests/sim/invariants/account_check.h"

#include <stdio.h>

/* Put where it cancels out, so that an account that the bucket has begun itself is seen. */
#define MARK ((u128)1 << 120)

static void begin(struct account_check *check, const struct bucket *bucket)
{
	check->taken = 0;
	check->put = 0;
	check->since_ns = bucket->filled_ns;
	check->flow = bucket->flow;
}

void account_check_open(struct account_check *check, struct bucket *bucket)
{
	if (bucket->account == &check->account)
		return;
	bucket_account_open(bucket, &check->account);
	begin(check, bucket);
}

void account_check_take(struct account_check *check, const struct bucket *bucket, uint64_t tokens)
{
	check->taken += (u128)tokens * bucket->flow.den;
}

void account_check_put(struct account_check *check, const struct bucket *bucket, uint64_t tokens)
{
	check->put += (u128)tokens * bucket->flow.den;
}

void account_check_tuning(struct account_check *check, const struct bucket *bucket, uint64_t now_ns)
{
	struct bucket before = *bucket;

	before.account = NULL;
	bucket_refill(&before, now_ns);
	check->level = before.level;
	check->part = before.part;
	check->den = before.flow.den;
	check->burst = before.burst;
}

bool account_check_tuned(struct account_check *check, const struct bucket *bucket,
			 char why[WHY_TEXT])
{
	i128 den = (i128)bucket->flow.den, whole, part;

	begin(check, bucket);
	if (bucket_is_strict(bucket))
		return true; /* a larger window is free by what is more of it */
	/* opened = whole + part / den; both denominators are below 2^63. */
	whole = check->account.opened / den;
	part = check->account.opened % den;
	if (part < 0) {
		whole--;
		part += den;
	}
	/* Of a window no less is used. */
	if (bucket_is_window(bucket))
		whole += (i128)check->burst - (i128)bucket->burst;
	if (whole < check->level ||
	    (whole == check->level && part * (i128)check->den <= (i128)check->part * den))
		return true;
	snprintf(why, WHY_TEXT, "tuning raised the level from %lld to %lld",
		 (long long)check->level, (long long)whole);
	return false;
}

static i128 booked_level(const struct bucket_account *account)
{
	return account->opened + (i128)account->accrued + (i128)account->put -
	       (i128)account->taken - (i128)account->spilled;
}

static i128 level_of(const struct bucket *bucket)
{
	return (i128)bucket->level * (i128)bucket->flow.den + (i128)bucket->part;
}

bool account_check_reopened(const struct account_check *check, const struct bucket *bucket)
{
	return bucket->flow.num != check->flow.num || bucket->flow.den != check->flow.den ||
	       check->account.spilled < MARK;
}

bool account_check_is_consistent(const struct account_check *check, const struct bucket *bucket,
				 char why[WHY_TEXT])
{
	if (bucket->part < bucket->flow.den && booked_level(&check->account) == level_of(bucket))
		return true;
	snprintf(why, WHY_TEXT, "the level %lld is not what the books say",
		 (long long)bucket->level);
	return false;
}

void account_check_restart(struct account_check *check, struct bucket *bucket)
{
	bucket_account_open(bucket, &check->account);
	check->account.opened += (i128)MARK;
	check->account.spilled += MARK;
	begin(check, bucket);
}

bool account_check_balance(const struct account_check *check, const struct bucket *bucket,
			   char why[WHY_TEXT])
{
	const struct bucket_account *account = &check->account;
	u128 accrued = (u128)bucket->flow.num * (bucket->filled_ns - check->since_ns);
	i128 level = level_of(bucket), booked = booked_level(account);
	const char *what = NULL;

	if (bucket->part >= bucket->flow.den)
		what = "the fraction is a token or more";
	else if (booked != level)
		what = "the level is not what the books say";
	else if (!bucket_is_strict(bucket) && !bucket_is_window(bucket) &&
		 account->accrued != accrued)
		what = "what flowed in is not rate times time";
	else if (account->taken != check->taken)
		what = "what was taken is not what was granted and charged";
	else if (account->put != check->put)
		what = "what was put back is not what was given back";
	if (!what)
		return true;
	snprintf(why, WHY_TEXT, "%s: level %lld, off by %.9f tokens", what,
		 (long long)bucket->level,
		 ((double)(level - booked) + (double)((i128)account->accrued - (i128)accrued) +
		  (double)((i128)account->taken - (i128)check->taken) +
		  (double)((i128)account->put - (i128)check->put)) /
			 (double)bucket->flow.den);
	return false;
}
