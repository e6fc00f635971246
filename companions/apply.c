/*
 * apply - makes a mounted tree what a file of limiters says: makes what is missing, sets what
 * differs, and with --prune removes what is not in the file. Nothing is changed unless the whole
 * file is right; from then on each change that is refused is reported, and the others are made.
 */
#include "companions/companion.h"
#include "companions/difference.h"
#include "companions/inspect.h"
#include "companions/mounted.h"

#include "fs/base/account.h"
#include "fs/local/store.h"

#include <assert.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct apply {
	struct inspection inspection; /* of the file */
	int top;		      /* descriptor of the top of the tree */
	mode_t access;		      /* of limiters that are made, unless the file says it */
	struct named *later;	      /* limiters that get their modes at last, newest first */
	bool dry_run, prune;
	bool changed, trouble;
	char path[PATH_TEXT]; /* of the limiter that is worked on */
};

/* The section of a limiter, or the values for one that the file only names on the way. */
struct wanted {
	struct settings settings;
	struct ini_owner owner;
};

static const char SETTINGS[] = "settings"; /* as messages call a write of `config` */

/* Prints a line for what was changed, or would be. */
__attribute__((format(printf, 2, 3))) static void tell(struct apply *apply, const char *format, ...)
{
	va_list arguments;

	apply->changed = true;
	printf("%s: ", mounted_called(apply->path));
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	putchar('\n');
}

/* Reports that @what could not be done, with @err, an errno. */
static void report_failure(struct apply *apply, int err, const char *what)
{
	warnx("%s: %s: %s", mounted_called(apply->path), what, strerror(err));
	apply->trouble = true;
}

/*
 * Tells whether the daemon has a sentence for a change that it refuses with @err, an errno. EPERM
 * is the kernel's, but of a write, which that has no reason to refuse once the file is open.
 */
static bool is_explained(int err, bool is_write)
{
	static const int explained[] = {EINVAL, ERANGE, EBUSY, ENOSPC, ETIMEDOUT, EHOSTUNREACH};

	for (size_t i = 0; i < sizeof(explained) / sizeof(explained[0]); i++) {
		if (explained[i] == err)
			return true;
	}
	return is_write && err == EPERM;
}

/* Reports that the change @what was refused with @err, an errno, and why if the daemon says it. */
static void explain_refusal(struct apply *apply, int err, const char *what)
{
	char text[CONFIG_TEXT] = "";

	if (is_explained(err, !strcmp(what, SETTINGS)))
		(void)store_read(apply->top, "last_error", text, sizeof(text));
	text[strcspn(text, "\n")] = '\0';
	warnx("%s: %s: %s%s%s", mounted_called(apply->path), what, strerror(err), *text ? ": " : "",
	      text);
	apply->trouble = true;
}

/* Prints a line of a difference. */
static void tell_line(void *argument, const char *line)
{
	tell(argument, "%s", line);
}

/*
 * Sets what differs in the limiter whose directory @directory is, or is to be. A limiter that was
 * just @made is told of before its settings are. 0, or -errno after a message.
 */
static int write_setting(struct apply *apply, int directory, const struct settings *now,
			 const struct settings *wanted, bool made)
{
	int err = apply->dry_run ? 0 : difference_write(directory, now, wanted);

	if (err) {
		explain_refusal(apply, -err, SETTINGS);
		return err;
	}
	if (made)
		tell(apply, "created");
	difference_tell(now, wanted, made, tell_line, apply);
	return 0;
}

/* Tells all that the file says of a limiter that was just made, and of others what differs. */
static void tell_owner(struct apply *apply, const struct owner *now, const struct owner *wanted,
		       const struct ini_owner *given, bool made)
{
	char value[INI_ACCOUNT_TEXT], before[INI_ACCOUNT_TEXT];

	account_print_user(wanted->uid, value);
	account_print_user(now->uid, before);
	if (made && *given->user)
		tell(apply, "owner=%s", value);
	else if (!made && wanted->uid != now->uid)
		tell(apply, "owner=%s, was %s", value, before);
	account_print_group(wanted->gid, value);
	account_print_group(now->gid, before);
	if (made && *given->group)
		tell(apply, "group=%s", value);
	else if (!made && wanted->gid != now->gid)
		tell(apply, "group=%s, was %s", value, before);
}

static void tell_access(struct apply *apply, const struct owner *now, const struct owner *wanted,
			const struct ini_owner *given, bool made)
{
	if (made && given->has_access)
		tell(apply, "mode=%04o", (unsigned int)wanted->access);
	else if (!made && wanted->access != now->access)
		tell(apply, "mode=%04o, was %04o", (unsigned int)wanted->access,
		     (unsigned int)now->access);
}

/*
 * Gives @directory the mode @access. 0 or -errno: the kernel leaves setgid out without saying so.
 */
static int set_access(int directory, mode_t access)
{
	struct stat attributes;

	if (fchmod(directory, access) || fstat(directory, &attributes))
		return -errno;
	return (attributes.st_mode & ACCESS_BITS) == access ? 0 : -EPERM;
}

/*
 * Gives the limiter that was just made at @directory the mode @access, but keeps it open to its
 * owner until all limiters are made: some may come below it. 0 or -errno.
 */
static int set_first_access(struct apply *apply, int directory, mode_t access)
{
	struct named *named = inspect_find(&apply->inspection, apply->path);
	int err = set_access(directory, access | S_IRWXU);

	if (err || (access & S_IRWXU) == S_IRWXU)
		return err;
	named->access = access;
	named->later = apply->later;
	apply->later = named;
	return 0;
}

/* Gives new limiters the modes that close them to their owners, each before the one above it. */
static void set_last_accesses(struct apply *apply)
{
	for (const struct named *named = apply->later; named; named = named->later) {
		int directory = mounted_enter(apply->top, named->path);
		int err = directory < 0 ? directory : set_access(directory, named->access);

		strcpy(apply->path, named->path);
		if (err)
			explain_refusal(apply, -err, "mode");
		if (directory >= 0)
			close(directory);
	}
}

/* Makes owner, group and mode of the limiter at @directory, which are @now, what is @wanted. */
static void change_owner(struct apply *apply, int directory, const struct owner *now,
			 const struct owner *wanted, const struct ini_owner *given, bool made)
{
	bool uid = wanted->uid != now->uid, gid = wanted->gid != now->gid;
	int err = 0;

	if ((uid || gid) && !apply->dry_run &&
	    fchown(directory, uid ? wanted->uid : (uid_t)-1, gid ? wanted->gid : (gid_t)-1))
		explain_refusal(apply, errno, "owner and group");
	else
		tell_owner(apply, now, wanted, given, made);
	if (wanted->access != now->access && !apply->dry_run)
		err = made ? set_first_access(apply, directory, wanted->access)
			   : set_access(directory, wanted->access);
	if (err)
		explain_refusal(apply, -err, "mode");
	else
		tell_access(apply, now, wanted, given, made);
}

/* Returns the owner that a limiter with @now is to have; names were found before. */
static struct owner owner_wanted(struct apply *apply, const struct ini_owner *given,
				 struct owner now)
{
	char error[ERROR_TEXT];

	if (account_find(given, &now, error)) {
		warnx("%s: %s", mounted_called(apply->path), error);
		apply->trouble = true;
	}
	return now;
}

/*
 * Lowers the min of the limiter at @directory to that of @wanted, if it is more, and tells so. All
 * minima that come down do so before others rise: in between, too, they fit the rates above them.
 * A failure is reported when the limiter's turn comes.
 */
static void lower_min(struct apply *apply, int directory, const struct settings *wanted)
{
	struct settings now = SETTINGS_DEFAULT, lower;
	char text[SETTING_TEXT], error[ERROR_TEXT];

	if (store_read(directory, setting_name(SETTING_MIN), text, sizeof(text)) ||
	    setting_parse(SETTING_MIN, text, &now, error) ||
	    rate_compare(&wanted->min, &now.min) >= 0)
		return;
	lower = now;
	lower.min = wanted->min;
	if (apply->dry_run || !difference_write(directory, &now, &lower))
		difference_tell(&now, &lower, false, tell_line, apply);
}

/* Lowers the min of the limiter of @section, if it is there. */
static void lower_section(struct apply *apply, const struct ini_section *section,
			  const struct wanted *wanted)
{
	int directory = *section->path ? mounted_enter(apply->top, section->path) : -ENOENT;

	if (directory < 0)
		return;
	strcpy(apply->path, section->path);
	lower_min(apply, directory, &wanted->settings);
	close(directory);
}

/* Lowers the min of each limiter that will be removed and whose siblings may stay. */
static void lower_unnamed(struct apply *apply, int directory)
{
	struct mounted_names names;
	int length, child;

	(void)mounted_list(directory, &names);
	for (size_t i = 0; i < names.count; i++) {
		length = mounted_append(apply->path, names.all[i]);
		child = length < 0 ? length : mounted_enter(directory, names.all[i]);
		if (child >= 0 && inspect_find(&apply->inspection, apply->path))
			lower_unnamed(apply, child);
		else if (child >= 0)
			lower_min(apply, child, &SETTINGS_DEFAULT);
		if (child >= 0)
			close(child);
		if (length >= 0)
			apply->path[length] = '\0';
	}
	mounted_names_free(&names);
}

/* Makes a limiter that is there what is wanted. */
static void update_limiter(struct apply *apply, int directory, const struct wanted *wanted)
{
	struct mounted now;
	struct owner owner;
	char error[ERROR_TEXT];
	int err = mounted_read(directory, !*apply->path, &now, error);

	if (err) {
		report_failure(apply, -err, *error ? error : "config");
		return;
	}
	/* It was told of before. */
	if (apply->dry_run && rate_compare(&wanted->settings.min, &now.settings.min) < 0)
		now.settings.min = wanted->settings.min;
	if (*apply->path)
		(void)write_setting(apply, directory, &now.settings, &wanted->settings, false);
	settings_drop(&now.settings);
	owner = owner_wanted(apply, &wanted->owner, now.owner);
	change_owner(apply, directory, &now.owner, &owner, &wanted->owner, false);
}

/* Makes a limiter that was just made what is wanted. 0, or -errno after a message. */
static int complete_settings(struct apply *apply, int directory, const struct wanted *wanted)
{
	struct mounted now = {.settings = SETTINGS_DEFAULT};
	struct owner owner;
	char error[ERROR_TEXT];
	int err = apply->dry_run ? 0 : mounted_read(directory, false, &now, error);

	if (err) {
		report_failure(apply, -err, *error ? error : "config");
		return err;
	}
	err = write_setting(apply, directory, &now.settings, &wanted->settings, true);
	settings_drop(&now.settings);
	if (err)
		return err;
	owner = now.owner;
	owner.access = (uint16_t)(apply->access | (now.owner.access & ACCESS_SETGID));
	owner = owner_wanted(apply, &wanted->owner, owner);
	change_owner(apply, directory, &now.owner, &owner, &wanted->owner, true);
	return 0;
}

/*
 * Makes limiter @name in @directory. Until it is what is wanted it is closed to other users, and
 * one that cannot have its settings is removed. A descriptor; or -errno after a message, in a dry
 * run -ENOENT.
 */
static int make_limiter(struct apply *apply, int directory, const char *name,
			const struct wanted *wanted)
{
	struct named *named = inspect_find(&apply->inspection, apply->path);
	int made, err;

	assert(named);
	if (apply->dry_run) {
		if (!named->told)
			(void)complete_settings(apply, -1, wanted);
		named->told = true;
		return -ENOENT;
	}
	if (mkdirat(directory, name, S_IRWXU)) {
		err = errno;
		explain_refusal(apply, err, "mkdir");
		return -err;
	}
	made = mounted_enter(directory, name);
	if (made < 0)
		report_failure(apply, -made, "open");
	err = made < 0 ? made : complete_settings(apply, made, wanted);
	if (!err)
		return made;
	if (made >= 0)
		close(made);
	(void)unlinkat(directory, name, AT_REMOVEDIR);
	return err;
}

/* Makes the tree what the file says of the limiter @path, and of those above it. */
static void apply_path(struct apply *apply, const char *path, const struct wanted *wanted)
{
	static const struct wanted implied = {.owner = {.has_access = false}};
	struct wanted above = implied;
	char copy[PATH_TEXT], *rest = *path ? copy : NULL, *name;
	int at = fcntl(apply->top, F_DUPFD_CLOEXEC, 0), next = at;
	bool made = false;

	above.settings = SETTINGS_DEFAULT;
	memcpy(copy, path, strlen(path) + 1);
	apply->path[0] = '\0';
	while ((name = strsep(&rest, "/"))) {
		if (mounted_append(apply->path, name) < 0)
			break; /* never: it was a path before */
		next = at < 0 ? -ENOENT : mounted_enter(at, name);
		made = next == -ENOENT;
		if (made)
			next = make_limiter(apply, at, name, rest ? &above : wanted);
		else if (next < 0)
			report_failure(apply, -next, "open");
		if (at >= 0)
			close(at);
		at = next;
		if (at < 0 && (at != -ENOENT || !apply->dry_run))
			return;
	}
	if (at < 0)
		return;
	if (!made)
		update_limiter(apply, at, wanted);
	close(at);
}

/* Parses @section, which was found right. 0, or -errno with a reason. */
static int parse_arguments(const struct ini_section *section, struct wanted *wanted,
			   char error[ERROR_TEXT])
{
	char *text = strndup(section->body, section->length);
	int err;

	snprintf(error, ERROR_TEXT, "no memory");
	if (!text)
		return -ENOMEM;
	wanted->settings = SETTINGS_DEFAULT;
	err = ini_parse(text, &wanted->settings, &wanted->owner, error);
	free(text);
	return err;
}

/* Calls @each for every section of @text. */
static void for_each_section(struct apply *apply, const char *text,
			     void (*each)(struct apply *apply, const struct ini_section *section,
					  const struct wanted *wanted))
{
	struct ini ini = {.at = text};
	struct ini_section section;
	struct wanted wanted;
	char error[ERROR_TEXT];

	while (ini_next(&ini, &section, error) > 0) {
		if (parse_arguments(&section, &wanted, error))
			inspect_complain(&apply->inspection, section.line, error);
		else
			each(apply, &section, &wanted);
		settings_drop(&wanted.settings);
	}
}

static void check_accounts(struct apply *apply, const struct ini_section *section,
			   const struct wanted *wanted)
{
	struct owner owner = {.uid = 0};
	char error[ERROR_TEXT];

	if (account_find(&wanted->owner, &owner, error))
		inspect_complain(&apply->inspection, section->line, error);
}

static void apply_section(struct apply *apply, const struct ini_section *section,
			  const struct wanted *wanted)
{
	apply_path(apply, section->path, wanted);
}

static void remove_limiter(struct apply *apply, int directory, const char *name)
{
	if (!apply->dry_run && unlinkat(directory, name, AT_REMOVEDIR))
		explain_refusal(apply, errno, "rmdir");
	else
		tell(apply, "removed");
}

static void prune_limiters(struct apply *apply, int directory);

/* Removes the limiter @name, and those below it, as far as the file does not name them. */
static void prune_child(struct apply *apply, int directory, const char *name)
{
	int length = mounted_append(apply->path, name), child;

	if (length < 0) {
		report_failure(apply, -length, name);
		return;
	}
	child = mounted_enter(directory, name);
	if (child >= 0) {
		prune_limiters(apply, child);
		close(child);
	}
	if (child < 0 && child != -ENOENT)
		report_failure(apply, -child, "open");
	else if (child >= 0 && !inspect_find(&apply->inspection, apply->path))
		remove_limiter(apply, directory, name);
	apply->path[length] = '\0';
}

static void prune_limiters(struct apply *apply, int directory)
{
	struct mounted_names names;
	int err = mounted_list(directory, &names);

	if (err)
		report_failure(apply, -err, "list");
	for (size_t i = 0; i < names.count; i++)
		prune_child(apply, directory, names.all[i]);
	mounted_names_free(&names);
}

/*
 * Reads the file, and says all that is wrong in it. Its text, from malloc, or NULL after a message.
 */
static char *read_file(struct apply *apply, const char *file)
{
	char *text;

	apply->inspection = (struct inspection){.file = file, .out = stderr};
	text = inspect_file(&apply->inspection);
	if (text && !apply->inspection.wrong)
		for_each_section(apply, text, check_accounts);
	if (text && !apply->inspection.wrong && apply->prune && !apply->inspection.named)
		inspect_complain(&apply->inspection, 0,
				 "no section: --prune would remove every limiter");
	if (!apply->inspection.wrong)
		return text;
	free(text);
	return NULL;
}

static int apply_file(struct apply *apply, const char *file, const char *mountpoint)
{
	char *text = read_file(apply, file);

	apply->access = ACCESSPERMS & ~umask(0);
	apply->top = text ? mounted_open(mountpoint) : -1;
	if (apply->top >= 0) {
		setlinebuf(stdout);
		for_each_section(apply, text, lower_section);
		apply->path[0] = '\0';
		if (apply->prune)
			lower_unnamed(apply, apply->top);
		for_each_section(apply, text, apply_section);
		apply->path[0] = '\0';
		if (apply->prune)
			prune_limiters(apply, apply->top);
		set_last_accesses(apply);
		close(apply->top);
	}
	if (apply->top < 0 || apply->inspection.wrong)
		apply->trouble = true;
	free(text);
	inspect_free(&apply->inspection);
	if (fflush(stdout) || ferror(stdout)) {
		warn("standard output");
		apply->trouble = true;
	}
	if (apply->trouble)
		return STATUS_TROUBLE;
	return apply->changed ? STATUS_CHANGED : EXIT_SUCCESS;
}

static void print_usage(void)
{
	printf("usage: ratefs apply [options] FILE [MOUNTPOINT]\n"
	       "\n"
	       "Makes the tree at MOUNTPOINT, or the only one, what FILE says, limiters as\n"
	       "ratefs save writes them, and prints each change. The exit status is 0 if nothing\n"
	       "was to be changed, 1 if something was, and 2 if something is wrong. With - for\n"
	       "FILE it reads standard input.\n"
	       "\n"
	       "options:\n"
	       "    -n, --dry-run       change nothing, and print what would be changed\n"
	       "    --prune             remove the limiters that FILE does not name\n"
	       "    -h, --help          print this\n");
}

int apply_main(int argc, char *argv[])
{
	static const struct option options[] = {
		{"dry-run", no_argument, NULL, 'n'},
		{"prune", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct apply apply = {.top = -1};
	const char *mountpoint;
	char only[PATH_MAX];
	int option;

	while ((option = getopt_long(argc, argv, "nh", options, NULL)) >= 0) {
		switch (option) {
		case 'n':
			apply.dry_run = true;
			break;
		case 'p':
			apply.prune = true;
			break;
		case 'h':
			print_usage();
			return EXIT_SUCCESS;
		default:
			return companion_usage();
		}
	}
	if (optind == argc || !*argv[optind] || argc - optind > 2 ||
	    (argc - optind == 2 && !*argv[optind + 1])) {
		if (argc - optind > 2)
			warnx("an argument too many: '%s'", argv[optind + 2]);
		else
			warnx(argc - optind == 2 && *argv[optind] ? "not a mount point: ''"
								  : "no file given");
		return companion_usage();
	}
	if (optind + 1 == argc && apply.prune) {
		warnx("--prune removes limiters: name the MOUNTPOINT");
		return companion_usage();
	}
	mountpoint = optind + 1 < argc ? argv[optind + 1] : mounted_find(only);
	return mountpoint ? apply_file(&apply, argv[optind], mountpoint) : STATUS_TROUBLE;
}
