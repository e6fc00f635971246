/* Tests of portion: how much a host wants, takes, gives back and claims. */
#include "core/fleet/portion.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SEC UINT64_C(1000000000)

/* A host of a limiter of 4,096 leaves that needs 400 and has them; no other claims any. */
static struct portion_facts facts_of(void)
{
	return (struct portion_facts){
		.now_ns = 100 * SEC,
		.renewal_ns = 3 * SEC / 2,
		.lease_ns = 15 * SEC,
		.leaves = 4096,
		.least = 1,
		.holders = 4,
		.need = 400,
		.kept = 400,
		.is_of_use = true,
		.listed_ns = 90 * SEC,
		.share = {.target = UINT32_MAX},
	};
}

/* The same where others claim, and this host's share is @share. */
static struct portion_facts contended(uint32_t share)
{
	struct portion_facts facts = facts_of();

	facts.claims = facts.is_seen = true;
	facts.share = (struct share){
		.contended = true,
		.is_greedy = true,
		.target = share,
		.target_behind = share,
	};
	return facts;
}

static struct portion_decision decide(const struct portion_facts *facts)
{
	struct portion portion = {0};
	struct portion_decision decision;

	portion_decide(&portion, facts, &decision);
	return decision;
}

/* A host of 2.5/s of 500/s that others are short beside, whose readers come at random. */
static struct portion_facts light(double roots)
{
	struct portion_facts facts = contended(1024);

	facts.leaf = 500.0 / 4096;
	facts.need = 2.5 / facts.leaf;
	facts.chance = 1;
	facts.share.roots = roots;
	return facts;
}

static double slack_a_second(const struct portion_facts *facts)
{
	return (portion_plain(facts) - facts->need) * facts->leaf;
}

static void test_hosts_that_are_not_short_share_the_slack_by_roots(void **state)
{
	double root = sqrt(2.5 * 4096 / 500);
	struct portion_facts facts = light(4 * root);
	double idle = 500.0 / 24, anyway = sqrt(2.5) / 2 + 2.5 / 28;

	(void)state;
	assert_true(fabs(slack_a_second(&facts) - (idle / 5 - anyway)) < 0.01);
	/* One that wants four times as much has two parts of it. */
	facts.need *= 4;
	anyway = sqrt(10) / 2 + 10.0 / 28;
	assert_true(fabs(slack_a_second(&facts) - (idle / 3 - anyway)) < 0.01);
	/* It is used up by many hosts; each has some. */
	facts = light(100 * root);
	assert_true(fabs(slack_a_second(&facts) - 500.0 / 256 / 4) < 0.01);
}

static void test_no_host_has_more_slack_than_readers_need_who_wait_for_50_ms(void **state)
{
	struct portion_facts facts = light(0);
	double s = slack_a_second(&facts);

	(void)state;
	assert_true(fabs(2.5 / (2 * s * (2.5 + s)) - 0.05) < 0.001);
	facts.need *= 0.01;
	s = slack_a_second(&facts);
	assert_true(s < 1 && fabs(0.025 / (2 * s * (0.025 + s)) - 0.05) < 0.001);
}

static void test_readers_that_come_steadily_need_less_slack_to_wait_as_long(void **state)
{
	struct portion_facts facts = light(0);
	double least = 500.0 / 256 / 4, s, all;

	(void)state;
	facts.chance = 0.2;
	s = slack_a_second(&facts);
	assert_true(fabs(0.2 * 2.5 / (2 * s * (2.5 + s)) - 0.05) < 0.001);
	facts.chance = 0.01;
	assert_true(fabs(slack_a_second(&facts) - least) < 0.01);
	/* Chance does not divide what hosts share: readers of all may come so. */
	facts = light(9 * sqrt(2.5 * 4096 / 500));
	all = slack_a_second(&facts);
	facts.chance = 0.5;
	assert_true(fabs(slack_a_second(&facts) - all) < 0.01);
	/* Of less than a token a second chance is not known well. */
	facts = light(0);
	facts.need = 0.4 / facts.leaf;
	facts.chance = 0.5;
	s = slack_a_second(&facts) / 0.5;
	assert_true(fabs(0.5 * 0.4 / (2 * s * (0.4 + s)) - 0.05) < 0.001);
	facts.need = 0.8 / facts.leaf;
	facts.chance = 0.3;
	s = slack_a_second(&facts) / 0.8;
	assert_true(fabs(0.3 * 0.8 / (2 * s * (0.8 + s)) - 0.05) < 0.001);
	/* It is not given before it is known what they want. */
	facts = light(0);
	facts.is_young = true;
	assert_true(fabs(slack_a_second(&facts) - least) < 0.01);
	/* A limiter without a rate has no tokens to divide. */
	facts.is_young = false;
	facts.leaf = 0;
	assert_true(portion_plain(&facts) - facts.need < 5);
}

static void test_where_no_host_is_short_half_of_the_need_is_slack(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	assert_int_equal(decide(&facts).wanted, 600);
	assert_true(decide(&facts).looks);
	assert_int_equal(decide(&facts).takes, 200);
}

static void test_where_one_is_short_slack_is_an_equal_part_of_little(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	assert_int_equal(decide(&facts).wanted, 404);
	facts.need = 8;
	assert_int_equal(decide(&facts).wanted, 12);
	facts.holders = 16;
	assert_int_equal(decide(&facts).wanted, 9);
}

static void test_a_little_less_than_wanted_costs_no_transaction(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 402;
	assert_int_equal(decide(&facts).takes, 0);
	facts.kept = 400;
	assert_int_equal(decide(&facts).takes, 4);
}

static void test_hungry_readers_are_given_what_the_share_allows(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.hunger = 800;
	assert_int_equal(decide(&facts).takes, 400);
	facts.hunger = 1600;
	assert_int_equal(decide(&facts).takes, 624);
	assert_int_equal(decide(&facts).wanted, 1600);
}

static void test_a_host_whose_look_was_vain_claims_and_asks_for_more_each_time(void **state)
{
	struct portion_facts facts = facts_of();
	struct portion portion = {0};
	struct portion_decision decision;

	(void)state;
	facts.is_unmet = true;
	facts.hunger = 800;
	portion_decide(&portion, &facts, &decision);
	assert_true(decision.claims);
	assert_int_equal(decision.claim, 800);
	facts.claimed = 800;
	portion_decide(&portion, &facts, &decision);
	assert_false(decision.claims);
	facts.now_ns += 2 * SEC;
	portion_decide(&portion, &facts, &decision);
	assert_true(decision.claims);
	assert_int_equal(decision.claim, 1600);
	facts.claimed = 1600;
	facts.hunger = 3200;
	portion_decide(&portion, &facts, &decision);
	assert_true(decision.claims);
	/* Less is claimed R later at the soonest. */
	facts.hunger = 0;
	facts.kept = 600;
	facts.claimed = 1600;
	portion_decide(&portion, &facts, &decision);
	assert_false(decision.claims);
	facts.now_ns += 2 * SEC;
	portion_decide(&portion, &facts, &decision);
	assert_true(decision.claims);
	assert_int_equal(decision.claim, 0);
}

static void test_slack_is_taken_where_leaves_are_free_and_not_claimed(void **state)
{
	struct portion_facts facts = facts_of();
	struct portion portion = {0};

	(void)state;
	facts.kept = 402;
	assert_int_equal(decide(&facts).takes, 198);
	/* None is free, and it holds enough for its readers. */
	facts.is_unmet = facts.is_watched = true;
	assert_int_equal(decide(&facts).claim, 0);
	while (portion_looked(&portion, &facts) < facts.lease_ns)
		continue;
	assert_true(portion_looked(&portion, &facts) == NEVER_NS);
	/* Now it does not: the claim has the slack that others have while this host is short. */
	facts.kept = 400;
	assert_int_equal(decide(&facts).claim, 404);
	assert_true(portion_looked(&portion, &facts) == facts.lease_ns);
	/* Hungry readers want more than that. */
	facts.need = 388;
	assert_int_equal(decide(&facts).claim, 0);
	facts.hunger = 426;
	assert_int_equal(decide(&facts).claim, 426);
	assert_true(portion_looked(&portion, &facts) == facts.lease_ns);
}

static void test_much_that_is_not_wanted_goes_at_once_where_others_claim(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 800;
	assert_int_equal(decide(&facts).gives, 396);
	facts.claims = false;
	assert_int_equal(decide(&facts).gives, 0);
}

/* Decides, and once more, which changes nothing; returns what is given. */
static uint32_t answer(struct portion *portion, struct portion_facts *facts)
{
	struct portion_decision decision;
	uint32_t gives;

	facts->listed_ns = ++facts->now_ns;
	portion_decide(portion, facts, &decision);
	gives = decision.gives;
	portion_decide(portion, facts, &decision);
	assert_int_equal(decision.gives, 0);
	assert_false(decision.looks);
	return gives;
}

/* Returns after how many R a host looks again; 0: within eight it does not. */
static uint32_t looks_after(const struct portion *portion, const struct portion_facts *facts)
{
	struct portion_facts later = *facts;

	for (uint32_t i = 1; i <= 8; i++) {
		struct portion copy = *portion;
		struct portion_decision decision;

		later.now_ns += later.renewal_ns;
		portion_decide(&copy, &later, &decision);
		if (decision.looks)
			return i;
	}
	return 0;
}

static void test_hosts_that_lack_little_have_a_part_of_that(void **state)
{
	struct portion_facts facts = contended(1024);
	struct portion portion = {.look_ns = NEVER_NS};
	uint32_t after = 1;

	(void)state;
	facts.kept = 1024;
	facts.share.is_greedy = false;
	facts.share.lacks = 40;
	/* A quarter, as it holds a quarter; twice that where they still lack as much. */
	for (uint32_t part = 10; part < 100; part *= 2) {
		assert_int_equal(answer(&portion, &facts), part);
		/* If the leaves do not go, looks are of ever less use. */
		assert_int_equal(looks_after(&portion, &facts), after);
		after *= 2;
	}
	/* Another host may take leaves that are free: it looks again, and gives half as much. */
	facts.free = 40;
	facts.kept = 1014;
	assert_int_equal(answer(&portion, &facts), 0);
	assert_int_equal(looks_after(&portion, &facts), 1);
	facts.free = 0;
	facts.kept = 1024;
	assert_int_equal(answer(&portion, &facts), 40);
	assert_int_equal(looks_after(&portion, &facts), 1);
	facts.share.lacks = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(answer(&portion, &facts), 0);
	assert_int_equal(looks_after(&portion, &facts), 0);
	facts.share.lacks = 40;
	assert_int_equal(answer(&portion, &facts), 10);
	/* No more goes than is not wanted. The rest is no reason to look. */
	facts.kept = 600;
	facts.share.lacks = 4000;
	assert_int_equal(answer(&portion, &facts), 196);
	facts.kept = 404;
	assert_int_equal(answer(&portion, &facts), 0);
	assert_int_equal(looks_after(&portion, &facts), 0);
	facts.kept = 1024;
	facts.share.lacks = 40;
	assert_int_equal(answer(&portion, &facts), 10);
}

static void test_a_small_excess_goes_in_parts_once_it_is_old(void **state)
{
	struct portion_facts facts = contended(1024);
	struct portion portion = {.look_ns = NEVER_NS};

	(void)state;
	facts.kept = 450;
	facts.share.is_greedy = false;
	facts.share.lacks = 40;
	assert_int_equal(answer(&portion, &facts), 0);
	facts.now_ns += 5 * SEC;
	for (double part = 40.0 * 450 / 4096; part < 40; part *= 2)
		assert_int_equal(answer(&portion, &facts), ceil(part));
}

static void test_a_host_whose_readers_are_gone_gives_all_at_once(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 1000;
	facts.need = 0;
	facts.share.is_greedy = false;
	facts.share.lacks = 4;
	assert_int_equal(decide(&facts).gives, 1000);
	/* So do hosts of slots: those that are not open are of no use to it. */
	facts.need = 400;
	facts.exact = 10;
	assert_int_equal(decide(&facts).gives, 596);
}

static void test_readers_that_wait_without_a_break_are_short_of_slack(void **state)
{
	struct portion_facts facts = contended(2000);

	(void)state;
	facts.leaf = 500.0 / 4096;
	facts.chance = 1;
	facts.need = 30;
	facts.share.roots = sqrt(3900);
	facts.kept = 37;
	facts.is_unmet = true;
	assert_false(decide(&facts).claims);
	facts.hunger = 46;
	assert_true(decide(&facts).claims);
	assert_true(decide(&facts).claim >= 46);
}

static void test_nothing_goes_before_it_is_seen_how_much_is_lacking(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 1000;
	facts.is_seen = false;
	assert_int_equal(decide(&facts).gives, 0);
	facts.is_seen = true;
	assert_int_equal(decide(&facts).gives, 596);
	facts.share.is_greedy = false;
	facts.share.lacks = 4096;
	facts.is_stale = true;
	assert_int_equal(decide(&facts).gives, 0);
	facts.is_stale = false;
	assert_int_equal(decide(&facts).gives, 596);
}

static void test_while_the_need_is_not_known_well_only_most_goes_at_once(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.is_young = true;
	facts.kept = 810;
	assert_int_equal(decide(&facts).gives, 0);
	facts.kept = 820;
	assert_int_equal(decide(&facts).gives, 416);
}

static void test_leaves_that_are_only_kept_for_readers_are_not_claimed(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 2048;
	facts.first = 4096;
	assert_int_equal(decide(&facts).gives, 1024);
	assert_false(decide(&facts).claims);
	facts.need = 2000;
	assert_true(decide(&facts).claims);
}

static void test_nothing_is_looked_at_before_a_claim_is_sent(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	facts.is_unmet = true;
	assert_true(decide(&facts).looks);
	facts.is_claiming = true;
	assert_false(decide(&facts).looks);
}

static void test_a_small_excess_goes_as_a_whole_when_it_is_old(void **state)
{
	struct portion_facts facts = contended(1024);
	struct portion portion = {0};
	struct portion_decision decision;

	(void)state;
	facts.kept = 450;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 0);
	facts.now_ns += 5 * SEC - 1;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 0);
	facts.now_ns += 1;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 46);
}

static void test_where_no_host_claims_what_readers_may_need_stays(void **state)
{
	struct portion_facts facts = facts_of();
	struct portion portion = {0};
	struct portion_decision decision;

	(void)state;
	/* 819: as much for each of four holders, and for the next one. */
	facts.kept = 819;
	facts.need = 1;
	portion_decide(&portion, &facts, &decision);
	facts.now_ns += 60 * SEC;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 0);
	/* Another host claims, and has what is not wanted. */
	facts.claims = facts.is_seen = facts.share.is_greedy = true;
	facts.share.target = 4096;
	assert_int_equal(decide(&facts).gives, 814);
}

static void test_a_host_that_lacks_leaves_takes_enough_for_some_time(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	facts.kept = 100;
	facts.free = 3000;
	assert_int_equal(decide(&facts).takes, 719);
	facts.free = 1200;
	assert_int_equal(decide(&facts).takes, 600);
	/* It takes what it wants in any case; if others claim, no more than that. */
	facts.free = 20;
	assert_int_equal(decide(&facts).takes, 500);
	facts.free = 3000;
	facts.claims = facts.is_seen = true;
	facts.share.target = 4096;
	assert_int_equal(decide(&facts).takes, 304);
}

static void test_a_reader_that_waits_has_its_host_take_what_is_free(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	facts.need = 4;
	facts.kept = 6;
	facts.free = 3000;
	assert_int_equal(decide(&facts).takes, 0);
	facts.first = 41;
	assert_int_equal(decide(&facts).takes, 0);
	facts.waits_here = true;
	assert_int_equal(decide(&facts).takes, 813);
	facts.claims = facts.is_seen = true;
	facts.share.target = 4096;
	assert_int_equal(decide(&facts).takes, 0);
}

static void test_a_host_whose_reader_waits_looks_again_for_what_came_free(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	facts.need = 4;
	facts.kept = 6;
	facts.first = 41;
	facts.waits_here = true;
	facts.listed_ns = facts.now_ns - facts.lease_ns + 1;
	assert_false(decide(&facts).looks);
	facts.listed_ns--;
	assert_true(decide(&facts).looks);
	/* A host that has its part looks for no more. */
	facts.kept = 819;
	assert_false(decide(&facts).looks);
	facts.kept = 6;
	facts.first = 6;
	assert_false(decide(&facts).looks);
}

static void test_where_no_host_is_short_twice_what_is_wanted_stays(void **state)
{
	struct portion_facts facts = facts_of();
	struct portion portion = {0};
	struct portion_decision decision;

	(void)state;
	facts.kept = 1199;
	portion_decide(&portion, &facts, &decision);
	facts.now_ns += 60 * SEC;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 0);
	facts.kept = 1200;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 381);
	facts.need = 0;
	portion_decide(&portion, &facts, &decision);
	facts.now_ns += 60 * SEC;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 1200);
}

static void test_all_above_the_share_goes_and_what_is_wanted_is_claimed(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.need = 3000;
	facts.kept = 3000;
	assert_int_equal(decide(&facts).gives, 1976);
	assert_true(decide(&facts).claims);
	assert_int_equal(decide(&facts).claim, 3004);
	facts.kept = 1027;
	assert_int_equal(decide(&facts).gives, 0);
	facts.claimed = 2000;
	assert_false(decide(&facts).claims);
}

/* Decides where the next look is not due by itself. */
static bool looks(const struct portion_facts *facts)
{
	struct portion portion = {.look_ns = NEVER_NS};
	struct portion_decision decision;

	portion_decide(&portion, facts, &decision);
	return decision.looks;
}

static void test_a_holder_looks_when_it_is_told_of_claims(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 404;
	assert_false(looks(&facts));
	facts.is_seen = false;
	assert_true(looks(&facts));
	facts.is_seen = facts.is_stale = true;
	assert_true(looks(&facts));
	facts.is_looking = true;
	assert_false(looks(&facts));
}

static void test_a_claim_of_a_predecessor_is_looked_for_also_if_nothing_is_wanted(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	facts.need = facts.kept = 0;
	facts.listed_ns = 0;
	assert_false(looks(&facts));
	facts.lost_claim = true;
	assert_true(looks(&facts));
	/* A look that could not tell is repeated later. */
	facts.listed_ns = facts.now_ns - facts.renewal_ns + 1;
	assert_false(looks(&facts));
	facts.listed_ns--;
	assert_true(looks(&facts));
	facts.is_looking = true;
	assert_false(looks(&facts));
}

static void test_told_again_a_holder_looks_soon_if_it_has_more_than_an_equal_part(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 404;
	facts.is_stale = true;
	facts.listed_ns = facts.now_ns - SEC;
	assert_false(looks(&facts));
	facts.holders = 10;
	assert_true(looks(&facts));
	facts.listed_ns = facts.now_ns - SEC / 4;
	assert_false(looks(&facts));
}

static void test_where_no_host_lacks_much_one_with_little_more_than_its_part_has_time(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 404;
	facts.is_stale = true;
	facts.share.is_greedy = false;
	facts.holders = 10;
	facts.listed_ns = facts.now_ns - facts.renewal_ns + 1;
	assert_false(looks(&facts));
	facts.listed_ns--;
	assert_true(looks(&facts));
	facts.listed_ns = facts.now_ns - facts.renewal_ns / 4;
	assert_false(looks(&facts));
	facts.kept = 372 + 124 + 1;
	assert_true(looks(&facts));
}

static void test_told_again_a_host_that_claims_looks_soon_if_it_lacks_leaves(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.claimed = facts.kept = 404;
	facts.is_stale = true;
	facts.listed_ns = facts.now_ns - SEC;
	assert_false(looks(&facts));
	/* Its need is above what it keeps, ... */
	facts.need = 500;
	facts.is_unmet = true;
	assert_true(looks(&facts));
	/* ... or its share is below what it wants. */
	facts = contended(402);
	facts.claimed = facts.kept = 402;
	facts.is_stale = true;
	facts.listed_ns = facts.now_ns - SEC;
	assert_true(looks(&facts));
}

static void test_leaves_that_came_free_are_looked_for_at_once_after_any_other_look(void **state)
{
	struct portion portion = {.look_ns = NEVER_NS};
	struct portion_facts facts = contended(1024);
	struct portion_decision decision;

	(void)state;
	facts.kept = 402;
	facts.is_stale = facts.is_woken = true;
	facts.listed_ns = facts.now_ns;
	for (int i = 0; i < 2; i++) {
		portion_decide(&portion, &facts, &decision);
		assert_true(decision.looks);
	}
	/* But not for ever. */
	portion_decide(&portion, &facts, &decision);
	assert_false(decision.looks);
	facts.now_ns += facts.renewal_ns;
	facts.listed_ns = facts.now_ns;
	portion_decide(&portion, &facts, &decision);
	assert_true(decision.looks);
	/* Nor by a host that lacks none. */
	facts.kept = 404;
	facts.is_stale = false;
	facts.now_ns += facts.renewal_ns;
	portion_decide(&portion, &facts, &decision);
	assert_false(decision.looks);
}

static void test_where_claims_stay_as_they_are_nothing_is_looked_at_after_a_while(void **state)
{
	struct portion portion = {0};
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.kept = 404;
	facts.is_watched = true;
	assert_int_equal(portion_looked(&portion, &facts), facts.renewal_ns);
	assert_int_equal(portion_looked(&portion, &facts), 2 * facts.renewal_ns);
	assert_int_equal(portion_looked(&portion, &facts), 4 * facts.renewal_ns);
	assert_int_equal(portion_looked(&portion, &facts), 8 * facts.renewal_ns);
	assert_int_equal(portion_looked(&portion, &facts), NEVER_NS);
	/* Without the watch, or where leaves are lacking, every lease. */
	facts.is_watched = false;
	assert_int_equal(portion_looked(&portion, &facts), facts.lease_ns);
	facts.is_watched = true;
	facts.kept = 300;
	assert_int_equal(portion_looked(&portion, &facts), facts.lease_ns);
}

static void test_the_first_reader_has_half_of_what_is_free_or_all(void **state)
{
	struct portion portion = {0};
	struct portion_facts facts = facts_of();
	struct portion_decision decision;

	(void)state;
	facts.need = facts.kept = 0;
	facts.first = 82;
	facts.free = 3000;
	assert_int_equal(decide(&facts).takes, 1500);
	facts.free = 100;
	assert_int_equal(decide(&facts).takes, 82);
	facts.free = 4096;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.takes, 4096);
	/* The excess goes back once the reader was served, and the bucket is full. */
	facts.kept = 4096;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 0);
	facts.first = 0;
	facts.need = 16;
	facts.saves = true;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 0);
	facts.saves = false;
	portion_decide(&portion, &facts, &decision);
	assert_int_equal(decision.gives, 4096 - 819);
}

static void test_slots_are_wanted_without_slack_and_leaves_of_open_ones_stay(void **state)
{
	struct portion_facts facts = contended(6);

	(void)state;
	facts.leaves = 20;
	facts.need = 0;
	facts.exact = facts.kept = facts.in_use = 20;
	facts.claimed = 20;
	assert_int_equal(decide(&facts).wanted, 20);
	assert_int_equal(decide(&facts).gives, 0);
	assert_int_equal(decide(&facts).yields, 6);
	facts.in_use = 15;
	assert_int_equal(decide(&facts).gives, 5);
	facts.in_use = 3;
	assert_int_equal(decide(&facts).gives, 14);
	assert_int_equal(decide(&facts).yields, UINT32_MAX);
}

static void test_a_piece_is_not_given_up_while_a_reader_waits_for_its_first_token(void **state)
{
	struct portion_facts facts = contended(0);

	(void)state;
	facts.least = facts.kept = 1024;
	facts.need = 4096;
	facts.claimed = 4096;
	facts.share.starving = true;
	facts.first = 1;
	facts.is_of_use = false;
	facts.turn_ns = 2 * facts.lease_ns;
	assert_int_equal(decide(&facts).gives, 0);
	facts.first = 0;
	assert_int_equal(decide(&facts).gives, 1024);
	facts.first = 1;
	facts.is_of_use = true;
	assert_int_equal(decide(&facts).gives, 1024);
}

static void test_where_others_claim_nothing_is_kept_for_rare_readers(void **state)
{
	struct portion_facts facts = contended(2000);

	(void)state;
	facts.is_rare = true;
	facts.claimed = 400;
	assert_int_equal(decide(&facts).gives, 400);
	assert_int_equal(decide(&facts).claim, 0);
	/* A part of a 24th is not much, and where no host claims all is kept. */
	facts = contended(2000);
	facts.is_rare = true;
	facts.need = facts.kept = 42;
	assert_int_equal(decide(&facts).gives, 0);
	facts.need = facts.kept = 43;
	assert_int_equal(decide(&facts).gives, 43);
	facts = facts_of();
	facts.is_rare = true;
	assert_int_equal(decide(&facts).gives, 0);
}

static void test_for_rare_readers_that_come_evenly_what_they_need_is_kept(void **state)
{
	struct portion_facts facts = contended(2000);

	(void)state;
	facts.is_rare = facts.is_even = true;
	facts.least = 400;
	assert_int_equal(decide(&facts).gives, 0);
	/* Fewer leaves are not worth having. */
	facts.least = 401;
	assert_int_equal(decide(&facts).gives, 400);
}

/* A host of one token in ten seconds, of 10/s, with twice the leaves. */
static struct portion_facts slow(void)
{
	struct portion_facts facts = contended(2000);

	facts.leaf = 10.0 / 4096;
	facts.need = 41;
	facts.least = 27;
	facts.kept = 82;
	facts.holders = 30;
	facts.room = 1;
	facts.is_rare = true;
	facts.token_ns = NEVER_NS;
	return facts;
}

static void test_for_a_slow_reader_a_token_is_saved_up_and_one_leaf_stays_then(void **state)
{
	struct portion_facts facts = slow();

	(void)state;
	assert_int_equal(decide(&facts).gives, 0);
	facts.kept = 200;
	assert_int_equal(decide(&facts).gives, 118);
	/* The token is there, whatever else the buckets have room for. */
	facts.kept = 82;
	facts.saves = true;
	facts.room = 100;
	facts.token_ns = facts.now_ns;
	assert_int_equal(decide(&facts).gives, 81);
	facts.kept = 1;
	assert_int_equal(decide(&facts).gives, 0);
	assert_int_equal(decide(&facts).takes, 0);
	/* Without a turn the leaf stays, too. */
	facts.share.target = 0;
	facts.share.starving = true;
	facts.turn_ns = 2 * facts.lease_ns;
	assert_int_equal(decide(&facts).gives, 0);
	assert_int_equal(decide(&facts).claim, 0);
	/* A reader has taken it. */
	facts = slow();
	facts.kept = 1;
	assert_int_equal(decide(&facts).takes, 81);
	/* One that comes before is served as where nothing is held. */
	facts.first = 300;
	facts.waiting = 1;
	assert_int_equal(decide(&facts).takes, 170);
}

static void test_slow_readers_that_are_not_rare_have_one_where_there_is_room_for_one(void **state)
{
	struct portion_facts facts = slow();

	(void)state;
	facts.is_rare = false;
	facts.token_ns = 0;
	facts.need = 273;
	facts.kept = 546;
	assert_int_equal(decide(&facts).gives, 545);
	facts.is_young = true;
	assert_int_equal(decide(&facts).wanted, 274);
	facts.is_young = false;
	facts.room = 2;
	assert_int_equal(decide(&facts).wanted, 274);
	facts.room = 1;
	facts.need = 274;
	assert_int_equal(decide(&facts).wanted, 275);
}

static void test_no_token_is_saved_up_where_leaves_are_of_more_use(void **state)
{
	struct portion_facts facts = slow();

	(void)state;
	facts.token_ns = 0;
	facts.is_even = true;
	assert_int_equal(decide(&facts).wanted, 42);
	facts = slow();
	facts.token_ns = 0;
	facts.hunger = 70;
	assert_int_equal(decide(&facts).wanted, 70);
	facts = slow();
	facts.token_ns = 0;
	facts.claims = false;
	assert_int_equal(decide(&facts).wanted, 62);
	/* A token of a window goes with its leaf. */
	facts = slow();
	facts.room = 0;
	assert_int_equal(decide(&facts).gives, 82);
	/* So few leaves are not much. */
	facts = slow();
	facts.token_ns = 0;
	facts.holders = 4;
	assert_int_equal(decide(&facts).wanted, 45);
	/* The leaves of so many saved tokens are. */
	facts = slow();
	facts.token_ns = 0;
	facts.holders = 170;
	assert_int_equal(decide(&facts).wanted, 1);
	facts.holders = 171;
	assert_int_equal(decide(&facts).wanted, 0);
	/* Pieces are so large that each move is. */
	facts = slow();
	facts.least = facts.kept = 513;
	assert_int_equal(decide(&facts).gives, 513);
	facts.least = facts.kept = 512;
	assert_int_equal(decide(&facts).gives, 0);
}

static void test_a_rare_reader_that_waits_has_its_token_within_two_renewals(void **state)
{
	struct portion_facts facts = contended(2000);

	(void)state;
	facts.is_rare = facts.is_unmet = true;
	facts.leaf = 1 / 900.0; /* 300 leaves bring a token in 3 s */
	facts.waiting = 1;
	facts.first = 4000;
	facts.need = 1000;
	facts.kept = 290;
	assert_int_equal(decide(&facts).gives, 0);
	facts.kept = 900;
	assert_in_range(decide(&facts).gives, 400, 600);
	facts.kept = 0;
	assert_in_range(decide(&facts).claim, 300, 500);
	/* Before more is known of what they need, too, and for two twice as much. */
	facts.need = 0;
	assert_int_equal(decide(&facts).claim, 300);
	facts.waiting = 2;
	assert_int_equal(decide(&facts).claim, 600);
	/* No more than that is taken, however much is free. */
	facts.free = 4000;
	assert_int_equal(decide(&facts).takes, 600);
	/* A 24th, where that is more. */
	facts.leaf = 1;
	assert_int_equal(decide(&facts).claim, 171);
	/* Where pieces are larger, as others: at once. */
	facts.least = 171;
	assert_int_equal(decide(&facts).claim, 4000);
	facts.least = 170;
	assert_int_equal(decide(&facts).claim, 171);
	facts.is_rare = false;
	assert_int_equal(decide(&facts).claim, 4000);
}

static void test_a_claim_of_what_is_held_is_raised_by_any_amount(void **state)
{
	struct portion_facts facts = contended(2000);

	(void)state;
	facts.claimed = facts.kept = 400;
	facts.need = 440;
	facts.is_unmet = true;
	assert_true(decide(&facts).claims);
	assert_int_equal(decide(&facts).claim, 444);
	facts.kept = 399;
	assert_false(decide(&facts).claims);
}

static void test_at_rest_nothing_is_looked_at(void **state)
{
	struct portion_facts facts = facts_of();

	(void)state;
	facts.kept = 600;
	for (int i = 0; i < 100; i++, facts.now_ns += SEC) {
		struct portion_decision decision = decide(&facts);

		assert_false(decision.looks || decision.claims);
		assert_int_equal(decision.gives, 0);
	}
}

static void test_looks_that_show_nothing_new_become_rare(void **state)
{
	struct portion_facts facts = contended(1024);
	struct portion portion = {0};

	(void)state;
	facts.kept = 1000;
	assert_true(portion_looked(&portion, &facts) == 3 * SEC / 2);
	assert_true(portion_looked(&portion, &facts) == 3 * SEC);
	for (int i = 0; i < 10; i++)
		(void)portion_looked(&portion, &facts);
	assert_true(portion_looked(&portion, &facts) == 15 * SEC);
	facts.share.target = 2048;
	assert_true(portion_looked(&portion, &facts) == 3 * SEC / 2);
}

static void test_a_host_that_has_its_part_does_not_look_again_because_shares_change(void **state)
{
	struct portion_facts facts = contended(1024);
	struct portion portion = {0};

	(void)state;
	facts.kept = 404;
	facts.is_watched = true;
	for (int i = 0; i < 5; i++, facts.share.target++, facts.holders++)
		(void)portion_looked(&portion, &facts);
	assert_true(portion_looked(&portion, &facts) == NEVER_NS);
}

/* Room for the claims and the holders of a test. */
static struct share weigh(struct claim *claims, uint32_t count, uint64_t own,
			  const struct holder *holders, uint32_t holder_count, uint32_t least)
{
	struct claim all[16];
	struct claim_line line = {.claims = all, .count = count, .own = own};

	memcpy(all, claims, count * sizeof(*claims));
	return portion_weigh(&line, holders, holder_count, &(struct claim){.weight = 1}, 4000,
			     least);
}

static void test_a_holder_without_a_claim_wants_what_it_holds(void **state)
{
	struct claim claims[] = {{.wanted = 4000, .weight = 1, .sequence = 1}};
	const struct holder holders[] = {
		{.leaves = 100}, {.leaves = 200}, {.leaves = 3700, .claims = true}};
	struct share share = weigh(claims, 1, 1, holders, 3, 1);

	(void)state;
	assert_true(share.contended);
	assert_int_equal(share.target, 3700);
	/* The same seen by one that has no claim: an equal part of the rest. */
	share = weigh(claims, 1, UINT64_MAX, holders, 2, 1);
	assert_int_equal(share.target, 1850);
}

static void test_a_holder_of_a_saved_token_has_no_piece(void **state)
{
	struct claim claims[8] = {{.wanted = 4000, .weight = 1, .sequence = 1},
				  {.wanted = 4000, .weight = 1, .sequence = 2}};
	const struct holder holders[] = {{.leaves = 1}, {.leaves = 1}, {.leaves = 2}};

	(void)state;
	assert_int_equal(weigh(claims, 2, 1, holders, 3, 1000).target, 1998);
	/* Of pieces there are as many as without them. */
	claims[2] = (struct claim){.wanted = 4000, .weight = 1, .sequence = 3};
	claims[3] = (struct claim){.wanted = 4000, .weight = 1, .sequence = 4};
	claims[4] = (struct claim){.wanted = 4000, .weight = 1, .sequence = 5};
	for (int i = 0; i < 5; i++)
		claims[i].wanted = 4000;
	assert_int_equal(weigh(claims, 5, 4, holders, 3, 1000).target, 1000);
}

static void test_all_that_a_holder_without_a_claim_has_is_its_due(void **state)
{
	struct claim claims[] = {{.wanted = 4000, .weight = 1, .sequence = 1}};
	const struct holder holders[] = {{.leaves = 3000}};

	(void)state;
	assert_int_equal(weigh(claims, 1, 1, holders, 1, 1).target, 1000);
}

static void test_a_claimant_lacks_what_matters_to_it(void **state)
{
	struct claim claims[] = {{.wanted = 4000, .weight = 1, .sequence = 1, .held = 4000},
				 {.wanted = 1, .weight = 1, .sequence = 2}};
	struct portion_facts facts = contended(0);

	(void)state;
	/* A host whose only leaf is one of 4,000. */
	facts.share = weigh(claims, 2, 1, NULL, 0, 1);
	assert_true(facts.share.lacking);
	assert_int_equal(facts.share.target, 3999);
	facts.leaves = facts.kept = facts.hunger = facts.claimed = 4000;
	assert_int_equal(decide(&facts).gives, 1);
	/* No host lacks anything: a leaf is not worth a transaction then. */
	facts.share.lacking = false;
	assert_int_equal(decide(&facts).gives, 0);
	claims[1].held = 1;
	assert_false(weigh(claims, 2, 1, NULL, 0, 1).lacking);
	/* A hundredth of its share is no matter to a host; a third is, or all of a small one. */
	claims[1].wanted = 1000;
	claims[1].held = 990;
	assert_false(weigh(claims, 2, 1, NULL, 0, 1).lacking);
	claims[1].held = 667;
	assert_true(weigh(claims, 2, 1, NULL, 0, 1).lacking);
	claims[1].wanted = 3;
	claims[1].held = 2;
	assert_true(weigh(claims, 2, 1, NULL, 0, 1).lacking);
	/* It is others that count. */
	claims[1].held = 3;
	claims[0].held = 100;
	assert_false(weigh(claims, 2, 1, NULL, 0, 1).lacking);
	assert_true(weigh(claims, 2, 2, NULL, 0, 1).lacking);
}

static void test_a_host_that_lacks_an_eighth_of_what_others_hold_is_greedy(void **state)
{
	struct claim claims[] = {{.wanted = 500, .weight = 1, .sequence = 1, .held = 96},
				 {.wanted = 70, .weight = 1, .sequence = 2, .held = 50},
				 {.wanted = 10, .weight = 1, .sequence = 3, .held = 60}};
	const struct holder holders[] = {{.leaves = 3000}};

	(void)state;
	assert_int_equal(weigh(claims, 3, 3, holders, 1, 1).lacks, 404 + 20);
	assert_false(weigh(claims, 3, 3, holders, 1, 1).is_greedy);
	assert_int_equal(weigh(claims, 3, 1, holders, 1, 1).lacks, 20);
	claims[0].wanted = 96 + 488;
	assert_false(weigh(claims, 3, 3, holders, 1, 1).is_greedy);
	claims[0].wanted++;
	assert_true(weigh(claims, 3, 3, holders, 1, 1).is_greedy);
	assert_false(weigh(claims, 3, 1, holders, 1, 1).is_greedy);
	/* Where hosts take turns there is nothing to spare. */
	assert_true(weigh(claims, 3, 1, holders, 1, 2000).is_greedy);
}

static void test_shares_are_by_weight(void **state)
{
	struct claim claims[] = {{.wanted = 4000, .weight = 3, .sequence = 1},
				 {.wanted = 10, .weight = 1, .sequence = 2}};
	const struct holder holders[] = {{.leaves = 0}, {.leaves = 190}};

	(void)state;
	assert_int_equal(weigh(claims, 1, 1, holders, 2, 1).target, 3810);
	assert_int_equal(weigh(claims, 1, UINT64_MAX, holders, 0, 1).target, 1000);
	/* It could have more than it claims. */
	assert_int_equal(weigh(claims, 2, 2, holders, 0, 1).target, 1000);
}

static void test_hosts_take_turns_where_there_are_too_few_pieces(void **state)
{
	struct claim claims[] = {{.wanted = 1500, .weight = 1, .sequence = 1},
				 {.wanted = 1500, .weight = 1, .sequence = 2},
				 {.wanted = 1500, .weight = 1, .sequence = 3}};
	struct portion_facts facts = contended(0);

	(void)state;
	facts.share = weigh(claims, 3, 1, NULL, 0, 1500);
	assert_true(facts.share.starving);
	assert_int_equal(facts.share.target, 1500);
	assert_int_equal(facts.share.target_behind, 0);
	assert_int_equal(weigh(claims, 3, 3, NULL, 0, 1500).target, 0);
	facts.leaves = 4000;
	facts.need = 1500;
	facts.least = facts.kept = facts.claimed = 1500;
	facts.turn_ns = 15 * SEC - 1;
	assert_int_equal(decide(&facts).gives, 0);
	facts.turn_ns++;
	assert_int_equal(decide(&facts).gives, 1500);
	assert_true(decide(&facts).turn_ends);
	assert_true(decide(&facts).claims);
	facts.saves_up = true;
	assert_int_equal(decide(&facts).gives, 0);
	facts.saves_up = false;
	facts.turn_ns = 10 * SEC;
	facts.token_ns = facts.now_ns + 5 * SEC;
	assert_int_equal(decide(&facts).gives, 0);
	facts.token_ns++;
	assert_int_equal(decide(&facts).gives, 1500);
	assert_true(decide(&facts).turn_ends);
	facts.first = 1;
	facts.is_of_use = false;
	assert_int_equal(decide(&facts).gives, 0);
}

static void test_leaves_for_readers_that_wait_stay(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.need = 0;
	facts.kept = 82;
	assert_int_equal(decide(&facts).gives, 82);
	facts.first = 82;
	assert_int_equal(decide(&facts).gives, 0);
	facts.first = 164;
	assert_int_equal(decide(&facts).wanted, 82);
	facts.kept = 400;
	assert_int_equal(decide(&facts).gives, 236);
}

static void test_less_than_is_worth_having_is_not_taken(void **state)
{
	struct portion_facts facts = contended(1024);

	(void)state;
	facts.least = 273;
	facts.kept = 0;
	facts.need = 0;
	facts.first = 10;
	assert_int_equal(decide(&facts).takes, 273);
	facts.first = 0;
	assert_int_equal(decide(&facts).wanted, 0);
}

static void test_only_what_is_held_by_others_that_are_not_short_is_summed_up(void **state)
{
	struct claim claims[4] = {
		{.wanted = 4000, .held = 3000, .weight = 1, .sequence = 1},
		{.wanted = 49, .held = 25, .weight = 1, .sequence = 2},
	};
	const struct holder holders[] = {
		{.leaves = 3000, .claims = true}, {.leaves = 25, .claims = true}, {.leaves = 16}};

	(void)state;
	assert_true(fabs(weigh(claims, 2, UINT64_MAX, holders, 3, 1).roots - 9) < 1e-9);
	claims[0] = (struct claim){.wanted = 100, .held = 64, .weight = 1, .sequence = 1};
	assert_true(fabs(weigh(claims, 1, 1, holders + 2, 1, 1).roots - 4) < 1e-9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hosts_that_are_not_short_share_the_slack_by_roots),
		cmocka_unit_test(test_no_host_has_more_slack_than_readers_need_who_wait_for_50_ms),
		cmocka_unit_test(test_readers_that_come_steadily_need_less_slack_to_wait_as_long),
		cmocka_unit_test(test_only_what_is_held_by_others_that_are_not_short_is_summed_up),
		cmocka_unit_test(test_where_no_host_is_short_half_of_the_need_is_slack),
		cmocka_unit_test(test_where_one_is_short_slack_is_an_equal_part_of_little),
		cmocka_unit_test(test_a_little_less_than_wanted_costs_no_transaction),
		cmocka_unit_test(test_hungry_readers_are_given_what_the_share_allows),
		cmocka_unit_test(
			test_a_host_whose_look_was_vain_claims_and_asks_for_more_each_time),
		cmocka_unit_test(test_slack_is_taken_where_leaves_are_free_and_not_claimed),
		cmocka_unit_test(test_much_that_is_not_wanted_goes_at_once_where_others_claim),
		cmocka_unit_test(test_hosts_that_lack_little_have_a_part_of_that),
		cmocka_unit_test(test_a_small_excess_goes_in_parts_once_it_is_old),
		cmocka_unit_test(test_a_host_whose_readers_are_gone_gives_all_at_once),
		cmocka_unit_test(test_readers_that_wait_without_a_break_are_short_of_slack),
		cmocka_unit_test(test_nothing_goes_before_it_is_seen_how_much_is_lacking),
		cmocka_unit_test(test_while_the_need_is_not_known_well_only_most_goes_at_once),
		cmocka_unit_test(test_leaves_that_are_only_kept_for_readers_are_not_claimed),
		cmocka_unit_test(test_nothing_is_looked_at_before_a_claim_is_sent),
		cmocka_unit_test(test_a_small_excess_goes_as_a_whole_when_it_is_old),
		cmocka_unit_test(test_where_no_host_claims_what_readers_may_need_stays),
		cmocka_unit_test(test_a_host_that_lacks_leaves_takes_enough_for_some_time),
		cmocka_unit_test(test_a_reader_that_waits_has_its_host_take_what_is_free),
		cmocka_unit_test(test_a_host_whose_reader_waits_looks_again_for_what_came_free),
		cmocka_unit_test(test_where_no_host_is_short_twice_what_is_wanted_stays),
		cmocka_unit_test(test_all_above_the_share_goes_and_what_is_wanted_is_claimed),
		cmocka_unit_test(test_a_holder_looks_when_it_is_told_of_claims),
		cmocka_unit_test(
			test_a_claim_of_a_predecessor_is_looked_for_also_if_nothing_is_wanted),
		cmocka_unit_test(
			test_told_again_a_holder_looks_soon_if_it_has_more_than_an_equal_part),
		cmocka_unit_test(
			test_where_no_host_lacks_much_one_with_little_more_than_its_part_has_time),
		cmocka_unit_test(test_told_again_a_host_that_claims_looks_soon_if_it_lacks_leaves),
		cmocka_unit_test(
			test_leaves_that_came_free_are_looked_for_at_once_after_any_other_look),
		cmocka_unit_test(
			test_where_claims_stay_as_they_are_nothing_is_looked_at_after_a_while),
		cmocka_unit_test(test_the_first_reader_has_half_of_what_is_free_or_all),
		cmocka_unit_test(test_slots_are_wanted_without_slack_and_leaves_of_open_ones_stay),
		cmocka_unit_test(
			test_a_piece_is_not_given_up_while_a_reader_waits_for_its_first_token),
		cmocka_unit_test(test_where_others_claim_nothing_is_kept_for_rare_readers),
		cmocka_unit_test(test_for_rare_readers_that_come_evenly_what_they_need_is_kept),
		cmocka_unit_test(
			test_for_a_slow_reader_a_token_is_saved_up_and_one_leaf_stays_then),
		cmocka_unit_test(
			test_slow_readers_that_are_not_rare_have_one_where_there_is_room_for_one),
		cmocka_unit_test(test_no_token_is_saved_up_where_leaves_are_of_more_use),
		cmocka_unit_test(test_a_rare_reader_that_waits_has_its_token_within_two_renewals),
		cmocka_unit_test(test_a_claim_of_what_is_held_is_raised_by_any_amount),
		cmocka_unit_test(test_at_rest_nothing_is_looked_at),
		cmocka_unit_test(test_looks_that_show_nothing_new_become_rare),
		cmocka_unit_test(
			test_a_host_that_has_its_part_does_not_look_again_because_shares_change),
		cmocka_unit_test(test_a_holder_without_a_claim_wants_what_it_holds),
		cmocka_unit_test(test_a_holder_of_a_saved_token_has_no_piece),
		cmocka_unit_test(test_all_that_a_holder_without_a_claim_has_is_its_due),
		cmocka_unit_test(test_a_claimant_lacks_what_matters_to_it),
		cmocka_unit_test(test_a_host_that_lacks_an_eighth_of_what_others_hold_is_greedy),
		cmocka_unit_test(test_shares_are_by_weight),
		cmocka_unit_test(test_hosts_take_turns_where_there_are_too_few_pieces),
		cmocka_unit_test(test_leaves_for_readers_that_wait_stay),
		cmocka_unit_test(test_less_than_is_worth_having_is_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
