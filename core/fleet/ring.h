/*
 * ring - the hosts of a fleet in the order of their names, and which of them this host counts: the
 * decisions of rule 10 of fleet.h. All facts are arguments.
 *
 * A host counts the next one that renews its right: it reads the version of that node every R.
 * After two reads that showed nothing new, which is 2 R, that one may be dead and count nobody: the
 * one behind it is counted, too. A host that holds and wants nothing renews nothing. It is passed
 * over, and its node is watched: the first thing that it writes is told.
 *
 * All times are by the waiter's clock.
 */
#ifndef RATEFS_CORE_RING_H
#define RATEFS_CORE_RING_H

#include "core/fleet/record.h"

enum {
	RING_READS_MAX = 8,    /* hosts that are looked up at one time */
	RING_COUNTED_MAX = 16, /* hosts that are counted at one time */
};

struct ring_host {
	char hid[HID_TEXT];
	bool known;   /* it was looked up: */
	bool renews;  /* it renews its right; if not its node is watched */
	bool asked;   /* a read is out ... */
	bool is_void; /* ... which was sent before all counts began anew */
	bool counts;  /* @version was read ... */
	int32_t version;
	uint32_t vain_reads;  /* that showed it again ... */
	uint32_t walk;	      /* ... counted in that walk last ... */
	uint64_t since_ns;    /* ... and first received then */
	uint64_t next_ns;     /* when it is read next */
	uint32_t asked_epoch; /* of this host's last transaction before the last read ... */
	uint32_t epoch;	      /* ... before the one that first showed @version */
};

struct ring {
	struct ring_host *hosts; /* owned, in the order of their names, without this host */
	uint32_t count;
	uint32_t next; /* place of the one behind this host */
	uint32_t walk; /* how often the ring was walked through */
	/* Of the facts that were last heard. */
	uint32_t epoch;
	uint32_t lapses;
};

struct ring_facts {
	uint64_t now_ns;
	uint64_t renewal_ns;	/* R */
	uint64_t quarantine_ns; /* Q */
	uint32_t epoch;		/* of this host's last acknowledged transaction */
	uint32_t lapses;	/* how often this host's right has run out */
};

struct ring_read {
	const char *hid; /* to be read; NULL: none is now */
	bool watch;	 /* its changes are to be told */
	uint64_t at_ns;	 /* NULL: when to ask again at the latest; NEVER_NS */
};

/*
 * Takes @hids, @count names in their order, of the hosts that there are; @own is this host's. A
 * host that stays keeps its count. False: there is no memory, and the ring is as it was.
 */
bool ring_set(struct ring *ring, char (*hids)[HID_TEXT], uint32_t count, const char *own);

/* Forgets all hosts, and frees what the ring owns. */
void ring_free(struct ring *ring);

/*
 * Returns the next host that is to be read now; it counts as asked until ring_heard() or
 * ring_unheard(). All counts begin anew where this host's right has lapsed, or the epoch changed.
 */
struct ring_read ring_next(struct ring *ring, const struct ring_facts *facts);

/*
 * Returns the host that has stood still for Q, and is to be ended at its @version, as of its
 * @epoch; NULL: there is none.
 */
const struct ring_host *ring_overdue(struct ring *ring, const struct ring_facts *facts);

/* Hears what was read of @hid at @now_ns; or that nothing was. A read with a watch: @watched. */
void ring_heard(struct ring *ring, const char *hid, int32_t version, bool renews, bool watched,
		uint64_t now_ns);
void ring_unheard(struct ring *ring, const char *hid);

/* The node of @hid was watched, and has changed. */
void ring_changed(struct ring *ring, const char *hid);

/* Nothing is known of @hid any more: its end was refused, or its outcome is not known. */
void ring_doubt(struct ring *ring, const char *hid);

/* Host @hid is gone, or ended. */
void ring_remove(struct ring *ring, const char *hid);

#endif
