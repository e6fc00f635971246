/*
 * container - from a member to the structure that it is a part of.
 */
#ifndef RATEFS_CORE_CONTAINER_H
#define RATEFS_CORE_CONTAINER_H

#include <stddef.h>
#include <stdint.h>

/* Returns the structure of @type whose @member @pointer points to. */
#define container_of(pointer, type, member)                          \
	__extension__({                                              \
		__typeof__(((type *)0)->member) *part_ = (pointer);  \
		(type *)((uintptr_t)part_ - offsetof(type, member)); \
	})

#endif
