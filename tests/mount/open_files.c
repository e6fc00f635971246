/*
 * open_files STATE: counts the numbers of open files that are in use in the file that a server
 * writes for the next one (/proc/KEEPER/fd/N), see fs/state/state.h.
 */
#include "fs/state/inside.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

int main(int argc, char **argv)
{
	uint64_t at = STATE_HEADER_BYTES + 2 * STATE_LOG_BYTES +
		      (uint64_t)UNITS_MAX * (sizeof(struct unit) + sizeof(struct learning_copies));
	uint64_t bytes = at + (uint64_t)STATE_HANDLES_MAX * sizeof(struct state_handle);
	int file = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	const char *state = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0);
	const struct state_handle *handles = (const struct state_handle *)(state + at);
	unsigned int used = 0;

	if (state == MAP_FAILED) {
		perror(argv[argc - 1]);
		return 1;
	}
	for (uint32_t i = 0; i < ((const struct header *)state)->handle_count; i++)
		used += (handles[i].life & LIFE_USED) != 0;
	printf("%u\n", used);
	return 0;
}
