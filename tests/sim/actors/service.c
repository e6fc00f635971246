/*
 * service - a throttled service behind a limiter, and records to be pushed through it.
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
 * `retry PATH N naive|gated [take T]` pushes N records of T units (default 1) through the service:
 *
 *	naive	the limiter is not asked. Once a second, beginning now, all that is left is sent.
 *	gated	each record waits for its T tokens of the limiter, all of them from now on, and is
 *		then sent. One that is throttled waits again, once it has its answer.
 *
 * The answer comes `latency` after the call, and is fed back then, see outcome.c. A service that is
 * set again goes on with what it has counted, and an empty budget. `tally PATH` prints what it
 * answered since the last one, which part of what its rate gives was used, and which part of the
 * calls was throttled. The summary says how many calls were sent and refused, in how many rounds
 * (naive), and the time from the start to the answer to the last record.
 */
#include "tests/sim/books/common.h"
#include "tests/sim/base/memory.h"
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
	uint64_t in_flight; /* of those who hold slots */
	uint64_t random;
	uint64_t ok;
	uint64_t throttled;
	uint64_t tallied_ns; /* the last tally, and what it was then */
	uint64_t tallied_ok;
	uint64_t tallied_throttled;
};

struct retry {
	struct retry *next;
	struct occurrence round; /* naive */
	struct place *place;
	bool gated;
	uint64_t tokens;
	uint64_t records;
	uint64_t left;
	uint64_t sent;
	uint64_t refused;
	uint64_t rounds;
	uint64_t began_ns;
	uint64_t last_ns;
};

/* A record of a gated retry. */
struct pushed {
	struct reader reader; /* first */
	struct occurrence answer;
	struct retry *retry;
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
		act_refused(sim, place->host, command->line, -EINVAL, NO_SERVICE);
		return;
	}
	sim_print(sim, place->host, "tally %s ok %.0f throttled %.0f used %.1f%% throttled %.1f%%",
		  place->path, service_measure(service, "ok", sim->now_ns),
		  service_measure(service, "throttled", sim->now_ns),
		  service_measure(service, "used_percent", sim->now_ns),
		  service_measure(service, "throttled_percent", sim->now_ns));
	service_count(service, sim->now_ns);
}

static void accept_record(struct retry *retry, uint64_t at_ns)
{
	retry->left--;
	retry->last_ns = at_ns;
}

static void send_round(struct sim *sim, struct occurrence *round)
{
	struct retry *retry = (struct retry *)((char *)round - offsetof(struct retry, round));
	struct service *service = place_service(retry->place);
	uint64_t records = retry->left;

	retry->rounds++;
	for (uint64_t i = 0; i < records; i++) {
		retry->sent++;
		if (service_call(service, retry->tokens, sim->now_ns))
			accept_record(retry, sim->now_ns + service->latency_ns);
		else
			retry->refused++;
	}
	if (retry->left)
		sim_later(sim, retry->place->host, round, sim->now_ns + NSEC_PER_SEC);
}

/* The retry is freed with the simulator. */
static void drop_round(struct occurrence *round)
{
	(void)round;
}

static struct pushed *pushed_of(struct occurrence *answer)
{
	return (struct pushed *)((char *)answer - offsetof(struct pushed, answer));
}

static void drop_record(struct occurrence *answer)
{
	reader_free(&pushed_of(answer)->reader);
}

static void answered(struct sim *sim, struct occurrence *answer)
{
	struct pushed *record = pushed_of(answer);

	if (!record->reader.answered_ok) {
		record->retry->refused++;
		reader_ask(sim, &record->reader, record->retry->tokens, NEVER_NS);
		return;
	}
	accept_record(record->retry, sim->now_ns);
	reader_free(&record->reader);
}

static void send_record(struct sim *sim, struct reader *reader, int err)
{
	struct pushed *record = (struct pushed *)reader;

	if (err) {
		reader_free(reader);
		return;
	}
	record->retry->sent++;
	sim_later(sim, reader->place->host, &record->answer, sim->now_ns + reader->answer_ns);
}

static void send_gated(struct sim *sim, struct retry *retry)
{
	for (uint64_t i = 0; i < retry->records; i++) {
		char name[QUANTITY_TEXT];
		int length = snprintf(name, sizeof(name), "r%" PRIu64, ++sim->records);
		struct reader *reader = reader_new(sim, retry->place,
						   memory_text(name, (size_t)length),
						   sizeof(struct pushed));
		struct pushed *record = (struct pushed *)reader;

		reader->done = send_record;
		record->retry = retry;
		record->answer = (struct occurrence){.happens = answered, .dropped = drop_record};
		reader_ask(sim, reader, retry->tokens, NEVER_NS);
	}
}

void retry_start(struct sim *sim, struct place *place, const struct command *command)
{
	struct retry *retry = memory_get(sizeof(*retry));

	retry->place = place;
	retry->gated = command->gated;
	retry->tokens = command->tokens;
	retry->records = command->count;
	retry->left = command->count;
	retry->began_ns = sim->now_ns;
	retry->round = (struct occurrence){.happens = send_round, .dropped = drop_round};
	if (sim->last_retry)
		sim->last_retry->next = retry;
	else
		sim->retries = retry;
	sim->last_retry = retry;
	if (retry->gated)
		send_gated(sim, retry);
	else
		sim_later(sim, place->host, &retry->round, sim->now_ns);
}

void retry_print(const struct sim *sim)
{
	for (const struct retry *r = sim->retries; r; r = r->next) {
		uint64_t took_ns = r->last_ns - (r->last_ns ? r->began_ns : 0);
		char took[QUANTITY_TEXT];

		seconds_print(took_ns, 9, took);
		printf("summary retry %s%s%s %s records %" PRIu64 " sent %" PRIu64
		       " refused %" PRIu64,
		       sim->fleet ? r->place->host->name : "", sim->fleet ? " " : "",
		       r->place->path, r->gated ? "gated" : "naive", r->records, r->sent,
		       r->refused);
		if (!r->gated)
			printf(" rounds %" PRIu64, r->rounds);
		if (r->left)
			printf(" left %" PRIu64, r->left);
		printf(" took %s\n", took);
	}
}

void retry_free(struct sim *sim)
{
	while (sim->retries) {
		struct retry *next = sim->retries->next;

		free(sim->retries);
		sim->retries = next;
	}
}
