/* slot_order - the openers of each place, and the order of its siblings, see slot_order.c. */
#ifndef RATEFS_SIM_SLOT_ORDER_H
#define RATEFS_SIM_SLOT_ORDER_H

#include "tests/sim/actors/reader.h"

/* @opener waits from now on; it does not any more. */
void slot_order_waits(struct sim *sim, struct reader *opener);
void slot_order_leaves(struct reader *opener);

/* The slot of @opener is open; called before slot_order_leaves(). A slot of @place is closed. */
void slot_order_opened(struct sim *sim, struct reader *opener);
void slot_order_closed(struct place *place);

/* The settings of @place have changed, or the number of its slots. */
void slot_order_tuned(struct place *place);

/* Judges a step of @host that ends. */
void slot_order_rest(struct host *host);

#endif
