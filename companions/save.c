/*
 * save - writes a file of limiters that says what a mounted tree is: every limiter with its owner,
 * mode and the settings that are not the defaults. `ratefs apply` makes a tree of it again.
 */
#include "companions/companion.h"
#include "companions/mounted.h"

#include "fs/base/account.h"

#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct save {
	char path[PATH_TEXT]; /* of the limiter that is looked at */
	bool trouble;	      /* something is missing in what was written */
};

static void complain(struct save *save, int err, const char *why)
{
	warnx("%s: %s", mounted_called(save->path), *why ? why : strerror(-err));
	save->trouble = true;
}

static void print_section(const char *path, const struct mounted *mounted)
{
	char account[INI_ACCOUNT_TEXT], value[SETTING_TEXT];

	printf("\n[%s]\n", mounted_called(path));
	account_print_user(mounted->owner.uid, account);
	printf("owner=%s\n", account);
	account_print_group(mounted->owner.gid, account);
	printf("group=%s\nmode=%04o\n", account, (unsigned int)mounted->owner.access);
	for (int id = 0; id < SETTING_COUNT; id++) {
		if (setting_equal((enum setting_id)id, &mounted->settings, &SETTINGS_DEFAULT))
			continue;
		setting_print((enum setting_id)id, &mounted->settings, value);
		printf("%s=%s\n", setting_name((enum setting_id)id), value);
	}
	fputs(overrides_text(mounted->settings.overrides), stdout);
}

static void save_limiter(struct save *save, int directory);

static void save_child(struct save *save, int directory, const char *name)
{
	int length = mounted_append(save->path, name), child = mounted_enter(directory, name);

	if (length < 0) {
		complain(save, length, "");
	} else {
		/* One that was removed meanwhile is not missing. */
		if (child < 0 && child != -ENOENT)
			complain(save, child, "");
		else if (child >= 0)
			save_limiter(save, child);
		save->path[length] = '\0';
	}
	if (child >= 0)
		close(child);
}

/* Writes the limiter, and then those in it. At most DEPTH_MAX deep, as the tree is. */
static void save_limiter(struct save *save, int directory)
{
	struct mounted_names names;
	struct mounted mounted;
	char error[ERROR_TEXT];
	int err = mounted_read(directory, !*save->path, &mounted, error);

	if (mounted_is_gone(err))
		return;
	if (err)
		complain(save, err, error);
	else
		print_section(save->path, &mounted);
	settings_drop(&mounted.settings);
	err = mounted_list(directory, &names);
	if (err)
		complain(save, err, "");
	for (size_t i = 0; i < names.count; i++)
		save_child(save, directory, names.all[i]);
	mounted_names_free(&names);
}

static int save_tree(const char *mountpoint)
{
	struct save save = {.trouble = false};
	int top = mounted_open(mountpoint);

	if (top < 0)
		return STATUS_TROUBLE;
	printf("# The limiters of a tree, as ratefs save wrote them for ratefs apply.\n");
	save_limiter(&save, top);
	close(top);
	if (fflush(stdout) || ferror(stdout)) {
		warn("standard output");
		save.trouble = true;
	}
	return save.trouble ? STATUS_TROUBLE : EXIT_SUCCESS;
}

int save_main(int argc, char *argv[])
{
	const char *mountpoint = argv[1];
	char only[PATH_MAX];

	if (argc == 2 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		printf("usage: ratefs save [MOUNTPOINT]\n"
		       "\n"
		       "Writes what the tree at MOUNTPOINT, or the only one, is, for ratefs apply\n"
		       "and ratefs -o config=FILE: a section for each limiter with its owner,\n"
		       "group, mode, and all settings that are not the defaults.\n"
		       "\n"
		       "options:\n"
		       "    -h, --help          print this\n");
		return EXIT_SUCCESS;
	}
	if (argc > 2 || (argc == 2 && (!*mountpoint || *mountpoint == '-'))) {
		warnx(argc > 2 ? "an argument too many: '%s'"
			       : "not an option or mount point: '%s'",
		      argv[argc > 2 ? 2 : 1]);
		return companion_usage();
	}
	if (argc < 2)
		mountpoint = mounted_find(only);
	return mountpoint ? save_tree(mountpoint) : STATUS_TROUBLE;
}
