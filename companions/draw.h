/*
 * draw - a recording as a script for gnuplot(1).
 */
#ifndef RATEFS_COMPANIONS_DRAW_H
#define RATEFS_COMPANIONS_DRAW_H

#include "companions/recording.h"

#include <stdbool.h>
#include <stdio.h>

/* Returns whether an image can be drawn to a file of that name, which is by its end. */
bool draw_can(const char *file);

/*
 * Writes the script that draws @recording as the image that the end of @file names, or in signs for
 * the terminal that standard output is, if @file is NULL. @stacked: the first limiter is drawn with
 * its children, which are the others.
 */
void draw_script(const struct recording *recording, const char *file, bool stacked, FILE *out);

#endif
