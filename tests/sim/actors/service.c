/*
 * service - a throttled service behind a limiter.
 *
 * The service has a budget of `burst` units (default: as much as its rate gives in a second, at
 * least one) that fills at its rate and begins full. A call of N units is answered ok if they are
 * there, and throttled, taking nothing, if not. Every grant of a limiter, its children and its
 * partitions calls the service behind it with the tokens granted.
 *
 * Workers that hold a slot call it once, and hold the slot until the answer is there: after
 * `latency`, up to `jitter` percent more or less, and from `knee` requests in flight on longer in
 * proportion. A throttled call is answered 50 times as soon, and the slots are told.
 *
 * The answer comes `latency` after the call, and is fed back then, see outcome.c. A service that is
 * set again goes on with what it has counted, and an empty budget. `tally PATH` prints what it
 * answered since the last one, which part of what its rate gives was used, and which part of the
 * calls was throttled.
 */
#include "tests/sim/books/common.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/world/act.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char NO_SERVICE[] = "there is no service behind it";
enum { REFUSED_SOONER = 50 };

struct service {
	struct fraction flow;
	u128 units; /* there, of 1 / flow.den */
	u128 most;
	uint64_t at_ns;
	uint64_t latency_ns;
	uint64_t knee; /* requests in flight that are not in one another's way; 0: any number */
	uint64_t jitter_percent;
	uint64_t in_flight; /* of holders of slots */
	uint64_t random;
	uint64_t ok;
	uint64_t throttled;
	uint64_t tallied_ns; /* the last tally, and what it was then */
	uint64_t tallied_ok;
	uint64_t tallied_throttled;
};

void service_set(struct sim *sim, struct place *place, const struct command *command)
{
	/* In a fleet it is behind the limiter of all hosts. */
	struct service **slot = place->common ? &place->common->first->service : &place->service;
	struct service *service = *slot ? *slot : memory_get(sizeof(*service));
	bool known = *slot != NULL;
	u128 second;

	*slot = service;
	service->flow = rate_fraction(&command->rate);
	second = (u128)service->flow.num * NSEC_PER_SEC;
	service->most = command->tokens ? (u128)command->tokens * service->flow.den : second;
	if (service->most < service->flow.den)
		service->most = service->flow.den;
	service->units = known ? 0 : service->most;
	service->at_ns = sim->now_ns;
	service->latency_ns = command->span_ns;
	if (!known)
		service->tallied_ns = sim->now_ns;
	service->knee = command->knee;
	service->jitter_percent = command->jitter_percent;
	service->random = UINT64_C(88172645463325252);
}

bool service_call(struct service *service, uint64_t tokens, uint64_t now_ns)
{
	u128 wanted = (u128)tokens * service->flow.den;

	service->units += (u128)service->flow.num * (now_ns - service->at_ns);
	if (service->units > service->most)
		service->units = service->most;
	service->at_ns = now_ns;
	if (wanted > service->units) {
		service->throttled++;
		return false;
	}
	service->units -= wanted;
	service->ok++;
	return true;
}

/* xorshift64*: Marsaglia (2003), Vigna (2016). From -1 to 1. */
static double draw(struct service *service)
{
	service->random ^= service->random >> 12;
	service->random ^= service->random << 25;
	service->random ^= service->random >> 27;
	return (double)(service->random * UINT64_C(2685821657736338717) >> 11) / 0x1p52 - 1;
}

uint64_t service_work(struct service *service, uint64_t now_ns, bool *ok)
{
	double spread = 1 + (double)service->jitter_percent / 100 * draw(service);
	double latency_ns = (double)service->latency_ns * spread;

	service->in_flight++;
	*ok = service_call(service, 1, now_ns);
	if (!*ok)
		latency_ns /= REFUSED_SOONER;
	else if (service->knee && service->in_flight > service->knee)
		latency_ns *= (double)service->in_flight / (double)service->knee;
	return (uint64_t)latency_ns;
}

void service_leave(struct service *service)
{
	service->in_flight--;
}

void service_print(const struct service *service, const char *path)
{
	if (service)
		printf("summary service %s ok %" PRIu64 " throttled %" PRIu64 "\n", path,
		       service->ok, service->throttled);
}

uint64_t service_latency_ns(const struct service *service)
{
	return service->latency_ns;
}

void service_count(struct service *service, uint64_t now_ns)
{
	if (!service)
		return;
	service->tallied_ns = now_ns;
	service->tallied_ok = service->ok;
	service->tallied_throttled = service->throttled;
}

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

double service_measure(const struct service *service, const char *field, uint64_t now_ns)
{
	double ok = (double)(service->ok - service->tallied_ok);
	double throttled = (double)(service->throttled - service->tallied_throttled);
	double most = (double)service->flow.num / (double)service->flow.den *
		      (double)(now_ns - service->tallied_ns);

	if (!strcmp(field, "ok"))
		return ok;
	if (!strcmp(field, "throttled"))
		return throttled;
	if (!strcmp(field, "used_percent"))
		return percent(ok, most);
	return !strcmp(field, "throttled_percent") ? percent(throttled, ok + throttled) : NAN;
}

void service_tally(struct sim *sim, struct place *place, const struct command *command)
{
	struct service *service = place_service(place);

	if (!service) {
		act_refused(sim, place->host, command, -EINVAL, NO_SERVICE);
		return;
	}
	sim_print(sim, place->host, "tally %s ok %.0f throttled %.0f used %.1f%% throttled %.1f%%",
		  place->path, service_measure(service, "ok", sim->now_ns),
		  service_measure(service, "throttled", sim->now_ns),
		  service_measure(service, "used_percent", sim->now_ns),
		  service_measure(service, "throttled_percent", sim->now_ns));
	service_count(service, sim->now_ns);
}
