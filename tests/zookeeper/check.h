/* check - cases as sentences, printed as TAP. */
#ifndef RATEFS_TESTS_CHECK_H
#define RATEFS_TESTS_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct test_case {
	const char *sentence;
	void (*run)(void);
};

/* Ended by an empty one. */
extern const struct test_case server_cases[], request_cases[], connection_cases[],
	credential_cases[];

/* Of the server, and where files may be made. */
extern uint16_t server_port;
extern const char *directory;

extern bool failed;

#define CHECK(condition)                                                         \
	do {                                                                     \
		if (!(condition)) {                                              \
			printf("# %s:%d: %s\n", __FILE__, __LINE__, #condition); \
			failed = true;                                           \
		}                                                                \
	} while (0)

#define CHECK_IS(value, expected)                                                             \
	do {                                                                                  \
		long long value_ = (long long)(value), expected_ = (long long)(expected);     \
		if (value_ != expected_) {                                                    \
			printf("# %s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__, #value, \
			       value_, expected_);                                            \
			failed = true;                                                        \
		}                                                                             \
	} while (0)

/* The address of a port on this host. */
const char *at(uint16_t port);

#endif
