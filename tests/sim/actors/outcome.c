/*
 * outcome - how work went, told to `feedback`: by a trace's `write`, and by the services behind
 * limiters, each answer when it comes. A throttled one anywhere on the way to the top is throttled.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/outcome.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/world/act.h"
#include "tests/sim/books/forecast.h"
#include "tests/sim/books/ledger.h"
#include "tests/sim/books/order.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An answer on its way back. */
struct reply {
	struct occurrence occurrence; /* first */
	struct place *place;
	struct outcome outcome;
};

static int report(struct place *place, const struct outcome *outcomes, size_t count)
{
	struct host *host = place->host;
	struct memory *before;
	int err;

	if (!place->limiter)
		return -ENODEV;
	before = host_enter(host);
	/* Grants that were due before the report are in the books before it. */
	engine_run(&host->engine, host_now(host));
	host_leave(before);
	host_collect(host);
	before = host_enter(host);
	err = engine_feedback(&host->engine, place->limiter, outcomes, count, host_now(host));
	host_leave(before);
	order_heard(place);
	for (size_t i = 0; i < count && !err; i++)
		ledger_told(place, &outcomes[i]);
	forecast_news(host->sim);
	host_collect(host);
	return err;
}

void outcome_write(struct sim *sim, struct place *place, const struct command *command)
{
	const char *text = command->text;
	char error[ERROR_TEXT] = "no outcome is given";
	struct outcome *outcomes = memory_get((strlen(text) + 1) * sizeof(*outcomes));
	size_t count = 0;
	int err;

	while (!(err = feedback_parse(&text, &outcomes[count], error)))
		count++;
	if (err == -ENOENT)
		err = count ? 0 : -EINVAL;
	if (!err) {
		err = report(place, outcomes, count);
		snprintf(error, sizeof(error), "a unit that the limiter does not have");
	}
	if (err)
		act_refused(sim, place->host, command, err, error);
	free(outcomes);
}

static void arrive(struct sim *sim, struct occurrence *occurrence)
{
	struct reply *reply = (struct reply *)occurrence;

	(void)sim;
	(void)report(reply->place, &reply->outcome, 1);
	free(reply);
}

static void drop(struct occurrence *occurrence)
{
	free(occurrence);
}

uint64_t outcome_of_call(struct sim *sim, struct reader *reader)
{
	uint64_t latency_ns = 0;
	bool served = false;
	struct reply *reply;

	reader->answered_ok = true;
	for (struct place *p = reader->place; p; p = p->parent) {
		struct service *service = place_service(p);

		if (!service)
			continue;
		served = true;
		if (!service_call(service, reader->granted, sim->now_ns))
			reader->answered_ok = false;
		if (service_latency_ns(service) > latency_ns)
			latency_ns = service_latency_ns(service);
	}
	if (!served || sim->ending)
		return 0;
	reply = memory_get(sizeof(*reply));
	reply->occurrence = (struct occurrence){.happens = arrive, .dropped = drop};
	/* Keys have no `feedback`. */
	reply->place = reader->place->is_key ? reader->place->parent : reader->place;
	reply->outcome.kind = reader->answered_ok ? OUTCOME_OK : OUTCOME_THROTTLED;
	reply->outcome.count = 1;
	sim_later(sim, reader->place->host, &reply->occurrence, sim->now_ns + latency_ns);
	return latency_ns;
}
