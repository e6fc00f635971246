/* test_credentials - access rights, and the daemon's other knowledge of the coordinator. */
#include "check.h"
#include "host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file with @text; the name is valid until the next call. */
static const char *file(const char *text, mode_t mode)
{
	static char path[300];
	FILE *out;

	snprintf(path, sizeof(path), "%s/credentials", directory);
	unlink(path);
	out = fopen(path, "we");
	fputs(text, out);
	fclose(out);
	chmod(path, mode);
	return path;
}

static struct host *start(const char *credentials, mode_t mode)
{
	struct host *host = host_start(at(server_port), "/acl/fleet",
				       credentials ? file(credentials, mode) : NULL);

	CHECK(host_wait(host, TOLD_CONNECTED, 1));
	return host;
}

static void test_access(void)
{
	struct host *owner = start("me:secret\n", 0600), *same = start("me:secret", 0400);
	struct host *wrong = start("me:guess", 0600), *without = start(NULL, 0);

	CHECK_IS(host_create(owner, "/n", "x", 0), ANSWER_OK);
	CHECK_IS(host_get(same, "/n"), ANSWER_OK);
	CHECK_IS(host_set(same, "/n", "y", 0), ANSWER_OK);
	CHECK_IS(host_get(wrong, "/n"), ANSWER_DENIED);
	CHECK_IS(host_set(wrong, "/n", "z", 1), ANSWER_DENIED);
	CHECK_IS(host_get(without, "/n"), ANSWER_DENIED);
	CHECK_IS(host_create(without, "/new", "", 0), ANSWER_DENIED);
	CHECK_IS(host_delete(without, "/n", NODE_VERSION_ANY), ANSWER_DENIED);
	host_stop(without);
	host_stop(wrong);
	host_stop(same);
	host_stop(owner);
}

static void test_path_below(void)
{
	struct host *owner = host_start(at(server_port), "/mine", file("me:secret", 0600));
	struct host *other;

	CHECK(host_wait(owner, TOLD_CONNECTED, 1));
	/* It is connected all the same, and every request says why nothing works. */
	other = host_start(at(server_port), "/mine/not/yours", NULL);
	CHECK(host_wait(other, TOLD_CONNECTED, 1));
	CHECK_IS(host_get(other, "/g"), ANSWER_NO_NODE);
	host_stop(other);
	host_stop(owner);
}

static void test_files(void)
{
	static const struct {
		const char *text;
		mode_t mode;
	} refused[] = {
		{"me:secret\n", 0640},
		{"me:secret\n", 0604},
		{"me:secret\n", 0620},
		{"", 0600},
		{"\n", 0600},
		{"me\n", 0600},
		{"me:\n", 0600},
		{":secret\n", 0600},
		{"me:secret\nyou:secret\n", 0600},
	};
	char missing[300], most[1100];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		CHECK(!zookeeper_open("h", "", file(refused[i].text, refused[i].mode), NULL));
	memset(most, 'x', sizeof(most));
	memcpy(most, "me:", 3);
	most[sizeof(most) - 1] = '\0';
	CHECK(!zookeeper_open("h", "", file(most, 0600), NULL));
	CHECK(!zookeeper_open("h", "", directory, NULL));
	snprintf(missing, sizeof(missing), "%s/no-such-file", directory);
	CHECK(!zookeeper_open("h", "", missing, NULL));
}

static void test_clocks(void)
{
	struct zookeeper *source = zookeeper_open("127.0.0.1", "", NULL, NULL);
	struct coordinator *coordinator = zookeeper_coordinator(source);
	struct clocks before, after;
	uint64_t passed_ns, began_ms = host_now_ms(), most_ms;

	coordinator->clocks(coordinator, &before);
	usleep(50000);
	coordinator->clocks(coordinator, &after);
	most_ms = host_now_ms() - began_ms + 2; /* both ends are rounded */
	passed_ns = after.holder_ns - before.holder_ns;
	CHECK(passed_ns >= 50 * MS_NS && passed_ns < most_ms * MS_NS + CLOCK_LOOK_NS);
	CHECK(after.waiter_ns > before.waiter_ns &&
	      after.waiter_ns - before.waiter_ns <= passed_ns + CLOCK_LOOK_NS);
	CHECK(coordinator->random(coordinator) != coordinator->random(coordinator));
	zookeeper_free(source);
}

const struct test_case credential_cases[] = {
	{"nodes made with credentials are their user's only", test_access},
	{"a path that may not be made is no obstacle to being told so", test_path_below},
	{"files of credentials that others may read, or are none, are refused", test_files},
	{"clocks go on, and random numbers differ", test_clocks},
	{NULL, NULL},
};
