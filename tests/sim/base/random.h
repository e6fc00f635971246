/*
 * random - a small seeded generator of numbers.
 *
 * splitmix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (OOPSLA 2014),
 * after Vigna's public domain C, https://prng.di.unimi.it/splitmix64.c.
 */
#ifndef RATEFS_SIM_RANDOM_H
#define RATEFS_SIM_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state; /* the seed */
};

static inline uint64_t random_next(struct random *random)
{
	uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* From 0 to @below - 1. */
static inline uint64_t random_below(struct random *random, uint64_t below)
{
	return random_next(random) % below;
}

/* A trace made up from @seed, that ends after @for_ns; in memory the caller frees. */
char *random_trace(uint64_t seed, uint64_t for_ns);

/* Likewise, about the order among siblings. */
char *random_order(uint64_t seed, uint64_t for_ns);

/* Likewise, about the order among siblings over the @hosts hosts of a fleet. */
char *random_dues(uint64_t seed, uint64_t for_ns, unsigned int hosts);

/* Likewise, of a fleet of @hosts hosts, with faults. */
char *random_fleet(uint64_t seed, uint64_t for_ns, unsigned int hosts);

#endif
