/*
 * zones - time zones as the C library knows them: beside the daemon's own reader of their files.
 *
 * The library has one zone at a time, by the environment: for programs of one thread.
 */
#ifndef RATEFS_SIM_ZONES_H
#define RATEFS_SIM_ZONES_H

#include "core/values/zone.h"

extern const struct zones LIBRARY_ZONES;

#endif
