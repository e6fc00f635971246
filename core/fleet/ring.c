/* ring - which hosts this one counts, and which of them is overdue, see ring.h. */
#include "core/fleet/ring.h"

#include <stdlib.h>
#include <string.h>

enum { SILENT_READS = 2 };

/* Returns the place of the first host whose name is not before @hid. */
static uint32_t place_of(const struct ring *ring, const char *hid)
{
	uint32_t low = 0, high = ring->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (strcmp(ring->hosts[middle].hid, hid) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct ring_host *find(const struct ring *ring, const char *hid)
{
	uint32_t at = place_of(ring, hid);

	return at < ring->count && !strcmp(ring->hosts[at].hid, hid) ? &ring->hosts[at] : NULL;
}

bool ring_set(struct ring *ring, char (*hids)[HID_TEXT], uint32_t count, const char *own)
{
	struct ring_host *hosts = calloc(count ? count : 1, sizeof(*hosts));
	uint32_t used = 0;

	if (!hosts)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		const struct ring_host *known = find(ring, hids[i]);

		if (!strcmp(hids[i], own))
			continue;
		if (known)
			hosts[used] = *known;
		else
			memcpy(hosts[used].hid, hids[i], HID_TEXT);
		used++;
	}
	free(ring->hosts);
	ring->hosts = hosts;
	ring->count = used;
	ring->next = place_of(ring, own);
	return true;
}

void ring_free(struct ring *ring)
{
	free(ring->hosts);
	*ring = (struct ring){0};
}

static void begin_anew(struct ring *ring, const struct ring_facts *facts)
{
	if (ring->epoch == facts->epoch && ring->lapses == facts->lapses)
		return;
	ring->epoch = facts->epoch;
	ring->lapses = facts->lapses;
	for (uint32_t i = 0; i < ring->count; i++) {
		ring->hosts[i].counts = false;
		ring->hosts[i].is_void = ring->hosts[i].asked;
	}
}

/* Tells whether the version of @host has been the same for @ns. */
static bool stands_still(const struct ring_host *host, uint64_t ns, uint64_t now_ns)
{
	return host->counts && now_ns - host->since_ns >= ns;
}

/* Tells whether @host may be dead: it writes more often than it was read in vain. */
static bool is_silent(const struct ring_host *host)
{
	return host->counts && host->vain_reads >= SILENT_READS;
}

/* A way through the hosts behind this one. */
struct walk {
	uint32_t at;
	uint32_t counted, idle; /* passed so far */
};

/*
 * Returns the next host that concerns this one: those that were not looked up, and those that
 * renew, up to the first that has not stood still. NULL: no more.
 */
static struct ring_host *next_host(const struct ring *ring, struct walk *walk)
{
	while (walk->at < ring->count && walk->counted < RING_COUNTED_MAX) {
		struct ring_host *host = &ring->hosts[(ring->next + walk->at++) % ring->count];

		if (host->known && !host->renews) {
			walk->idle++;
			continue;
		}
		/* It may have written often while it was not counted. */
		if (host->walk != ring->walk && host->walk + 1 != ring->walk)
			host->counts = false;
		host->walk = ring->walk;
		if (!host->known)
			return host;
		walk->counted++;
		if (!is_silent(host))
			walk->at = ring->count;
		return host;
	}
	return NULL;
}

static uint64_t sooner(uint64_t a_ns, uint64_t b_ns)
{
	return a_ns < b_ns ? a_ns : b_ns;
}

/* Returns when something is to be done about @host. */
static uint64_t due_ns(const struct ring_host *host, const struct ring_facts *facts)
{
	uint64_t at_ns = host->asked ? NEVER_NS : host->next_ns;

	/* One that others are looked up before: their answers come first. */
	if (!host->known && at_ns <= facts->now_ns)
		at_ns = NEVER_NS;
	if (host->counts && !stands_still(host, facts->quarantine_ns, facts->now_ns))
		at_ns = sooner(at_ns, host->since_ns + facts->quarantine_ns);
	return at_ns;
}

/* Tells whether @host is to be read now; of those that were not looked up @asked are. */
static bool is_due(const struct ring_host *host, const struct ring_facts *facts,
		   const struct walk *walk, uint32_t asked)
{
	if (host->asked || host->next_ns > facts->now_ns)
		return false;
	/* The first is enough where all are busy; the more are idle the more are looked up. */
	return host->known || (asked <= walk->idle && asked < RING_READS_MAX);
}

struct ring_read ring_next(struct ring *ring, const struct ring_facts *facts)
{
	struct ring_read read = {.at_ns = NEVER_NS};
	struct ring_host *host, *due = NULL;
	struct walk walk = {0};
	uint32_t asked = 0;

	begin_anew(ring, facts);
	ring->walk++;
	while ((host = next_host(ring, &walk))) {
		if (!due && is_due(host, facts, &walk, asked))
			due = host;
		asked += !host->known && host->asked;
		read.at_ns = sooner(read.at_ns, due_ns(host, facts));
	}
	if (!due)
		return read;
	due->asked = true;
	due->asked_epoch = facts->epoch;
	due->next_ns = facts->now_ns + facts->renewal_ns;
	return (struct ring_read){due->hid, !due->known, NEVER_NS};
}

const struct ring_host *ring_overdue(struct ring *ring, const struct ring_facts *facts)
{
	struct ring_host *host;
	struct walk walk = {0};

	begin_anew(ring, facts);
	while ((host = next_host(ring, &walk))) {
		if (stands_still(host, facts->quarantine_ns, facts->now_ns))
			return host;
	}
	return NULL;
}

void ring_heard(struct ring *ring, const char *hid, int32_t version, bool renews, bool watched,
		uint64_t now_ns)
{
	struct ring_host *host = find(ring, hid);
	bool is_void = host && host->is_void;

	if (!host || !host->asked)
		return;
	host->asked = false;
	host->is_void = false;
	host->known = renews || watched;
	host->renews = renews;
	/* A host that was read as it renewed, and does so no more: it is to be watched. */
	if (!host->known)
		host->next_ns = 0;
	if (!renews)
		host->counts = false;
	if (!renews || is_void)
		return;
	if (host->counts && host->version == version) {
		host->vain_reads++;
		return;
	}
	host->counts = true;
	host->vain_reads = 0;
	host->version = version;
	host->since_ns = now_ns;
	host->epoch = host->asked_epoch;
}

void ring_unheard(struct ring *ring, const char *hid)
{
	struct ring_host *host = find(ring, hid);

	if (!host)
		return;
	host->asked = false;
	host->is_void = false;
}

void ring_changed(struct ring *ring, const char *hid)
{
	struct ring_host *host = find(ring, hid);

	if (!host || (host->known && host->renews))
		return;
	host->known = false;
	host->next_ns = 0;
}

void ring_doubt(struct ring *ring, const char *hid)
{
	struct ring_host *host = find(ring, hid);

	if (!host)
		return;
	host->known = false;
	host->counts = false;
	host->is_void = host->asked;
	host->next_ns = 0;
}

void ring_remove(struct ring *ring, const char *hid)
{
	struct ring_host *host = find(ring, hid);
	uint32_t at;

	if (!host)
		return;
	at = (uint32_t)(host - ring->hosts);
	memmove(host, host + 1, (ring->count - at - 1) * sizeof(*host));
	ring->count--;
	ring->next -= at < ring->next;
}
