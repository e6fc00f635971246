/* dues_check - siblings over the hosts of a fleet, see dues_check.h. */
#include "tests/sim/invariants/dues_check.h"

#include <math.h>
#include <stdio.h>

/* See dues_check.h. */
static const double DUE_LEAST = 0.95;
static const double LIGHT_AGAIN = 1.5;

/* Halvings of a level: all digits of a double. */
enum { HALVINGS = 200 };

static double smaller(double a, double b)
{
	return a < b ? a : b;
}

/* Returns what @part is due of its minimum. */
static double floor_of(const struct dues *dues, const struct due *part)
{
	return smaller(part->wanted, fraction_per_second(&part->terms.min) * dues->span_s);
}

static double due_at(const struct dues *dues, const struct due *part, double level)
{
	double least = floor_of(dues, part), weighted = (double)part->terms.weight * level;

	return smaller(part->wanted, weighted > least ? weighted : least);
}

/* Returns what the siblings of @class are due beside their minima at @level. */
static double sum_at(const struct dues *dues, uint32_t class, double level)
{
	double sum = 0;

	for (uint32_t i = 0; i < dues->count; i++) {
		const struct due *part = &dues->parts[i];

		if (part->terms.class == class)
			sum += due_at(dues, part, level) - floor_of(dues, part);
	}
	return sum;
}

/* Returns the level at which @class is due no more than @left beside its minima. */
static double level_of(const struct dues *dues, uint32_t class, double left)
{
	double low = 0, high = left;

	/* Weights are 1 at least: at @left a sibling that wants so much has all of it. */
	if (sum_at(dues, class, high) <= left)
		return high;
	for (int i = 0; i < HALVINGS; i++) {
		double level = (low + high) / 2;

		if (sum_at(dues, class, level) > left)
			high = level;
		else
			low = level;
	}
	return low;
}

bool dues_check_compute(struct dues *dues)
{
	double left = 0;

	for (uint32_t i = 0; i < dues->count; i++)
		left += dues->parts[i].granted;
	for (uint32_t i = 0; i < dues->count; i++)
		left -= floor_of(dues, &dues->parts[i]);
	if (left < 0)
		return false;
	for (uint32_t class = ORDER_CLASSES; class --;) {
		double level = level_of(dues, class, left);

		left -= sum_at(dues, class, level);
		for (uint32_t i = 0; i < dues->count; i++) {
			struct due *part = &dues->parts[i];

			if (part->terms.class == class)
				part->due = due_at(dues, part, level);
		}
	}
	return true;
}

bool dues_check(struct dues *dues, char why[WHY_TEXT])
{
	double slack = dues->hosts * (dues->piece + 1) + dues->light * LIGHT_AGAIN;

	for (uint32_t i = 0; i < dues->count; i++)
		slack += (double)dues->parts[i].largest;
	if (!dues_check_compute(dues))
		return true;
	for (uint32_t i = 0; i < dues->count; i++) {
		const struct due *part = &dues->parts[i];

		if (part->granted + slack >= part->due * DUE_LEAST)
			continue;
		snprintf(why, WHY_TEXT,
			 "in %.0f s on %u hosts '%.60s' of weight %llu, class %u and min %.6g/s "
			 "was granted %.0f tokens; it wanted %.0f, and %.0f were due",
			 dues->span_s, dues->hosts, part->name,
			 (unsigned long long)part->terms.weight, part->terms.class,
			 fraction_per_second(&part->terms.min), part->granted, part->wanted,
			 part->due);
		return false;
	}
	return true;
}

bool dues_check_use(const struct dues *dues, double rate, char why[WHY_TEXT])
{
	double wanted = 0, granted = 0, could;

	for (uint32_t i = 0; i < dues->count; i++) {
		wanted += dues->parts[i].wanted;
		granted += dues->parts[i].granted;
	}
	could = smaller(wanted, rate * dues->span_s);
	if (granted + dues->hosts * (dues->piece + 1) + dues->light * LIGHT_AGAIN >=
	    could * DUE_LEAST)
		return true;
	snprintf(why, WHY_TEXT, "in %.0f s %.0f tokens were wanted, and %.0f of %.0f were granted",
		 dues->span_s, wanted, granted, could);
	return false;
}
