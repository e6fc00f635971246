/*
 * memory - counts the blocks of memory that the simulator and the core hold.
 *
 * The linker leads every malloc, calloc, realloc, free and strdup of the program through here
 * (--wrap, see meson.build), so that "memory returns to empty" can be checked in every build.
 */
#ifndef RATEFS_SIM_MEMORY_H
#define RATEFS_SIM_MEMORY_H

#include <stddef.h>

/* Blocks that were allocated and not freed. */
long memory_blocks(void);

/* Zeroed memory; ends the program when there is none. */
void *memory_get(size_t size);

/* A copy of the first @length bytes of @text, ended by a NUL. */
char *memory_text(const char *text, size_t length);

#endif
