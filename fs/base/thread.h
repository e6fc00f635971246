/*
 * thread - threads beside the loop.
 */
#ifndef RATEFS_FS_BASE_THREAD_H
#define RATEFS_FS_BASE_THREAD_H

#include <pthread.h>

/* Starts a thread that signals of the process never interrupt: they are the loop's. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
