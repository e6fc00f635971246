/*
 * text - pieces of text from outside, and the sentences that refuse them.
 */
#ifndef RATEFS_CORE_TEXT_H
#define RATEFS_CORE_TEXT_H

#include <stddef.h>

enum {
	SETTING_TEXT = 1024, /* room for one setting's text */
	ERROR_TEXT = 512,    /* room for a sentence that says what is wrong */
};

/* White space between words. */
#define TEXT_SPACE " \t\n\r\v\f"

/*
 * Copies @length bytes of @text, which hold no zero byte, without white space at either end, and
 * terminates the copy. 0, or -EINVAL when it does not fit.
 */
int text_copy(const char *text, size_t length, char *copy, size_t size);

/* Puts "'TEXT': WHY" into @error; returns @err. */
int text_refuse(int err, char error[ERROR_TEXT], const char *text, const char *why);

#endif
