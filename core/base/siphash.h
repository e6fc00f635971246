/*
 * siphash - SipHash-2-4, a keyed hash: without the seed an attacker cannot make names collide.
 *
 * Aumasson, Bernstein: "SipHash: a fast short-input PRF" (2012).
 */
#ifndef RATEFS_CORE_SIPHASH_H
#define RATEFS_CORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the hash of @length @bytes. */
uint64_t siphash(const void *bytes, size_t length, const uint64_t seed[2]);

#endif
