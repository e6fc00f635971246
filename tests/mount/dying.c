/*
 * dying - a library that is preloaded into ratefs: servers die as they restore a part of what the
 * server before knew.
 *
 * The file DYING has a digit, the part as of enum state_part in fs/state/state.h, and a letter for
 * each death that is to come: `a` by SIGABRT, `k` by SIGKILL. A server that finds its own note that
 * it restores that part takes the last letter away, and dies; or it is stopped (`s`), to be killed.
 * Where the file has an `o`, a server that has answered an open removes it, and is killed.
 * Only raw system calls here, as in deaths.c.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
	RESTORING_AT = 28, /* offset of `restoring` in struct header of fs/state/inside.h */
	OPENED_BYTES = 32, /* of the kernel's struct fuse_out_header and struct fuse_open_out */
};

static const char *path;
static atomic_bool dies;

__attribute__((constructor)) static void begin(void)
{
	path = getenv("DYING");
}

static size_t read_all(const char *name, char *text, size_t size)
{
	int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	long got = file < 0 ? 0 : 1;

	while (got > 0 && length < size - 1) {
		got = syscall(SYS_read, file, text + length, size - 1 - length);
		length += got > 0 ? (size_t)got : 0;
	}
	if (file >= 0)
		syscall(SYS_close, file);
	text[length] = '\0';
	return length;
}

/* Finds where the state is mapped. NULL: it is not yet. */
static const char *find_state(void)
{
	static char maps[1 << 18];
	char *found, *line;

	read_all("/proc/self/maps", maps, sizeof(maps));
	found = strstr(maps, "ratefs-state");
	if (!found)
		return NULL;
	for (line = found; line > maps && line[-1] != '\n'; line--)
		;
	return (const char *)strtoul(line, NULL, 16);
}

static int signal_of(char letter)
{
	return letter == 'k' ? SIGKILL : letter == 's' ? SIGSTOP : SIGABRT;
}

static void look(void)
{
	static const char *state;
	char text[64];
	size_t length = read_all(path, text, sizeof(text));
	int file;

	if (length < 2)
		return;
	if (!state)
		state = find_state();
	if (!state || *(const volatile uint32_t *)(state + RESTORING_AT) != (uint32_t)(*text - '0'))
		return;
	/* Until the signal comes, other threads look, too: a server takes one letter. */
	if (atomic_exchange(&dies, true))
		return;
	file = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CLOEXEC);
	syscall(SYS_ftruncate, file, (long)length - 1);
	syscall(SYS_kill, syscall(SYS_getpid), signal_of(text[length - 1]));
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	if (path)
		look();
	return (int)syscall(SYS_clock_gettime, id, now);
}

ssize_t writev(int file, const struct iovec *parts, int count)
{
	long done = syscall(SYS_writev, file, parts, count);
	char text[2];

	if (path && done == OPENED_BYTES && read_all(path, text, sizeof(text)) && *text == 'o') {
		syscall(SYS_unlinkat, AT_FDCWD, path, 0);
		syscall(SYS_kill, syscall(SYS_getpid), SIGKILL);
	}
	return done;
}
