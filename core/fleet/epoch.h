/*
 * epoch - when tiles that were taken may be used: how long ago this host first knew that they were
 * free, in the epoch in which it took them.
 *
 * An epoch is the time between two elections of the coordinator's servers: the upper half of each
 * write's number (zxid), and 1, since a server that is alone has 0 there. An election may take back
 * writes of before. So a name that is there in a later epoch may be older than it looks: another
 * host may have taken the tile, in a write that was taken back, and may use it until its right
 * ends. After Q in the new epoch it does not.
 */
#ifndef RATEFS_CORE_EPOCH_H
#define RATEFS_CORE_EPOCH_H

#include "core/fleet/tile.h"

enum {
	EPOCH_NONE = 0,	      /* of a tile that no transaction has given back */
	EPOCH_GONE_MAX = 256, /* hosts that are known to be gone; older ones are forgotten */
};

/* A host that is known to be gone. */
struct gone {
	char hid[HID_TEXT];
	uint32_t epoch;	   /* in which this is known ... */
	uint64_t since_ns; /* ... since then, by the waiter's clock */
};

struct epochs {
	uint32_t newest; /* that of the last acknowledged transaction; EPOCH_NONE: there was none */
	uint64_t known_ns; /* since then, by the waiter's clock */
	struct gone gone[EPOCH_GONE_MAX];
	uint32_t gone_count; /* all that were ever noted; the newest are there */
};

/*
 * Notes the epoch of the transaction with @zxid, which was acknowledged at @now_ns. One that is
 * older than that of the acknowledgement before belongs to another history, and is the newest.
 */
void epoch_note(struct epochs *epochs, uint64_t zxid, uint64_t now_ns);

/*
 * Notes that host @hid, which was seen by any name, was not among the hosts that were listed, by an
 * answer that was received at @now_ns; or is there, whatever was noted.
 */
void epoch_note_gone(struct epochs *epochs, const char *hid, uint64_t now_ns);
void epoch_note_there(struct epochs *epochs, const char *hid);
bool epoch_is_gone(const struct epochs *epochs, const char *hid);

/*
 * Returns when a tile may be used that was taken as @gain, with an acknowledgement that was
 * received at @now_ns, after epoch_note() of it; @now_ns: at once. A tile of a host that was ended
 * has the epoch of that end, and one of a host that is only known to be gone EPOCH_NONE.
 * @quarantine_ns is Q.
 */
uint64_t epoch_usable_ns(const struct epochs *epochs, const struct tile *gain, uint64_t now_ns,
			 uint64_t quarantine_ns);

/* Tells whether the rest of such a tile counts: an election may have taken back its use. */
bool epoch_rest_counts(const struct epochs *epochs, const struct tile *gain);

#endif
