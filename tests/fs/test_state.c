/*
 * Tests of fs/state: limiters are kept for a successor, also where there is hardly room for them,
 * and levels are whole, wherever the server is killed.
 */
#include "tests/core/stage.h"

#include "core/fleet/handover.h"
#include "core/fleet/parts.h"
#include "core/fleet/znode.h"
#include "fs/state/inside.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t time_ns;

/* The daemon's clock. */
int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(time_ns / NSEC_PER_SEC),
				  .tv_nsec = (long)(time_ns % NSEC_PER_SEC)};
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

/* A server may die while it begins, but not with a file open. */
static void test_state_without_a_version_has_no_open_files(void **unused)
{
	struct server server;
	struct state *state;

	(void)unused;
	server_open(&server);
	server.state->header->version = 0;
	state = state_open(dup(server.descriptor), 1);
	assert_non_null(state);
	assert_false(state_is_strange(state));
	state_handle_used(server.state, 0);
	assert_true(state_is_strange(state));
	state_close(state);
	server_close(&server);
}

static void test_waits_that_no_server_wrote_are_not_restored(void **unused)
{
	struct server server;
	struct waited_copy *copy;
	struct limiter *a;

	(void)unused;
	server_open(&server);
	a = make(&server, "a");
	write_rate(&server, a, 1);
	state_taken(server.state, a);
	copy = &server.state->waited[a->unit];
	copy->id = a->id;
	memset(&copy->waited.is_new, 'x', sizeof(copy->waited.is_new));
	state_restore(server.state);
	assert_null(usage_waited(a));
	copy->waited.is_new = true;
	state_restore(server.state);
	assert_non_null(usage_waited(a));
	server_close(&server);
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

/* Tells whether a successor accepts a state with a claim whose parts have so many @bytes. */
static bool accepts_claim(uint32_t bytes)
{
	struct server server;
	struct fleet_options options;
	struct fleet fleet = {.options = &options};
	struct finding finding;
	uint32_t place = 0;
	bool accepted;

	server_open(&server);
	options = (struct fleet_options){.handover = &server.state->fleet->fleet};
	assert_true(handover_new(&fleet));
	handover_keep_claim(&fleet, 7, &place, true, bytes);
	assert_int_not_equal(place, 0);
	accepted = finds(&server, &finding, "");
	handover_free(&fleet);
	server_close(&server);
	return accepted;
}

static void test_a_claim_is_found_with_and_without_parts(void **unused)
{
	(void)unused;
	assert_true(accepts_claim(0));
	assert_true(accepts_claim(60));
	assert_true(accepts_claim(ZNODE_TEXT - 1));
	assert_false(accepts_claim(ZNODE_TEXT));
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

/*
 * Has a process of its own call @act, and calls @look after each of its instructions, until that
 * returns false: so a kill may come between any two of them.
 */
static void step_through(void (*act)(void *), void *what, bool (*look)(void *), void *sight)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
			_exit(1);
		kill(getpid(), SIGSTOP);
		act(what);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status));
	assert_int_equal(ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)PTRACE_O_EXITKILL), 0);
	while (WIFSTOPPED(status)) {
		if (!look(sight)) {
			kill(child, SIGKILL);
			assert_int_equal(waitpid(child, &status, 0), child);
			return;
		}
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
	}
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	look(sight);
}

enum { LEVELS = 2, LEVEL_UNITS = LEVELS + 1 };

/* The parts of the memory in which levels are written. */
struct image {
	struct header header;
	struct unit units[LEVEL_UNITS];
};

static struct image image_of(const struct state *state)
{
	struct image image = {.header = *state->header};

	memcpy(image.units, state->units, sizeof(image.units));
	return image;
}

static void put_image(struct state *state, const struct image *image)
{
	*state->header = image->header;
	memcpy(state->units, image->units, sizeof(image->units));
}

/*
 * A server that writes the levels of a limiter with LEVELS limits, the limiter as it was written
 * before, and a successor at every point in between.
 */
struct killing {
	struct server server, successor;
	struct limiter *limiter;
	struct bucket before[LEVELS];
	struct image last;   /* that was looked at */
	unsigned int images; /* that were not alike */
	unsigned int torn;   /* of them: with a level that is being written */
	unsigned int news;   /* levels that were found as they are now */
	bool nested;
};

static bool is_written(const struct unit *unit, const struct bucket *bucket)
{
	const struct level_copy *level = &unit->level;

	return unit->flow.num == bucket->flow.num && unit->flow.den == bucket->flow.den &&
	       level->level == bucket->level && level->part == bucket->part &&
	       level->released == bucket->released && level->grid_ns == bucket->grid_ns &&
	       level->filled_ns == bucket->filled_ns && level->awaited == bucket->awaited;
}

static void restore(void *successor)
{
	state_restore(((struct server *)successor)->state);
}

/* Looks at what a successor restores: each level as it was before, or as it was written. */
static bool look_at_levels(void *argument)
{
	struct killing *killing = argument;
	struct state *state = killing->successor.state;
	struct image image = image_of(state);
	unsigned int news = 0;

	if (killing->images && !memcmp(&image, &killing->last, sizeof(image)))
		return true;
	killing->last = image;
	killing->images++;
	assert_false(state_is_strange(state));
	state_restore(state);
	assert_int_equal(state->header->journal.unit, 0);
	for (unsigned int i = 0; i < LEVELS; i++) {
		const struct unit *unit = &state->units[i + 1];

		assert_int_equal(unit->id, killing->limiter->id);
		assert_int_equal(unit->limit, i);
		if (is_written(unit, &killing->limiter->buckets[i]))
			news++;
		else
			assert_true(is_written(unit, &killing->before[i]));
	}
	put_image(state, &image);
	/* A level that was found is not lost again. */
	assert_true(news >= killing->news);
	killing->news = news;
	if (!image.header.journal.unit || killing->nested)
		return true;
	killing->torn++;
	/* In the last level the successor is killed as well, wherever it is. */
	if (image.header.journal.unit != LEVELS)
		return true;
	killing->nested = true;
	step_through(restore, &killing->successor, look_at_levels, killing);
	put_image(state, &image);
	killing->nested = false;
	killing->last = image;
	return true;
}

static void killing_open(struct killing *killing)
{
	static const char config[] = "rate=10/s 5000/h:100\nburst=20\n";
	struct server *successor = &killing->successor;

	memset(killing, 0, sizeof(*killing));
	time_ns = SEC;
	server_open(&killing->server);
	killing->limiter = stage_make(&killing->server.stage, NULL, "a", config);
	state_limiter_changed(killing->server.state, killing->limiter);
	assert_int_equal(killing->limiter->bucket_count, LEVELS);
	for (unsigned int i = 0; i < LEVELS; i++)
		killing->before[i] = killing->limiter->buckets[i];
	stage_open(&successor->stage);
	stage_make(&successor->stage, NULL, "a", config);
	successor->state = state_open(dup(killing->server.descriptor), 1);
	assert_non_null(successor->state);
	state_attach(successor->state, &(struct state_server){.engine = &successor->stage.engine,
							      .began = &successor->began});
}

static void killing_close(struct killing *killing)
{
	state_close(killing->successor.state);
	stage_close(&killing->successor.stage);
	server_close(&killing->server);
	time_ns = 0;
}

static void write_levels(void *killing)
{
	struct killing *its = killing;

	state_taken(its->server.state, its->limiter);
}

/* Kills the server that writes the levels as they are now, at each point in between. */
static void kill_everywhere(struct killing *killing)
{
	step_through(write_levels, killing, look_at_levels, killing);
	assert_int_equal(killing->news, LEVELS);
	/* A level is written by several stores. */
	assert_true(killing->torn >= LEVELS * 2);
}

static void test_a_server_is_killed_between_the_journal_and_its_unit(void **unused)
{
	struct killing killing;

	(void)unused;
	killing_open(&killing);
	assert_int_equal(stage_try(&killing.server.stage, killing.limiter, 3, SEC / 2), 0);
	kill_everywhere(&killing);
	killing_close(&killing);
}

static void test_a_rate_is_never_found_with_the_level_of_another(void **unused)
{
	struct killing killing;

	(void)unused;
	killing_open(&killing);
	stage_write(&killing.server.stage, killing.limiter, "rate=7/s 11/d:3", SEC / 2);
	kill_everywhere(&killing);
	killing_close(&killing);
}

static void give_up_levels(void *killing)
{
	state_give_up(((struct killing *)killing)->successor.state, STATE_LEVELS);
}

/* Looks whether a successor finds a state that it can restore, until there is no level. */
static bool look_at_state(void *argument)
{
	struct killing *killing = argument;
	struct image image = image_of(killing->successor.state);

	if (killing->images && !memcmp(&image, &killing->last, sizeof(image)))
		return true;
	killing->last = image;
	killing->images++;
	assert_false(state_is_strange(killing->successor.state));
	return image.header.journal.unit || image.header.unit_count > 1;
}

/* A predecessor was killed as it wrote a level, and the successor as it gives all of them up. */
static void test_a_server_is_killed_while_it_gives_up_levels(void **unused)
{
	struct killing killing;

	(void)unused;
	killing_open(&killing);
	killing.successor.state->header->journal.unit = LEVELS;
	step_through(give_up_levels, &killing, look_at_state, &killing);
	assert_true(killing.images > 1);
	killing_close(&killing);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_state_without_a_version_has_no_open_files),
		cmocka_unit_test(test_waits_that_no_server_wrote_are_not_restored),
		cmocka_unit_test(test_the_last_settings_of_each_limiter_are_found),
		cmocka_unit_test(test_settings_of_many_limiters_are_written_once),
		cmocka_unit_test(test_times_of_changes_are_found),
		cmocka_unit_test(test_a_claim_is_found_with_and_without_parts),
		cmocka_unit_test(test_a_log_that_is_full_is_written_anew),
		cmocka_unit_test(test_a_limiter_that_is_removed_when_the_log_is_full_is_gone),
		cmocka_unit_test(test_state_that_cannot_be_kept_is_not_kept_as_it_was),
		cmocka_unit_test(test_a_server_is_killed_between_the_journal_and_its_unit),
		cmocka_unit_test(test_a_rate_is_never_found_with_the_level_of_another),
		cmocka_unit_test(test_a_server_is_killed_while_it_gives_up_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
