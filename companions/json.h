/*
 * json - texts in JSON (RFC 8259), which anything that reads JSON takes.
 */
#ifndef RATEFS_COMPANIONS_JSON_H
#define RATEFS_COMPANIONS_JSON_H

#include <stddef.h>
#include <stdio.h>

/*
 * Writes @length bytes of @text as a string, in quotes. Each byte that is not of UTF-8 becomes
 * U+FFFD.
 */
void json_text(FILE *out, const char *text, size_t length);

#endif
