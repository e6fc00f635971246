/*
 * Tests of fs/state/limiters: limiters are kept for a successor, also where there is hardly room
 * for them.
 */
#include "tests/core/stage.h"

#include "fs/base/clock.h"
#include "fs/state/inside.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

uint64_t clock_ns(void)
{
	return 0;
}

/*
 * Limiters as a successor finds them: the settings of the one that is called @name, and how many
 * there are.
 */
struct finding {
	const char *name;
	char settings[SETTING_COUNT * SETTING_TEXT];
	uint32_t made_s;
	uint32_t changed_s; /* its rate */
	unsigned int count;
};

struct server {
	struct stage stage;
	struct timespec began;
	struct state *state;
	int descriptor;
};

/* A server with an engine of its own, and no files. */
static void server_open(struct server *server)
{
	memset(server, 0, sizeof(*server));
	stage_open(&server->stage);
	server->descriptor = memfd_create("state", MFD_CLOEXEC);
	assert_true(server->descriptor >= 0);
	server->state = state_open(dup(server->descriptor), 0);
	assert_non_null(server->state);
	state_attach(server->state, &(struct state_server){.engine = &server->stage.engine,
							   .began = &server->began});
	assert_int_equal(state_begin(server->state), 0);
}

static void server_close(struct server *server)
{
	state_close(server->state);
	close(server->descriptor);
	stage_close(&server->stage);
}

static struct limiter *make(struct server *server, const char *name)
{
	struct limiter *limiter = stage_make(&server->stage, NULL, name, NULL);

	state_limiter_changed(server->state, limiter);
	return limiter;
}

static void write_rate(struct server *server, struct limiter *limiter, unsigned int rate)
{
	char config[64];

	snprintf(config, sizeof(config), "rate=%u/s", rate);
	stage_write(&server->stage, limiter, config, 0);
	state_limiter_changed(server->state, limiter);
}

static int find(void *argument, const struct state_limiter *limiter)
{
	struct finding *finding = argument;

	finding->count++;
	if (strcmp(limiter->name, finding->name) != 0)
		return 0;
	snprintf(finding->settings, sizeof(finding->settings), "%s", limiter->settings);
	finding->made_s = limiter->made_s;
	finding->changed_s = limiter->changed_s ? limiter->changed_s[SETTING_RATE]
						: limiter->made_s;
	return 0;
}

static bool finds(struct server *server, struct finding *finding, const char *name)
{
	struct state *state = state_open(dup(server->descriptor), 1);
	bool strange;

	*finding = (struct finding){.name = name};
	assert_non_null(state);
	strange = state_is_strange(state);
	if (!strange)
		assert_int_equal(state_limiters(state, find, finding), 0);
	state_close(state);
	return !strange;
}

static void test_the_last_settings_of_each_limiter_are_found(void **unused)
{
	struct server server;
	struct finding finding;
	struct limiter *a;

	(void)unused;
	server_open(&server);
	a = make(&server, "a");
	make(&server, "b");
	for (unsigned int rate = 1; rate <= 3; rate++)
		write_rate(&server, a, rate);
	assert_true(finds(&server, &finding, "a"));
	assert_non_null(strstr(finding.settings, "rate=3/s\n"));
	assert_int_equal(finding.count, 3); /* with the root */
	server_close(&server);
}

static uint64_t written(const struct server *server)
{
	return server->state->header->log_end[server->state->header->log];
}

static void test_settings_of_many_limiters_are_written_once(void **unused)
{
	struct server server;
	struct finding finding;
	struct limiter *a, *b;
	uint64_t first, second;

	(void)unused;
	server_open(&server);
	a = make(&server, "a");
	b = make(&server, "b");
	first = written(&server);
	write_rate(&server, a, 5);
	first = written(&server) - first;
	second = written(&server);
	write_rate(&server, b, 5);
	second = written(&server) - second;
	assert_true(second < first - strlen("rate=5/s\nburst=1\n"));
	/* So they are in the log that is written anew, and with others after it. */
	assert_int_equal(state_rewrite(server.state), 0);
	write_rate(&server, b, 6);
	assert_true(finds(&server, &finding, "a"));
	assert_non_null(strstr(finding.settings, "rate=5/s\n"));
	assert_true(finds(&server, &finding, "b"));
	assert_non_null(strstr(finding.settings, "rate=6/s\n"));
	assert_true(finds(&server, &finding, ""));
	assert_non_null(strstr(finding.settings, "rate=max\n"));
	server_close(&server);
}

static void test_times_of_changes_are_found(void **unused)
{
	struct server server;
	struct finding finding;
	struct limiter *a;

	(void)unused;
	server_open(&server);
	stage_run(&server.stage, 3 * SEC);
	a = make(&server, "a");
	assert_true(finds(&server, &finding, "a"));
	assert_int_equal(finding.made_s, 3);
	assert_int_equal(finding.changed_s, 3);
	stage_write(&server.stage, a, "rate=5/s", 8 * SEC);
	state_limiter_changed(server.state, a);
	assert_true(finds(&server, &finding, "a"));
	assert_int_equal(finding.made_s, 3);
	assert_int_equal(finding.changed_s, 8);
	server_close(&server);
}

/* Many more changes than there is room for. */
static void test_a_log_that_is_full_is_written_anew(void **unused)
{
	struct server server;
	struct finding finding;
	struct limiter *a;

	(void)unused;
	server_open(&server);
	a = make(&server, "a");
	for (unsigned int rate = 1; rate <= 2000; rate++) {
		write_rate(&server, a, rate);
		assert_true(server.state->header->log_end[server.state->header->log] <=
			    STATE_LOG_BYTES);
	}
	assert_true(finds(&server, &finding, "a"));
	assert_non_null(strstr(finding.settings, "rate=2000/s\n"));
	server_close(&server);
}

static void test_a_limiter_that_is_removed_when_the_log_is_full_is_gone(void **unused)
{
	struct server server;
	struct finding finding;
	struct limiter *a, *b;
	uint32_t id;

	(void)unused;
	server_open(&server);
	a = make(&server, "a");
	b = make(&server, "b");
	id = b->id;
	/* Until not even a removal finds room. */
	for (unsigned int rate = 1; rate < 100000; rate++) {
		struct header *header = server.state->header;
		uint64_t left = STATE_LOG_BYTES - header->log_end[header->log];

		if (left < sizeof(struct log_record))
			break;
		write_rate(&server, a, rate);
	}
	state_limiter_removed(server.state, id);
	assert_true(finds(&server, &finding, "b"));
	assert_int_equal(finding.count, 2);
	server_close(&server);
}

/* More limiters than there is room for: a successor had better know none than some as they were. */
static void test_state_that_cannot_be_kept_is_not_kept_as_it_was(void **unused)
{
	struct server server;
	struct finding finding;
	struct limiter *a;
	char name[NAME_BYTES_MAX + 1];

	(void)unused;
	server_open(&server);
	a = make(&server, "a");
	write_rate(&server, a, 1);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < 400; i++) {
		name[0] = (char)('a' + i % 26);
		name[1] = (char)('a' + i / 26);
		make(&server, name);
	}
	write_rate(&server, a, 2);
	assert_false(finds(&server, &finding, "a"));
	/* This server goes on after that as before. */
	write_rate(&server, a, 3);
	state_limiter_removed(server.state, a->id);
	assert_false(finds(&server, &finding, "a"));
	server_close(&server);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_last_settings_of_each_limiter_are_found),
		cmocka_unit_test(test_settings_of_many_limiters_are_written_once),
		cmocka_unit_test(test_times_of_changes_are_found),
		cmocka_unit_test(test_a_log_that_is_full_is_written_anew),
		cmocka_unit_test(test_a_limiter_that_is_removed_when_the_log_is_full_is_gone),
		cmocka_unit_test(test_state_that_cannot_be_kept_is_not_kept_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
