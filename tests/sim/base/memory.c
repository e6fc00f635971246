/* memory - counts blocks of memory, see memory.h. */
#include "tests/sim/base/memory.h"

#include <stdalign.h>
#include <stdint.h>
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

/* Before each block. */
struct block {
	alignas(max_align_t) struct block *next;
	struct block **back;
	struct memory *owner; /* NULL: it is in no list */
};

static long blocks;
static struct memory *owner;

long memory_blocks(void)
{
	return blocks;
}

static void unlink_block(struct block *block)
{
	if (!block->owner)
		return;
	*block->back = block->next;
	if (block->next)
		block->next->back = block->back;
	block->owner->count--;
	block->owner = NULL;
}

static void link_block(struct block *block, struct memory *memory)
{
	block->owner = memory;
	if (!memory)
		return;
	block->next = memory->blocks;
	block->back = &memory->blocks;
	if (memory->blocks)
		memory->blocks->back = &block->next;
	memory->blocks = block;
	memory->count++;
}

static void *begin(struct block *block, struct memory *memory)
{
	if (!block)
		return NULL;
	blocks++;
	link_block(block, memory);
	return block + 1;
}

void *__wrap_malloc(size_t size)
{
	return begin(__real_malloc(sizeof(struct block) + size), owner);
}

void *__wrap_calloc(size_t count, size_t size)
{
	if (size && count > (SIZE_MAX - sizeof(struct block)) / size)
		return NULL;
	return begin(__real_calloc(1, sizeof(struct block) + count * size), owner);
}

void *__wrap_realloc(void *at, size_t size)
{
	struct block *block = at ? (struct block *)at - 1 : NULL, *moved;
	struct memory *was = block ? block->owner : owner;

	if (block)
		unlink_block(block);
	moved = __real_realloc(block, sizeof(struct block) + size);
	if (!moved) {
		if (block)
			link_block(block, was);
		return NULL;
	}
	blocks -= block != NULL;
	return begin(moved, was);
}

void __wrap_free(void *at)
{
	struct block *block;

	if (!at)
		return;
	block = (struct block *)at - 1;
	blocks--;
	unlink_block(block);
	__real_free(block);
}

char *__wrap_strdup(const char *text)
{
	return memory_text(text, strlen(text));
}

struct memory *memory_enter(struct memory *memory)
{
	struct memory *before = owner;

	owner = memory;
	return before;
}

void *memory_give(void *at, struct memory *memory)
{
	struct block *block;

	if (!at)
		return NULL;
	block = (struct block *)at - 1;
	unlink_block(block);
	link_block(block, memory);
	return at;
}

void memory_drop(struct memory *memory)
{
	while (memory->blocks)
		__wrap_free(memory->blocks + 1);
}

static void *or_end(void *block)
{
	if (!block) {
		fprintf(stderr, "simulate: no memory\n");
		exit(2);
	}
	return block;
}

void *memory_get(size_t size)
{
	return or_end(calloc(1, size));
}

void *memory_copy(const void *from, size_t size)
{
	return memcpy(or_end(malloc(size)), from, size);
}

char *memory_text(const char *text, size_t length)
{
	char *copy = memory_get(length + 1);

	memcpy(copy, text, length);
	return copy;
}
