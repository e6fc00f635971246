/*
 * rate_setting - the values of `rate` and `key_rate` from and to text: a list of limits, of tokens
 * that flow in (`10/s:20`), strict windows and windows of the calendar, each with a unit or without
 * one. A key has one of each unit, and beside that a window of each length and unit.
 */
#ifndef RATEFS_CORE_RATE_SETTING_H
#define RATEFS_CORE_RATE_SETTING_H

#include "core/values/settings.h"

/* As setting_parse() and setting_print() of SETTING_RATE. */
int rate_setting_parse(const char *text, struct settings *settings, char error[ERROR_TEXT]);
void rate_setting_print(const struct settings *settings, char text[SETTING_TEXT]);

/* Likewise of SETTING_KEY_RATE. */
int rate_setting_parse_key(const char *text, struct settings *settings, char error[ERROR_TEXT]);
void rate_setting_print_key(const struct settings *settings, char text[SETTING_TEXT]);

/* Returns why a text is no burst, of which tokens_parse() said @err; -ERANGE: it is 0, too. */
const char *rate_setting_burst_why(int err);

#endif
