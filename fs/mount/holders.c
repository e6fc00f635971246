/* holders - the open files that hold slots, see holders.h. */
#include "fs/mount/holders.h"
#include "fs/base/clock.h"
#include "fs/mount/plain.h"
#include "fs/mount/slot.h"

#include "core/fleet/record.h"
#include "core/fleet/survey.h"
#include "core/limiter/holding.h"
#include "core/limiter/slots.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { HOLDERS_SHOWN = 1000 }; /* for each, a file of /proc is read under the lock */

/* Returns how many leaves of @holding are of the host @name, in tiles as they were seen last. */
static uint32_t count_leaves(const struct fleet *fleet, const struct holding *holding,
			     const char *name)
{
	const struct seen_tiles *tiles = survey_tiles(holding, false);
	uint32_t leaves = 0;

	for (uint32_t i = 0; i < tiles->count; i++) {
		const struct seen_tile *tile = &tiles->list[i];
		const struct seen_host *host = *tile->hid ? survey_holder(fleet, tile) : NULL;

		if (host && !strcmp(host->record.name, name))
			leaves += tile->last - tile->first + 1;
	}
	return leaves;
}

/* Returns the host behind @host, or the first (NULL), that is another one. NULL: none is. */
static const struct seen_host *next_other(const struct daemon *daemon, const struct seen_host *host)
{
	host = host ? host->next : survey_hosts(daemon->fleet);
	while (host && (!*host->record.name || !strcmp(host->record.name, daemon->options->host)))
		host = host->next;
	return host;
}

/*
 * Returns the next slot behind @slot, or the first (NULL), that is open on @host in @limiter or
 * below it. NULL: there are no more that it told of.
 */
static const struct host_slot *next_told(const struct daemon *daemon, const struct limiter *limiter,
					 const struct seen_host *host, const struct host_slot *slot)
{
	const struct host_slot *end = &host->record.slots[host->record.slot_count];

	for (slot = slot ? slot + 1 : host->record.slots; slot < end; slot++) {
		if (slot_is_within(survey_limiter(daemon->fleet, slot), limiter))
			return slot;
	}
	return NULL;
}

/* Returns the seconds for which @slot of @host has been open, if it still is. */
static uint64_t held_s(const struct daemon *daemon, const struct seen_host *host,
		       const struct host_slot *slot)
{
	return slot->held_s + (uint64_t)survey_silent_s(daemon->fleet, host);
}

/* Writes how many slots of @limiter are leased by @host, open or not, if any are. */
static void show_leases(FILE *out, const struct daemon *daemon, const struct limiter *limiter,
			const struct seen_host *host)
{
	const struct holding *holding = limiter->holding;
	uint32_t count = holding_leaves(holding->settings);
	uint32_t leaves = count_leaves(daemon->fleet, holding, host->record.name);

	if (leaves)
		fprintf(out, "%s - - - - leases %" PRIu64 " of %" PRIu32 "\n", host->record.name,
			(uint64_t)holding->settings->slots.count * leaves / count,
			holding->settings->slots.count);
}

/* Writes what other hosts tell of their slots of @limiter, and how many they lease. */
static void show_others(FILE *out, const struct daemon *daemon, const struct limiter *limiter)
{
	for (const struct seen_host *h = NULL; (h = next_other(daemon, h));) {
		for (const struct host_slot *s = NULL; (s = next_told(daemon, limiter, h, s));)
			fprintf(out, "%s %" PRIu32 " %" PRIu32 " %s %" PRIu64 "\n", h->record.name,
				s->pid, s->uid, s->command, held_s(daemon, h, s));
		if (limiter->holding->settings->slots.kind == SLOTS_COUNT)
			show_leases(out, daemon, limiter, h);
	}
}

bool holders_oldest(const struct daemon *daemon, const struct limiter *limiter,
		    struct oldest_slot *oldest)
{
	uint64_t now_ns = daemon->engine.schedule.now_ns;

	*oldest = (struct oldest_slot){.host = NULL};
	for (struct handle *h = NULL; (h = slot_next(daemon, limiter, h));) {
		uint64_t held_ns = now_ns - h->slot.opened_ns;

		if (!oldest->host || held_ns > oldest->held_ns)
			*oldest = (struct oldest_slot){daemon->options->host, h->kept->pid, held_ns,
						       true};
	}
	for (const struct seen_host *h = NULL; daemon->fleet && (h = next_other(daemon, h));) {
		for (const struct host_slot *s = NULL; (s = next_told(daemon, limiter, h, s));) {
			uint64_t held_ns = held_s(daemon, h, s) * NSEC_PER_SEC;

			if (!oldest->host || held_ns > oldest->held_ns)
				*oldest = (struct oldest_slot){h->record.name, s->pid, held_ns,
							       false};
		}
	}
	return oldest->host;
}

/* Tells whether hosts lease the slots of @limiter, or of one above it. */
static bool has_leased_slots(const struct limiter *limiter)
{
	while (limiter &&
	       (!limiter->holding || limiter->holding->settings->slots.kind != SLOTS_COUNT))
		limiter = limiter->parent;
	return limiter;
}

/* Returns how many of the @count slots in @list are of limiter @id. */
static uint32_t count_of_limiter(const struct held_slot *list, uint32_t count, uint64_t id)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < count; i++)
		found += list[i].slot.id == id;
	return found;
}

uint32_t holders_tell(const struct daemon *daemon, struct held_slot list[HOST_SLOTS_MAX])
{
	struct handle *handle = list_first(&daemon->slots, struct handle, watch);
	uint32_t room = HOLDERS_SHOWN, count = 0;

	for (; handle && room-- && count < HOST_SLOTS_MAX; handle = list_next(handle, watch)) {
		const struct limiter *slots = handle->slot.limiter;
		const struct limiter *limiter = slots->is_key ? slots->parent : slots;
		uint64_t id = limiter->holding->id;
		struct held_slot *held = &list[count];

		if (limiter->removed || slots->removed || !has_leased_slots(limiter) ||
		    count_of_limiter(list, count, id) == HOST_SLOTS_OF_LIMITER_MAX)
			continue;
		*held = (struct held_slot){
			.slot = {.id = id, .pid = handle->kept->pid, .uid = handle->uid},
			.opened_ns = handle->slot.opened_ns};
		plain_find_command(handle->kept->pid, held->slot.command);
		count++;
	}
	return count;
}

void holders_show(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct limiter *limiter = node->limiter;
	uint64_t now_ns = clock_ns();
	uint32_t room = HOLDERS_SHOWN;
	char text[QUANTITY_TEXT];

	(void)uid;
	for (struct handle *h = NULL; (h = slot_next(daemon, limiter, h));) {
		if (!room--) {
			fputs("...\n", out);
			break;
		}
		fprintf(out, "%s %" PRIu32 " %" PRIu32 " ", daemon->options->host, h->kept->pid,
			h->uid);
		plain_command(out, h->kept->pid);
		seconds_print(now_ns > h->slot.opened_ns ? now_ns - h->slot.opened_ns : 0, 3, text);
		fprintf(out, " %s\n", text);
	}
	if (daemon->fleet && !limiter->is_key)
		show_others(out, daemon, limiter);
}

/* Writes @share of @limiter, and what that is of its rate. */
static void show_share(FILE *out, const struct limiter *limiter, double share)
{
	const struct settings *settings = limiter_settings(limiter);
	double least = (double)INFINITY;

	for (unsigned int i = 0; i < settings_plain_count(settings); i++)
		least = fmin(least, rate_per_second(&settings->limits[i].rate));
	if (isinf(least))
		fprintf(out, " %.4g max", share);
	else
		fprintf(out, " %.4g %.6g", share, least * share);
}

/* Returns how many readers wait on this host in @limiter and below it. */
static uint64_t count_waiting(const struct limiter *limiter)
{
	return limiter->turns.waiting + (limiter->slots ? limiter->slots->turns.waiting : 0);
}

/* The sums over the lines of hosts. */
struct sums {
	double share, granted;
	uint64_t waiting;
	int64_t silent_s; /* of the host that wrote least lately */
};

/* Writes the line of @host, which has @share of @limiter; this host's queue is known. */
static void show_host(FILE *out, const struct daemon *daemon, const struct limiter *limiter,
		      const struct seen_host *host, double share, struct sums *sums)
{
	const struct host_use *use = record_use(&host->record, limiter->holding->id);
	int64_t silent_s = survey_silent_s(daemon->fleet, host);
	bool is_own = !strcmp(host->record.name, daemon->options->host);
	uint64_t waiting = is_own ? count_waiting(limiter) : use ? use->waiting : 0;

	fputs(host->record.name, out);
	show_share(out, limiter, share);
	if (use)
		fprintf(out, " %.4g", use->granted);
	else
		fputs(" -", out);
	if (use || is_own)
		fprintf(out, " %" PRIu64, waiting);
	else
		fputs(" -", out);
	fprintf(out, " %" PRId64 "\n", silent_s);
	sums->share += share;
	sums->granted += use ? use->granted : 0;
	sums->waiting += waiting;
	if (silent_s > sums->silent_s)
		sums->silent_s = silent_s;
}

/* Writes the lines of all hosts, this one's first, which there is even if it was not seen yet. */
static void show_all_hosts(FILE *out, const struct daemon *daemon, const struct limiter *limiter,
			   struct sums *sums)
{
	const struct seen_host *hosts = survey_hosts(daemon->fleet), *own = hosts;
	double all = holding_leaves(limiter->holding->settings);
	const char *name = daemon->options->host;
	struct seen_host unseen = {0};

	snprintf(unseen.record.name, sizeof(unseen.record.name), "%s", name);
	while (own && strcmp(own->record.name, name) != 0)
		own = own->next;
	show_host(out, daemon, limiter, own ? own : &unseen,
		  count_leaves(daemon->fleet, limiter->holding, name) / all, sums);
	for (; hosts; hosts = hosts->next) {
		name = hosts->record.name;
		if (*name && strcmp(name, daemon->options->host) != 0)
			show_host(out, daemon, limiter, hosts,
				  count_leaves(daemon->fleet, limiter->holding, name) / all, sums);
	}
}

void holders_show_hosts(FILE *out, struct daemon *daemon, const struct node *node, uint32_t uid)
{
	const struct limiter *limiter = node->limiter;
	struct sums sums = {0};

	(void)uid;
	if (!daemon->fleet || !holding_needs_leases(limiter->holding)) {
		fputs(daemon->options->host, out);
		show_share(out, limiter, 1);
		fprintf(out, " - %" PRIu64 " 0\n", count_waiting(limiter));
		return;
	}
	show_all_hosts(out, daemon, limiter, &sums);
	fputs("-", out);
	show_share(out, limiter, sums.share < 1 ? 1 - sums.share : 0);
	fputs(" - - -\n=", out);
	show_share(out, limiter, sums.share);
	fprintf(out, " %.4g %" PRIu64 " %" PRId64 "\n", sums.granted, sums.waiting, sums.silent_s);
}
