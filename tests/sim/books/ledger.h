/* ledger - tells the invariants what happened, see ledger.c. */
#ifndef RATEFS_SIM_LEDGER_H
#define RATEFS_SIM_LEDGER_H

#include "tests/sim/actors/reader.h"

void ledger_waits(struct sim *sim, struct reader *reader);
void ledger_granted(struct sim *sim, struct reader *reader);
void ledger_left(struct sim *sim, struct reader *reader);
void ledger_tuning(struct sim *sim, struct place *place);
void ledger_tuned(struct sim *sim, struct place *place);
void ledger_told(struct place *place, const struct outcome *outcome);
void ledger_charged(struct sim *sim, struct place *place, const struct charge *charge);
void ledger_check(struct host *host);

#endif
