/* expect - statements of a trace about itself, see expect.h. */
#include "tests/sim/language/expect.h"
#include "tests/sim/books/answers.h"
#include "tests/sim/books/common.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/summary.h"
#include "tests/sim/world/sim.h"

#include "core/limiter/stat.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Tells whether @place is the limiter, or the key, that @command speaks of. */
static bool is_meant(const struct command *command, const struct place *place)
{
	return !place->partition && !strcmp(place->path, command->path);
}

static const struct host *only_host(const struct sim *sim, const struct command *command)
{
	return command->has_host || !sim->fleet ? &sim->hosts[command->host] : NULL;
}

static double in_window(const struct windows *windows, uint64_t span_ns)
{
	for (size_t w = 0; w < WINDOW_COUNT; w++) {
		if (WINDOWS[w].ns == span_ns)
			return (double)windows->most[w];
	}
	return 0;
}

static double granted_by(const struct host *host, const struct command *command)
{
	uint64_t span_ns = command->expectation.span_ns;
	double sum = 0, most = 0;

	for (const struct place *p = host->places; p; p = p->next) {
		double one = span_ns ? in_window(&p->windows, span_ns) : (double)p->granted;

		if (!is_meant(command, p))
			continue;
		sum += one;
		most = one > most ? one : most;
	}
	return span_ns ? most : sum;
}

static double granted_by_all(const struct sim *sim, const struct command *command)
{
	uint64_t span_ns = command->expectation.span_ns;
	double sum = 0, most = 0;

	for (const struct common *c = sim->commons; c; c = c->next) {
		double one = span_ns ? in_window(&c->windows, span_ns) : (double)c->granted;

		if (c->is_key || strcmp(c->path, command->path) != 0)
			continue;
		sum += one;
		most = one > most ? one : most;
	}
	return span_ns ? most : sum;
}

static double granted(const struct sim *sim, const struct command *command)
{
	const struct host *host = only_host(sim, command);

	return host ? granted_by(host, command) : granted_by_all(sim, command);
}

static double used(const struct sim *sim, const struct command *command)
{
	double could = 0, did = 0;

	for (struct common *c = sim->commons; c; c = c->next) {
		if (c->is_key || strcmp(c->path, command->path) != 0)
			continue;
		common_measure(c, sim);
		could += c->could;
		did += (double)c->did;
	}
	return could > 0 ? 100 * did / could : NAN;
}

static double wait_time(const struct sim *sim, const struct command *command)
{
	const struct host *only = only_host(sim, command);
	double grants = 0, waited_s = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];

		for (const struct place *p = host->places; p && (!only || only == host);
		     p = p->next) {
			if (!is_meant(command, p))
				continue;
			grants += (double)p->grants;
			waited_s += p->waited_s;
		}
	}
	return waited_s / grants;
}

static double longest_wait(const struct sim *sim, const struct command *command)
{
	const struct host *only = only_host(sim, command);
	double longest_s = NAN;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];

		for (const struct place *p = host->places; p && (!only || only == host);
		     p = p->next) {
			if (is_meant(command, p) && p->grants)
				longest_s = fmax(longest_s, p->longest_s);
		}
	}
	return longest_s;
}

static double tiles(const struct sim *sim, const struct command *command)
{
	const struct host *only = only_host(sim, command);
	struct leased_tiles leased = truth_tiles(sim, command->path, only ? only->name : NULL);

	return leased.hosts ? (double)leased.tiles / leased.hosts : NAN;
}

static double share(const struct sim *sim, const struct command *command)
{
	double all = granted_by_all(sim, command);

	return all > 0 ? 100 * granted_by(&sim->hosts[command->host], command) / all : NAN;
}

static double slots(const struct sim *sim, const struct command *command)
{
	const struct host *only = only_host(sim, command);
	double sum = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];

		slots_check(host);
		for (const struct place *p = host->places; p && (!only || only == host);
		     p = p->next) {
			if (is_meant(command, p) && sim->now_ns > p->slots_since_ns)
				sum += p->slots_sum / (double)(sim->now_ns - p->slots_since_ns);
		}
	}
	return sum;
}

static double told(const struct sim *sim, const struct command *command)
{
	const struct host *only = only_host(sim, command);

	return truth_told_slots(sim, command->path, only ? only->name : NULL);
}

static double count_of_coordinator(const struct sim *sim, const struct command *command)
{
	for (int i = 0; i < COUNT_KINDS; i++) {
		if (!strcmp(summary_count_name(i), command->expectation.field))
			return (double)(sim->zookeeper.counts[i] - sim->counted[i]);
	}
	return NAN;
}

static double nodes(const struct sim *sim, const struct command *command)
{
	return znodes_below(&sim->zookeeper.znodes, command->path);
}

static double refused(const struct sim *sim, const struct command *command)
{
	const struct host *only = only_host(sim, command);
	double sum = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		if (!only || only == &sim->hosts[i])
			sum += sim->hosts[i].refused;
	}
	return sum;
}

static double of_service(const struct sim *sim, const struct command *command)
{
	const struct place *place = place_at(&sim->hosts[command->host], command->path);
	const struct service *service = place ? place_service(place) : NULL;

	return service ? service_measure(service, command->expectation.field, sim->now_ns) : NAN;
}

static double in_stat(const struct sim *sim, const struct command *command)
{
	struct host *host = &sim->hosts[command->host];
	const struct place *place = place_at(host, command->path);
	struct memory *before;
	double value = NAN;

	if (!place)
		return NAN;
	before = host_enter(host);
	engine_refresh(&host->engine, place->limiter, host_now(host));
	host_leave(before);
	for (size_t i = 0; i < stat_count(); i++) {
		struct stat_entry entry = stat_entry(place->limiter, i);

		if (!strcmp(entry.name, command->expectation.field))
			value = entry.is_whole ? (double)entry.count : entry.value;
	}
	for (uint32_t i = 0; (i = stat_unit(place->limiter, i)) < LIMITS_MAX; i++) {
		for (size_t k = 0; k < stat_unit_count(); k++) {
			struct stat_entry entry = stat_unit_entry(place->limiter, i, k);
			char name[FIELD_TEXT];

			snprintf(name, sizeof(name), "%s.%s", entry.name,
				 stat_unit_name(place->limiter, i));
			if (!strcmp(name, command->expectation.field))
				value = entry.is_whole ? (double)entry.count : entry.value;
		}
	}
	return value;
}

/* The table of measures. */
static double (*const MEASURES[])(const struct sim *sim, const struct command *command) = {
	[EXPECT_GRANTED] = granted,    [EXPECT_USED] = used,
	[EXPECT_WAIT] = wait_time,     [EXPECT_LONGEST] = longest_wait,
	[EXPECT_TILES] = tiles,	       [EXPECT_SHARE] = share,
	[EXPECT_SLOTS] = slots,	       [EXPECT_COORDINATOR] = count_of_coordinator,
	[EXPECT_NODES] = nodes,	       [EXPECT_REFUSED] = refused,
	[EXPECT_SERVICE] = of_service, [EXPECT_STAT] = in_stat,
	[EXPECT_TOLD] = told,
};

static void miss(struct sim *sim, const struct command *command, const char *is)
{
	char time[QUANTITY_TEXT];

	sim->missed = true;
	fflush(stdout);
	seconds_print(sim->now_ns, 9, time);
	fprintf(stderr, "invariant EXPECT: line %u at %s s: %s: it is %s\n", command->line, time,
		command->text, is);
}

static void check_setting(struct sim *sim, const struct command *command)
{
	const struct place *place = place_at(&sim->hosts[command->host], command->path);
	char text[SETTING_TEXT] = "not there";

	if (place)
		setting_print(command->file.setting, &place->settings, text);
	if (strcmp(text, command->written) != 0)
		miss(sim, command, text);
}

static void check_answer(struct sim *sim, const struct command *command)
{
	char is[ANSWER_TEXT];

	if (!answers_are(sim, command->expectation.field, command->written, is))
		miss(sim, command, is);
}

void expect_check(struct sim *sim, const struct command *command)
{
	const struct expectation *expectation = &command->expectation;
	char text[FIELD_TEXT] = "not known";
	double value;

	if (expectation->expected == EXPECT_SETTING) {
		check_setting(sim, command);
		return;
	}
	if (expectation->expected == EXPECT_ANSWER) {
		check_answer(sim, command);
		return;
	}
	value = MEASURES[expectation->expected](sim, command);
	if (!isnan(value))
		snprintf(text, sizeof(text), "%.9g", value);
	/* A value that is not known is within no bounds. */
	if (!(value >= expectation->least && value <= expectation->most))
		miss(sim, command, text);
}

void expect_count(struct sim *sim)
{
	for (struct common *c = sim->commons; c; c = c->next) {
		common_measure(c, sim);
		c->could = 0;
		c->did = 0;
		c->granted = 0;
		windows_count(&c->windows);
		service_count(c->service, sim->now_ns);
	}
	for (unsigned int i = 0; i < sim->host_count; i++) {
		slots_check(&sim->hosts[i]);
		sim->hosts[i].refused = 0;
		for (struct place *p = sim->hosts[i].places; p; p = p->next) {
			p->granted = 0;
			p->grants = 0;
			p->waited_s = 0;
			p->longest_s = 0;
			p->slots_sum = 0;
			p->slots_since_ns = sim->now_ns;
			windows_count(&p->windows);
			service_count(p->service, sim->now_ns);
		}
	}
	if (sim->fleet)
		memcpy(sim->counted, sim->zookeeper.counts, sizeof(sim->counted));
}
