/*
 * wake - what ends the loop's sleep: a timer, and signals that ask for an end or a sign of life.
 */
#ifndef RATEFS_FS_MOUNT_WAKE_H
#define RATEFS_FS_MOUNT_WAKE_H

#include <stdbool.h>
#include <stdint.h>

/* The timer goes off so much early, if it did not go off just before. */
enum { WAKE_EARLY_NS = 60000 };

/* Takes over signals and makes the timer, in the process that will run the loop. 0 or -errno. */
int wake_init(void);

/* Has the loop wake at @at_ns (CLOCK_BOOTTIME; NEVER_NS: not at all). */
void wake_at(uint64_t at_ns);

/* Stops the timer for good, once the loop has ended. */
void wake_never(void);

/* Tells whether the timer went off, or a signal came, since wake_done(). */
bool wake_is_due(void);

/* Tells whether the keeper has asked, since the last call, whether the loop goes on. */
bool wake_is_asked(void);

/* Notes that the loop is about to look at what is due. */
void wake_done(void);

/* Tells whether a signal has asked for the end, before or while the loop runs; and returns it. */
bool wake_is_ending(void);
int wake_ending(void);

/* Tells whether SIGHUP has asked for another server in the place of this one. */
bool wake_is_replaced(void);

#endif
