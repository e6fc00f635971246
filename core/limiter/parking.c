/* parking - places that interrupted waiters may take again, see parking.h. */
#include "core/limiter/parking.h"
#include "core/limiter/queue.h"

#include <assert.h>
#include <stdatomic.h>

static struct parked_place *place_of_link(struct chain_link *link)
{
	return container_of(link, struct parked_place, by_asker);
}

static uint64_t hash_asker(const struct asker *asker)
{
	uint64_t number = asker->thread ? asker->thread : asker->file;

	/* Fibonacci hashing (Knuth, 6.4): numbers given one after the other are spread. */
	return ((number ^ (uint64_t)asker->uid << 32) * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
}

static uint64_t hash_link(const struct chain_link *link, const void *seed)
{
	(void)seed;
	return hash_asker(&container_of(link, const struct parked_place, by_asker)->asker);
}

static bool is_same(const struct asker *a, const struct asker *b)
{
	return a->uid == b->uid && a->thread == b->thread && (a->thread || a->file == b->file);
}

void parking_init(struct parking *parking, struct parked_place *places, uint32_t size,
		  uint32_t *used)
{
	assert(size <= PARKING_PLACES_MAX && !*used);
	*parking = (struct parking){
		.places = places, .size = size, .used = used, .by_asker = {.hash = hash_link}};
}

static struct parked_place *new_place(struct parking *parking)
{
	struct parked_place *place = list_first(&parking->free, struct parked_place, by_time);

	if (place)
		list_remove(&parking->free, &place->by_time);
	else if (parking->size && *parking->used < parking->size)
		place = &parking->places[(*parking->used)++];
	return place;
}

static void free_place(struct parking *parking, struct parked_place *place)
{
	atomic_store_explicit(&place->state, PLACE_FREE, memory_order_release);
	list_prepend(&parking->free, &place->by_time);
}

/* Puts @place among those parked. 0 or -ENOMEM. */
static int list_place(struct parking *parking, struct parked_place *place)
{
	int err = chains_insert(&parking->by_asker, &place->by_asker);

	if (!err)
		list_append(&parking->parked, &place->by_time);
	return err;
}

static void unlist_place(struct parking *parking, struct parked_place *place)
{
	chains_remove(&parking->by_asker, &place->by_asker);
	list_remove(&parking->parked, &place->by_time);
}

/* Frees the places that were parked until @now_ns at the latest. */
static void expire_places(struct parking *parking, uint64_t now_ns)
{
	struct parked_place *oldest;

	while (!parking->frozen &&
	       (oldest = list_first(&parking->parked, struct parked_place, by_time)) &&
	       oldest->at_ns <= now_ns) {
		unlist_place(parking, oldest);
		free_place(parking, oldest);
	}
}

void parking_free(struct parking *parking)
{
	parking->frozen = false;
	expire_places(parking, UINT64_MAX);
}

void parking_thaw(struct parking *parking, uint64_t until_ns)
{
	struct parked_place *place = list_first(&parking->parked, struct parked_place, by_time);

	parking->frozen = false;
	for (; place; place = list_next(place, by_time))
		place->at_ns = until_ns;
}

/* Tells whether @waiter asks for the same as the waiter of @place, however long it would wait. */
static bool is_for(const struct parked_place *place, const struct waiter *waiter,
		   const struct parking_site *site)
{
	return place->site.limiter == site->limiter && place->site.partition == site->partition &&
	       place->site.key == site->key && place->tokens == waiter->tokens &&
	       place->most == waiter->most && place->is_opener == waiter->is_opener;
}

/* Finds a place of @asker that is for the request of @waiter in @site (NULL: for any request). */
static struct parked_place *find_place(const struct parking *parking, const struct asker *asker,
				       const struct waiter *waiter, const struct parking_site *site)
{
	struct chain_link *link = chains_find(&parking->by_asker, hash_asker(asker));

	for (; link; link = link->next) {
		struct parked_place *place = place_of_link(link);

		if (is_same(&place->asker, asker) && (!waiter || is_for(place, waiter, site)))
			return place;
	}
	return NULL;
}

static uint64_t within_ns(const struct waiter *waiter)
{
	if (!waiter->expiry || waiter->expiry->at_ns == NEVER_NS)
		return NEVER_NS;
	return waiter->expiry->at_ns - waiter->asked_ns;
}

bool parking_park(struct parking *parking, struct waiter *waiter, const struct parking_site *site,
		  const struct asker *asker, uint64_t now_ns)
{
	struct parked_place *place = waiter->place ? &parking->places[waiter->place - 1] : NULL;
	struct parked_place *other;

	expire_places(parking, now_ns);
	other = asker->thread ? find_place(parking, asker, NULL, NULL) : NULL;
	if (other) {
		unlist_place(parking, other);
		free_place(parking, other);
	}
	if (!place && within_ns(waiter)) {
		place = new_place(parking);
		if (!place)
			return false;
		*place = (struct parked_place){.site = *site,
					       .tokens = waiter->tokens,
					       .most = waiter->most,
					       .within_ns = within_ns(waiter),
					       .ticket = waiter->ticket,
					       .asked_ns = waiter->asked_ns,
					       .first = asker->number,
					       .is_opener = waiter->is_opener};
	}
	waiter->place = 0;
	if (!place)
		return false;
	place->asker = *asker;
	place->at_ns = now_ns + PARKING_NS;
	if (list_place(parking, place)) {
		free_place(parking, place);
		return false;
	}
	atomic_store_explicit(&place->state, PLACE_PARKED, memory_order_release);
	return true;
}

bool parking_resume(struct parking *parking, struct waiter *waiter, const struct parking_site *site,
		    const struct asker *asker, uint64_t within_ns, uint64_t now_ns)
{
	struct parked_place *place;

	expire_places(parking, now_ns);
	place = find_place(parking, asker, waiter, site);
	if (!place)
		return false;
	unlist_place(parking, place);
	if ((place->at_ns <= now_ns && !parking->frozen) || place->within_ns != within_ns) {
		free_place(parking, place);
		return false;
	}
	waiter->place = ((uint32_t)(place - parking->places) + 1) & (2 * PARKING_PLACES_MAX - 1);
	waiter->ticket = place->ticket;
	waiter->asked_ns = place->asked_ns;
	place->asker.number = asker->number;
	place->at_ns = now_ns;
	atomic_store_explicit(&place->state, PLACE_TAKEN, memory_order_release);
	return true;
}

uint64_t parking_since_ns(const struct parking *parking, const struct waiter *waiter)
{
	return waiter->place ? parking->places[waiter->place - 1].at_ns : waiter->asked_ns;
}

void parking_free_place(struct parking *parking, struct waiter *waiter)
{
	free_place(parking, &parking->places[waiter->place - 1]);
	waiter->place = 0;
}

void parking_restore(struct parking *parking, const struct parked_place *place, uint64_t ticket,
		     uint64_t until_ns)
{
	struct parked_place *copy = new_place(parking);

	if (!copy)
		return;
	*copy = *place;
	copy->ticket = ticket;
	copy->at_ns = until_ns;
	if (list_place(parking, copy))
		free_place(parking, copy);
	else
		atomic_store_explicit(&copy->state, PLACE_PARKED, memory_order_release);
}
