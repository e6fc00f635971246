/* engine - THE entry: one step per event, see engine.h. */
#include "core/limiter/admission.h"
#include "core/limiter/change.h"
#include "core/limiter/forecast.h"
#include "core/limiter/holding.h"
#include "core/limiter/partition.h"
#include "core/limiter/rouse.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

int engine_init(struct engine *engine, struct source *source, const struct owner *root,
		uint64_t now_ns)
{
	*engine = (struct engine){.source = source, .began_ns = now_ns};
	engine->schedule.now_ns = now_ns;
	engine->schedule.users = &engine->users;
	pool_init(&engine->schedule.pool, engine->schedule.key_seed);
	engine->schedule.pool.wall.now_ns = &engine->schedule.now_ns;
	memcpy(engine->users.bounds, BOUNDS_DEFAULT, sizeof(BOUNDS_DEFAULT));
	if (tree_init(&engine->tree))
		return -ENOMEM;
	engine->tree.root->uid = root->uid;
	engine->tree.root->gid = root->gid;
	engine->tree.root->access = root->access;
	return 0;
}

static void remove_all_below(struct schedule *schedule, struct limiter *limiter)
{
	partition_remove_all(schedule, limiter);
	keys_remove(schedule, limiter);
	for (struct limiter *l = limiter->first_child; l; l = l->next_sibling)
		remove_all_below(schedule, l);
}

void engine_free(struct engine *engine)
{
	assert(!engine->waiting && !engine->change);
	remove_all_below(&engine->schedule, engine->tree.root);
	keys_free(&engine->schedule);
	tree_free(&engine->tree);
	users_free(&engine->users);
	parking_free(&engine->schedule.parking);
}

static struct waiter *waiter_of_expiry(struct heap_node *node)
{
	return container_of(node, struct expiry, node)->waiter;
}

/* Finds the limiter that is due first, or the poller whose tokens go back first. NULL: none. */
static struct heap_node *first_deadline(const struct schedule *schedule)
{
	return schedule->frozen ? NULL : schedule->deadlines.root;
}

static const struct poller *first_called(const struct schedule *schedule)
{
	return schedule->frozen ? NULL : list_first(&schedule->called, struct poller, called);
}

static uint64_t next_due_ns(const struct engine *engine)
{
	const struct heap_node *deadline = first_deadline(&engine->schedule);
	const struct heap_node *expiry = engine->schedule.expiries.root;
	const struct poller *called = first_called(&engine->schedule);
	uint64_t next_ns = deadline ? deadline->key : NEVER_NS;

	if (called && called->until_ns < next_ns)
		next_ns = called->until_ns;
	return expiry && expiry->key < next_ns ? expiry->key : next_ns;
}

uint64_t engine_next_ns(const struct engine *engine)
{
	uint64_t next_ns = next_due_ns(engine), source_ns = NEVER_NS;
	uint64_t forget_ns = keys_next_ns(&engine->schedule);

	if (forget_ns < next_ns)
		next_ns = forget_ns;
	if (engine_is_thawing(engine) && engine->thaw_ns < next_ns)
		next_ns = engine->thaw_ns;
	if (engine->source->next_ns)
		source_ns = engine->source->next_ns(engine->source);
	return source_ns < next_ns ? source_ns : next_ns;
}

/* Tells whether more is due at this instant: tokens that go back, or a limiter. */
static bool is_due(const struct schedule *schedule)
{
	const struct poller *called = first_called(schedule);
	const struct heap_node *deadline = first_deadline(schedule);

	return (called && called->until_ns <= schedule->now_ns) ||
	       (deadline && deadline->key <= schedule->now_ns);
}

static void settle_gathered(struct schedule *schedule)
{
	struct heap_node *gathered;

	while ((gathered = schedule->gathered.root))
		limiter_settle(schedule, limiter_of_due(gathered));
}

/*
 * Settles @limiter, which is due; NULL: that of the poller whose tokens go back. If more is due at
 * this instant nothing is granted before all of it has been put forward: settle_gathered().
 */
static void settle_due(struct schedule *schedule, struct limiter *limiter)
{
	schedule->gathers = !limiter || is_due(schedule);
	if (limiter)
		limiter_settle(schedule, limiter);
	else
		limiter_uncall(schedule);
	schedule->gathers = false;
}

void engine_run(struct engine *engine, uint64_t now_ns)
{
	struct schedule *schedule = &engine->schedule;
	uint64_t earliest_ns = now_ns > ENGINE_CATCH_UP_NS ? now_ns - ENGINE_CATCH_UP_NS : 0;
	uint64_t next_ns;

	engine->refused_by = SETTING_COUNT;
	schedule->step_ns = now_ns;
	if (engine->source->before)
		engine->source->before(engine->source, now_ns);
	while ((next_ns = next_due_ns(engine)) <= now_ns && next_ns != NEVER_NS) {
		struct heap_node *deadline = first_deadline(schedule);
		const struct poller *called = first_called(schedule);
		uint64_t at_ns = next_ns > earliest_ns ? next_ns : earliest_ns;

		if (at_ns > schedule->now_ns)
			schedule->now_ns = at_ns;
		/*
		 * Of what is due at this instant, tokens that go back and deadlines are gathered.
		 * Expiries come after them: a reader is served at the very end of the time it
		 * allows.
		 */
		if (called && called->until_ns == next_ns) {
			settle_due(schedule, NULL);
		} else if (deadline && deadline->key == next_ns) {
			heap_remove(&schedule->deadlines, deadline);
			settle_due(schedule, limiter_of_due(deadline));
		} else {
			limiter_expire(schedule, waiter_of_expiry(schedule->expiries.root));
		}
		/* The last that was due may have been a reader whose time was up. */
		if (!schedule->frozen && !is_due(schedule))
			settle_gathered(schedule);
	}
	if (now_ns > schedule->now_ns)
		schedule->now_ns = now_ns;
	if (keys_next_ns(schedule) <= schedule->now_ns)
		keys_run(schedule);
	if (engine->source->after)
		engine->source->after(engine->source, schedule->now_ns);
}

/* Returns the time @within_ns after @at_ns, or NEVER_NS. */
static uint64_t time_after(uint64_t at_ns, uint64_t within_ns)
{
	return within_ns < NEVER_NS - at_ns ? at_ns + within_ns : NEVER_NS;
}

/* Counts a read of @tokens of @limiter that is refused. */
static void count_refusal(struct engine *engine, struct limiter *limiter, uint64_t tokens)
{
	limiter->counters[COUNTER_REFUSED]++;
	rouse_for_missing(engine, limiter, tokens);
}

/* Grants the tokens of @waiter, whose limiter is there, if they can be had now. */
static bool take_now(struct engine *engine, struct waiter *waiter)
{
	if (!limiter_try(&engine->schedule, waiter))
		return false;
	if (rouse_is_news(waiter->limiter))
		rouse_path(engine, waiter->limiter);
	return true;
}

static int ask_for_tokens(struct engine *engine, struct waiter *waiter, uint64_t within_ns)
{
	struct schedule *schedule = &engine->schedule;
	struct limiter *limiter = waiter->limiter;
	uint64_t asked_ns = waiter->place ? waiter->asked_ns : schedule->now_ns;
	uint64_t expiry_ns = waiter->expiry ? time_after(asked_ns, within_ns) : NEVER_NS;
	enum setting_id bound;

	if (limiter->removed)
		return -ENODEV;
	if (engine->waiting >= ENGINE_WAITERS_MAX)
		return -ENOSPC;
	bound = admission_bound(engine, waiter);
	if (bound != SETTING_COUNT) {
		if (take_now(engine, waiter))
			return 0;
		admission_refuse(engine, limiter, bound);
		count_refusal(engine, limiter, waiter->tokens);
		return -EBUSY;
	}
	if (!admission_may_wait(engine, waiter, expiry_ns)) {
		count_refusal(engine, limiter, waiter->tokens);
		return -EAGAIN;
	}
	if (waiter->expiry) {
		waiter->expiry->at_ns = expiry_ns;
		expiry_ns = admission_until_ns(engine, limiter, asked_ns, expiry_ns);
	}
	if (limiter_ask(schedule, waiter, expiry_ns)) {
		if (rouse_is_news(limiter))
			rouse_path(engine, limiter);
		return 0;
	}
	engine->waiting++;
	rouse_for_missing(engine, limiter, waiter->tokens);
	return -EINPROGRESS;
}

void engine_give_up(struct engine *engine, struct waiter *waiter)
{
	if (waiter->place)
		parking_free_place(&engine->schedule.parking, waiter);
}

/* Ends the asking of @waiter unless it waits. */
static int end_asking(struct engine *engine, struct waiter *waiter, int err)
{
	if (err != -EINPROGRESS)
		engine_give_up(engine, waiter);
	return err;
}

int engine_ask(struct engine *engine, struct waiter *waiter, uint64_t within_ns, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	return end_asking(engine, waiter, ask_for_tokens(engine, waiter, within_ns));
}

/* Gives the waiter of @read the place that is parked for its asker, if there is one. */
static bool take_place(struct engine *engine, const struct token_read *read, struct waiter *waiter)
{
	return read->asker && engine_return(engine, waiter, read->asker,
					    read->manner == READ_BLOCKING ? read->within_ns : 0,
					    engine->schedule.now_ns);
}

/*
 * Refuses @read, which would not wait, or has it wait a little. -EAGAIN means that O_NONBLOCK alone
 * forbids the wait, as POSIX has it: runtimes hide it, and poll or read again. A refusal by the
 * file itself is -EBUSY, which they report.
 */
static int refuse_or_wait(struct engine *engine, const struct token_read *read,
			  struct read_wait *wait)
{
	/* Its own poller would have the first of the tokens that come. */
	bool is_polled = wait->waiter.is_polled;
	uint64_t until_ns = time_after(engine->schedule.now_ns, read->within_ns);
	enum setting_id bound = SETTING_COUNT;

	if (read->manner == READ_NONBLOCKING && !is_polled)
		bound = admission_bound(engine, &wait->waiter);
	if (bound != SETTING_COUNT)
		admission_refuse(engine, read->limiter, bound);
	else if (read->manner == READ_NONBLOCKING &&
		 (is_polled || admission_may_wait(engine, &wait->waiter, until_ns)))
		wait->refusal = -EAGAIN;
	if (wait->refusal == -EAGAIN &&
	    !limiter_can_hold(read->limiter, read->tokens, read->amounts))
		return -EINVAL;
	if (bound == SETTING_COUNT && !is_polled && rouse_may_come(engine, read->limiter)) {
		wait->within_ns = 0;
		return -EINPROGRESS;
	}
	count_refusal(engine, read->limiter, read->tokens);
	return wait->refusal;
}

int engine_read(struct engine *engine, const struct token_read *read, struct read_wait *wait,
		uint64_t now_ns)
{
	struct poller *poller = read->poller;
	bool has_place;

	engine_run(engine, now_ns);
	if (read->limiter->removed)
		return -ENODEV;
	*wait = (struct read_wait){
		.waiter = {.limiter = read->limiter,
			   .tokens = read->tokens,
			   .most = read->most,
			   .amounts = read->amounts,
			   .is_admitted = read->again,
			   .is_polled = poller && poller->state == POLLER_WAITS},
		.within_ns = read->within_ns,
		.refusal = -EBUSY,
	};
	if (poller && poller_fetch(&engine->schedule, poller)) {
		wait->waiter.granted = poller->waiter.granted;
		return 0;
	}
	/* A waiter with a place goes back there: it overtakes no waiter before it. */
	has_place = take_place(engine, read, &wait->waiter);
	if (!has_place && take_now(engine, &wait->waiter)) {
		if (poller)
			poller->late = false;
		return 0;
	}
	if (!has_place && !limiter_can_ever(read->limiter, read->tokens, read->amounts))
		return -EINVAL;
	if (poller && poller->late) {
		/* Its refusal was counted when the time was up. */
		poller->late = false;
		engine_give_up(engine, &wait->waiter);
		return -EBUSY;
	}
	return read->manner == READ_BLOCKING ? -EINPROGRESS : refuse_or_wait(engine, read, wait);
}

/* Returns when the time is up that @poller, which asks now, allows; or NEVER_NS. */
static uint64_t poller_expiry_ns(const struct engine *engine, const struct poller *poller)
{
	return poller->waiter.expiry ? time_after(engine->schedule.now_ns, poller->within_ns)
				     : NEVER_NS;
}

/* Returns until when @poller, which asks now, waits. */
static uint64_t poller_until_ns(const struct engine *engine, struct poller *poller)
{
	struct expiry *expiry = poller->waiter.expiry;

	if (!expiry)
		return NEVER_NS;
	expiry->at_ns = poller_expiry_ns(engine, poller);
	return admission_until_ns(engine, poller->waiter.limiter, engine->schedule.now_ns,
				  expiry->at_ns);
}

bool engine_poll(struct engine *engine, struct poller *poller, uint64_t now_ns)
{
	struct schedule *schedule = &engine->schedule;
	struct limiter *limiter = poller->waiter.limiter;
	const struct amounts *amounts = poller->waiter.amounts;
	uint64_t tokens = poller->waiter.tokens;

	engine_run(engine, now_ns);
	if (poller->state == POLLER_WAITS)
		return false;
	if (poller->state == POLLER_CALLED || poller->answered || poller->late ||
	    limiter->removed || !limiter_can_hold(limiter, tokens, amounts) ||
	    (!schedule->frozen &&
	     limiter_when(schedule, limiter, tokens, amounts) <= schedule->now_ns) ||
	    admission_bound(engine, &poller->waiter) != SETTING_COUNT ||
	    !admission_may_wait(engine, &poller->waiter, poller_expiry_ns(engine, poller)))
		return true;
	limiter_poll(schedule, poller, poller_until_ns(engine, poller));
	rouse_for_missing(engine, limiter, tokens);
	return poller->state == POLLER_CALLED;
}

void engine_unpoll(struct engine *engine, struct poller *poller, uint64_t now_ns)
{
	if (poller->state == POLLER_AWAY && !poller->answered)
		return;
	/* Tokens that were kept for it go back as of now, and may be the next waiter's. */
	engine_run(engine, now_ns);
	limiter_unpoll(&engine->schedule, poller);
}

/*
 * Looks whether slots may be there soon for an opener that has begun to wait with an expiry: for
 * these its time was extended. -EINPROGRESS; or -EAGAIN: there are none, and its time is up.
 */
static int look_for_slots(struct engine *engine, struct waiter *waiter)
{
	struct schedule *schedule = &engine->schedule;

	if (waiter->outcome != -EINPROGRESS || schedule->frozen ||
	    rouse_slots_may_come(engine, waiter->limiter))
		return -EINPROGRESS;
	if (waiter->expiry->at_ns > schedule->now_ns) {
		limiter_hasten_waiter(schedule, waiter);
		return -EINPROGRESS;
	}
	slots_refuse(schedule, waiter);
	engine->waiting--;
	return -EAGAIN;
}

static int ask_for_slot(struct engine *engine, struct waiter *waiter, uint64_t within_ns)
{
	struct limiter *limiter = waiter->limiter;
	uint64_t asked_ns = waiter->place ? waiter->asked_ns : engine->schedule.now_ns;
	uint64_t expiry_ns = NEVER_NS;
	int err;

	if (limiter->removed)
		return -ENODEV;
	if (engine->waiting >= ENGINE_WAITERS_MAX)
		return -ENOSPC;
	if (!waiter->place && !waiter->is_admitted && (!waiter->expiry || within_ns) &&
	    slots_waiting(limiter) >= limiter->settings->queue_max) {
		err = slots_try(&engine->schedule, limiter, waiter->slot);
		if (err == -EAGAIN) {
			admission_refuse(engine, limiter, SETTING_QUEUE_MAX);
			err = -EBUSY;
		}
		rouse_for_slots(engine, limiter);
		return err;
	}
	if (waiter->expiry) {
		waiter->expiry->at_ns = time_after(asked_ns, within_ns);
		expiry_ns = time_after(
			asked_ns, within_ns > ENGINE_PATIENCE_NS ? within_ns : ENGINE_PATIENCE_NS);
	}
	err = slots_open(&engine->schedule, waiter, expiry_ns);
	if (err == -EINPROGRESS)
		engine->waiting++;
	if (!err || err == -EINPROGRESS)
		rouse_for_slots(engine, limiter);
	return err == -EINPROGRESS && waiter->expiry ? look_for_slots(engine, waiter) : err;
}

int engine_slot_open(struct engine *engine, struct waiter *waiter, uint64_t within_ns,
		     uint64_t now_ns)
{
	engine_run(engine, now_ns);
	return end_asking(engine, waiter, ask_for_slot(engine, waiter, within_ns));
}

int engine_slot_try(struct engine *engine, struct limiter *limiter, struct slot *slot,
		    uint64_t now_ns)
{
	int err;

	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	err = slots_try(&engine->schedule, limiter, slot);
	rouse_for_slots(engine, limiter);
	return err;
}

void engine_slot_close(struct engine *engine, struct slot *slot, bool used, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	slots_close(&engine->schedule, slot, used);
}

void engine_stop(struct engine *engine)
{
	engine->schedule.stopped = true;
}

void engine_freeze(struct engine *engine)
{
	engine->schedule.frozen = true;
	engine->thaw_ns = NEVER_NS;
	parking_freeze(&engine->schedule.parking);
}

void engine_thaw(struct engine *engine, uint64_t now_ns)
{
	engine->thaw_ns = now_ns + PARKING_NS;
	parking_thaw(&engine->schedule.parking, engine->thaw_ns);
}

void engine_go_on(struct engine *engine, uint64_t now_ns)
{
	struct schedule *schedule = &engine->schedule;
	struct poller *called;

	if (!engine_is_thawing(engine) ||
	    (now_ns < engine->thaw_ns && parking_has_any(&schedule->parking)))
		return;
	engine_run(engine, now_ns);
	schedule->frozen = false;
	called = list_first(&schedule->called, struct poller, called);
	for (; called; called = list_next(called, called))
		called->until_ns = schedule->now_ns + POLLER_NS;
	/* All that is ready was put forward to the limiters at the top meanwhile. */
	for (struct limiter *l = engine->tree.root->first_child; l; l = l->next_sibling)
		turns_settle(schedule, l, &SLOTS_TURNS);
	settle_gathered(schedule);
	engine_run(engine, now_ns);
}

static void cancel_waiter(struct engine *engine, struct waiter *waiter)
{
	/* Then it may be the turn of another waiter, which needs what counts now. */
	if (engine->source->before)
		engine->source->before(engine->source, engine->schedule.now_ns);
	turns_cancel(&engine->schedule, waiter, waiter->is_opener ? &SLOTS_TURNS : &LIMITER_TURNS);
	engine->waiting--;
}

void engine_cancel(struct engine *engine, struct waiter *waiter)
{
	cancel_waiter(engine, waiter);
	engine_give_up(engine, waiter);
}

/* Names the queue of @limiter, which is not removed, also for a successor. */
static struct parking_site site_of(const struct limiter *limiter)
{
	bool is_part = limiter->is_key || limiter->partition;

	return (struct parking_site){
		.key = limiter->is_key ? keys_key(limiter)->id : 0,
		.limiter = is_part ? limiter->parent->id : limiter->id,
		.partition = limiter->partition,
	};
}

void engine_interrupt(struct engine *engine, struct waiter *waiter, const struct asker *asker,
		      uint64_t now_ns)
{
	struct parking_site site = site_of(waiter->limiter);

	engine->schedule.parks = waiter->ticket;
	cancel_waiter(engine, waiter);
	engine->schedule.parks = 0;
	(void)parking_park(&engine->schedule.parking, waiter, &site, asker, now_ns);
}

bool engine_return(struct engine *engine, struct waiter *waiter, const struct asker *asker,
		   uint64_t within_ns, uint64_t now_ns)
{
	struct parking *parking = &engine->schedule.parking;
	struct parking_site site;

	if (!parking_has_any(parking) || waiter->limiter->removed)
		return false;
	site = site_of(waiter->limiter);
	return parking_resume(parking, waiter, &site, asker, within_ns, now_ns);
}

void engine_refund(struct engine *engine, struct limiter *limiter, uint64_t tokens,
		   const struct amounts *amounts, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	if (!limiter->removed)
		limiter_refund(&engine->schedule, limiter, tokens, amounts);
}

/* Tells whether each of @amounts is of a unit in the path of @limiter. */
static bool are_known(const struct limiter *limiter, const struct amounts *amounts)
{
	for (uint64_t i = 0; i < amounts->count; i++) {
		if (!units_know(limiter, false, amounts->of[i].unit))
			return false;
	}
	return true;
}

int engine_charge(struct engine *engine, struct limiter *limiter, const struct charge *charge,
		  uint64_t now_ns)
{
	int64_t tokens = charge->tokens;

	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	if (!are_known(limiter, &charge->taken) || !are_known(limiter, &charge->returned))
		return -EINVAL;
	if ((tokens < 0 && !limiter_owes(limiter, (uint64_t)-tokens)) ||
	    !units_owe(limiter, &charge->returned))
		return -ERANGE;
	limiter_charge(&engine->schedule, limiter, charge);
	return 0;
}

/* Gets the memory in which @outcome, told to @limiter, is noted. False: there is none. */
static bool get_memory_for(const struct engine *engine, struct limiter *limiter,
			   const struct outcome *outcome)
{
	if (!outcome_tells_quota(outcome))
		return true;
	if (!limiter->learning)
		limiter->learning = learning_new(engine->began_ns ^ engine->schedule.now_ns);
	return limiter->learning && (!*outcome->unit || learning_get_units(limiter->learning));
}

int engine_feedback(struct engine *engine, struct limiter *limiter, const struct outcome *outcomes,
		    size_t count, uint64_t now_ns)
{
	bool tells = false;

	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	for (size_t i = 0; i < count; i++) {
		if (*outcomes[i].unit &&
		    !settings_have_unit(limiter_settings(limiter), outcomes[i].unit))
			return -EINVAL;
	}
	for (size_t i = 0; i < count; i++) {
		if (!get_memory_for(engine, limiter, &outcomes[i]))
			return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		limiter_hear(&engine->schedule, limiter, &outcomes[i]);
		tells |= outcome_tells_quota(&outcomes[i]);
	}
	limiter_settle(&engine->schedule, limiter);
	if (tells)
		rouse_for_told(engine, limiter);
	return 0;
}

uint64_t engine_eta(struct engine *engine, struct limiter *limiter, uint64_t tokens,
		    const struct amounts *amounts, uint64_t now_ns)
{
	uint64_t at_ns;

	engine_run(engine, now_ns);
	at_ns = limiter_when(&engine->schedule, limiter, tokens, amounts);
	/* A reader that came now would get partitions first, as far as there are some. */
	if (at_ns == NEVER_NS && limiter_can_ever(limiter, tokens, amounts) &&
	    rouse_may_come(engine, limiter))
		at_ns = forecast_leased(limiter, tokens, amounts, engine->schedule.now_ns);
	return at_ns == NEVER_NS ? NEVER_NS : at_ns - engine->schedule.now_ns;
}

void engine_refresh(struct engine *engine, struct limiter *limiter, uint64_t now_ns)
{
	engine_run(engine, now_ns);
	(void)limiter_when(&engine->schedule, limiter, 0, NULL);
}

int engine_key(struct engine *engine, struct limiter *limiter, const char *name, uint32_t uid,
	       uint64_t now_ns, struct key **key)
{
	engine_run(engine, now_ns);
	if (limiter->removed)
		return -ENODEV;
	return keys_get(&engine->schedule, limiter, name, uid, key);
}

struct waiter *engine_done(struct engine *engine)
{
	struct waiter *waiter = queue_shift(&engine->schedule.done);

	if (waiter && waiter->is_poller)
		poller_of(waiter)->answered = false;
	else if (waiter)
		engine->waiting--;
	return waiter;
}

struct change *engine_changed(struct engine *engine)
{
	struct change *change = list_first(&engine->changed, struct change, line);

	if (change) {
		list_remove(&engine->changed, &change->line);
		limiter_drop(change->limiter);
	}
	return change;
}
