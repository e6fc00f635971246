/*
 * Tests of the policy of sharing as a whole: hosts share one limiter by tiles, in virtual time.
 * Each host decides by appetite, portion and plan; a list and a transaction take some milliseconds,
 * and a transaction that was planned by an old list is refused.
 */
#include "core/fleet/appetite.h"
#include "core/fleet/plan.h"
#include "core/fleet/portion.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS  UINT64_C(1000000)
#define SEC UINT64_C(1000000000)

enum {
	HOSTS_MAX = 100,
	LEAVES = 4096,
	PIECES = 16, /* tiles of a new limiter */
	LOOK_MS = 100,
	LIST_MS = 2,
	TRANSACTION_MS = 3,
	HERD_MS = 200, /* jitter after a refusal or a wake */
	FIRST_PER_S = 10,
	REFUSALS_MAX = 6,
};

static const uint64_t RENEWAL_NS = 3 * SEC / 2, LEASE_NS = 15 * SEC;
static const double GREEDY = -1; /* a reader that asks again as soon as it was served */

enum work { IDLE, LISTING, CHANGING, CLAIMING };

struct host {
	char hid[HID_TEXT];
	double rate; /* of its readers, or GREEDY */
	bool random;
	uint32_t weight;

	/* Its readers and its bucket. */
	double next_s, tokens, waiting, before, granted, granted_now, waited_ms, wait_s;
	double asked_s[1024]; /* when those that wait did, in a ring */
	uint32_t first, last;

	/* Its decisions. */
	struct appetite appetite;
	struct appetite_facts facts;
	struct portion portion;
	struct share share;
	uint32_t held, holders, free, claimed, refusals, claim;
	uint64_t sequence, taken_ns, stale_ns, listed_ns;
	bool is_unmet, is_seen;

	/* Its work. */
	enum work work;
	uint64_t done_ns;
	struct plan_rules rules;
	struct plan plan;
	uint32_t amount;
	bool gives;
};

struct scene {
	double rate; /* of the limiter */
	uint64_t now_ns, random, sequence, transactions;
	struct tiles tiles;
	struct host hosts[HOSTS_MAX];
	uint32_t host_count;
};

static uint64_t draw(struct scene *scene)
{
	scene->random = scene->random * UINT64_C(6364136223846793005) +
			UINT64_C(1442695040888963407);
	return scene->random >> 20;
}

static double draw_part(struct scene *scene)
{
	return (double)(draw(scene) % 1000000 + 1) / 1000001;
}

static uint64_t jitter_ns(struct scene *scene, uint64_t ms)
{
	return draw(scene) % (ms * MS);
}

static double leaf_rate(const struct scene *scene)
{
	return scene->rate / LEAVES;
}

static struct scene *scene_new(double rate)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	char names[PIECES][TILE_TEXT], *list[PIECES];

	assert_non_null(scene);
	scene->rate = rate;
	scene->random = 1;
	for (uint32_t i = 0; i < PIECES; i++) {
		uint32_t size = LEAVES / PIECES;

		tile_print(&(struct tile){.first = i * size,
					  .last = (i + 1) * size - 1,
					  .epoch = 1,
					  .rest = {.saved = 1}},
			   names[i]);
		list[i] = names[i];
	}
	assert_true(tiles_read(&scene->tiles, list, PIECES, LEAVES));
	return scene;
}

static void scene_free(struct scene *scene)
{
	for (uint32_t i = 0; i < scene->host_count; i++)
		plan_end(&scene->hosts[i].plan);
	tiles_free(&scene->tiles);
	free(scene);
}

static void add(struct scene *scene, uint32_t count, double rate, bool random, uint32_t weight)
{
	for (uint32_t i = 0; i < count; i++) {
		struct host *host = &scene->hosts[scene->host_count];

		snprintf(host->hid, sizeof(host->hid), "%c%caaaaaaaaaaa",
			 'a' + (int)(scene->host_count / 26), 'a' + (int)(scene->host_count % 26));
		host->rate = rate;
		host->random = random;
		host->weight = weight;
		host->holders = 1;
		host->next_s = rate > 0 ? draw_part(scene) / rate : 0;
		host->waiting = rate < 0;
		scene->host_count++;
	}
}

/* The readers of @host in a millisecond. */
static void read_tokens(struct scene *scene, struct host *host)
{
	double now_s = (double)scene->now_ns / 1e9;

	while (host->rate > 0 && host->next_s <= now_s && host->last - host->first < 1024) {
		host->asked_s[host->last++ % 1024] = host->next_s;
		host->waiting++;
		host->next_s += host->random ? -log(draw_part(scene)) / host->rate : 1 / host->rate;
	}
	host->tokens = host->held ? host->tokens + host->held * leaf_rate(scene) / 1000 : 0;
	while (host->tokens >= 1 && host->waiting > 0) {
		host->tokens--;
		host->granted++;
		host->granted_now++;
		if (host->rate < 0)
			continue;
		host->waiting--;
		host->wait_s += now_s - host->asked_s[host->first++ % 1024];
	}
	if (host->tokens > 1)
		host->tokens = 1;
	host->waited_ms += host->waiting > 0 ? 1 : 0;
}

static bool others_claim(const struct scene *scene, const struct host *host)
{
	for (uint32_t i = 0; i < scene->host_count; i++) {
		if (&scene->hosts[i] != host && scene->hosts[i].claimed)
			return true;
	}
	return false;
}

/* Ends a period, and notes it. */
static void end_period(const struct scene *scene, struct host *host)
{
	double now_s = (double)scene->now_ns / 1e9;

	host->facts = (struct appetite_facts){
		.asked = host->granted_now + host->waiting - host->before,
		.waiting = host->waiting,
		.long_waiting = host->first < host->last &&
				now_s - host->asked_s[host->first % 1024] > 0.9,
		.waited = host->waited_ms >= LOOK_MS - 3,
		.held = host->held,
		.leaf = leaf_rate(scene) * LOOK_MS / 1000,
		.contended = others_claim(scene, host),
	};
	appetite_note(&host->appetite, &host->facts, 1);
	host->before = host->waiting;
	host->granted_now = host->waited_ms = 0;
}

static struct portion_facts facts_of(const struct scene *scene, struct host *host)
{
	double least = ceil(LEAVES / (scene->rate * (double)LEASE_NS / 1e9));
	double need = appetite_need(&host->appetite, &host->facts);
	double first = ceil(FIRST_PER_S * host->waiting / leaf_rate(scene));
	bool claims = others_claim(scene, host);

	host->is_seen = host->is_seen && claims;
	return (struct portion_facts){
		.now_ns = scene->now_ns,
		.renewal_ns = RENEWAL_NS,
		.lease_ns = LEASE_NS,
		.leaves = LEAVES,
		.least = least > LEAVES ? LEAVES : (uint32_t)least,
		.leaf = leaf_rate(scene),
		.holders = host->holders,
		.need = need > 0.01 ? need : 0,
		.chance = appetite_chance(&host->appetite),
		.is_young = appetite_is_young(&host->appetite),
		.hunger = appetite_hunger(&host->appetite),
		.first = first > LEAVES ? LEAVES : (uint32_t)first,
		.kept = host->held,
		.free = host->free,
		.turn_ns = scene->now_ns - host->taken_ns,
		.is_of_use = true,
		.is_unmet = host->is_unmet,
		.is_looking = host->work != IDLE,
		.claimed = host->claimed,
		.claims = claims,
		.is_watched = true,
		.listed_ns = host->listed_ns,
		.is_seen = host->is_seen,
		.is_stale = host->stale_ns && scene->now_ns >= host->stale_ns,
		.share = host->share,
	};
}

static const struct host *find(const struct scene *scene, const char *hid)
{
	for (uint32_t i = 0; i < scene->host_count; i++) {
		if (!strcmp(scene->hosts[i].hid, hid))
			return &scene->hosts[i];
	}
	return NULL;
}

/* Computes the share of @host from the tiles and the claims as they are now. */
static void weigh(struct scene *scene, struct host *host)
{
	struct tile_holder seen[LEAVES];
	struct holder holders[HOSTS_MAX];
	struct claim claims[2 * HOSTS_MAX + 1];
	struct claim_line line = {.claims = claims, .own = UINT64_MAX};
	uint32_t count = tiles_holders(&scene->tiles, seen);

	for (uint32_t i = 0; i < count; i++) {
		const struct host *holder = find(scene, seen[i].hid);

		/* This host's own wish is told by itself. */
		holders[i] = (struct holder){.leaves = seen[i].leaves,
					     .claims = holder == host || holder->claimed};
	}
	for (uint32_t i = 0; i < scene->host_count; i++) {
		const struct host *other = &scene->hosts[i];

		if (other->claimed)
			claims[line.count++] = (struct claim){.wanted = other->claimed,
							      .held = other->held,
							      .weight = other->weight,
							      .sequence = other->sequence};
	}
	if (host->claimed)
		line.own = host->sequence;
	host->holders = count ? count : 1;
	host->free = LEAVES;
	for (uint32_t i = 0; i < count; i++)
		host->free -= seen[i].leaves;
	host->share = portion_weigh(&line, holders, count, &(struct claim){.weight = host->weight},
				    LEAVES, facts_of(scene, host).least);
	host->is_seen = true;
	host->stale_ns = 0;
	host->listed_ns = scene->now_ns;
}

static void begin(struct scene *scene, struct host *host, enum work work, uint64_t ms)
{
	host->work = work;
	host->done_ns = scene->now_ns + ms * MS;
}

static void begin_plan(struct scene *scene, struct host *host)
{
	plan_end(&host->plan);
	host->rules = (struct plan_rules){.hid = host->hid, .full.saved = 1, .seed = draw(scene)};
	assert_int_equal(plan_begin(&host->plan, &host->rules, &scene->tiles), 0);
}

static void listed(struct scene *scene, struct host *host)
{
	struct portion copy = host->portion;
	struct portion_decision decision;
	struct portion_facts facts;
	int taken = 0;

	host->work = IDLE;
	weigh(scene, host);
	facts = facts_of(scene, host);
	portion_decide(&copy, &facts, &decision);
	host->portion.is_first = copy.is_first;
	if (decision.takes) {
		begin_plan(scene, host);
		taken = plan_take(&host->plan, decision.takes, false);
		assert_in_range(taken, 0, decision.takes);
	}
	host->is_unmet = host->held + (uint32_t)taken < decision.wanted;
	if (taken) {
		host->amount = (uint32_t)taken;
		host->gives = false;
		begin(scene, host, CHANGING, TRANSACTION_MS);
		return;
	}
	host->portion.look_ns = scene->now_ns + portion_looked(&host->portion, &facts) / 4 * 3 +
				jitter_ns(scene, RENEWAL_NS / MS / 2);
}

/* A give-back stops use at once; the rest is as little as there is left in such buckets. */
static void give(struct scene *scene, struct host *host, uint32_t amount)
{
	const struct rest none = {.saved = 1};

	begin_plan(scene, host);
	host->amount = (uint32_t)plan_give(&host->plan, amount, 1, &none);
	host->held -= host->amount;
	host->gives = true;
	begin(scene, host, CHANGING, TRANSACTION_MS);
}

static void note_stale(struct scene *scene, struct host *host, uint64_t ms)
{
	if (!host->stale_ns)
		host->stale_ns = scene->now_ns + jitter_ns(scene, ms);
}

struct execution {
	struct tiles *tiles;
	bool refused;
};

static void check_node(void *of, const struct tile *tile, bool there)
{
	struct execution *change = of;
	char name[TILE_TEXT], other[TILE_TEXT];
	uint32_t at = tiles_find(change->tiles, tile->first);

	if (!there)
		return;
	tile_print(tile, name);
	tile_print(&change->tiles->list[at], other);
	change->refused = change->refused || strcmp(name, other) != 0;
}

static void change_node(void *of, const struct tile *tile, bool there)
{
	struct tiles *tiles = ((struct execution *)of)->tiles;
	uint32_t at = tiles_find(tiles, tile->first);

	if (there) {
		memmove(&tiles->list[at], &tiles->list[at + 1],
			(--tiles->count - at) * sizeof(*tile));
		return;
	}
	if (tiles->count == tiles->room) {
		tiles->room *= 2;
		tiles->list = realloc(tiles->list, tiles->room * sizeof(*tile));
		assert_non_null(tiles->list);
	}
	memmove(&tiles->list[at + 1], &tiles->list[at], (tiles->count++ - at) * sizeof(*tile));
	tiles->list[at] = *tile;
}

static bool execute(struct scene *scene, const struct plan *plan)
{
	struct execution change = {.tiles = &scene->tiles};
	uint32_t next = 0;

	plan_changes(plan, check_node, &change);
	if (change.refused)
		return false;
	plan_changes(plan, change_node, &change);
	for (uint32_t i = 0; i < scene->tiles.count; i++) {
		assert_int_equal(scene->tiles.list[i].first, next);
		next = scene->tiles.list[i].last + 1;
	}
	assert_int_equal(next, LEAVES);
	return true;
}

static void changed(struct scene *scene, struct host *host)
{
	bool done = execute(scene, &host->plan);

	host->work = IDLE;
	scene->transactions++;
	if (!done) {
		assert_false(host->gives);
		host->is_unmet = true;
		host->portion.look_ns = scene->now_ns + (++host->refusals > REFUSALS_MAX
								 ? RENEWAL_NS
								 : jitter_ns(scene, HERD_MS));
		return;
	}
	host->refusals = 0;
	if (!host->gives) {
		host->held += host->amount;
		host->taken_ns = scene->now_ns;
		host->portion.look_ns = scene->now_ns + RENEWAL_NS;
		return;
	}
	for (uint32_t i = 0; i < scene->host_count; i++) {
		struct host *other = &scene->hosts[i];

		if (!other->claimed || other == host)
			continue;
		note_stale(scene, other, HERD_MS);
		if (other->portion.look_ns > other->stale_ns)
			other->portion.look_ns = other->stale_ns;
	}
}

static void claimed(struct scene *scene, struct host *host)
{
	host->work = IDLE;
	host->claimed = host->claim;
	scene->transactions++;
	for (uint32_t i = 0; i < scene->host_count; i++)
		note_stale(scene, &scene->hosts[i], LOOK_MS);
}

static void look(struct scene *scene, struct host *host)
{
	struct portion_facts facts = facts_of(scene, host);
	struct portion_decision decision;

	portion_decide(&host->portion, &facts, &decision);
	if (decision.gives) {
		give(scene, host, decision.gives);
	} else if (decision.claims) {
		host->claim = decision.claim;
		if (decision.claim && (!host->claimed || decision.turn_ends))
			host->sequence = ++scene->sequence;
		begin(scene, host, CLAIMING, TRANSACTION_MS);
	} else if (decision.looks) {
		begin(scene, host, LISTING, LIST_MS);
	}
}

static void step(struct scene *scene, struct host *host, bool ends_period)
{
	read_tokens(scene, host);
	if (host->work != IDLE && scene->now_ns >= host->done_ns) {
		if (host->work == LISTING)
			listed(scene, host);
		else if (host->work == CHANGING)
			changed(scene, host);
		else
			claimed(scene, host);
	}
	if (ends_period)
		end_period(scene, host);
	if (host->work == IDLE &&
	    (ends_period || (!host->held && host->waiting > 0 && !host->is_unmet)))
		look(scene, host);
}

static void pass(struct scene *scene, uint64_t seconds)
{
	for (uint64_t end_ns = scene->now_ns + seconds * SEC; scene->now_ns < end_ns;) {
		scene->now_ns += MS;
		for (uint32_t i = 0; i < scene->host_count; i++)
			step(scene, &scene->hosts[i], (scene->now_ns / MS + i * 7) % LOOK_MS == 0);
	}
}

/* Lets @seconds pass, and counts from there. */
static void warm_up(struct scene *scene, uint64_t seconds)
{
	pass(scene, seconds);
	for (uint32_t i = 0; i < scene->host_count; i++)
		scene->hosts[i].granted = scene->hosts[i].wait_s = 0;
	scene->transactions = 0;
}

static double used_percent(const struct scene *scene, double seconds)
{
	double granted = 0;

	for (uint32_t i = 0; i < scene->host_count; i++)
		granted += scene->hosts[i].granted;
	return 100 * granted / seconds / scene->rate;
}

static uint32_t tiles_at_most(const struct scene *scene)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < scene->host_count; i++) {
		uint32_t count = 0;

		for (uint32_t at = 0; at < scene->tiles.count; at++)
			count += tile_is_of(&scene->tiles.list[at], scene->hosts[i].hid);
		most = count > most ? count : most;
	}
	return most;
}

/* One greedy host beside @count of @rate each: 60 s from @from_s on. */
static struct scene *mix(uint32_t count, double rate, bool random, uint64_t from_s)
{
	struct scene *scene = scene_new(500);

	add(scene, count, rate, random, 1);
	add(scene, 1, GREEDY, false, 1);
	warm_up(scene, from_s);
	pass(scene, 60);
	assert_in_range(tiles_at_most(scene), 1, PLAN_OWN_MAX);
	return scene;
}

static const struct {
	uint32_t count;
	double rate;
} MIXES[] = {{2, 2.5}, {5, 2.5}, {10, 2.5}, {18, 2.5}, {29, 1}, {10, 7.5}, {2, 100}};

enum { MIX_COUNT = sizeof(MIXES) / sizeof(MIXES[0]) };

static void test_any_steady_mix_uses_all_but_2_percent_and_then_costs_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < MIX_COUNT; i++) {
		/* The mean and the chance are of half a minute: the last leaf goes after that. */
		struct scene *scene = mix(MIXES[i].count, MIXES[i].rate, false, 60);

		assert_true(used_percent(scene, 60) > 98);
		assert_true(scene->transactions <= 10);
		for (uint32_t h = 0; h < MIXES[i].count; h++)
			assert_true(fabs(scene->hosts[h].granted - 60 * MIXES[i].rate) < 3);
		scene_free(scene);
	}
}

static void test_any_random_mix_uses_all_but_3_percent_and_no_reader_waits_long(void **state)
{
	(void)state;
	for (int i = 0; i < MIX_COUNT; i++) {
		struct scene *scene = mix(MIXES[i].count, MIXES[i].rate, true, 40);
		double wait_s = 0, granted = 0;

		for (uint32_t h = 0; h < MIXES[i].count; h++) {
			wait_s += scene->hosts[h].wait_s;
			granted += scene->hosts[h].granted;
		}
		/* The more each host wants, the more its readers' chance is worth. */
		assert_true(used_percent(scene, 60) > (MIXES[i].rate < 100 ? 97 : 96));
		assert_true(wait_s / granted < 1);
		assert_true((double)scene->transactions < 60.0 * scene->host_count);
		scene_free(scene);
	}
}

/* Shares of hosts with @rates and @weights, after two lease times. */
static void try_shares(double rate, uint32_t count, const double *rates, const uint32_t *weights,
		       const double *shares)
{
	struct scene *scene = scene_new(rate);

	for (uint32_t i = 0; i < count; i++)
		add(scene, 1, rates[i], false, weights[i]);
	warm_up(scene, 30);
	pass(scene, 60);
	for (uint32_t i = 0; i < count; i++)
		assert_true(fabs(scene->hosts[i].granted / 60 - shares[i]) < rate / 100);
	scene_free(scene);
}

static void test_shares_are_exact_to_a_hundredth(void **state)
{
	static const uint32_t equal[] = {1, 1, 1, 1}, weights[] = {4, 2, 2, 1};

	(void)state;
	/* Published ones of YARN: demands 100 50 11 3 of 40; weights 2 1 1 0.5 of 45, ... */
	try_shares(40, 4, (const double[]){GREEDY, GREEDY, 11, 3}, equal,
		   (const double[]){13, 13, 11, 3});
	try_shares(45, 4, (const double[]){GREEDY, GREEDY, GREEDY, GREEDY}, weights,
		   (const double[]){20, 10, 10, 5});
	/* ... and with them demands 10 11 30 20. */
	try_shares(45, 4, (const double[]){10, 11, GREEDY, GREEDY}, weights,
		   (const double[]){10, 11, 16, 8});
}

static void test_a_hundred_hosts_that_start_at_once_have_their_shares_soon(void **state)
{
	struct scene *scene = scene_new(500);

	(void)state;
	add(scene, 100, GREEDY, false, 1);
	pass(scene, 10);
	for (uint32_t i = 0; i < 100; i++)
		assert_in_range(scene->hosts[i].held, 40, 41);
	assert_in_range(scene->transactions, 100, 1000);
	scene_free(scene);
}

static void test_a_light_host_that_turns_greedy_has_its_share_within_ten_seconds(void **state)
{
	struct scene *scene = scene_new(500);
	struct host *host = &scene->hosts[0];

	(void)state;
	add(scene, 5, 2.5, true, 1);
	add(scene, 1, GREEDY, false, 1);
	pass(scene, 40);
	host->rate = GREEDY;
	host->waiting = 1;
	host->first = host->last;
	pass(scene, 10);
	/* Four light hosts have 10/s, and some slack. */
	assert_true(fabs(host->held * leaf_rate(scene) - 241) < 5);
	/* And a greedy one that turns light leaves it to the others: of 12.5/s, with slack. */
	host->rate = 2.5;
	host->waiting = 0;
	host->next_s = (double)scene->now_ns / 1e9;
	pass(scene, 5);
	assert_true(scene->hosts[5].held * leaf_rate(scene) > 500 - 12.5 - 500.0 / 24);
	scene_free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_steady_mix_uses_all_but_2_percent_and_then_costs_nothing),
		cmocka_unit_test(
			test_any_random_mix_uses_all_but_3_percent_and_no_reader_waits_long),
		cmocka_unit_test(test_shares_are_exact_to_a_hundredth),
		cmocka_unit_test(test_a_hundred_hosts_that_start_at_once_have_their_shares_soon),
		cmocka_unit_test(
			test_a_light_host_that_turns_greedy_has_its_share_within_ten_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
