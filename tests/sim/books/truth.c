/* truth - limiters as the coordinator has them, see truth.h. */
#include "tests/sim/books/overriding.h"
#include "tests/sim/books/truth.h"
#include "tests/sim/books/common.h"
#include "tests/sim/books/dues.h"
#include "tests/sim/world/sim.h"
#include "tests/sim/invariants/calm_check.h"

#include "core/fleet/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char FOLDER[] = "/c/";

enum { GENERATION_BITS = 32 }; /* of a time; the others count how often it was taken back */

static struct truth *find(const struct sim *sim, uint64_t id)
{
	struct truth *truth = sim->truths;

	while (truth && truth->id != id)
		truth = truth->next;
	return truth;
}

const struct truth *truth_of(const struct sim *sim, uint64_t id)
{
	return find(sim, id);
}

struct fleet_check *truth_rate(const struct sim *sim, const char *path)
{
	struct name *name = sim->names;

	while (name && strcmp(name->path, path) != 0)
		name = name->next;
	return name ? &name->rate : NULL;
}

static struct truth *add(struct sim *sim, uint64_t id)
{
	struct truth *truth = memory_get(sizeof(*truth));

	truth->id = id;
	truth->next = sim->truths;
	sim->truths = truth;
	return truth;
}

/*
 * Prints the path of @truth. False: a limiter that it is in is not known, or the path is too long.
 */
static bool print_path(const struct sim *sim, const struct truth *truth, char path[PATH_TEXT])
{
	const struct truth *parent = truth->parent ? find(sim, truth->parent) : NULL;
	size_t used = 0;

	*path = '\0';
	if (truth->parent && (!parent || !print_path(sim, parent, path)))
		return false;
	used = strlen(path);
	if (used + strlen(truth->label) + 2 > PATH_TEXT)
		return false;
	snprintf(path + used, PATH_TEXT - used, "%s%s", used ? "/" : "", truth->label);
	return true;
}

static struct name *name_of(struct sim *sim, const char *path)
{
	struct name *name = sim->names;

	while (name && strcmp(name->path, path) != 0)
		name = name->next;
	if (name)
		return name;
	name = memory_get(sizeof(*name));
	name->path = memory_text(path, strlen(path));
	name->rate.hosts = sim->host_count;
	name->next = sim->names;
	sim->names = name;
	return name;
}

static uint64_t quarantine_ns(const struct sim *sim)
{
	return sim->hosts[0].options.constants.quarantine_ns;
}

static void go(struct sim *sim, struct truth *truth)
{
	if (truth->there && truth->name) {
		common_tuning(sim, truth->id);
		fleet_check_goes(&truth->name->rate, truth->id, quarantine_ns(sim),
				 common_now(sim));
		common_goes(sim, truth->id, quarantine_ns(sim));
	}
	truth->there = false;
}

/* Settings of @truth are in force, under its path of now. */
static void enter(struct sim *sim, struct truth *truth)
{
	char path[PATH_TEXT];

	truth->there = true;
	if (!print_path(sim, truth, path))
		return;
	truth->name = name_of(sim, path);
	common_tuning(sim, truth->id);
	fleet_check_follow(&truth->name->rate, truth->id, &truth->settings, quarantine_ns(sim),
			   common_now(sim));
	common_tuned(sim, truth->id, &truth->settings, quarantine_ns(sim));
}

/* The path of @truth is another one, and so are those of all that is in it. */
static void move(struct sim *sim, struct truth *truth)
{
	const struct name *before = truth->name;

	go(sim, truth);
	enter(sim, truth);
	if (before && truth->name != before)
		common_renamed(sim, truth->id, before->path, truth->name->path);
	for (struct truth *t = sim->truths; t; t = t->next) {
		if (t->there && t->parent == truth->id)
			move(sim, t);
	}
}

/* Tells whether @settings differ in nothing but the order among siblings. */
static bool is_order(const struct truth *truth, const struct settings *settings)
{
	for (enum setting_id id = 0; id < SETTING_COUNT; id++) {
		if (id != SETTING_WEIGHT && id != SETTING_MIN && id != SETTING_PRIORITY &&
		    !setting_equal(id, &truth->settings, settings))
			return false;
	}
	return overrides_equal(truth->settings.overrides, settings->overrides);
}

/* Notes since when the limits are so: @saved, which only an election lowers. */
static void note_generation(struct truth *truth, uint64_t saved)
{
	struct taken_back *taken;

	if (saved < truth->saved) {
		taken = memory_get(sizeof(*taken));
		*taken = (struct taken_back){truth->taken_back, saved + 1, truth->saved};
		truth->taken_back = taken;
	}
	truth->saved = saved;
}

/* Tells whether nothing but the order among siblings has changed. */
static bool come(struct sim *sim, struct truth *truth, const struct record *record,
		 uint64_t made_zxid)
{
	bool is_same = truth->there && truth->made_zxid == made_zxid;
	bool is_renamed = truth->label && strcmp(truth->label, record->name) != 0;
	bool ordered = is_same && !is_renamed && is_order(truth, &record->settings);

	if (is_renamed && !is_same)
		go(sim, truth);
	free(truth->label);
	truth->label = memory_text(record->name, strlen(record->name));
	truth->parent = record->parent;
	truth->settings = overriding_copy(&record->settings);
	truth->made_zxid = made_zxid;
	if (!is_same)
		truth->saved = 0;
	note_generation(truth, record->saved);
	if (is_renamed && is_same)
		move(sim, truth);
	else
		enter(sim, truth);
	return ordered;
}

/*
 * The node of limiter @id is @state. Tells whether nothing but the order among siblings has
 * changed.
 */
static bool look(struct sim *sim, uint64_t id, const struct znode_state *state)
{
	struct truth *truth = find(sim, id);
	struct record record;
	char error[ERROR_TEXT];
	bool ordered;

	if (!id)
		return false; /* the root */
	if (!state || !state->there) {
		if (truth)
			go(sim, truth);
		return false;
	}
	/* A record that is not understood changes nothing for hosts that read it. */
	if (!state->data || record_parse(state->data->text, &record, error))
		return false;
	/* The name of a limiter that is gone, or was renamed. */
	if (record.removed) {
		if (truth)
			go(sim, truth);
		return false;
	}
	ordered = come(sim, truth ? truth : add(sim, id), &record, state->made_zxid);
	record_drop(&record);
	return ordered;
}

static void look_at(struct sim *sim, const struct znode *node, const struct znode_state *state)
{
	if (strncmp(node->path, FOLDER, strlen(FOLDER)) != 0)
		return;
	if (look(sim, strtoull(node->path + strlen(FOLDER), NULL, 10), state))
		dues_demand(sim);
	else
		sim->disturbed_ns = sim->now_ns;
}

uint64_t truth_time(const struct sim *sim, uint64_t id, uint64_t saved)
{
	const struct truth *truth = truth_of(sim, id);
	uint64_t times = 0;

	for (const struct taken_back *t = truth ? truth->taken_back : NULL; t; t = t->next)
		times += t->first <= saved && saved <= t->last;
	return times << GENERATION_BITS | saved;
}

void truth_observe(struct zookeeper *zookeeper, const struct commit *commit)
{
	struct sim *sim = (struct sim *)((char *)zookeeper - offsetof(struct sim, zookeeper));
	struct memory *before = memory_enter(NULL);

	for (struct znode_state *s = commit ? commit->touched : NULL; s; s = s->next_touched)
		look_at(sim, s->node, s);
	/* Some were lost: all are looked at. */
	for (struct truth *t = commit ? NULL : sim->truths; t; t = t->next) {
		const struct znode *node;
		char path[NODE_PATH_MAX];

		snprintf(path, sizeof(path), "%s%llu", FOLDER, (unsigned long long)t->id);
		node = znodes_find(&zookeeper->znodes, path);
		(void)look(sim, t->id, node ? node->newest : NULL);
	}
	memory_enter(before);
}

/* Tells whether @node is a tile of limiter @id that host @hid leases. */
static bool is_leased(const struct znode *node, uint64_t id, const char *hid)
{
	static const char folder[] = "/t/";
	char *end;

	if (!node->newest || !node->newest->there ||
	    strncmp(node->path, folder, strlen(folder)) != 0 ||
	    strtoull(node->path + strlen(folder), &end, 10) != id || *end != '-')
		return false;
	end = strchr(end, '.');
	return end && !strcmp(end + 1, hid);
}

static uint32_t count_leased(const struct znodes *znodes, uint64_t id, const char *hid)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < znodes->size; i++) {
		for (const struct znode *n = znodes->by_path[i]; n; n = n->next_by_path)
			count += is_leased(n, id, hid);
	}
	return count;
}

/* Finds the limiter that has @path. NULL: there is none. */
static const struct truth *truth_at(const struct sim *sim, const char *path)
{
	const struct truth *truth = sim->truths;

	while (truth && (!truth->there || !truth->name || strcmp(truth->name->path, path) != 0))
		truth = truth->next;
	return truth;
}

struct leased_tiles truth_tiles(const struct sim *sim, const char *path, const char *name)
{
	const struct truth *truth = truth_at(sim, path);
	struct leased_tiles leased = {0};

	for (unsigned int i = 0; truth && i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];
		uint32_t count;

		if (!host->fleet || (name && strcmp(host->name, name) != 0))
			continue;
		count = count_leased(&sim->zookeeper.znodes, truth->id, fleet_hid(host->fleet));
		leased.tiles += count;
		leased.hosts += count > 0;
	}
	return leased;
}

/* Counts the open slots of limiter @id in the node of @host. */
static uint32_t count_told(const struct sim *sim, const struct host *host, uint64_t id)
{
	struct host_record record;
	const struct znode *node;
	char path[NODE_PATH_MAX];
	uint32_t count = 0;

	snprintf(path, sizeof(path), "/h/%s", fleet_hid(host->fleet));
	node = znodes_find(&sim->zookeeper.znodes, path);
	if (!node || !node->newest->there || !node->newest->data ||
	    record_parse_host(node->newest->data->text, &record))
		return 0;
	for (uint32_t i = 0; i < record.slot_count; i++)
		count += record.slots[i].id == id;
	return count;
}

uint32_t truth_told_slots(const struct sim *sim, const char *path, const char *name)
{
	const struct truth *truth = truth_at(sim, path);
	uint32_t count = 0;

	for (unsigned int i = 0; truth && i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];

		if (host->fleet && (!name || !strcmp(host->name, name)))
			count += count_told(sim, host, truth->id);
	}
	return count;
}

/* Reports end later on hosts that hear of others, and calm and its windows begin later yet. */
enum { LATE_PART = 50 };
static const uint64_t LATE_NS = 2 * CALM_WINDOW_NS + 60 * NSEC_PER_SEC;

void truth_quoted(struct sim *sim, uint64_t id, uint64_t reset_ns)
{
	uint64_t until_ns = sim->now_ns + reset_ns + reset_ns / LATE_PART + LATE_NS;

	for (struct truth *t = sim->truths; t; t = t->next) {
		if (t->id == id && t->quoted_ns < until_ns)
			t->quoted_ns = until_ns;
	}
}

bool truth_is_quoted(const struct sim *sim, const struct truth *truth)
{
	return sim->now_ns < truth->quoted_ns;
}

void truth_free(struct sim *sim)
{
	while (sim->truths) {
		struct truth *next = sim->truths->next;

		while (sim->truths->taken_back) {
			struct taken_back *taken = sim->truths->taken_back;

			sim->truths->taken_back = taken->next;
			free(taken);
		}
		free(sim->truths->label);
		free(sim->truths);
		sim->truths = next;
	}
	while (sim->names) {
		struct name *next = sim->names->next;

		free(sim->names->path);
		fleet_check_free(&sim->names->rate);
		free(sim->names);
		sim->names = next;
	}
}
