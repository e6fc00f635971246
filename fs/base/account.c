/* account - users and groups, see account.h. */
#include "fs/base/account.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* Parses every number but the largest, which stands for none in chown(2). 0 or -ENOENT. */
static int parse_number(const char *text, uint32_t *number)
{
	enum { DECIMAL = 10 };
	unsigned long value;

	errno = 0;
	value = strtoul(text, NULL, DECIMAL);
	if (errno || value >= UINT32_MAX)
		return -ENOENT;
	*number = (uint32_t)value;
	return 0;
}

/* Finds the number of the user that @text names; digits are the number itself. 0 or -ENOENT. */
static int find_user(const char *text, uint32_t *uid)
{
	const struct passwd *entry;

	if (is_number(text))
		return parse_number(text, uid);
	entry = getpwnam(text);
	if (!entry)
		return -ENOENT;
	*uid = entry->pw_uid;
	return 0;
}

/* Likewise of the group. */
static int find_group(const char *text, uint32_t *gid)
{
	const struct group *entry;

	if (is_number(text))
		return parse_number(text, gid);
	entry = getgrnam(text);
	if (!entry)
		return -ENOENT;
	*gid = entry->gr_gid;
	return 0;
}

/* Copies @name; false if it would be read back as something else than a name. */
static bool copy_name(const char *name, char text[INI_ACCOUNT_TEXT])
{
	size_t length = strlen(name);

	if (!length || length >= INI_ACCOUNT_TEXT || is_number(name) ||
	    isspace((unsigned char)name[0]) || isspace((unsigned char)name[length - 1]))
		return false;
	for (const char *c = name; *c; c++) {
		if (iscntrl((unsigned char)*c))
			return false;
	}
	strcpy(text, name);
	return true;
}

void account_print_user(uint32_t uid, char text[INI_ACCOUNT_TEXT])
{
	const struct passwd *entry = getpwuid(uid);
	uint32_t again;

	if (entry && copy_name(entry->pw_name, text) && !find_user(text, &again) && again == uid)
		return;
	snprintf(text, INI_ACCOUNT_TEXT, "%" PRIu32, uid);
}

void account_print_group(uint32_t gid, char text[INI_ACCOUNT_TEXT])
{
	const struct group *entry = getgrgid(gid);
	uint32_t again;

	if (entry && copy_name(entry->gr_name, text) && !find_group(text, &again) && again == gid)
		return;
	snprintf(text, INI_ACCOUNT_TEXT, "%" PRIu32, gid);
}

int account_find(const struct ini_owner *given, struct owner *owner, char error[ERROR_TEXT])
{
	struct owner found = *owner;

	if (*given->user && find_user(given->user, &found.uid))
		return text_refuse(-ENOENT, error, given->user, "there is no such user");
	if (*given->group && find_group(given->group, &found.gid))
		return text_refuse(-ENOENT, error, given->group, "there is no such group");
	if (given->has_access)
		found.access = given->access;
	*owner = found;
	return 0;
}
