/*
 * ini - a file of limiters: a section per limiter path, its settings as `name=value` lines.
 *
 *	# services
 *	[orders]
 *	group=team
 *	mode=2775
 *	rate=500/s
 *	[orders/batch]
 *	rate=50/s
 *
 * Blank lines and lines that start with # or ; are skipped. The section [/] is of the top of the
 * tree, which has an owner and no settings.
 */
#ifndef RATEFS_CORE_INI_H
#define RATEFS_CORE_INI_H

#include "core/values/name.h"
#include "core/values/settings.h"

struct ini {
	const char *at;	   /* the rest of the text, borrowed */
	unsigned int line; /* lines read so far */
};

struct ini_section {
	/* Without slashes at its ends; each name can be a limiter's. "": the top. */
	char path[PATH_TEXT];
	const char *body; /* borrowed, not terminated: lines for settings_parse() */
	size_t length;
	unsigned int line; /* of the header */
};

/* Room for the name of a user or group. */
enum { INI_ACCOUNT_TEXT = 256 };

/* The keys of a section beside the settings of its limiter: `owner=`, `group=` and `mode=`. */
struct ini_owner {
	char user[INI_ACCOUNT_TEXT];  /* a name or a number; "": not given */
	char group[INI_ACCOUNT_TEXT]; /* likewise */
	bool has_access;	      /* a mode is given */
	uint16_t access;	      /* of ACCESS_BITS */
};

/* The next section: 1. 0 at the end. -EINVAL with the line and a reason. */
int ini_next(struct ini *ini, struct ini_section *section, char error[ERROR_TEXT]);

/*
 * Takes the lines of @owner out of @text, the body of a section: they become blank, and the lines
 * after them keep their numbers. 0, or -EINVAL and -ERANGE with the line and a reason.
 */
int ini_take_owner(char *text, struct ini_owner *owner, char error[ERROR_TEXT]);

/* Says why a setting in the section [/] is refused. */
#define INI_TOP_HAS_NO_SETTINGS "the top has an owner, a group and a mode, and no settings"

/* Whether @text has only blank lines and comments. */
bool ini_is_blank(const char *text);

/*
 * Parses @text, the body of a section, which is spoilt: its owner, and its settings, of which those
 * that are not given stay as they are. 0, or -EINVAL and -ERANGE with a reason, and with the line
 * unless it is a matter of several settings.
 */
int ini_parse(char *text, struct settings *settings, struct ini_owner *owner,
	      char error[ERROR_TEXT]);

#endif
