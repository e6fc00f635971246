/* Tests of key_leases: keys that a host leases, before a coordinator. */
#include "core/limiter/keys.h"
#include "tests/core/fleet/scene.h"

#include <stdio.h>

static const char LEASED[] = "rate=1000/s\nburst=10\nkey_rate=100/s\nkey_burst=10\n"
			     "key_share=leased\npartitions.count=1\n";
static const char KEY_BEGIN[] = "/k/1-1/";

/* Opens key `user` of @limiter. */
static struct limiter *open_key(struct scene *scene, struct limiter *limiter)
{
	struct limiter *opened;
	struct key *key;

	engine_run(&scene->engine, scene->now_ns);
	assert_int_equal(engine_key(&scene->engine, limiter, "user", 0, scene->now_ns, &key), 0);
	opened = keys_open(&scene->engine.schedule, limiter, key);
	assert_non_null(opened);
	return opened;
}

/* Returns the tokens that flow into the bucket of @key in a second. */
static uint64_t tokens_a_second(const struct limiter *key)
{
	struct fraction flow = rate_fraction(&key->settings->limits[0].rate);

	return (uint64_t)((u128)flow.num * SEC / flow.den);
}

/* Returns a node of the key whose name ends so; NULL: there is none. */
static const struct node *find_node(const struct scene *scene, const char *end)
{
	for (uint32_t i = 0; i < scene->node_count; i++) {
		const struct node *node = &scene->nodes[i];
		size_t length = strlen(node->path);

		if (!strncmp(node->path, KEY_BEGIN, strlen(KEY_BEGIN)) && length >= strlen(end) &&
		    !strcmp(node->path + length - strlen(end), end))
			return node;
	}
	return NULL;
}

/* Returns a limiter of which this host holds all, @for_ns after it has joined. */
static struct limiter *hold(struct scene *scene, uint64_t for_ns)
{
	struct guest guest;
	struct limiter *a;

	scene_open(scene);
	a = scene_make(scene, "a", LEASED);
	scene_run(scene, for_ns);
	(void)scene_ask(scene, &guest, a);
	scene_run(scene, SEC);
	assert_int_equal(guest.waiter.outcome, 0);
	return a;
}

/* Lets readers ask for the key @user until there is no token in it. */
static void empty_key(struct scene *scene, struct limiter *user)
{
	for (int i = 0; i < 10 && !scene_try(scene, user); i++)
		continue;
	assert_int_equal(scene_try(scene, user), -EBUSY);
}

/* Lets readers ask for the key @user until this host leases all of it. */
static struct limiter *lease_key(struct scene *scene, struct limiter **user)
{
	/* Leaves that are made from then on are usable at once: rule K3. */
	struct limiter *a = hold(scene, record_quarantine_ns(FLEET_RIGHT_NS));

	*user = open_key(scene, a);
	empty_key(scene, *user);
	scene_run(scene, SEC);
	assert_int_equal(tokens_a_second(*user), 100);
	return a;
}

/* Another host claims all leaves of the key. */
static void claim_key(struct scene *scene)
{
	char path[NODE_PATH_MAX];

	snprintf(path, sizeof(path), "%.23s/otherotheroth-90-1-0000000001",
		 find_node(scene, fleet_hid(scene->fleet))->path);
	scene_set(scene, path, NULL);
}

static void test_a_successor_uses_a_leased_key_before_there_is_a_connection(void **state)
{
	struct limiter *a, *user;
	struct scene scene;

	(void)state;
	a = lease_key(&scene, &user);
	scene.held_up = true;
	a = scene_succeed(&scene, a);
	user = open_key(&scene, a);
	assert_int_equal(tokens_a_second(user), 10);
	/* The first reader finds no tokens, and has all leaves from then on. */
	assert_int_equal(scene_try(&scene, user), -EBUSY);
	assert_int_equal(tokens_a_second(user), 100);
	scene_run(&scene, FLEET_RIGHT_NS);
	assert_in_range(tokens_a_second(user), 0, 10);
	scene.held_up = false;
	scene_connect(&scene);
	assert_int_equal(tokens_a_second(user), 100);
	keys_close(&scene.engine.schedule, user);
	scene_close(&scene);
}

static void test_a_successor_gives_away_a_key_that_no_reader_asks_for(void **state)
{
	struct limiter *a, *user;
	struct scene scene;

	(void)state;
	a = lease_key(&scene, &user);
	(void)scene_succeed(&scene, a);
	scene_connect(&scene);
	claim_key(&scene);
	scene_run(&scene, 15 * SEC);
	assert_null(find_node(&scene, fleet_hid(scene.fleet)));
	scene_close(&scene);
}

static void test_a_successor_does_not_use_leaves_that_were_on_their_way_back(void **state)
{
	struct limiter *a, *user;
	struct scene scene;
	unsigned int before;

	(void)state;
	a = lease_key(&scene, &user);
	claim_key(&scene);
	scene.held_up = true;
	for (before = scene.transactions;
	     !strstr(scene.transaction, KEY_BEGIN) || before == scene.transactions;) {
		while (scene.sent_count && scene.transactions == before)
			scene_answer(&scene);
		scene_run(&scene, MS);
	}
	assert_in_range(tokens_a_second(user), 11, 60);
	a = scene_succeed(&scene, a);
	user = open_key(&scene, a);
	assert_int_equal(scene_try(&scene, user), -EBUSY);
	assert_in_range(tokens_a_second(user), 11, 60);
	/* The give-back was not done: they are this host's, after the quarantine. */
	scene.held_up = false;
	scene_connect(&scene);
	scene_run(&scene, SEC);
	assert_in_range(tokens_a_second(user), 11, 60);
	keys_close(&scene.engine.schedule, user);
	scene_close(&scene);
}

static void test_a_successor_waits_for_leaves_that_were_on_their_way(void **state)
{
	struct limiter *a, *user;
	struct guest guest;
	struct scene scene;

	(void)state;
	a = hold(&scene, SEC);
	user = open_key(&scene, a);
	scene.held_up = true;
	empty_key(&scene, user);
	while (!strstr(scene.transaction, KEY_BEGIN)) {
		while (scene.sent_count && !strstr(scene.transaction, KEY_BEGIN))
			scene_answer(&scene);
		scene_run(&scene, MS);
	}
	/* The making is done, and no host hears of it. */
	while (scene.sent[0]->kind != REQUEST_TRANSACTION)
		scene_answer(&scene);
	scene_execute(&scene, scene.sent[0]);
	a = scene_succeed(&scene, a);
	user = open_key(&scene, a);
	scene.held_up = false;
	scene_connect(&scene);
	assert_non_null(find_node(&scene, fleet_hid(scene.fleet)));
	(void)scene_ask(&scene, &guest, user);
	scene_run(&scene, record_quarantine_ns(FLEET_RIGHT_NS) - SEC);
	assert_int_equal(tokens_a_second(user), 10);
	scene_run(&scene, 3 * SEC);
	assert_int_equal(tokens_a_second(user), 100);
	keys_close(&scene.engine.schedule, user);
	scene_close(&scene);
}

static void test_a_host_that_leaves_gives_its_keys_back(void **state)
{
	struct limiter *user;
	struct scene scene;

	(void)state;
	(void)lease_key(&scene, &user);
	assert_non_null(find_node(&scene, fleet_hid(scene.fleet)));
	keys_close(&scene.engine.schedule, user);
	scene_close(&scene);
	assert_non_null(find_node(&scene, "/0-89+2+1:0"));
}

/* Lays a key, all of whose leaves host @hid has. */
static void lay_key(struct scene *scene, const char *hash, const char *hid)
{
	char path[NODE_PATH_MAX];

	snprintf(path, sizeof(path), "/k/1-1/%s", hash);
	scene_set(scene, path, NULL);
	snprintf(path, sizeof(path), "/k/1-1/%s/0-89.%s", hash, hid);
	scene_set(scene, path, NULL);
}

static void test_a_key_of_a_host_that_is_gone_is_ended_within_an_hour(void **state)
{
	struct scene scene;
	struct limiter *a;

	(void)state;
	a = hold(&scene, SEC);
	scene_set(&scene, "/k/1-1", NULL);
	lay_key(&scene, "0000000000000001", "bbbbbbbbbbbbb");
	lay_key(&scene, "0000000000000002", "otherotheroth");
	for (int i = 0; i < 1800 && find_node(&scene, ".bbbbbbbbbbbbb"); i++) {
		(void)scene_try(&scene, a);
		scene_run(&scene, 2 * SEC);
	}
	/* Its leaves are used after the quarantine, and it is ended when it is full. */
	scene_run(&scene, 2 * record_quarantine_ns(FLEET_RIGHT_NS));
	assert_null(find_node(&scene, "0000000000000001"));
	assert_non_null(find_node(&scene, "0000000000000002/0-89.otherotheroth"));
	scene_close(&scene);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_successor_uses_a_leased_key_before_there_is_a_connection),
		cmocka_unit_test(test_a_successor_gives_away_a_key_that_no_reader_asks_for),
		cmocka_unit_test(test_a_successor_does_not_use_leaves_that_were_on_their_way_back),
		cmocka_unit_test(test_a_successor_waits_for_leaves_that_were_on_their_way),
		cmocka_unit_test(test_a_host_that_leaves_gives_its_keys_back),
		cmocka_unit_test(test_a_key_of_a_host_that_is_gone_is_ended_within_an_hour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
