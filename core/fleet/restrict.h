/*
 * restrict - what of settings counts while not all hosts have them: see "Settings" in fleet.h. For Q
 * after a change others may use a limiter as it was, and as it was before that.
 */
#ifndef RATEFS_CORE_RESTRICT_H
#define RATEFS_CORE_RESTRICT_H

#include "core/fleet/parts.h"

/* For Q from now @holding is used no further than in @before, and only its first @count partitions. */
void restrict_to(struct fleet *fleet, struct holding *holding, const struct settings *before,
		 uint32_t count);

/*
 * Notes that @holding is about to have @settings, which restrict nothing: until Q from now other
 * hosts may use it as it is, and as it was before that.
 */
void restrict_alter(struct fleet *fleet, struct holding *holding, const struct settings *settings);

/*
 * Tells whether markers written under @old are as true under @new, both in the tokens that were
 * left and in the limits from which nothing was taken: rule 12. Where nothing was limited nothing
 * was taken from limits, whatever they will be.
 */
bool restrict_keeps_savings(const struct settings *old, const struct settings *new);

/*
 * Names what others may use while they do not know of the change: the settings as they are. If
 * others may also be as they were before that, it is what is less in either: then hosts under any
 * two of the settings together stay within the larger rate. -EBUSY if neither is less.
 */
int restrict_name_before(const struct fleet *fleet, const struct holding *holding,
			 struct record *record);

#endif
