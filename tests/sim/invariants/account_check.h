/*
 * account_check - granted + in the bucket + spilled = accrued + given back, exactly, in integers.
 *
 * Each bucket keeps an account (bucket.h). Here its sums are compared with what is known from
 * outside: the inflow is rate times time, the tokens taken are those that the log says were granted
 * and charged, and the tokens put are those that the log says were given back. And tuning creates
 * no token.
 */
#ifndef RATEFS_SIM_ACCOUNT_CHECK_H
#define RATEFS_SIM_ACCOUNT_CHECK_H

#include "core/limiter/bucket.h"
#include "tests/sim/invariants/rate_check.h"

struct account_check {
	struct bucket_account account; /* written by the bucket */
	u128 taken;		       /* should be, since it was opened */
	u128 put;
	uint64_t since_ns;
	int64_t level; /* before it was tuned, see account_check_tuning() */
	uint64_t part;
	uint64_t den;
	uint64_t burst;
	struct fraction flow; /* since it was opened */
};

/* Opens an account of @bucket unless it has this one. */
void account_check_open(struct account_check *check, struct bucket *bucket);

/* The log: tokens were taken from, or put into, @bucket. */
void account_check_take(struct account_check *check, const struct bucket *bucket, uint64_t tokens);
void account_check_put(struct account_check *check, const struct bucket *bucket, uint64_t tokens);

/* Just before, and just after, the bucket is tuned, nothing else happening in between. */
void account_check_tuning(struct account_check *check, const struct bucket *bucket,
			  uint64_t now_ns);
bool account_check_tuned(struct account_check *check, const struct bucket *bucket,
			 char why[WHY_TEXT]);

/*
 * Whether @bucket has begun another account by itself since account_check_restart(); whether what
 * it has written adds up, whatever happened; begins anew.
 */
bool account_check_reopened(const struct account_check *check, const struct bucket *bucket);
bool account_check_is_consistent(const struct account_check *check, const struct bucket *bucket,
				 char why[WHY_TEXT]);
void account_check_restart(struct account_check *check, struct bucket *bucket);

/* Whether the books balance. */
bool account_check_balance(const struct account_check *check, const struct bucket *bucket,
			   char why[WHY_TEXT]);

#endif
