/*
 * keys_missed - keys that ran out on this host, and how often of late: which one is to be leased
 * next. There is room for a bounded number. A key that misses rarely does not push out one that
 * misses often: it wears that one down first, as in Misra and Gries, "Finding Repeated Elements"
 * (1982).
 */
#ifndef RATEFS_CORE_KEYS_MISSED_H
#define RATEFS_CORE_KEYS_MISSED_H

#include <stdbool.h>
#include <stdint.h>

enum { KEYS_MISSED_MAX = 512, KEYS_MISSED_WAYS = 2 };

struct key_missed {
	uint64_t key;	  /* its number, see keys.h */
	uint32_t limiter; /* id */
	uint32_t times;	  /* 0: there is none here */
};

struct keys_missed {
	struct key_missed keys[KEYS_MISSED_MAX];
	uint32_t count;
};

/* Notes that key number @key of limiter @limiter ran out. */
void keys_missed_note(struct keys_missed *missed, uint64_t key, uint32_t limiter);

/* Puts the key that ran out most often into *@most, and forgets it. False: there is none. */
bool keys_missed_take(struct keys_missed *missed, struct key_missed *most);

/* Halves all numbers: a miss of long ago counts less. */
void keys_missed_age(struct keys_missed *missed);

#endif
