/*
 * rate_guess - the rate that was meant with a text that is none, to be named where it is refused.
 */
#ifndef RATEFS_CORE_RATE_GUESS_H
#define RATEFS_CORE_RATE_GUESS_H

#include "core/values/quantity.h"

/*
 * Guesses what @text means that rate_parse_limit() did not understand: @guess is a rate that it
 * takes. False: nothing comes to mind.
 */
bool rate_guess(const char *text, char guess[QUANTITY_TEXT]);

#endif
