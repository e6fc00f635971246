/*
 * recorded - a recording as text: tab-separated values, with names in the first line, then a line
 * for each limiter of each round but the first.
 */
#ifndef RATEFS_COMPANIONS_RECORDED_H
#define RATEFS_COMPANIONS_RECORDED_H

#include "companions/recording.h"

#include <stdio.h>

void recorded_print_names(FILE *out);
void recorded_print_round(const struct recording *recording, size_t round, FILE *out);

/*
 * Reads the text in @path, "-" for standard input, into @recording, whose @limiters have room for
 * @limiters_max. A round at the end that is not whole is left out. 0, or -1 after a message with
 * the number of the line; recording_free() in either case, and the caller owns the @count limiters.
 */
int recorded_read(struct recording *recording, const char *path, size_t limiters_max,
		  size_t rounds_max);

#endif
