/*
 * overriding - what is overridden of keys, as the books have it: tables that belong to no process,
 * each kept once, until the end of the run.
 */
#ifndef RATEFS_SIM_OVERRIDING_H
#define RATEFS_SIM_OVERRIDING_H

#include "core/values/settings.h"

/* Returns a copy of @settings whose overrides are the books'. */
struct settings overriding_copy(const struct settings *settings);

/* Sets rate and burst of the key at @path, .../keys/KEY, as the overrides of @whole say. */
void overriding_apply(const struct settings *whole, const char *path, struct settings *its);

void overriding_free(void);

#endif
