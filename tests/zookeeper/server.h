/* server - a ZooKeeper server of one's own, and a client that does what the coordinator cannot. */
#ifndef RATEFS_TESTS_SERVER_H
#define RATEFS_TESTS_SERVER_H

#include <stddef.h>
#include <stdint.h>

/* Its data, configuration and log are in @directory. */
void server_start(const char *directory, uint16_t port);
void server_kill(void);

/* Creates a node with @length bytes of data. */
void server_put(uint16_t port, const char *path, const char *data, size_t length);

#endif
