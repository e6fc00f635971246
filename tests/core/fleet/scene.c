/* scene - a host of a fleet before a coordinator that does what the test says, see scene.h. */
#include "tests/core/fleet/scene.h"

#include <stdio.h>

static const char OTHER_HOST[] = "/h/otherotheroth";

static void collect(struct scene *scene)
{
	struct waiter *waiter;

	while ((waiter = engine_done(&scene->engine))) {
		if (!waiter->is_poller)
			((struct guest *)waiter)->done_ns = scene->now_ns;
	}
}

/* The oldest request is answered with what is in it. */
static void give_answer(struct scene *scene)
{
	struct request *request = scene->sent[0];

	scene->sent_count--;
	memmove(scene->sent, scene->sent + 1, scene->sent_count * sizeof(struct request *));
	engine_run(&scene->engine, scene->now_ns);
	fleet_answered(scene->fleet, request, scene->now_ns);
	collect(scene);
}

static void do_oldest(struct scene *scene)
{
	assert_true(scene->sent_count);
	if (scene->sent[0]->kind == REQUEST_TRANSACTION)
		scene_execute(scene, scene->sent[0]);
	else
		scene_look(scene, scene->sent[0]);
}

void scene_answer(struct scene *scene)
{
	do_oldest(scene);
	give_answer(scene);
}

void scene_refuse(struct scene *scene, enum answer answer, uint32_t failed)
{
	assert_true(scene->sent_count);
	scene->sent[0]->answer = answer;
	scene->sent[0]->failed = failed;
	give_answer(scene);
}

void scene_lose(struct scene *scene, bool done)
{
	if (done)
		do_oldest(scene);
	scene->sent[0]->answer = ANSWER_UNKNOWN;
	give_answer(scene);
}

void scene_answer_all(struct scene *scene)
{
	while (scene->sent_count)
		scene_answer(scene);
}

static bool concerns(const struct request *request, const char *path)
{
	for (uint32_t i = 0; i < request->operation_count; i++) {
		if (strstr(request->operations[i].path, path))
			return true;
	}
	return false;
}

void scene_answer_until(struct scene *scene, const char *path)
{
	while (scene->sent_count && !concerns(scene->sent[0], path))
		scene_answer(scene);
	if (!scene->sent_count)
		fail_msg("no transaction about %s", path);
}

/* @path with the host's id as HID. */
static void say_path(const struct scene *scene, const char *path, char *text, size_t size)
{
	const char *hid = fleet_hid(scene->fleet), *at = *hid ? strstr(path, hid) : NULL;

	if (at)
		snprintf(text, size, "%.*sHID%s", (int)(at - path), path, at + strlen(hid));
	else
		snprintf(text, size, "%s", path);
}

void scene_say(const struct scene *scene, const struct request *request, char text[4096])
{
	static const char *const words[] = {"check", "set", "create", "delete"};
	char path[NODE_PATH_MAX];
	size_t used = 0;

	if (request->kind != REQUEST_TRANSACTION) {
		say_path(scene, request->path, path, sizeof(path));
		snprintf(text, 4096, "%s %s", request->kind == REQUEST_GET ? "read" : "list", path);
		return;
	}
	text[0] = '\0';
	for (uint32_t i = 0; i < request->operation_count; i++) {
		const struct operation *o = &request->operations[i];

		say_path(scene, o->path, path, sizeof(path));
		used += (size_t)snprintf(text + used, 4096 - used, "%s%s %s", i ? "; " : "",
					 words[o->kind], path);
		if (o->kind == OPERATION_CHECK || o->kind == OPERATION_SET)
			used += (size_t)snprintf(text + used, 4096 - used, " %d", o->version);
		if (o->flags & NODE_EPHEMERAL)
			used += (size_t)snprintf(text + used, 4096 - used, " ephemeral");
	}
}

void scene_assert_next(struct scene *scene, const char *expected)
{
	char text[4096] = "nothing";

	if (scene->sent_count)
		scene_say(scene, scene->sent[0], text);
	assert_string_equal(text, expected);
}

static struct scene *scene_of(struct coordinator *coordinator)
{
	return (struct scene *)coordinator;
}

static void open_session(struct coordinator *coordinator, uint64_t session_ns)
{
	(void)session_ns;
	scene_of(coordinator)->opened++;
}

static void resume_session(struct coordinator *coordinator, uint64_t session, uint64_t session_ns)
{
	struct scene *scene = scene_of(coordinator);

	(void)session_ns;
	assert_int_equal(session, scene->session);
	scene->resumed++;
}

static void close_session(struct coordinator *coordinator)
{
	struct scene *scene = scene_of(coordinator);

	scene->closed++;
	scene->connected = false;
	for (uint32_t i = 0; i < scene->node_count;) {
		if (scene->nodes[i].session && scene->nodes[i].session == scene->session)
			scene->nodes[i] = scene->nodes[--scene->node_count];
		else
			i++;
	}
}

/*
 * Whatever needs no more than itself: setting the claim of another host wakes it, deleting its own
 * is leaving, setting a folder of claims tells of quotas, and nothing depends on these; a /g
 * overwritten by a foreign hand is written again at the version that was not understood.
 */
static bool stands_alone(const struct request *request)
{
	const struct operation *o = request->operations;

	if (request->operation_count != 1)
		return false;
	if (!strncmp(o->path, "/w/", 3) || !strcmp(o->path, "/w"))
		return o->kind == OPERATION_SET || o->kind == OPERATION_DELETE;
	return o->kind == OPERATION_SET && !strcmp(o->path, "/g") && o->version != NODE_VERSION_ANY;
}

/* Rule 2: how a transaction of a host that has joined, or does so, begins; and that it is alone. */
static void check_transaction(struct scene *scene, const struct request *request)
{
	const struct operation *o = request->operations;
	enum fleet_state state = fleet_state(scene->fleet);
	bool barrier = state == FLEET_IN_DOUBT;

	if (stands_alone(request))
		return;
	scene_say(scene, request, scene->transaction);
	scene->transaction_ns = scene->now_ns;
	scene->transactions++;
	if (state != FLEET_JOINING && state != FLEET_READY && state != FLEET_IN_DOUBT)
		return;
	if (!barrier) {
		assert_int_equal(o->kind, OPERATION_CHECK);
		assert_string_equal(o->path, "/g");
		assert_int_not_equal(o->version, NODE_VERSION_ANY);
		o++;
	}
	assert_int_equal(o->kind, state == FLEET_JOINING ? OPERATION_CREATE : OPERATION_SET);
	assert_memory_equal(o->path, "/h/", 3);
	assert_string_equal(o->path + 3, fleet_hid(scene->fleet));
	assert_int_not_equal(o->version, NODE_VERSION_ANY);
	for (uint32_t i = 0; i < scene->sent_count; i++)
		assert_true(scene->sent[i]->kind != REQUEST_TRANSACTION ||
			    stands_alone(scene->sent[i]));
}

static void send_request(struct coordinator *coordinator, struct request *request)
{
	struct scene *scene = scene_of(coordinator);

	if (request->kind == REQUEST_TRANSACTION)
		check_transaction(scene, request);
	if (request->kind == REQUEST_GET && !strncmp(request->path, "/a/", 3) &&
	    !strchr(request->path + 3, '/')) {
		scene->agreed_rate_read++;
		scene->agreed_rate_watched += request->watch;
	}
	assert_true(scene->sent_count < SENT_MAX);
	scene->sent[scene->sent_count++] = request;
}

static void hang_up(struct coordinator *coordinator)
{
	scene_of(coordinator)->hung_up++;
}

static void clocks(struct coordinator *coordinator, struct clocks *clocks)
{
	const struct scene *scene = scene_of(coordinator);

	clocks->holder_ns = scene->now_ns + scene->holder_ns;
	clocks->waiter_ns = scene->now_ns + scene->waiter_ns;
}

static uint64_t draw(struct coordinator *coordinator)
{
	return ++scene_of(coordinator)->drawn * UINT64_C(0x9e3779b97f4a7c15);
}

static void note_event(struct fleet_listener *listener, enum fleet_event event, const char *text)
{
	struct scene *scene = (struct scene *)((char *)listener - offsetof(struct scene, listener));

	snprintf(scene->event, sizeof(scene->event), "%s", text);
	scene->told_full += event == FLEET_FULL;
}

static void begin_process(struct scene *scene)
{
	static const struct owner root = {.access = 0755};

	scene->fleet = fleet_new(&scene->engine, &scene->coordinator, &scene->options,
				 &scene->listener);
	assert_non_null(scene->fleet);
	assert_int_equal(
		engine_init(&scene->engine, fleet_source(scene->fleet), &root, scene->now_ns), 0);
}

void scene_prepare(struct scene *scene)
{
	*scene = (struct scene){
		.coordinator = {open_session, resume_session, close_session, send_request, hang_up,
				clocks, draw, 0},
		.options = {.host = "host", .weight = 1},
		.listener = {.event = note_event},
		.now_ns = 1000 * SEC,
		.epoch = 1,
	};
	scene->options.constants = (struct fleet_constants){
		.renewal_ns = FLEET_RENEWAL_NS,
		.right_ns = FLEET_RIGHT_NS,
		.quarantine_ns = record_quarantine_ns(FLEET_RIGHT_NS),
		.session_ns = FLEET_SESSION_NS,
	};
	scene->options.handover = &scene->handover;
	begin_process(scene);
}

struct limiter *scene_succeed(struct scene *scene, struct limiter *limiter)
{
	/* The memory of a killed host is found here, and nowhere else. */
	static struct {
		struct engine engine;
		struct fleet *fleet;
	} killed[16];
	static size_t count;
	const struct holding *holding = limiter->holding;
	struct owner owner = {limiter->uid, limiter->gid, limiter->access};
	struct former_holding former = {
		.id = holding->id,
		.generation = holding->generation,
		.saved = holding->saved,
		.cut = holding->cut,
		.version = holding->version,
		.maker = holding->maker,
	};
	struct settings settings;
	struct limiter *restored;

	assert_true(count < sizeof(killed) / sizeof(killed[0]));
	killed[count].engine = scene->engine;
	killed[count++].fleet = scene->fleet;
	settings = *limiter_settings(limiter);
	scene->sent_count = 0;
	scene->connected = false;
	begin_process(scene);
	assert_int_equal(change_restore(&scene->engine, scene->engine.tree.root, limiter->name,
					&settings, &owner, NULL, 0, &restored),
			 0);
	fleet_restored(scene->fleet, restored, &former);
	assert_int_equal(fleet_resume(scene->fleet, scene->now_ns), 0);
	fleet_start(scene->fleet, scene->now_ns);
	return restored;
}

void scene_begin(struct scene *scene)
{
	engine_run(&scene->engine, scene->now_ns);
	fleet_start(scene->fleet, scene->now_ns);
	assert_int_equal(scene->opened, 1);
	scene->session = 77;
	scene_connect(scene);
}

void scene_open(struct scene *scene)
{
	scene_prepare(scene);
	scene_set(scene, OTHER_HOST, "name=other\nweight=1\nheld=0\nrenews=0\n");
	scene_begin(scene);
	assert_int_equal(fleet_state(scene->fleet), FLEET_READY);
}

void scene_close(struct scene *scene)
{
	assert_null(engine_done(&scene->engine));
	scene->held_up = false;
	fleet_leave(scene->fleet, scene->now_ns);
	scene_run(scene, 3 * SEC);
	assert_true(fleet_has_left(scene->fleet));
	while (scene->sent_count)
		scene_lose(scene, false);
	assert_null(engine_changed(&scene->engine));
	engine_free(&scene->engine);
	fleet_free(scene->fleet);
	while (scene->string_count)
		free(scene->strings[--scene->string_count]);
}

void scene_run(struct scene *scene, uint64_t ns)
{
	uint64_t end_ns = scene->now_ns + ns;

	for (;;) {
		uint64_t next_ns;

		engine_run(&scene->engine, scene->now_ns);
		collect(scene);
		if (!scene->held_up && scene->connected)
			scene_answer_all(scene);
		next_ns = engine_next_ns(&scene->engine);
		if (next_ns <= scene->now_ns)
			next_ns = scene->now_ns + 1;
		if (next_ns > end_ns)
			break;
		scene->now_ns = next_ns;
	}
	scene->now_ns = end_ns;
	engine_run(&scene->engine, end_ns);
	collect(scene);
}

void scene_disconnect(struct scene *scene)
{
	scene->connected = false;
	engine_run(&scene->engine, scene->now_ns);
	fleet_disconnected(scene->fleet, scene->now_ns);
	while (scene->sent_count)
		scene_lose(scene, false);
}

void scene_connect(struct scene *scene)
{
	scene->connected = true;
	engine_run(&scene->engine, scene->now_ns);
	fleet_connected(scene->fleet, scene->session, scene->now_ns);
	scene_run(scene, 0);
}

int scene_change(struct scene *scene, struct change *change)
{
	struct change *done;

	change->outcome = WAITING;
	change_begin(&scene->engine, change, scene->now_ns);
	scene_run(scene, 0);
	done = engine_changed(&scene->engine);
	assert_true(!done || done == change);
	return done ? change->outcome : WAITING;
}

struct limiter *scene_make(struct scene *scene, const char *name, const char *config)
{
	struct change change = {.kind = CHANGE_MAKE, .text = config};

	change.limiter = scene->engine.tree.root;
	strcpy(change.name, name);
	assert_int_equal(scene_change(scene, &change), 0);
	return change.made;
}

int scene_ask(struct scene *scene, struct guest *guest, struct limiter *limiter)
{
	int err;

	*guest = (struct guest){.waiter = {.limiter = limiter, .tokens = 1}};
	guest->waiter.outcome = WAITING;
	err = engine_ask(&scene->engine, &guest->waiter, NEVER_NS, scene->now_ns);
	scene_run(scene, 0);
	return err;
}

int scene_try(struct scene *scene, struct limiter *limiter)
{
	struct token_read read = {
		.limiter = limiter, .tokens = 1, .manner = READ_TRYING, .within_ns = NEVER_NS};
	struct read_wait wait;
	struct expiry expiry;
	int err = engine_read(&scene->engine, &read, &wait, scene->now_ns);

	if (err != WAITING)
		return err;
	wait.waiter.expiry = &expiry;
	err = engine_ask(&scene->engine, &wait.waiter, wait.within_ns, scene->now_ns);
	if (err != WAITING)
		return err == -EAGAIN ? wait.refusal : err;
	assert_int_equal(wait.waiter.outcome, WAITING);
	engine_cancel(&scene->engine, &wait.waiter);
	return WAITING;
}

enum lease_state scene_lease(const struct limiter *limiter, uint32_t index)
{
	uint32_t leaves = holding_leaves(limiter->holding->settings);
	const struct lease *lease = holding_lease(
		limiter->holding, index < leaves ? index : index - leaves, index >= leaves);

	return lease ? (enum lease_state)lease->state : LEASE_NONE;
}
