/* test_requests - what is asked and answered. */
#include "check.h"
#include "host.h"
#include "server.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A host with a path of its own, below which nothing is yet. */
static struct host *start(const char *path)
{
	struct host *host = host_start(at(server_port), path, NULL);

	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	return host;
}

static void test_path(void)
{
	struct host *host = start("/path/of/the/fleet"), *root = start("");

	CHECK_IS(host_get(root, "/path/of/the/fleet"), ANSWER_OK);
	CHECK_IS(host_get(host, "/"), ANSWER_OK);
	CHECK_IS(host_create(host, "/g", "x", 0), ANSWER_OK);
	CHECK_IS(host_get(root, "/path/of/the/fleet/g"), ANSWER_OK);
	CHECK(host_session(host) != 0);
	host_stop(root);
	host_stop(host);
}

static void test_get(void)
{
	struct host *host = start("/get");
	struct request *request = host_request_get("/n", false);

	host_create(host, "/n", "before", 0);
	host_set(host, "/n", "some data", 0);
	CHECK_IS(host_ask(host, request), ANSWER_OK);
	CHECK(!strcmp(request->data, "some data"));
	CHECK_IS(request->length, 9);
	CHECK_IS(request->version, 1);
	CHECK(request->made_zxid > 0 && request->zxid == request->made_zxid + 1);
	CHECK(llabs((long long)request->changed_ms - (long long)time(NULL) * 1000) < 5000);
	host_request_free(request);
	host_stop(host);
}

static void test_empty(void)
{
	struct host *host = start("/empty");
	const char *paths[] = {"/none", "/null"};

	host_create(host, "/none", NULL, 0);
	server_put(server_port, "/empty/null", NULL, (size_t)-1);
	for (int i = 0; i < 2; i++) {
		struct request *request = host_request_get(paths[i], false);

		CHECK_IS(host_ask(host, request), ANSWER_OK);
		CHECK(request->data && !*request->data && !request->length);
		host_request_free(request);
	}
	host_stop(host);
}

static void test_zero_bytes(void)
{
	struct host *host = start("/zero");
	struct request *request = host_request_get("/n", false);

	server_put(server_port, "/zero/n", "a\0b", 3);
	CHECK_IS(host_ask(host, request), ANSWER_OK);
	CHECK_IS(request->length, 3);
	CHECK(!memcmp(request->data, "a\0b", 4));
	host_request_free(request);
	host_stop(host);
}

static void test_size(void)
{
	struct host *host = start("/size");
	char *data = malloc(NODE_DATA_MAX + 2);

	memset(data, 'x', NODE_DATA_MAX + 1);
	data[NODE_DATA_MAX + 1] = '\0';
	server_put(server_port, "/size/much", data, NODE_DATA_MAX + 1);
	server_put(server_port, "/size/most", data, NODE_DATA_MAX);
	CHECK_IS(host_get(host, "/much"), ANSWER_REFUSED);
	CHECK_IS(host_get(host, "/most"), ANSWER_OK);
	CHECK_IS(host_create(host, "/more", data, 0), ANSWER_REFUSED);
	data[NODE_DATA_MAX] = '\0';
	CHECK_IS(host_create(host, "/more", data, 0), ANSWER_OK);
	free(data);
	host_stop(host);
}

static void test_answers(void)
{
	struct host *host = start("/answers");
	struct request *check = host_request_transaction(),
		       *missing = host_request_list("/none", false);

	CHECK_IS(host_get(host, "/none"), ANSWER_NO_NODE);
	CHECK_IS(host_ask(host, missing), ANSWER_NO_NODE);
	CHECK_IS(host_set(host, "/none", "", 0), ANSWER_NO_NODE);
	CHECK_IS(host_delete(host, "/none", NODE_VERSION_ANY), ANSWER_NO_NODE);
	CHECK_IS(host_create(host, "/none/child", "", 0), ANSWER_NO_NODE);
	CHECK_IS(host_create(host, "/n", "", 0), ANSWER_OK);
	CHECK_IS(host_create(host, "/n", "", 0), ANSWER_EXISTS);
	CHECK_IS(host_create(host, "/n/child", "", 0), ANSWER_OK);
	CHECK_IS(host_set(host, "/n", "", 7), ANSWER_BAD_VERSION);
	CHECK_IS(host_set(host, "/n", "", NODE_VERSION_ANY), ANSWER_OK);
	CHECK_IS(host_delete(host, "/n", 0), ANSWER_BAD_VERSION);
	CHECK_IS(host_delete(host, "/n", 1), ANSWER_NOT_EMPTY);
	host_request_add(check, OPERATION_CHECK, "/n", NULL, 2);
	CHECK_IS(host_ask(host, check), ANSWER_BAD_VERSION);
	CHECK_IS(host_create(host, "/e", "", NODE_EPHEMERAL), ANSWER_OK);
	CHECK_IS(host_create(host, "/e/child", "", 0), ANSWER_REFUSED);
	host_request_free(check);
	host_request_free(missing);
	host_stop(host);
}

static void test_refusals(void)
{
	static const char *const paths[] = {"",	     "n",     "//n",   "/n/",	"/./n",
					    "/n/..", "/a//b", "/a\nb", "/a\x7f"};
	struct host *host = start("/refusals");
	struct request *none = host_request_transaction(), *many = host_request_transaction();
	char path[NODE_PATH_MAX + 1] = "/";

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		CHECK_IS(host_get(host, paths[i]), ANSWER_REFUSED);
		CHECK_IS(host_create(host, paths[i], "", 0), ANSWER_REFUSED);
	}
	memset(path + 1, 'x', NODE_PATH_MAX - 1);
	CHECK_IS(host_get(host, path), ANSWER_REFUSED);
	path[NODE_PATH_MAX - 1] = '\0';
	CHECK_IS(host_create(host, path, "", 0), ANSWER_OK);
	CHECK_IS(host_ask(host, none), ANSWER_REFUSED);
	for (int i = 0; i <= OPERATIONS_MAX; i++)
		host_request_add(many, OPERATION_CHECK, "/", NULL, NODE_VERSION_ANY);
	CHECK_IS(host_ask(host, many), ANSWER_REFUSED);
	many->operation_count--;
	CHECK_IS(host_ask(host, many), ANSWER_OK);
	many->operation_count++;
	host_request_free(none);
	host_request_free(many);
	host_stop(host);
}

/* One transaction that sets @count nodes of @length bytes each. */
static enum answer set_all(struct host *host, int count, size_t length)
{
	static char data[NODE_DATA_MAX + 1];
	struct request *request = host_request_transaction();
	enum answer answer;

	memset(data, 'x', length);
	data[length] = '\0';
	for (int i = 0; i < count; i++)
		host_request_add(request, OPERATION_SET, "/n", data, NODE_VERSION_ANY);
	answer = host_ask(host, request);
	host_request_free(request);
	return answer;
}

static void test_long_transaction(void)
{
	struct host *host = start("/long");

	CHECK_IS(host_create(host, "/n", "", 0), ANSWER_OK);
	CHECK_IS(set_all(host, 17, 61000), ANSWER_OK);
	CHECK_IS(set_all(host, 18, 61000), ANSWER_REFUSED);
	CHECK_IS(host_count(host, TOLD_DISCONNECTED), 0);
	CHECK_IS(host_get(host, "/n"), ANSWER_OK);
	host_stop(host);
}

static void test_failed(void)
{
	struct host *host = start("/failed");
	struct request *request = host_request_transaction();

	host_create(host, "/h", "", 0);
	host_request_add(request, OPERATION_CHECK, "/h", NULL, 0);
	host_request_add(request, OPERATION_SET, "/h", "x", 0);
	host_request_add(request, OPERATION_CREATE, "/new", "x", 0);
	host_request_add(request, OPERATION_DELETE, "/none", NULL, NODE_VERSION_ANY);
	host_request_add(request, OPERATION_CREATE, "/h", "x", 0);
	CHECK_IS(host_ask(host, request), ANSWER_NO_NODE);
	CHECK_IS(request->failed, 3);
	host_request_free(request);
	CHECK_IS(host_get(host, "/new"), ANSWER_NO_NODE);
	CHECK_IS(host_set(host, "/h", "", 0), ANSWER_OK);
	host_stop(host);
}

static void test_zxid(void)
{
	struct host *host = start("/zxid");
	struct request *request = host_request_transaction(),
		       *after = host_request_get("/h", false);

	host_create(host, "/h", "", 0);
	host_create(host, "/other", "", 0);
	host_request_add(request, OPERATION_CHECK, "/other", NULL, 0);
	host_request_add(request, OPERATION_SET, "/h", "x", 0);
	host_request_add(request, OPERATION_CREATE, "/new", "x", 0);
	CHECK_IS(host_ask(host, request), ANSWER_OK);
	CHECK_IS(host_ask(host, after), ANSWER_OK);
	CHECK(request->zxid && request->zxid == after->zxid);
	host_request_free(request);
	host_request_free(after);
	host_stop(host);
}

static void test_sequential(void)
{
	struct host *host = start("/sequential");
	struct request *request = host_request_transaction();

	host_create(host, "/w", "", 0);
	host_request_add(request, OPERATION_CREATE, "/w/host-3-", "x", 0)->flags = NODE_EPHEMERAL |
										   NODE_SEQUENTIAL;
	host_request_add(request, OPERATION_CREATE, "/w/", "x", 0)->flags = NODE_SEQUENTIAL;
	CHECK_IS(host_ask(host, request), ANSWER_OK);
	CHECK(request->operations[0].made &&
	      !strcmp(request->operations[0].made, "/w/host-3-0000000000"));
	CHECK(request->operations[1].made && !strcmp(request->operations[1].made, "/w/0000000001"));
	CHECK_IS(host_get(host, "/w/host-3-0000000000"), ANSWER_OK);
	host_request_free(request);
	host_stop(host);
}

static void test_ephemeral(void)
{
	struct host *host = start("/ephemeral"), *other = start("/ephemeral");

	CHECK_IS(host_create(host, "/h", "", NODE_EPHEMERAL), ANSWER_OK);
	CHECK_IS(host_create(host, "/stays", "", 0), ANSWER_OK);
	CHECK_IS(host_get(other, "/h"), ANSWER_OK);
	host_stop(host);
	CHECK_IS(host_get(other, "/h"), ANSWER_NO_NODE);
	CHECK_IS(host_get(other, "/stays"), ANSWER_OK);
	host_stop(other);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void test_list(void)
{
	struct host *host = start("/list");
	struct request *request = host_request_list("/", false), *made[3],
		       *none = host_request_list("/n000", false);
	char path[16];
	uint32_t count = 0;

	for (int i = 0; i < 3; i++) {
		made[i] = host_request_transaction();
		while (made[i]->operation_count < OPERATIONS_MAX) {
			snprintf(path, sizeof(path), "/n%03u", count++);
			host_request_add(made[i], OPERATION_CREATE, path, "", 0);
		}
		host_send(host, made[i]);
	}
	CHECK_IS(host_ask(host, request), ANSWER_OK);
	CHECK_IS(request->name_count, count);
	qsort(request->names, request->name_count, sizeof(*request->names), compare);
	for (uint32_t i = 0; i < request->name_count; i++) {
		snprintf(path, sizeof(path), "n%03u", i);
		CHECK(!strcmp(request->names[i], path));
	}
	CHECK_IS(host_ask(host, none), ANSWER_OK);
	CHECK_IS(none->name_count, 0);
	for (int i = 0; i < 3; i++)
		host_request_free(made[i]);
	host_request_free(request);
	host_request_free(none);
	host_stop(host);
}

/* ZooKeeper bounds requests, not answers. */
static void test_long_list(void)
{
	enum { COUNT = 28000, BATCH = 100, NAME = 45 };
	struct host *host = start("/names");
	struct request *names = host_request_list("/", false);
	char path[NAME + 2];

	for (int i = 0; i < COUNT; i += BATCH) {
		struct request *request = host_request_transaction();

		for (int k = i; k < i + BATCH; k++) {
			snprintf(path, sizeof(path), "/%0*d", NAME, k);
			host_request_add(request, OPERATION_CREATE, path, NULL, 0);
		}
		CHECK_IS(host_ask(host, request), ANSWER_OK);
		host_request_free(request);
	}
	CHECK_IS(host_ask(host, names), ANSWER_OK);
	CHECK_IS(names->name_count, COUNT);
	CHECK_IS(host_count(host, TOLD_DISCONNECTED), 0);
	host_request_free(names);
	host_stop(host);
}

static void test_watch(void)
{
	struct host *host = start("/watch"), *other = start("/watch");
	struct request *data = host_request_get("/g", true), *names = host_request_list("/", true);

	host_create(other, "/g", "1", 0);
	CHECK_IS(host_ask(host, data), ANSWER_OK);
	host_set(other, "/g", "2", 0);
	CHECK(host_wait(host, TOLD_CHANGED, 1));
	CHECK(!strcmp(host_changed(host), "/g"));
	host_set(other, "/g", "3", 1);
	CHECK(!host_wait_ms(host, TOLD_CHANGED, 2, 300));
	CHECK_IS(host_ask(host, names), ANSWER_OK);
	host_create(other, "/new", "", 0);
	CHECK(host_wait(host, TOLD_CHANGED, 2));
	CHECK(!strcmp(host_changed(host), "/"));
	host_request_free(data);
	host_request_free(names);
	host_stop(other);
	host_stop(host);
}

static void test_order(void)
{
	enum { COUNT = 2000 };
	static struct request *requests[COUNT];
	struct host *host = start("/order");

	host_create(host, "/n", "", 0);
	for (int i = 0; i < COUNT; i++) {
		requests[i] = host_request_transaction();
		host_request_add(requests[i], OPERATION_SET, "/n", "x", i);
	}
	for (int i = 0; i < COUNT; i++)
		host_send(host, requests[i]);
	for (int i = 0; i < COUNT; i++) {
		CHECK_IS(host_answer(host, requests[i]), ANSWER_OK);
		CHECK_IS(requests[i]->of.number, i + 2);
	}
	for (int i = 0; i < COUNT; i++)
		host_request_free(requests[i]);
	host_stop(host);
}

const struct test_case request_cases[] = {
	{"the path is made, and all paths are below it", test_path},
	{"a node is read with its versions and times", test_get},
	{"a node without data is read as empty", test_empty},
	{"zero bytes in data are kept", test_zero_bytes},
	{"data over the limit are refused, both ways", test_size},
	{"each refusal of the server has its answer", test_answers},
	{"what the server would not understand is refused before it is sent", test_refusals},
	{"a transaction longer than a server takes is refused before it is sent",
	 test_long_transaction},
	{"a transaction that is refused says which operation, and nothing is done", test_failed},
	{"a transaction has the place in the order that its nodes have", test_zxid},
	{"the path of a sequential node comes back", test_sequential},
	{"ephemeral nodes go with the session, others stay", test_ephemeral},
	{"all names of a node's children are listed", test_list},
	{"names that are longer together than a request may be are listed", test_long_list},
	{"a watch tells of one change", test_watch},
	{"requests are executed and answered in the order in which they are sent", test_order},
	{NULL, NULL},
};
