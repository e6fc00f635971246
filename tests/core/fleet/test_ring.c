/* Tests of ring: which hosts a host counts, and which of them is overdue. */
#include "core/fleet/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { R = 1500, Q = 8330, HOSTS_MAX = 1000 };

static const char OWN[] = "baaaaaaaaaaaa";

/* A host's ring, and what it is told of the others. */
struct ringside {
	struct ring ring;
	struct ring_facts facts;
};

static const char *name_of(uint32_t number)
{
	static char name[HID_TEXT];

	/* Behind a and below n; OWN is before c. */
	snprintf(name, sizeof(name), "%c%c%caaaaaaaaaa", 'c' + (char)(number / 100),
		 'a' + (char)(number / 10 % 10), 'a' + (char)(number % 10));
	return name;
}

static void set(struct ringside *side, uint32_t count)
{
	char(*hids)[HID_TEXT] = calloc(count + 1, HID_TEXT);

	memcpy(hids[0], OWN, HID_TEXT);
	for (uint32_t i = 0; i < count; i++)
		memcpy(hids[i + 1], name_of(i), HID_TEXT);
	assert_true(ring_set(&side->ring, hids, count + 1, OWN));
	free(hids);
}

static struct ringside begin(uint32_t count)
{
	struct ringside side = {
		.facts = {.now_ns = 1000000, .renewal_ns = R, .quarantine_ns = Q, .epoch = 3}};

	set(&side, count);
	return side;
}

static void pass(struct ringside *side, uint64_t ns)
{
	side->facts.now_ns += ns;
}

/* The names that are read now, by their numbers; `+` is a watch. */
static const char *reads(struct ringside *side)
{
	static char text[512];
	struct ring_read read;

	text[0] = '\0';
	while ((read = ring_next(&side->ring, &side->facts)).hid) {
		uint32_t number = 0;

		while (strcmp(name_of(number), read.hid) != 0)
			number++;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%u%s",
			 *text ? " " : "", number, read.watch ? "+" : "");
	}
	return text;
}

static void hear(struct ringside *side, uint32_t number, int32_t version)
{
	ring_heard(&side->ring, name_of(number), version, true, false, side->facts.now_ns);
}

static void hear_idle(struct ringside *side, uint32_t number, bool watched)
{
	ring_heard(&side->ring, name_of(number), 1, false, watched, side->facts.now_ns);
}

/* Time passes by R, in which each of @versions is read of the host of that number; 0: none is. */
static void live(struct ringside *side, const int32_t *versions, uint32_t count)
{
	pass(side, R);
	reads(side);
	for (uint32_t i = 0; i < count; i++) {
		if (versions[i])
			hear(side, i, versions[i]);
	}
}

/* Two reads of the first host show nothing new. */
static void be_silent(struct ringside *side, int32_t version)
{
	for (int i = 0; i < 2; i++) {
		pass(side, R);
		assert_string_equal(reads(side), "0");
		hear(side, 0, version);
	}
}

static const char *overdue(struct ringside *side)
{
	const struct ring_host *host = ring_overdue(&side->ring, &side->facts);
	static char text[64];
	uint32_t number = 0;

	if (!host)
		return "";
	while (strcmp(name_of(number), host->hid) != 0)
		number++;
	snprintf(text, sizeof(text), "%u v%d e%u", number, host->version, host->epoch);
	return text;
}

static void test_only_the_next_host_is_read_once_in_r(void **state)
{
	struct ringside side = begin(5);

	(void)state;
	assert_string_equal(reads(&side), "0+");
	hear(&side, 0, 7);
	for (int32_t version = 8; version < 20; version++) {
		assert_string_equal(reads(&side), "");
		pass(&side, R - 1);
		assert_string_equal(reads(&side), "");
		pass(&side, 1);
		assert_string_equal(reads(&side), "0");
		hear(&side, 0, version);
	}
	ring_free(&side.ring);
}

static void test_the_last_host_in_the_order_counts_the_first(void **state)
{
	char hids[3][HID_TEXT] = {"aaaaaaaaaaaaa", "bbbbbbbbbbbbb", "ccccccccccccc"};
	struct ring_facts facts = {.now_ns = 5, .renewal_ns = R, .quarantine_ns = Q};
	struct ring ring = {0};

	(void)state;
	assert_true(ring_set(&ring, hids, 3, "ccccccccccccc"));
	assert_string_equal(ring_next(&ring, &facts).hid, "aaaaaaaaaaaaa");
	ring_heard(&ring, "aaaaaaaaaaaaa", 1, false, true, 5);
	assert_string_equal(ring_next(&ring, &facts).hid, "bbbbbbbbbbbbb");
	ring_free(&ring);
}

static void test_a_host_that_stands_still_for_q_is_overdue_at_its_version(void **state)
{
	struct ringside side = begin(1);

	(void)state;
	reads(&side);
	pass(&side, 40);
	hear(&side, 0, 7);
	pass(&side, Q - 1);
	assert_string_equal(overdue(&side), "");
	reads(&side);
	hear(&side, 0, 7);
	pass(&side, 1);
	assert_string_equal(overdue(&side), "0 v7 e3");
	ring_free(&side.ring);
}

static void test_each_new_version_begins_the_count_anew(void **state)
{
	struct ringside side = begin(1);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	pass(&side, Q - 10);
	reads(&side);
	hear(&side, 0, 8);
	pass(&side, Q - 1);
	assert_string_equal(overdue(&side), "");
	pass(&side, 1);
	assert_string_equal(overdue(&side), "0 v8 e3");
	ring_free(&side.ring);
}

static void test_counts_begin_anew_after_a_lapse_and_in_another_epoch(void **state)
{
	struct ringside side = begin(1);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	pass(&side, Q);
	side.facts.lapses++;
	assert_string_equal(overdue(&side), "");
	assert_string_equal(reads(&side), "0");
	hear(&side, 0, 7);
	pass(&side, Q);
	assert_string_equal(overdue(&side), "0 v7 e3");
	side.facts.epoch = 4;
	assert_string_equal(overdue(&side), "");
	assert_string_equal(reads(&side), "0");
	hear(&side, 0, 7);
	pass(&side, Q);
	assert_string_equal(overdue(&side), "0 v7 e4");
	ring_free(&side.ring);
}

/* The read was sent before its host knew of the epoch. */
static void test_a_read_that_is_out_in_between_begins_no_count(void **state)
{
	struct ringside side = begin(1);

	(void)state;
	reads(&side);
	side.facts.epoch = 4;
	reads(&side);
	hear(&side, 0, 7);
	pass(&side, R);
	assert_string_equal(reads(&side), "0");
	hear(&side, 0, 7);
	pass(&side, Q - 1);
	assert_string_equal(overdue(&side), "");
	pass(&side, 1);
	assert_string_equal(overdue(&side), "0 v7 e4");
	ring_free(&side.ring);
}

/* It was read once, long ago, and has written often since. */
static void test_a_host_that_was_not_counted_for_a_while_is_counted_anew(void **state)
{
	struct ringside side = begin(2);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	be_silent(&side, 7);
	assert_string_equal(reads(&side), "1+");
	hear(&side, 1, 7);
	live(&side, (int32_t[]){9, 8}, 2);
	for (int32_t version = 10; version < 20; version++)
		live(&side, (int32_t[]){version, 0}, 2);
	be_silent(&side, 19);
	assert_string_equal(reads(&side), "1");
	assert_string_equal(overdue(&side), "");
	ring_free(&side.ring);
}

static void test_behind_one_that_stands_still_for_2_r_the_next_is_counted(void **state)
{
	struct ringside side = begin(3);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	be_silent(&side, 7);
	assert_string_equal(reads(&side), "1+");
	hear(&side, 1, 9);
	for (int32_t i = 0; i < 3; i++)
		live(&side, (int32_t[]){7, 10 + i, 0}, 3);
	pass(&side, R);
	assert_string_equal(reads(&side), "0 1");
	hear(&side, 0, 8);
	hear(&side, 1, 20);
	pass(&side, R);
	assert_string_equal(reads(&side), "0");
	ring_free(&side.ring);
}

static void test_k_dead_in_a_row_are_overdue_after_q_and_2_r_each(void **state)
{
	struct ringside side = begin(4);
	uint64_t begin_ns = side.facts.now_ns;

	(void)state;
	for (uint32_t dead = 0; dead < 4;) {
		struct ring_read read;

		while ((read = ring_next(&side.ring, &side.facts)).hid)
			ring_heard(&side.ring, read.hid, 7, true, false, side.facts.now_ns);
		while (*overdue(&side)) {
			ring_remove(&side.ring, name_of(dead));
			dead++;
			assert_true(side.facts.now_ns - begin_ns <= Q + 2 * R * dead);
		}
		read = ring_next(&side.ring, &side.facts);
		if (!read.hid && read.at_ns != NEVER_NS)
			pass(&side, read.at_ns - side.facts.now_ns);
	}
	ring_free(&side.ring);
}

static void test_an_idle_host_is_watched_and_passed_over(void **state)
{
	struct ringside side = begin(3);

	(void)state;
	reads(&side);
	hear_idle(&side, 0, true);
	assert_string_equal(reads(&side), "1+ 2+");
	hear(&side, 1, 7);
	hear(&side, 2, 7);
	pass(&side, R);
	assert_string_equal(reads(&side), "1");
	hear(&side, 1, 8);
	ring_changed(&side.ring, name_of(0));
	assert_string_equal(reads(&side), "0+");
	hear(&side, 0, 2);
	pass(&side, R);
	assert_string_equal(reads(&side), "0");
	ring_free(&side.ring);
}

static void test_a_host_that_becomes_idle_is_read_once_more_to_be_watched(void **state)
{
	struct ringside side = begin(2);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	pass(&side, R);
	assert_string_equal(reads(&side), "0");
	hear_idle(&side, 0, false);
	assert_string_equal(reads(&side), "0+");
	hear_idle(&side, 0, true);
	assert_string_equal(reads(&side), "1+");
	hear(&side, 1, 8);
	pass(&side, Q);
	assert_string_equal(overdue(&side), "1 v8 e3");
	ring_free(&side.ring);
}

static void test_a_thousand_idle_hosts_are_looked_up_a_few_at_a_time(void **state)
{
	struct ringside side = begin(HOSTS_MAX);
	uint32_t most = 0, all = 0, out = 0;

	(void)state;
	for (bool any = true; any;) {
		struct ring_read read;
		char asked[RING_READS_MAX][HID_TEXT];

		while ((read = ring_next(&side.ring, &side.facts)).hid)
			memcpy(asked[out++], read.hid, HID_TEXT);
		any = out;
		most = out > most ? out : most;
		all += out;
		while (out)
			ring_heard(&side.ring, asked[--out], 1, false, true, side.facts.now_ns);
	}
	assert_int_equal(most, RING_READS_MAX);
	assert_int_equal(all, HOSTS_MAX);
	pass(&side, 100 * R);
	assert_string_equal(reads(&side), "");
	ring_free(&side.ring);
}

static void test_hosts_that_come_and_go_do_not_disturb_the_count_of_another(void **state)
{
	struct ringside side = begin(2);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	be_silent(&side, 7);
	assert_string_equal(reads(&side), "1+");
	hear(&side, 1, 7);
	pass(&side, Q - 1 - 2 * R);
	set(&side, 4);
	pass(&side, 1);
	assert_string_equal(overdue(&side), "0 v7 e3");
	ring_remove(&side.ring, name_of(0));
	assert_string_equal(overdue(&side), "");
	pass(&side, 2 * R);
	assert_string_equal(overdue(&side), "1 v7 e3");
	ring_remove(&side.ring, name_of(1));
	assert_string_equal(overdue(&side), "");
	assert_string_equal(reads(&side), "2+");
	ring_free(&side.ring);
}

static void test_after_a_refused_end_the_host_is_looked_up_and_counted_anew(void **state)
{
	struct ringside side = begin(1);

	(void)state;
	reads(&side);
	hear(&side, 0, 7);
	pass(&side, Q);
	reads(&side);
	ring_doubt(&side.ring, name_of(0));
	assert_string_equal(overdue(&side), "");
	/* The answer of before the end says nothing. */
	hear(&side, 0, 7);
	pass(&side, R);
	assert_string_equal(reads(&side), "0");
	hear(&side, 0, 8);
	pass(&side, Q);
	assert_string_equal(overdue(&side), "0 v8 e3");
	ring_free(&side.ring);
}

static void test_a_read_that_fails_is_repeated_after_r(void **state)
{
	struct ringside side = begin(1);

	(void)state;
	assert_string_equal(reads(&side), "0+");
	ring_unheard(&side.ring, name_of(0));
	assert_string_equal(reads(&side), "");
	pass(&side, R);
	assert_string_equal(reads(&side), "0+");
	ring_free(&side.ring);
}

static void test_a_host_alone_reads_nothing(void **state)
{
	struct ringside side = begin(0);

	(void)state;
	assert_null(ring_next(&side.ring, &side.facts).hid);
	assert_true(ring_next(&side.ring, &side.facts).at_ns == NEVER_NS);
	assert_string_equal(overdue(&side), "");
	ring_free(&side.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_the_next_host_is_read_once_in_r),
		cmocka_unit_test(test_the_last_host_in_the_order_counts_the_first),
		cmocka_unit_test(test_a_host_that_stands_still_for_q_is_overdue_at_its_version),
		cmocka_unit_test(test_each_new_version_begins_the_count_anew),
		cmocka_unit_test(test_counts_begin_anew_after_a_lapse_and_in_another_epoch),
		cmocka_unit_test(test_a_read_that_is_out_in_between_begins_no_count),
		cmocka_unit_test(test_a_host_that_was_not_counted_for_a_while_is_counted_anew),
		cmocka_unit_test(test_behind_one_that_stands_still_for_2_r_the_next_is_counted),
		cmocka_unit_test(test_k_dead_in_a_row_are_overdue_after_q_and_2_r_each),
		cmocka_unit_test(test_an_idle_host_is_watched_and_passed_over),
		cmocka_unit_test(test_a_host_that_becomes_idle_is_read_once_more_to_be_watched),
		cmocka_unit_test(test_a_thousand_idle_hosts_are_looked_up_a_few_at_a_time),
		cmocka_unit_test(test_hosts_that_come_and_go_do_not_disturb_the_count_of_another),
		cmocka_unit_test(test_after_a_refused_end_the_host_is_looked_up_and_counted_anew),
		cmocka_unit_test(test_a_read_that_fails_is_repeated_after_r),
		cmocka_unit_test(test_a_host_alone_reads_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
