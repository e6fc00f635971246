/*
 * socket - messages with descriptors between keeper and server.
 */
#ifndef RATEFS_FS_KEEPER_SOCKET_H
#define RATEFS_FS_KEEPER_SOCKET_H

#include <stddef.h>

enum { SOCKET_DESCRIPTORS_MAX = 16 }; /* in one message */

/* Sends a message with @descriptors. 0 or -errno. */
int keeper_socket_send(int control, const void *bytes, size_t size, const int *descriptors,
		       unsigned int count);

/*
 * Receives a message and its @descriptors (close on exec), at most @most; more are closed. Returns
 * how many there are, or -errno, with none: -EPIPE for the end, -EPROTO for another size.
 */
int keeper_socket_receive(int control, void *bytes, size_t size, int *descriptors,
			  unsigned int most);

/* Closes @count @descriptors. */
void keeper_socket_close(const int *descriptors, unsigned int count);

#endif
