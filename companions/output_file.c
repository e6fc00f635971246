/* output_file - the file that a command writes at its end, see output_file.h. */
#include "companions/output_file.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MODE = O_WRONLY | O_NOCTTY | O_CLOEXEC };

/* Tells, before the work, whether a file can be made at @path. 0 or -errno. */
static int look_for_room(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *copy;
	int err;

	if (!*(slash ? slash + 1 : path))
		return -ENOENT;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	err = faccessat(AT_FDCWD, dirname(copy), W_OK | X_OK, AT_EACCESS) ? -errno : 0;
	free(copy);
	return err;
}

static bool is_regular(int file)
{
	struct stat about;

	return fstat(file, &about) || S_ISREG(about.st_mode);
}

int output_file_begin(struct output_file *output, const char *path)
{
	int err = 0;

	*output = (struct output_file){.path = path, .target = -1, .file = STDOUT_FILENO};
	if (!path)
		return 0;
	output->target = open(path, MODE);
	if (output->target < 0) {
		err = errno == ENOENT ? look_for_room(path) : -errno;
	} else if (!is_regular(output->target)) {
		output->file = output->target;
		return 0;
	}
	output->file = err ? -1 : memfd_create("output", MFD_CLOEXEC);
	if (output->file >= 0)
		return 0;
	errno = err ? -err : errno;
	warn("%s", path);
	if (output->target >= 0)
		close(output->target);
	return -1;
}

/* Copies all that was written to the target. 0 or -errno. */
static int copy(const struct output_file *output)
{
	char bytes[1 << 16];
	off_t size = 0;
	ssize_t got;

	while ((got = pread(output->file, bytes, sizeof(bytes), size)) > 0) {
		for (ssize_t at = 0, put; at < got; at += put) {
			put = write(output->target, bytes + at, (size_t)(got - at));
			if (put < 0)
				return -errno;
		}
		size += got;
	}
	return got < 0 || ftruncate(output->target, size) ? -errno : 0;
}

/* 0 or -errno. */
static int keep_output(struct output_file *output)
{
	if (output->target < 0)
		output->target = open(output->path, MODE | O_CREAT, 0666);
	return output->target < 0 ? -errno : copy(output);
}

int output_file_end(struct output_file *output, bool keep)
{
	int err = 0;

	if (!output->path)
		return 0;
	if (output->file != output->target) {
		err = keep ? keep_output(output) : 0;
		close(output->file);
	}
	/* Some file systems tell of an error only now. */
	if (output->target >= 0 && close(output->target) && !err)
		err = -errno;
	if (!err)
		return 0;
	errno = -err;
	warn("%s", output->path);
	return -1;
}
