/*
 * baseline - the settings that this host stands on: the version of /g that is applied here, and
 * what /g and /c/0 said in it.
 */
#ifndef RATEFS_CORE_BASELINE_H
#define RATEFS_CORE_BASELINE_H

#include "core/fleet/parts.h"

bool baseline_new(struct fleet *fleet);
void baseline_free(struct fleet *fleet);

/* The version of /g that is applied, -1: none; the write that made it; its contents. */
int32_t baseline_version(const struct fleet *fleet);
uint64_t baseline_zxid(const struct fleet *fleet);
const struct globals *baseline_globals(const struct fleet *fleet);

/* @globals, of @version, is applied. */
void baseline_set(struct fleet *fleet, const struct globals *globals, int32_t version,
		  uint64_t zxid);

/*
 * This host's change of limiter @id, which gave the id @given (0: none), is applied by write @zxid.
 */
void baseline_advance(struct fleet *fleet, uint64_t id, uint64_t given, uint64_t zxid);

/* Another version of /g is there, or may be; nothing is sent before it is applied. */
bool baseline_is_stale(const struct fleet *fleet);
void baseline_note_stale(struct fleet *fleet);

/* Not only what changed since has to be read. */
bool baseline_is_void(const struct fleet *fleet);
void baseline_note_void(struct fleet *fleet);

/* Version, -1: there is none, and generation of /c/0, which says who owns the top. */
int32_t baseline_root_version(const struct fleet *fleet);
uint64_t baseline_root_generation(const struct fleet *fleet);
void baseline_set_root_version(struct fleet *fleet, int32_t version);
void baseline_set_root_generation(struct fleet *fleet, uint64_t generation);

#endif
