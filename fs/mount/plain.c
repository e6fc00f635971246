/* plain - names as one word of a line, see plain.h. */
#include "fs/mount/plain.h"

#include "core/limiter/keys.h"
#include "core/limiter/tree.h"

#include <inttypes.h>
#include <string.h>

void plain_word(FILE *out, const char *name)
{
	if (!*name)
		fputc('-', out);
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		fputc(*c <= ' ' || *c == 0x7f ? '?' : *c, out);
}

void plain_partition(uint32_t number, char name[PARTITION_TEXT])
{
	if (number < PARTITIONS_MAX)
		snprintf(name, PARTITION_TEXT, "%" PRIu32, number);
	else
		snprintf(name, PARTITION_TEXT, "r%" PRIu32, number - PARTITIONS_MAX);
}

void plain_find_command(uint32_t pid, char command[COMMAND_TEXT])
{
	char path[32];
	FILE *file;

	*command = '\0';
	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/comm", pid);
	file = pid ? fopen(path, "re") : NULL;
	if (file && !fgets(command, COMMAND_TEXT, file))
		*command = '\0';
	if (file)
		fclose(file);
	command[strcspn(command, "\n")] = '\0';
}

void plain_command(FILE *out, uint32_t pid)
{
	char command[COMMAND_TEXT];

	plain_find_command(pid, command);
	/* As in the node of a host: a user chooses its bytes, and it may end within a letter. */
	for (char *c = command; *c; c++)
		*c = *(unsigned char *)c < 0x7f ? *c : '?';
	plain_word(out, command);
}

void plain_limiter(FILE *out, const struct limiter *limiter)
{
	char path[PATH_TEXT], partition[PARTITION_TEXT];
	const struct key *key = limiter->is_key ? keys_key(limiter) : NULL;

	tree_path(limiter, path);
	fputs(path, out);
	if (key) {
		fputs(" key ", out);
		plain_word(out, key->name);
	} else if (limiter->partition) {
		plain_partition(limiter->partition - 1u, partition);
		fprintf(out, " partition %s", partition);
	}
}
