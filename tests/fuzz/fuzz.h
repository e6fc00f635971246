/* fuzz - what a fuzz target and its driver have in common. */
#ifndef RATEFS_TESTS_FUZZ_H
#define RATEFS_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Unlike an assert, always there. */
#define FUZZ_CHECK(condition)                                                                   \
	do {                                                                                    \
		if (!(condition)) {                                                             \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
			abort();                                                                \
		}                                                                               \
	} while (0)

/* Tries one input. The name is libFuzzer's, so that it can be the driver as well. */
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#endif
