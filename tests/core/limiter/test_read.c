/* Reads of files that give tokens: now, later, a little later, or not. */
#include "tests/core/stage.h"

/* An open file of a limiter, and what came of its last read. */
struct file {
	struct stage stage;
	struct limiter *limiter;
	struct token_read read;
	struct read_wait wait;
	struct poller poller;
	struct expiry expiry;
};

static bool always(struct source *source, const struct limiter *limiter)
{
	(void)source;
	(void)limiter;
	return true;
}

/* A file of a limiter of 10/s, without a token now. */
static void open_file(struct file *file)
{
	*file = (struct file){0};
	stage_open(&file->stage);
	file->limiter = stage_make(&file->stage, NULL, "a", "rate=10/s\nburst=1");
	file->read =
		(struct token_read){.limiter = file->limiter, .tokens = 1, .within_ns = NEVER_NS};
	assert_int_equal(stage_try(&file->stage, file->limiter, 1, 0), 0);
}

static int read_file(struct file *file, enum read_manner manner, uint64_t now_ns)
{
	file->read.manner = manner;
	return engine_read(&file->stage.engine, &file->read, &file->wait, now_ns);
}

/* Polls @file for at most @within_ns from @now_ns on. */
static bool poll_file(struct file *file, uint64_t within_ns, uint64_t now_ns)
{
	if (!file->read.poller) {
		poller_init(&file->poller, file->limiter, 1, 1, NULL);
		file->read.poller = &file->poller;
	}
	if (within_ns != NEVER_NS)
		poller_limit(&file->poller, &file->expiry, within_ns);
	file->read.within_ns = within_ns;
	return engine_poll(&file->stage.engine, &file->poller, now_ns);
}

static void close_file(struct file *file)
{
	if (file->read.poller)
		engine_unpoll(&file->stage.engine, &file->poller,
			      file->stage.engine.schedule.now_ns);
	stage_close(&file->stage);
}

static uint64_t refused(const struct file *file)
{
	return file->limiter->counters[COUNTER_REFUSED];
}

static void test_tokens_that_are_there_are_given_to_each_manner(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_int_equal(read_file(&file, READ_BLOCKING, 100 * MS), 0);
	assert_int_equal(read_file(&file, READ_TRYING, 200 * MS), 0);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 300 * MS), 0);
	assert_int_equal(refused(&file), 0);
	close_file(&file);
}

static void test_a_blocking_read_waits_and_is_not_refused(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_int_equal(read_file(&file, READ_BLOCKING, 0), WAITING);
	assert_int_equal(file.wait.within_ns, NEVER_NS);
	file.read.within_ns = 50 * MS;
	assert_int_equal(read_file(&file, READ_BLOCKING, 0), WAITING);
	assert_int_equal(file.wait.within_ns, 50 * MS);
	assert_int_equal(file.wait.refusal, -EBUSY);
	assert_ptr_equal(file.wait.waiter.limiter, file.limiter);
	assert_int_equal(file.wait.waiter.tokens, 1);
	assert_int_equal(refused(&file), 0);
	close_file(&file);
}

static void test_a_try_is_refused_with_EBUSY_and_counted(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_int_equal(read_file(&file, READ_TRYING, 99 * MS), -EBUSY);
	assert_int_equal(refused(&file), 1);
	close_file(&file);
}

static void test_a_read_with_O_NONBLOCK_is_refused_with_EAGAIN_and_counted(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 99 * MS), -EAGAIN);
	assert_int_equal(refused(&file), 1);
	close_file(&file);
}

static void test_more_than_a_burst_with_O_NONBLOCK_is_EINVAL(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	file.read.tokens = 2;
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), -EINVAL);
	assert_int_equal(refused(&file), 0);
	/* `try` is refused: it would be had by a reader that waits. */
	assert_int_equal(read_file(&file, READ_TRYING, 0), -EBUSY);
	close_file(&file);
}

static void test_a_time_that_is_too_short_is_EBUSY_even_with_O_NONBLOCK(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	file.read.within_ns = 99 * MS;
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), -EBUSY);
	file.read.within_ns = 100 * MS;
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), -EAGAIN);
	assert_int_equal(refused(&file), 2);
	close_file(&file);
}

static void test_a_file_that_is_polled_is_not_too_late_for_its_own_poller(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_false(poll_file(&file, 100 * MS, 0));
	/* Behind its own poller it would wait for 200 ms. */
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), -EAGAIN);
	close_file(&file);
}

static void test_tokens_kept_for_a_poller_are_read(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_false(poll_file(&file, NEVER_NS, 0));
	stage_run(&file.stage, 100 * MS);
	assert_int_equal(file.poller.state, POLLER_CALLED);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 101 * MS), 0);
	assert_int_equal(file.poller.state, POLLER_AWAY);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 101 * MS), -EAGAIN);
	close_file(&file);
}

/* Polls @file for 100 ms in vain. */
static void poll_in_vain(struct file *file)
{
	assert_false(poll_file(file, 100 * MS, 0));
	assert_int_equal(
		engine_charge(&file->stage.engine, file->limiter, &(struct charge){.tokens = 1}, 0),
		0);
	stage_run(&file->stage, 100 * MS);
	assert_int_equal(file->poller.waiter.outcome, -EAGAIN);
	assert_int_equal(refused(file), 1);
}

static void test_a_file_polled_in_vain_refuses_one_read_and_counts_it_once(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	poll_in_vain(&file);
	assert_int_equal(read_file(&file, READ_BLOCKING, 100 * MS), -EBUSY);
	assert_int_equal(refused(&file), 1);
	assert_int_equal(read_file(&file, READ_BLOCKING, 100 * MS), WAITING);
	close_file(&file);
}

static void test_a_file_polled_in_vain_gives_tokens_that_are_there(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	poll_in_vain(&file);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 200 * MS), 0);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 200 * MS), -EAGAIN);
	close_file(&file);
}

static void test_reads_that_would_not_wait_wait_a_little_for_partitions(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	file.stage.source.may_come = always;
	assert_int_equal(read_file(&file, READ_TRYING, 0), WAITING);
	assert_int_equal(file.wait.within_ns, 0);
	assert_int_equal(file.wait.refusal, -EBUSY);
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), WAITING);
	assert_int_equal(file.wait.within_ns, 0);
	assert_int_equal(file.wait.refusal, -EAGAIN);
	/* A time that is too short now may be long enough then. */
	file.read.within_ns = 1;
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), WAITING);
	assert_int_equal(file.wait.refusal, -EAGAIN);
	assert_int_equal(refused(&file), 0);
	close_file(&file);
}

static void test_a_file_that_is_polled_does_not_wait_for_partitions(void **state)
{
	struct file file;

	(void)state;
	open_file(&file);
	assert_false(poll_file(&file, NEVER_NS, 0));
	file.stage.source.may_come = always;
	assert_int_equal(read_file(&file, READ_NONBLOCKING, 0), -EAGAIN);
	close_file(&file);
}

static void test_a_reader_that_was_interrupted_waits_in_its_place(void **state)
{
	static const struct asker ann = {.thread = 1}, bob = {.thread = 2};
	struct parked_place places[2];
	struct guest guest;
	struct file file;
	uint32_t used = 0;

	(void)state;
	open_file(&file);
	parking_init(&file.stage.engine.schedule.parking, places, 2, &used);
	assert_int_equal(stage_ask(&file.stage, &guest, file.limiter, 1, 0), WAITING);
	engine_interrupt(&file.stage.engine, &guest.waiter, &ann, 0);
	file.read.asker = &bob;
	assert_int_equal(read_file(&file, READ_BLOCKING, 10 * MS), WAITING);
	assert_false(file.wait.waiter.place);
	file.read.asker = &ann;
	assert_int_equal(read_file(&file, READ_BLOCKING, 10 * MS), WAITING);
	assert_true(file.wait.waiter.place);
	assert_int_equal(file.wait.waiter.asked_ns, 0);
	engine_give_up(&file.stage.engine, &file.wait.waiter);
	close_file(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tokens_that_are_there_are_given_to_each_manner),
		cmocka_unit_test(test_a_blocking_read_waits_and_is_not_refused),
		cmocka_unit_test(test_a_try_is_refused_with_EBUSY_and_counted),
		cmocka_unit_test(test_a_read_with_O_NONBLOCK_is_refused_with_EAGAIN_and_counted),
		cmocka_unit_test(test_more_than_a_burst_with_O_NONBLOCK_is_EINVAL),
		cmocka_unit_test(test_a_time_that_is_too_short_is_EBUSY_even_with_O_NONBLOCK),
		cmocka_unit_test(test_a_file_that_is_polled_is_not_too_late_for_its_own_poller),
		cmocka_unit_test(test_tokens_kept_for_a_poller_are_read),
		cmocka_unit_test(test_a_file_polled_in_vain_refuses_one_read_and_counts_it_once),
		cmocka_unit_test(test_a_file_polled_in_vain_gives_tokens_that_are_there),
		cmocka_unit_test(test_reads_that_would_not_wait_wait_a_little_for_partitions),
		cmocka_unit_test(test_a_file_that_is_polled_does_not_wait_for_partitions),
		cmocka_unit_test(test_a_reader_that_was_interrupted_waits_in_its_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
