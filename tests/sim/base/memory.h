/*
 * memory - counts the blocks of memory that the simulator and the core hold, and whose they are.
 *
 * The linker leads every malloc, calloc, realloc, free and strdup of the program through here
 * (--wrap, see meson.build), so that "memory returns to empty" can be checked in every build, and
 * that a simulated process can die without a word: its memory goes with it.
 */
#ifndef RATEFS_SIM_MEMORY_H
#define RATEFS_SIM_MEMORY_H

#include <stddef.h>

/* Of one simulated process. */
struct memory {
	struct block *blocks;
	long count;
};

/* Blocks that were allocated and not freed. */
long memory_blocks(void);

/* Blocks allocated from now on are @memory's (NULL: no process's); returns the owner until now. */
struct memory *memory_enter(struct memory *memory);

/* @block is @memory's now; NULL stays NULL. Returns it. */
void *memory_give(void *block, struct memory *memory);

/* Frees all blocks that are still @memory's. */
void memory_drop(struct memory *memory);

/* Zeroed memory; ends the program when there is none. */
void *memory_get(size_t size);

/* A copy of @size bytes. */
void *memory_copy(const void *from, size_t size);

/* A copy of the first @length bytes of @text, ended by a NUL. */
char *memory_text(const char *text, size_t length);

#endif
