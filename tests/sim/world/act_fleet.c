/* act_fleet - commands that concern hosts, links and the coordinator, see act.h. */
#include "tests/sim/books/common.h"
#include "tests/sim/world/act.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdio.h>

static void act_cut(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	if (host->link)
		link_cut(host->link, command->answers);
}

static void act_heal(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	if (host->link)
		link_heal(host->link);
}

static void act_pause(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	if (!host->paused)
		host_pause(host);
}

/* Its process is stopped once a grant was decided, which reaches its reader when it goes on. */
static void act_stall(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	host->stalls = !host->paused;
}

static void act_resume(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	if (host->paused)
		host_resume(host);
}

static void act_kill(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	host_kill(host);
}

/* Its link is cut as it was: it is the machine's. */
static void begin(struct host *host, void (*start)(struct host *host))
{
	bool cut_up = host->link->cut_up, cut_down = host->link->cut_down;
	struct latency latency = host->link->latency;

	start(host);
	host->link->latency = latency;
	if (cut_down)
		link_cut(host->link, !cut_up);
}

static void act_start(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	begin(host, host_start);
}

static void act_succeed(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	begin(host, host_succeed);
}

static void act_stop(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	host_stop(host);
}

static void act_drift(struct sim *sim, struct host *host, const struct command *command)
{
	clock_drift(&host->clock, command->ppm, sim->now_ns);
	clock_drift(&host->waiter_clock, command->waiter_ppm, sim->now_ns);
	if (command->ppm > sim->fastest.ppm)
		clock_drift(&sim->fastest, command->ppm, sim->now_ns);
	if (host->state != HOST_DOWN && !host->paused)
		host_step(host);
}

static void act_latency(struct sim *sim, struct host *host, const struct command *command)
{
	struct latency latency = {command->span_ns, command->jitter_ns, command->answers_ns};

	if (command->has_host) {
		if (host->link)
			host->link->latency = latency;
		return;
	}
	sim->zookeeper.latency = latency;
	for (unsigned int i = 0; i < sim->host_count; i++)
		sim->hosts[i].link->latency = latency;
}

static void act_elect(struct sim *sim, struct host *host, const struct command *command)
{
	(void)host;
	if (!sim->zookeeper.electing)
		zookeeper_elect(&sim->zookeeper, command->span_ns);
}

static void act_lose(struct sim *sim, struct host *host, const struct command *command)
{
	(void)host;
	zookeeper_lose(&sim->zookeeper, (uint32_t)command->count);
}

static void act_lag(struct sim *sim, struct host *host, const struct command *command)
{
	(void)host;
	zookeeper_lag(&sim->zookeeper, command->span_ns);
}

static void act_znode(struct sim *sim, struct host *host, const struct command *command)
{
	enum answer answer = zookeeper_operate(&sim->zookeeper, command->operation, command->text,
					       command->written);

	(void)host;
	if (answer != ANSWER_OK)
		act_refused(sim, NULL, command, -EINVAL, "it cannot be done");
}

static void act_expire(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	(void)command;
	zookeeper_expire(host->link);
}

static void act_when(struct sim *sim, struct host *host, const struct command *command)
{
	(void)sim;
	ambush_set(host->link, &command->ambush);
}

static void act_hasty(struct sim *sim, struct host *host, const struct command *command)
{
	(void)host;
	sim->zookeeper.hasty = command->on;
}

static void act_torn(struct sim *sim, struct host *host, const struct command *command)
{
	(void)host;
	sim->zookeeper.torn = command->on;
}

static void act_deny(struct sim *sim, struct host *host, const struct command *command)
{
	(void)host;
	snprintf(sim->zookeeper.denied, sizeof(sim->zookeeper.denied), "%s", command->text);
}

/* A foreign hand deletes a node of those that begin so. */
static void act_meddle(struct sim *sim, struct host *host, const struct command *command)
{
	const char *path = znodes_any(&sim->zookeeper.znodes, command->text, command->count);

	(void)host;
	if (!path)
		return;
	sim_print(sim, NULL, "meddle %s", path);
	zookeeper_operate(&sim->zookeeper, OPERATION_DELETE, path, NULL);
}

/* The table: and whether a host may be down, or up, for it. */
static const struct {
	enum command_kind kind;
	bool down, up;
	void (*act)(struct sim *sim, struct host *host, const struct command *command);
} COMMANDS[] = {
	{COMMAND_CUT, true, true, act_cut},	    {COMMAND_HEAL, true, true, act_heal},
	{COMMAND_PAUSE, false, true, act_pause},    {COMMAND_STALL, false, true, act_stall},
	{COMMAND_RESUME, false, true, act_resume},  {COMMAND_KILL, false, true, act_kill},
	{COMMAND_START, true, false, act_start},    {COMMAND_SUCCEED, true, false, act_succeed},
	{COMMAND_STOP, false, true, act_stop},	    {COMMAND_DRIFT, true, true, act_drift},
	{COMMAND_LATENCY, true, true, act_latency}, {COMMAND_ELECT, true, true, act_elect},
	{COMMAND_LOSE, true, true, act_lose},	    {COMMAND_LAG, true, true, act_lag},
	{COMMAND_ZNODE, true, true, act_znode},	    {COMMAND_EXPIRE, true, true, act_expire},
	{COMMAND_WHEN, false, true, act_when},	    {COMMAND_HASTY, true, true, act_hasty},
	{COMMAND_TORN, true, true, act_torn},

	{COMMAND_DENY, true, true, act_deny},	    {COMMAND_MEDDLE, true, true, act_meddle},
};

static void act_on(struct sim *sim, struct host *host, const struct command *command, size_t row)
{
	bool down = host->state == HOST_DOWN;

	sim->disturbed_ns = sim->now_ns;
	/* A mended host is not waited for any more. */
	if (command->kind == COMMAND_HEAL || command->kind == COMMAND_RESUME ||
	    command->kind == COMMAND_START || command->kind == COMMAND_SUCCEED) {
		host->link->ambush.armed = false;
		host->stalls = false;
	}
	if (down ? !COMMANDS[row].down : !COMMANDS[row].up)
		act_refused(sim, host, command, -EINVAL,
			    down ? "it is not running" : "it is running");
	else if (command->kind == COMMAND_STOP && (host->state == HOST_LEAVING || host->paused))
		act_refused(sim, host, command, -EBUSY, "it cannot stop now");
	else
		COMMANDS[row].act(sim, host, command);
}

void act_fleet(struct sim *sim, const struct command *command)
{
	for (size_t i = 0; i < sizeof(COMMANDS) / sizeof(COMMANDS[0]); i++) {
		if (COMMANDS[i].kind == command->kind)
			act_on(sim, &sim->hosts[command->host], command, i);
	}
}
