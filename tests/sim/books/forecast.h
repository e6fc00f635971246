/* forecast - whether readers wait as long as they were told, see forecast.c. */
#ifndef RATEFS_SIM_FORECAST_H
#define RATEFS_SIM_FORECAST_H

#include "tests/sim/actors/reader.h"

/* @reader asks, for at most @within_ns; it waits; or it was refused with @err. */
void forecast_asks(struct sim *sim, struct reader *reader, uint64_t within_ns);
void forecast_waits(struct sim *sim, struct reader *reader);
void forecast_refused(struct sim *sim, const struct reader *reader, int err);

/* @reader, which has waited, is granted its tokens. */
void forecast_granted(struct sim *sim, const struct reader *reader);

/* Something has come that changes what readers were told. */
void forecast_news(struct sim *sim);

#endif
