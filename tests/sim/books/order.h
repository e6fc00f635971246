/* order - the waiters of each place, and the order of its siblings, see order.c. */
#ifndef RATEFS_SIM_ORDER_H
#define RATEFS_SIM_ORDER_H

#include "tests/sim/actors/reader.h"

/* @reader waits from now on; it does not any more. */
void order_waits(struct sim *sim, struct reader *reader);
void order_leaves(struct reader *reader);

/* @reader is granted its tokens. Called before order_leaves(). */
void order_granted(struct sim *sim, const struct reader *reader);

/* The settings of @place have changed; tokens were charged, or came back if negative. */
void order_tuned(struct place *place);
void order_charged(struct place *place, const struct charge *charge);

/* Outcomes of work are reported to @place: it, or those above, may pause or learn another rate. */
void order_heard(struct place *place);

/* Judges a step of @host that ends: none that could be served sleeps, and siblings are in order. */
void order_rest(struct host *host);

#endif
