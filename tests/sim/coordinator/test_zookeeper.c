/* Tests that the simulated coordinator keeps ZooKeeper's guarantees, and has its traps. */
#include "tests/sim/base/memory.h"
#include "tests/sim/coordinator/zookeeper.h"

#include "core/values/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define T  (6 * NSEC_PER_SEC)

/* A host that writes down what it is told. */
struct host {
	struct client client; /* first */
	struct link *link;
	uint64_t session;
	unsigned int connected, disconnected, expired, changed, answers, unknown;
	enum answer answer; /* the last */
	uint32_t failed, name_count;
	uint64_t zxid, made_zxid;
	int32_t version;
	char data[64], made[NODE_PATH_MAX], order[256];
};

static struct zookeeper zookeeper;
static struct host a, b;

static void on_connected(struct client *client, uint64_t session)
{
	struct host *host = (struct host *)client;

	host->connected++;
	host->session = session;
}

static void on_disconnected(struct client *client)
{
	((struct host *)client)->disconnected++;
}

static void on_expired(struct client *client)
{
	((struct host *)client)->expired++;
}

/* Writes down @what, cut short, as long as there is room. */
static void note(struct host *host, const char *before, const char *what)
{
	size_t used = strlen(host->order);

	snprintf(host->order + used, sizeof(host->order) - used, "%s%.20s ", before, what);
}

static void on_changed(struct client *client, const char *path)
{
	struct host *host = (struct host *)client;

	host->changed++;
	note(host, "!", path);
}

static void free_request(struct request *request)
{
	for (uint32_t i = 0; i < request->operation_count; i++) {
		free(request->operations[i].path);
		free(request->operations[i].data);
		free(request->operations[i].made);
	}
	free(request->names);
	free(request->data);
	free(request->path);
	free(request->operations);
	free(request);
}

static void on_answered(struct client *client, struct request *request)
{
	struct host *host = (struct host *)client;

	host->answers++;
	host->unknown += request->answer == ANSWER_UNKNOWN;
	host->answer = request->answer;
	host->failed = request->failed;
	host->zxid = request->zxid;
	host->made_zxid = request->made_zxid;
	host->version = request->version;
	host->name_count = request->name_count;
	snprintf(host->data, sizeof(host->data), "%s", request->data ? request->data : "");
	note(host, "", request->data ? request->data : "-");
	if (request->operation_count && request->operations[0].made)
		snprintf(host->made, sizeof(host->made), "%s", request->operations[0].made);
	free_request(request);
}

static void on_clocks(struct client *client, struct clocks *clocks)
{
	(void)client;
	*clocks = (struct clocks){zookeeper.now_ns, zookeeper.now_ns};
}

static void run_until(uint64_t until_ns)
{
	while (zookeeper_next_ns(&zookeeper) <= until_ns)
		zookeeper_run(&zookeeper, zookeeper_next_ns(&zookeeper));
	zookeeper_run(&zookeeper, until_ns);
}

static void run_for(uint64_t ns)
{
	run_until(zookeeper.now_ns + ns);
}

static void join(struct host *host)
{
	*host = (struct host){.client = {on_connected, on_disconnected, on_expired, on_changed,
					 on_answered, on_clocks, NULL}};
	host->link = link_new(&zookeeper, &host->client);
	host->link->coordinator.open(&host->link->coordinator, T);
	run_for(10 * MS);
	assert_int_equal(host->connected, 1);
}

static int begin(void **state)
{
	(void)state;
	zookeeper_open(&zookeeper, 1);
	zookeeper_run(&zookeeper, NSEC_PER_SEC);
	join(&a);
	join(&b);
	return 0;
}

static int end(void **state)
{
	(void)state;
	link_kill(a.link);
	link_kill(b.link);
	zookeeper_close(&zookeeper);
	return 0;
}

static char *copy(const char *text)
{
	return text ? memory_text(text, strlen(text)) : NULL;
}

static void send(struct host *host, struct request *request)
{
	host->link->coordinator.send(&host->link->coordinator, request);
}

static void read_node(struct host *host, enum request_kind kind, const char *path, bool watch)
{
	struct request *request = memory_get(sizeof(*request));

	request->kind = kind;
	request->path = copy(path);
	request->watch = watch;
	send(host, request);
}

/* A transaction of up to three operations: KIND PATH VERSION DATA. */
struct step {
	enum operation_kind kind;
	const char *path;
	int32_t version;
	const char *data;
	unsigned int flags;
};

static void transact(struct host *host, const struct step *steps, uint32_t count)
{
	struct request *request = memory_get(sizeof(*request));

	request->kind = REQUEST_TRANSACTION;
	request->operation_count = count;
	request->operations = memory_get(count * sizeof(struct operation));
	for (uint32_t i = 0; i < count; i++)
		request->operations[i] = (struct operation){
			.kind = steps[i].kind,
			.flags = steps[i].flags,
			.version = steps[i].version,
			.path = copy(steps[i].path),
			.data = copy(steps[i].data),
		};
	send(host, request);
}

static void create(struct host *host, const char *path, const char *data, unsigned int flags)
{
	transact(host, &(struct step){OPERATION_CREATE, path, 0, data, flags}, 1);
}

static void set(struct host *host, const char *path, const char *data)
{
	transact(host, &(struct step){OPERATION_SET, path, NODE_VERSION_ANY, data, 0}, 1);
}

static enum answer get(struct host *host, const char *path)
{
	read_node(host, REQUEST_GET, path, false);
	run_for(3 * MS);
	return host->answer;
}

static void test_a_transaction_happens_whole_or_not_at_all(void **state)
{
	const struct step steps[] = {
		{OPERATION_CREATE, "/y", 0, NULL, 0},
		{OPERATION_SET, "/x", NODE_VERSION_ANY, "2", 0},
		{OPERATION_CHECK, "/x", 7, NULL, 0},
	};

	(void)state;
	create(&a, "/x", "1", 0);
	transact(&a, steps, 3);
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_BAD_VERSION);
	assert_int_equal(a.failed, 2);
	assert_int_equal(get(&a, "/y"), ANSWER_NO_NODE);
	assert_int_equal(get(&a, "/x"), ANSWER_OK);
	assert_string_equal(a.data, "1");
	assert_int_equal(a.version, 0);
}

static void test_operations_see_those_before_them(void **state)
{
	const struct step steps[] = {
		{OPERATION_CREATE, "/f", 0, NULL, 0},
		{OPERATION_DELETE, "/f", NODE_VERSION_ANY, NULL, 0},
		{OPERATION_CREATE, "/l", 0, "a", NODE_EPHEMERAL},
	};

	(void)state;
	transact(&a, steps, 3);
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_OK);
	transact(&b, steps, 3);
	run_for(3 * MS);
	assert_int_equal(b.answer, ANSWER_EXISTS);
	assert_int_equal(b.failed, 2);
	assert_int_equal(get(&b, "/f"), ANSWER_NO_NODE);
}

static void test_impossible_request_is_refused_for_its_reason(void **state)
{
	(void)state;
	create(&a, "/p", NULL, 0);
	create(&a, "/p/c", NULL, 0);
	transact(&a, &(struct step){OPERATION_DELETE, "/p", NODE_VERSION_ANY, NULL, 0}, 1);
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_NOT_EMPTY);
	create(&a, "/none/c", NULL, 0);
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_NO_NODE);
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	create(&a, "/e/c", NULL, 0);
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_REFUSED);
	transact(&a, &(struct step){OPERATION_SET, "/p", 1, "x", 0}, 1);
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_BAD_VERSION);
}

static void test_zxids_and_versions_grow(void **state)
{
	uint64_t made, first;

	(void)state;
	create(&a, "/x", "1", 0);
	run_for(3 * MS);
	made = a.zxid;
	set(&b, "/x", "2");
	run_for(3 * MS);
	first = b.zxid;
	assert_true(first > made);
	set(&a, "/x", "3");
	get(&b, "/x");
	assert_int_equal(b.version, 2);
	assert_true(b.zxid > first);
	assert_int_equal(b.made_zxid, made);
	assert_int_equal(b.zxid >> 32, 1);
}

static void test_sequential_names_grow_and_are_told(void **state)
{
	(void)state;
	create(&a, "/w", NULL, 0);
	create(&a, "/w/n-", NULL, NODE_SEQUENTIAL | NODE_EPHEMERAL);
	run_for(3 * MS);
	assert_string_equal(a.made, "/w/n-0000000000");
	create(&b, "/w/n-", NULL, NODE_SEQUENTIAL | NODE_EPHEMERAL);
	run_for(3 * MS);
	assert_string_equal(b.made, "/w/n-0000000001");
	read_node(&a, REQUEST_LIST, "/w", false);
	run_for(3 * MS);
	assert_int_equal(a.name_count, 2);
}

static void test_first_request_is_executed_and_answered_first(void **state)
{
	(void)state;
	a.link->latency.jitter_ns = 50 * MS;
	create(&a, "/x", "0", 0);
	for (int i = 1; i < 9; i++) {
		char text[2] = {(char)('0' + i), 0};

		set(&a, "/x", text);
		read_node(&a, REQUEST_GET, "/x", false);
	}
	run_for(NSEC_PER_SEC);
	assert_string_equal(a.order, "- - 1 - 2 - 3 - 4 - 5 - 6 - 7 - 8 ");
}

static void test_closing_a_session_deletes_what_is_its_own_in_one_write(void **state)
{
	uint64_t counter;

	(void)state;
	create(&a, "/e1", NULL, NODE_EPHEMERAL);
	create(&a, "/e2", NULL, NODE_EPHEMERAL);
	create(&a, "/stays", NULL, 0);
	run_for(3 * MS);
	counter = zookeeper.counter;
	a.link->coordinator.close(&a.link->coordinator);
	run_for(3 * MS);
	assert_int_equal(zookeeper.counter, counter + 1);
	assert_int_equal(get(&b, "/e1"), ANSWER_NO_NODE);
	assert_int_equal(get(&b, "/e2"), ANSWER_NO_NODE);
	assert_int_equal(get(&b, "/stays"), ANSWER_OK);
}

static void test_a_session_lives_as_long_as_it_is_heard_of_and_no_longer(void **state)
{
	(void)state;
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	run_for(60 * NSEC_PER_SEC);
	assert_int_equal(get(&b, "/e"), ANSWER_OK);
	link_cut(a.link, false);
	run_for(T * 2 / 3 - 100 * MS);
	assert_int_equal(get(&b, "/e"), ANSWER_OK);
	run_for(T / 3 + NSEC_PER_SEC + 100 * MS);
	assert_int_equal(get(&b, "/e"), ANSWER_NO_NODE);
	assert_int_equal(a.disconnected, 1);
	assert_int_equal(a.expired, 0);
	link_heal(a.link);
	run_for(10 * NSEC_PER_SEC);
	assert_int_equal(a.expired, 1);
}

static void test_a_session_goes_on_after_a_short_cut(void **state)
{
	uint64_t session = a.session;

	(void)state;
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	run_for(3 * MS);
	link_cut(a.link, false);
	a.link->coordinator.hang_up(&a.link->coordinator);
	run_for(NSEC_PER_SEC);
	link_heal(a.link);
	run_for(4 * NSEC_PER_SEC);
	assert_int_equal(a.connected, 2);
	assert_int_equal(a.session, session);
	assert_int_equal(get(&b, "/e"), ANSWER_OK);
}

static void test_when_answers_are_cut_requests_are_executed_and_come_back_unknown(void **state)
{
	(void)state;
	link_cut(a.link, true);
	create(&a, "/x", NULL, 0);
	run_for(700 * MS);
	assert_int_equal(a.answers, 0);
	assert_int_equal(get(&b, "/x"), ANSWER_OK);
	a.link->coordinator.hang_up(&a.link->coordinator);
	assert_int_equal(a.answers, 0);
	run_for(1);
	assert_int_equal(a.unknown, 1);
	assert_int_equal(a.disconnected, 1);
}

static void test_request_on_its_way_may_be_lost_or_executed_even_after_reconnecting(void **state)
{
	unsigned int executed = 0, late = 0;

	(void)state;
	create(&a, "/x", "0", 0);
	run_for(3 * MS);
	for (int i = 0; i < 40; i++) {
		unsigned int connected = a.connected;
		int32_t version;

		get(&b, "/x");
		version = b.version;
		link_cut(a.link, false);
		set(&a, "/x", "1");
		run_for(700 * MS);
		a.link->coordinator.hang_up(&a.link->coordinator);
		link_heal(a.link);
		run_for(500 * MS);
		assert_true(a.connected > connected);
		get(&b, "/x");
		executed += b.version > version;
		if (b.version == version) {
			run_for(25 * NSEC_PER_SEC);
			get(&b, "/x");
			late += b.version > version;
		}
		assert_true(b.version <= version + 1);
	}
	assert_int_equal(a.unknown, 40);
	assert_true(executed > 5 && late > 5 && executed + late < 38);
}

static void test_a_stray_of_a_session_that_is_closed_is_not_executed(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		link_cut(a.link, false);
		create(&a, "/e", NULL, NODE_EPHEMERAL);
		run_for(10 * NSEC_PER_SEC);
		link_heal(a.link);
		run_for(30 * NSEC_PER_SEC);
		assert_int_equal(get(&b, "/e"), ANSWER_NO_NODE);
		a.link->coordinator.open(&a.link->coordinator, T);
		run_for(10 * MS);
	}
	assert_int_equal(a.expired, 20);
}

static void test_a_watch_tells_of_one_change_before_the_new_data_is_seen(void **state)
{
	(void)state;
	zookeeper.lag_ns = 0;
	create(&b, "/x", "1", 0);
	run_for(3 * MS);
	read_node(&a, REQUEST_GET, "/x", true);
	run_for(3 * MS);
	set(&b, "/x", "2");
	set(&b, "/x", "3");
	run_for(1 * MS);
	read_node(&a, REQUEST_GET, "/x", false);
	run_for(3 * MS);
	assert_string_equal(a.order, "1 !/x 3 ");
	set(&b, "/x", "4");
	run_for(3 * MS);
	assert_int_equal(a.changed, 1);
}

static void test_a_watch_on_children_tells_of_one_that_comes_or_goes(void **state)
{
	(void)state;
	create(&b, "/p", NULL, 0);
	run_for(3 * MS);
	read_node(&a, REQUEST_LIST, "/p", true);
	run_for(3 * MS);
	set(&b, "/p", "data");
	run_for(3 * MS);
	assert_int_equal(a.changed, 0);
	create(&b, "/p/c", NULL, NODE_EPHEMERAL);
	run_for(3 * MS);
	assert_int_equal(a.changed, 1);
	read_node(&a, REQUEST_LIST, "/p", true);
	run_for(3 * MS);
	b.link->coordinator.close(&b.link->coordinator);
	run_for(3 * MS);
	assert_int_equal(a.changed, 2);
}

static void test_a_watch_outlives_its_connection_and_misses_nothing(void **state)
{
	(void)state;
	create(&b, "/x", "1", 0);
	create(&b, "/y", "1", 0);
	run_for(3 * MS);
	read_node(&a, REQUEST_GET, "/x", true);
	read_node(&a, REQUEST_GET, "/y", true);
	run_for(3 * MS);
	link_cut(a.link, false);
	set(&b, "/x", "2");
	run_for(100 * MS);
	a.link->coordinator.hang_up(&a.link->coordinator);
	link_heal(a.link);
	run_for(NSEC_PER_SEC);
	assert_int_equal(a.changed, 1);
	set(&b, "/y", "2");
	run_for(3 * MS);
	assert_int_equal(a.changed, 2);
}

static void test_a_server_that_lags_answers_with_the_past_but_never_goes_back(void **state)
{
	unsigned int old = 0;

	(void)state;
	zookeeper.lag_ns = 3 * NSEC_PER_SEC;
	run_for(5 * NSEC_PER_SEC);
	create(&b, "/x", NULL, 0);
	run_for(5 * NSEC_PER_SEC);
	for (int i = 1; i < 60; i++) {
		int32_t version = a.version;

		set(&b, "/x", NULL);
		if (i % 5 == 0)
			a.link->coordinator.hang_up(&a.link->coordinator);
		run_for(500 * MS);
		if (a.link->state != LINK_CONNECTED)
			continue;
		get(&a, "/x");
		if (a.answer != ANSWER_OK)
			continue;
		assert_true(a.version >= version);
		old += a.version < i;
	}
	assert_true(old > 10);
}

/* In /d two nodes become one, and the other way round. */
static void swap(struct host *host, bool back)
{
	enum operation_kind two = back ? OPERATION_CREATE : OPERATION_DELETE;
	enum operation_kind one = back ? OPERATION_DELETE : OPERATION_CREATE;
	const struct step steps[] = {
		{two, "/d/1", back ? 0 : NODE_VERSION_ANY, NULL, 0},
		{two, "/d/2", back ? 0 : NODE_VERSION_ANY, NULL, 0},
		{one, "/d/3", back ? NODE_VERSION_ANY : 0, NULL, 0},
	};

	transact(host, steps, 3);
	run_for(3 * MS);
}

/* Lists it again and again as @host, and notes the numbers of children. */
static void look(struct host *host, bool seen[4])
{
	for (int i = 0; i < 40; i++) {
		swap(&a, i % 2);
		read_node(host, REQUEST_LIST, "/d", false);
		run_for(3 * MS);
		assert_true(host->name_count < 4);
		seen[host->name_count] = true;
	}
}

static void test_a_list_may_be_torn_for_another_session(void **state)
{
	bool whole[4] = {0}, own[4] = {0}, torn[4] = {0};

	(void)state;
	create(&a, "/d", NULL, 0);
	create(&a, "/d/1", NULL, 0);
	create(&a, "/d/2", NULL, 0);
	run_for(3 * MS);
	look(&b, whole);
	zookeeper.torn = true;
	look(&a, own);
	look(&b, torn);
	assert_memory_equal(whole, ((bool[4]){false, true, true, false}), sizeof(whole));
	assert_memory_equal(own, whole, sizeof(own));
	assert_memory_equal(torn, ((bool[4]){true, true, true, true}), sizeof(torn));
}

static void test_a_watch_of_a_torn_list_tells_of_what_it_lacks(void **state)
{
	unsigned int whole = 0, torn = 0;

	(void)state;
	create(&a, "/d", NULL, 0);
	create(&a, "/d/1", NULL, 0);
	create(&a, "/d/2", NULL, 0);
	run_for(3 * MS);
	zookeeper.torn = true;
	for (int i = 0; i < 40; i++) {
		unsigned int changed;
		bool is_torn;

		swap(&a, i % 2);
		changed = b.changed;
		read_node(&b, REQUEST_LIST, "/d", true);
		run_for(3 * MS);
		is_torn = b.name_count != (i % 2 ? 2 : 1);
		torn += is_torn;
		whole += !is_torn;
		/* Another list may have the right number of the wrong names. */
		if (is_torn)
			assert_int_equal(b.changed, changed + 1);
	}
	assert_true(torn && whole);
}

static void test_a_session_reads_its_own_writes_whatever_its_server_lags(void **state)
{
	(void)state;
	zookeeper.lag_ns = 3 * NSEC_PER_SEC;
	run_for(5 * NSEC_PER_SEC);
	a.link->coordinator.hang_up(&a.link->coordinator);
	run_for(5 * NSEC_PER_SEC);
	create(&a, "/x", "mine", 0);
	read_node(&a, REQUEST_GET, "/x", false);
	run_for(5 * NSEC_PER_SEC);
	assert_string_equal(a.data, "mine");
}

static void test_election_answers_no_host_and_gives_sessions_their_time_anew(void **state)
{
	uint64_t zxid;

	(void)state;
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	run_for(3 * MS);
	zxid = a.zxid;
	zookeeper_elect(&zookeeper, 20 * NSEC_PER_SEC);
	set(&a, "/e", "late");
	run_for(19 * NSEC_PER_SEC);
	assert_int_equal(a.unknown, 1);
	assert_int_equal(a.disconnected, 1);
	assert_int_equal(a.connected, 1);
	run_for(6 * NSEC_PER_SEC);
	assert_int_equal(a.connected, 2);
	assert_int_equal(a.expired, 0);
	set(&a, "/e", "again");
	run_for(3 * MS);
	assert_int_equal(a.answer, ANSWER_OK);
	assert_int_equal(a.zxid >> 32, (zxid >> 32) + 1);
}

static void test_the_last_writes_may_be_lost_in_an_election(void **state)
{
	(void)state;
	create(&b, "/x", "kept", 0);
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	run_for(3 * MS);
	set(&b, "/x", "lost");
	create(&b, "/lost", NULL, 0);
	run_for(3 * MS);
	a.link->coordinator.close(&a.link->coordinator);
	run_for(3 * MS);
	zookeeper_lose(&zookeeper, 3);
	zookeeper_elect(&zookeeper, NSEC_PER_SEC);
	run_for(5 * NSEC_PER_SEC);
	assert_int_equal(get(&b, "/x"), ANSWER_OK);
	assert_string_equal(b.data, "kept");
	assert_int_equal(get(&b, "/lost"), ANSWER_NO_NODE);
	/* A session whose end was lost lives again, until it expires. */
	assert_int_equal(get(&b, "/e"), ANSWER_OK);
	run_for(T);
	assert_int_equal(get(&b, "/e"), ANSWER_NO_NODE);
}

static void test_a_folder_whose_making_was_lost_has_its_children_again(void **state)
{
	(void)state;
	create(&b, "/d", NULL, 0);
	create(&b, "/d/x", NULL, 0);
	run_for(3 * MS);
	read_node(&a, REQUEST_GET, "/d/x", true);
	run_for(3 * MS);
	link_pause(a.link); /* so its watch stays */
	zookeeper_lose(&zookeeper, 2);
	zookeeper_elect(&zookeeper, NSEC_PER_SEC);
	run_for(5 * NSEC_PER_SEC);
	assert_int_equal(get(&b, "/d"), ANSWER_NO_NODE);
	create(&b, "/d", NULL, 0);
	create(&b, "/d/x", NULL, 0);
	run_for(3 * MS);
	read_node(&b, REQUEST_LIST, "/d", false);
	run_for(3 * MS);
	assert_int_equal(b.name_count, 1);
}

static void test_a_host_that_is_paused_is_told_nothing_until_it_goes_on(void **state)
{
	(void)state;
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	set(&a, "/e", "x");
	link_pause(a.link);
	run_for(3 * MS);
	assert_int_equal(a.answers, 0);
	run_for(10 * NSEC_PER_SEC);
	assert_int_equal(get(&b, "/e"), ANSWER_NO_NODE);
	assert_int_equal(a.answers + a.disconnected + a.expired, 0);
	link_resume(a.link);
	run_for(5 * NSEC_PER_SEC);
	assert_int_equal(a.answers, 2);
	assert_int_equal(a.expired, 1);
}

static void test_a_host_that_is_killed_keeps_its_session_until_it_expires(void **state)
{
	(void)state;
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	run_for(3 * MS);
	link_kill(a.link);
	run_for(T * 2 / 3 - 100 * MS);
	assert_int_equal(get(&b, "/e"), ANSWER_OK);
	run_for(T / 3 + NSEC_PER_SEC + 100 * MS);
	assert_int_equal(get(&b, "/e"), ANSWER_NO_NODE);
}

static void test_requests_without_a_connection_come_back_unknown_and_later(void **state)
{
	(void)state;
	link_cut(a.link, false);
	a.link->coordinator.hang_up(&a.link->coordinator);
	create(&a, "/x", NULL, 0);
	assert_int_equal(a.answers, 0);
	run_for(1);
	assert_int_equal(a.unknown, 1);
}

static void test_an_operator_is_obeyed_and_seen(void **state)
{
	(void)state;
	create(&a, "/x", "1", 0);
	read_node(&a, REQUEST_GET, "/x", true);
	run_for(3 * MS);
	assert_int_equal(zookeeper_operate(&zookeeper, OPERATION_SET, "/x", "garbage"), ANSWER_OK);
	run_for(3 * MS);
	assert_int_equal(a.changed, 1);
	assert_int_equal(zookeeper_operate(&zookeeper, OPERATION_DELETE, "/x", NULL), ANSWER_OK);
	assert_int_equal(get(&a, "/x"), ANSWER_NO_NODE);
	assert_int_equal(zookeeper_operate(&zookeeper, OPERATION_DELETE, "/x", NULL),
			 ANSWER_NO_NODE);
}

static void test_no_memory_is_left(void **state)
{
	long before = memory_blocks();

	begin(state);
	zookeeper.lag_ns = NSEC_PER_SEC;
	create(&a, "/x", "1", 0);
	read_node(&a, REQUEST_GET, "/x", true);
	run_for(2 * NSEC_PER_SEC);
	create(&a, "/e", NULL, NODE_EPHEMERAL);
	link_cut(b.link, false);
	link_cut(a.link, true);
	run_for(30 * NSEC_PER_SEC);
	link_heal(a.link);
	run_for(30 * NSEC_PER_SEC);
	end(state);
	assert_int_equal(memory_blocks(), before);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_a_transaction_happens_whole_or_not_at_all),
		TEST(test_operations_see_those_before_them),
		TEST(test_impossible_request_is_refused_for_its_reason),
		TEST(test_zxids_and_versions_grow),
		TEST(test_sequential_names_grow_and_are_told),
		TEST(test_first_request_is_executed_and_answered_first),
		TEST(test_closing_a_session_deletes_what_is_its_own_in_one_write),
		TEST(test_a_session_lives_as_long_as_it_is_heard_of_and_no_longer),
		TEST(test_a_session_goes_on_after_a_short_cut),
		TEST(test_when_answers_are_cut_requests_are_executed_and_come_back_unknown),
		TEST(test_request_on_its_way_may_be_lost_or_executed_even_after_reconnecting),
		TEST(test_a_stray_of_a_session_that_is_closed_is_not_executed),
		TEST(test_a_watch_tells_of_one_change_before_the_new_data_is_seen),
		TEST(test_a_watch_on_children_tells_of_one_that_comes_or_goes),
		TEST(test_a_watch_outlives_its_connection_and_misses_nothing),
		TEST(test_a_server_that_lags_answers_with_the_past_but_never_goes_back),
		TEST(test_a_list_may_be_torn_for_another_session),
		TEST(test_a_watch_of_a_torn_list_tells_of_what_it_lacks),
		TEST(test_a_session_reads_its_own_writes_whatever_its_server_lags),
		TEST(test_election_answers_no_host_and_gives_sessions_their_time_anew),
		TEST(test_the_last_writes_may_be_lost_in_an_election),
		TEST(test_a_folder_whose_making_was_lost_has_its_children_again),
		TEST(test_a_host_that_is_paused_is_told_nothing_until_it_goes_on),
		TEST(test_a_host_that_is_killed_keeps_its_session_until_it_expires),
		TEST(test_requests_without_a_connection_come_back_unknown_and_later),
		TEST(test_an_operator_is_obeyed_and_seen),
		cmocka_unit_test(test_no_memory_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
