/*
 * siphash - SipHash-2-4, a hash that who does not know the seed cannot aim at: names that strangers
 * choose do not all end up in one chain.
 *
 * Aumasson, Bernstein: "SipHash: a fast short-input PRF" (2012).
 */
#ifndef RATEFS_CORE_SIPHASH_H
#define RATEFS_CORE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t siphash(const void *bytes, size_t length, const uint64_t seed[2]);

#endif
