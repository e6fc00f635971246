/* privilege - what a daemon that root starts gives up, see privilege.h. */
#include "fs/base/privilege.h"
#include "fs/base/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { GROUPS_MAX = 1024, OURS_ALONE = 0700 };

#define BIT(capability) (UINT64_C(1) << (capability))

static struct {
	bool is_chosen;
	uid_t uid;
	gid_t gid;
	gid_t groups[GROUPS_MAX];
	int group_count;
} user;

int privilege_choose(const struct options *options)
{
	const struct passwd *entry;

	if (!options->user)
		return 0;
	if (geteuid()) {
		log_error("user=%s: only root can become another user", options->user);
		return EXIT_USAGE;
	}
	entry = getpwnam(options->user);
	if (!entry) {
		log_error("user=%s: there is no such user", options->user);
		return EXIT_USAGE;
	}
	user.uid = entry->pw_uid;
	user.gid = entry->pw_gid;
	user.group_count = GROUPS_MAX;
	if (getgrouplist(options->user, user.gid, user.groups, &user.group_count) < 0) {
		log_error("user=%s: too many groups", options->user);
		return EXIT_FAILURE;
	}
	user.is_chosen = true;
	return 0;
}

/* Selects all files but the directory itself and the one above. */
static int is_other(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

/* Tells whether @directory has nothing in it. */
static bool is_empty(int directory)
{
	struct dirent **entries;
	int count = scandirat(directory, ".", &entries, is_other, NULL);

	for (int i = 0; i < count; i++)
		free(entries[i]);
	if (count >= 0)
		free(entries);
	return !count;
}

/*
 * Gives @path, which this process has just made, to the user. Another file may have its place by
 * now, of a user who may write to the directory above: none but an empty directory that nobody else
 * may use is given away. 0 or -errno.
 */
static int give_away(const char *path)
{
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), err = 0;
	struct stat about;

	if (directory < 0)
		return -errno;
	if (fstat(directory, &about))
		err = -errno;
	else if (about.st_uid != user.uid && /* as some file systems have it */
		 (about.st_uid != geteuid() || (about.st_mode & 0777) != OURS_ALONE ||
		  !is_empty(directory)))
		err = -EEXIST;
	else if (about.st_uid != user.uid && fchown(directory, user.uid, user.gid))
		err = -errno;
	close(directory);
	return err;
}

int privilege_make(const char *directory)
{
	int err;

	if (mkdir(directory, OURS_ALONE)) {
		if (errno == EEXIST)
			return 0;
		log_error("cannot make '%s': %s", directory, strerror(errno));
		return -1;
	}
	err = user.is_chosen ? give_away(directory) : 0;
	if (err)
		log_error("cannot give away '%s': %s", directory, strerror(-err));
	return err ? -1 : 0;
}

int privilege_open(const char *directory)
{
	int descriptor, err;

	privilege_files(true);
	descriptor = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = errno;
	privilege_files(false);
	if (descriptor < 0)
		log_error("cannot open %s: %s", directory, strerror(err));
	return descriptor;
}

void privilege_files(bool as_user)
{
	if (!user.is_chosen)
		return;
	setfsgid(as_user ? user.gid : getegid());
	setfsuid(as_user ? user.uid : geteuid());
}

/*
 * Makes this thread that user. The C library would do it in all threads, each at another point of
 * its work.
 */
static int become_user(void)
{
	if (syscall(SYS_setgroups, user.group_count, user.groups) ||
	    syscall(SYS_setresgid, user.gid, user.gid, user.gid) ||
	    syscall(SYS_setresuid, user.uid, user.uid, user.uid))
		return -errno;
	return 0;
}

static uint64_t permitted(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct both[2] = {0};

	if (syscall(SYS_capget, &header, both))
		return 0;
	return both[0].permitted | (uint64_t)both[1].permitted << 32;
}

static int set_capabilities(uint64_t most, uint64_t effective)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct both[2] = {
		{.permitted = (uint32_t)most, .effective = (uint32_t)effective},
		{.permitted = (uint32_t)(most >> 32), .effective = (uint32_t)(effective >> 32)},
	};

	return syscall(SYS_capset, &header, both) ? -errno : 0;
}

/*
 * Takes capabilities away from all later programs, too. A service manager may have done so already,
 * and not allow it.
 */
static void bound_capabilities(uint64_t kept)
{
	for (int capability = 0; capability < 64; capability++) {
		if (!(kept >> capability & 1) && prctl(PR_CAPBSET_DROP, capability, 0, 0, 0))
			break;
	}
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* Tells whether the directory above the mount point is out of reach. */
static bool is_closed_above(const char *mountpoint)
{
	char *copy = strdup(mountpoint);
	bool closed = copy && faccessat(AT_FDCWD, dirname(copy), X_OK, AT_EACCESS);

	free(copy);
	return closed;
}

/*
 * Finds the capabilities to keep, by trying with nothing but CAP_SYS_ADMIN. 0 or -errno after a
 * message.
 */
static int choose_capabilities(const struct options *options, int directory, uint64_t *kept)
{
	if (is_closed_above(options->mountpoint))
		*kept |= BIT(CAP_DAC_READ_SEARCH);
	if (directory < 0 || !faccessat(directory, ".", R_OK | W_OK | X_OK, AT_EACCESS))
		return 0;
	if (user.is_chosen) {
		int err = -errno;

		log_error("user=%s: cannot use '%s': %s", options->user, options->directory,
			  strerror(-err));
		return err;
	}
	*kept |= BIT(CAP_DAC_OVERRIDE);
	return 0;
}

int privilege_drop(const struct options *options, int directory)
{
	static const uint64_t possible = BIT(CAP_SYS_ADMIN) | BIT(CAP_DAC_READ_SEARCH) |
					 BIT(CAP_DAC_OVERRIDE);
	uint64_t kept = BIT(CAP_SYS_ADMIN), most;
	int err = 0;

	if (geteuid() && !options->user)
		return 0;
	bound_capabilities(possible);
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	if (user.is_chosen)
		err = become_user();
	if (err) {
		log_error("user=%s: %s", options->user, strerror(-err));
		return -1;
	}
	most = permitted() & possible;
	err = set_capabilities(most, most & kept);
	if (!err && choose_capabilities(options, directory, &kept))
		return -1;
	if (!err)
		err = set_capabilities(most & kept, most & kept);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (err)
		log_error("cannot give up privileges: %s", strerror(-err));
	return err ? -1 : 0;
}

void privilege_hand_on(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct both[2] = {0};

	if (!user.is_chosen || !geteuid() || syscall(SYS_capget, &header, both))
		return;
	both[0].inheritable = both[0].permitted;
	both[1].inheritable = both[1].permitted;
	if (syscall(SYS_capset, &header, both))
		return;
	for (int capability = 0; capability < 64; capability++) {
		if (both[capability / 32].permitted >> capability % 32 & 1)
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0);
	}
}

void privilege_drop_all(void)
{
	if (geteuid())
		return;
	if (user.is_chosen)
		(void)become_user();
	(void)set_capabilities(0, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}
