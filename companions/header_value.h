/*
 * header_value - values of the header fields in which services tell of their quotas.
 */
#ifndef RATEFS_COMPANIONS_HEADER_VALUE_H
#define RATEFS_COMPANIONS_HEADER_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Reads a date: those of HTTP (RFC 9110, 5.6.7), RFC 3339, and that of ISO 8601 without seconds. ns
 * since 1970.
 */
bool header_value_date(const char *text, uint64_t *ns);

/*
 * Reads when something is: seconds, in decimals; seconds, ms or us since 1970, which are told apart
 * by their size; a date; or a duration such as 6m0s, 2m59.56s or 12ms. ns from @now_ns on, which
 * counts since 1970: 0 if it is over, ten years at most.
 */
bool header_value_wait(const char *text, uint64_t now_ns, uint64_t *wait_ns);

/*
 * Reads a whole number, or the whole part of a decimal: up to TOKENS_MAX, at the beginning of
 * @text, and followed by nothing, a comma or a semicolon.
 */
bool header_value_count(const char *text, uint64_t *count);

#endif
