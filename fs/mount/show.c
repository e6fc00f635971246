/* show - the texts of files, see show.h. */
#include "fs/mount/show.h"
#include "fs/base/clock.h"
#include "fs/mount/frozen.h"
#include "fs/mount/partitions.h"
#include "fs/mount/plain.h"
#include "fs/mount/read.h"
#include "fs/state/state.h"

#include "core/limiter/forecast.h"
#include "core/limiter/keys.h"
#include "core/limiter/partition.h"
#include "core/limiter/stat.h"
#include "core/limiter/usage.h"
#include "core/fleet/survey.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_COLUMNS = 43 }; /* as many as the longest path in README has */

static const char *const COSTS[COST_COUNT] = {
	[COST_NOTHING] = "Reading costs nothing; a write (rw) is in force when it returns:",
	[COST_TOKENS] =
		"Reading takes tokens, opening slot a slot, and waits until they are there:",
	[COST_ENDLESS] = "Reading may never end; no listing shows these, they are found by name:",
	[COST_WRITE] = "For writing alone:",
};

static bool is_at_top(const struct node_row *row)
{
	return row->place == NODE_ROOT && row->name;
}

/* Writes a line for each file of @cost: first those at the top, then those of a limiter. */
static void show_rows(FILE *out, enum node_cost cost)
{
	static const char *const access[] = {
		[ACCESS_DIRECTORY] = "-", [ACCESS_LIMITER] = "-", [ACCESS_USE] = "r",
		[ACCESS_REPORT] = "w",	  [ACCESS_TUNE] = "rw",	  [ACCESS_PLACE] = "rw",
		[ACCESS_OWNER] = "rw",	  [ACCESS_WATCH] = "rw",
	};
	char path[NODE_PATH_TEXT];

	for (unsigned int i = 2 * NODE_ROOT; i < 2 * NODE_COUNT; i++) {
		const struct node_row *row = &NODES[i % NODE_COUNT];

		if (!row->help || row->cost != cost || is_at_top(row) != (i < NODE_COUNT))
			continue;
		node_path(row, path);
		fprintf(out, "%-*s %-2s  %s\n", PATH_COLUMNS, path, access[row->access], row->help);
	}
}

void show_readme(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	(void)daemon;
	(void)node;
	(void)uid;
	fputs("Every rate limiter is a directory: gate work by reading, tune by writing.\n\n"
	      "    mkdir orders                               make a limiter\n"
	      "    echo 500/s > orders/rate                   tune it, now\n"
	      "    read -r _ < orders/token && work           wait for a turn, then work\n"
	      "    cat orders/take/250                        wait for 250 units at once\n"
	      "    cat orders/take/1-250                      wait for one, take what is there\n"
	      "    cat orders/stat                            see how it went\n"
	      "    cat last_error                             why a write was refused\n\n"
	      "Backups, grep -r and indexers read all that is listed, and so take tokens: let "
	      "them\n"
	      "leave out what is of the type fuse.ratefs.\n",
	      out);
	for (enum node_cost cost = 0; cost < COST_COUNT; cost++) {
		fprintf(out, "\n%s\n", COSTS[cost]);
		show_rows(out, cost);
	}
}

static void show_ns(FILE *out, const char *name, uint64_t ns)
{
	char text[QUANTITY_TEXT];

	seconds_print(ns, 3, text);
	fprintf(out, "%s %s\n", name, text);
}

static void show_fleet(FILE *out, const struct daemon *daemon)
{
	const struct fleet *fleet = daemon->fleet;
	const struct fleet_constants *constants = fleet_constants(fleet);
	const struct fleet_counters *counters = fleet_counters(fleet);

	fprintf(out, "coordinator %s\n",
		fleet_is_connected(fleet) ? fleet_state_name(fleet_state(fleet)) : "disconnected");
	fprintf(out, "degraded %s\n", fleet_is_degraded(fleet) ? "yes" : "no");
	fprintf(out, "session %#" PRIx64 "\n", fleet_session(fleet));
	fprintf(out, "host_id %s\n", *fleet_hid(fleet) ? fleet_hid(fleet) : "none");
	fprintf(out, "weight %" PRIu32 "\n", daemon->options->weight);
	fprintf(out, "leases %" PRIu32 "\n", fleet_leases(fleet));
	fprintf(out, "path_bytes %" PRIu32 "\n", fleet_own_bytes(fleet));
	show_ns(out, "right_seconds", fleet_right_ns(fleet));
	show_ns(out, "renewal_seconds", constants->renewal_ns);
	show_ns(out, "lease_right_seconds", constants->right_ns);
	show_ns(out, "quarantine_seconds", constants->quarantine_ns);
	show_ns(out, "session_timeout_seconds", constants->session_ns);
	for (size_t i = 0; i < FLEET_COUNTER_COUNT; i++)
		fprintf(out, "%s %" PRIu64 "\n", fleet_counter_name(i), fleet_counter(counters, i));
}

static void show_bounds(FILE *out, const struct users *users)
{
	for (enum bound_id id = 0; id < BOUND_COUNT; id++) {
		const char *name = users_bound_name(id);

		if (id != BOUND_LIMITERS)
			fprintf(out, "%s %" PRIu32 "\n", name, users->used[id]);
		fprintf(out, "%s_max %" PRIu32 "\n", name, users->bounds[id].all);
		fprintf(out, "user_%s_max %" PRIu32 "\n", name, users->bounds[id].each);
	}
}

void show_status(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	uint64_t up_ns = daemon->engine.schedule.now_ns - daemon->engine.began_ns;

	(void)node;
	(void)uid;
	fprintf(out, "version %s\n", RATEFS_VERSION);
	fprintf(out, "host %s\n", daemon->options->host);
	fprintf(out, "source %s\n", daemon->options->source);
	if (daemon->fleet)
		show_fleet(out, daemon);
	else
		fprintf(out, "coordinator none\n");
	fprintf(out, "limiters %" PRIu32 "\n", daemon->engine.tree.count);
	fprintf(out, "partitions %" PRIu32 "\n",
		daemon->engine.users.used[BOUND_LIMITERS] - daemon->engine.tree.count);
	fprintf(out, "waiters %" PRIu32 "\n", daemon->engine.waiting);
	show_bounds(out, &daemon->engine.users);
	fprintf(out, "uptime_seconds %" PRIu64 "\n", up_ns / NSEC_PER_SEC);
	fprintf(out, "damaged_settings %" PRIu32 "\n", daemon->damaged);
	fprintf(out, "request_timeout_seconds %" PRIu64 "\n",
		daemon->request_timeout_ns / NSEC_PER_SEC);
	fprintf(out, "outlives_server %s\n", daemon->outlives ? "yes" : "no");
	fprintf(out, "keeper %" PRId32 "\n", daemon->keeper);
	fprintf(out, "server %d\n", (int)getpid());
	fprintf(out, "servers_before %" PRIu32 "\n", state_generation(daemon->state));
	fprintf(out, "frozen_by %" PRIu32 "\n", frozen_by(daemon));
}

void show_age(FILE *out, const struct daemon *daemon, const struct limiter *limiter)
{
	const struct fleet *fleet = daemon->fleet;
	uint64_t age_ns;

	if (!fleet || !survey_is_old(fleet, limiter ? limiter->holding : NULL, &age_ns))
		return;
	if (age_ns == NEVER_NS)
		fputs("# not seen yet: ", out);
	else
		fprintf(out, "# as of %" PRIu64 " s ago: ", age_ns / NSEC_PER_SEC);
	if (!fleet_is_connected(fleet) || fleet_state(fleet) == FLEET_READY)
		fputs("ZooKeeper does not answer\n", out);
	else
		fprintf(out, "coordinator %s\n", fleet_state_name(fleet_state(fleet)));
}

void show_hosts(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct seen_host *host;

	(void)node;
	(void)uid;
	if (!daemon->fleet) {
		fprintf(out, "%s 1 %" PRIu64 " 0 -\n", daemon->options->host,
			daemon->engine.tree.partitions);
		return;
	}
	for (host = survey_hosts(daemon->fleet); host; host = host->next) {
		if (*host->record.name)
			fprintf(out, "%s %" PRIu32 " %" PRIu32 " %" PRId64 " %s\n",
				host->record.name, host->record.weight, host->record.held,
				survey_silent_s(daemon->fleet, host), host->hid);
	}
}

void show_last_error(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct refusal *refusal = refusals_last(&daemon->refusals, uid);

	(void)node;
	if (!refusal)
		return;
	fprintf(out, "%s\n# %" PRIu64 " s ago", refusal->text,
		(clock_ns() - refusal->at_ns) / NSEC_PER_SEC);
	if (refusal->file && *refusal->file)
		fprintf(out, ": %s", refusal->file);
	fputc('\n', out);
}

void show_eta(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	char text[QUANTITY_TEXT];

	(void)uid;
	seconds_print(
		engine_eta(&daemon->engine, node->limiter, node->tokens, node->amounts, clock_ns()),
		3, text);
	fprintf(out, "%s\n", text);
}

void show_setting(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	char text[SETTING_TEXT];

	(void)daemon;
	(void)uid;
	setting_print(node->row->setting, limiter_settings(node->limiter), text);
	fprintf(out, "%s\n", text);
}

void show_override(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct settings *settings = limiter_settings(node->limiter->parent);
	const struct key *key = keys_key(node->limiter);
	struct settings its = *settings;
	struct override override;
	char text[SETTING_TEXT];

	(void)daemon;
	(void)uid;
	its.limit_count = 0;
	if (overrides_find(settings->overrides, key->name, key->name_bytes, &override))
		settings_override_all(&override, &its);
	setting_print(node->row->setting, &its, text);
	fprintf(out, "%s\n", text);
}

void show_config(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct settings *settings = limiter_settings(node->limiter);
	char text[SETTING_TEXT];

	(void)daemon;
	(void)uid;
	for (int id = 0; id < SETTING_COUNT; id++) {
		setting_print((enum setting_id)id, settings, text);
		fprintf(out, "%s=%s\n", setting_name((enum setting_id)id), text);
	}
	fputs(overrides_text(settings->overrides), out);
}

void show_stat(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	char text[STAT_TEXT];

	(void)uid;
	engine_refresh(&daemon->engine, node->limiter, clock_ns());
	stat_print(node->limiter, text);
	fputs(text, out);
}

/* So long a text is made in some milliseconds, for which all others wait. */
enum {
	WAITERS_SHOWN = 10000,
	COMMANDS_SHOWN = 256, /* a file of /proc is read for each */
};

static int by_ticket(const void *a, const void *b)
{
	const struct waiter *one = *(struct waiter *const *)a, *other = *(struct waiter *const *)b;

	return one->ticket < other->ticket ? -1 : one->ticket > other->ticket;
}

/*
 * Lists the waiters of @queue that took their places again, by ticket, and then NULL; from malloc.
 * NULL: no memory.
 */
static const struct waiter **list_returned(const struct queue *queue)
{
	struct heap_node *turn = queue->returned.root;
	size_t count = 0;
	const struct waiter **waiters = malloc((queue->length + 1) * sizeof(*waiters));

	if (!waiters)
		return NULL;
	for (; turn; turn = heap_next(turn))
		waiters[count++] = waiter_of_turn(turn);
	qsort(waiters, count, sizeof(*waiters), by_ticket);
	waiters[count] = NULL;
	return waiters;
}

/* Writes the asker of @waiter: the thread, or `-` for an open file that is polled, and the user. */
static void show_asker(FILE *out, const struct waiter *waiter)
{
	const struct reader *reader;

	if (waiter->is_poller) {
		fprintf(out, "- %" PRIu32, polling_of(waiter)->handle->uid);
		return;
	}
	reader = container_of(waiter, const struct reader, waiter);
	fprintf(out, "%" PRIu32 " %" PRIu32, reader->pending.pid, reader->pending.uid);
}

/* Writes the command of the asker of @waiter at the end of its line; `-` if @room is too small. */
static void show_command(FILE *out, const struct waiter *waiter, uint32_t room)
{
	uint32_t pid = waiter->is_poller
			       ? polling_of(waiter)->handle->kept->pid
			       : container_of(waiter, const struct reader, waiter)->pending.pid;

	fputc(' ', out);
	plain_command(out, room > WAITERS_SHOWN - COMMANDS_SHOWN ? pid : 0);
	fputc('\n', out);
}

/* Writes @amounts as the name of a take has them; nothing of NULL. */
static void show_amounts(FILE *out, const struct amounts *amounts)
{
	for (uint64_t i = 0; amounts && i < amounts->count; i++)
		fprintf(out, ",%s=%" PRIu64, amounts->of[i].unit, amounts->of[i].tokens);
}

/*
 * Shows the waiters of one queue, as long as there is @room; each has to wait for those before it,
 * and for siblings that come first.
 */
static void show_queue(FILE *out, struct daemon *daemon, struct limiter *limiter,
		       const struct queue *queue, uint32_t *room)
{
	uint64_t ahead = 0;
	struct amounts amounts = {0};
	char waited[QUANTITY_TEXT], left[QUANTITY_TEXT];
	static const struct waiter *const none = NULL;
	const struct waiter **sorted = queue->returned.root ? list_returned(queue) : NULL;
	const struct waiter *const *back = sorted ? sorted : &none;
	const struct waiter *once = list_first(&queue->once, struct waiter, once);

	engine_refresh(&daemon->engine, limiter, daemon->engine.schedule.now_ns);
	for (; (once || *back) && *room; --*room) {
		bool is_back = *back && (!once || (*back)->ticket < once->ticket);
		const struct waiter *w = is_back ? *back++ : once;
		uint64_t now_ns = daemon->engine.schedule.now_ns, at_ns;

		once = is_back ? once : list_next(w, once);
		seconds_print(now_ns - w->asked_ns, 3, waited);
		show_asker(out, w);
		if (w->is_opener) {
			fprintf(out, " slot %s -", waited);
			show_command(out, w, *room);
			continue;
		}
		ahead += w->tokens;
		amounts_add(&amounts, w->amounts);
		at_ns = forecast_waiter(limiter, ahead, w->tokens, &amounts, now_ns);
		seconds_print(at_ns == NEVER_NS ? NEVER_NS : at_ns - now_ns, 3, left);
		fprintf(out, " %" PRIu64, w->tokens);
		if (w->most > w->tokens)
			fprintf(out, "-%" PRIu64, w->most);
		show_amounts(out, w->amounts);
		fprintf(out, " %s %s", waited, left);
		show_command(out, w, *room);
	}
	free(sorted);
}

void show_waiters(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	struct limiter *partition;
	uint32_t room = WAITERS_SHOWN;

	(void)uid;
	engine_refresh(&daemon->engine, node->limiter, clock_ns());
	show_queue(out, daemon, node->limiter, &node->limiter->turns.queue, &room);
	if (node->limiter->slots)
		show_queue(out, daemon, node->limiter, &node->limiter->slots->turns.queue, &room);
	for (uint32_t i = 0; (partition = partition_next(node->limiter, &i));)
		show_queue(out, daemon, partition, &partition->turns.queue, &room);
	for (struct limiter *key = NULL; room && (key = keys_next_waiting(node->limiter, key));) {
		show_queue(out, daemon, key, &key->turns.queue, &room);
		if (key->slots)
			show_queue(out, daemon, key, &key->slots->turns.queue, &room);
	}
	if (!room)
		fputs("...\n", out);
}

static bool is_held(const struct lease *lease)
{
	return lease && (lease->state == LEASE_HELD || lease->state == LEASE_WAITING);
}

/* Writes what a host alone holds: all of it. */
static void show_all_held(FILE *out, const struct limiter *limiter)
{
	uint32_t shares, count = partition_count(limiter, &shares);
	char name[PARTITION_TEXT];

	for (uint32_t i = 0; i < count; i++) {
		plain_partition(partition_at(limiter, i), name);
		fprintf(out, "%s%s", i ? " " : "", name);
	}
}

void show_held(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct holding *holding = node->limiter->holding;
	uint32_t next = 0; /* leaf behind the tile that was shown last */
	const char *blank = "";

	(void)uid;
	if (!daemon->fleet)
		show_all_held(out, node->limiter);
	for (uint32_t i = 0; daemon->fleet && i < holding->lease_count; i++) {
		const struct lease *lease = &holding->leases[i];

		if (!is_held(lease) || lease->tile_first < next)
			continue;
		fprintf(out, "%s%" PRIu32, blank, lease->tile_first);
		if (lease->tile_last > lease->tile_first)
			fprintf(out, "-%" PRIu32, lease->tile_last);
		next = lease->tile_last + 1;
		blank = " ";
	}
	if (daemon->fleet && is_held(&holding->reserve))
		fprintf(out, "%sr%" PRIu32, blank, holding->reserve.first);
	fputs("\n", out);
}

/* A partition or piece, in a fleet. */
struct part {
	uint32_t first, last; /* leaves */
	bool reserve, piece;
	const struct lease *lease;    /* this host's; NULL: it has none */
	const struct seen_tile *tile; /* as it was seen; NULL: it was not */
};

static struct part part_of(const struct node *node)
{
	struct holding *holding = node->limiter->holding;
	struct part part = {.piece = node->row->place == NODE_PIECE};
	uint32_t index = node->partition - 1;

	part.reserve = !part.piece && index >= PARTITIONS_MAX;
	part.first = part.reserve ? index - PARTITIONS_MAX : index;
	part.last = part.first;
	if (part.piece)
		partitions_leaves(index, &part.first, &part.last);
	if (!holding)
		return part;
	part.lease = holding_lease(holding, part.first, part.reserve);
	if (part.piece && part.lease &&
	    (part.lease->tile_first != part.first || part.lease->tile_last != part.last))
		part.lease = NULL;
	part.tile = survey_tile(holding, part.first, part.reserve);
	return part;
}

void show_partition_rate(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct settings *whole = limiter_settings(node->limiter);
	const struct part part = part_of(node);
	struct settings share;
	char text[SETTING_TEXT];

	(void)daemon;
	(void)uid;
	if (part.piece)
		settings_of_host(whole, part.last - part.first + 1, false, &share);
	else
		share = settings_of_partition(whole, node->partition - 1);
	setting_print(SETTING_RATE, &share, text);
	fprintf(out, "%s\n", text);
}

/* Names the state of @part by its lease or, where this host has none, by its tile. */
static const char *state_of(const struct daemon *daemon, const struct part *part)
{
	const char *held = part->reserve ? "reserved" : "held";
	const struct seen_tile *tile = part->tile;

	if (!daemon->fleet || (part->lease && part->lease->state == LEASE_HELD))
		return held;
	if (part->lease && part->lease->state != LEASE_NONE)
		return lease_state_name((enum lease_state)part->lease->state);
	if (!tile || !*tile->hid)
		return "free";
	return survey_holder(daemon->fleet, tile) ? held : "gone";
}

void show_partition_state(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct part part = part_of(node);

	(void)uid;
	fprintf(out, "%s\n", state_of(daemon, &part));
}

void show_partition_holder(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct part part = part_of(node);
	const struct seen_host *host = NULL;

	(void)uid;
	if (daemon->fleet && part.tile)
		host = survey_holder(daemon->fleet, part.tile);
	if (!daemon->fleet || is_held(part.lease))
		fprintf(out, "%s\n", daemon->options->host);
	else
		fprintf(out, "%s\n", host ? host->record.name : "");
}

void show_partition_expires(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	char text[QUANTITY_TEXT];
	const struct part part = part_of(node);

	(void)uid;
	if (!daemon->fleet) {
		fputs("max\n", out);
		return;
	}
	seconds_print(is_held(part.lease) ? fleet_right_ns(daemon->fleet) : 0, 3, text);
	fprintf(out, "%s\n", text);
}
