/*
 * account - users and groups, by name or by number.
 */
#ifndef RATEFS_FS_BASE_ACCOUNT_H
#define RATEFS_FS_BASE_ACCOUNT_H

#include "core/limiter/change.h"
#include "core/values/ini.h"

/*
 * Print the name, or the number if there is no name that a file of limiters can have and that means
 * this number.
 */
void account_print_user(uint32_t uid, char text[INI_ACCOUNT_TEXT]);
void account_print_group(uint32_t gid, char text[INI_ACCOUNT_TEXT]);

/*
 * Finds the numbers of @given; a member that is not given stays as it is in @owner. 0, or -ENOENT
 * with a reason; then @owner is as before.
 */
int account_find(const struct ini_owner *given, struct owner *owner, char error[ERROR_TEXT]);

#endif
