/*
 * load - readers that come by themselves: arrivals at a steady rate, and workers in a loop.
 *
 * Reader k (0, 1, ...) of a load arrives at its start + k / RATE, rounded up to a nanosecond, if
 * that is before its end. Readers of a Poisson load arrive at random, independently of one another:
 * the times between them are distributed exponentially, with the mean 1 / RATE. Those between the
 * readers of a load with jitter differ from 1 / RATE by so many per cent at most, each time as
 * likely as another. A worker works until the service has answered, and for `work` at least. It
 * stops asking at its end; it is still served if it waits then. Either also ends when its limiter
 * is removed. A worker that is a pipe takes as `ratefs pipe` does for input that is always there,
 * in pieces of PACE_PIECE bytes.
 */
#include "companions/pace.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/load.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/books/dues.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct load {
	struct occurrence arrival; /* first */
	struct place *place;
	struct fraction flow;
	uint64_t tokens;
	struct amounts amounts; /* of units, beside them */
	uint64_t began_ns;
	uint64_t until_ns;
	uint64_t arrived;
	bool poisson;
	uint64_t jitter_percent;
	struct random random; /* with either */
	uint64_t arrives_ns;  /* likewise: the last */
	struct place **keys;  /* owned; the reader of each arrival reads the next one */
	uint64_t key_count;
};

#define RANDOM_PARTS (UINT64_C(1) << 53) /* that a double tells apart */

struct worker {
	struct reader reader; /* first */
	struct occurrence turn;
	uint64_t tokens; /* each time */
	uint64_t work_ns;
	uint64_t until_ns;
	bool pipes; /* it takes by its @pace: */
	struct pace pace;
	struct pace_take take; /* the last */
	uint64_t left;	       /* bytes of the piece */
};

static char *make_name(char kind, uint64_t number)
{
	char name[QUANTITY_TEXT];
	int length = snprintf(name, sizeof(name), "%c%llu", kind, (unsigned long long)number);

	return memory_text(name, (size_t)length);
}

static void drop_load(struct occurrence *occurrence)
{
	free(((struct load *)occurrence)->keys);
	free(occurrence);
}

/* Where the next one reads. */
static struct place *place_of(const struct load *load)
{
	return load->keys ? load->keys[load->arrived % load->key_count] : load->place;
}

static void find_keys(struct load *load, uint64_t count)
{
	load->keys = memory_get(count * sizeof(struct place *));
	load->key_count = count;
	for (uint64_t i = 0; i < count; i++) {
		char name[QUANTITY_TEXT];

		snprintf(name, sizeof(name), "k%llu", (unsigned long long)i + 1);
		load->keys[i] = key_of(load->place, name);
		load->keys[i]->is_counted = true;
	}
}

static bool is_random(const struct load *load)
{
	return load->poisson || load->jitter_percent;
}

static uint64_t random_arrival_ns(struct load *load)
{
	/* Above 0, and at most 1. */
	double part = (double)(random_below(&load->random, RANDOM_PARTS) + 1) / RANDOM_PARTS;
	double mean_ns = (double)load->flow.den / (double)load->flow.num;
	double jitter = (double)load->jitter_percent / 100;

	double gap_ns = mean_ns * (load->poisson ? -log(part) : 1 + jitter * (2 * part - 1));

	/* Time passes, however fast they come. */
	load->arrives_ns += (uint64_t)fmax(gap_ns, 1);
	return load->arrives_ns;
}

static uint64_t arrival_ns(struct load *load)
{
	u128 span = (u128)load->arrived * load->flow.den;

	if (is_random(load))
		return random_arrival_ns(load);
	span = span / load->flow.num + (span % load->flow.num != 0);
	return span < NEVER_NS - load->began_ns ? load->began_ns + (uint64_t)span : NEVER_NS;
}

static void arrive(struct sim *sim, struct occurrence *occurrence)
{
	struct load *load = (struct load *)occurrence;
	struct place *place = load->place;
	struct reader *reader;
	uint64_t next_ns;

	if (!place->limiter) {
		drop_load(occurrence);
		return;
	}
	reader = reader_new(sim, place_of(load), make_name('l', ++sim->arrivals), sizeof(*reader));
	load->arrived++;
	next_ns = arrival_ns(load);
	if (next_ns < load->until_ns)
		sim_later(sim, place->host, &load->arrival, next_ns);
	reader->amounts = load->amounts;
	reader_ask(sim, reader, load->tokens, load->tokens, NEVER_NS);
	if (next_ns >= load->until_ns) {
		dues_demand(sim);
		drop_load(occurrence);
	}
}

void load_start(struct sim *sim, struct place *place, const struct command *command)
{
	struct load *load = memory_get(sizeof(*load));
	uint64_t first_ns;

	dues_demand(sim);
	load->arrival = (struct occurrence){.happens = arrive, .dropped = drop_load};
	load->place = place;
	load->flow = rate_fraction(&command->rate);
	load->tokens = command->tokens;
	load->amounts = command->amounts;
	load->began_ns = sim->now_ns;
	load->until_ns = command->until_ns;
	load->poisson = command->poisson;
	load->arrives_ns = load->began_ns;
	load->jitter_percent = command->jitter_percent;
	if (is_random(load))
		load->random.state = random_next(&sim->zookeeper.random);
	if (command->count)
		find_keys(load, command->count);
	first_ns = arrival_ns(load);
	if (first_ns < load->until_ns)
		sim_later(sim, place->host, &load->arrival, first_ns);
	else
		drop_load(&load->arrival);
}

static struct worker *worker_of(struct occurrence *turn)
{
	return (struct worker *)((char *)turn - offsetof(struct worker, turn));
}

static void drop_worker(struct occurrence *turn)
{
	reader_free(&worker_of(turn)->reader);
}

static void pipe_next(struct sim *sim, struct worker *worker)
{
	if (!worker->left) {
		worker->left = PACE_PIECE;
		pace_input(&worker->pace, sim->now_ns);
	}
	worker->take = pace_next(&worker->pace, worker->left);
	reader_ask(sim, &worker->reader, worker->take.least, worker->take.most,
		   worker->take.least > 1 ? PACE_PATIENCE_NS : NEVER_NS);
}

static void take_turn(struct sim *sim, struct occurrence *turn)
{
	struct worker *worker = worker_of(turn);

	if (sim->now_ns >= worker->until_ns ||
	    (!worker->reader.place->limiter && !worker->reader.place->is_key)) {
		dues_demand(sim);
		drop_worker(turn);
	} else if (worker->pipes) {
		pipe_next(sim, worker);
	} else {
		reader_ask(sim, &worker->reader, worker->tokens, worker->tokens, NEVER_NS);
	}
}

static void worked(struct sim *sim, struct reader *reader, int err)
{
	struct worker *worker = (struct worker *)reader;

	if (worker->pipes && err == -EBUSY && worker->take.least > 1) {
		pace_refused(&worker->pace, &worker->take);
		sim_later(sim, reader->place->host, &worker->turn, sim->now_ns);
		return;
	}
	if (worker->pipes && !err) {
		pace_granted(&worker->pace, &worker->take, reader->granted, sim->now_ns);
		worker->left -= reader->granted;
	}
	if (err)
		reader_free(reader);
	else
		sim_later(sim, reader->place->host, &worker->turn,
			  sim->now_ns + (worker->work_ns > reader->answer_ns ? worker->work_ns
									     : reader->answer_ns));
}

static void worker_start(struct sim *sim, struct place *place, char *name,
			 const struct command *command)
{
	struct reader *reader = reader_new(sim, place, name, sizeof(struct worker));
	struct worker *worker = (struct worker *)reader;

	reader->done = worked;
	reader->asks_again = true;
	reader->amounts = command->amounts;
	worker->turn = (struct occurrence){.happens = take_turn, .dropped = drop_worker};
	worker->tokens = command->tokens;
	worker->work_ns = command->span_ns;
	worker->until_ns = command->until_ns;
	worker->pipes = command->pipes;
	worker->pace = PACE_START;
	sim_later(sim, place->host, &worker->turn, sim->now_ns);
}

void load_workers(struct sim *sim, struct place *place, const struct command *command)
{
	dues_demand(sim);
	if (*command->file.key) {
		place = key_of(place, command->file.key);
		place->is_counted = true;
	}
	for (uint64_t i = 0; i < command->count && command->slot; i++)
		slot_worker(sim, place, make_name('w', ++sim->workers), command);
	for (uint64_t i = 0; i < command->count && !command->slot; i++)
		worker_start(sim, place, make_name('w', ++sim->workers), command);
}

void load_stream(struct sim *sim, struct place *place, const char *name)
{
	worker_start(sim, place, memory_text(name, strlen(name)),
		     &(struct command){.tokens = 1, .until_ns = NEVER_NS});
}
