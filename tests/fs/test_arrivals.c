/* Tests of fs/mount/arrivals: users are served in turn, and rest after what took long. */
#include "fs/mount/arrivals.h"

#include <linux/fuse.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct request {
	struct fuse_in_header header;
	struct fuse_interrupt_in interrupt;
	char more[ARRIVALS_BYTES / 4];
};

static struct request request;
static uint64_t now_ns;

/* Adds request @unique of @uid, with @more bytes. */
static bool add(struct arrivals *arrivals, uint32_t uid, uint64_t unique, size_t more)
{
	request.header = (struct fuse_in_header){.opcode = FUSE_READ, .uid = uid, .unique = unique};
	return arrivals_add(arrivals, &request, sizeof(request.header) + more, 3);
}

/* Adds the interrupt of request @unique, which comes as of no user. */
static bool interrupt(struct arrivals *arrivals, uint64_t unique)
{
	request.header = (struct fuse_in_header){.opcode = FUSE_INTERRUPT};
	request.interrupt.unique = unique;
	return arrivals_add(arrivals, &request, sizeof(request.header) + sizeof(request.interrupt),
			    3);
}

/* Takes a request out, and returns its number; of an interrupt 1000 and that of its request. */
static uint64_t take(struct arrivals *arrivals)
{
	struct arrival *arrival = arrivals_take(arrivals, now_ns);
	struct request *its;
	uint64_t unique;

	if (!arrival)
		return 0;
	its = (struct request *)arrival->bytes;
	unique = its->header.unique & ~FUSE_RESEND;
	if (its->header.opcode == FUSE_INTERRUPT)
		unique = its->interrupt.unique + 1000;
	assert_int_equal(arrival->channel, 3);
	free(arrival);
	return unique;
}

static void test_users_are_served_in_turn_and_each_in_order(void **state)
{
	struct arrivals arrivals = {0};
	const uint64_t expected[] = {1, 4, 6, 2, 5, 3};

	(void)state;
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(add(&arrivals, 0, i, 0));
	assert_true(add(&arrivals, 7, 4, 100));
	assert_true(add(&arrivals, 7, 5, 0));
	assert_true(add(&arrivals, 8, 6, 0));
	/* The lane that was served last is the first one: root is the last of a round. */
	arrivals.lanes.last = LANE_COUNT - 1;
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++)
		assert_int_equal(take(&arrivals), expected[i]);
	assert_int_equal(take(&arrivals), 0);
	assert_int_equal(arrivals.count, 0);
	assert_int_equal(arrivals.bytes, 0);
}

static void test_an_interrupt_comes_behind_its_request(void **state)
{
	struct arrivals arrivals = {0};

	(void)state;
	assert_true(add(&arrivals, 7, 1, 0));
	assert_true(add(&arrivals, 7, 2 | FUSE_RESEND, 0));
	assert_true(add(&arrivals, 8, 3, 0));
	assert_true(interrupt(&arrivals, 2));
	assert_int_equal(take(&arrivals), 1);
	assert_int_equal(take(&arrivals), 3);
	assert_int_equal(take(&arrivals), 2);
	assert_int_equal(take(&arrivals), 1002);
	/* Others are being served, or were. */
	assert_false(interrupt(&arrivals, 2));
	assert_int_equal(take(&arrivals), 0);
}

static void test_closes_and_forgotten_names_wait_for_nobody(void **state)
{
	const uint32_t kinds[] = {FUSE_RELEASE, FUSE_RELEASEDIR, FUSE_FORGET, FUSE_BATCH_FORGET};
	struct arrivals arrivals = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		request.header = (struct fuse_in_header){.opcode = kinds[i]};
		assert_false(arrivals_add(&arrivals, &request, sizeof(request.header) + 24, 3));
	}
	assert_int_equal(arrivals.count, 0);
}

static void test_short_requests_are_not_kept(void **state)
{
	struct arrivals arrivals = {0};

	(void)state;
	request.header = (struct fuse_in_header){.opcode = FUSE_READ};
	assert_false(arrivals_add(&arrivals, &request, sizeof(request.header) - 1, 3));
	assert_true(add(&arrivals, 0, 1, 0));
	request.header.opcode = FUSE_INTERRUPT;
	request.interrupt.unique = 1;
	assert_false(arrivals_add(&arrivals, &request, sizeof(request.header), 3));
	assert_int_equal(take(&arrivals), 1);
}

static void test_there_is_room_for_so_many_and_so_many_bytes(void **state)
{
	struct arrivals arrivals = {0};

	(void)state;
	for (uint64_t i = 1; i <= ARRIVALS_MAX; i++) {
		assert_true(arrivals_have_room(&arrivals));
		assert_true(add(&arrivals, 7, i, 0));
	}
	assert_false(arrivals_have_room(&arrivals));
	assert_int_equal(take(&arrivals), 1);
	assert_true(arrivals_have_room(&arrivals));
	while (take(&arrivals))
		;
	for (uint64_t i = 1; i <= 4; i++) {
		assert_true(arrivals_have_room(&arrivals));
		assert_true(add(&arrivals, 7, i, ARRIVALS_BYTES / 4));
	}
	assert_false(arrivals_have_room(&arrivals));
	while (take(&arrivals))
		;
}

enum { US = 1000, SLOW = 700 * US };

/* A user with three requests; the first took 700 us, and another user was served @ago_ns before. */
static struct arrivals after_a_slow_request(uint64_t ago_ns)
{
	struct arrivals arrivals = {0};

	now_ns = 1000000 * US;
	arrivals_served(&arrivals, 8, now_ns - ago_ns);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(add(&arrivals, 7, i, 0));
	/* Its own requests are not those of others. */
	arrivals_served(&arrivals, 7, now_ns);
	arrivals_served(&arrivals, 7, now_ns);
	assert_int_equal(take(&arrivals), 1);
	now_ns += SLOW;
	arrivals_rest(&arrivals, 7, now_ns - SLOW, now_ns);
	return arrivals;
}

static void test_a_slow_user_rests_for_twice_the_time_while_others_ask(void **state)
{
	struct arrivals arrivals = after_a_slow_request(REST_OTHERS_NS - 1);
	uint64_t until_ns = now_ns + (uint64_t)RESTS * SLOW;

	(void)state;
	for (; now_ns < until_ns; now_ns += 20 * US) {
		assert_true(add(&arrivals, 8, 10, 0));
		assert_int_equal(take(&arrivals), 10);
		assert_int_equal(take(&arrivals), 0);
		assert_int_equal(arrivals_next_ns(&arrivals), until_ns);
	}
	now_ns = until_ns - 1;
	assert_int_equal(take(&arrivals), 0);
	now_ns++;
	assert_int_equal(take(&arrivals), 2);
	assert_int_equal(take(&arrivals), 3);
	assert_int_equal(arrivals_next_ns(&arrivals), NEVER_NS);
}

static void test_a_slow_user_goes_on_when_no_other_asks(void **state)
{
	struct arrivals arrivals = after_a_slow_request(REST_OTHERS_NS);

	(void)state;
	assert_int_equal(arrivals_next_ns(&arrivals), NEVER_NS);
	assert_int_equal(take(&arrivals), 2);
	/* A request of another that waits has it rest as well. */
	assert_true(add(&arrivals, 8, 10, 0));
	arrivals_rest(&arrivals, 7, now_ns, now_ns + SLOW);
	assert_int_equal(take(&arrivals), 10);
	assert_int_equal(take(&arrivals), 0);
	arrivals_go_on(&arrivals);
	assert_int_equal(take(&arrivals), 3);
}

static void test_a_rest_has_a_bound(void **state)
{
	struct arrivals arrivals = after_a_slow_request(0);

	(void)state;
	now_ns += REST_MOST_NS;
	arrivals_served(&arrivals, 8, now_ns - REST_MOST_NS);
	arrivals_rest(&arrivals, 7, now_ns - REST_MOST_NS, now_ns);
	now_ns += REST_MOST_NS - 1;
	assert_int_equal(take(&arrivals), 0);
	now_ns++;
	assert_int_equal(take(&arrivals), 2);
	assert_int_equal(take(&arrivals), 3);
}

static void test_no_user_rests_where_requests_of_others_have_no_room_or_at_the_end(void **state)
{
	struct arrivals arrivals = after_a_slow_request(0);

	(void)state;
	assert_int_equal(take(&arrivals), 0);
	while (arrivals_have_room(&arrivals))
		assert_true(add(&arrivals, 7, 4, 0));
	assert_int_equal(take(&arrivals), 2);
	assert_true(arrivals_have_room(&arrivals));
	assert_int_equal(take(&arrivals), 3);
	arrivals_served(&arrivals, 8, now_ns);
	arrivals_rest(&arrivals, 7, now_ns - SLOW, now_ns);
	assert_int_equal(take(&arrivals), 0);
	now_ns = NEVER_NS;
	while (arrivals.count)
		assert_int_equal(take(&arrivals), 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_users_are_served_in_turn_and_each_in_order),
		cmocka_unit_test(test_an_interrupt_comes_behind_its_request),
		cmocka_unit_test(test_closes_and_forgotten_names_wait_for_nobody),
		cmocka_unit_test(test_short_requests_are_not_kept),
		cmocka_unit_test(test_there_is_room_for_so_many_and_so_many_bytes),
		cmocka_unit_test(test_a_slow_user_rests_for_twice_the_time_while_others_ask),
		cmocka_unit_test(test_a_slow_user_goes_on_when_no_other_asks),
		cmocka_unit_test(test_a_rest_has_a_bound),
		cmocka_unit_test(
			test_no_user_rests_where_requests_of_others_have_no_room_or_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
