/* Tests of epoch: when tiles that were taken may be used, and whether their rests count. */
#include "core/fleet/epoch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { Q = 8330, NOW = 100000 };

static const char X[] = "xxxxxxxxxxxxx", Y[] = "yyyyyyyyyyyyy";

static uint64_t zxid_of(uint64_t epoch)
{
	return (epoch - 1) << 32 | 7;
}

static struct tile clean(uint32_t epoch)
{
	return (struct tile){.last = 9, .epoch = epoch, .rest = {.saved = 1}};
}

static struct tile leased(const char *hid)
{
	struct tile tile = {.last = 9};

	memcpy(tile.hid, hid, HID_TEXT);
	return tile;
}

static uint64_t usable_ns(const struct epochs *epochs, struct tile gain)
{
	return epoch_usable_ns(epochs, &gain, NOW, Q);
}

static bool counts(const struct epochs *epochs, struct tile gain)
{
	return epoch_rest_counts(epochs, &gain);
}

static void test_a_clean_tile_of_the_same_epoch_is_usable_at_once_with_its_rest(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(3), NOW);
	assert_int_equal(usable_ns(&epochs, clean(3)), NOW);
	assert_true(counts(&epochs, clean(3)));
}

static void test_one_of_another_epoch_waits_until_this_one_is_known_for_q_and_is_empty(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(3), 1000);
	epoch_note(&epochs, zxid_of(4), NOW);
	assert_int_equal(usable_ns(&epochs, clean(3)), NOW + Q);
	assert_false(counts(&epochs, clean(3)));
	epochs = (struct epochs){0};
	epoch_note(&epochs, zxid_of(4), NOW - 1000);
	epoch_note(&epochs, zxid_of(4) + 1, NOW);
	assert_int_equal(usable_ns(&epochs, clean(3)), NOW - 1000 + Q);
	epochs = (struct epochs){0};
	epoch_note(&epochs, zxid_of(4), NOW - Q);
	assert_int_equal(usable_ns(&epochs, clean(3)), NOW);
	assert_false(counts(&epochs, clean(3)));
}

static void test_one_of_no_epoch_waits_for_q_in_any_case(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(4), 0);
	assert_int_equal(usable_ns(&epochs, clean(EPOCH_NONE)), NOW + Q);
	assert_false(counts(&epochs, clean(EPOCH_NONE)));
	/* Also before any answer. */
	epochs = (struct epochs){0};
	assert_int_equal(usable_ns(&epochs, clean(EPOCH_NONE)), NOW + Q);
	assert_false(counts(&epochs, clean(EPOCH_NONE)));
}

static void test_the_tile_of_a_host_that_is_gone_waits_from_when_that_was_known(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(4), 0);
	assert_int_equal(usable_ns(&epochs, leased(X)), NOW + Q);
	epoch_note_gone(&epochs, X, NOW - 3000);
	epoch_note_gone(&epochs, X, NOW);
	assert_true(epoch_is_gone(&epochs, X));
	assert_int_equal(usable_ns(&epochs, leased(X)), NOW - 3000 + Q);
	assert_int_equal(usable_ns(&epochs, leased(Y)), NOW + Q);
	assert_false(counts(&epochs, leased(X)));
}

static void test_knowledge_of_another_epoch_does_not_count(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(4), 0);
	epoch_note_gone(&epochs, X, 0);
	epoch_note(&epochs, zxid_of(5), NOW - 100);
	assert_int_equal(usable_ns(&epochs, leased(X)), NOW + Q);
	epoch_note_gone(&epochs, X, NOW - 50);
	assert_int_equal(usable_ns(&epochs, leased(X)), NOW - 50 + Q);
}

static void test_a_host_that_is_there_after_all_is_not_gone(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(4), 0);
	epoch_note_gone(&epochs, X, 0);
	epoch_note_there(&epochs, X);
	epoch_note_there(&epochs, Y);
	assert_false(epoch_is_gone(&epochs, X));
	assert_int_equal(usable_ns(&epochs, leased(X)), NOW + Q);
	assert_false(epoch_is_gone(&epochs, ""));
}

static void test_the_epoch_of_a_server_that_is_alone_is_one(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, 7, NOW);
	assert_int_equal(usable_ns(&epochs, clean(1)), NOW);
	assert_true(counts(&epochs, clean(1)));
	assert_int_equal(usable_ns(&epochs, clean(EPOCH_NONE)), NOW + Q);
}

static void test_after_a_backup_was_restored_its_epoch_counts(void **state)
{
	struct epochs epochs = {0};

	(void)state;
	epoch_note(&epochs, zxid_of(9), 0);
	epoch_note(&epochs, zxid_of(4), NOW - 1000);
	assert_true(counts(&epochs, clean(4)));
	assert_int_equal(usable_ns(&epochs, clean(9)), NOW - 1000 + Q);
	assert_false(counts(&epochs, clean(9)));
}

static void test_of_very_many_hosts_the_last_are_known(void **state)
{
	struct epochs epochs = {0};
	char hid[HID_TEXT];

	(void)state;
	epoch_note(&epochs, zxid_of(4), 0);
	for (int i = 0; i < EPOCH_GONE_MAX + 10; i++) {
		snprintf(hid, sizeof(hid), "%013d", i);
		epoch_note_gone(&epochs, hid, 0);
	}
	assert_true(epoch_is_gone(&epochs, hid));
	assert_false(epoch_is_gone(&epochs, "0000000000009"));
	assert_true(epoch_is_gone(&epochs, "0000000000010"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			test_a_clean_tile_of_the_same_epoch_is_usable_at_once_with_its_rest),
		cmocka_unit_test(
			test_one_of_another_epoch_waits_until_this_one_is_known_for_q_and_is_empty),
		cmocka_unit_test(test_one_of_no_epoch_waits_for_q_in_any_case),
		cmocka_unit_test(
			test_the_tile_of_a_host_that_is_gone_waits_from_when_that_was_known),
		cmocka_unit_test(test_knowledge_of_another_epoch_does_not_count),
		cmocka_unit_test(test_a_host_that_is_there_after_all_is_not_gone),
		cmocka_unit_test(test_the_epoch_of_a_server_that_is_alone_is_one),
		cmocka_unit_test(test_after_a_backup_was_restored_its_epoch_counts),
		cmocka_unit_test(test_of_very_many_hosts_the_last_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
