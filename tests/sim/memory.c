/* memory - counts blocks of memory, see memory.h. */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The names are the linker's. */
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
char *__wrap_strdup(const char *text);

static long blocks;

long memory_blocks(void)
{
	return blocks;
}

void *__wrap_malloc(size_t size)
{
	void *block = __real_malloc(size);

	blocks += block != NULL;
	return block;
}

void *__wrap_calloc(size_t count, size_t size)
{
	void *block = __real_calloc(count, size);

	blocks += block != NULL;
	return block;
}

void *__wrap_realloc(void *block, size_t size)
{
	void *moved = __real_realloc(block, size);

	blocks += !block && moved;
	return moved;
}

void __wrap_free(void *block)
{
	blocks -= block != NULL;
	__real_free(block);
}

char *__wrap_strdup(const char *text)
{
	return memory_text(text, strlen(text));
}

void *memory_get(size_t size)
{
	void *block = calloc(1, size);

	if (!block) {
		fprintf(stderr, "simulate: no memory\n");
		exit(2);
	}
	return block;
}

char *memory_text(const char *text, size_t length)
{
	char *copy = memory_get(length + 1);

	memcpy(copy, text, length);
	return copy;
}
