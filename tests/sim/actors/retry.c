/*
 * retry - records to be pushed through the service behind a limiter.
 *
 * `retry PATH N naive|gated [take T]` pushes N records of T units (default 1) through the service:
 *
 *	naive	the limiter is not asked. Once a second, beginning now, all that is left is sent.
 *	gated	each record waits for its T tokens of the limiter, all of them from now on, and is
 *		then sent. One that is throttled waits again, once it has its answer.
 *
 * The summary says how many calls were sent and refused, in how many rounds (naive), and the time
 * from the start to the answer to the last record.
 */
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/retry.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/world/sim.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

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
			accept_record(retry, sim->now_ns + service_latency_ns(service));
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
		reader_ask(sim, &record->reader, record->retry->tokens, record->retry->tokens,
			   NEVER_NS);
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
		reader_ask(sim, reader, retry->tokens, retry->tokens, NEVER_NS);
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
