/*
 * neighbour - the right of a host that died is ended by the host before it in the ring: rule 10 of
 * fleet.h. ring.h decides which hosts are counted, and when one is overdue. Here their nodes are
 * read, the transaction is sent, and /d says which hosts were ended.
 *
 * A host counts while it holds or claims something, and its right runs.
 */
#ifndef RATEFS_CORE_NEIGHBOUR_H
#define RATEFS_CORE_NEIGHBOUR_H

#include "core/fleet/parts.h"
#include "core/fleet/znode.h"

bool neighbour_new(struct fleet *fleet);
void neighbour_free(struct fleet *fleet);

/* The session is gone, with all reads and watches. */
void neighbour_forget(struct fleet *fleet);

/* Reads what is due. */
void neighbour_step(struct fleet *fleet);

/* Ends a host that is overdue, if there is one; tells whether that is a transaction. */
bool neighbour_send(struct fleet *fleet);

/* The transaction was answered; or its outcome is unknown. */
void neighbour_answered(struct fleet *fleet, const struct request *request);
void neighbour_doubt(struct fleet *fleet);

/* A host's node that is watched, or the folder of ends, has changed. */
void neighbour_changed(struct fleet *fleet, const struct znode *znode);

/*
 * Leaves are wanted that other hosts have: the ends of hosts are listed, unless they are known, and
 * their folder is watched until the next change. Then neighbour_has_ended() tells once that a
 * host's end is new here.
 */
void neighbour_seek(struct fleet *fleet);
bool neighbour_has_ended(struct fleet *fleet);

/* Tells whether the ends are known as they are; takes a list of them with a watch, answered. */
bool neighbour_knows_ends(const struct fleet *fleet);
void neighbour_note_ends(struct fleet *fleet, const struct request *request);

/* Returns E of /d/HID+E, the youngest, as the ends were listed last; EPOCH_NONE: there is none. */
uint32_t neighbour_end_epoch(const struct fleet *fleet, const char *hid);

/*
 * Rule 20: returns the caps that host @hid told last, as its end with @epoch has them; NULL: that
 * was not read yet. neighbour_ask_end() makes the request that reads it, NULL without memory, and
 * neighbour_note_end() takes the answer.
 */
const struct host_caps *neighbour_caps(const struct fleet *fleet, const char *hid, uint32_t epoch);
struct request *neighbour_ask_end(const char *hid, uint32_t epoch,
				  void (*done)(struct fleet *fleet, struct request *request));
void neighbour_note_end(struct fleet *fleet, const struct request *request);

/* Tells whether host @hid is known to be gone, or ended. */
bool neighbour_is_gone(const struct fleet *fleet, const char *hid);

#endif
