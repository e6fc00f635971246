/* summary - what a trace came to, see summary.h. */
#include "tests/sim/books/common.h"
#include "tests/sim/actors/retry.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/books/summary.h"
#include "tests/sim/world/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HOSTS_EACH = 32 }; /* more than so many are not told one by one */

static void print_windows(const struct windows *windows)
{
	for (size_t w = 0; w < WINDOW_COUNT; w++)
		printf(" %s %" PRIu64, WINDOWS[w].name, windows->most[w]);
	putchar('\n');
}

/* Those that a load reads, together. */
static void print_keys(const struct host *host, const struct place *place)
{
	uint64_t least = UINT64_MAX, most = 0;
	unsigned int count = 0;

	for (const struct place *p = host->places; p; p = p->next) {
		if (!p->is_counted || p->parent != place)
			continue;
		count++;
		least = p->granted < least ? p->granted : least;
		most = p->granted > most ? p->granted : most;
	}
	if (count)
		printf("summary %s/keys %u granted %" PRIu64 " to %" PRIu64 "\n", place->path,
		       count, least, most);
}

static void print_host(const struct sim *sim)
{
	const struct host *host = sim->hosts;

	for (const struct place *p = host->places; p; p = p->next) {
		if (p->is_counted)
			continue;
		printf("summary %s granted %" PRIu64, p->path, p->granted);
		print_windows(&p->windows);
		print_keys(host, p);
	}
	for (const struct place *p = host->places; p; p = p->next)
		service_print(p->service, p->path);
}

static uint64_t granted_by(const struct host *host, const struct common *common)
{
	uint64_t granted = 0;

	for (const struct place *p = host->places; p; p = p->next)
		granted += p->common == common ? p->granted : 0;
	return granted;
}

static void print_hosts(const struct sim *sim, const struct common *common)
{
	uint64_t least = UINT64_MAX, most = 0;
	unsigned int served = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];
		uint64_t granted = granted_by(host, common);

		if (!granted)
			continue;
		served++;
		least = granted < least ? granted : least;
		most = granted > most ? granted : most;
		if (sim->host_count <= HOSTS_EACH)
			printf("summary %s %s granted %" PRIu64 "\n", common->path, host->name,
			       granted);
	}
	if (sim->host_count > HOSTS_EACH && served)
		printf("summary %s hosts %u granted %" PRIu64 " to %" PRIu64 "\n", common->path,
		       served, least, most);
}

static void print_common(const struct sim *sim, const struct common *common)
{
	double could = common->could;

	printf("summary %s granted %" PRIu64, common->path, common->granted);
	print_windows(&common->windows);
	print_hosts(sim, common);
	if (could >= 1)
		printf("summary %s used %.1f %%\n", common->path,
		       100 * (double)common->did / could);
}

const char *summary_count_name(int kind)
{
	static const char *const names[COUNT_KINDS] = {
		[COUNT_TRANSACTIONS] = "transactions",
		[COUNT_REFUSED] = "refused",
		[COUNT_CHECKS] = "checks",
		[COUNT_SETS] = "sets",
		[COUNT_CREATES] = "creates",
		[COUNT_DELETES] = "deletes",
		[COUNT_GETS] = "gets",
		[COUNT_LISTS] = "lists",
		[COUNT_EVENTS] = "events",
		[COUNT_SESSIONS] = "sessions",
		[COUNT_EXPIRED] = "expired",
		[COUNT_STRAYS] = "strays",
		[COUNT_GIVEN_UP] = "given_up",
	};

	return names[kind];
}

static void print_coordinator(const struct sim *sim)
{
	printf("summary coordinator");
	for (int i = 0; i < COUNT_KINDS; i++)
		printf(" %s %" PRIu64, summary_count_name(i), sim->zookeeper.counts[i]);
	putchar('\n');
}

void summary_print(const struct sim *sim)
{
	if (!sim->fleet)
		print_host(sim);
	for (struct common *c = sim->commons; c; c = c->next) {
		if (c->is_key)
			continue;
		common_measure(c, sim);
		print_common(sim, c);
	}
	for (const struct common *c = sim->commons; c; c = c->next)
		service_print(c->service, c->path);
	retry_print(sim);
	if (sim->fleet)
		print_coordinator(sim);
}
