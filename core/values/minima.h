/*
 * minima - whether the `min` of all limiters in a limiter together fit the rates above them.
 *
 * A min can only be kept while the limiter above has the tokens. So the sum over siblings is
 * compared with the rates of their parent, and of each limiter above it.
 */
#ifndef RATEFS_CORE_MINIMA_H
#define RATEFS_CORE_MINIMA_H

#include "core/values/settings.h"

/* Returns the min of @settings as a term of a sum: in 2^-64 token a nanosecond, rounded down. */
u128 minima_term(const struct settings *settings);

/*
 * Returns the rate that a sum of minima has to fit where @settings hold: the least of their rates,
 * or `max`. A limiter that is stopped, at rate 0, has room for any sum: it grants nothing anyway.
 */
struct rate minima_room(const struct settings *settings);

/* Tells whether @sum is at most @room. */
bool minima_fit(u128 sum, const struct rate *room);

/*
 * Says that @sum, of limiters in @parent, does not fit @room: that of @above, which is @parent or
 * a limiter above it. Returns -ERANGE.
 */
int minima_refuse(char error[ERROR_TEXT], u128 sum, const char *parent, const char *above,
		  const struct rate *room);

#endif
