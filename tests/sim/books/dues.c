/*
 * dues - demand and grants of each place, and the order among siblings over all hosts of a fleet,
 * see dues_check.h.
 *
 * A window begins when nothing was wrong for long enough (calm.c), and neither demand nor weights,
 * minima and classes have changed for two times `lease`. Its demand is the tokens that were
 * granted, and those that are waited for at its end. Where readers that ask again as soon as they
 * are served wait without a break, it has no bound: a reader that is kept waiting asks less often
 * than it would.
 *
 * A child with a rate of its own wants no more than it was granted: while its tokens wait for those
 * of its parent its bucket may be full, and then nothing flows in.
 *
 * Hosts divide limiters that have leaves: of one without a rate each divides its own tokens by
 * itself. A limiter's own readers are one more child. A limiter whose keys or partitions are read
 * is not judged, nor is one whose settings do more than keep a rate.
 */
#include "tests/sim/books/dues.h"
#include "tests/sim/books/common.h"
#include "tests/sim/invariants/calm_check.h"
#include "tests/sim/invariants/dues_check.h"
#include "tests/sim/world/sim.h"

#include <math.h>
#include <stdio.h>

#define WINDOW_NS UINT64_C(20000000000)

/* A look is late where events are rare. */
#define LATE_NS UINT64_C(2000000000)

/* Hosts agree on a division two times `lease` after it has changed. */
enum { SETTLED_LEASES = 2 };

/* Own readers beside the child limiters. */
enum { PARTS_MAX = ORDER_SIBLINGS_MAX };

void dues_waits(struct reader *reader)
{
	struct demand_book *book = &reader->place->demand;

	book->waiting += reader->check.tokens;
	book->again += reader->asks_again;
	if (reader->check.tokens > book->largest)
		book->largest = reader->check.tokens;
}

void dues_leaves(struct reader *reader)
{
	struct demand_book *book = &reader->place->demand;

	book->waiting -= reader->check.tokens;
	book->again -= reader->asks_again;
	book->breaks = book->breaks || !book->again;
}

void dues_granted(const struct reader *reader)
{
	reader->place->demand.granted += reader->granted;
}

void dues_demand(struct sim *sim)
{
	sim->demand_ns = sim->now_ns;
}

static void begin_window(struct sim *sim)
{
	sim->dues_ns = sim->now_ns;
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (struct place *p = sim->hosts[i].places; p; p = p->next) {
			p->demand.granted_before = p->demand.granted;
			p->demand.breaks = !p->demand.again;
			p->demand.largest = 0;
		}
	}
}

/* A limiter with all below it in a window, on all hosts. */
struct sum {
	double wanted, granted;
	uint64_t largest;
	bool has_parts; /* keys or partitions of it are read */
};

static void add(struct sum *sum, const struct place *place)
{
	const struct demand_book *book = &place->demand;
	uint64_t granted = book->granted - book->granted_before;

	sum->granted += (double)granted;
	sum->wanted += book->breaks ? (double)(granted + book->waiting) : (double)INFINITY;
	sum->largest = book->largest > sum->largest ? book->largest : sum->largest;
	if (place->is_key || place->partition)
		sum->has_parts = sum->has_parts || granted || book->waiting;
}

static bool is_of(const struct place *place, const struct truth *truth)
{
	if (place->is_key || place->partition)
		place = place->parent;
	return place->common && place->common->id == truth->id;
}

/* Adds up the readers of @truth itself on @host. */
static void add_host(struct sum *sum, const struct host *host, const struct truth *truth)
{
	for (const struct place *p = host->places; p; p = p->next) {
		if (is_of(p, truth))
			add(sum, p);
	}
}

/* Likewise on all hosts. */
static struct sum own_of(const struct sim *sim, const struct truth *truth)
{
	struct sum sum = {0};

	for (unsigned int i = 0; i < sim->host_count; i++)
		add_host(&sum, &sim->hosts[i], truth);
	return sum;
}

static bool is_child(const struct truth *truth, const struct truth *parent)
{
	return truth->there && truth->parent == parent->id;
}

/* Tells whether @truth keeps a rate, or none, and does nothing else. */
static bool is_plain(const struct sim *sim, const struct truth *truth)
{
	const struct settings *settings = &truth->settings;
	struct settings limited = *settings;

	if (!limited.limit_count) {
		limited.limit_count = 1;
		limited.limits[0].rate.amount = 1;
	}
	return calm_check_is_steady(&limited) && rate_is_unlimited(&settings->key_rate) &&
	       !truth_is_quoted(sim, truth);
}

/* Tokens a second of the slowest limit; INFINITY: there is none. */
static double rate_of(const struct settings *settings)
{
	double least = (double)INFINITY;

	for (uint32_t i = 0; i < settings->limit_count; i++)
		least = fmin(least, rate_per_second(&settings->limits[i].rate));
	return least;
}

/* Adds up the readers of @truth and below. False: some of it is not judged. */
static bool all_of(const struct sim *sim, const struct truth *truth, struct sum *all)
{
	*all = own_of(sim, truth);
	for (const struct truth *t = sim->truths; t; t = t->next) {
		struct sum below;

		if (!is_child(t, truth))
			continue;
		if (!all_of(sim, t, &below))
			return false;
		all->granted += below.granted;
		all->wanted += below.wanted;
		all->largest = below.largest > all->largest ? below.largest : all->largest;
	}
	if (truth->settings.limit_count)
		all->wanted = all->granted;
	return is_plain(sim, truth);
}

/*
 * Tokens that the largest piece of @truth and its children brings in a window. Without partitions
 * it brings one in a `lease` at least, and is a leaf at least, which of a strict window is more.
 */
static double piece_of(const struct sim *sim, const struct truth *truth, double span_s)
{
	const struct settings *settings = &truth->settings;
	double piece = 0;

	if (settings->limit_count && settings->partitions)
		piece = rate_of(settings) * span_s / settings->partitions;
	else if (settings->limit_count)
		piece = fmax(span_s * NSEC_PER_SEC / (double)settings->lease_ns,
			     rate_of(settings) * span_s / settings_leaf_count(settings));
	for (const struct truth *t = sim->truths; t; t = t->next) {
		if (is_child(t, truth))
			piece = fmax(piece, piece_of(sim, t, span_s));
	}
	return piece;
}

static bool is_limited(const struct sim *sim, const struct truth *truth, double *piece,
		       double span_s)
{
	bool limited = false;

	for (; truth; truth = truth->parent ? truth_of(sim, truth->parent) : NULL) {
		if (!truth->there || !is_plain(sim, truth))
			return false;
		limited = limited || truth->settings.limit_count;
		*piece = fmax(*piece, piece_of(sim, truth, span_s));
	}
	return limited;
}

/*
 * Tells whether nothing below @truth has a rate of its own: while readers wait for that, their
 * hosts may hold some of @truth in vain.
 */
static bool is_free_below(const struct sim *sim, const struct truth *truth)
{
	for (const struct truth *t = sim->truths; t; t = t->next) {
		if (is_child(t, truth) && (t->settings.limit_count || !is_free_below(sim, t)))
			return false;
	}
	return true;
}

static const struct place *any_place(const struct sim *sim, const struct truth *truth)
{
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (const struct place *p = sim->hosts[i].places; p; p = p->next) {
			if (p->limiter && !p->is_key && is_of(p, truth))
				return p;
		}
	}
	return NULL;
}

static void add_part(struct dues *dues, const char *name, const struct order_terms *terms,
		     const struct sum *sum)
{
	dues->parts[dues->count++] = (struct due){.name = name,
						  .terms = *terms,
						  .wanted = sum->wanted,
						  .granted = sum->granted,
						  .largest = sum->largest};
}

/* Fills in the own readers of @truth and its children. False: they are not judged. */
static bool list_children(const struct sim *sim, const struct truth *truth, struct dues *dues)
{
	static const struct order_terms own = {.weight = ORDER_OWN_WEIGHT, .min = {0, 1}};
	struct sum sum = own_of(sim, truth);

	add_part(dues, "its own readers", &own, &sum);
	for (const struct truth *t = sim->truths; t; t = t->next) {
		const struct order_terms terms = {.weight = t->settings.weight,
						  .min = rate_fraction(&t->settings.min),
						  .class = t->settings.priority};

		if (!is_child(t, truth))
			continue;
		if (dues->count == PARTS_MAX || !all_of(sim, t, &sum))
			return false;
		add_part(dues, t->label, &terms, &sum);
	}
	return dues->count > 1;
}

/* Fills in the own readers of @truth on each host. */
static bool list_hosts(const struct sim *sim, const struct truth *truth, struct dues *dues)
{
	for (unsigned int i = 0; i < sim->host_count && i < PARTS_MAX; i++) {
		const struct host *host = &sim->hosts[i];
		const struct order_terms terms = {.weight = host->options.weight, .min = {0, 1}};
		struct sum sum = {0};

		add_host(&sum, host, truth);
		add_part(dues, host->name, &terms, &sum);
	}
	return sim->host_count <= PARTS_MAX;
}

static bool has_children(const struct sim *sim, const struct truth *truth)
{
	for (const struct truth *t = sim->truths; t; t = t->next) {
		if (is_child(t, truth))
			return true;
	}
	return false;
}

/* Tells whether hosts have parts of @truth itself, or as a child of its parent. */
static bool is_divided(const struct sim *sim, const struct truth *truth)
{
	const struct truth *parent = truth->parent ? truth_of(sim, truth->parent) : NULL;

	return truth->settings.limit_count ||
	       (parent && parent->settings.limit_count && !has_children(sim, truth));
}

/* Prints each part, on each host, for readers of a failure. */
static void fail(struct sim *sim, enum invariant invariant, const struct truth *truth,
		 const struct dues *dues, const char *why)
{
	sim_fail(sim, invariant, any_place(sim, truth), why);
	for (uint32_t i = 0; i < dues->count; i++) {
		const struct due *due = &dues->parts[i];

		fprintf(stderr,
			"  %s: weight %llu class %u min %.6g/s wanted %.0f granted %.0f due %.0f\n",
			due->name, (unsigned long long)due->terms.weight, due->terms.class,
			fraction_per_second(&due->terms.min), due->wanted, due->granted, due->due);
	}
	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (const struct place *p = sim->hosts[i].places; p; p = p->next) {
			const struct demand_book *book = &p->demand;

			if (book->granted > book->granted_before || book->waiting)
				fprintf(stderr, "  %s %s: granted %llu, waiting %llu%s\n",
					sim->hosts[i].name, p->path,
					(unsigned long long)(book->granted - book->granted_before),
					(unsigned long long)book->waiting,
					book->breaks ? "" : " all the time");
		}
	}
}

static const struct truth *top_of(const struct sim *sim, const struct truth *truth)
{
	const struct truth *parent = truth;

	while (truth->parent && (parent = truth_of(sim, truth->parent)))
		truth = parent;
	return truth;
}

/* Returns what was granted at @truth and below to readers that did not wait all the time. */
static double light_of(const struct sim *sim, const struct truth *truth)
{
	double light = 0;

	for (unsigned int i = 0; i < sim->host_count; i++) {
		for (const struct place *p = sim->hosts[i].places; p; p = p->next) {
			if (is_of(p, truth) && p->demand.breaks)
				light += (double)(p->demand.granted - p->demand.granted_before);
		}
	}
	for (const struct truth *t = sim->truths; t; t = t->next) {
		if (is_child(t, truth))
			light += light_of(sim, t);
	}
	return light;
}

static void judge(struct sim *sim, const struct truth *truth, double span_s)
{
	struct due parts[PARTS_MAX];
	struct dues dues = {.parts = parts, .hosts = sim->host_count, .span_s = span_s};
	char why[WHY_TEXT];

	if (own_of(sim, truth).has_parts || !is_limited(sim, truth, &dues.piece, span_s))
		return;
	dues.light = sim->host_count > 1 ? light_of(sim, top_of(sim, truth)) : 0;
	if ((truth->settings.limit_count || sim->host_count == 1) &&
	    list_children(sim, truth, &dues)) {
		if (!dues_check(&dues, why))
			fail(sim, INVARIANT_ORDER, truth, &dues, why);
		if (!truth->parent && is_free_below(sim, truth) &&
		    !dues_check_use(&dues, rate_of(&truth->settings), why))
			fail(sim, INVARIANT_USE, truth, &dues, why);
	}
	dues.count = 0;
	if (is_divided(sim, truth) && list_hosts(sim, truth, &dues) && !dues_check(&dues, why))
		fail(sim, INVARIANT_FAIR, truth, &dues, why);
}

static void end_window(struct sim *sim)
{
	double span_s = (double)(sim->now_ns - sim->dues_ns) / (double)NSEC_PER_SEC;

	for (const struct truth *t = sim->truths; t && !sim->failed; t = t->next) {
		if (t->there)
			judge(sim, t, span_s);
	}
}

/* Returns how long after a change hosts agree on a division. */
static uint64_t settles_ns(const struct sim *sim)
{
	uint64_t lease_ns = 0;

	for (const struct truth *t = sim->truths; t; t = t->next) {
		if (t->there && t->settings.lease_ns > lease_ns)
			lease_ns = t->settings.lease_ns;
	}
	return SETTLED_LEASES * lease_ns;
}

bool dues_is_still(const struct sim *sim)
{
	return sim->now_ns >= sim->demand_ns + settles_ns(sim);
}

void dues_look(struct sim *sim, bool is_calm)
{
	if (!is_calm) {
		sim->dues_ns = 0;
		return;
	}
	if (sim->dues_ns && sim->now_ns - sim->dues_ns < WINDOW_NS)
		return;
	if (sim->dues_ns && sim->now_ns - sim->dues_ns < WINDOW_NS + LATE_NS)
		end_window(sim);
	begin_window(sim);
}
