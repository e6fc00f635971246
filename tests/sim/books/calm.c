/*
 * calm - looks at a fleet every second, and judges it while nothing goes wrong: invariants I3 to
 * I6, see calm_check.h and calm.h.
 *
 * Calm is when no fault is at work, and none was, and no settings changed, since sim->disturbed_ns.
 * Use and shares are of demand that stands still, too. Debts with a time count from then on; use
 * and shares are measured in windows that begin when all those debts are paid. Traffic has its
 * bound always.
 */
#include "tests/sim/books/common.h"
#include "tests/sim/books/dues.h"
#include "tests/sim/invariants/calm_check.h"
#include "tests/sim/actors/reader.h"
#include "tests/sim/books/calm.h"
#include "tests/sim/world/sim.h"

#include "core/limiter/keys.h"

#include <stdio.h>
#include <string.h>

/*
 * Of a limiter whose partitions have no numbers: a host looks for more four times in each R at
 * most, of which a window has 20, and takes two tiles then. Measured: 174 in a window, where 29
 * hosts have readers at random beside a greedy one.
 */
enum { TILES_EACH = 160 };

#define LOOK_NS NSEC_PER_SEC

/* A reader that comes once and waits for so long shows that its host lacks tokens. */
#define LONG_NS (2 * NSEC_PER_SEC)

/* Slower than that is a fault: a search takes several round trips, and a right few seconds. */
#define SLOW_NS UINT64_C(50000000)

/* Before each path in a request. */
enum { LENGTH_BYTES = 4 };

/* Two lease times, after all that is owed is there. */
enum { SETTLED_LEASES = 2 };

static bool is_slow(const struct latency *latency)
{
	return latency->delay_ns + latency->jitter_ns + latency->answers_ns > SLOW_NS;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * Notes how long hosts pause at most before they try to join again: each pause is twice the one
 * before it, so no longer than half of the time for which they have tried in vain (rule 13 of
 * fleet.h).
 */
static void watch_pauses(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];
		uint64_t vain_ns;

		if (host->state == HOST_DOWN || fleet_state(host->fleet) == FLEET_READY)
			host->joined_ns = sim->now_ns;
		if (host->joined_ns >= sim->disturbed_ns ||
		    fleet_state(host->fleet) != FLEET_CONNECTING)
			continue;
		vain_ns = (sim->disturbed_ns - host->joined_ns) / 2;
		if (vain_ns > FLEET_PAUSE_MAX_NS)
			vain_ns = FLEET_PAUSE_MAX_NS;
		sim->pause_ns = later(sim->pause_ns, vain_ns);
	}
}

/* Tells whether something is wrong now. */
static bool is_troubled(const struct sim *sim)
{
	const struct zookeeper *zookeeper = &sim->zookeeper;

	if (zookeeper->electing || zookeeper->hasty || zookeeper->torn || *zookeeper->denied ||
	    zookeeper->lag_ns > SLOW_NS)
		return true;
	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];
		const struct link *link = host->link;

		if (host->state == HOST_DOWN)
			continue;
		if (host->paused || host->state == HOST_LEAVING || link->cut_up || link->cut_down ||
		    host->stalls || link->ambush.armed || is_slow(&link->latency))
			return true;
	}
	return false;
}

/*
 * Tells whether a host has had no room for a lease or a claim since the last look: it goes on with
 * what it has, and owes no more.
 */
static bool lacks_room(struct sim *sim)
{
	bool lacks = false;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];
		uint64_t left_out = host->fleet ? fleet_counters(host->fleet)->left_out : 0;

		lacks = lacks || left_out > host->left_out;
		host->left_out = left_out;
	}
	return lacks;
}

/* The settings of @place, if it and all that it is in are as steady as can be; NULL. */
static const struct settings *steady(const struct sim *sim, const struct place *place)
{
	const struct settings *settings = NULL;

	for (const struct place *p = place; p; p = p->parent) {
		const struct truth *truth = p->common ? truth_of(sim, p->common->id) : NULL;

		if (!truth || !truth->there || truth_is_quoted(sim, truth) ||
		    !calm_check_is_steady(&truth->settings))
			return NULL;
		settings = settings ? settings : &truth->settings;
	}
	return settings;
}

/*
 * Tells whether @reader, of one token, shows that more is wanted: it asks again and again, or has
 * waited for long. Of readers that come at random some may always wait, where a host keeps what
 * they need and no whole partitions.
 */
static bool lacks(const struct sim *sim, const struct reader *reader)
{
	bool is_long = sim->now_ns - reader->since_ns >= LONG_NS;
	bool shows = reader->asks_again || is_long || reader->place->settings.partitions;

	return !reader->waiter.slot && reader->check.tokens == 1 && shows;
}

/*
 * Notes whether readers at each place of @host lack tokens, and the most tokens that a reader waits
 * for in each limiter at the top.
 */
static void count_waiting(const struct sim *sim, struct host *host)
{
	for (struct place *p = host->places; p; p = p->next) {
		p->waits = false;
		p->looked_at = false;
		p->most_tokens = 0;
	}
	for (const struct reader *r = host->readers; r; r = r->next) {
		struct place *top = r->place->top;

		r->place->waits = r->place->waits || lacks(sim, r);
		if (top->most_tokens < r->check.tokens)
			top->most_tokens = r->check.tokens;
	}
}

/*
 * Checks I3: in time a token is granted by the limiter that @reader waits on, or by one in the same
 * limiter at the top.
 */
static void check_reader(struct sim *sim, const struct reader *reader)
{
	const struct place *place = reader->place, *top = place->top;
	const struct settings *settings;
	uint64_t since_ns, tokens, wait_ns = 0;
	char why[WHY_TEXT];

	if (reader->waiter.slot || place->partition || place->is_key || !place->common ||
	    !steady(sim, place))
		return;
	/* Charged tokens are waited for first. */
	tokens = top->most_tokens + top->common->first->charged;
	for (const struct place *p = place; p; p = p->parent) {
		settings = &truth_of(sim, p->common->id)->settings;
		wait_ns = later(
			wait_ns,
			calm_check_wait_ns(settings, &sim->hosts[0].options.constants, tokens));
	}
	since_ns = later(later(sim->disturbed_ns, reader->since_ns),
			 top->common->first->granted_ns);
	if (sim->now_ns - since_ns <= wait_ns + sim->pause_ns)
		return;
	snprintf(why, sizeof(why),
		 "nothing was granted for %.1f s, though %s waits on %s and nothing is wrong: "
		 "%.1f s at most",
		 (double)(sim->now_ns - since_ns) / (double)NSEC_PER_SEC, reader->name,
		 place->host->name, (double)wait_ns / (double)NSEC_PER_SEC);
	sim_fail(sim, INVARIANT_USABLE, place, why);
}

/* The oldest reader of each place. */
static void check_readers(struct sim *sim, struct host *host)
{
	count_waiting(sim, host);
	for (const struct reader *r = host->readers; r && !sim->failed; r = r->next) {
		if (!r->place->looked_at)
			check_reader(sim, r);
		r->place->looked_at = true;
	}
}

/* Begins to count the requests of each host. */
static void begin_traffic(struct sim *sim)
{
	sim->traffic_ns = sim->now_ns;
	for (unsigned int i = 0; i < sim->host_count; i++) {
		struct host *host = &sim->hosts[i];

		if (host->link)
			host->traffic_before = host->link->sent;
		host->life_before = host->life;
		host->limiters = (struct calm_limiters){0};
	}
}

/*
 * Notes how many limiters there are: those that are removed before the window ends have cost
 * requests, too.
 */
static void count_limiters(struct host *host)
{
	struct calm_limiters *most = &host->limiters, now = {0};

	for (const struct place *p = host->places; p; p = p->next) {
		if (!p->limiter || !p->common || p->is_key)
			continue;
		now.count++;
		now.partitions += p->settings.partitions ? p->settings.partitions : TILES_EACH;
		now.leased += p->settings.key_share == KEY_SHARE_LEASED;
	}
	most->count = now.count > most->count ? now.count : most->count;
	most->leased = now.leased > most->leased ? now.leased : most->leased;
	most->partitions = now.partitions > most->partitions ? now.partitions : most->partitions;
}

static bool has_limited_keys(const struct place *place)
{
	return place->limiter && !place->is_key && keys_count(place->limiter) &&
	       !rate_is_unlimited(&place->settings.key_rate);
}

/* A window begins. */
static void begin_window(struct sim *sim)
{
	sim->window_ns = sim->now_ns;
	for (struct common *c = sim->commons; c; c = c->next) {
		common_measure(c, sim);
		c->could_before = c->could;
		c->did_before = c->did;
	}
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (struct place *p = sim->hosts[i].places; p; p = p->next) {
			p->granted_before = p->granted;
			p->always_waits = p->limiter && p->waits;
			p->uses_keys = has_limited_keys(p);
		}
	}
}

static void watch_window(struct sim *sim)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (struct place *p = sim->hosts[i].places; p; p = p->next) {
			p->always_waits = p->always_waits && p->waits;
			p->uses_keys = p->uses_keys || has_limited_keys(p);
		}
	}
}

static bool has_children(const struct place *place)
{
	return place->limiter && place->limiter->first_child;
}

/* I5 and I6, of a limiter that is in no other and has none in it. */
static void check_common(struct sim *sim, struct common *common)
{
	uint64_t least = UINT64_MAX, most = 0;
	struct calm_hosts up = {0};
	bool equal = true;
	uint32_t hosts = 0, weight = sim->hosts[0].options.weight;
	const struct place *place = NULL;
	const struct settings *settings;
	bool uses_keys = false;
	char why[WHY_TEXT];

	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];
		const struct place *p = host->places;

		up.count += host->state == HOST_UP;
		equal = equal && host->options.weight == weight;
		while (p && (p->common != common || p->is_key || !p->limiter))
			p = p->next;
		if (!p || has_children(p) || p->parent)
			continue;
		uses_keys = uses_keys || p->uses_keys;
		up.idle += !p->always_waits && p->granted > p->granted_before;
		if (!p->always_waits)
			continue;
		place = p;
		hosts++;
		least = p->granted - p->granted_before < least ? p->granted - p->granted_before
							       : least;
		most = later(most, p->granted - p->granted_before);
	}
	settings = place && !uses_keys ? steady(sim, place) : NULL;
	if (!settings)
		return;
	common_measure(common, sim);
	if (!calm_check_use(settings, &sim->hosts[0].options.constants, &up,
			    common->could - common->could_before,
			    (double)(common->did - common->did_before), why))
		sim_fail(sim, INVARIANT_USE, place, why);
	if (hosts == up.count && equal && !calm_check_shares(settings, hosts, least, most, why))
		sim_fail(sim, INVARIANT_FAIR, place, why);
}

/* Returns how many changes of settings all hosts have sent in the window. */
static uint64_t changes_since(const struct sim *sim)
{
	uint64_t changes = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		const struct host *host = &sim->hosts[i];

		if (host->link && host->life == host->life_before)
			changes += host->link->sent.changes - host->traffic_before.changes;
	}
	return changes;
}

/* I4. */
static void check_traffic(struct sim *sim, const struct host *host)
{
	struct traffic traffic;
	char why[WHY_TEXT], whole[WHY_TEXT + sizeof(host->name) + 2];

	if (host->state != HOST_UP || host->life != host->life_before)
		return;
	traffic = (struct traffic){
		host->link->sent.transactions - host->traffic_before.transactions,
		host->link->sent.reads - host->traffic_before.reads,
		host->link->sent.lists - host->traffic_before.lists,
		host->link->sent.refused - host->traffic_before.refused,
		host->link->sent.leases - host->traffic_before.leases,
		host->link->sent.given - host->traffic_before.given,
		host->link->sent.changes - host->traffic_before.changes,
		changes_since(sim),
	};
	if (calm_check_traffic(&traffic, &host->limiters, &host->options.constants, why))
		return;
	snprintf(whole, sizeof(whole), "%s: %s", host->name, why);
	sim_fail(sim, INVARIANT_TRAFFIC, NULL, whole);
}

static void end_window(struct sim *sim)
{
	for (struct common *c = sim->commons; c && !sim->failed; c = c->next) {
		if (!c->is_key)
			check_common(sim, c);
	}
}

static void watch_traffic(struct sim *sim)
{
	if (sim->now_ns - sim->traffic_ns < CALM_WINDOW_NS)
		return;
	/* Events are rare: the window would be longer than it says. */
	if (sim->now_ns - sim->traffic_ns < CALM_WINDOW_NS + 2 * LOOK_NS) {
		for (unsigned int i = 0; i < sim->host_count && !sim->failed; i++)
			check_traffic(sim, &sim->hosts[i]);
	}
	begin_traffic(sim);
}

/*
 * Checks I4: one transaction closes a session, with the paths of all its nodes. Each path counts
 * with PATH and 4 bytes for its length, see FLEET_OWN_BYTES_MAX.
 */
static void check_room(struct sim *sim)
{
	char why[WHY_TEXT];

	for (const struct session *s = sim->zookeeper.sessions; s && !sim->failed; s = s->next) {
		uint64_t bytes = 0;

		for (const struct znode *n = s->owned; n; n = n->next_owned)
			bytes += LENGTH_BYTES + sim->prefix_bytes + strlen(n->path);
		if (bytes <= FLEET_OWN_BYTES_MAX)
			continue;
		snprintf(why, sizeof(why), "the paths of a session's nodes have %llu bytes",
			 (unsigned long long)bytes);
		sim_fail(sim, INVARIANT_TRAFFIC, NULL, why);
	}
}

/* So long after the last disturbance everything that is owed is there. */
static uint64_t settles_ns(const struct sim *sim)
{
	const struct fleet_constants *constants = &sim->hosts[0].options.constants;
	uint64_t most_ns = calm_check_settle_ns(constants);

	for (const struct truth *t = sim->truths; t; t = t->next) {
		uint64_t wait_ns = calm_check_wait_ns(&t->settings, constants, 1);

		if (t->there && wait_ns != NEVER_NS)
			most_ns = later(most_ns, wait_ns + SETTLED_LEASES * t->settings.lease_ns);
	}
	return most_ns + sim->pause_ns;
}

void calm_look(struct sim *sim)
{
	bool is_calm;

	if (!sim->fleet || sim->ending || sim->now_ns < sim->look_ns)
		return;
	sim->look_ns = sim->now_ns + LOOK_NS;
	watch_traffic(sim);
	check_room(sim);
	for (unsigned int i = 0; i < sim->host_count && !sim->failed; i++)
		common_audit(&sim->hosts[i]);
	for (unsigned int i = 0; i < sim->host_count; i++)
		count_limiters(&sim->hosts[i]);
	if (lacks_room(sim) || is_troubled(sim))
		sim->disturbed_ns = sim->now_ns;
	if (sim->disturbed_ns + LOOK_NS >= sim->now_ns)
		sim->pause_ns = 0;
	watch_pauses(sim);
	for (unsigned int i = 0; i < sim->host_count; i++)
		check_readers(sim, &sim->hosts[i]);
	is_calm = sim->now_ns >= sim->disturbed_ns + settles_ns(sim) && dues_is_still(sim);
	if (!sim->failed)
		dues_look(sim, is_calm);
	if (!is_calm) {
		sim->window_ns = 0;
		return;
	}
	watch_window(sim);
	if (sim->window_ns && sim->now_ns - sim->window_ns < CALM_WINDOW_NS)
		return;
	/* Events are rare: the window would be longer than it says. */
	if (sim->window_ns && sim->now_ns - sim->window_ns < CALM_WINDOW_NS + 2 * LOOK_NS)
		end_window(sim);
	begin_window(sim);
}
