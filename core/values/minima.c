/* minima - whether the `min` of siblings fit the rates above them, see minima.h. */
#include "core/values/minima.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static u128 fixed_rate(const struct rate *rate)
{
	struct fraction fraction = rate_fraction(rate);

	return ((u128)fraction.num << 64) / fraction.den;
}

u128 minima_term(const struct settings *settings)
{
	return fixed_rate(&settings->min);
}

struct rate minima_room(const struct settings *settings)
{
	struct rate room = RATE_UNLIMITED;

	for (uint32_t i = 0; i < settings_plain_count(settings); i++) {
		const struct rate *rate = &settings->limits[i].rate;

		if (rate->amount && !rate_is_window(rate) && rate_compare(rate, &room) < 0)
			room = *rate;
	}
	return room;
}

bool minima_fit(u128 sum, const struct rate *room)
{
	return rate_is_unlimited(room) || sum <= fixed_rate(room);
}

int minima_refuse(char error[ERROR_TEXT], u128 sum, const char *parent, const char *above,
		  const struct rate *room)
{
	double sum_per_s = (double)sum / 0x1p64 * (double)NSEC_PER_SEC;
	char text[QUANTITY_TEXT];

	rate_print(room, text);
	if (!strcmp(parent, above))
		snprintf(error, ERROR_TEXT,
			 "the min of all limiters in '%.160s' together is %.9g/s: more than its "
			 "rate, %s",
			 parent, sum_per_s, text);
	else
		snprintf(error, ERROR_TEXT,
			 "the min of all limiters in '%.160s' together is %.9g/s: more than the "
			 "rate of '%.160s', %s",
			 parent, sum_per_s, above, text);
	return -ERANGE;
}
