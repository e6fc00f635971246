/*
 * slot - programs that open slots, see slot.h.
 *
 * `open PATH/slot as NAME`, or PATH/slot,within=D, `number NAME` and `close NAME`; and workers that
 * hold a slot while they work, and open the next: for as long as they work, and as the service
 * behind the limiter takes, if there is one.
 *
 * After each step as many slots are in use as are held, and no opener waits that could have one. No
 * number below those that there are is told to two whose slots are open, on any hosts, unless one
 * was told that its slot is lost. A host that is paused can tell nothing.
 */
#include "tests/sim/books/answers.h"
#include "tests/sim/books/common.h"
#include "tests/sim/books/slot_order.h"
#include "tests/sim/base/memory.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/actors/service.h"
#include "tests/sim/actors/slot.h"
#include "tests/sim/world/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opener {
	struct reader reader; /* first */
	struct slot slot;
	struct opener *next, *previous; /* all of its host that hold one */
	uint64_t within_ns;		/* so long it waits at most */
	uint32_t told;			/* the number that it was told, and 1; 0: none */
	bool lost;			/* it was told so */

	/* A worker's. */
	struct occurrence turn;
	bool works, numbered;
	bool called; /* the service has its request */
	uint64_t work_ns;
	uint64_t until_ns;
};

static struct opener *opener_of(struct occurrence *turn)
{
	return (struct opener *)((char *)turn - offsetof(struct opener, turn));
}

static void link_held(struct opener *opener)
{
	struct host *host = opener->reader.place->host;

	if (!opener->slot.limiter->is_key)
		limiter_hold(opener->slot.limiter);
	opener->told = 0;
	opener->lost = false;
	opener->previous = NULL;
	opener->next = host->openers;
	if (opener->next)
		opener->next->previous = opener;
	host->openers = opener;
}

static void unlink_held(struct opener *opener)
{
	if (opener->previous)
		opener->previous->next = opener->next;
	else
		opener->reader.place->host->openers = opener->next;
	if (opener->next)
		opener->next->previous = opener->previous;
	opener->slot.limiter = NULL;
}

static void close_slot(struct opener *opener)
{
	struct host *host = opener->reader.place->host;
	struct limiter *limiter = opener->slot.limiter;
	struct service *service = place_service(opener->reader.place);
	struct memory *before;

	if (!limiter)
		return;
	if (opener->called && service)
		service_leave(service);
	opener->called = false;
	unlink_held(opener);
	opener->slot.limiter = limiter;
	before = host_enter(host);
	slot_order_closed(opener->reader.place);
	engine_slot_close(&host->engine, &opener->slot, true, host_now(host));
	if (!limiter->is_key)
		limiter_drop(limiter);
	host_leave(before);
	reader_leave(&opener->reader);
}

static void drop_worker(struct occurrence *turn)
{
	struct opener *opener = opener_of(turn);

	close_slot(opener);
	reader_free(&opener->reader);
}

void slot_ask(struct sim *sim, struct reader *reader)
{
	struct opener *opener = (struct opener *)reader;
	struct host *host = opener->reader.place->host;
	struct waiter *waiter = &opener->reader.waiter;
	struct asker asker;
	int err = reader_enter(reader);

	opener->reader.check = (struct reader_check){.number = ++sim->asked};
	*waiter = (struct waiter){
		.limiter = opener->reader.place->limiter, .slot = &opener->slot, .is_opener = true};
	if (!err) {
		struct memory *before = host_enter(host);

		if (absence_asker(reader, &asker))
			absence_end(sim, reader, opener->within_ns,
				    engine_return(&host->engine, waiter, &asker, opener->within_ns,
						  host_now(host)));
		if (opener->within_ns != NEVER_NS)
			waiter->expiry = &reader->expiry;
		err = engine_slot_open(&host->engine, waiter, opener->within_ns, host_now(host));
		host_leave(before);
	}
	if (err != -EINPROGRESS) {
		slot_done(sim, &opener->reader, err);
	} else {
		opener->reader.check.state = READER_WAITS;
		reader_line_up(&opener->reader);
		slot_order_waits(sim, &opener->reader);
	}
	host_collect(host);
}

/* Returns the number, and 1, of two whose slots are not lost, if it is the same; else 0. */
static uint32_t common_number(const struct opener *a, const struct opener *b)
{
	const struct limiter *one = a->slot.numbered, *other = b->slot.numbered;

	if (a->lost || b->lost || !a->told || a->told != b->told)
		return 0;
	if (one == other)
		return a->told;
	/* One of them may not have heard yet of a change that moves numbers. */
	if (!one->holding || !other->holding || !one->holding->id ||
	    one->holding->id != other->holding->id ||
	    one->holding->generation != other->holding->generation)
		return 0;
	return a->told;
}

/* @opener was told its number: it is nobody else's. */
static void check_number(struct sim *sim, const struct opener *opener)
{
	const struct limiter *limiter = opener->slot.numbered;
	const struct settings *settings = limiter_settings(limiter);

	/* Those beyond are of each host by itself. */
	if (settings->slots.kind != SLOTS_COUNT || opener->told > settings->slots.count ||
	    settings->enforcement != ENFORCEMENT_ENFORCE)
		return;
	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];
		const struct opener *other = host->openers;

		if (host->state == HOST_DOWN || host->paused)
			continue;
		for (; other; other = other->next) {
			if (other != opener && common_number(opener, other))
				sim_fail(sim, INVARIANT_PIECE, opener->reader.place,
					 "two slots that are open have the same number");
		}
	}
}

/* @opener asks for its number, which stays what it is, or its slot is lost. */
static int ask_number(struct sim *sim, struct opener *opener)
{
	struct memory *before = host_enter(opener->reader.place->host);
	uint32_t number;
	int err = slots_number(&opener->slot, &number);

	host_leave(before);
	opener->lost |= err == -ENODEV;
	if (err == -ENODEV && !opener->slot.lost)
		sim_fail(sim, INVARIANT_PIECE, opener->reader.place,
			 "the number of an open slot was given back");
	if (err)
		return err;
	if (opener->told && opener->told != number + 1)
		sim_fail(sim, INVARIANT_QUEUE, opener->reader.place,
			 "the number of a slot is another one");
	opener->told = number + 1;
	check_number(sim, opener);
	return 0;
}

void slot_number(struct sim *sim, struct opener *opener)
{
	int err = ask_number(sim, opener);
	char text[QUANTITY_TEXT];

	snprintf(text, sizeof(text), "%u", opener->told - 1);
	answers_tell(sim, opener->reader.place->host, opener->reader.name, "number",
		     err ? sim_error_symbol(err) : text);
}

void slots_lose(struct host *host, const struct limiter *limiter, bool all)
{
	for (struct opener *opener = host->openers; opener; opener = opener->next) {
		const struct limiter *l = opener->slot.limiter;

		while (l && l != limiter)
			l = l->parent;
		if (!l || (!all && !slots_is_lost(&opener->slot)))
			continue;
		opener->slot.lost = true;
		opener->lost = true;
	}
}

/* The slot is there: calls the service, and comes back when the work is done. */
static void begin_work(struct sim *sim, struct opener *opener)
{
	struct place *place = opener->reader.place;
	struct service *service = place_service(place);
	uint64_t span_ns = opener->work_ns;
	struct memory *before;

	if (service) {
		bool ok;

		opener->called = true;
		span_ns += service_work(service, sim->now_ns, &ok);
		if (!ok) {
			before = host_enter(place->host);
			slots_throttled(&place->host->engine.schedule, opener->slot.limiter);
			host_leave(before);
			slot_order_tuned(place);
		}
	}
	sim_later(sim, place->host, &opener->turn, sim->now_ns + span_ns);
}

static void end_work(struct sim *sim, struct occurrence *turn)
{
	struct opener *opener = opener_of(turn);
	struct host *host = opener->reader.place->host;

	if (opener->numbered && opener->slot.limiter)
		(void)ask_number(sim, opener);
	close_slot(opener);
	/* An opener that has waited for it comes first. */
	host_collect(host);
	if (sim->now_ns < opener->until_ns)
		slot_ask(sim, &opener->reader);
	else
		reader_free(&opener->reader);
	host_collect(host);
}

/* A slot of a key was opened: there are no more than key_concurrency. */
static void check_key(struct sim *sim, const struct place *key)
{
	if (key->settings.enforcement == ENFORCEMENT_ENFORCE &&
	    slots_used(key->limiter) > key->parent->settings.key_concurrency)
		sim_fail(sim, INVARIANT_QUEUE, key, "more slots of a key are open than may be");
}

/*
 * @opener was answered with @err: one that allows itself a time is refused no sooner, nor does it
 * wait longer, but for a search of leases, or while its host is paused.
 */
static void check_time(struct sim *sim, const struct opener *opener, int err)
{
	const struct reader *reader = &opener->reader;
	bool waited = reader->check.state == READER_WAITS;
	uint64_t now_ns = host_now(reader->place->host), within_ns = opener->within_ns;
	uint64_t ns = waited ? now_ns - reader->waiter.asked_ns : 0;
	uint64_t most_ns = within_ns > ENGINE_PATIENCE_NS ? within_ns : ENGINE_PATIENCE_NS;

	/* A clock that is fast leaves a nanosecond out now and then, see clock.h. */
	if (within_ns != NEVER_NS && ns > most_ns + 1 && !reader->place->host->resumes)
		sim_fail(sim, INVARIANT_QUEUE, reader->place, "an opener waited for too long");
	if (err == -EAGAIN && (within_ns == NEVER_NS || ns < within_ns))
		sim_fail(sim, INVARIANT_QUEUE, reader->place, "an opener was refused too soon");
}

void slot_done(struct sim *sim, struct reader *reader, int err)
{
	struct opener *opener = (struct opener *)reader;
	const struct waiter *first;
	const struct host *host = reader->place->host;

	check_time(sim, opener, err);
	if (err == -EAGAIN)
		err = -EBUSY; /* as the mount tells it */
	if (!err)
		slot_order_opened(sim, reader);
	if (reader->check.state == READER_WAITS) {
		reader_leave_line(reader);
		slot_order_leaves(reader);
	}
	reader->check.state = READER_GONE;
	if (err) {
		answers_refuse(sim, host, reader->name, err);
		reader_leave(reader);
		reader_free(reader);
		return;
	}
	first = queue_first(&opener->slot.limiter->slots->turns.queue);
	if (first && first->ticket < reader->waiter.ticket)
		sim_fail(sim, INVARIANT_QUEUE, reader->place,
			 "a slot went to an opener that came later");
	if (reader->place->is_key)
		check_key(sim, reader->place);
	link_held(opener);
	if (!sim->terse)
		answers_tell(sim, host, reader->name, "granted", "slot");
	if (opener->numbered)
		(void)ask_number(sim, opener);
	if (opener->works)
		begin_work(sim, opener);
}

static struct opener *opener_new(struct sim *sim, struct place *place, char *name,
				 uint64_t within_ns)
{
	struct reader *reader = reader_new(sim, place, name, sizeof(struct opener));
	struct opener *opener = (struct opener *)reader;

	opener->within_ns = within_ns;
	return opener;
}

void slot_open(struct sim *sim, struct place *place, const char *name, uint64_t within_ns)
{
	char *copy = memory_text(name, strlen(name));

	slot_ask(sim, &opener_new(sim, place, copy, within_ns)->reader);
}

void slot_worker(struct sim *sim, struct place *place, char *name, const struct command *command)
{
	struct opener *opener = opener_new(sim, place, name, NEVER_NS);

	opener->works = true;
	opener->numbered = command->numbered;
	opener->work_ns = command->span_ns;
	opener->until_ns = command->until_ns;
	opener->turn = (struct occurrence){.happens = end_work, .dropped = drop_worker};
	sim_later(sim, place->host, &opener->turn, sim->now_ns);
}

struct opener *slot_named(const struct sim *sim, const char *name)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct opener *opener = sim->hosts[i].openers;

		for (; opener; opener = opener->next) {
			if (!opener->works && !strcmp(opener->reader.name, name))
				return opener;
		}
	}
	return NULL;
}

struct host *slot_host(const struct opener *opener)
{
	return opener->reader.place->host;
}

void slot_close(struct sim *sim, struct opener *opener)
{
	struct host *host = slot_host(opener);

	close_slot(opener);
	answers_tell(sim, host, opener->reader.name, "closed", "");
	reader_free(&opener->reader);
	host_collect(host);
}

void slots_close_all(struct host *host)
{
	while (host->openers) {
		struct opener *opener = host->openers;

		close_slot(opener);
		if (!opener->works)
			reader_free(&opener->reader);
	}
}

void slots_vanish(struct host *host)
{
	while (host->openers) {
		struct opener *opener = host->openers;
		struct service *service = place_service(opener->reader.place);

		if (opener->called && service)
			service_leave(service);
		unlink_held(opener);
		if (opener->reader.inside)
			opener->reader.place->readers--;
		opener->reader.inside = false;
		if (!opener->works)
			reader_free(&opener->reader);
	}
}

uint32_t slots_tell(const struct host *host, struct held_slot list[HOST_SLOTS_MAX])
{
	const struct opener *opener = host->openers;
	uint32_t count = 0;

	while (opener && opener->next)
		opener = opener->next;
	for (; opener && count < HOST_SLOTS_MAX; opener = opener->previous) {
		const struct limiter *limiter = opener->slot.limiter;
		uint64_t id = (limiter->is_key ? limiter->parent : limiter)->holding->id;
		uint32_t of_limiter = 0;

		for (uint32_t i = 0; i < count; i++)
			of_limiter += list[i].slot.id == id;
		if (of_limiter < HOST_SLOTS_OF_LIMITER_MAX)
			list[count++] = (struct held_slot){
				.slot = {.id = id,
					 .pid = (uint32_t)opener->reader.check.number,
					 .command = "program"},
				.opened_ns = opener->slot.opened_ns};
	}
	return count;
}

static bool is_free(const struct limiter *limiter)
{
	if (limiter->settings->enforcement == ENFORCEMENT_CLOSED)
		return false;
	return limiter->settings->enforcement != ENFORCEMENT_ENFORCE ||
	       slots_used(limiter) < slots_limit(limiter);
}

static bool could_have_one(const struct limiter *limiter)
{
	for (; limiter; limiter = limiter->parent) {
		if (!is_free(limiter))
			return false;
	}
	return true;
}

static bool is_in(const struct place *place, const struct place *in)
{
	for (; place; place = place->parent) {
		if (place == in)
			return true;
	}
	return false;
}

/*
 * In a fleet the slots that hosts may open come to no more than are set; while a change is on its
 * way, than the most of what is set anywhere. A host that is paused opens none.
 */
static void check_sum(struct sim *sim, const struct place *place)
{
	uint32_t most = 0;
	uint64_t sum = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];

		if (host->state == HOST_DOWN || host->paused)
			continue;
		for (const struct place *p = host->places; p; p = p->next) {
			const struct holding *holding;

			if (!p->limiter || !p->common || p->is_key ||
			    p->common->first != place->common->first)
				continue;
			holding = p->limiter->holding;
			if (holding->settings->slots.kind != SLOTS_COUNT ||
			    p->limiter->settings->enforcement != ENFORCEMENT_ENFORCE ||
			    holding->degraded)
				return;
			sum += slots_limit(p->limiter);
			most = holding->settings->slots.count > most
				       ? holding->settings->slots.count
				       : most;
		}
	}
	if (sum > most)
		sim_fail(sim, INVARIANT_QUEUE, place,
			 "over the fleet more slots may be opened than are set");
}

void slots_check(struct host *host)
{
	struct sim *sim = host->sim;

	for (struct place *p = host->places; p && !sim->failed; p = p->next) {
		uint32_t held = 0;

		if (!p->limiter || !p->limiter->slots)
			continue;
		for (const struct opener *o = host->openers; o; o = o->next)
			held += is_in(o->reader.place, p);
		if (held != slots_used(p->limiter))
			sim_fail(sim, INVARIANT_QUEUE, p,
				 "not as many slots are in use as are held");
		if (slots_waiting(p->limiter) && !host->engine.schedule.stopped &&
		    could_have_one(p->limiter))
			sim_fail(sim, INVARIANT_QUEUE, p, "one waits for a slot that is free");
		if (host->fleet && p->common && !p->is_key && p->slots != slots_limit(p->limiter))
			check_sum(sim, p);
		p->slots_sum += (double)p->slots * (double)(sim->now_ns - p->slots_ns);
		p->slots_ns = sim->now_ns;
		p->slots = slots_limit(p->limiter);
		if (p->slots == UINT32_MAX)
			p->slots = 0; /* not set yet */
	}
}

void slots_print(struct sim *sim, struct place *place, const struct command *command)
{
	uint64_t span_ns = sim->now_ns - place->slots_since_ns;

	(void)command;
	slots_check(place->host);
	sim_print(sim, place->host, "slots %s mean %.2f", place->path,
		  span_ns ? place->slots_sum / (double)span_ns : 0);
	place->slots_sum = 0;
	place->slots_since_ns = sim->now_ns;
}
