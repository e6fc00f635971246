/*
 * member - the daemon as one host of a fleet: the coordinator, the lease protocol, and what they
 * tell those who look.
 */
#ifndef RATEFS_FS_ZOOKEEPER_MEMBER_H
#define RATEFS_FS_ZOOKEEPER_MEMBER_H

#include "core/fleet/survey.h"
#include "fs/mount/daemon.h"

struct member;

/*
 * Makes a member of the fleet that @options name, for @daemon, which is initialised with
 * member_source() only then, and member_attach() called. @state says what a predecessor knew, and
 * will say it to a successor. NULL after a message. Nothing is sent yet.
 */
struct member *member_open(struct options *options, struct daemon *daemon, struct state *state);
struct source *member_source(struct member *member);
void member_attach(struct member *member);

/* Takes over from a predecessor, before it starts. 0, or an error after a message. */
int member_resume(struct member *member);

/*
 * Starts, and waits up to 10 s until the host has joined; with `nowait`, or after a predecessor, it
 * does not wait for more than a moment, and it is no error if it has not. 0, or -1 after a message.
 */
int member_join(struct member *member);

/* Gives back what is held and ends the session, within some seconds. No reader waits any more. */
void member_leave(struct member *member);

/* Frees it, when the engine is gone. */
void member_free(struct member *member);

#endif
