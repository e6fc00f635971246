/*
 * addresses - the addresses of a coordinator's servers, given as HOST[:PORT][,HOST[:PORT]...].
 *
 * Names are looked up in threads of their own, one each, since that can take long, and one that
 * does not resolve must not keep the others from being used. A name keeps the addresses it had for
 * as long as it does not resolve. Any thread may call.
 */
#ifndef RATEFS_FS_BASE_ADDRESSES_H
#define RATEFS_FS_BASE_ADDRESSES_H

#include "core/values/settings.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SERVERS_MAX = 16,
	SERVER_HOST_TEXT = 256,
	SERVER_ADDRESSES_MAX = 8, /* of one name */
	SERVER_ADDRESS_TEXT = 72, /* with the port */
};

struct addresses;

/*
 * Parses @text. A HOST is a name, an IPv4 address, or an IPv6 address in brackets; the PORT is 2181
 * unless it is given. NULL, with the reason in @error.
 */
struct addresses *addresses_new(const char *text, char error[ERROR_TEXT]);
void addresses_free(struct addresses *addresses);

/* Looks up the names. @wake, an eventfd, is written to each time that a name's addresses change. */
void addresses_look_up(struct addresses *addresses, int wake);

/*
 * Gives the address whose turn it is among those known now, as ADDRESS:PORT without brackets, by
 * turns that are counted up. False if none is known.
 */
bool addresses_address(struct addresses *addresses, uint32_t turn,
		       char address[SERVER_ADDRESS_TEXT]);

/* Returns how many addresses are known. */
uint32_t addresses_count(struct addresses *addresses);

#endif
